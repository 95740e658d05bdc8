"""Containers and strings made by instructions, and taken apart."""

from typing import Final

import torch

from dynamo.eval.bytecode import Instruction
from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.table import OpcodeTable
from dynamo.eval.variables.base import VariableTracker, constants
from dynamo.eval.variables.constant import ConstantVariable, fold, from_constant
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.exception import ExceptionVariable
from dynamo.eval.variables.iterator import IteratorVariable, StopSymbolicIteration, iterator_of
from dynamo.eval.variables.keys import prepare_key
from dynamo.eval.variables.lookup import static_lookup
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.sequence import ListVariable, SequenceVariable, SliceVariable, TupleVariable
from dynamo.eval.variables.sets import SetVariable
from dynamo.eval.variables.symbolic import settled

table = OpcodeTable()
_PLAIN_FORMAT: Final = static_lookup(object, "__format__")


@table.op("BUILD_TUPLE")
def build_tuple(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(TupleVariable(frame.take_many(inst.arg or 0)))


@table.op("BUILD_LIST")
def build_list(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(ListVariable(frame.take_many(inst.arg or 0)))


@table.op("BUILD_SET")
def build_set(frame: SymbolicFrame, inst: Instruction) -> None:
    items = frame.pop_many(inst.arg or 0)
    for item in items:
        prepare_key(frame, item)
    frame.push(SetVariable(items))


@table.op("BUILD_MAP")
def build_map(frame: SymbolicFrame, inst: Instruction) -> None:
    items = frame.pop_many(2 * (inst.arg or 0))
    for key in items[::2]:
        prepare_key(frame, key)
    frame.push(DictVariable(zip(items[::2], items[1::2], strict=True)))


@table.op("BUILD_CONST_KEY_MAP")
def build_const_key_map(frame: SymbolicFrame, inst: Instruction) -> None:
    keys = frame.pop().as_python_constant()
    values = frame.pop_many(len(keys))
    frame.push(DictVariable((from_constant(key), value) for key, value in zip(keys, values, strict=True)))


@table.op("BUILD_SLICE")
def build_slice(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(SliceVariable(frame.pop_many(inst.arg or 2)))


@table.op("BUILD_STRING")
def build_string(frame: SymbolicFrame, inst: Instruction) -> None:
    parts = frame.pop_many(inst.arg or 0)
    frame.push(fold("".join, [known_text(part) for part in parts]))


def known_text(var: VariableTracker) -> object:
    """A literal.

    Raises:
        GraphBreak: a value whose text is not known at capture.
    """
    var = settled(var)
    if isinstance(var, SequenceVariable | DictVariable):
        known = constants([var], {})
        if known is not None and type(known[0][0]) in (list, tuple, dict, torch.Size):
            return known[0][0]
    if not isinstance(var, ConstantVariable):
        raise GraphBreak(f"the text of {var.describe()}")
    return var.value


@table.op("FORMAT_SIMPLE")
def format_simple(frame: SymbolicFrame, inst: Instruction) -> None:
    value = frame.pop()
    if isinstance(value, ExceptionVariable) and static_lookup(value.kind, "__format__") is _PLAIN_FORMAT:
        value = value.text(frame)
    frame.push(fold(format, known_text(value)))


@table.op("FORMAT_WITH_SPEC")
def format_with_spec(frame: SymbolicFrame, inst: Instruction) -> None:
    value, spec = frame.pop_many(2)
    frame.push(fold(format, known_text(value), known_text(spec)))


@table.op("CONVERT_VALUE")
def convert_value(frame: SymbolicFrame, inst: Instruction) -> None:
    function = (str, str, repr, ascii)[inst.arg or 0]
    value = frame.pop()
    if isinstance(value, ExceptionVariable) and function is str:
        value = value.text(frame)
    frame.push(fold(function, known_text(value)))


@table.op("LIST_APPEND")
def list_append(frame: SymbolicFrame, inst: Instruction) -> None:
    value = frame.pop()
    target = frame.peek(inst.arg or 1)
    target.call_method(frame, "append", [value], {})


@table.op("SET_ADD")
def set_add(frame: SymbolicFrame, inst: Instruction) -> None:
    value = frame.pop()
    frame.peek(inst.arg or 1).call_method(frame, "add", [value], {})


@table.op("MAP_ADD")
def map_add(frame: SymbolicFrame, inst: Instruction) -> None:
    key, value = frame.pop_many(2)
    frame.peek(inst.arg or 1).call_method(frame, "__setitem__", [key, value], {})


@table.op("LIST_EXTEND")
def list_extend(frame: SymbolicFrame, inst: Instruction) -> None:
    value = frame.pop()
    target = frame.peek(inst.arg or 1)
    items = iterator_of(frame, value).unpack(frame)
    target.call_method(frame, "extend", [TupleVariable(items)], {})


@table.op("SET_UPDATE")
def set_update(frame: SymbolicFrame, inst: Instruction) -> None:
    value = frame.pop()
    frame.peek(inst.arg or 1).call_method(frame, "update", [value], {})


@table.op("DICT_UPDATE")
def dict_update(frame: SymbolicFrame, inst: Instruction) -> None:
    value = frame.pop()
    frame.peek(inst.arg or 1).call_method(frame, "update", [value], {})


@table.op("DICT_MERGE")
def dict_merge(frame: SymbolicFrame, inst: Instruction) -> None:
    value = frame.pop()
    target = frame.peek(inst.arg or 1)
    if not isinstance(value, DictVariable) or not isinstance(target, DictVariable):
        raise GraphBreak(f"** of {value.describe()}")
    if set(value.entries) & set(target.entries):
        raise GraphBreak("TypeError: multiple values for a keyword argument")
    target.merge(frame, value)


@table.op("LIST_TO_TUPLE")
def list_to_tuple(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(TupleVariable(frame.pop().unpack(frame)))


@table.op("UNPACK_SEQUENCE")
def unpack_sequence(frame: SymbolicFrame, inst: Instruction) -> None:
    value, count = frame.pop(), inst.arg or 0
    if isinstance(value, IteratorVariable | UserObjectVariable):
        items = taken(frame, iterator_of(frame, value), count)
    else:
        items = value.unpack(frame)
    if len(items) < count:
        raise PythonRaise(ValueError, (f"not enough values to unpack (expected {count}, got {len(items)})",))
    if len(items) > count:
        raise PythonRaise(ValueError, (f"too many values to unpack (expected {count})",))
    for item in reversed(items):
        frame.push(item)


def taken(frame: SymbolicFrame, iterator: IteratorVariable, count: int) -> list[VariableTracker]:
    """The next `count` items, and one more if there is one, as unpacking takes no further."""
    items: list[VariableTracker] = []
    frame.output.effects.count += 1  # what is taken from an iterator cannot be put back in place
    try:
        while len(items) <= count:
            items.append(iterator.next(frame))
    except StopSymbolicIteration:
        pass
    return items


@table.op("UNPACK_EX")
def unpack_ex(frame: SymbolicFrame, inst: Instruction) -> None:
    before, after = (inst.arg or 0) & 255, (inst.arg or 0) >> 8
    value = frame.pop()
    items = value.unpack(frame)
    if len(items) < before + after:
        text = f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
        raise PythonRaise(ValueError, (text,))
    end = len(items) - after
    parts: list[VariableTracker] = [*items[:before], ListVariable(items[before:end]), *items[end:]]
    for part in reversed(parts):
        frame.push(part)
