"""``yield`` and ``yield from``."""

from dynamo.eval.bytecode import Instruction
from dynamo.eval.bytecode.versions.select import FACTS
from dynamo.eval.errors import GraphBreak
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.table import OpcodeTable
from dynamo.eval.variables.base import realize
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.generator import GeneratorVariable
from dynamo.eval.variables.iterator import IteratorVariable, StopSymbolicIteration

table = OpcodeTable()


@table.op("RETURN_GENERATOR")
def return_generator(frame: SymbolicFrame, inst: Instruction) -> None:
    """The call of the function ends here; the first step goes on behind."""
    frame.yielded = ConstantVariable(None)


@table.op("YIELD_VALUE")
def yield_value(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.yielded = frame.pop()


@table.op("GET_YIELD_FROM_ITER")
def get_yield_from_iter(frame: SymbolicFrame, inst: Instruction) -> None:
    value = frame.pop()
    frame.push(value if isinstance(value, GeneratorVariable) else value.iterate(frame))


@table.op("SEND")
def send(frame: SymbolicFrame, inst: Instruction) -> None:
    """Pass a value to the inner iterator: what it yields replaces the value, what it returns goes to the target."""
    value, receiver = frame.pop(), frame.peek()
    if not isinstance(receiver, IteratorVariable):
        raise GraphBreak(f"yield from {receiver.describe()}")
    try:
        if isinstance(receiver, GeneratorVariable):
            frame.push(receiver.send(frame, value))
        elif isinstance(value, ConstantVariable) and value.value is None:
            frame.output.effects.count += 1
            frame.push(realize(receiver.next(frame)))
        else:
            raise GraphBreak(f"a value sent to {receiver.describe()}")
    except StopSymbolicIteration as stop:
        if not FACTS.for_iter_needs_end_for:  # from 3.12 on END_SEND drops the iterator
            frame.pop()
        frame.push(stop.value or ConstantVariable(None))
        frame.jump(inst)


@table.op("END_SEND")
def end_send(frame: SymbolicFrame, inst: Instruction) -> None:
    value = frame.pop()
    frame.take()
    frame.push(value)
