"""Change a code object through its instructions: decode, let a function edit, assemble."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import TypedDict

from .assemble import assemble
from .decode import decode
from .instruction import Instruction

__all__ = ["CodeOptions", "code_options", "transform_code_object"]


class CodeOptions(TypedDict):
    """Everything of a code object but its instructions; names as the attributes of `CodeType`.

    `co_stacksize` is the least that the result gets.
    """

    co_argcount: int
    co_posonlyargcount: int
    co_kwonlyargcount: int
    co_flags: int
    co_consts: tuple[object, ...]
    co_names: tuple[str, ...]
    co_varnames: tuple[str, ...]
    co_cellvars: tuple[str, ...]
    co_freevars: tuple[str, ...]
    co_filename: str
    co_name: str
    co_qualname: str
    co_firstlineno: int
    co_stacksize: int


def code_options(code: CodeType) -> CodeOptions:
    """What `code` is made of, apart from its instructions."""
    return CodeOptions(
        co_argcount=code.co_argcount,
        co_posonlyargcount=code.co_posonlyargcount,
        co_kwonlyargcount=code.co_kwonlyargcount,
        co_flags=code.co_flags,
        co_consts=code.co_consts,
        co_names=code.co_names,
        co_varnames=code.co_varnames,
        co_cellvars=code.co_cellvars,
        co_freevars=code.co_freevars,
        co_filename=code.co_filename,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_firstlineno=code.co_firstlineno,
        co_stacksize=code.co_stacksize,
    )


def transform_code_object(
    code: CodeType, transformation: Callable[[list[Instruction], CodeOptions], object]
) -> CodeType:
    """A new code object from edited instructions; `code` stays as it is.

    Args:
        transformation: edits the list of instructions and the options in place; what it returns is not used.

    Raises:
        BytecodeError: what it made cannot be written.

    Source: founding documents, TorchDynamo overview ("transform_code_object").
    """
    instructions = decode(code)
    options = code_options(code)
    transformation(instructions, options)
    return assemble(
        code,
        instructions,
        argcount=options["co_argcount"],
        posonlyargcount=options["co_posonlyargcount"],
        kwonlyargcount=options["co_kwonlyargcount"],
        flags=options["co_flags"],
        consts=options["co_consts"],
        names=options["co_names"],
        varnames=options["co_varnames"],
        cellvars=options["co_cellvars"],
        freevars=options["co_freevars"],
        filename=options["co_filename"],
        name=options["co_name"],
        qualname=options["co_qualname"],
        firstlineno=options["co_firstlineno"],
        stacksize=options["co_stacksize"],
    )
