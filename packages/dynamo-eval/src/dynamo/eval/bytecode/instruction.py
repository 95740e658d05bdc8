"""One instruction in the *normal form*, and the exception handlers that guard it.

An `Instruction` is mutable and compared by identity: jumps refer to their target *object*, so instructions may be
inserted, moved or dropped without renumbering anything. `argval` is the truth (a name, a constant, an operator
symbol); `arg` is the plain number where the operand is one, and otherwise only the index that the decoded code used,
which the assembler keeps when it still fits. The normal form itself is described in `dynamo.eval.bytecode`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from .versions.select import FACTS

__all__ = ["NO_POSITIONS", "ExceptionHandler", "Instruction", "Positions", "copy_instructions"]

Positions: TypeAlias = tuple[int | None, int | None, int | None, int | None]
"""Line, end line, column, end column (columns in UTF-8 bytes), each None when unknown; as `code.co_positions()`."""

NO_POSITIONS: Positions = (None, None, None, None)


@dataclass(slots=True, eq=False)
class ExceptionHandler:
    """Where control goes when a guarded instruction raises.

    One object stands for one entry of the exception table; neighbouring instructions that share the object share the
    entry. On entry the stack is cut to `depth` values, then (with `lasti`) the offset of the raising instruction and
    the exception are pushed. `depth` None means: the depth before the first instruction that it guards; the
    assembler works it out.

    Source: CPython, Objects/exception_handling_notes.txt.
    """

    target: Instruction
    depth: int | None = None
    lasti: bool = False


@dataclass(slots=True, eq=False)
class Instruction:
    """One instruction in the normal form.

    Args:
        opname: name in the normal form.
        arg: number operand, or the index of `argval` in the decoded code.
        argval: what the operand means; None where there is none or where it is only a number.
        target: where a jump goes.
        positions: place in the user's source.
        handler: what guards this instruction.
        offset: byte offset in the decoded code, None for a new instruction.
        starts_line: the line number, where the decoded code began a line here.
        is_jump_target: whether a jump or an exception handler of the decoded code went here.
        fuse: write this and the next instruction as one, where this Python has such an instruction.
        names_positions: place of the keyword names that CALL_KW writes before itself, where it is another (CPython
            moves the call of a method chain, but not its names, to the line of the attribute).
    """

    opname: str
    arg: int | None = None
    argval: object = None
    target: Instruction | None = None
    positions: Positions = NO_POSITIONS
    handler: ExceptionHandler | None = None
    offset: int | None = None
    starts_line: int | None = None
    is_jump_target: bool = False
    fuse: bool = False
    names_positions: Positions | None = None

    @property
    def opcode(self) -> int:
        """Number of the CPython instruction of this name, -1 when the name exists in the normal form only."""
        return FACTS.opmap.get(self.opname, -1)

    @property
    def lineno(self) -> int | None:
        """Line of the user's source, if known."""
        return self.positions[0]

    def copy_place(self, other: Instruction) -> Instruction:
        """Take the source position and the exception handler of `other`; returns self."""
        self.positions = other.positions
        self.handler = other.handler
        return self

    def __str__(self) -> str:
        if self.target is not None:
            where = self.target.offset
            operand = f" to {self.target.opname}" + ("" if where is None else f" at {where}")
        elif self.argval is not None:
            operand = f" {self.argval!r}" if self.opname != "CALL_KW" else f" {self.arg} {self.argval!r}"
        else:
            operand = "" if self.arg is None else f" {self.arg}"
        return self.opname + operand


def copy_instructions(instructions: Iterable[Instruction]) -> list[Instruction]:
    """Copy a self-contained list: jumps and handlers of the copies go to the copies.

    Targets outside the list stay what they are.
    """
    originals = list(instructions)
    copies = [
        Instruction(
            inst.opname,
            inst.arg,
            inst.argval,
            inst.target,
            inst.positions,
            inst.handler,
            inst.offset,
            inst.starts_line,
            inst.is_jump_target,
            inst.fuse,
            inst.names_positions,
        )
        for inst in originals
    ]
    twin = dict(zip(originals, copies, strict=True))
    handlers: dict[ExceptionHandler, ExceptionHandler] = {}
    for copy in copies:
        if copy.target is not None:
            copy.target = twin.get(copy.target, copy.target)
        if copy.handler is not None:
            old = copy.handler
            if old not in handlers:
                handlers[old] = ExceptionHandler(twin.get(old.target, old.target), old.depth, old.lasti)
            copy.handler = handlers[old]
    return copies
