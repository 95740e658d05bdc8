"""Which local variables are surely bound, and reads made safe where they may not be.

From 3.12 on LOAD_FAST does not look whether the variable is bound: the compiler writes LOAD_FAST_CHECK where it cannot
prove it. Edited code (a store dropped, code moved into a function of its own) must keep to that, or the process crashes.

Forward data flow over single instructions with bit sets: bound before an instruction is what is bound on every way to it.

Source: CPython 3.12, Python/flowgraph.c (add_checks_for_loads_of_uninitialized_variables).
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType
from typing import Final

from .blocks import successors
from .instruction import Instruction
from .versions.select import FACTS

__all__ = ["bound_before", "check_unbound_reads", "reads_unbound_cell"]

_CELL_READS: Final = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})


def bound_before(
    instructions: Sequence[Instruction], arguments: Iterable[str]
) -> list[frozenset[str] | None]:
    """Fast locals that are bound before each instruction whichever way control came; None where it never comes.

    Args:
        arguments: names bound on entry.
    """
    bits: dict[str, int] = {}
    entry = 0
    for name in arguments:
        entry |= bits.setdefault(name, 1 << len(bits))
    sets, clears = _effects(instructions, bits)
    names = {bit: name for name, bit in bits.items()}
    return [
        None if value is None else frozenset(name for bit, name in names.items() if value & bit)
        for value in _flow(instructions, entry, sets, clears)
    ]


def reads_unbound_cell(instructions: Sequence[Instruction], code: CodeType) -> bool:
    """Whether code may read or delete a cell of its own that is unbound then.

    Python raises ``UnboundLocalError`` there, and ``NameError`` once the cell is a free variable.

    Args:
        instructions: those of `code`.
    """
    bits = {name: 1 << place for place, name in enumerate(code.co_cellvars)}
    if not bits:
        return False
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    entry = sum(bits.get(name, 0) for name in code.co_varnames[:count])
    sets, clears, reads = [], [], []
    for inst in instructions:
        bit = bits.get(inst.argval, 0) if isinstance(inst.argval, str) else 0
        read = inst.opname in _CELL_READS
        reads.append(bit if read or inst.opname == "DELETE_DEREF" else 0)
        sets.append(bit if read or inst.opname == "STORE_DEREF" else 0)
        clears.append(bit if inst.opname == "DELETE_DEREF" else 0)
    removed = sum(bits[name] for name in _deleted_by_inner(code) if name in bits)
    return any(
        bound is not None and read & ~(bound & ~removed)
        for read, bound in zip(reads, _flow(instructions, entry, sets, clears), strict=True)
    )


def _deleted_by_inner(code: CodeType) -> Iterator[str]:
    """Free variables that functions made by `code` may delete."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and inner.co_freevars:
            for inst in dis.get_instructions(inner):
                if inst.opname == "DELETE_DEREF":
                    yield inst.argval
            yield from _deleted_by_inner(inner)


def _flow(
    instructions: Sequence[Instruction], entry: int, sets: Sequence[int], clears: Sequence[int]
) -> list[int | None]:
    """The bits set before each instruction on every way to it; None where control never comes."""
    nexts = successors(instructions)
    bound: list[int | None] = [None] * len(instructions)
    waiting = [(0, entry)] if instructions else []
    while waiting:
        index, arriving = waiting.pop()
        known = bound[index]
        merged = arriving if known is None else known & arriving
        if merged == known:
            continue
        bound[index] = merged
        after = merged & ~clears[index] | sets[index]
        guarded = instructions[index].handler is not None
        for place, following in enumerate(nexts[index]):
            # An instruction that raises may or may not have unbound its variable, but has bound none.
            raising = guarded and place == len(nexts[index]) - 1
            waiting.append((following, merged & ~clears[index] if raising else after))
    return bound


def _effects(instructions: Sequence[Instruction], bits: dict[str, int]) -> tuple[list[int], list[int]]:
    """Bits that each instruction binds and unbinds; `bits` grows by the names it meets.

    A comprehension that runs within its function (PEP 709) saves a variable of the function with LOAD_FAST_AND_CLEAR and
    puts it back with STORE_FAST: NULL, where it was unbound. So a store to such a variable leaves it in doubt; a read
    settles that.
    """
    put_back = {inst.argval for inst in instructions if inst.opname == "LOAD_FAST_AND_CLEAR"}
    sets, clears = [], []
    for inst in instructions:
        name = inst.argval
        set_bit = clear_bit = 0
        if isinstance(name, str):
            # A read goes on only when the variable is bound.
            in_doubt = inst.opname == "STORE_FAST" and name in put_back
            if inst.opname in ("STORE_FAST", "LOAD_FAST", "LOAD_FAST_CHECK") and not in_doubt:
                set_bit = bits.setdefault(name, 1 << len(bits))
            elif in_doubt or inst.opname in ("DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
                clear_bit = bits.setdefault(name, 1 << len(bits))
        sets.append(set_bit)
        clears.append(clear_bit)
    return sets, clears


def check_unbound_reads(instructions: Sequence[Instruction], arguments: Iterable[str]) -> int:
    """Turn LOAD_FAST into LOAD_FAST_CHECK, in place, where the variable may be unbound; says how many.

    Does nothing before 3.12, where LOAD_FAST checks.

    Args:
        arguments: names bound on entry.
    """
    if FACTS.checks_on_load_fast:
        return 0
    changed = 0
    for inst, bound in zip(instructions, bound_before(instructions, arguments), strict=True):
        if inst.opname == "LOAD_FAST" and bound is not None and inst.argval not in bound:
            inst.opname = "LOAD_FAST_CHECK"
            changed += 1
    return changed
