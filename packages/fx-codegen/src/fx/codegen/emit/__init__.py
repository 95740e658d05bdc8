"""The six emitters: each turns a node into one line of source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fx.codegen.emit.call_function import call_function
from fx.codegen.emit.call_method import call_method
from fx.codegen.emit.call_module import call_module
from fx.codegen.emit.get_attr import get_attr
from fx.codegen.emit.placeholder import placeholder

if TYPE_CHECKING:
    from fx.codegen.emit.writer import Writer
    from fx.ir import Node

EMIT: Final[dict[str, Callable[[Node, Writer], str]]] = {
    "placeholder": placeholder,
    "get_attr": get_attr,
    "call_function": call_function,
    "call_method": call_method,
    "call_module": call_module,
}
"""Opcode → emitter; ``output`` is written by the code generator's ``generate_output``, which users override."""
