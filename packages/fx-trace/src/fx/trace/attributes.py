"""Qualified names of the tensors and modules below a root, each index built when first asked for.

``torch.fx`` scans all names at every read of a parameter, which is quadratic; here each kind is scanned once per trace, and
again only when something is not found (a program may add parameters while it runs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, final

import torch
import torch.utils._pytree as pytree

__all__ = ["AttributeNames"]

_CONSTANT_TYPES = (torch.Tensor, torch.ScriptObject, pytree.TreeSpec)


class _Index:
    """Objects of one kind by identity; holds them, so that identities stay theirs."""

    __slots__ = ("_known", "_scan")

    def __init__(self, scan: Callable[[], Iterable[tuple[str, Any]]]) -> None:
        self._scan = scan
        self._known: dict[int, tuple[Any, str | None]] = {}

    def name_of(self, value: Any) -> str | None:
        entry = self._known.get(id(value))
        if entry is None:
            for name, found in self._scan():
                self._known.setdefault(id(found), (found, name))
            entry = self._known.setdefault(id(value), (value, None))
        return entry[1]


@final
class AttributeNames:
    """Looks up and makes names of attributes of ``root``."""

    def __init__(self, root: torch.nn.Module) -> None:
        self.root = root
        self._parameters = _Index(root.named_parameters)
        self._buffers = _Index(root.named_buffers)
        self._modules = _Index(root.named_modules)
        self._plain: dict[Any, str] | None = None
        self._stored: list[str] = []

    @property
    def plain(self) -> dict[Any, str]:
        """Tensors and other constants in the instance dictionaries of modules."""
        if self._plain is None:
            self._plain = {
                value: f"{path}.{name}" if path else name
                for path, module in self.root.named_modules()
                for name, value in vars(module).items()
                if isinstance(value, _CONSTANT_TYPES)
            }
        return self._plain

    def parameter(self, value: torch.nn.Parameter) -> str | None:
        """Name of a parameter; None if the root does not have it."""
        return self._parameters.name_of(value)

    def buffer(self, value: torch.Tensor) -> str | None:
        """Name of a buffer; None if the root does not have it."""
        return self._buffers.name_of(value)

    def name_of(self, value: Any) -> str:
        """Name of a parameter, buffer, module or constant; what the root does not have is stored in it."""
        if isinstance(value, torch.nn.Module):
            found = self._modules.name_of(value)
        elif isinstance(value, torch.nn.Parameter):
            found = self.parameter(value)
        else:
            found = self.buffer(value) if isinstance(value, torch.Tensor) else None
            found = self.plain.get(value) if found is None else found
        return self._store(value) if found is None else found

    def _store(self, value: Any) -> str:
        known = self.plain.get(value)
        if known is not None:
            return known
        name = self.fresh(_prefix(value))
        setattr(self.root, name, value)
        self.plain[value] = name
        self._stored.append(name)
        return name

    def fresh(self, prefix: str) -> str:
        """A name that starts with ``prefix`` and is free in the root."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def forget_stored(self) -> None:
        """Take out of the root what was stored in it."""
        for name in self._stored:
            delattr(self.root, name)
        self._stored.clear()
        self._plain = None


def _prefix(value: Any) -> str:
    if isinstance(value, torch.nn.Parameter):
        return "_param_constant"
    if isinstance(value, torch.Tensor):
        return "_tensor_constant"
    if isinstance(value, torch.nn.Module):
        return "_module_constant"
    return "_tree_spec_constant" if isinstance(value, pytree.TreeSpec) else "_torchbind_obj"
