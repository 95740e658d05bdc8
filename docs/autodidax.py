"""Capture re-told in one file: read it from top to bottom, or run it with ``python docs/autodidax.py``.

It builds a small TorchDynamo out of four things that the packages give: ``fx.ir`` (a graph), ``fx.codegen`` (a graph that
can be called) and ``dynamo.eval.bytecode`` (instructions that can be read and written). All that is interesting is
written here anew and small: symbolic execution of bytecode, guards, a cache, a graph break with the rest of the function as
a function. What the real thing does otherwise is said at the end of each part.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Final, TypeAlias

import torch

from dynamo.eval.bytecode import Instruction, assemble, copy_instructions, create, decode
from fx.codegen import GraphModule
from fx.ir import Graph, Node

# -- 1. Values ------------------------------------------------------------------------------------------------------
#
# Capture runs a function without its data. Whatever it meets is one of three things: a value that is known now, a tensor
# that will be known when the graph runs, or the NULL that CPython keeps beside a callable on its stack.
#
# The real thing: one class for each kind of Python value, `dynamo/eval/variables/`.


@dataclass(frozen=True)
class Known:
    """A value that capture may compute with, because a guard will hold it to this."""

    value: object


@dataclass(frozen=True)
class Symbol:
    """A tensor that only the graph will know."""

    node: Node


@dataclass(frozen=True)
class Method:
    """What ``x.name`` is between LOAD_METHOD and CALL, for a Symbol x."""

    name: str


@dataclass(frozen=True)
class Null:
    """CPython's NULL."""


Value: TypeAlias = Known | Symbol | Method | Null


class Unsupported(Exception):
    """This function is not captured at all: it runs as it is."""


class Break(Exception):
    """The graph ends before the instruction that is being executed; Python runs that one."""


# -- 2. Guards ------------------------------------------------------------------------------------------------------
#
# A guard says of one argument (or global) what capture took for granted. The text is for the reader, the test for us.
#
# The real thing: `dynamo.guards` compiles all guards of an entry into one program in C, and checks two tensors in some tens of
# nanoseconds.


@dataclass(frozen=True)
class Guard:
    """One thing that must hold for captured code to be valid."""

    text: str
    test: Callable[[Sequence[object]], bool]


def argument_guard(position: int, name: str, value: object) -> Guard:
    """What capture relies on for an argument."""
    if isinstance(value, torch.Tensor):
        seen = (type(value), value.dtype, value.shape)

        def same_kind(args: Sequence[object]) -> bool:
            arg = args[position]
            return isinstance(arg, torch.Tensor) and (type(arg), arg.dtype, arg.shape) == seen

        return Guard(f"{name}: tensor of {value.dtype}, shape {tuple(value.shape)}", same_kind)
    if type(value) not in (int, bool, str, type(None)):
        raise Unsupported(f"an argument of type {type(value).__name__}")
    return Guard(
        f"{name} == {value!r}",
        lambda args: type(args[position]) is type(value) and args[position] == value,
    )


def global_guard(space: dict[str, object], name: str, value: object) -> Guard:
    """A global that capture read must still be the same object."""
    return Guard(f"global {name} is as it was", lambda args: space.get(name) is value)


# -- 3. Symbolic execution ------------------------------------------------------------------------------------------
#
# A frame is a stack, locals, and a place. A handler does to symbols what CPython's does to values; where a tensor takes part,
# the handler writes a node and pushes a Symbol for it. `decode` hides what differs between Python versions.
#
# The real thing: `dynamo/eval/interpret/ops/`, one handler for each of the 110 to 119 opcodes.


@dataclass
class Frame:
    """The function as far as it has been executed."""

    code: CodeType
    space: dict[str, object]
    instructions: list[Instruction]
    locals: dict[str, Value] = field(default_factory=dict)
    stack: list[Value] = field(default_factory=list)
    graph: Graph = field(default_factory=Graph)
    inputs: list[str] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    index: int = 0

    def pop(self, count: int) -> list[Value]:
        """The top ``count`` values, deepest first."""
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    def call(self, function: Callable[..., object], args: Sequence[Value], *, pure: bool = True) -> Value:
        """Compute now what is known and always the same, and let the graph compute the rest."""
        if pure and all(isinstance(arg, Known) for arg in args):
            return Known(function(*(arg.value for arg in args if isinstance(arg, Known))))
        return Symbol(self.graph.call_function(function, tuple(map(in_graph, args))))


