"""New instructions, written once for every Python version.

Functions that may need several instructions return a list; the others return one instruction. Comments show the stack
before and after, top on the right. A call needs a NULL beside its callable whose side depends on the version, so load
callables with `load_callable` (or `load_method`), or leave it to `call_function` to slip it in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from types import CodeType
from typing import Final, TypeVar

from .errors import AssembleError
from .instruction import ExceptionHandler, Instruction, Positions
from .stack_depth import stack_effect
from .versions.facts import KIND_OF, Kind
from .versions.select import FACTS

__all__ = [
    "binary_op",
    "binary_subscr",
    "build_const_key_map",
    "build_list",
    "build_map",
    "build_set",
    "build_slice",
    "build_string",
    "build_tuple",
    "call",
    "call_function",
    "call_function_ex",
    "call_method",
    "compare_op",
    "contains_op",
    "copy_top",
    "create_instruction",
    "delete_attr",
    "delete_deref",
    "delete_fast",
    "delete_global",
    "delete_subscr",
    "end_for",
    "for_iter",
    "function_prologue",
    "get_iter",
    "guard_with",
    "import_from",
    "import_name",
    "is_op",
    "jump",
    "load_assertion_error",
    "load_attr",
    "load_callable",
    "load_closure",
    "load_const",
    "load_deref",
    "load_fast",
    "load_fast_check",
    "load_global",
    "load_method",
    "load_name",
    "make_function",
    "nop",
    "place_at",
    "pop_jump_if_false",
    "pop_jump_if_none",
    "pop_jump_if_not_none",
    "pop_jump_if_true",
    "pop_top",
    "push_null",
    "raise_varargs",
    "reraise",
    "return_const",
    "return_value",
    "rotate",
    "store_attr",
    "store_deref",
    "store_fast",
    "store_global",
    "store_subscr",
    "swap",
    "to_bool",
    "unary_op",
    "unpack_ex",
    "unpack_sequence",
]

_UNARY: Final = {"-": "UNARY_NEGATIVE", "+": "UNARY_POSITIVE", "~": "UNARY_INVERT"}
_INPLACE_BASE: Final = frozenset(FACTS.binary_ops)


def create_instruction(
    opname: str,
    arg: int | None = None,
    argval: object = None,
    *,
    target: Instruction | None = None,
    positions: Positions | None = None,
) -> Instruction:
    """Any normal-form instruction, checked.

    Args:
        arg: number operand.
        argval: name, constant or symbol.
        target: where a jump goes.
        positions: place in the user's source.

    Raises:
        AssembleError: no such instruction in the normal form of this Python, or an operand of the wrong kind.
    """
    inst = Instruction(opname, arg, argval, target)
    kind = KIND_OF.get(opname, Kind.NUMBER)
    if (kind == Kind.JUMP) != (target is not None):
        raise AssembleError(f"{opname} {'needs a' if target is None else 'takes no'} target")
    if opname not in _known_names():
        raise AssembleError(f"{opname} is not in the normal form of this Python")
    if kind in (Kind.NAME, Kind.LOCAL, Kind.CELL) and not isinstance(argval, str):
        raise AssembleError(f"{opname} needs a name, not {argval!r}")
    stack_effect(inst)
    if positions is not None:
        inst.positions = positions
    return inst


@cache
def _known_names() -> frozenset[str]:
    """Names of the normal form on this Python, see `dynamo.eval.bytecode`."""
    physical_jumps = {name for pair in FACTS.jump_names.values() for name in pair}
    dropped = {"CACHE", "EXTENDED_ARG", "PRECALL", "KW_NAMES", "RETURN_CONST", "BINARY_SLICE", "STORE_SLICE"}
    joined = {"LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "FORMAT_VALUE"}
    normal = {"CALL", "CALL_KW", "LOAD_CLOSURE", "END_FOR", *FACTS.jump_names, *FACTS.write}
    return frozenset((set(FACTS.opmap) - physical_jumps - dropped - joined) | normal)


# -- the stack


def nop() -> Instruction:
    """Does nothing; a place to jump to."""
    return Instruction("NOP")


def pop_top() -> Instruction:
    """[a] → []"""
    return Instruction("POP_TOP")


def push_null() -> Instruction:
    """[] → [NULL]"""
    return Instruction("PUSH_NULL")


def copy_top(depth: int = 1) -> Instruction:
    """Push the value `depth` places down again, 1 being the top."""
    return Instruction("COPY", depth)


def swap(depth: int = 2) -> Instruction:
    """Exchange the top with the value `depth` places down, the top being 1."""
    return Instruction("SWAP", depth)


def rotate(depth: int) -> list[Instruction]:
    """Move the top below the `depth` - 1 values under it: [a, b, c] → [c, a, b] for 3."""
    return [Instruction("SWAP", place) for place in range(depth, 1, -1)]


# -- loads and stores


def load_const(value: object) -> Instruction:
    """[] → [value]"""
    return Instruction("LOAD_CONST", argval=value)


def load_fast(name: str) -> Instruction:
    """[] → [local]; the local must be bound, else 3.12 and later crash: `load_fast_check` when it may not be."""
    return Instruction("LOAD_FAST", argval=name)


def load_fast_check(name: str) -> Instruction:
    """[] → [local], or UnboundLocalError."""
    return Instruction("LOAD_FAST" if FACTS.checks_on_load_fast else "LOAD_FAST_CHECK", argval=name)


def store_fast(name: str) -> Instruction:
    """[a] → []"""
    return Instruction("STORE_FAST", argval=name)


def delete_fast(name: str) -> Instruction:
    """Unbind a local, or UnboundLocalError."""
    return Instruction("DELETE_FAST", argval=name)


def load_deref(name: str) -> Instruction:
    """[] → [content of a cell or free variable], or NameError."""
    return Instruction("LOAD_DEREF", argval=name)


def store_deref(name: str) -> Instruction:
    """[a] → [], into a cell or free variable."""
    return Instruction("STORE_DEREF", argval=name)


def delete_deref(name: str) -> Instruction:
    """Empty a cell or free variable."""
    return Instruction("DELETE_DEREF", argval=name)


def load_closure(name: str) -> Instruction:
    """[] → [the cell itself]"""
    return Instruction("LOAD_CLOSURE", argval=name)


def load_global(name: str) -> Instruction:
    """[] → [global or builtin]"""
    return Instruction("LOAD_GLOBAL", argval=name)


def store_global(name: str) -> Instruction:
    """[a] → []"""
    return Instruction("STORE_GLOBAL", argval=name)


def delete_global(name: str) -> Instruction:
    """Drop a global."""
    return Instruction("DELETE_GLOBAL", argval=name)


def load_name(name: str) -> Instruction:
    """[] → [local, global or builtin], in class and module bodies."""
    return Instruction("LOAD_NAME", argval=name)


def load_attr(name: str) -> Instruction:
    """[a] → [a.name]"""
    return Instruction("LOAD_ATTR", argval=name)


def store_attr(name: str) -> Instruction:
    """[value, a] → []"""
    return Instruction("STORE_ATTR", argval=name)


def delete_attr(name: str) -> Instruction:
    """[a] → []"""
    return Instruction("DELETE_ATTR", argval=name)


def binary_subscr() -> Instruction:
    """[a, key] → [a[key]]"""
    return Instruction("BINARY_SUBSCR")


def store_subscr() -> Instruction:
    """[value, a, key] → []"""
    return Instruction("STORE_SUBSCR")


def delete_subscr() -> Instruction:
    """[a, key] → []"""
    return Instruction("DELETE_SUBSCR")


def import_name(name: str) -> Instruction:
    """[level, names to import] → [module]"""
    return Instruction("IMPORT_NAME", argval=name)


def import_from(name: str) -> Instruction:
    """[module] → [module, module.name]"""
    return Instruction("IMPORT_FROM", argval=name)


# -- calls


def load_callable(instructions: Iterable[Instruction]) -> list[Instruction]:
    """`instructions`, which push a callable, with the NULL on the side this Python wants: [] → [callable ready to call]."""
    loading = list(instructions)
    return [push_null(), *loading] if FACTS.null_before_callable else [*loading, push_null()]


def load_method(name: str) -> Instruction:
    """[a] → [method of a ready to call]; follow with arguments and `call_method`."""
    return Instruction("LOAD_METHOD", argval=name)


def call(nargs: int, keywords: Sequence[str] = ()) -> Instruction:
    """[callable ready to call, nargs arguments] → [result]

    Args:
        nargs: all arguments, those with keywords included.
        keywords: names of the last arguments.
    """
    if len(keywords) > nargs:
        raise AssembleError(f"{len(keywords)} keywords for {nargs} arguments")
    return Instruction("CALL_KW", nargs, tuple(keywords)) if keywords else Instruction("CALL", nargs)


call_method = call


def call_function(nargs: int, keywords: Sequence[str] = ()) -> list[Instruction]:
    """[callable without NULL, nargs arguments] → [result]

    Slips the NULL in under the arguments, one SWAP for each; `load_callable` and `call` are cheaper where the callable
    is loaded by oneself.
    """
    depth = nargs + (2 if FACTS.null_before_callable else 1)
    return [push_null(), *rotate(depth), call(nargs, keywords)]


def call_function_ex(*, keywords: bool) -> Instruction:
    """[callable ready to call, tuple of arguments, (dict of keywords)] → [result]"""
    return Instruction("CALL_FUNCTION_EX", int(keywords))


def make_function(
    code: CodeType,
    *,
    defaults: Sequence[Instruction] = (),
    kwdefaults: Sequence[Instruction] = (),
    annotations: Sequence[Instruction] = (),
    closure: Sequence[str] = (),
) -> list[Instruction]:
    """[] → [function]

    Args:
        defaults, kwdefaults, annotations: push the tuple, the dict and the tuple of name, value pairs.
        closure: variables of this function, one for each free variable of `code`, in order.

    Raises:
        AssembleError: `closure` does not fit `code`.
    """
    if len(closure) != len(code.co_freevars):
        raise AssembleError(f"{code.co_name} has {len(code.co_freevars)} free variables, not {len(closure)}")
    result: list[Instruction] = []
    flags = 0
    for bit, pushing in ((1, defaults), (2, kwdefaults), (4, annotations)):
        if pushing:
            flags |= bit
            result += pushing
    if closure:
        flags |= 8
        result += [load_closure(name) for name in closure]
        result.append(build_tuple(len(closure)))
    result.append(load_const(code))
    if not FACTS.function_attributes_after:
        return [*result, Instruction("MAKE_FUNCTION", flags)]
    result.append(Instruction("MAKE_FUNCTION"))
    result += [Instruction("SET_FUNCTION_ATTRIBUTE", bit) for bit in (8, 4, 2, 1) if flags & bit]
    return result


def function_prologue(
    cellvars: Sequence[str] = (), freevars: Sequence[str] = (), positions: Positions | None = None
) -> list[Instruction]:
    """What a plain function begins with: free variables copied, cells made, RESUME."""
    result = [Instruction("COPY_FREE_VARS", len(freevars))] if freevars else []
    result += [Instruction("MAKE_CELL", argval=name) for name in cellvars]
    resume = Instruction("RESUME", 0)
    if positions is not None:
        resume.positions = positions
    return [*result, resume]


# -- operators


def binary_op(symbol: str) -> Instruction:
    """[a, b] → [a symbol b]; `symbol` as "+" or in place as "+=".

    Raises:
        AssembleError: unknown symbol.
    """
    if symbol not in _INPLACE_BASE:
        raise AssembleError(f"no binary operator {symbol!r}; comparisons are compare_op, is_op, contains_op")
    return Instruction("BINARY_OP", argval=symbol)


def unary_op(symbol: str) -> list[Instruction]:
    """[a] → [symbol a]; `symbol` one of "-", "+", "~", "not".

    Raises:
        AssembleError: unknown symbol.
    """
    if symbol == "not":
        return [*to_bool(), Instruction("UNARY_NOT")]
    if symbol not in _UNARY:
        raise AssembleError(f"no unary operator {symbol!r}")
    return [Instruction(_UNARY[symbol])]


def compare_op(symbol: str) -> Instruction:
    """[a, b] → [a symbol b]; `symbol` one of "<", "<=", "==", "!=", ">", ">=".

    Raises:
        AssembleError: unknown symbol.
    """
    if symbol not in FACTS.compare_ops:
        raise AssembleError(f"no comparison {symbol!r}")
    return Instruction("COMPARE_OP", argval=symbol)


def is_op(*, negated: bool = False) -> Instruction:
    """[a, b] → [a is b], or `is not`."""
    return Instruction("IS_OP", int(negated))


def contains_op(*, negated: bool = False) -> Instruction:
    """[a, container] → [a in container], or `not in`."""
    return Instruction("CONTAINS_OP", int(negated))


def to_bool() -> list[Instruction]:
    """[a] → [something a conditional jump takes]; nothing before 3.13, where the jumps ask for the truth themselves."""
    return [Instruction("TO_BOOL")] if FACTS.jumps_need_bool else []


# -- containers


def build_tuple(count: int) -> Instruction:
    """[count values] → [tuple]"""
    return Instruction("BUILD_TUPLE", count)


def build_list(count: int) -> Instruction:
    """[count values] → [list]"""
    return Instruction("BUILD_LIST", count)


def build_set(count: int) -> Instruction:
    """[count values] → [set]"""
    return Instruction("BUILD_SET", count)


def build_map(count: int) -> Instruction:
    """[count times key, value] → [dict]"""
    return Instruction("BUILD_MAP", count)


def build_const_key_map(keys: Sequence[object]) -> list[Instruction]:
    """[one value for each key] → [dict]"""
    return [load_const(tuple(keys)), Instruction("BUILD_CONST_KEY_MAP", len(keys))]


def build_string(count: int) -> Instruction:
    """[count strings] → [their concatenation]"""
    return Instruction("BUILD_STRING", count)


def build_slice(count: int) -> Instruction:
    """[start, stop] or [start, stop, step] → [slice]"""
    return Instruction("BUILD_SLICE", count)


def unpack_sequence(count: int) -> Instruction:
    """[sequence] → [count items, first on top]"""
    return Instruction("UNPACK_SEQUENCE", count)


def unpack_ex(before: int, after: int) -> Instruction:
    """[iterable] → [`before` items, list of the middle, `after` items], first on top."""
    return Instruction("UNPACK_EX", before | after << 8)


# -- control


def jump(target: Instruction) -> Instruction:
    """Go to `target`, forward or back."""
    return Instruction("JUMP", target=target)


def pop_jump_if_true(target: Instruction) -> list[Instruction]:
    """[a] → [], and go to `target` if a is true."""
    return [*to_bool(), Instruction("POP_JUMP_IF_TRUE", target=target)]


def pop_jump_if_false(target: Instruction) -> list[Instruction]:
    """[a] → [], and go to `target` if a is false."""
    return [*to_bool(), Instruction("POP_JUMP_IF_FALSE", target=target)]


def pop_jump_if_none(target: Instruction) -> Instruction:
    """[a] → [], and go to `target` if a is None."""
    return Instruction("POP_JUMP_IF_NONE", target=target)


def pop_jump_if_not_none(target: Instruction) -> Instruction:
    """[a] → [], and go to `target` if a is not None."""
    return Instruction("POP_JUMP_IF_NOT_NONE", target=target)


def get_iter() -> Instruction:
    """[iterable] → [iterator]"""
    return Instruction("GET_ITER")


def for_iter(end: Instruction) -> Instruction:
    """[iterator] → [iterator, next item], or [] and go to `end`, which must be an `end_for()`."""
    return Instruction("FOR_ITER", target=end)


def end_for() -> Instruction:
    """Where `for_iter` goes when there are no more items; does nothing."""
    return Instruction("END_FOR" if FACTS.for_iter_needs_end_for else "NOP")


def return_value() -> Instruction:
    """[a] → leave the frame with a."""
    return Instruction("RETURN_VALUE")


def return_const(value: object) -> list[Instruction]:
    """Leave the frame with a constant."""
    loading = load_const(value)
    loading.fuse = True
    return [loading, return_value()]


def raise_varargs(count: int) -> Instruction:
    """[] reraise, [exception] raise, [exception, cause] raise from; count 0, 1, 2."""
    return Instruction("RAISE_VARARGS", count)


def reraise(*, restore_lasti: bool = False) -> Instruction:
    """[exception] → raise it again as it is; `restore_lasti` when the offset of the raiser lies under it."""
    return Instruction("RERAISE", int(restore_lasti))


def load_assertion_error() -> Instruction:
    """[] → [AssertionError], even where that name is shadowed."""
    return Instruction("LOAD_ASSERTION_ERROR")


# -- places

_Instructions = TypeVar("_Instructions", bound=Iterable[Instruction])


def place_at(positions: Positions, instructions: _Instructions) -> _Instructions:
    """Give new instructions a place in the user's source, so that tracebacks show it; returns them."""
    for inst in instructions:
        inst.positions = positions
    return instructions


def guard_with(target: Instruction, instructions: _Instructions, *, lasti: bool = False) -> _Instructions:
    """Let `target` handle what these neighbouring instructions raise; returns them.

    The stack is cut to its depth before the first of them. They must have no handler of their own yet.
    """
    handler = ExceptionHandler(target, None, lasti)
    for inst in instructions:
        if inst.handler is None:
            inst.handler = handler
    return instructions
