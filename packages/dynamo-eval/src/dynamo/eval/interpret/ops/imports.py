"""Imports of modules that are loaded already; any other import runs code, and breaks the graph."""

import builtins
import sys
import types
from typing import Any

from dynamo.eval.bytecode import Instruction
from dynamo.eval.errors import GraphBreak
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.table import OpcodeTable
from dynamo.eval.variables.wrap import wrap_value
from dynamo.guards import AttrSource, ConstantSource, ItemSource

table = OpcodeTable()
_HINT = "import at the top of the module"
_IMPORT = builtins.__import__


@table.op("IMPORT_NAME")
def import_name(frame: SymbolicFrame, inst: Instruction) -> None:
    """What ``sys.modules`` holds, guarded to hold it still."""
    level, wanted = (var.as_python_constant() for var in frame.pop_many(2))
    if frame.builtins.get("__import__") is not _IMPORT:
        raise GraphBreak("an import by an __import__ of the user's own", _HINT)
    name = _absolute(frame.namespace, str(inst.argval), level)
    if not wanted:
        _loaded(name)
        name = name.partition(".")[0] if level == 0 else name
        if level:
            raise GraphBreak("a relative import without names", _HINT)
    module = _loaded(name)
    for each in wanted or ():
        if each == "*" or each not in module.__dict__:
            raise GraphBreak(f"an import of {each!r} from {name}", _HINT)
    modules = AttrSource(ConstantSource(sys, "sys"), "modules")
    frame.push(wrap_value(frame.output, module, ItemSource(modules, name)))


def _absolute(namespace: dict[str, Any], name: str, level: int) -> str:
    """The full name of what is imported."""
    if level == 0:
        return name
    package = namespace.get("__package__")
    if not isinstance(package, str):
        raise GraphBreak("a relative import outside of a package", _HINT)
    parts = package.rsplit(".", level - 1)
    if len(parts) < level or not parts[0]:
        raise GraphBreak("ImportError: attempted relative import beyond top-level package", _HINT)
    return f"{parts[0]}.{name}" if name else parts[0]


def _loaded(name: str) -> types.ModuleType:
    """The module of a name, and of every package above it.

    Raises:
        GraphBreak: one is not there, or is being imported right now.
    """
    found: Any = None
    place = name
    while place:
        module = sys.modules.get(place)
        if not isinstance(module, types.ModuleType) or getattr(module.__spec__, "_initializing", False):
            raise GraphBreak(f"an import of {name}, which is not loaded yet", _HINT)
        found = found or module
        place = place.rpartition(".")[0]
    assert isinstance(found, types.ModuleType)
    return found


@table.op("IMPORT_FROM")
def import_from(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(frame.stack[-1].get_attr(frame, str(inst.argval)))


@table.op("IMPORT_STAR")
def import_star(frame: SymbolicFrame, inst: Instruction) -> None:
    raise GraphBreak("import *", _HINT)