def in_graph(value: Value) -> Node | object:
    """What stands for a value among the arguments of a node."""
    if isinstance(value, Symbol):
        return value.node
    if isinstance(value, Known):
        return value.value
    raise Unsupported("a method that is not called at once")


Handler: TypeAlias = Callable[[Frame, Instruction], None]
HANDLERS: Final[dict[str, Handler]] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register the handler of some opcodes."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return register


@handles("RESUME", "NOP", "TO_BOOL")
def nothing(frame: Frame, inst: Instruction) -> None:
    """No effect on the stack."""


@handles("LOAD_CONST")
def load_const(frame: Frame, inst: Instruction) -> None:
    """[] → [constant]"""
    frame.stack.append(Known(inst.argval))


@handles("PUSH_NULL")
def push_null(frame: Frame, inst: Instruction) -> None:
    """[] → [NULL]"""
    frame.stack.append(Null())


@handles("LOAD_FAST", "LOAD_FAST_CHECK")
def load_fast(frame: Frame, inst: Instruction) -> None:
    """[] → [local]"""
    if inst.argval not in frame.locals:
        raise Unsupported(f"{inst.argval} has no value here")
    frame.stack.append(frame.locals[str(inst.argval)])


@handles("STORE_FAST")
def store_fast(frame: Frame, inst: Instruction) -> None:
    """[a] → []"""
    frame.locals[str(inst.argval)] = frame.stack.pop()


@handles("LOAD_GLOBAL")
def load_global(frame: Frame, inst: Instruction) -> None:
    """[] → [global], guarded to be the same object on each later call."""
    name = str(inst.argval)
    if name not in frame.space:
        raise Unsupported(f"{name} is no global")
    value = frame.space[name]
    if not isinstance(value, ModuleType | int | float) and not callable(value):
        raise Unsupported(f"a global of type {type(value).__name__}")
    frame.guards.append(global_guard(frame.space, name, value))
    frame.stack.append(Known(value))


def attribute(owner: Value, name: str) -> Known:
    """``owner.name`` where the owner is a module; its attributes are taken for constants."""
    if isinstance(owner, Known) and isinstance(owner.value, ModuleType):
        return Known(getattr(owner.value, name))
    raise Unsupported(f"attribute {name} of {owner}")


@handles("LOAD_ATTR")
def load_attr(frame: Frame, inst: Instruction) -> None:
    """[a] → [a.name]"""
    frame.stack.append(attribute(frame.stack.pop(), str(inst.argval)))


@handles("LOAD_METHOD")
def load_method(frame: Frame, inst: Instruction) -> None:
    """[a] → [method, a], or [NULL, attribute] where a is no tensor."""
    owner, name = frame.stack.pop(), str(inst.argval)
    frame.stack += [Method(name), owner] if isinstance(owner, Symbol) else [Null(), attribute(owner, name)]


@handles("CALL")
def call(frame: Frame, inst: Instruction) -> None:
    """[callable and NULL, or method and self, arguments] → [result]"""
    args = frame.pop(inst.arg or 0)
    first, second = frame.pop(2)
    if isinstance(first, Method):
        node = frame.graph.call_method(first.name, tuple(map(in_graph, [second, *args])))
        frame.stack.append(Symbol(node))
        return
    function = first if isinstance(second, Null) else second
    if not isinstance(function, Known) or not callable(function.value):
        raise Unsupported("a call of what is not known")
    library = (getattr(function.value, "__module__", None) or "").partition(".")[0]
    if library not in ("torch", "math"):
        raise Unsupported(f"a call of {function.value}")  # might have effects
    frame.stack.append(frame.call(function.value, args, pure=library == "math"))


