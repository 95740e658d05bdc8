"""Attributes and methods, `super` included."""

from dynamo.eval.bytecode import Instruction
from dynamo.eval.bytecode.versions.select import FACTS
from dynamo.eval.errors import GraphBreak
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.table import OpcodeTable
from dynamo.eval.models.builtin_calls import read_attribute
from dynamo.eval.models.super_calls import SuperVariable
from dynamo.eval.variables.base import VariableTracker
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.null import NULL

table = OpcodeTable()


@table.op("LOAD_ATTR")
def load_attr(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(read_attribute(frame, frame.pop(), str(inst.argval)))


@table.op("LOAD_METHOD")
def load_method(frame: SymbolicFrame, inst: Instruction) -> None:
    push_callable(frame, read_attribute(frame, frame.pop(), str(inst.argval)))


def push_callable(frame: SymbolicFrame, function: VariableTracker) -> None:
    """A callable with the NULL that marks it as not bound, in this Python's order."""
    if FACTS.null_before_callable:
        frame.stack.append(NULL)
        frame.push(function)
    else:
        frame.push(function)
        frame.stack.append(NULL)


@table.op("STORE_ATTR")
def store_attr(frame: SymbolicFrame, inst: Instruction) -> None:
    owner = frame.pop()
    owner.set_attr(frame, str(inst.argval), frame.pop())


@table.op("DELETE_ATTR")
def delete_attr(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.pop().set_attr(frame, str(inst.argval), None)


@table.op("LOAD_ZERO_SUPER_ATTR", "LOAD_SUPER_ATTR")
def load_super_attr(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(super_of(frame).get_attr(frame, str(inst.argval)))


@table.op("LOAD_ZERO_SUPER_METHOD", "LOAD_SUPER_METHOD")
def load_super_method(frame: SymbolicFrame, inst: Instruction) -> None:
    push_callable(frame, super_of(frame).get_attr(frame, str(inst.argval)))


def super_of(frame: SymbolicFrame) -> SuperVariable:
    """The super object of the three values that the instruction takes: `super`, class, self."""
    _, kind, owner = frame.pop_many(3)
    if not isinstance(kind, ClassVariable):
        raise GraphBreak("super() of a class not known at capture")
    return SuperVariable(kind, owner)
