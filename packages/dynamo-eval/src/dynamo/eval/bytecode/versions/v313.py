"""CPython 3.13: pairs of fast locals in one instruction, PUSH_NULL above the callable, TO_BOOL, CALL_KW.

Source: CPython 3.13, Python/codegen parts of compile.c, Python/flowgraph.c, Python/bytecodes.c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .facts import Expansion, Facts, Join, cache_counts, native_opmap, operand_flags
from .shared import (
    BINARY_OPS,
    COMPARE_OPS,
    INTRINSIC_EXPAND,
    INTRINSIC_WRITE,
    JUMPS_FORWARD_ONLY,
    SLICE_EXPAND,
    SLICE_JOIN,
    SUPER_EXPAND,
    SUPER_WRITE,
    intrinsic_names,
)

# Low bits of COMPARE_OP: which outcomes (unordered 1, less 2, greater 4, equal 8) make it true; 16 asks for a bool.
_MASKS = (2, 10, 8, 7, 4, 12)


def _pair(first: str, second: str) -> Callable[[int], Expansion]:
    return lambda arg: ((first, arg >> 4), (second, arg & 15))


def _join_pair(name: str) -> Join:
    def join(args: Sequence[int]) -> tuple[str, int] | None:
        return (name, args[0] << 4 | args[1]) if args[0] < 16 and args[1] < 16 else None

    return join


FACTS = Facts(
    opmap=native_opmap(),
    caches=cache_counts(),
    has_arg=operand_flags(),
    null_before_callable=False,
    calls_with_precall=False,
    keywords_on_stack=True,
    closure_is_fast=True,
    checks_on_load_fast=False,
    conditional_jumps_go_back=False,
    jumps_need_bool=True,
    for_iter_needs_end_for=True,
    end_for_is_pair=True,
    function_attributes_after=True,
    jumps_shrink=True,
    merges_locations=True,
    close_returns=True,
    compare_ops=COMPARE_OPS,
    binary_ops=BINARY_OPS,
    intrinsics_1=intrinsic_names("_intrinsic_1_descs"),
    intrinsics_2=intrinsic_names("_intrinsic_2_descs"),
    jump_names=JUMPS_FORWARD_ONLY,
    expand={
        "LOAD_GLOBAL": lambda arg: (("LOAD_GLOBAL", arg >> 1), *((("PUSH_NULL", 0),) if arg & 1 else ())),
        "LOAD_ATTR": lambda arg: (("LOAD_METHOD" if arg & 1 else "LOAD_ATTR", arg >> 1),),
        "COMPARE_OP": lambda arg: (("COMPARE_OP", arg >> 5), *((("TO_BOOL", 0),) if arg & 16 else ())),
        "RETURN_CONST": lambda arg: (("LOAD_CONST", arg), ("RETURN_VALUE", 0)),
        "LOAD_FAST_LOAD_FAST": _pair("LOAD_FAST", "LOAD_FAST"),
        "STORE_FAST_LOAD_FAST": _pair("STORE_FAST", "LOAD_FAST"),
        "STORE_FAST_STORE_FAST": _pair("STORE_FAST", "STORE_FAST"),
        **SUPER_EXPAND,
        **SLICE_EXPAND,
        **INTRINSIC_EXPAND,
    },
    write={
        "LOAD_GLOBAL": lambda arg: ("LOAD_GLOBAL", arg << 1),
        "LOAD_ATTR": lambda arg: ("LOAD_ATTR", arg << 1),
        "LOAD_METHOD": lambda arg: ("LOAD_ATTR", arg << 1 | 1),
        "COMPARE_OP": lambda arg: ("COMPARE_OP", arg << 5 | _MASKS[arg]),
        "LOAD_CLOSURE": lambda arg: ("LOAD_FAST", arg),
        **SUPER_WRITE,
        **INTRINSIC_WRITE,
    },
    join={
        ("LOAD_GLOBAL", "PUSH_NULL"): lambda args: ("LOAD_GLOBAL", args[0] << 1 | 1),
        ("COMPARE_OP", "TO_BOOL"): lambda args: ("COMPARE_OP", args[0] << 5 | 16 | _MASKS[args[0]]),
        ("LOAD_CONST", "RETURN_VALUE"): lambda args: ("RETURN_CONST", args[0]),
        ("LOAD_FAST", "LOAD_FAST"): _join_pair("LOAD_FAST_LOAD_FAST"),
        ("LOAD_FAST", "LOAD_CLOSURE"): _join_pair("LOAD_FAST_LOAD_FAST"),
        ("LOAD_CLOSURE", "LOAD_FAST"): _join_pair("LOAD_FAST_LOAD_FAST"),
        ("LOAD_CLOSURE", "LOAD_CLOSURE"): _join_pair("LOAD_FAST_LOAD_FAST"),
        ("STORE_FAST", "LOAD_FAST"): _join_pair("STORE_FAST_LOAD_FAST"),
        ("STORE_FAST", "LOAD_CLOSURE"): _join_pair("STORE_FAST_LOAD_FAST"),
        ("STORE_FAST", "STORE_FAST"): _join_pair("STORE_FAST_STORE_FAST"),
        **SLICE_JOIN,
    },
)
