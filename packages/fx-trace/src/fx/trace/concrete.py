"""Arguments whose value, or whose structure, is fixed while tracing.

A structure (a pytree of torch's) is taken apart into leaves. ``PH`` leaves become placeholders; any other leaf is used as it
is, and the graph asserts that later calls give the same. A dataclass that is no pytree stays one input, whose fields the
graph reads.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import warnings
from collections.abc import Callable, Sized
from typing import Any, Final

import torch
import torch.utils._pytree as pytree

__all__ = ["PH", "PHBase", "PHWithMeta", "assert_is_none", "specialise"]


class PHBase:
    """Marks a place in ``concrete_args`` that stays an input of the graph.

    Source: torch.fx ``PHBase``.
    """

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """A ``PH`` whose attributes are copied to the ``meta`` of its placeholder.

    Args:
        ph_key: a name by which the placeholder can be found again; ``meta["ph_key"]``.
    """

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


PH: Final = PHBase()

_COMPARABLE: Final = (bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout)


def assert_is_none(value: object, message: str) -> None:
    """Recorded for an argument that was specialised to None.

    Raises:
        AssertionError: ``value`` is anything else.
    """
    if value is not None:
        raise AssertionError(message)


def specialise(
    name: str, value: object, placeholder: Callable[[str], Any], record: Callable[..., Any]
) -> Any:
    """``value`` with traced values in place of ``PH``, and assertions recorded for all other leaves.

    Args:
        name: of the parameter; placeholders are called ``name_1``, ``name_2`` ...
        value: what ``concrete_args`` gave.
        placeholder: makes a placeholder of a given name.
        record: records a call of a function.
    """
    count = 0

    def leaf(x: object) -> object:
        nonlocal count
        count += 1
        out = placeholder(f"{name}_{count}")
        if isinstance(x, PHWithMeta):
            out.node.meta.update(vars(x))
        return _of_leaf(name, x, out, record)

    return pytree.tree_map(leaf, value)


def _of_leaf(name: str, x: object, out: Any, record: Callable[..., Any]) -> object:
    """What the program sees where ``x`` was given and ``out`` is the traced value there."""
    if isinstance(x, PHBase):
        return out
    if not dataclasses.is_dataclass(x) or isinstance(x, type):
        _assert_same(name, x, out, record)
        return x
    seen = copy.copy(x)
    for field in dataclasses.fields(x):
        if hasattr(x, field.name):
            value = _of_field(
                f"{name}.{field.name}", getattr(x, field.name), getattr(out, field.name), record
            )
            object.__setattr__(seen, field.name, value)  # frozen ones too
    return seen


def _of_field(name: str, value: object, out: Any, record: Callable[..., Any]) -> object:
    if pytree.tree_is_leaf(value):
        return _of_leaf(name, value, out, record)
    if isinstance(value, Sized):
        message = f"{name} has been specialized to have {len(value)} elements but got another number"
        record(torch._assert, (record(len, (out,)) == len(value), message))

    def child(path: pytree.KeyPath, x: object) -> object:
        return _of_field(name + pytree.keystr(path), x, pytree.key_get(out, path), record)

    return pytree.tree_map_with_path(child, value, is_leaf=lambda x: x is not value)


def _assert_same(name: str, x: object, out: Any, record: Callable[..., Any]) -> None:
    if x is None:
        record(assert_is_none, (out, f"{name} has been specialized to have value None but got another value"))
    elif isinstance(x, (*_COMPARABLE, enum.Enum)):
        message = f"{name} has been specialized to have value {x!s} but got another value"
        record(torch._assert, (out == x, message))
    else:
        warnings.warn(
            f"Was not able to add assertion to guarantee correct input {name} to specialized function: a value of "
            f"{type(x)} cannot be compared. It is up to the user to make sure that your inputs match the inputs you "
            "specialized the function with.",
            stacklevel=2,
        )