BINARY: Final[dict[str, Callable[..., object]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "@": operator.matmul,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}


@handles("BINARY_OP", "COMPARE_OP")
def binary(frame: Frame, inst: Instruction) -> None:
    """[a, b] → [a op b]"""
    symbol = str(inst.argval)
    operands = frame.pop(2)
    if inst.opname == "BINARY_OP" and symbol.endswith("="):
        if any(isinstance(operand, Symbol) for operand in operands):
            raise Unsupported("a tensor changed in place")  # other names of it must change, too
        symbol = symbol[:-1]
    if symbol not in BINARY:
        raise Unsupported(f"operator {symbol}")
    frame.stack.append(frame.call(BINARY[symbol], operands))


@handles("UNARY_NEGATIVE")
def negative(frame: Frame, inst: Instruction) -> None:
    """[a] → [-a]"""
    frame.stack.append(frame.call(operator.neg, frame.pop(1)))


@handles("JUMP")
def jump(frame: Frame, inst: Instruction) -> None:
    """Go on elsewhere."""
    assert inst.target is not None
    frame.index = frame.instructions.index(inst.target)


@handles("POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE")
def branch(frame: Frame, inst: Instruction) -> None:
    """[a] → []: decided now for what is known (so loops unroll); a tensor's truth is data, and the graph ends."""
    condition = frame.stack[-1]
    if not isinstance(condition, Known):
        raise Break
    frame.stack.pop()
    if bool(condition.value) == (inst.opname == "POP_JUMP_IF_TRUE"):
        jump(frame, inst)


# -- 4. The end of a graph, and a break -----------------------------------------------------------------------------
#
# At RETURN_VALUE the graph returns the result. At a break it returns every tensor that a local still holds and the one on
# the stack; new bytecode stores them where the function expects them, runs the branch for real, and calls the rest of the
# function: the same code, entered in the middle. The rest is captured in turn when it is called.
#
# The real thing: breaks at any opcode and depth, inside loops, `with` and `try`; cells and generators
# (`dynamo/eval/breaks/`); objects that come back with their identity, effects in their order (`rebuild/`, `effects/`).

Backend: TypeAlias = Callable[[GraphModule, list[str]], Callable[..., object]]


def close_graph(frame: Frame, outputs: Sequence[Symbol], backend: Backend) -> list[Instruction]:
    """Instructions that run the graph on the function's arguments and push the tuple of its outputs."""
    frame.graph.output(tuple(symbol.node for symbol in outputs))
    compiled = backend(GraphModule({}, frame.graph), frame.inputs)
    loads = [create.load_fast(name) for name in frame.inputs]
    return [*create.load_callable([create.load_const(compiled)]), *loads, create.call(len(loads))]


def end_by_return(frame: Frame, backend: Backend) -> list[Instruction]:
    """New bytecode of a function that was captured to its end."""
    result = frame.stack[-1]
    if isinstance(result, Symbol):
        body = [*close_graph(frame, [result], backend), create.unpack_sequence(1)]
    elif isinstance(result, Known):
        body = [create.load_const(result.value)]
    else:
        raise Unsupported("a method as result")
    return [*body, create.return_value()]


def end_by_break(frame: Frame, inst: Instruction, backend: Backend) -> list[Instruction]:
    """New bytecode of a function that was captured up to a branch on data."""
    condition = frame.stack.pop()
    if frame.stack or not isinstance(condition, Symbol) or inst.target is None:
        raise Unsupported("a break within an expression")
    names = list(frame.locals)
    tensors = {name: value for name, value in frame.locals.items() if isinstance(value, Symbol)}
    body = close_graph(frame, [condition, *tensors.values()], backend)
    body += [create.unpack_sequence(1 + len(tensors)), create.store_fast("___condition")]
    body += [create.store_fast(name) for name in tensors]
    for name, value in frame.locals.items():
        if isinstance(value, Known):
            body += [create.load_const(value.value), create.store_fast(name)]
    jumping = call_rest(frame, frame.instructions.index(inst.target), names, backend)
    falling = call_rest(frame, frame.index, names, backend)
    choose = create.pop_jump_if_true if inst.opname == "POP_JUMP_IF_TRUE" else create.pop_jump_if_false
    return [*body, create.load_fast("___condition"), *choose(jumping[0]), *falling, *jumping]


def call_rest(frame: Frame, index: int, names: list[str], backend: Backend) -> list[Instruction]:
    """Instructions that return what the rest of the function, from ``index`` on, returns."""
    body = copy_instructions(frame.instructions)
    head = [create.create_instruction("RESUME", 0), create.jump(body[index])]
    others = [name for name in frame.code.co_varnames if name not in names]
    line = body[index].lineno or frame.code.co_firstlineno
    code = assemble(
        frame.code,
        create.place_at((line, line, 0, 0), head) + body,
        name=f"resume_in_{frame.code.co_name}_at_{line}",
        varnames=[*names, *others],
        argcount=len(names),
        posonlyargcount=0,
        kwonlyargcount=0,
    )
    rest = Captured(FunctionType(code, frame.space), backend)
    loads = [create.load_fast(name) for name in names]
    call = [*create.load_callable([create.load_const(rest)]), *loads, create.call(len(loads))]
    return [create.nop(), *call, create.return_value()]


# -- 5. Capture and cache -------------------------------------------------------------------------------------------
#
# The real thing: a C entry point and the frame hook of PEP 523 (`csrc/`), so that functions which nobody wrapped are met,
# too; inlined calls; symbolic sizes in place of a recompile for each shape.


def capture(
    function: FunctionType, args: Sequence[object], backend: Backend
) -> tuple[list[Guard], FunctionType]:
    """Guards, and the function that may run while they hold.

    Raises:
        Unsupported: this sketch does not follow what the function does.
    """
    code = function.__code__
    frame = Frame(code, function.__globals__, decode(code))
    for position, (name, value) in enumerate(zip(code.co_varnames, args, strict=False)):
        frame.guards.append(argument_guard(position, name, value))
        if isinstance(value, torch.Tensor):
            frame.inputs.append(name)
            frame.locals[name] = Symbol(frame.graph.placeholder(name))
        else:
            frame.locals[name] = Known(value)
    body = [create.create_instruction("RESUME", 0), *execute(frame, backend)]
    first = code.co_firstlineno
    new = assemble(
        code, create.place_at((first, first, 0, 0), body), varnames=[*code.co_varnames, "___condition"]
    )
    return frame.guards, FunctionType(new, function.__globals__)


def execute(frame: Frame, backend: Backend) -> list[Instruction]:
    """Run the frame to its return or to a break; the instructions that do the same with real values."""
    while True:
        inst = frame.instructions[frame.index]
        frame.index += 1
        if inst.opname == "RETURN_VALUE":
            return end_by_return(frame, backend)
        if inst.opname not in HANDLERS:
            raise Unsupported(inst.opname)
        try:
            HANDLERS[inst.opname](frame, inst)
        except Break:
            return end_by_break(frame, inst, backend)


class Captured:
    """A function with the code that was captured for it; takes positional arguments."""

    def __init__(self, function: FunctionType, backend: Backend) -> None:
        self.function, self.backend = function, backend
        self.entries: list[tuple[list[Guard], FunctionType]] = []

    def __call__(self, *args: object) -> object:
        for guards, function in self.entries:
            if all(guard.test(args) for guard in guards):
                return function(*args)
        code = self.function.__code__
        plain = code.co_flags & 0x2C or code.co_kwonlyargcount or code.co_cellvars or code.co_freevars
        if plain or len(args) != code.co_argcount:
            return self.function(*args)
        try:
            guards, function = capture(self.function, args, self.backend)
        except Unsupported:
            return self.function(*args)
        self.entries.append((guards, function))
        return function(*args)


# -- 6. See it work -------------------------------------------------------------------------------------------------


def toy_example(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The founding example; a, b: tensors of one shape."""
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def power(a: torch.Tensor, n: int) -> torch.Tensor:
    """A loop over a known number unrolls: ``n`` nodes; a: tensor of any shape."""
    result = a
    while n > 1:
        result = result * a
        n = n - 1
    return result


def main() -> None:
    """Capture both functions, print what was made, and compare with plain Python."""
    graphs: list[GraphModule] = []

    def backend(gm: GraphModule, inputs: list[str]) -> Callable[..., object]:
        print(f"graph {len(graphs)} of inputs {', '.join(inputs)}:\n{gm.graph}\n")
        graphs.append(gm)
        return gm.forward

    captured = Captured(toy_example, backend)  # type: ignore[arg-type]  # mypy: a def is no FunctionType
    for _ in range(100):
        a, b = torch.randn(10), torch.randn(10)
        result = captured(a, b)
        assert isinstance(result, torch.Tensor) and torch.equal(result, toy_example(a, b))
    assert len(graphs) == 3, "one up to the branch, one for each of its sides"
    for guard in captured.entries[0][0]:
        print("guard:", guard.text)

    cubed = Captured(power, backend)  # type: ignore[arg-type]  # as above
    a = torch.randn(4)
    for n in (3, 3, 2):
        result = cubed(a, n)
        assert isinstance(result, torch.Tensor) and torch.equal(result, power(a, n))
    assert len(cubed.entries) == 2, "the second call of power(a, 3) hits the first one's entry"
    assert [len(gm.graph.find_nodes(op="call_function")) for gm in graphs[3:]] == [2, 1]


if __name__ == "__main__":
    main()
