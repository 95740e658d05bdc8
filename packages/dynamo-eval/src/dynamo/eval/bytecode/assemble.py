"""Instructions in the normal form → code object.

Steps: join what was one instruction and number the operands; fix the lengths (a longer jump may need EXTENDED_ARG,
which lengthens others: repeated until nothing grows); write bytes, line table and exception table; take the larger
of the template's stack size and what the instructions need.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Final, NamedTuple, final

from .errors import AssembleError
from .exceptions import TableEntry, encode_exception_table
from .instruction import ExceptionHandler, Instruction, Positions
from .locations import encode_locations
from .names import NameTables
from .stack_depth import DepthMap, stack_depths
from .versions.facts import KIND_OF, Kind
from .versions.select import FACTS

__all__ = ["assemble"]

_OPMAP: Final = FACTS.opmap
_EXTENDED_ARG: Final = _OPMAP["EXTENDED_ARG"]
_JOIN_STARTS: Final = frozenset(names[0] for names in FACTS.join)
_JOIN_LENGTHS: Final = sorted({len(names) for names in FACTS.join}, reverse=True)
_INVERSE: Final = {
    "POP_JUMP_IF_TRUE": "POP_JUMP_IF_FALSE",
    "POP_JUMP_IF_FALSE": "POP_JUMP_IF_TRUE",
    "POP_JUMP_IF_NONE": "POP_JUMP_IF_NOT_NONE",
    "POP_JUMP_IF_NOT_NONE": "POP_JUMP_IF_NONE",
}
_SYMBOL_INDEX: Final = {
    Kind.COMPARE: {symbol: index for index, symbol in enumerate(FACTS.compare_ops)},
    Kind.BINARY: {symbol: index for index, symbol in enumerate(FACTS.binary_ops)},
    Kind.INTRINSIC_1: {symbol: index for index, symbol in enumerate(FACTS.intrinsics_1)},
    Kind.INTRINSIC_2: {symbol: index for index, symbol in enumerate(FACTS.intrinsics_2)},
}


class _Unit(NamedTuple):
    """One physical instruction before its length is known.

    `target` is where a jump goes; a jump over the next instruction has none and minus the index of its goal as `arg`.
    """

    op: int
    arg: int
    origin: Instruction
    target: Instruction | None
    positions: Positions


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
    writer = _Writer(tables, instructions)
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
    """The physical instructions of one code object."""

    def __init__(self, tables: NameTables, instructions: Sequence[Instruction]) -> None:
        self._tables = tables
        self._instructions = instructions
        self._units: list[_Unit] = []
        self._place: dict[Instruction, int] = {}
        self._lower()
        self._starts, self._args = self._layout()

    # -- normal form to physical instructions

    def _lower(self) -> None:
        instructions, place, units = self._instructions, self._place, self._units
        order = {inst: index for index, inst in enumerate(instructions)}
        if len(order) != len(instructions):
            raise AssembleError("an instruction stands in the list twice; use copy_instructions")
        targets = {inst.target for inst in instructions if inst.target is not None}
        targets |= {inst.handler.target for inst in instructions if inst.handler is not None}
        for target in targets:
            if target not in order:
                raise AssembleError(f"a jump or handler goes to {target} which is not in the list")
        index, count = 0, len(instructions)
        while index < count:
            inst = instructions[index]
            place[inst] = len(units)
            if inst.fuse and inst.opname in _JOIN_STARTS:
                length = self._join(index, targets)
                if length:
                    for joined in instructions[index + 1 : index + length]:
                        place[joined] = len(units) - 1
                    index += length
                    continue
            self._lower_one(inst, index, order)
            index += 1

    def _join(self, index: int, targets: set[Instruction]) -> int:
        """Write a run of instructions as one, where that is possible; returns the length of the run."""
        for length in _JOIN_LENGTHS:
            run = self._instructions[index : index + length]
            join = FACTS.join.get(tuple([inst.opname for inst in run]))
            if join is None or not all(inst.fuse for inst in run[:-1]):
                continue
            first = run[0]
            if any(inst in targets or inst.handler is not first.handler for inst in run[1:]):
                continue
            physical = join([self._operand(inst) for inst in run])
            if physical is not None:
                self._units.append(_Unit(_OPMAP[physical[0]], physical[1], first, None, first.positions))
                return length
        return 0

    def _lower_one(self, inst: Instruction, index: int, order: dict[Instruction, int]) -> None:
        name = inst.opname
        special = _SPECIAL.get(name)
        if special is not None:
            special(self, inst)
        elif inst.target is not None:
            self._lower_jump(inst, inst.target, forward=order[inst.target] > index)
        else:
            arg = self._operand(inst)
            write = FACTS.write.get(name)
            if write is not None:
                name, arg = write(arg)
            self._emit(name, arg, inst)

    def _emit(
        self,
        name: str,
        arg: int,
        origin: Instruction,
        target: Instruction | None = None,
        positions: Positions | None = None,
    ) -> None:
        op = _OPMAP.get(name)
        if op is None:
            raise AssembleError(f"{name} is not an instruction of this Python (line {origin.lineno})")
        if not 0 <= arg < 1 << 31:
            raise AssembleError(f"{origin}: operand {arg} out of range")
        self._units.append(_Unit(op, arg, origin, target, positions or origin.positions))

    def _lower_jump(self, inst: Instruction, target: Instruction, *, forward: bool) -> None:
        name = inst.opname
        physical = FACTS.jump_names[name][not forward] if name in FACTS.jump_names else ""
        if physical:
            if name == "FOR_ITER" and FACTS.for_iter_needs_end_for and target.opname != "END_FOR":
                raise AssembleError(f"FOR_ITER must go to END_FOR, not to {target} (line {inst.lineno})")
            self._emit(physical, 0, inst, target)
        elif name in _INVERSE and not forward:
            # No conditional jump backwards: jump over a jump (Python/flowgraph.c does the same on 3.12).
            skip = len(self._units) + 2
            self._units.append(
                _Unit(_OPMAP[FACTS.jump_names[_INVERSE[name]][0]], -skip, inst, None, inst.positions)
            )
            self._emit("JUMP_BACKWARD", 0, inst, target)
        else:
            direction = "forward" if forward else "backward"
            raise AssembleError(f"{name} cannot go {direction} on this Python (line {inst.lineno})")

    def _operand(self, inst: Instruction) -> int:
        """Number operand of an instruction that is no jump."""
        kind = KIND_OF.get(inst.opname)
        if kind is None:
            return inst.arg or 0
        tables, value = self._tables, inst.argval
        if kind == Kind.CONST:
            return tables.const(value, inst.arg)
        if kind == Kind.NAME:
            return tables.name(value, inst.arg)
        if kind == Kind.LOCAL:
            return tables.local(value)
        if kind == Kind.CELL:
            return tables.cell(value)
        index = (
            _SYMBOL_INDEX[kind].get(value) if kind in _SYMBOL_INDEX and isinstance(value, str) else inst.arg
        )
        if index is None:
            raise AssembleError(f"{inst.opname} does not know {value!r} (line {inst.lineno})")
        return index

    # -- lengths and bytes

    def _layout(self) -> tuple[list[int], list[int]]:
        """Start of each physical instruction in code units (one more at the end), and all operands."""
        units, caches = self._units, FACTS.caches
        args = [unit.arg for unit in units]
        fixed = [1 + caches[unit.op] for unit in units]
        widths = [_extra(arg) if arg > 255 else 0 for arg in args]
        jumps = [
            (index, self._place[unit.target] if unit.target is not None else -unit.arg)
            for index, unit in enumerate(units)
            if unit.target is not None or unit.arg < 0
        ]
        while True:
            starts, at = [], 0
            for size, width in zip(fixed, widths, strict=True):
                starts.append(at)
                at += size + width
            starts.append(at)
            grown = False
            for index, target in jumps:
                distance = abs(starts[target] - starts[index + 1])
                args[index] = distance
                width = _extra(distance)
                if width > widths[index]:
                    widths[index] = width
                    grown = True
            if not grown:
                self._widths = widths
                return starts, args

    def code(self) -> bytes:
        """`co_code`."""
        out = bytearray()
        caches = FACTS.caches
        for unit, arg, width in zip(self._units, self._args, self._widths, strict=True):
            while width:
                out.append(_EXTENDED_ARG)
                out.append(arg >> 8 * width & 255)
                width -= 1
            out.append(unit.op)
            out.append(arg & 255)
            count = caches[unit.op]
            if count:
                out += bytes(2 * count)
        return bytes(out)

    def line_table(self, first_line: int) -> bytes:
        """`co_linetable`."""
        starts = self._starts
        runs: list[tuple[int, Positions]] = []
        for index, unit in enumerate(self._units):
            size = starts[index + 1] - starts[index]
            positions = unit.positions
            if FACTS.merges_locations and runs and runs[-1][1] == positions:
                runs[-1] = (runs[-1][0] + size, positions)
            else:
                runs.append((size, positions))
        return encode_locations(first_line, runs)

    def exception_table(self, depths: DepthMap) -> bytes:
        """`co_exceptiontable`."""
        entries: list[TableEntry] = []
        current: ExceptionHandler | None = None
        start = 0
        for index, unit in enumerate(self._units):
            handler = unit.origin.handler
            if handler is current:
                continue
            if current is not None:
                entries.append(self._entry(start, index, current, depths))
            current, start = handler, index
        if current is not None:
            entries.append(self._entry(start, len(self._units), current, depths))
        return encode_exception_table(entries)

    def _entry(self, start: int, end: int, handler: ExceptionHandler, depths: DepthMap) -> TableEntry:
        starts = self._starts
        depth = depths.handler_depth(handler) if handler.depth is None else handler.depth
        target = starts[self._place[handler.target]]
        return TableEntry(starts[start], starts[end], target, depth, handler.lasti)

    # -- instructions that are more than one

    def _call(self, inst: Instruction) -> None:
        arg = inst.arg or 0
        if FACTS.calls_with_precall:
            self._emit("PRECALL", arg, inst)
        self._emit("CALL", arg, inst)

    def _call_kw(self, inst: Instruction) -> None:
        keywords = self._tables.const(inst.argval, None)
        if not isinstance(inst.argval, tuple):
            raise AssembleError(f"CALL_KW needs the tuple of keyword names as argval (line {inst.lineno})")
        first = "LOAD_CONST" if FACTS.keywords_on_stack else "KW_NAMES"
        self._emit(first, keywords, inst, positions=inst.names_positions)
        if FACTS.keywords_on_stack:
            self._emit("CALL_KW", inst.arg or 0, inst)
        else:
            self._call(inst)

    def _end_for(self, inst: Instruction) -> None:
        self._emit("END_FOR" if FACTS.for_iter_needs_end_for else "NOP", 0, inst)
        if FACTS.end_for_is_pair:
            self._emit("POP_TOP", 0, inst)


_SPECIAL: Final = {"CALL": _Writer._call, "CALL_KW": _Writer._call_kw, "END_FOR": _Writer._end_for}


def _extra(arg: int) -> int:
    """How many EXTENDED_ARG an operand needs."""
    return 0 if arg < 256 else (arg.bit_length() - 1) // 8
