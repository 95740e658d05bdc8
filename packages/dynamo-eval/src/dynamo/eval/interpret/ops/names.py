"""Locals, cells, globals and builtins."""

from dynamo.eval.bytecode import Instruction
from dynamo.eval.effects import GlobalWrite
from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.table import OpcodeTable
from dynamo.eval.variables.base import VariableTracker, realize
from dynamo.eval.variables.cell import CellVariable
from dynamo.eval.variables.null import NULL
from dynamo.eval.variables.wrap import wrap_value
from dynamo.guards import BuiltinSource, GlobalSource, ItemSource, Source

table = OpcodeTable()


@table.op("LOAD_FAST", "LOAD_FAST_CHECK")
def load_fast(frame: SymbolicFrame, inst: Instruction) -> None:
    name = str(inst.argval)
    var = frame.locals.get(name)
    if var is None:
        if name in frame.cells:  # 3.13 reads a cell itself with LOAD_FAST
            frame.push(frame.cells[name])
            return
        raise unbound_local(name)
    frame.push(var)


@table.op("STORE_FAST")
def store_fast(frame: SymbolicFrame, inst: Instruction) -> None:
    value = frame.take()
    if value is NULL:  # an inlined comprehension puts back what was unbound (3.12)
        frame.locals.pop(str(inst.argval), None)
    else:
        frame.locals[str(inst.argval)] = value


@table.op("DELETE_FAST")
def delete_fast(frame: SymbolicFrame, inst: Instruction) -> None:
    if frame.locals.pop(str(inst.argval), None) is None:
        raise unbound_local(str(inst.argval))


def unbound_local(name: str) -> PythonRaise:
    """What reading or deleting a local that is not bound raises."""
    text = f"cannot access local variable {name!r} where it is not associated with a value"
    return PythonRaise(UnboundLocalError, (text,))


@table.op("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(frame: SymbolicFrame, inst: Instruction) -> None:
    """An inlined comprehension sets aside what it will overwrite (3.12): NULL if unbound."""
    name = str(inst.argval)
    if name in frame.cells and name not in frame.locals:
        raise GraphBreak("a comprehension that reuses the name of a cell")
    frame.stack.append(realize(frame.locals.pop(name, NULL)))


@table.op("MAKE_CELL")
def make_cell(frame: SymbolicFrame, inst: Instruction) -> None:
    name = str(inst.argval)
    if name in frame.cells:
        raise GraphBreak("a comprehension that makes a cell of its own")
    local_name = name if frame.is_root else None
    frame.cells[name] = CellVariable(frame.locals.pop(name, None), local_name=local_name)


@table.op("LOAD_CLOSURE")
def load_closure(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(frame.load_cell(str(inst.argval)))


@table.op("LOAD_DEREF")
def load_deref(frame: SymbolicFrame, inst: Instruction) -> None:
    name = str(inst.argval)
    frame.push(frame.load_cell(name).load(name))


@table.op("STORE_DEREF")
def store_deref(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.load_cell(str(inst.argval)).store(frame, frame.take())


@table.op("DELETE_DEREF")
def delete_deref(frame: SymbolicFrame, inst: Instruction) -> None:
    cell = frame.load_cell(str(inst.argval))
    cell.load(str(inst.argval))
    cell.store(frame, None)


@table.op("LOAD_GLOBAL", "LOAD_NAME")
def load_global(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(global_value(frame, str(inst.argval)))


def global_value(frame: SymbolicFrame, name: str) -> VariableTracker:
    """A global or, where there is none, a builtin.

    Raises:
        GraphBreak: neither; Python will raise NameError.
    """
    written = frame.output.effects.find(GlobalWrite(frame.namespace, name, None))
    if isinstance(written, GlobalWrite):
        if not isinstance(written.value, VariableTracker):
            raise GraphBreak(f"NameError: {name!r} was deleted")
        return realize(written.value)
    if name in frame.namespace:
        return wrap_value(frame.output, frame.namespace[name], global_source(frame, name))
    if name in frame.builtins:
        frame.output.guard_absent_global(frame.namespace_source, name)
        return wrap_value(frame.output, frame.builtins[name], BuiltinSource(name))
    raise GraphBreak(f"NameError: name {name!r} is not defined")


def global_source(frame: SymbolicFrame, name: str) -> Source:
    """Where a global of the frame's module is found, seen from the root frame."""
    if frame.namespace_source is None:
        return GlobalSource(name)
    return ItemSource(frame.namespace_source, name)


@table.op("STORE_GLOBAL")
def store_global(frame: SymbolicFrame, inst: Instruction) -> None:
    if frame.namespace_source is not None:
        raise GraphBreak("a global of another module is stored")
    frame.output.effects.note(GlobalWrite(frame.namespace, str(inst.argval), frame.pop()))


@table.op("DELETE_GLOBAL", "STORE_NAME", "DELETE_NAME", "LOAD_CLASSDEREF", "LOAD_LOCALS",
          "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_BUILD_CLASS", "SETUP_ANNOTATIONS")  # fmt: skip
def class_body(frame: SymbolicFrame, inst: Instruction) -> None:
    raise GraphBreak(
        f"{_WORDS.get(inst.opname, 'a class body')}", "define it outside of the captured function"
    )


_WORDS = {"DELETE_GLOBAL": "del of a global", "LOAD_BUILD_CLASS": "a class definition"}
