"""After a break inside a loop, ``try`` or ``with``: the frame goes on in a copy of its own code, whose regions are calls.

The blocks stay in the frame, which keeps their iterators, ``__exit__`` methods and handlers; what lies between breaks
is cut out as functions (`segments`), which are captured like any other. A loop that breaks in each turn calls the
same functions each time: nothing nests, and the number of captures does not grow with the turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from types import CodeType
from typing import Final

from dynamo.eval.breaks.regions import Blocks
from dynamo.eval.breaks.resume import ResumePoint, load_rest, resume_function
from dynamo.eval.breaks.segments import Segment
from dynamo.eval.breaks.split import operand_count, pushes
from dynamo.eval.bytecode import (
    BytecodeError,
    Instruction,
    bound_before,
    copy_instructions,
    create,
    reads_unbound_cell,
)
from dynamo.eval.resets import on_reset

__all__ = ["Driver"]

#: where no region begins: these only move control or the values of a block
_PLAIN: Final = frozenset(
    "JUMP JUMP_NO_INTERRUPT NOP RESUME END_FOR POP_TOP RETURN_VALUE POP_EXCEPT RERAISE PUSH_EXC_INFO COPY SWAP "
    "MAKE_CELL COPY_FREE_VARS CHECK_EXC_MATCH WITH_EXCEPT_START RAISE_VARARGS".split()
)
#: code that looks at the frame's own variables by name
_READERS: Final = frozenset({"locals", "vars", "eval", "exec", "dir", "_getframe", "currentframe"})
_MOST: Final = 40

_KEPT: dict[tuple[int, int, tuple[bool, ...]], tuple[CodeType, CodeType]] = {}
_CAPACITY: Final = 4096


def segment_code(blocks: Blocks, code: CodeType, segment: Segment) -> CodeType:
    """The code of a segment; the same one of the same code gives the same object."""
    key = (id(code), segment.region.start, segment.nulls)
    known = _KEPT.get(key)
    if known is not None and known[0] is code:
        return known[1]
    made = segment.make(blocks, code)
    if len(_KEPT) >= _CAPACITY:
        _KEPT.pop(next(iter(_KEPT)))
    _KEPT[key] = code, made
    return made


@on_reset
def forget_segments() -> None:
    """Drop the code of all segments; new ones are made when needed."""
    _KEPT.clear()


class Driver:
    """A copy of a frame's code to go on in from one instruction.

    Args:
        code: the frame's code.
        instructions: decoded; they stay as they are.
        start: the instruction to go on at.
        bound: fast locals that are bound then.
        nulls: for each value on the stack then, whether it is a NULL.

    Attributes:
        instructions: the copy, calls of segments included.
        entry: where to jump to.
        shared: locals that have to be cells of the frame.
        names: extra fast locals.
    """

    def __init__(
        self,
        code: CodeType,
        instructions: list[Instruction],
        start: int,
        bound: Iterable[str],
        nulls: tuple[bool, ...],
    ) -> None:
        self.code = code
        self.copies = copy_instructions(instructions)
        self.entry = self.copies[start]
        self.instructions: list[Instruction] = list(self.copies)
        self.shared: set[str] = set()
        self.names: list[str] = []
        self._calls: dict[int, list[Instruction]] = {}
        self._plain: set[Instruction] = set()
        if _READERS & {*code.co_names} or reads_unbound_cell(instructions, code):
            return
        self.blocks = Blocks(instructions)
        ahead = create.jump(self.entry)
        self._bound = bound_before([ahead, *self.copies], bound)[1:]
        self._place(start, nulls)
        self._insert()

    @property
    def segments(self) -> int:
        """How many calls of segments there are."""
        return len(self._calls)

    def _place(self, start: int, nulls: tuple[bool, ...]) -> None:
        blocks = self.blocks
        inst = blocks.instructions[start]
        count = operand_count(inst)
        after: tuple[bool, ...] | None = None
        if count is not None:
            after = nulls[: len(nulls) - count] + (False,) * pushes(inst)
        known = {place: after for place in blocks.flow(start)} if after is not None else {}
        waiting = deque(blocks.nexts[start])
        seen = {start} if blocks.loop(start) is None else set[int]()
        tries = 0
        while waiting and tries < _MOST:
            place = waiting.popleft()
            if place in seen:
                continue
            seen.add(place)
            segment = None
            if blocks.instructions[place].opname not in _PLAIN and place != start:
                tries += 1
                segment = self._try(place, known.get(place))
            if segment is None:
                waiting.extend(blocks.nexts[place])
                continue
            waiting.extend(each.place for each in segment.exits)
            handled = blocks.handler_place(place)
            if handled is not None:
                waiting.append(handled)

    def _try(self, place: int, nulls: tuple[bool, ...] | None) -> Segment | None:
        blocks, bound = self.blocks, self._bound[place]
        depth, base = blocks.depth(place), blocks.base(place)
        if bound is None or depth is None or base is None or depth < base:
            return None
        if nulls is not None and len(nulls) == depth:
            operands = nulls[base:]
        elif depth == base:
            operands = ()
        else:
            return None
        region = blocks.region(place)
        segment = None if region is None else Segment.of(blocks, self.code, region, operands, self._bound)
        if segment is None:
            return None
        try:
            if segment.region.is_rest:
                code = resume_function(self.code, ResumePoint(place, operands, segment.names))
            else:
                code = segment_code(blocks, self.code, segment)
        except BytecodeError:
            return None
        self.shared.update(segment.shared)
        self._calls[place] = self._checks(place, segment, self._call(segment, code))
        return segment

    # -- the calls --------------------------------------------------------------------------------------
    def _name(self, what: str) -> str:
        name = f"___{what}_{len(self.names)}"
        self.names.append(name)
        return name

    def _call(self, segment: Segment, code: CodeType) -> list[Instruction]:
        """Instructions that stand in for a region: move the operands away, call, put back what it gave, go on."""
        written: list[Instruction] = []
        operands = [self._name("operand") for _ in segment.nulls]
        written += [create.store_fast(name) for name in reversed(operands)]
        written += load_rest(code)
        arguments = [
            *segment.names,
            *(name for name, null in zip(operands, segment.nulls, strict=True) if not null),
        ]
        written += [create.load_fast(name) for name in arguments]
        written.append(create.call(len(arguments) + bool(code.co_freevars)))
        if segment.region.is_rest:
            return [*written, create.return_value()]
        result = self._name("left")
        written.append(create.store_fast(result))
        for number, each in enumerate(segment.exits):
            other = create.nop()
            if number + 1 < len(segment.exits):
                written += [*_item(result, -1), create.load_const(number), create.compare_op("==")]
                written += create.pop_jump_if_false(other)
            for place in range(each.operands):
                written += _item(result, place)
            for place, name in enumerate(each.names, each.operands):
                written += [*_item(result, place), create.store_fast(name)]
            written += [create.load_const(None), create.store_fast(result)]
            written += [create.jump(self.copies[each.place]), other]
        return written[:-1]

    def _checks(self, place: int, segment: Segment, call: list[Instruction]) -> list[Instruction]:
        """Before the call: read the locals that may be unbound, and go on in the frame itself if one is."""
        if not segment.checked:
            return call
        caught = create.create_instruction("PUSH_EXC_INFO")
        reads: list[Instruction] = []
        for name in segment.checked:
            reads += [create.load_fast_check(name), create.pop_top()]
        create.guard_with(caught, reads)
        plain = create.jump(self.copies[place])
        self._plain.add(plain)
        after = [caught, create.pop_top(), create.create_instruction("POP_EXCEPT"), plain]
        return [*reads, *call, *after]

    def _insert(self) -> None:
        """Put the calls before the instructions that they stand in for, and send all jumps there to them."""
        firsts = {self.copies[place]: call[0] for place, call in self._calls.items()}
        entry = create.jump(self.entry)
        self.instructions = [entry]
        for place, copy in enumerate(self.copies):
            call = self._calls.get(place)
            if call is not None:
                create.place_at(copy.positions, call)
                for inst in call:
                    inst.handler = inst.handler or copy.handler
                self.instructions += call
            self.instructions.append(copy)
        for inst in self.instructions:
            if inst.target is not None and inst is not entry and inst not in self._plain:
                inst.target = firsts.get(inst.target, inst.target)
            if inst.handler is not None:
                inst.handler.target = firsts.get(inst.handler.target, inst.handler.target)
        self.entry = entry


def _item(name: str, place: int) -> list[Instruction]:
    return [create.load_fast(name), create.load_const(place), create.binary_subscr()]
