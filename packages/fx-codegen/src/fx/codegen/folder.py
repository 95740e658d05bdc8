"""``to_folder``: a module as a Python package that needs torch, and nothing of ours, to run.

The package holds ``module.py`` (the class and its ``forward``), ``state.pt`` (parameters, buffers and submodules) and,
if the code refers to objects that no import reaches, ``constants.pt``.  Files are found beside ``module.py``, so the
folder can be moved.  ``forward`` is written outside the class: inside, Python would mangle private names.
"""

from __future__ import annotations

import builtins
import importlib
import os
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fx.codegen.names import is_plain

if TYPE_CHECKING:
    from fx.codegen.module import GraphModule

_TEMPLATE = '''\
"""{title}: generated code and the state it runs on."""

from pathlib import Path as _Path

import torch as _torch
{imports}
_folder = _Path(__file__).parent
{constants}

{code}

class {name}(_torch.nn.Module):
    """A module whose code was generated from a graph; edit ``forward`` above as you like."""

    def __init__(self):
        super().__init__()
        state = _torch.load(_folder / "state.pt", weights_only=False)
        self.__dict__.update(state)


{name}.forward = forward
'''

_STATE = (
    "_parameters",
    "_buffers",
    "_modules",
    "_non_persistent_buffers_set",
    "training",
    "_in_spec",
    "_out_spec",
)


def write_folder(module: GraphModule, folder: str | os.PathLike[str], module_name: str) -> None:
    """See :meth:`fx.codegen.GraphModule.to_folder`."""
    if not is_plain(module_name):
        raise ValueError(f"{module_name!r} is no name of a class")
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    code = module._python_code
    imports: list[str] = []
    constants: dict[str, Any] = {}
    for name, value in code.globals.items():
        statement = import_statement(name, value)
        if statement is None:
            constants[name] = value
        else:
            imports.append(statement)
    state = {key: module.__dict__[key] for key in _STATE if key in module.__dict__}
    torch.save(state, path / "state.pt")
    load = ""
    if constants:
        torch.save(constants, path / "constants.pt")
        load = 'globals().update(_torch.load(_folder / "constants.pt", weights_only=False))'
    text = _TEMPLATE.format(
        title=module_name, name=module_name, imports="\n".join(sorted(imports)), constants=load, code=code.src
    )
    (path / "module.py").write_text(text, encoding="utf-8")
    (path / "__init__.py").write_text(
        f"from .module import {module_name} as {module_name}\n", encoding="utf-8"
    )


def import_statement(name: str, value: Any) -> str | None:
    """The statement that binds ``name`` to ``value`` in another process, or ``None`` if none does."""
    if isinstance(value, types.ModuleType):
        parent, _, last = value.__name__.rpartition(".")
        if not all(map(is_plain, value.__name__.split("."))):
            return None
        if parent:
            return f"from {parent} import {last} as {name}"
        return f"import {last}" if last == name else f"import {last} as {name}"
    if value is type(None):
        return f"{name} = type(None)"
    home, attribute = _home(value)
    if home is None or attribute is None:
        return None
    if attribute == name and home == "builtins":
        return None if getattr(builtins, name, None) is not value else f"from builtins import {name}"
    return f"from {home} import {attribute}" + ("" if attribute == name else f" as {name}")


def _home(value: Any) -> tuple[str | None, str | None]:
    """(module, name) under which a new process finds ``value``; main scripts are not found again."""
    if isinstance(value, float):
        return ("math", str(value)) if str(value) in ("inf", "nan") else (None, None)
    module = getattr(value, "__module__", None)
    name = getattr(value, "__name__", None) or getattr(value, "_name", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or not is_plain(name):
        return None, None
    if not all(map(is_plain, module.split("."))):
        return None, None
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None, None
    return (module, name) if found is value else (None, None)
