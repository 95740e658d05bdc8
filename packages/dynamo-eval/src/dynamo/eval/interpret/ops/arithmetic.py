"""Operators, comparisons, subscripts."""

from dynamo.eval.bytecode import Instruction
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.table import OpcodeTable
from dynamo.eval.models import operators
from dynamo.eval.variables.constant import ConstantVariable

table = OpcodeTable()


@table.op("BINARY_OP")
def binary_op(frame: SymbolicFrame, inst: Instruction) -> None:
    left, right = frame.pop_many(2)
    frame.push(operators.binary(frame, str(inst.argval), left, right))


@table.op("COMPARE_OP")
def compare_op(frame: SymbolicFrame, inst: Instruction) -> None:
    left, right = frame.pop_many(2)
    frame.push(operators.compare(frame, str(inst.argval), left, right))


@table.op("IS_OP")
def is_op(frame: SymbolicFrame, inst: Instruction) -> None:
    left, right = frame.pop_many(2)
    frame.push(ConstantVariable(operators.identical(frame, left, right) != bool(inst.arg)))


@table.op("CONTAINS_OP")
def contains_op(frame: SymbolicFrame, inst: Instruction) -> None:
    item, container = frame.pop_many(2)
    found = operators.contains(frame, container, item)
    frame.push(operators.negate(frame, found) if inst.arg else found)


@table.op("BINARY_SUBSCR")
def binary_subscr(frame: SymbolicFrame, inst: Instruction) -> None:
    container, key = frame.pop_many(2)
    frame.push(operators.get_item(frame, container, key))


@table.op("STORE_SUBSCR")
def store_subscr(frame: SymbolicFrame, inst: Instruction) -> None:
    value, container, key = frame.pop_many(3)
    operators.set_item(frame, container, key, value)


@table.op("DELETE_SUBSCR")
def delete_subscr(frame: SymbolicFrame, inst: Instruction) -> None:
    container, key = frame.pop_many(2)
    operators.set_item(frame, container, key, None)


@table.op("UNARY_NEGATIVE")
def unary_negative(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(operators.unary(frame, "-", frame.pop()))


@table.op("UNARY_POSITIVE")
def unary_positive(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(operators.unary(frame, "+", frame.pop()))


@table.op("UNARY_INVERT")
def unary_invert(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(operators.unary(frame, "~", frame.pop()))


@table.op("UNARY_NOT")
def unary_not(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(operators.negate(frame, frame.pop()))


@table.op("TO_BOOL")
def to_bool(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(ConstantVariable(frame.pop().truth(frame)))
