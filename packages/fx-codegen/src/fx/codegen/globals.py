"""What a generated text refers to from outside: functions, classes, constants, each under one name.

Local names were given before (:mod:`fx.codegen.names`); a global takes its natural name unless a local or another
global has it.  Things of torch are reached through their path from the module ``torch`` (``torch.nn.functional.relu``),
after looking that the path leads to this very object; all others stand in the globals themselves, under a name made
from theirs.  Objects are told apart by identity, never by ``==`` or hash.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable
from typing import Any, Final

import torch

from fx.codegen.names import BUILTINS, UNASSIGNABLE, is_plain

_ILLEGAL: Final = re.compile(r"[^0-9a-zA-Z_]+")
_TENSOR_METHODS: Final = "torch.Tensor"


class Globals:
    """The names of one text; ``values`` is what to run it with."""

    __slots__ = ("_paths", "_references", "_taken", "values")

    def __init__(self, taken: set[str]) -> None:
        self.values: dict[str, Any] = {}
        self._taken = taken
        self._references: dict[int, str] = {}
        self._paths: dict[int, str] = {}

    def reference(self, obj: object, hint: str) -> str:
        """The global that holds ``obj``, called like ``hint`` where that is free."""
        name = self._references.get(id(obj))
        if name is None:
            name = self._free(legal(hint), obj)
            self._references[id(obj)] = name
            self.values[name] = obj
        return name

    def reserve(self, names: Iterable[str]) -> None:
        """Keep ``names`` free: text that others write refers to them."""
        self._taken.update(names)

    def local(self, wish: str) -> str:
        """A name for one more variable; no global is called so afterwards."""
        name = self._free(wish, None)
        self._taken.add(name)
        return name

    def builtin(self, name: str) -> str:
        """The builtin called ``name``, under another name if a local hides it."""
        if name not in self._taken:
            return name
        return self.reference(getattr(builtins, name), name)

    def path(self, obj: Any) -> str:
        """The expression for a callable or class: builtin, path from ``torch``, or a global of its own."""
        text = self._paths.get(id(obj))
        if text is None:
            text = self._paths[id(obj)] = self._find_path(obj)
        return text

    def torch_path(self, path: str) -> str:
        """``torch.…`` under the name that the module has in this text."""
        name = self.reference(torch, "torch")
        return path if name == "torch" else name + path[len("torch") :]

    def _find_path(self, obj: Any) -> str:
        name = getattr(obj, "__name__", None)
        if isinstance(name, str) and name in BUILTINS and getattr(builtins, name) is obj:
            return self.builtin(name)
        found = torch_path_of(obj)
        return self.reference(obj, hint_for(obj)) if found is None else self.torch_path(found)

    def _free(self, wish: str, obj: object) -> str:
        """A name for a global that nothing else has, locals, globals, keywords and other builtins included."""
        name, number = wish, 0
        while name in self._taken or name in self.values or name in UNASSIGNABLE or self._hides(name, obj):
            number += 1
            name = f"{wish}_{number}"
        return name

    @staticmethod
    def _hides(name: str, obj: object) -> bool:
        return name in BUILTINS and getattr(builtins, name) is not obj


def legal(text: str) -> str:
    """``text`` as a plain name: what cannot stand in one becomes ``_``."""
    text = _ILLEGAL.sub("_", text) or "_constant"
    return f"_{text}" if text[0].isdigit() else text


def hint_for(obj: Any) -> str:
    """A readable wish for the global that holds ``obj``, from its module and name, or from its class."""
    name = getattr(obj, "__name__", None)
    if not isinstance(name, str):
        return f"_{type(obj).__name__.lower()}"
    module = getattr(obj, "__module__", None)
    if name == "<lambda>":
        name = "lambda"
    return f"{module}.{name}" if isinstance(module, str) else name


def resolve(path: str) -> object:
    """The object to which a path from ``torch`` leads, or ``None``."""
    found: Any = torch
    for atom in path.split(".")[1:]:
        if not is_plain(atom):
            return None
        try:
            found = getattr(found, atom)
        except (AttributeError, RuntimeError):
            return None
    return found


def torch_path_of(obj: Any) -> str | None:
    """The path from ``torch`` that leads to ``obj``, if there is one: that of its module, or where users find it."""
    name = getattr(obj, "__name__", None)
    module = getattr(obj, "__module__", None)
    if not isinstance(name, str) or not (module is None or isinstance(module, str)):
        return None
    for path in _candidates(obj, name, module):
        if resolve(path) is obj:
            return path
    return None


def _candidates(obj: Any, name: str, module: str | None) -> list[str]:
    if module is None:
        paths = [f"torch.{name}", f"torch.nn.functional.{name}", f"{_TENSOR_METHODS}.{name}"]
    elif module == "torch" or module.startswith("torch."):
        qualified = getattr(obj, "__qualname__", name)
        home = module.replace("torch._ops", "torch.ops", 1)
        paths = [f"{home}.{name}", f"{home}.{qualified}", f"torch.{name}", f"{_TENSOR_METHODS}.{name}"]
        if home.startswith("torch.ops."):
            paths.append(f"torch.ops.{str(obj)}")
    else:
        paths = [f"torch.{name}"] if module == "builtins" else []
    return paths
