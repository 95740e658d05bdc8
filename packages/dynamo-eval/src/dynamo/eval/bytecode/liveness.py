"""Which local variables an instruction's future still needs.

A variable is *live* before an instruction if some path from there reads it before writing it. A resume function takes
exactly the live variables. Cells and free variables count under the same name: reading through a cell needs the cell,
so for them every use (LOAD_DEREF, STORE_DEREF, DELETE_DEREF, LOAD_CLOSURE) is a read, and only MAKE_CELL makes one.

Backward data flow over single instructions with bit sets, repeated until nothing changes: an instruction that may
raise into a handler keeps alive what the handler reads.

Source: any compiler text on data flow, e.g. Aho, Lam, Sethi, Ullman, "Compilers", section 9.2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .blocks import successors
from .instruction import Instruction

__all__ = ["READS", "WRITES", "live_before", "livevars_analysis"]

READS: Final = frozenset(
    (
        *("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "DELETE_FAST"),
        *(
            "LOAD_DEREF",
            "LOAD_CLOSURE",
            "LOAD_CLASSDEREF",
            "LOAD_FROM_DICT_OR_DEREF",
            "STORE_DEREF",
            "DELETE_DEREF",
        ),
        "MAKE_CELL",
    )
)
"""Instructions that need the variable (MAKE_CELL takes the argument of that name into the cell)."""

WRITES: Final = frozenset(("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"))
"""Instructions after which what the variable was before does not matter (reads of the same instruction come first)."""


def live_before(instructions: Sequence[Instruction]) -> list[frozenset[str]]:
    """Names live before each instruction.

    Complexity: linear in instructions, times the nesting of loops.
    """
    bits: dict[str, int] = {}
    reads: list[int] = []
    keeps: list[int] = []
    for inst in instructions:
        name = inst.argval
        is_read, is_write = inst.opname in READS, inst.opname in WRITES
        bit = bits.setdefault(name, 1 << len(bits)) if (is_read or is_write) and isinstance(name, str) else 0
        reads.append(bit if is_read else 0)
        keeps.append(~bit if is_write else -1)
    live = _solve(instructions, reads, keeps)
    names = list(bits)
    known: dict[int, frozenset[str]] = {}
    for value in live:
        if value not in known:
            known[value] = frozenset(name for place, name in enumerate(names) if value >> place & 1)
    return [known[value] for value in live]


def _solve(instructions: Sequence[Instruction], reads: list[int], keeps: list[int]) -> list[int]:
    nexts = successors(instructions)
    live = [0] * len(instructions)
    changed = True
    while changed:
        changed = False
        for index in range(len(instructions) - 1, -1, -1):
            inst = instructions[index]
            after = 0
            for following in nexts[index]:
                after |= live[following]
            value = reads[index] | after & keeps[index]
            if inst.handler is not None:
                # It may raise before it writes, so the handler sees what was there before.
                value |= live[nexts[index][-1]]
            if value != live[index]:
                live[index] = value
                changed = True
    return live


def livevars_analysis(instructions: Sequence[Instruction], inst: Instruction) -> frozenset[str]:
    """Names live before `inst`.

    Raises:
        ValueError: `inst` is not in the list.
    """
    for index, candidate in enumerate(instructions):
        if candidate is inst:
            return live_before(instructions)[index]
    raise ValueError(f"{inst} is not in the list")
