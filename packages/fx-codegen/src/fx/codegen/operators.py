"""Which callables are written as an operator, and how.

A table from the function of :mod:`operator` to a function that writes the expression, or declines with ``None`` (wrong
number of arguments, an operand that would bind differently), after which the plain call is written.  In-place
operators and item assignment are statements: they stand in a table of their own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fx.codegen.names import is_plain
from fx.ir import Node

if TYPE_CHECKING:
    from fx.codegen.emit.writer import Writer

Express: TypeAlias = "Callable[[tuple[Any, ...], Writer], str | None]"

BINARY: Final = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.floordiv: "//",
    operator.truediv: "/",
    operator.mod: "%",
    operator.pow: "**",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.matmul: "@",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.gt: ">",
    operator.le: "<=",
    operator.ge: ">=",
}
UNARY: Final = {operator.pos: "+", operator.neg: "-", operator.invert: "~"}
IN_PLACE: Final = {
    operator.iadd: "+=",
    operator.iand: "&=",
    operator.ifloordiv: "//=",
    operator.ilshift: "<<=",
    operator.imod: "%=",
    operator.imul: "*=",
    operator.imatmul: "@=",
    operator.ior: "|=",
    operator.ipow: "**=",
    operator.irshift: ">>=",
    operator.isub: "-=",
    operator.itruediv: "/=",
    operator.ixor: "^=",
}


def _binary(symbol: str) -> Express:
    def express(args: tuple[Any, ...], to: Writer) -> str | None:
        if len(args) != 2:
            return None
        left, right = args
        left_text = to.names[left] if type(left) is Node else to.operand(left)
        return f"{left_text} {symbol} {to.names[right] if type(right) is Node else to.value(right)}"

    return express


def _unary(symbol: str) -> Express:
    def express(args: tuple[Any, ...], to: Writer) -> str | None:
        return f"{symbol}{to.operand(args[0])}" if len(args) == 1 else None

    return express


def _item(args: tuple[Any, ...], to: Writer) -> str | None:
    if len(args) != 2 or type(args[0]) is not Node:
        return None
    return f"{to.names[args[0]]}[{to.value(args[1])}]"


def _attribute(args: tuple[Any, ...], to: Writer) -> str | None:
    if len(args) != 2 or type(args[0]) is not Node or type(args[1]) is not str or not is_plain(args[1]):
        return None
    return f"{to.names[args[0]]}.{args[1]}"


EXPRESSIONS: Final[dict[int, Express]] = {
    **{id(function): _binary(symbol) for function, symbol in BINARY.items()},
    **{id(function): _unary(symbol) for function, symbol in UNARY.items()},
    id(operator.getitem): _item,
    id(getattr): _attribute,
}
"""``id`` of the function → how its call is written; these functions live as long as the process."""

ASSIGNMENTS: Final[dict[int, str]] = {id(function): symbol for function, symbol in IN_PLACE.items()}
"""``id`` of the function → augmented assignment that does the same."""
