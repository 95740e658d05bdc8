"""What an exception does to a frame: the handler that takes it, and the exceptions being handled."""

from dynamo.eval.bytecode import ExceptionHandler, Instruction
from dynamo.eval.errors import PythonRaise
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.exception import ExceptionVariable, exception_of


def unwind(frame: SymbolicFrame, inst: Instruction, error: PythonRaise) -> bool:
    """Let the handler of `inst` take the exception: cut the stack, push the exception, go there.

    Returns:
        False if no handler guards the instruction; the frame is then left as it was.
    """
    handler = inst.handler
    if handler is None or ends_generator(handler):
        return False
    assert handler.depth is not None
    exception = exception_of(frame, error)
    if not error.is_reraise:
        chain_context(frame, exception)
        error.is_reraise = True
    if exception.raised_at is None:
        exception.raised_at = frame.output.root_step
    del frame.stack[handler.depth :]
    if handler.lasti:
        frame.stack.append(ConstantVariable(frame.view.index[inst]))
    frame.stack.append(exception)
    frame.ip = frame.view.index[handler.target]
    frame.output.effects.count += 1  # an entered handler is not left by going back one step
    return True


def ends_generator(handler: ExceptionHandler) -> bool:
    """Whether a handler is the one that CPython 3.12 and later put around the whole body of a generator.

    It makes RuntimeError of StopIteration, as `GeneratorVariable` does for every version.
    """
    target = handler.target
    return target.opname == "CALL_INTRINSIC_1" and target.argval == "INTRINSIC_STOPITERATION_ERROR"


def chain_context(frame: SymbolicFrame, exception: ExceptionVariable) -> None:
    """Set ``__context__`` to what is being handled, without closing a circle, as `_PyErr_SetObject` does."""
    handled = frame.output.handled
    current = handled[-1] if handled else None
    if not isinstance(current, ExceptionVariable) or current is exception:
        return
    link = current
    while link.context is not None:
        if link.context is exception:
            link.context = None
            break
        link = link.context
    exception.context = current
