"""Operators on variables: arithmetic, comparison, subscription, containment."""

import operator
from collections.abc import Callable
from typing import Any, Final

import torch

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, constants, realize, realized
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantVariable, fold
from dynamo.eval.variables.dictionary import DictVariable, DictViewVariable, SetVariable
from dynamo.eval.variables.lookup import NoSuchAttribute, static_lookup
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.sequence import (
    ListVariable,
    RangeVariable,
    SequenceVariable,
    SizeVariable,
    TupleVariable,
)
from dynamo.eval.variables.symbolic import SymbolicVariable, compute, is_number, settled
from dynamo.eval.variables.tensor import TensorVariable, call_torch

#: symbol → the function of the binary operator, its dunder name
BINARY: Final[dict[str, tuple[Callable[[Any, Any], Any], str]]] = {
    "+": (operator.add, "add"), "&": (operator.and_, "and"), "//": (operator.floordiv, "floordiv"),
    "<<": (operator.lshift, "lshift"), "@": (operator.matmul, "matmul"), "*": (operator.mul, "mul"),
    "%": (operator.mod, "mod"), "|": (operator.or_, "or"), "**": (operator.pow, "pow"),
    ">>": (operator.rshift, "rshift"), "-": (operator.sub, "sub"), "/": (operator.truediv, "truediv"),
    "^": (operator.xor, "xor"),
    "+=": (operator.iadd, "iadd"), "&=": (operator.iand, "iand"), "//=": (operator.ifloordiv, "ifloordiv"),
    "<<=": (operator.ilshift, "ilshift"), "@=": (operator.imatmul, "imatmul"), "*=": (operator.imul, "imul"),
    "%=": (operator.imod, "imod"), "|=": (operator.ior, "ior"), "**=": (operator.ipow, "ipow"),
    ">>=": (operator.irshift, "irshift"), "-=": (operator.isub, "isub"), "/=": (operator.itruediv, "itruediv"),
    "^=": (operator.ixor, "ixor"),
}  # fmt: skip
COMPARE: Final[dict[str, tuple[Callable[[Any, Any], Any], str, str]]] = {
    "<": (operator.lt, "lt", "gt"), "<=": (operator.le, "le", "ge"), "==": (operator.eq, "eq", "eq"),
    "!=": (operator.ne, "ne", "ne"), ">": (operator.gt, "gt", "lt"), ">=": (operator.ge, "ge", "le"),
}  # fmt: skip
UNARY: Final[dict[str, tuple[Callable[[Any], Any], str]]] = {
    "-": (operator.neg, "__neg__"), "+": (operator.pos, "__pos__"), "~": (operator.invert, "__invert__"),
}  # fmt: skip
SYMBOL_OF: Final = {function: symbol for symbol, (function, _) in BINARY.items()}
COMPARE_SYMBOL_OF: Final = {function: symbol for symbol, (function, _, _) in COMPARE.items()}


