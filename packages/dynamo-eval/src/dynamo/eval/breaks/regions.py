"""The blocks of a frame: loops, what guards an instruction, and the part of a block that can be a function of its own.

A *region* begins at an instruction with the stack as its block found it and ends where control leaves the block: at the
next turn of the loop, behind the loop, behind the ``try`` or ``with``. It holds whole inner blocks. The values that
the block keeps on the stack (iterators, ``__exit__`` methods, the exception that is handled) lie below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

from dynamo.eval.bytecode import ExceptionHandler, Instruction, live_before, stack_depths
from dynamo.eval.bytecode.blocks import successors

__all__ = ["Blocks", "Loop", "Region"]

HandlerKey = tuple[int, int, bool]
#: a region must do something that may be worth a graph
_WORTH: Final = frozenset(
    {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "BINARY_OP", "BINARY_SUBSCR", "STORE_SUBSCR"}
)
#: what a function made of a part of the frame cannot hold
_REFUSED: Final = frozenset({"MAKE_CELL", "YIELD_VALUE", "SEND", "RETURN_GENERATOR", "LOAD_LOCALS"})
#: instructions that look below the values that they take, and how many those are
_PEEKS: Final = {
    **dict.fromkeys(("COPY", "SWAP"), 0),
    **dict.fromkeys(("LIST_APPEND", "SET_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE"), 1),
    "MAP_ADD": 2,
}


@dataclass(frozen=True, slots=True)
class Loop:
    """Instructions from which control can come back to `header`; None if they are entered in several places."""

    header: int | None
    body: frozenset[int]


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a block that can be a function.

    Attributes:
        start: its only entry.
        base: how many values of the stack lie below it.
        members: its instructions.
        exits: where control goes on after it.
        guards: keys of the handlers around it, innermost first.
    """

    start: int
    base: int
    members: frozenset[int]
    exits: tuple[int, ...]
    guards: tuple[HandlerKey, ...]

    @property
    def is_rest(self) -> bool:
        """Whether it is all that remains of the frame."""
        return not self.exits and not self.guards and self.base == 0


