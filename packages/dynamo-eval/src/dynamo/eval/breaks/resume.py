"""The rest of a function as a function: ``resume_in_toy_example_at_12``.

Its parameters are the values that were on the stack and the locals that are still needed; cells of the original,
its own ones included, become free variables, so that closures made before and after the break share them.
It begins by putting the stack back and jumps into a copy of the original code, whose exception table it keeps.
"""

import inspect
from collections import OrderedDict
from dataclasses import dataclass
from types import CodeType
from typing import Final

from dynamo.eval._frame import Rest
from dynamo.eval.bytecode import (
    Instruction,
    assemble,
    copy_instructions,
    create,
    create_instruction,
    decode,
    remove_unreachable,
)
from dynamo.eval.resets import on_reset

_DROPPED_FLAGS: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_CAPACITY: Final = 4096


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where and with what to go on.

    Args:
        index: instruction (in the normal form) to go on at.
        nulls: for each place of the stack, bottom first, whether it is a NULL and no value.
        names: the locals that are handed over, in the order of the parameters.
    """

    index: int
    nulls: tuple[bool, ...]
    names: tuple[str, ...]


_MADE: OrderedDict[tuple[int, ResumePoint], tuple[CodeType, CodeType]] = OrderedDict()
_RESUME_CODES: dict[int, tuple[CodeType, CodeType, int]] = {}


def resume_function(code: CodeType, point: ResumePoint) -> CodeType:
    """The code of the resume function; the same point of the same code gives the same object."""
    key = (id(code), point)
    known = _MADE.get(key)
    if known is not None and known[0] is code:
        return known[1]
    made = _make(code, point)
    _MADE[key] = (code, made)
    if len(_MADE) > _CAPACITY:
        _MADE.popitem(last=False)
    return made


def is_resume_code(code: CodeType) -> bool:
    """Whether a code object is the rest of another function."""
    entry = _RESUME_CODES.get(id(code))
    return entry is not None and entry[0] is code


@on_reset
def forget_resume_functions() -> None:
    """Drop all resume functions; new ones are made when needed."""
    _MADE.clear()
    _RESUME_CODES.clear()


def _root(code: CodeType) -> CodeType:
    entry = _RESUME_CODES.get(id(code))
    return entry[1] if entry is not None and entry[0] is code else code


def load_rest(code: CodeType) -> list[Instruction]:
    """Push what calls a resume function, and its cells as the first argument where it has free variables."""
    cells: list[Instruction] = []
    if code.co_freevars:
        cells = [*map(create.load_closure, code.co_freevars), create.build_tuple(len(code.co_freevars))]
    return [*create.load_callable([create.load_const(Rest(code))]), *cells]


def stack_parameter(place: int) -> str:
    """Name of the parameter for a place of the stack."""
    return f"___stack{place}"


def _make(code: CodeType, point: ResumePoint) -> CodeType:
    body = copy_instructions(decode(code))
    target = body[point.index]
    cells = (*code.co_cellvars, *code.co_freevars)
    stack_names = [stack_parameter(place) for place, null in enumerate(point.nulls) if not null]
    parameters = [*point.names, *stack_names]
    # A cell has one slot, which an inlined comprehension of its name uses as a local: no second one of that name.
    taken = {*parameters, *cells}
    varnames = [*parameters, *(name for name in code.co_varnames if name not in taken)]
    head: list[Instruction] = [create.nop(), create_instruction("RESUME", 0)]
    if cells:
        head.insert(0, create_instruction("COPY_FREE_VARS", len(cells)))
    for place, null in enumerate(point.nulls):
        head.append(create.push_null() if null else create.load_fast(stack_parameter(place)))
    head.append(create.jump(target))
    body = [inst for inst in body if not _is_prologue(inst, code)] if _safe(body, target, code) else body
    lineno = target.positions[0] or code.co_firstlineno
    instructions = create.place_at((lineno, lineno, 0, 0), head) + body
    remove_unreachable(instructions)
    return derived_code(code, instructions, varnames, cells, len(parameters), lineno, point.index)


def derived_code(
    code: CodeType,
    instructions: list[Instruction],
    varnames: list[str],
    freevars: tuple[str, ...],
    argcount: int,
    lineno: int,
    index: int,
) -> CodeType:
    """A code object for a part of `code`, named after it and noted as such.

    Raises:
        BytecodeError: the instructions cannot be written.
    """
    root = _root(code)
    made = assemble(
        code,
        instructions,
        varnames=varnames,
        cellvars=(),
        freevars=freevars,
        argcount=argcount,
        posonlyargcount=0,
        kwonlyargcount=0,
        flags=_flags(code, bool(freevars)),
        name=f"resume_in_{root.co_name}_at_{lineno}",
        qualname=f"resume_in_{root.co_qualname}_at_{lineno}",
        firstlineno=lineno,
    )
    _RESUME_CODES[id(made)] = (made, root, index)
    return made


def _flags(code: CodeType, nested: bool) -> int:
    flags = code.co_flags & ~_DROPPED_FLAGS
    return flags | inspect.CO_NESTED if nested else flags


def _is_prologue(inst: Instruction, code: CodeType) -> bool:
    return inst.opname in ("COPY_FREE_VARS",) or (
        inst.opname == "MAKE_CELL" and inst.argval in code.co_cellvars
    )


def _safe(body: list[Instruction], target: Instruction, code: CodeType) -> bool:
    """Whether the prologue can be dropped: nothing goes to it."""
    return not _is_prologue(target, code)
