"""Code object → instructions in the normal form."""

from __future__ import annotations

from types import CodeType
from typing import Final

from .errors import DecodeError
from .exceptions import decode_exception_table
from .instruction import NO_POSITIONS, ExceptionHandler, Instruction, Positions
from .names import localsplus_names
from .versions.facts import KIND_OF, Kind
from .versions.select import FACTS

__all__ = ["decode"]

_EXTENDED_ARG: Final = FACTS.opmap["EXTENDED_ARG"]
_NAMES: Final = {number: name for name, number in FACTS.opmap.items()}
_NORMAL_JUMPS: Final = {
    physical: (normal, -1 if backward else 1)
    for normal, pair in FACTS.jump_names.items()
    for backward, physical in enumerate(pair)
    if physical
}
# (normal-form name, number operand or None, kind, direction of a jump) for each (opcode, operand) met so far; at most
# some tens of thousands of small tuples for a whole process.
_Step = tuple[str, int | None, Kind, int]
_STEPS: Final[dict[int, tuple[_Step, ...]]] = {}

_SKIPPED: Final = {FACTS.opmap[name] for name in ("PRECALL",) if name in FACTS.opmap}
_KW_NAMES: Final = FACTS.opmap.get("KW_NAMES", -1)
_CALL: Final = FACTS.opmap["CALL"]
_CALL_KW: Final = FACTS.opmap.get("CALL_KW", -1)
_END_FOR: Final = FACTS.opmap["END_FOR"] if FACTS.end_for_is_pair else -1
_POP_TOP: Final = FACTS.opmap["POP_TOP"]


def _steps(op: int, arg: int) -> tuple[_Step, ...]:
    key = arg << 8 | op
    steps = _STEPS.get(key)
    if steps is None:
        name = _NAMES.get(op)
        if name is None:
            raise DecodeError(f"opcode {op} is not an instruction of this Python")
        if name in _NORMAL_JUMPS:
            normal, direction = _NORMAL_JUMPS[name]
            steps = ((normal, arg, Kind.JUMP, direction),)
        elif name in FACTS.expand:
            steps = tuple(
                (
                    step,
                    value if KIND_OF.get(step) or _takes_number(step) else None,
                    KIND_OF.get(step, Kind.NUMBER),
                    0,
                )
                for step, value in FACTS.expand[name](arg)
            )
        else:
            steps = ((name, arg if FACTS.has_arg[op] else None, KIND_OF.get(name, Kind.NUMBER), 0),)
        _STEPS[key] = steps
    return steps


def _takes_number(name: str) -> bool:
    """Whether a step of an expansion has a number operand, though it may be no instruction of this Python."""
    number = FACTS.opmap.get(name)
    return name == "CONVERT_VALUE" if number is None else FACTS.has_arg[number]


def decode(code: CodeType) -> list[Instruction]:
    """Instructions of `code` in the normal form (described in `dynamo.eval.bytecode`).

    Complexity: linear, about a microsecond per instruction.

    Raises:
        DecodeError: bytes that no compiler of this Python writes.
    """
    raw = code.co_code
    units = len(raw) // 2
    caches = FACTS.caches
    positions: list[Positions] = list(code.co_positions())
    names, consts, plus = code.co_names, code.co_consts, localsplus_names(code)
    cells = _cell_slots(code)
    result: list[Instruction] = []
    append = result.append
    at: dict[int, Instruction] = {}
    jumps: list[tuple[Instruction, int]] = []
    keywords: object = None
    names_place = NO_POSITIONS
    unit = high = 0
    start = -1
    while unit < units:
        op = raw[2 * unit]
        arg = high | raw[2 * unit + 1]
        if start < 0:
            start = unit
        if op == _EXTENDED_ARG:
            high = arg << 8
            unit += 1
            continue
        following = unit + 1 + caches[op]
        if op in _SKIPPED:
            high, unit = 0, following
            continue
        if op == _KW_NAMES:
            keywords, names_place = consts[arg], positions[unit]
            high, unit = 0, following
            continue
        if op == _CALL_KW:
            keywords, start, names_place = _pop_keywords(result)
        steps = _STEPS.get(arg << 8 | op) or _steps(op, arg)
        place = positions[unit] if unit < len(positions) else NO_POSITIONS
        offset = 2 * start
        last = None
        for name, number, kind, direction in steps:
            inst = Instruction(name, number, None, None, place, None, offset)
            if last is None:
                at[start] = inst
            else:
                last.fuse = True
            last = inst
            append(inst)
            if kind:
                assert number is not None
                if kind == Kind.CONST:
                    inst.argval = consts[number]
                elif kind == Kind.NAME:
                    inst.argval = names[number]
                elif kind == Kind.LOCAL:
                    inst.argval = plus[number]
                    if number in cells and name == "LOAD_FAST":
                        inst.opname = "LOAD_CLOSURE"
                elif kind == Kind.CELL:
                    inst.argval = plus[number]
                elif kind == Kind.JUMP:
                    inst.arg = None
                    jumps.append((inst, following + direction * number))
                else:
                    inst.argval = _SYMBOLS[kind][number] if kind in _SYMBOLS else None
        if keywords is not None:
            _set_keywords(inst, keywords, names_place)
            keywords = None
        if op == _END_FOR and raw[2 * following] == _POP_TOP:
            following += 1
        high, start, unit = 0, -1, following
    _link_jumps(jumps, at)
    _link_handlers(code, at, result)
    _mark_lines(code, at)
    return result