def binary(tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
    """``left <symbol> right``, in place for the symbols that end in ``=``."""
    left, right = realize(left), realize(right)
    function, name = BINARY[symbol]
    if isinstance(left, TensorVariable) or isinstance(right, TensorVariable):
        if isinstance(left, UserObjectVariable) or isinstance(right, UserObjectVariable):
            raise GraphBreak(f"{left.describe()} {symbol} {right.describe()}")
        return call_torch(tx, "call_function", function, [left, right], {})
    if isinstance(left, ConstantVariable) and isinstance(right, ConstantVariable):
        return fold(function, left.value, right.value)
    varying = compute(tx, function, [left, right])
    if varying is not None:
        return varying
    left, right = settled(left), settled(right)
    for kind, rule in _BINARY_RULES:
        if isinstance(left, kind):
            result = rule(tx, symbol, left, right)
            if result is not None:
                return result
    if isinstance(left, UserObjectVariable) or isinstance(right, UserObjectVariable):
        return _binary_dunder(tx, symbol, name, left, right)
    if symbol == "*" and isinstance(right, SequenceVariable) and isinstance(left, ConstantVariable):
        return binary(tx, symbol, right, left)
    if isinstance(left, ConstantVariable) and isinstance(left.value, str) and symbol == "%":
        known = constants([right], {})
        if known is not None:
            return fold(function, left.value, known[0][0])
    raise GraphBreak(f"{left.describe()} {symbol} {right.describe()}")


def _binary_dunder(
    tx: Translator, symbol: str, name: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker:
    if symbol.endswith("=") and isinstance(left, UserObjectVariable):
        try:
            return _not_refused(left.call_special(tx, f"__{name}__", [right]), symbol)
        except NoSuchAttribute:
            name = BINARY[symbol[:-1]][1]
    if symbol.endswith("="):
        name = BINARY[symbol[:-1]][1]
    if isinstance(left, UserObjectVariable):
        if isinstance(right, UserObjectVariable) and right.kind is not left.kind:
            raise GraphBreak(f"{left.describe()} {symbol} {right.describe()}, objects of two classes")
        return _not_refused(left.call_special(tx, f"__{name}__", [right]), symbol)
    assert isinstance(right, UserObjectVariable)
    if not isinstance(left, ConstantVariable):
        raise GraphBreak(f"{left.describe()} {symbol} {right.describe()}")
    return _not_refused(right.call_special(tx, f"__r{name}__", [left]), symbol)


def _not_refused(result: VariableTracker, symbol: str) -> VariableTracker:
    if isinstance(result, ConstantVariable) and result.value is NotImplemented:
        raise GraphBreak(f"an operand refused {symbol}")
    return result


def _sequence_binary(
    tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | None:
    assert isinstance(left, SequenceVariable)
    if symbol in ("+", "+=") and isinstance(left, ListVariable) and symbol == "+=":
        left.call_method(tx, "extend", [right], {})
        return left
    if symbol in ("+", "+=") and isinstance(right, SequenceVariable) and _same_family(left, right):
        return left.sliced([*left.items, *right.items])
    if symbol in ("*", "*=") and isinstance(right, ConstantVariable) and isinstance(right.value, int):
        if symbol == "*=" and isinstance(left, ListVariable):
            left.items[:] = left.items * right.value
            left.changed(tx)
            return left
        return left.sliced(left.items * right.value)
    return None


def _same_family(left: VariableTracker, right: VariableTracker) -> bool:
    if isinstance(left, ListVariable):
        return isinstance(right, ListVariable)
    if isinstance(left, SizeVariable) != isinstance(right, SizeVariable):
        return False
    return isinstance(right, TupleVariable) and not isinstance(right, ListVariable)


def _dict_binary(
    tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | None:
    assert isinstance(left, DictVariable)
    if not isinstance(right, DictVariable) or left.kind is not dict or right.kind is not dict:
        return None
    if symbol == "|=":
        left.merge(tx, right)
        return left
    if symbol == "|":
        merged = DictVariable(left.entries.values())
        merged.merge(tx, right)
        return merged
    return None


def _set_binary(
    tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | None:
    assert isinstance(left, SetVariable)
    if symbol in ("|", "&", "-", "^") and isinstance(right, SetVariable):
        return fold(BINARY[symbol][0], left.as_python_constant(), right.as_python_constant())
    return None


_BinaryRule = Callable[[Translator, str, VariableTracker, VariableTracker], VariableTracker | None]
_BINARY_RULES: Final[tuple[tuple[type[VariableTracker], _BinaryRule], ...]] = (
    (SequenceVariable, _sequence_binary),
    (DictVariable, _dict_binary),
    (SetVariable, _set_binary),
)


def unary(tx: Translator, symbol: str, value: VariableTracker) -> VariableTracker:
    """``<symbol>value`` for ``-``, ``+`` and ``~``."""
    value = realize(value)
    function, name = UNARY[symbol]
    if isinstance(value, TensorVariable):
        return call_torch(tx, "call_function", function, [value], {})
    if isinstance(value, ConstantVariable):
        return fold(function, value.value)
    varying = compute(tx, function, [value])
    if varying is not None:
        return varying
    if isinstance(value, UserObjectVariable):
        return value.call_special(tx, name, [])
    raise GraphBreak(f"{symbol}{value.describe()}")


def compare(tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker) -> VariableTracker:
    """``left <symbol> right``."""
    left, right = realize(left), realize(right)
    function, name, mirrored = COMPARE[symbol]
    if isinstance(left, TensorVariable) or isinstance(right, TensorVariable):
        other = right if isinstance(left, TensorVariable) else left
        if _is_number(other):
            return call_torch(tx, "call_function", function, [left, right], {})
        if isinstance(other, TensorVariable):
            return call_torch(tx, "call_function", function, [left, right], {})
        if isinstance(other, ConstantVariable) and symbol in ("==", "!="):
            return ConstantVariable(symbol == "!=")
        raise GraphBreak(f"{left.describe()} {symbol} {right.describe()}")
    if isinstance(left, UserObjectVariable):
        try:
            return _not_refused(left.call_special(tx, f"__{name}__", [right]), symbol)
        except NoSuchAttribute:
            pass
        except GraphBreak:
            if symbol not in ("==", "!=") or not _has_default_equality(left):
                raise
        if symbol in ("==", "!=") and isinstance(right, ConstantVariable | UserObjectVariable):
            if isinstance(right, ConstantVariable) or _has_default_equality(right):
                return ConstantVariable((left is right) == (symbol == "=="))
    if (
        isinstance(right, UserObjectVariable)
        and isinstance(left, ConstantVariable)
        and symbol in ("==", "!=")
    ):
        if _has_default_equality(right):
            return ConstantVariable(symbol == "!=")
    varying = compute(tx, function, [left, right])
    if varying is not None:
        return varying
    if symbol in ("==", "!=") and isinstance(left, SequenceVariable) and isinstance(right, SequenceVariable):
        equal = _equal_numbers(tx, left, right)
        if equal is not None:
            return ConstantVariable(equal == (symbol == "=="))
    known = constants([left, right], {})
    if known is None:
        raise GraphBreak(f"{left.describe()} {symbol} {right.describe()}")
    return fold(function, *known[0])


def _equal_numbers(tx: Translator, left: SequenceVariable, right: SequenceVariable) -> bool | None:
    """Whether two sequences of numbers, some of which vary, are equal; None for any other two sequences."""
    pairs = list(zip(realized(left.items), realized(right.items), strict=False))
    both = [each for pair in pairs for each in pair]
    if not any(isinstance(each, SymbolicVariable) for each in both) or not all(map(is_number, both)):
        return None
    if isinstance(left, ListVariable) != isinstance(right, ListVariable) or len(left.items) != len(
        right.items
    ):
        return False
    return all(compare(tx, "==", first, second).truth(tx) for first, second in pairs)


def _has_default_equality(var: UserObjectVariable) -> bool:
    return all(static_lookup(var.kind, name) is static_lookup(object, name) for name in ("__eq__", "__ne__"))


def identical(tx: Translator, left: VariableTracker, right: VariableTracker) -> bool:
    """``left is right``.

    Raises:
        GraphBreak: two literals of which only Python's interning decides.
    """
    left, right = realize(left), realize(right)
    if left is right:
        return True
    if isinstance(left, ConstantVariable) and isinstance(right, ConstantVariable):
        if type(left.value) is not type(right.value):
            return False
        if left.value is right.value or left.value != right.value:
            return left.value is right.value
        raise GraphBreak("`is` between equal literals")
    if isinstance(left, SymbolicVariable) or isinstance(right, SymbolicVariable):
        if is_number(left) and is_number(right):
            raise GraphBreak("`is` between numbers")
        return False
    if isinstance(left, ConstantVariable) or isinstance(right, ConstantVariable):
        return False
    if not left.mutable or not right.mutable:
        known = constants([left, right], {})
        if known is None or not isinstance(left, ClassVariable | type(right)):
            raise GraphBreak(f"`is` between {left.describe()} and {right.describe()}")
        return known[0][0] is known[0][1]
    if left.source is not None and right.source is not None:
        tx.output.guard_distinct(left.source, right.source)
    return False


def contains(tx: Translator, container: VariableTracker, item: VariableTracker) -> VariableTracker:
    """``item in container``."""
    container, item = realize(container), settled(item)
    if isinstance(container, DictVariable | SetVariable):
        return ConstantVariable(container.contains(item))
    if isinstance(container, DictViewVariable) and container.part == "keys":
        return ConstantVariable(container.owner.contains(item))
    if isinstance(container, ConstantVariable) and isinstance(item, ConstantVariable):
        return fold(operator.contains, container.value, item.value)
    if isinstance(container, SequenceVariable | RangeVariable):
        if isinstance(container, SequenceVariable) and isinstance(item, ConstantVariable):
            if item.value is None:
                return ConstantVariable(any(identical(tx, each, item) for each in container.items))
        known = constants([container, item], {})
        if known is not None:
            return fold(operator.contains, *known[0])
    if isinstance(container, TensorVariable):
        return call_torch(tx, "call_method", "__contains__", [container, item], {})
    if isinstance(container, UserObjectVariable):
        return ConstantVariable(container.call_special(tx, "__contains__", [item]).truth(tx))
    raise GraphBreak(f"{item.describe()} in {container.describe()}")


def get_item(tx: Translator, container: VariableTracker, key: VariableTracker) -> VariableTracker:
    """``container[key]``."""
    container, key = realize(container), realize(key)
    if isinstance(container, TensorVariable):
        return call_torch(tx, "call_function", operator.getitem, [container, key], {})
    if isinstance(container, SequenceVariable | DictVariable | RangeVariable):
        return container.item(tx, key)
    if isinstance(container, ConstantVariable):
        known = constants([key], {})
        if known is not None:
            return fold(operator.getitem, container.value, known[0][0])
    if isinstance(container, UserObjectVariable):
        return container.call_special(tx, "__getitem__", [key])
    raise GraphBreak(f"{container.describe()}[…]")


def set_item(
    tx: Translator, container: VariableTracker, key: VariableTracker, value: VariableTracker | None
) -> None:
    """``container[key] = value``, or ``del container[key]`` for None."""
    container, key = realize(container), realize(key)
    if isinstance(container, TensorVariable) and value is not None:
        if isinstance(realize(value), TensorVariable) or _is_number(realize(value)):
            call_torch(tx, "call_function", operator.setitem, [container, key, value], {})
            return
        raise GraphBreak(f"storing {value.describe()} into a tensor")
    if isinstance(container, ListVariable | DictVariable):
        container.set_item(tx, key, value)
        return
    if isinstance(container, UserObjectVariable):
        if value is None:
            container.call_special(tx, "__delitem__", [key])
        else:
            container.call_special(tx, "__setitem__", [key, value])
        return
    raise GraphBreak(f"storing into {container.describe()}")


def _is_number(var: VariableTracker) -> bool:
    if isinstance(var, SymbolicVariable):
        return True
    return isinstance(var, ConstantVariable) and isinstance(var.value, int | float | bool | complex)


def negate(tx: Translator, value: VariableTracker) -> VariableTracker:
    """``not value``."""
    return ConstantVariable(not realize(value).truth(tx))


def is_tensor_type(kind: type) -> bool:
    """Whether values of a class are tensors."""
    return issubclass(kind, torch.Tensor)
