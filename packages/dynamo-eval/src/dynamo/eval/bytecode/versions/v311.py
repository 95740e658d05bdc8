"""CPython 3.11: PRECALL before CALL, PUSH_NULL below the callable, conditional jumps in both directions.

Source: CPython 3.11, Python/compile.c, Python/ceval.c.
"""

from __future__ import annotations

from .facts import Facts, cache_counts, native_opmap, operand_flags
from .shared import BINARY_OPS, COMPARE_OPS, format_value_expansion, format_value_join

FACTS = Facts(
    opmap=native_opmap(),
    caches=cache_counts(),
    has_arg=operand_flags(),
    null_before_callable=True,
    calls_with_precall=True,
    keywords_on_stack=False,
    closure_is_fast=False,
    checks_on_load_fast=True,
    conditional_jumps_go_back=True,
    jumps_need_bool=False,
    for_iter_needs_end_for=False,
    end_for_is_pair=False,
    function_attributes_after=False,
    jumps_shrink=False,
    merges_locations=False,
    close_returns=False,
    compare_ops=COMPARE_OPS,
    binary_ops=BINARY_OPS,
    intrinsics_1=(),
    intrinsics_2=(),
    jump_names={
        "JUMP": ("JUMP_FORWARD", "JUMP_BACKWARD"),
        "JUMP_NO_INTERRUPT": ("", "JUMP_BACKWARD_NO_INTERRUPT"),
        "POP_JUMP_IF_TRUE": ("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE"),
        "POP_JUMP_IF_FALSE": ("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE"),
        "POP_JUMP_IF_NONE": ("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE"),
        "POP_JUMP_IF_NOT_NONE": ("POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE"),
        "JUMP_IF_TRUE_OR_POP": ("JUMP_IF_TRUE_OR_POP", ""),
        "JUMP_IF_FALSE_OR_POP": ("JUMP_IF_FALSE_OR_POP", ""),
        "FOR_ITER": ("FOR_ITER", ""),
        "SEND": ("SEND", ""),
    },
    expand={
        "LOAD_GLOBAL": lambda arg: (*((("PUSH_NULL", 0),) if arg & 1 else ()), ("LOAD_GLOBAL", arg >> 1)),
        "FORMAT_VALUE": format_value_expansion,
    },
    write={
        "LOAD_GLOBAL": lambda arg: ("LOAD_GLOBAL", arg << 1),
        "CONVERT_VALUE": lambda arg: ("FORMAT_VALUE", arg),
        "FORMAT_SIMPLE": lambda _: ("FORMAT_VALUE", 0),
        "FORMAT_WITH_SPEC": lambda _: ("FORMAT_VALUE", 4),
        "END_FOR": lambda _: ("NOP", 0),
    },
    join={
        ("PUSH_NULL", "LOAD_GLOBAL"): lambda args: ("LOAD_GLOBAL", args[1] << 1 | 1),
        **format_value_join,
    },
)
