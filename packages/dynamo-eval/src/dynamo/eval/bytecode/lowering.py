"""Instructions in the normal form → physical instructions, before their lengths are known.

What was one instruction is joined again, operands become numbers, and the few that are more than one instruction are
written out. Jumps still refer to their targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from .errors import AssembleError
from .instruction import ExceptionHandler, Instruction, Positions
from .names import NameTables
from .versions.facts import KIND_OF, Kind
from .versions.select import FACTS

__all__ = ["Lowered", "lower"]

_OPMAP: Final = FACTS.opmap
_JOIN_STARTS: Final = frozenset(names[0] for names in FACTS.join)
_JOIN_LENGTHS: Final = sorted({len(names) for names in FACTS.join}, reverse=True)
_INVERSE: Final = {
    "POP_JUMP_IF_TRUE": "POP_JUMP_IF_FALSE",
    "POP_JUMP_IF_FALSE": "POP_JUMP_IF_TRUE",
    "POP_JUMP_IF_NONE": "POP_JUMP_IF_NOT_NONE",
    "POP_JUMP_IF_NOT_NONE": "POP_JUMP_IF_NONE",
}
_SYMBOLS: Final[dict[int, dict[str, int]]] = {
    Kind.COMPARE: {symbol: index for index, symbol in enumerate(FACTS.compare_ops)},
    Kind.BINARY: {symbol: index for index, symbol in enumerate(FACTS.binary_ops)},
    Kind.INTRINSIC_1: {symbol: index for index, symbol in enumerate(FACTS.intrinsics_1)},
    Kind.INTRINSIC_2: {symbol: index for index, symbol in enumerate(FACTS.intrinsics_2)},
}
_TOO_LARGE: Final = 1 << 31
# As module constants: reading a member of an enum costs five times as much.
_NUMBER, _CONST, _NAME, _LOCAL, _CELL = map(int, (Kind.NUMBER, Kind.CONST, Kind.NAME, Kind.LOCAL, Kind.CELL))
_COMPOUND: Final = ("CALL", "CALL_KW", "END_FOR")
# What is one physical instruction: opcode and kind of operand; opcode -1 where FACTS.write says how it is written.
_SINGLE: Final = {
    name: (_OPMAP[name] if name not in FACTS.write else -1, int(KIND_OF.get(name, Kind.NUMBER)))
    for name in {*_OPMAP, *FACTS.write}
    if name not in FACTS.jump_names and name not in _COMPOUND
}
# Normal-form name, number operand → opcode, physical operand; memo of FACTS.write, a few thousand pairs at most.
_WRITTEN: Final[dict[tuple[str, int], tuple[int, int]]] = {}


@final
class Lowered:
    """Physical instructions as parallel lists.

    Attributes:
        ops, args: opcode and operand; the operands of jumps are settled later.
        positions, handlers: place and guard of each.
        jumps: index of each jump, and its target (an instruction, or the index of a physical instruction).
        place: index of the physical instruction with which a normal-form instruction begins.
    """

    __slots__ = ("args", "handlers", "jumps", "ops", "place", "positions")

    def __init__(self) -> None:
        self.ops: list[int] = []
        self.args: list[int] = []
        self.positions: list[Positions] = []
        self.handlers: list[ExceptionHandler | None] = []
        self.jumps: list[tuple[int, Instruction | int]] = []
        self.place: dict[Instruction, int] = {}

    def emit(self, name: str, arg: int, origin: Instruction, positions: Positions | None = None) -> None:
        """Append one physical instruction at the place and under the handler of `origin`."""
        op = _OPMAP.get(name)
        if op is None:
            raise AssembleError(f"{name} is not an instruction of this Python (line {origin.lineno})")
        self.append(op, arg, origin, positions or origin.positions)

    def append(self, op: int, arg: int, origin: Instruction, positions: Positions) -> None:
        """As `emit`, the opcode known."""
        if not 0 <= arg < _TOO_LARGE:
            raise AssembleError(f"{origin}: operand {arg} out of range (line {origin.lineno})")
        self.ops.append(op)
        self.args.append(arg)
        self.positions.append(positions)
        self.handlers.append(origin.handler)

    def emit_jump(self, name: str, target: Instruction | int, origin: Instruction) -> None:
        """Append a jump."""
        self.jumps.append((len(self.ops), target))
        self.emit(name, 0, origin)


def lower(tables: NameTables, instructions: Sequence[Instruction]) -> Lowered:
    """Physical instructions for `instructions`; `tables` grow by the names and constants that they lack.

    Raises:
        AssembleError: an unknown instruction, name or symbol; a jump out of the list or in a direction that this
            Python cannot go.
    """
    return _Lowering(tables, instructions).result


@final
class _Lowering:
    def __init__(self, tables: NameTables, instructions: Sequence[Instruction]) -> None:
        self._tables = tables
        self._instructions = instructions
        self._order = {inst: index for index, inst in enumerate(instructions)}
        if len(self._order) != len(instructions):
            raise AssembleError("an instruction stands in the list twice; use copy_instructions")
        self._targets = self._find_targets()
        self.result = Lowered()
        self._run()

    def _find_targets(self) -> set[Instruction]:
        targets = {inst.target for inst in self._instructions if inst.target is not None}
        handlers = {inst.handler for inst in self._instructions if inst.handler is not None}
        targets.update(handler.target for handler in handlers)
        for target in targets:
            if target not in self._order:
                raise AssembleError(f"a jump or handler goes to {target} which is not in the list")
        return targets

    def _run(self) -> None:
        result, operand = self.result, self._operand
        ops, place = result.ops, result.place
        add_op, add_arg = ops.append, result.args.append
        add_place, add_handler = result.positions.append, result.handlers.append
        tables, written = self._tables.by_kind(), _WRITTEN
        skip = 0
        for index, inst in enumerate(self._instructions):
            if skip:
                skip -= 1
                place[inst] = len(ops) - 1
                continue
            place[inst] = len(ops)
            name = inst.opname
            if inst.fuse and name in _JOIN_STARTS:
                skip = self._join(index)
                if skip:
                    continue
            single = _SINGLE.get(name)
            if single is None:
                self._special(inst, index)
                continue
            op, kind = single
            arg = inst.arg
            if not kind:
                arg = arg or 0
            else:
                # Unedited code has its tables' own objects as operands: then the decoded index still holds.
                table = tables[kind] if kind < len(tables) else None
                if table is None or arg is None or not 0 <= arg < len(table) or table[arg] is not inst.argval:
                    arg = operand(inst, kind)
            if op < 0:
                op, arg = written.get((name, arg)) or _write(name, arg)
            if not 0 <= arg < _TOO_LARGE:
                raise AssembleError(f"{inst}: operand {arg} out of range (line {inst.lineno})")
            add_op(op)
            add_arg(arg)
            add_place(inst.positions)
            add_handler(inst.handler)

    def _special(self, inst: Instruction, index: int) -> None:
        """Write an instruction that is a jump or more than one physical instruction."""
        if inst.target is not None:
            self._jump(inst, inst.target, forward=self._order[inst.target] > index)
        elif inst.opname in _COMPOUND:
            _COMPOUND_WRITERS[inst.opname](self, inst)
        else:
            raise AssembleError(f"{inst.opname} is not an instruction of this Python (line {inst.lineno})")

    def _join(self, index: int) -> int:
        """Write a run of instructions as one, where that is possible; returns how many more than one it takes."""
        for length in _JOIN_LENGTHS:
            run = self._instructions[index : index + length]
            join = FACTS.join.get(tuple([inst.opname for inst in run]))
            if join is None or not all(inst.fuse for inst in run[:-1]):
                continue
            first = run[0]
            if any(inst in self._targets or inst.handler is not first.handler for inst in run[1:]):
                continue
            physical = join([self._operand(inst, KIND_OF.get(inst.opname, Kind.NUMBER)) for inst in run])
            if physical is not None:
                self.result.emit(*physical, first)
                return length - 1
        return 0

    def _jump(self, inst: Instruction, target: Instruction, *, forward: bool) -> None:
        name, result = inst.opname, self.result
        physical = FACTS.jump_names[name][not forward] if name in FACTS.jump_names else ""
        if physical:
            if name == "FOR_ITER" and FACTS.for_iter_needs_end_for and target.opname != "END_FOR":
                raise AssembleError(f"FOR_ITER must go to END_FOR, not to {target} (line {inst.lineno})")
            result.emit_jump(physical, target, inst)
        elif name in _INVERSE and not forward:
            # No conditional jump backwards: jump over a jump (Python/flowgraph.c does the same on 3.12).
            result.emit_jump(FACTS.jump_names[_INVERSE[name]][0], len(result.ops) + 2, inst)
            result.emit_jump(FACTS.jump_names["JUMP"][1], target, inst)
        else:
            direction = "forward" if forward else "backward"
            raise AssembleError(f"{name} cannot go {direction} on this Python (line {inst.lineno})")

    def _operand(self, inst: Instruction, kind: int) -> int:
        """Number operand of an instruction that is no jump."""
        tables, value = self._tables, inst.argval
        if kind == _LOCAL:
            return tables.local(value, inst.arg)
        if kind == _CONST:
            return tables.const(value, inst.arg)
        if kind == _NAME:
            return tables.name(value, inst.arg)
        if kind == _NUMBER:
            return inst.arg or 0
        if kind == _CELL:
            return tables.cell(value, inst.arg)
        symbols = _SYMBOLS.get(kind, {})
        index = symbols.get(value) if isinstance(value, str) else inst.arg
        if index is None:
            raise AssembleError(f"{inst.opname} does not know {value!r} (line {inst.lineno})")
        return index

    # -- instructions that are more than one

    def call(self, inst: Instruction) -> None:
        arg = inst.arg or 0
        if FACTS.calls_with_precall:
            self.result.emit("PRECALL", arg, inst)
        self.result.emit("CALL", arg, inst)

    def call_kw(self, inst: Instruction) -> None:
        if not isinstance(inst.argval, tuple):
            raise AssembleError(f"CALL_KW needs the tuple of keyword names as argval (line {inst.lineno})")
        keywords = self._tables.const(inst.argval, None)
        if FACTS.keywords_on_stack:
            self.result.emit("LOAD_CONST", keywords, inst, inst.names_positions)
            self.result.emit("CALL_KW", inst.arg or 0, inst)
        else:
            self.result.emit("KW_NAMES", keywords, inst, inst.names_positions)
            self.call(inst)

    def end_for(self, inst: Instruction) -> None:
        self.result.emit("END_FOR" if FACTS.for_iter_needs_end_for else "NOP", 0, inst)
        if FACTS.end_for_is_pair:
            self.result.emit("POP_TOP", 0, inst)


def _write(name: str, arg: int) -> tuple[int, int]:
    """Opcode and physical operand of a normal-form instruction, remembered."""
    physical, operand = FACTS.write[name](arg)
    result = _WRITTEN[name, arg] = _OPMAP[physical], operand
    return result


_COMPOUND_WRITERS: Final = {
    "CALL": _Lowering.call,
    "CALL_KW": _Lowering.call_kw,
    "END_FOR": _Lowering.end_for,
}
