"""Calls, function objects, imports."""

import builtins
import sys
from types import CodeType
from typing import Any

from dynamo.eval.bytecode import Instruction
from dynamo.eval.bytecode.versions.select import FACTS
from dynamo.eval.errors import GraphBreak
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.table import OpcodeTable
from dynamo.eval.models.super_calls import SuperVariable
from dynamo.eval.variables.base import VariableTracker, realize
from dynamo.eval.variables.cell import CellVariable
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import OpaqueConstant
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.function import NestedFunctionVariable
from dynamo.eval.variables.iterator import iterator_of
from dynamo.eval.variables.null import NULL

table = OpcodeTable()


def take_callable(frame: SymbolicFrame, args: list[VariableTracker]) -> VariableTracker:
    """The callable below the arguments; a bound `self` that stood there joins `args`."""
    first, second = frame.pop_many(2)
    if first is NULL:
        return second
    if second is not NULL:
        args.insert(0, second)
    return first


@table.op("CALL")
def call(frame: SymbolicFrame, inst: Instruction) -> None:
    args = frame.pop_many(inst.arg or 0)
    function = take_callable(frame, args)
    frame.push(call_value(frame, function, args, {}))


@table.op("CALL_KW")
def call_kw(frame: SymbolicFrame, inst: Instruction) -> None:
    names: tuple[str, ...] = inst.argval  # type: ignore[assignment]  # the normal form keeps the names there
    values = frame.pop_many(inst.arg or 0)
    split = len(values) - len(names)
    args = values[:split]
    function = take_callable(frame, args)
    frame.push(call_value(frame, function, args, dict(zip(names, values[split:], strict=True))))


@table.op("CALL_FUNCTION_EX")
def call_function_ex(frame: SymbolicFrame, inst: Instruction) -> None:
    kwargs: dict[str, VariableTracker] = {}
    if (inst.arg or 0) & 1:
        given = frame.pop()
        if not isinstance(given, DictVariable):
            raise GraphBreak(f"** of {given.describe()}")
        for name, (_, value) in given.entries.items():
            if not isinstance(name, str):
                raise GraphBreak("TypeError: keywords must be strings")
            kwargs[name] = realize(value)
    args = iterator_of(frame, frame.pop()).unpack(frame)
    function = take_callable(frame, args)
    frame.push(call_value(frame, function, args, kwargs))


def call_value(
    frame: SymbolicFrame,
    function: VariableTracker,
    args: list[VariableTracker],
    kwargs: dict[str, VariableTracker],
) -> VariableTracker:
    """Call, with ``super()`` and ``locals()`` seen first: they look at the frame that calls."""
    if isinstance(function, ClassVariable) and function.value is super:
        return _super(frame, args)
    value = getattr(function, "value", None)
    if any(value is each for each in FRAME_READERS):
        raise GraphBreak(f"{getattr(value, '__name__', value)}()", "it looks at the frame itself")
    return function.call(frame, args, kwargs)


FRAME_READERS: tuple[Any, ...] = (builtins.locals, builtins.globals, builtins.vars, builtins.dir,
                                  builtins.eval, builtins.exec, sys._getframe)  # fmt: skip


def _super(frame: SymbolicFrame, args: list[VariableTracker]) -> VariableTracker:
    if args:
        kind, owner = args if len(args) == 2 else (NULL, NULL)
    else:
        cell = frame.cells.get("__class__")
        if cell is None or not frame.code.co_argcount:
            raise GraphBreak("super() outside of a method")
        kind = cell.load("__class__")
        name = frame.code.co_varnames[0]
        owner = realize(frame.locals[name]) if name in frame.locals else frame.load_cell(name).load(name)
    if not isinstance(kind, ClassVariable):
        raise GraphBreak("super() of a class not known at capture")
    return SuperVariable(kind, owner)


@table.op("MAKE_FUNCTION")
def make_function(frame: SymbolicFrame, inst: Instruction) -> None:
    code = frame.pop()
    flags = 0 if FACTS.function_attributes_after else inst.arg or 0
    parts = {bit: frame.pop() for bit in (8, 4, 2, 1) if flags & bit}
    frame.push(new_function(frame, code, parts))


def new_function(
    frame: SymbolicFrame, code: VariableTracker, parts: dict[int, VariableTracker]
) -> NestedFunctionVariable:
    """The function of MAKE_FUNCTION with its attributes by flag: 1 defaults, 2 keyword defaults, 4
    annotations, 8 closure."""
    if not isinstance(code, OpaqueConstant) or not isinstance(code.value, CodeType):
        raise GraphBreak("a function of computed code")
    var = NestedFunctionVariable(
        code.value, frame.namespace, frame.namespace_source, parts.get(1), parts.get(2), parts.get(4), []
    )
    if 8 in parts:
        set_closure(frame, var, parts[8])
    return var


def set_closure(frame: SymbolicFrame, var: NestedFunctionVariable, closure: VariableTracker) -> None:
    """Give a fresh function its cells."""
    for cell in closure.unpack(frame):
        if not isinstance(cell, CellVariable):
            raise GraphBreak("a closure of computed cells")
        var.closure.append(cell)


@table.op("SET_FUNCTION_ATTRIBUTE")
def set_function_attribute(frame: SymbolicFrame, inst: Instruction) -> None:
    function = frame.pop()
    value = frame.pop()
    if not isinstance(function, NestedFunctionVariable):
        raise GraphBreak("attributes of a computed function")
    if inst.arg == 8:
        set_closure(frame, function, value)
    elif inst.arg == 1:
        function.defaults = value
    elif inst.arg == 2:
        function.keyword_defaults = value
    else:
        function.annotations = value
    frame.push(function)
