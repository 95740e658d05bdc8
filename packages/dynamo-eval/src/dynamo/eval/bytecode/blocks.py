"""Where control can go from each instruction."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import AssembleError
from .instruction import Instruction
from .stack_depth import ENDS_PATH

__all__ = ["basic_blocks", "reachable", "remove_unreachable", "successors"]


def successors(instructions: Sequence[Instruction]) -> list[tuple[int, ...]]:
    """For each instruction the indices where control can go next: on, jump target, exception handler (in that order).

    Raises:
        AssembleError: a jump or handler goes out of the list.
    """
    index_of = {inst: index for index, inst in enumerate(instructions)}
    last = len(instructions) - 1
    result: list[tuple[int, ...]] = []
    try:
        for index, inst in enumerate(instructions):
            nexts: tuple[int, ...] = ()
            if inst.opname not in ENDS_PATH and index < last:
                nexts = (index + 1,)
            if inst.target is not None:
                nexts += (index_of[inst.target],)
            if inst.handler is not None:
                nexts += (index_of[inst.handler.target],)
            result.append(nexts)
    except KeyError as missing:
        raise AssembleError(f"a jump or handler goes to {missing.args[0]} which is not in the list") from None
    return result


def reachable(instructions: Sequence[Instruction], start: int = 0) -> set[int]:
    """Indices of the instructions to which control can come from `start`."""
    nexts = successors(instructions)
    seen: set[int] = set()
    waiting = [start] if instructions else []
    while waiting:
        index = waiting.pop()
        if index not in seen:
            seen.add(index)
            waiting.extend(nexts[index])
    return seen


def remove_unreachable(instructions: list[Instruction]) -> None:
    """Drop, in place, what control never comes to."""
    keep = reachable(instructions)
    instructions[:] = [inst for index, inst in enumerate(instructions) if index in keep]


def basic_blocks(instructions: Sequence[Instruction]) -> list[range]:
    """Runs of instructions entered only at their first and left only after their last (exceptions apart)."""
    starts = {0} if instructions else set()
    index_of = {inst: index for index, inst in enumerate(instructions)}
    for index, inst in enumerate(instructions):
        if inst.target is not None:
            starts.add(index_of[inst.target])
        if inst.handler is not None:
            starts.add(index_of[inst.handler.target])
        if inst.target is not None or inst.opname in ENDS_PATH:
            starts.add(index + 1)
    ordered = sorted(start for start in starts if start < len(instructions))
    return [range(start, end) for start, end in zip(ordered, [*ordered[1:], len(instructions)], strict=True)]
