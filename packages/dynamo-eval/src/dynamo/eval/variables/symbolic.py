"""Numbers that are known only when the graph runs: sizes that vary, integers that vary, and what is computed of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, final

import torch

from dynamo.eval.errors import GraphBreak
from dynamo.eval.output_graph import SYMBOLS
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.constant import ConstantVariable, fold
from dynamo.guards import Source
from fx.ir import Node

Symbol = torch.SymInt | torch.SymFloat | torch.SymBool
_TYPES: Final[dict[type, type]] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
#: operators that stay in the graph, each as the one to compute with (an integer has no in-place form)
_CARRIED: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    operator.add: operator.add, operator.iadd: operator.add,
    operator.sub: operator.sub, operator.isub: operator.sub,
    operator.mul: operator.mul, operator.imul: operator.mul,
    operator.floordiv: operator.floordiv, operator.ifloordiv: operator.floordiv,
    operator.mod: operator.mod, operator.imod: operator.mod,
    operator.truediv: operator.truediv, operator.itruediv: operator.truediv,
    operator.neg: operator.neg, operator.pos: operator.pos,
    operator.lt: operator.lt, operator.le: operator.le, operator.gt: operator.gt, operator.ge: operator.ge,
    operator.eq: operator.eq, operator.ne: operator.ne,
}  # fmt: skip
_DIVIDE: Final = frozenset({operator.floordiv, operator.mod, operator.truediv})


@final
class SymbolicVariable(VariableTracker):
    """A number: `node` computes it, `value` is its symbol."""

    def __init__(self, node: Node, value: Symbol, source: Source | None = None) -> None:
        super().__init__(source)
        self.node = node
        self.value = value

    def python_type(self) -> type:
        return _TYPES[type(self.value)]

    def describe(self) -> str:
        return f"a number that varies, {self.value}"

    def as_graph_arg(self) -> Node:
        return self.node

    def as_fake(self) -> Symbol:
        return self.value

    def as_python_constant(self) -> Any:
        """The value at capture, which every later call must have too: the code needs the number itself."""
        return _TYPES[type(self.value)](self.value)

    def truth(self, tx: Translator) -> bool:
        return bool(self.value)

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        return ConstantVariable(self.as_python_constant()).get_attr(tx, name)

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return ConstantVariable(self.as_python_constant()).call_method(tx, name, args, kwargs)


def symbolic(tx: Translator, make: Callable[[], Node], value: Any) -> VariableTracker:
    """The variable of a number that metadata tells: a constant, or a symbol with the node that `make` appends."""
    if not isinstance(value, SYMBOLS):
        return ConstantVariable(value)
    known = _fixed(value)
    if known is not None:
        return ConstantVariable(known)
    node = make()
    node.meta["example_value"] = value
    return SymbolicVariable(node, value)


def _fixed(value: Symbol) -> Any:
    """The number, where the symbols in it cancel out; None where they do not."""
    return None if value.node.expr.free_symbols else _TYPES[type(value)](value)


def settled(var: VariableTracker) -> VariableTracker:
    """A number that varies as the constant that it is at capture, which every later call must have too."""
    var = realize(var)
    return ConstantVariable(var.as_python_constant()) if isinstance(var, SymbolicVariable) else var


def is_number(var: VariableTracker) -> bool:
    """Whether a variable is an integer or a float, known or not."""
    if isinstance(var, SymbolicVariable):
        return not isinstance(var.value, torch.SymBool)
    return isinstance(var, ConstantVariable) and type(var.value) in (int, float)


def compute(
    tx: Translator, function: Callable[..., Any], operands: list[VariableTracker]
) -> VariableTracker | None:
    """An operator of which one operand is a symbol; None if none is.

    Raises:
        GraphBreak: Python raises here (a division by zero).
    """
    operands = [realize(each) for each in operands]
    if not any(isinstance(each, SymbolicVariable) for each in operands):
        return None
    carried = _CARRIED.get(function)
    if carried is None or not all(map(is_number, operands)):
        return _as_it_is(function, operands)
    values = [each.as_fake() for each in operands]
    if carried in _DIVIDE and not bool(values[1] != 0):
        raise GraphBreak("a division by zero")
    result = carried(*values)
    arguments = tuple(each.as_graph_arg() for each in operands)
    return symbolic(tx, lambda: tx.output.create_node("call_function", carried, arguments, {}), result)


def _as_it_is(function: Callable[..., Any], operands: list[VariableTracker]) -> VariableTracker | None:
    """The operator on the numbers at capture; None where another operand is no constant."""
    others = [each for each in operands if not isinstance(each, SymbolicVariable)]
    if not all(isinstance(each, ConstantVariable) for each in others):
        return None
    if function in (operator.eq, operator.ne) and any(each.as_python_constant() is None for each in others):
        return ConstantVariable(function is operator.ne)
    return fold(function, *[each.as_python_constant() for each in operands])