@final
class Blocks:
    """Loops, handlers, stack depths and live variables of a list of instructions."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self.instructions = instructions
        self.index = {inst: place for place, inst in enumerate(instructions)}
        self.nexts = successors(instructions)
        self.depths = stack_depths(instructions)
        self.live = live_before(instructions)
        self._loops: dict[int, Loop] = {}
        self._find_loops(_reachable(self.nexts, 0))
        self._may_go_on = self._going_on()

    def flow(self, place: int) -> tuple[int, ...]:
        """Where control goes from an instruction that does not raise."""
        nexts = self.nexts[place]
        return nexts[:-1] if self.instructions[place].handler is not None else nexts

    def handler_place(self, place: int) -> int | None:
        """Where control goes when an instruction raises; None: out of the frame."""
        handler = self.instructions[place].handler
        return None if handler is None else self.index[handler.target]

    def loop(self, place: int) -> Loop | None:
        """The innermost loop around an instruction."""
        return self._loops.get(place)

    def key(self, handler: ExceptionHandler) -> HandlerKey:
        """What makes two entries of the exception table the same handler."""
        return self.index[handler.target], self.depths.handler_depth(handler), handler.lasti

    def guards(self, place: int) -> tuple[HandlerKey, ...]:
        """The handlers around an instruction, innermost first."""
        found: list[HandlerKey] = []
        handler = self.instructions[place].handler
        while handler is not None:
            key = self.key(handler)
            if key in found:
                break
            found.append(key)
            handler = handler.target.handler
        return tuple(found)

    def depth(self, place: int) -> int | None:
        """How many values are on the stack before an instruction; None where control never comes."""
        return self.depths.before(self.instructions[place])

    def base(self, place: int) -> int | None:
        """How many values of the stack belong to the blocks around an instruction; None where that is not clear."""
        guards = self.guards(place)
        base = guards[0][1] if guards else 0
        loop = self.loop(place)
        if loop is not None:
            header = None if loop.header is None else self.depth(loop.header)
            if header is None:
                return None
            base = max(base, header)
        return base

    def region(self, start: int) -> Region | None:
        """The region that begins at an instruction; None if it cannot be, or need not be, a function."""
        guards, loop, base = self.guards(start), self.loop(start), self.base(start)
        header = None if loop is None else loop.header
        if base is None or (header == start and self.instructions[start].opname == "FOR_ITER"):
            return None
        members: set[int] = set()
        exits: dict[int, None] = {}
        waiting = [start]
        while waiting:
            place = waiting.pop()
            if place in members:
                continue
            inside = self._is_inside(place, loop, guards)
            if place != start and (place == header or not inside):
                exits[place] = None
                continue
            members.add(place)
            handled = self.handler_place(place)
            if handled is not None and len(self.guards(place)) > len(guards):
                if not self._is_inside(handled, loop, guards):
                    return None
                waiting.append(handled)
            waiting.extend(reversed(self.flow(place)))
        if header is not None and any(header in self.flow(place) for place in members):
            exits[header] = None
        names = {self.instructions[place].opname for place in members}
        if names & _REFUSED or not names & _WORTH:
            return None
        if (guards or loop is not None) and "RETURN_VALUE" in names:
            return None
        if any(self._reach(place) < base for place in members):
            return None
        return Region(start, base, frozenset(members), tuple(sorted(exits)), guards)

    def _reach(self, place: int) -> int:
        """The lowest place of the stack at which an instruction looks without taking it."""
        inst, depth = self.instructions[place], self.depth(place)
        below = _PEEKS.get(inst.opname)
        return 1 << 30 if below is None or depth is None else depth - below - (inst.arg or 1)

    def _is_inside(self, place: int, loop: Loop | None, guards: tuple[HandlerKey, ...]) -> bool:
        """Whether a place belongs to a loop, or from the loop only leads to an exception, and lies within handlers."""
        if loop is not None and place not in loop.body and place in self._may_go_on:
            return False
        own = self.guards(place)
        return not guards or own[len(own) - len(guards) :] == guards

    def _going_on(self) -> set[int]:
        """The places from which control may return, or go round in a loop, without an exception."""
        before: dict[int, list[int]] = {}
        for place in range(len(self.nexts)):
            for following in self.flow(place):
                before.setdefault(following, []).append(place)
        waiting = [*self._loops]
        waiting += [place for place, inst in enumerate(self.instructions) if inst.opname == "RETURN_VALUE"]
        found: set[int] = set()
        while waiting:
            place = waiting.pop()
            if place not in found:
                found.add(place)
                waiting.extend(before.get(place, ()))
        return found

    # -- loops ------------------------------------------------------------------------------------------
    def _find_loops(self, places: Iterable[int]) -> None:
        before: dict[int, list[int]] = {}
        for place, nexts in enumerate(self.nexts):
            for following in nexts:
                before.setdefault(following, []).append(place)
        waiting = [frozenset(places)]
        reached = waiting[0]
        while waiting:
            part = waiting.pop()
            for body in _cycles(self.nexts, part):
                entries = [
                    place
                    for place in body
                    if any(origin in reached and origin not in body for origin in before.get(place, ()))
                ]
                loop = Loop(entries[0] if len(entries) == 1 else None, body)
                for place in body:
                    self._loops[place] = loop
                if loop.header is not None:
                    waiting.append(body - {loop.header})


def _reachable(nexts: Sequence[tuple[int, ...]], start: int) -> set[int]:
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        place = waiting.pop()
        if place not in seen:
            seen.add(place)
            waiting.extend(nexts[place])
    return seen


def _cycles(nexts: Sequence[tuple[int, ...]], part: frozenset[int]) -> list[frozenset[int]]:
    """The strongly connected components of `part` in which control can go round.

    Source: Tarjan, "Depth-first search and linear graph algorithms", 1972, without recursion.
    """
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[frozenset[int]] = []
    for root in part:
        if root in number:
            continue
        work = [(root, iter(nexts[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            place, following = work[-1]
            for other in following:
                if other not in part:
                    continue
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(nexts[other])))
                    break
                if other in on_stack:
                    low[place] = min(low[place], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[place])
                if low[place] == number[place]:
                    body: set[int] = set()
                    while place not in body:
                        member = stack.pop()
                        on_stack.discard(member)
                        body.add(member)
                    if len(body) > 1 or place in nexts[place]:
                        found.append(frozenset(body))
    return found
