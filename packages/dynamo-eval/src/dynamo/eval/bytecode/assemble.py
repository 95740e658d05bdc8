"""Instructions in the normal form → code object.

Steps: join what was one instruction and number the operands; fix the lengths (a longer jump may need EXTENDED_ARG,
which lengthens others: repeated until nothing grows); write bytes, line table and exception table; take the larger
of the template's stack size and what the instructions need.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from types import CodeType
from typing import Final, final

from .exceptions import TableEntry, encode_exception_table
from .instruction import ExceptionHandler, Instruction, Positions
from .locations import encode_locations
from .lowering import Lowered, lower
from .names import NameTables
from .stack_depth import DepthMap, stack_depths
from .versions.select import FACTS

__all__ = ["assemble"]

_EXTENDED_ARG: Final = FACTS.opmap["EXTENDED_ARG"]
_ROUNDS: Final = 16


def assemble(
    template: CodeType,
    instructions: Sequence[Instruction],
    *,
    names: Sequence[str] | None = None,
    varnames: Sequence[str] | None = None,
    cellvars: Sequence[str] | None = None,
    freevars: Sequence[str] | None = None,
    consts: Sequence[object] | None = None,
    argcount: int | None = None,
    posonlyargcount: int | None = None,
    kwonlyargcount: int | None = None,
    flags: int | None = None,
    name: str | None = None,
    qualname: str | None = None,
    filename: str | None = None,
    firstlineno: int | None = None,
    stacksize: int | None = None,
) -> CodeType:
    """Write `instructions` as a code object; whatever is not given is as in `template`.

    Names and constants that the instructions mention and the tables lack are appended; locals, cells and free
    variables must be given, since they decide how the function is called. When `cellvars` or `freevars` are given,
    MAKE_CELL and COPY_FREE_VARS at the head are made to agree with them. Handlers whose depth is None get it.

    Args:
        stacksize: at least this much stack; the template's by default.

    Raises:
        AssembleError: an unknown instruction or variable, a jump out of the list, or one that this Python lacks.
        StackDepthError: paths with different stack depths meet.
    """
    tables = NameTables(
        template.co_names if names is None else names,
        template.co_varnames if varnames is None else varnames,
        template.co_cellvars if cellvars is None else cellvars,
        template.co_freevars if freevars is None else freevars,
        template.co_consts if consts is None else consts,
    )
    if cellvars is not None or freevars is not None or varnames is not None:
        instructions = closure_prologue(instructions, tables.cellvars, tables.freevars)
    depths = stack_depths(instructions)
    writer = _Writer(lower(tables, instructions))
    first_line = template.co_firstlineno if firstlineno is None else firstlineno
    return template.replace(
        co_code=writer.code(),
        co_linetable=writer.line_table(first_line),
        co_exceptiontable=writer.exception_table(depths),
        co_stacksize=max(template.co_stacksize if stacksize is None else stacksize, depths.maximum),
        co_names=tuple(tables.names),
        co_varnames=tables.varnames,
        co_nlocals=len(tables.varnames),
        co_cellvars=tables.cellvars,
        co_freevars=tables.freevars,
        co_consts=tuple(tables.consts),
        co_argcount=template.co_argcount if argcount is None else argcount,
        co_posonlyargcount=template.co_posonlyargcount if posonlyargcount is None else posonlyargcount,
        co_kwonlyargcount=template.co_kwonlyargcount if kwonlyargcount is None else kwonlyargcount,
        co_flags=template.co_flags if flags is None else flags,
        co_name=template.co_name if name is None else name,
        co_qualname=template.co_qualname if qualname is None else qualname,
        co_filename=template.co_filename if filename is None else filename,
        co_firstlineno=first_line,
    )


def closure_prologue(
    instructions: Sequence[Instruction], cellvars: Sequence[str], freevars: Sequence[str]
) -> list[Instruction]:
    """The instructions with a head that makes exactly these cells and copies exactly these free variables.

    Unchanged where it already does. A MAKE_CELL elsewhere (an inlined comprehension of 3.12) stays.
    """
    body = list(instructions)
    count = 0
    while count < len(body) and body[count].opname in ("MAKE_CELL", "COPY_FREE_VARS"):
        count += 1
    head = body[:count]
    elsewhere = {inst.argval for inst in body[count:] if inst.opname == "MAKE_CELL"}
    made = {inst.argval: inst for inst in head if inst.opname == "MAKE_CELL"}
    copies = [inst for inst in head if inst.opname == "COPY_FREE_VARS"]
    wanted = [name for name in cellvars if name in made or name not in elsewhere]
    agree = set(made) == set(wanted) and [inst.arg for inst in copies] == (
        [len(freevars)] if freevars else []
    )
    if agree:
        return body
    prologue = [Instruction("COPY_FREE_VARS", len(freevars))] if freevars else []
    prologue += [made.get(name) or Instruction("MAKE_CELL", argval=name) for name in wanted]
    return prologue + body[count:]


@final
class _Writer:
    """Lengths, places and bytes of lowered instructions."""

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._args = lowered.args
        self._widths = [0] * len(lowered.ops)
        self._starts = self._layout()

    def _layout(self) -> list[int]:
        """Start of each physical instruction in code units, one more for the end; settles the jumps' operands."""
        caches, args, widths = FACTS.caches, self._args, self._widths
        sizes = [1 + caches[op] for op in self._lowered.ops]
        for index, arg in enumerate(args):
            if arg > 255:
                widths[index] = _extra(arg)
                sizes[index] += widths[index]
        place = self._lowered.place
        jumps = [
            (index, place[target] if isinstance(target, Instruction) else target)
            for index, target in self._lowered.jumps
        ]
        if FACTS.jumps_shrink:
            self._guess(jumps, sizes)
        while True:
            starts = [0, *accumulate(sizes)]
            grown = False
            for index, target in jumps:
                distance = args[index] = abs(starts[target] - starts[index + 1])
                if distance > 255 and (width := _extra(distance)) > widths[index]:
                    sizes[index] += width - widths[index]
                    widths[index] = width
                    grown = True
            if not grown:
                return starts

    def _guess(self, jumps: list[tuple[int, int]], sizes: list[int]) -> None:
        """Widths of jumps as 3.13 finds them: from the numbers of their targets on, each round as long as needed.

        Two solutions may exist, since an EXTENDED_ARG lengthens the jump over it; from above the larger one is found.
        CPython goes on until nothing changes; after some rounds we leave the rest to the method that always ends.
        Source: CPython 3.13, Python/assemble.c (resolve_jump_offsets).
        """
        widths = self._widths
        changed = False
        for index, target in jumps:
            if target > 255:
                widths[index] = _extra(target)
                sizes[index] += widths[index]
                changed = True
        for _ in range(_ROUNDS):
            if not changed:
                break
            starts = [0, *accumulate(sizes)]
            changed = False
            for index, target in jumps:
                width = _extra(abs(starts[target] - starts[index + 1]))
                if width != widths[index]:
                    sizes[index] += width - widths[index]
                    widths[index] = width
                    changed = True

    def code(self) -> bytes:
        """`co_code`."""
        out = bytearray()
        tails = _TAILS
        for op, arg, width in zip(self._lowered.ops, self._args, self._widths, strict=True):
            while width:
                out += bytes((_EXTENDED_ARG, arg >> 8 * width & 255))
                width -= 1
            out.append(op)
            out.append(arg & 255)
            tail = tails[op]
            if tail:
                out += tail
        return bytes(out)

    def line_table(self, first_line: int) -> bytes:
        """`co_linetable`."""
        starts, merges = self._starts, FACTS.merges_locations
        runs: list[tuple[int, Positions]] = []
        begin = 0
        current: Positions | None = None
        for start, positions in zip(starts, self._lowered.positions, strict=False):
            if current is not None and (positions != current or not merges):
                runs.append((start - begin, current))
                begin = start
            current = positions
        if current is not None:
            runs.append((starts[-1] - begin, current))
        return encode_locations(first_line, runs)

    def exception_table(self, depths: DepthMap) -> bytes:
        """`co_exceptiontable`."""
        entries: list[TableEntry] = []
        current: ExceptionHandler | None = None
        start = 0
        for index, handler in enumerate(self._lowered.handlers):
            if handler is current:
                continue
            if current is not None:
                entries.append(self._entry(start, index, current, depths))
            current, start = handler, index
        if current is not None:
            entries.append(self._entry(start, len(self._lowered.ops), current, depths))
        return encode_exception_table(entries)

    def _entry(self, start: int, end: int, handler: ExceptionHandler, depths: DepthMap) -> TableEntry:
        starts = self._starts
        target = starts[self._lowered.place[handler.target]]
        return TableEntry(starts[start], starts[end], target, depths.handler_depth(handler), handler.lasti)


_TAILS: Final = [bytes(2 * count) for count in FACTS.caches]


def _extra(arg: int) -> int:
    """How many EXTENDED_ARG an operand needs."""
    return (arg.bit_length() - 1) // 8 if arg > 255 else 0
