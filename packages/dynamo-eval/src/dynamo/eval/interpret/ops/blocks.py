"""`with` blocks, and the explained decision on exception groups, generators, coroutines and `match`."""

from dynamo.eval.bytecode import Instruction
from dynamo.eval.errors import GraphBreak
from dynamo.eval.interpret.frame import SymbolicFrame
from dynamo.eval.interpret.table import OpcodeTable
from dynamo.eval.variables.context import GradModeVariable
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.sequence import BoundMethodVariable

table = OpcodeTable()


@table.op("BEFORE_WITH")
def before_with(frame: SymbolicFrame, inst: Instruction) -> None:
    context = frame.pop()
    if isinstance(context, GradModeVariable):
        frame.push(BoundMethodVariable(context, "__exit__"))
        frame.push(context.call_method(frame, "__enter__", [], {}))
    elif isinstance(context, UserObjectVariable):
        frame.output.guarded_block = True
        leave = context.get_attr(frame, "__exit__")
        entered = context.call_special(frame, "__enter__", [])
        frame.push(leave)
        frame.push(entered)
    else:
        raise GraphBreak(f"with {context.describe()}")


_EXPLAINED = {
    "CHECK_EG_MATCH": "an exception group being handled",
    "PREP_RERAISE_STAR": "an exception group being handled",
    "CLEANUP_THROW": "an exception thrown into a yield from",
    "RETURN_CONST": "a generator",
    "ASYNC_GEN_WRAP": "an asynchronous generator",
    "GET_AWAITABLE": "await",
    "GET_AITER": "an asynchronous loop",
    "GET_ANEXT": "an asynchronous loop",
    "END_ASYNC_FOR": "an asynchronous loop",
    "BEFORE_ASYNC_WITH": "async with",
    "GET_LEN": "a match statement on a sequence",
    "MATCH_CLASS": "a match statement on a class",
    "MATCH_MAPPING": "a match statement on a mapping",
    "MATCH_SEQUENCE": "a match statement on a sequence",
    "MATCH_KEYS": "a match statement on a mapping",
    "PRINT_EXPR": "an expression of the interactive prompt",
    "CALL_INTRINSIC_1": "a statement that only Python runs",
    "CALL_INTRINSIC_2": "a statement that only Python runs",
    "EXIT_INIT_CHECK": "an __init__ that returns a value",
    "INTERPRETER_EXIT": "the end of the interpreter's own frame",
    "INSTRUMENTED_LINE": "a frame under a debugger",
    "BINARY_SLICE": "a slice",
    "STORE_SLICE": "a slice",
}


@table.op(*_EXPLAINED)
def explained(frame: SymbolicFrame, inst: Instruction) -> None:
    """An opcode that Python runs: the break says what the user wrote."""
    raise GraphBreak(_EXPLAINED[inst.opname])