_SYMBOLS: Final = {
    Kind.COMPARE: FACTS.compare_ops,
    Kind.BINARY: FACTS.binary_ops,
    Kind.INTRINSIC_1: FACTS.intrinsics_1,
    Kind.INTRINSIC_2: FACTS.intrinsics_2,
}


def _cell_slots(code: CodeType) -> frozenset[int]:
    """Slots that LOAD_FAST reads as cells, on a Python that has no LOAD_CLOSURE."""
    if not FACTS.closure_is_fast or not (code.co_cellvars or code.co_freevars):
        return frozenset()
    local = len(code.co_varnames)
    shared = (index for index, name in enumerate(code.co_varnames) if name in code.co_cellvars)
    return frozenset((*shared, *range(local, len(localsplus_names(code)))))


def _pop_keywords(result: list[Instruction]) -> tuple[object, int, Positions]:
    """Take back the LOAD_CONST of keyword names before CALL_KW; they become one instruction."""
    load = result.pop() if result else None
    if (
        load is None
        or load.opname != "LOAD_CONST"
        or load.offset is None
        or not isinstance(load.argval, tuple)
    ):
        raise DecodeError("CALL_KW without a LOAD_CONST of its keyword names before it")
    return load.argval, load.offset // 2, load.positions


def _set_keywords(inst: Instruction, keywords: object, place: Positions) -> None:
    if inst.opname not in ("CALL", "CALL_KW"):
        raise DecodeError(f"keyword names before {inst.opname}")
    inst.opname = "CALL_KW"
    inst.argval = keywords
    if place != inst.positions:
        inst.names_positions = place


def _link_jumps(jumps: list[tuple[Instruction, int]], at: dict[int, Instruction]) -> None:
    for inst, unit in jumps:
        target = at.get(unit)
        if target is None:
            raise DecodeError(f"{inst.opname} at {inst.offset} goes into the middle of an instruction")
        inst.target = target
        target.is_jump_target = True


def _link_handlers(code: CodeType, at: dict[int, Instruction], instructions: list[Instruction]) -> None:
    if not code.co_exceptiontable:
        return
    handler_of: dict[int, ExceptionHandler] = {}
    for start, end, target, depth, lasti in decode_exception_table(code.co_exceptiontable):
        if target not in at:
            raise DecodeError("an exception handler begins in the middle of an instruction")
        handler = ExceptionHandler(at[target], depth, lasti)
        at[target].is_jump_target = True
        for unit in range(start, end):
            handler_of[unit] = handler
    for inst in instructions:
        if inst.offset is not None:
            inst.handler = handler_of.get(inst.offset // 2)


def _mark_lines(code: CodeType, at: dict[int, Instruction]) -> None:
    previous: int | None = None
    for begin, _, line in code.co_lines():
        if line is not None and line != previous:
            inst = at.get(begin // 2)
            if inst is not None:
                inst.starts_line = line
        previous = line
