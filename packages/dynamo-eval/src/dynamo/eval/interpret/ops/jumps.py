"""Jumps, branches and loops."""

from dynamo.eval.bytecode import Instruction
from dynamo.eval.errors import GraphBreak
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.table import OpcodeTable
from dynamo.eval.variables.base import VariableTracker, realize
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.iterator import IteratorVariable, StopSymbolicIteration

table = OpcodeTable()


@table.op("JUMP", "JUMP_NO_INTERRUPT")
def jump(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.jump(inst)


@table.op("POP_JUMP_IF_TRUE")
def pop_jump_if_true(frame: SymbolicFrame, inst: Instruction) -> None:
    if frame.pop().truth(frame):
        frame.jump(inst)


@table.op("POP_JUMP_IF_FALSE")
def pop_jump_if_false(frame: SymbolicFrame, inst: Instruction) -> None:
    if not frame.pop().truth(frame):
        frame.jump(inst)


@table.op("JUMP_IF_TRUE_OR_POP")
def jump_if_true_or_pop(frame: SymbolicFrame, inst: Instruction) -> None:
    if frame.peek().truth(frame):
        frame.jump(inst)
    else:
        frame.pop()


@table.op("JUMP_IF_FALSE_OR_POP")
def jump_if_false_or_pop(frame: SymbolicFrame, inst: Instruction) -> None:
    if not frame.peek().truth(frame):
        frame.jump(inst)
    else:
        frame.pop()


def is_none(var: VariableTracker) -> bool:
    """``var is None``; every kind of variable but a constant stands for something else."""
    return isinstance(var, ConstantVariable) and var.value is None


@table.op("POP_JUMP_IF_NONE")
def pop_jump_if_none(frame: SymbolicFrame, inst: Instruction) -> None:
    if is_none(frame.pop()):
        frame.jump(inst)


@table.op("POP_JUMP_IF_NOT_NONE")
def pop_jump_if_not_none(frame: SymbolicFrame, inst: Instruction) -> None:
    if not is_none(frame.pop()):
        frame.jump(inst)


@table.op("GET_ITER")
def get_iter(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.push(frame.pop().iterate(frame))


@table.op("FOR_ITER")
def for_iter(frame: SymbolicFrame, inst: Instruction) -> None:
    """Push the next item, or end the loop.

    In the normal form the jump goes past END_FOR with the iterator popped, on every version.
    """
    iterator = frame.peek()
    if not isinstance(iterator, IteratorVariable):
        raise GraphBreak(f"a loop over {iterator.describe()}")
    frame.output.effects.count += 1
    try:
        frame.push(realize(iterator.next(frame)))
    except StopSymbolicIteration:
        frame.pop()
        frame.jump(inst)
