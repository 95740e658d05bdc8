"""Which bytecode instruction a frame is executing, as far as tracing has to know.

Python tells ``__iter__`` and ``__bool__`` nothing of the construct that calls them; the calling frame's instruction does.
Instructions are recognised by name, read through :mod:`dis`, and so are the same on all supported versions.
"""

from __future__ import annotations

import dis
from types import CodeType, FrameType

__all__ = ["asserts", "instruction_name", "unpacked_length"]


def _instructions(code: CodeType) -> list[dis.Instruction]:
    return [inst for inst in dis.get_instructions(code) if inst.opname not in ("CACHE", "EXTENDED_ARG")]


def _present(frame: FrameType) -> tuple[list[dis.Instruction], int] | None:
    instructions = _instructions(frame.f_code)
    for index, inst in enumerate(instructions):
        if inst.offset == frame.f_lasti:
            return instructions, index
    return None


def instruction_name(frame: FrameType) -> str:
    """Name of the instruction that ``frame`` is executing; empty when it cannot be told."""
    opcode = frame.f_code.co_code[frame.f_lasti] if frame.f_lasti >= 0 else 0
    return dis.opname[opcode]


def unpacked_length(frame: FrameType) -> int | None:
    """Into how many names ``frame`` is unpacking a value (``a, b = value``); None when it is doing something else."""
    at = frame.f_lasti
    code = frame.f_code.co_code if at >= 0 else b""
    if not code or dis.opname[code[at]] != "UNPACK_SEQUENCE":
        return None
    length, shift = code[at + 1], 8
    while at >= 2 and code[at - 2] == dis.EXTENDED_ARG:  # the higher bytes stand in front
        at -= 2
        length |= code[at + 1] << shift
        shift += 8
    return length


def asserts(frame: FrameType) -> bool:
    """Whether the truth value that ``frame`` asks for decides an ``assert``.

    An assert compiles to a jump over the raising code; on 3.13 the value becomes a bool one instruction earlier, in TO_BOOL or in
    COMPARE_OP.
    """
    present = _present(frame)
    if present is None:
        return False
    instructions, index = present
    if not instructions[index].opname.endswith("IF_TRUE"):
        index += 1
    jump, raising = instructions[index : index + 2]
    return jump.opname.endswith("IF_TRUE") and raising.opname == "LOAD_ASSERTION_ERROR"
