"""Raising, handling and raising again."""

from dynamo.eval.bytecode import Instruction
from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.table import OpcodeTable
from dynamo.eval.models.exceptions import make_exception
from dynamo.eval.variables.base import VariableTracker
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.exception import ExceptionVariable, TracebackVariable, classes_of

table = OpcodeTable()


@table.op("RAISE_VARARGS")
def raise_varargs(frame: SymbolicFrame, inst: Instruction) -> None:
    given = frame.pop_many(inst.arg or 0)
    if not given:
        raise _raise_again(frame)
    exception = _instance(frame, given[0], "raise")
    if len(given) == 2:
        cause = given[1]
        if not (isinstance(cause, ConstantVariable) and cause.value is None):
            cause = _instance(frame, cause, "raise from")
        exception.cause = cause
        exception.suppresses_context = True
    raise PythonRaise(exception.kind, tuple(exception.arguments or ()), exception)


def _raise_again(frame: SymbolicFrame) -> PythonRaise:
    """A bare ``raise``."""
    handled = frame.output.handled
    if not handled or handled[-1] is None:
        raise GraphBreak("a bare raise of an exception that was raised outside of the captured code")
    exception = handled[-1]
    assert isinstance(exception, ExceptionVariable)
    error = PythonRaise(exception.kind, tuple(exception.arguments or ()), exception)
    error.is_reraise = True
    return error


def _instance(frame: SymbolicFrame, var: VariableTracker, what: str) -> ExceptionVariable:
    if isinstance(var, ClassVariable) and issubclass(var.value, BaseException):
        var = make_exception(frame, var, [], {})
    if not isinstance(var, ExceptionVariable):
        raise GraphBreak(f"{what} {var.describe()}")
    return var


@table.op("RERAISE")
def reraise(frame: SymbolicFrame, inst: Instruction) -> None:
    exception = frame.pop()
    if not isinstance(exception, ExceptionVariable):
        raise GraphBreak("an exception raised again")
    error = PythonRaise(exception.kind, tuple(exception.arguments or ()), exception)
    error.is_reraise = True
    raise error


@table.op("PUSH_EXC_INFO")
def push_exc_info(frame: SymbolicFrame, inst: Instruction) -> None:
    exception = frame.pop()
    handled = frame.output.handled
    frame.stack.append(ConstantVariable(None))  # what was handled before; only POP_EXCEPT looks at it
    frame.stack.append(exception)
    handled.append(exception)


@table.op("POP_EXCEPT")
def pop_except(frame: SymbolicFrame, inst: Instruction) -> None:
    frame.pop()
    if not frame.output.handled:
        raise GraphBreak("the end of a handler that was entered outside of the captured code")
    frame.output.handled.pop()


@table.op("CHECK_EXC_MATCH")
def check_exc_match(frame: SymbolicFrame, inst: Instruction) -> None:
    classes = classes_of(frame.pop())
    exception = frame.peek()
    if not isinstance(exception, ExceptionVariable):
        raise GraphBreak("an exception raised outside of the captured code")
    frame.push(ConstantVariable(any(each in exception.kind.__mro__ for each in classes)))


@table.op("WITH_EXCEPT_START")
def with_except_start(frame: SymbolicFrame, inst: Instruction) -> None:
    """Call the ``__exit__`` that lies below lasti, the exception handled before, and the exception."""
    exception, leave = frame.peek(), frame.peek(4)
    if not isinstance(exception, ExceptionVariable):
        raise GraphBreak("an exception inside a with block")
    arguments = [exception.class_variable(), exception, TracebackVariable()]
    frame.push(leave.call(frame, arguments, {}))
