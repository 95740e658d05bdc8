"""The named behaviours in which the encodings of CPython 3.11, 3.12 and 3.13 differ.

A version module holds one `Facts` value. *Expanding* turns one physical instruction into one or more of the normal
form; *joining* is the way back. Both are pure functions of the number operands, so results are memoised by decode.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

__all__ = [
    "KIND_OF",
    "Expansion",
    "Facts",
    "Join",
    "Kind",
    "Write",
    "cache_counts",
    "native_opmap",
    "operand_flags",
]

Expansion: TypeAlias = tuple[tuple[str, int], ...]
"""Normal-form names with their number operands (index or plain number), in order."""

Write: TypeAlias = Callable[[int], tuple[str, int]]
"""Number operand of a normal-form instruction → physical name and operand."""

Join: TypeAlias = Callable[[Sequence[int]], "tuple[str, int] | None"]
"""Number operands of a run of normal-form instructions → the one physical instruction, None if it does not fit."""


class Kind(IntEnum):
    """What the operand of a normal-form instruction means."""

    NUMBER = 0
    CONST = 1
    NAME = 2
    LOCAL = 3
    CELL = 4
    JUMP = 5
    COMPARE = 6
    BINARY = 7
    INTRINSIC_1 = 8
    INTRINSIC_2 = 9
    KEYWORDS = 10


def _kinds() -> dict[str, Kind]:
    by_kind = {
        Kind.CONST: "LOAD_CONST",
        Kind.NAME: """STORE_NAME DELETE_NAME STORE_ATTR DELETE_ATTR STORE_GLOBAL DELETE_GLOBAL LOAD_NAME LOAD_ATTR
            IMPORT_NAME IMPORT_FROM LOAD_GLOBAL LOAD_METHOD LOAD_SUPER_ATTR LOAD_SUPER_METHOD LOAD_ZERO_SUPER_ATTR
            LOAD_ZERO_SUPER_METHOD LOAD_FROM_DICT_OR_GLOBALS""",
        Kind.LOCAL: "LOAD_FAST STORE_FAST DELETE_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR",
        Kind.CELL: """MAKE_CELL LOAD_CLOSURE LOAD_DEREF STORE_DEREF DELETE_DEREF LOAD_CLASSDEREF
            LOAD_FROM_DICT_OR_DEREF""",
        Kind.JUMP: """JUMP JUMP_NO_INTERRUPT POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE
            POP_JUMP_IF_NOT_NONE JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP FOR_ITER SEND""",
        Kind.COMPARE: "COMPARE_OP",
        Kind.BINARY: "BINARY_OP",
        Kind.INTRINSIC_1: "CALL_INTRINSIC_1",
        Kind.INTRINSIC_2: "CALL_INTRINSIC_2",
        Kind.KEYWORDS: "CALL_KW",
    }
    return {name: kind for kind, names in by_kind.items() for name in names.split()}


KIND_OF: Mapping[str, Kind] = _kinds()
"""Normal-form name → what its operand means; a name that is missing has a plain number or no operand."""


@dataclass(frozen=True, slots=True)
class Facts:
    """How one Python version encodes the normal form.

    Args:
        opmap: names of real instructions → number (no pseudo-instructions, no instrumented ones).
        caches: inline cache units that follow each opcode, indexed by opcode.
        has_arg: whether the opcode takes an operand, indexed by opcode.
        null_before_callable: PUSH_NULL goes below (3.11, 3.12) or above (3.13) the callable.
        calls_with_precall: 3.11 writes PRECALL before every CALL.
        keywords_on_stack: 3.13 pushes the tuple of keyword names; before, KW_NAMES sets it aside.
        closure_is_fast: 3.13 reads a cell itself with LOAD_FAST.
        checks_on_load_fast: LOAD_FAST raises on an unbound name (3.11); later only LOAD_FAST_CHECK does.
        conditional_jumps_go_back: POP_JUMP_* has backward variants (3.11).
        jumps_need_bool: conditional jumps and UNARY_NOT want a real bool, made by TO_BOOL (3.13).
        for_iter_needs_end_for: FOR_ITER jumps onto an END_FOR, which it skips (3.12, 3.13).
        end_for_is_pair: END_FOR is followed by POP_TOP (3.13).
        function_attributes_after: MAKE_FUNCTION takes no flags, SET_FUNCTION_ATTRIBUTE follows (3.13).
        jumps_shrink: the compiler settles the widths of jumps from above, else from below (3.13).
        merges_locations: the compiler joins neighbours of one place into one entry of the line table (3.12, 3.13).
        close_returns: ``close()`` of a generator gives what it returned (3.13).
        compare_ops, binary_ops, intrinsics_1, intrinsics_2: symbols by index.
        jump_names: normal-form jump → (forward name, backward name); "" where there is none.
        expand: physical name → expansion of its operand, where that is more than the instruction itself.
        write: normal-form name → physical, where that is more than the name itself.
        join: run of normal-form names → physical.
    """

    opmap: Mapping[str, int]
    caches: Sequence[int]
    has_arg: Sequence[bool]
    null_before_callable: bool
    calls_with_precall: bool
    keywords_on_stack: bool
    closure_is_fast: bool
    checks_on_load_fast: bool
    conditional_jumps_go_back: bool
    jumps_need_bool: bool
    for_iter_needs_end_for: bool
    end_for_is_pair: bool
    function_attributes_after: bool
    jumps_shrink: bool
    merges_locations: bool
    close_returns: bool
    compare_ops: Sequence[str]
    binary_ops: Sequence[str]
    intrinsics_1: Sequence[str]
    intrinsics_2: Sequence[str]
    jump_names: Mapping[str, tuple[str, str]]
    expand: Mapping[str, Callable[[int], Expansion]] = field(default_factory=dict)
    write: Mapping[str, Write] = field(default_factory=dict)
    join: Mapping[tuple[str, ...], Join] = field(default_factory=dict)


_INTERNAL = ("CACHE", "RESERVED", "ENTER_EXECUTOR")


def native_opmap() -> dict[str, int]:
    """Real instructions of this interpreter: `dis.opmap` without pseudo-, instrumented and internal ones."""
    return {
        name: number
        for name, number in dis.opmap.items()
        if number < 256 and not name.startswith("INSTRUMENTED_") and name not in _INTERNAL
    }


def cache_counts() -> list[int]:
    """Inline cache units by opcode, observed by disassembling each opcode with its caches shown.

    `dis` keeps them private under a shape that changed (list by opcode on 3.11, dict by name on 3.13); 3.11 and 3.12:
    `opcode._inline_cache_entries` list, 3.13: dict.
    """
    import opcode

    table: object = getattr(opcode, "_inline_cache_entries")  # noqa: B009 - private, and typeshed does not know it
    if isinstance(table, dict):
        return [int(table.get(opcode.opname[number], 0)) for number in range(256)]
    assert isinstance(table, list)
    return [int(count) for count in table]


def operand_flags() -> list[bool]:
    """Whether an opcode takes an operand, by opcode.

    3.11 and 3.12: all from `dis.HAVE_ARGUMENT` on; 3.13 lists them, since RESUME left the order.
    """
    listed: object = getattr(dis, "hasarg", None)
    if isinstance(listed, list):
        return [number in listed for number in range(256)]
    return [number >= dis.HAVE_ARGUMENT for number in range(256)]
