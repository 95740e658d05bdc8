"""CPython 3.12: conditional jumps forward only, FOR_ITER onto END_FOR, method bit in LOAD_ATTR, RETURN_CONST.

Source: CPython 3.12, Python/compile.c, Python/flowgraph.c, Python/bytecodes.c.
"""

from __future__ import annotations

from .facts import Facts, cache_counts, native_opmap, operand_flags
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
    format_value_expansion,
    format_value_join,
    intrinsic_names,
)

# Low bits of COMPARE_OP: which outcomes (unordered 1, less 2, greater 4, equal 8) make it true.
_MASKS = (2, 10, 8, 7, 4, 12)

FACTS = Facts(
    opmap=native_opmap(),
    caches=cache_counts(),
    has_arg=operand_flags(),
    null_before_callable=True,
    calls_with_precall=False,
    keywords_on_stack=False,
    closure_is_fast=False,
    checks_on_load_fast=False,
    conditional_jumps_go_back=False,
    jumps_need_bool=False,
    for_iter_needs_end_for=True,
    end_for_is_pair=False,
    function_attributes_after=False,
    jumps_shrink=False,
    merges_locations=True,
    close_returns=False,
    compare_ops=COMPARE_OPS,
    binary_ops=BINARY_OPS,
    intrinsics_1=intrinsic_names("_intrinsic_1_descs"),
    intrinsics_2=intrinsic_names("_intrinsic_2_descs"),
    jump_names=JUMPS_FORWARD_ONLY,
    expand={
        "LOAD_GLOBAL": lambda arg: (*((("PUSH_NULL", 0),) if arg & 1 else ()), ("LOAD_GLOBAL", arg >> 1)),
        "LOAD_ATTR": lambda arg: (("LOAD_METHOD" if arg & 1 else "LOAD_ATTR", arg >> 1),),
        "COMPARE_OP": lambda arg: (("COMPARE_OP", arg >> 4),),
        "RETURN_CONST": lambda arg: (("LOAD_CONST", arg), ("RETURN_VALUE", 0)),
        "FORMAT_VALUE": format_value_expansion,
        **SUPER_EXPAND,
        **SLICE_EXPAND,
        **INTRINSIC_EXPAND,
    },
    write={
        "LOAD_GLOBAL": lambda arg: ("LOAD_GLOBAL", arg << 1),
        "LOAD_ATTR": lambda arg: ("LOAD_ATTR", arg << 1),
        "LOAD_METHOD": lambda arg: ("LOAD_ATTR", arg << 1 | 1),
        "COMPARE_OP": lambda arg: ("COMPARE_OP", arg << 4 | _MASKS[arg]),
        "CONVERT_VALUE": lambda arg: ("FORMAT_VALUE", arg),
        "FORMAT_SIMPLE": lambda _: ("FORMAT_VALUE", 0),
        "FORMAT_WITH_SPEC": lambda _: ("FORMAT_VALUE", 4),
        **SUPER_WRITE,
        **INTRINSIC_WRITE,
    },
    join={
        ("PUSH_NULL", "LOAD_GLOBAL"): lambda args: ("LOAD_GLOBAL", args[1] << 1 | 1),
        ("LOAD_CONST", "RETURN_VALUE"): lambda args: ("RETURN_CONST", args[0]),
        **SLICE_JOIN,
        **format_value_join,
    },
)
