"""Stack shuffling and what does nothing at capture."""

from types import CodeType

from dynamo.eval.bytecode import Instruction
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.table import OpcodeTable
from dynamo.eval.variables.base import VariableTracker
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import OpaqueConstant, from_constant
from dynamo.eval.variables.null import NULL

table = OpcodeTable()


@table.op("NOP", "RESUME", "COPY_FREE_VARS", "END_FOR")
def nothing(frame: SymbolicFrame, inst: Instruction) -> None:
    """No effect on values."""


@table.op("POP_TOP")
def pop_top(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.take()


@table.op("PUSH_NULL")
def push_null(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.stack.append(NULL)


@table.op("COPY")
def copy(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.stack.append(frame.stack[-(inst.arg or 1)])


@table.op("SWAP")
def swap(frame: SymbolicFrame, inst: Instruction) -> None:
    stack, depth = frame.stack, inst.arg or 1
    stack[-1], stack[-depth] = stack[-depth], stack[-1]


@table.op("LOAD_CONST")
def load_const(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(constant(inst.argval))


def constant(value: object) -> VariableTracker:
    """A constant of the code; code objects among them are only looked at by MAKE_FUNCTION."""
    return OpaqueConstant(value) if isinstance(value, CodeType) else from_constant(value)


@table.op("RETURN_VALUE")
def return_value(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.returned = frame.take() if frame.is_root else frame.pop()


@table.op("LOAD_ASSERTION_ERROR")
def load_assertion_error(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(ClassVariable(AssertionError))
