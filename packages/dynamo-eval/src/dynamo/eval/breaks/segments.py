"""A region of a block as a function: its parameters, what it gives back, and its code.

The function takes the values of the stack above the block's own, and the locals that the region needs; it returns a
tuple of the stack where control left the region, the locals that what follows needs, and the exit's number. An
exception goes through it to the frame, whose handlers see what the region stored: locals that they need are cells
which frame and function share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Final

from dynamo.eval.breaks.regions import Blocks, Region
from dynamo.eval.breaks.resume import derived_code, stack_parameter
from dynamo.eval.bytecode import (
    ExceptionHandler,
    Instruction,
    copy_instructions,
    create,
    create_instruction,
    remove_unreachable,
)

__all__ = ["Exit", "Segment", "share_cells"]

_STORES: Final = frozenset({"STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"})
_AS_CELL: Final = {
    "LOAD_FAST": "LOAD_DEREF",
    "LOAD_FAST_CHECK": "LOAD_DEREF",
    "STORE_FAST": "STORE_DEREF",
    "DELETE_FAST": "DELETE_DEREF",
}


@dataclass(frozen=True, slots=True)
class Exit:
    """One way out of a region: the instruction to go on at, how many values are on the stack, the locals given back."""

    place: int
    operands: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """What the frame needs to know to call a region.

    Attributes:
        nulls: for each value of the stack that the region takes, whether it is a NULL.
        names: the locals that it takes.
        shared: the locals that are cells of the frame.
        checked: the locals of which one may be unbound: then the frame runs the region itself.
    """

    region: Region
    nulls: tuple[bool, ...]
    names: tuple[str, ...]
    shared: tuple[str, ...]
    exits: tuple[Exit, ...]
    checked: tuple[str, ...]

    @staticmethod
    def of(
        blocks: Blocks,
        code: CodeType,
        region: Region,
        nulls: tuple[bool, ...],
        bound: Sequence[frozenset[str] | None],
    ) -> Segment | None:
        """The segment of a region, or None.

        None if an exit is in mid-expression, a local may be unbound there, or a local that has to be shared cannot be a
        cell.

        Args:
            bound: for each instruction, the locals that are bound before it.
        """
        cells = {*code.co_cellvars, *code.co_freevars}
        read, stored, uncertain, unbound = set[str](), set[str](), set[str](), set[str]()
        for place in region.members:
            inst = blocks.instructions[place]
            if inst.opname in _STORES:
                stored.add(str(inst.argval))
                if inst.opname != "STORE_FAST":
                    unbound.add(str(inst.argval))
            elif inst.opname in _AS_CELL:
                read.add(str(inst.argval))
                if inst.argval not in (bound[place] or ()):
                    uncertain.add(str(inst.argval))
        if region.guards and unbound:
            return None
        live = blocks.live[region.start] - cells
        seen_by_handler = blocks.live[region.guards[0][0]] if region.guards else frozenset[str]()
        shared = tuple(sorted((stored & seen_by_handler) - cells))
        if shared and not {
            inst.argval for inst in blocks.instructions if inst.opname == "LOAD_FAST_AND_CLEAR"
        }.isdisjoint(shared):
            return None  # an inlined comprehension would clear the cell away, and then store into none
        names = [name for name in code.co_varnames if name in live & (read | stored)]
        first = code.co_varnames[0] if code.co_argcount else None
        if "__class__" in code.co_freevars and first is not None and first not in names:
            names.append(first)
        exits = []
        for place in region.exits:
            depth = blocks.depth(place)
            if depth is None or not 0 <= depth - region.base <= 1 or blocks.live[place] & unbound:
                return None
            returned = (blocks.live[place] & stored) - cells - set(shared)
            exits.append(Exit(place, depth - region.base, tuple(sorted(returned))))
        if not exits and not region.is_rest:
            return None
        given = tuple(name for name in names if name not in shared)
        if first in given:
            given = (str(first), *(name for name in given if name != first))
        known = bound[region.start] or frozenset[str]()
        checked = [name for name in given if name not in known]
        checked += [name for name in shared if name in uncertain and name in live]
        return Segment(region, nulls, given, shared, tuple(exits), tuple(checked))

    def make(self, blocks: Blocks, code: CodeType) -> CodeType:
        """The code of the function.

        Raises:
            BytecodeError: the region cannot be cut out of the frame.
        """
        body = copy_instructions(blocks.instructions)
        cells = (*code.co_cellvars, *code.co_freevars, *self.shared)
        place_of = {each.place: number for number, each in enumerate(self.exits)}
        stubs = [create.nop() for _ in self.exits]
        handlers: dict[ExceptionHandler, ExceptionHandler | None] = {}
        written: list[Instruction] = []
        members = sorted(self.region.members)
        for place in members:
            inst = body[place]
            following = blocks.flow(place)
            if inst.target is not None:
                target = blocks.index[_original_target(blocks, place)]
                if target in place_of:
                    inst.target = stubs[place_of[target]]
            inst.handler = self._handler(blocks, place, body, handlers)
            written.append(inst)
            falls = place + 1 in following and (inst.target is None or len(following) > 1)
            if falls and (place + 1 not in self.region.members or place + 1 in place_of):
                written.append(create.jump(stubs[place_of[place + 1]]))
                written[-1].positions = inst.positions
        head: list[Instruction] = [create_instruction("RESUME", 0)]
        if cells:
            head.insert(0, create_instruction("COPY_FREE_VARS", len(cells)))
        for place, null in enumerate(self.nulls):
            head.append(create.push_null() if null else create.load_fast(stack_parameter(place)))
        start = body[self.region.start]
        head.append(create.jump(start))
        positions = start.positions
        lineno = positions[0] or code.co_firstlineno
        create.place_at((lineno, lineno, 0, 0), head)
        for number, each in enumerate(self.exits):
            tail = [stubs[number], *(create.load_fast(name) for name in each.names)]
            tail.append(create.load_const(number))
            tail.append(create.build_tuple(each.operands + len(each.names) + 1))
            tail.append(create.return_value())
            written.extend(create.place_at((lineno, lineno, 0, 0), tail))
        share_cells(written, self.shared)
        instructions = head + written
        remove_unreachable(instructions)
        parameters = [
            *self.names,
            *(stack_parameter(place) for place, null in enumerate(self.nulls) if not null),
        ]
        taken = {*parameters, *cells}
        varnames = [*parameters, *(name for name in code.co_varnames if name not in taken)]
        return derived_code(code, instructions, varnames, cells, len(parameters), lineno, self.region.start)

    def _handler(
        self,
        blocks: Blocks,
        place: int,
        body: list[Instruction],
        made: dict[ExceptionHandler, ExceptionHandler | None],
    ) -> ExceptionHandler | None:
        handler = blocks.instructions[place].handler
        if handler is None or len(blocks.guards(place)) <= len(self.region.guards):
            return None
        if handler not in made:
            target, depth, lasti = blocks.key(handler)
            made[handler] = ExceptionHandler(body[target], depth - self.region.base, lasti)
        return made[handler]


def _original_target(blocks: Blocks, place: int) -> Instruction:
    target = blocks.instructions[place].target
    assert target is not None
    return target


def share_cells(instructions: list[Instruction], names: tuple[str, ...] | set[str]) -> None:
    """Turn, in place, fast locals into cells."""
    for inst in instructions:
        if inst.argval in names and inst.opname in _AS_CELL:
            inst.opname = _AS_CELL[inst.opname]
            inst.arg = None
            inst.fuse = False
