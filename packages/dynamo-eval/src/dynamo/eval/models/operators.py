"""Operators on variables: arithmetic, comparison, subscription, containment."""

import operator
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, final

import torch

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, constants, realize, realized
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantVariable, fold
from dynamo.eval.variables.deques import DequeVariable
from dynamo.eval.variables.dictionary import DictVariable, DictViewVariable
from dynamo.eval.variables.instance_dict import InstanceDictVariable
from dynamo.eval.variables.iterator import IteratorVariable, iterator_of
from dynamo.eval.variables.keys import prepare_key
from dynamo.eval.variables.known import KnownVariable
from dynamo.eval.variables.lookup import MISSING, static_lookup
from dynamo.eval.variables.mapping_proxy import MappingProxyVariable
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.sequence import (
    ListVariable,
    RangeVariable,
    SequenceVariable,
    SizeVariable,
    TupleVariable,
)
from dynamo.eval.variables.sets import SetVariable, as_set
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
            return _with_tensor(tx, symbol, name, left, right)
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
    if symbol == "|" and isinstance(left, ClassVariable | UnionVariable):
        known = constants([left, right], {})
        if known is not None and type(left.value) in (type, types.UnionType):
            return UnionVariable(known[0][0] | known[0][1])
    if isinstance(left, UserObjectVariable | ClassVariable) or isinstance(
        right, UserObjectVariable | ClassVariable
    ):
        return _binary_dunder(tx, symbol, name, left, right)
    if symbol == "*" and isinstance(right, SequenceVariable) and isinstance(left, ConstantVariable):
        return binary(tx, symbol, right, left)
    if isinstance(left, ConstantVariable) and isinstance(left.value, str) and symbol == "%":
        known = constants([right], {})
        if known is not None:
            return fold(function, left.value, known[0][0])
    raise GraphBreak(f"{left.describe()} {symbol} {right.describe()}")


@final
class UnionVariable(KnownVariable):
    """``int | str``."""


def _binary_dunder(
    tx: Translator, symbol: str, name: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker:
    """The methods that Python tries, in its order: in place, left, reflected; a subclass on the right goes first."""
    tries: list[tuple[VariableTracker, str, VariableTracker]] = []
    if symbol.endswith("="):
        tries.append((left, f"__{name}__", right))
        name = BINARY[symbol[:-1]][1]
    straight, reflected = (left, f"__{name}__", right), (right, f"__r{name}__", left)
    kinds = left.python_type(), right.python_type()
    if kinds[1] is not kinds[0] and issubclass(kinds[1], kinds[0]):
        tries += [reflected, straight]
    elif kinds[1] is kinds[0]:
        tries.append(straight)
    else:
        tries += [straight, reflected]
    return _first_answer(tx, symbol, tries)


def _with_tensor(
    tx: Translator, symbol: str, name: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker:
    """A tensor and an object that is none: the object's own method, which the tensor's refusal leads to."""
    if isinstance(left, UserObjectVariable):
        return _binary_dunder(tx, symbol, name, left, right)
    if static_lookup(right.python_type(), "__torch_function__") is not MISSING or any(
        static_lookup(right.python_type(), each) is not MISSING
        for each in ("__array__", "__iter__", "__len__", "__index__", "__float__")
    ):
        raise GraphBreak(f"{left.describe()} {symbol} {right.describe()}")
    name = BINARY[symbol.removesuffix("=")][1]
    return _first_answer(tx, symbol, [(right, f"__r{name}__", left)])


def _first_answer(
    tx: Translator, symbol: str, tries: list[tuple[VariableTracker, str, VariableTracker]]
) -> VariableTracker:
    """What the first method that does not refuse gives.

    Raises:
        GraphBreak: all refuse, so that Python will raise TypeError, or one is not known.
    """
    for owner, method, other in tries:
        if static_lookup(owner.python_type(), method) in (MISSING, None):
            continue
        if isinstance(owner, UserObjectVariable | ClassVariable):
            result = realize(owner.call_special(tx, method, [other]))
        else:
            result = _builtin_dunder(owner, method, other)
        if not (isinstance(result, ConstantVariable) and result.value is NotImplemented):
            return result
    raise GraphBreak(f"TypeError: the operands refuse {symbol}")


def _builtin_dunder(owner: VariableTracker, method: str, other: VariableTracker) -> VariableTracker:
    """A method of a built-in class, given an object of a user class: it refuses, unless that is a kind of its own."""
    kind = owner.python_type()
    if isinstance(owner, TensorVariable | ClassVariable) or other.builtin_content() is not None:
        raise GraphBreak(f"{method} of {owner.describe()} with {other.describe()}")
    if kind in (int, float, complex, bool, str, bytes, tuple, list, dict, set, frozenset, type(None)):
        if any(hasattr(other.python_type(), name) for name in ("__index__", "__iter__", "__float__")):
            raise GraphBreak(f"{method} of {owner.describe()} with {other.describe()}")
        return ConstantVariable(NotImplemented)
    raise GraphBreak(f"{method} of {owner.describe()}")


def _sequence_binary(
    tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | None:
    assert isinstance(left, SequenceVariable)
    if symbol in ("+", "+=") and isinstance(left, ListVariable) and symbol == "+=":
        left.call_method(tx, "extend", [right], {})
        return left
    if symbol in ("+", "+=") and isinstance(right, SequenceVariable) and _same_family(left, right):
        return left.sliced([*left.items, *right.items])
    if symbol in ("+", "+=") and _one_is_a_size(left, right):
        assert isinstance(right, SequenceVariable)
        return SizeVariable([*left.items, *right.items])
    if symbol in ("*", "*=") and isinstance(right, ConstantVariable) and isinstance(right.value, int):
        if symbol == "*=" and isinstance(left, ListVariable):
            left.items[:] = left.items * right.value
            left.changed(tx)
            return left
        return left.sliced(left.items * right.value)
    return None


#: whether torch makes a size of a size and a tuple
_SIZES_ABSORB: Final = type(torch.Size(()) + ()) is torch.Size and type(() + torch.Size(())) is torch.Size


def _one_is_a_size(left: VariableTracker, right: VariableTracker) -> bool:
    """Whether a size and a plain tuple of numbers are added."""
    kinds = {type(left), type(right)}
    return (
        _SIZES_ABSORB
        and kinds == {SizeVariable, TupleVariable}
        and all(
            is_number(item)
            for var in (left, right)
            if isinstance(var, TupleVariable)
            for item in realized(var.items)
        )
    )


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


_SET_METHODS: Final = {
    "|": "union", "&": "intersection", "-": "difference", "^": "symmetric_difference",
    "|=": "update", "&=": "intersection_update", "-=": "difference_update", "^=": "symmetric_difference_update",
}  # fmt: skip


def _set_binary(
    tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | None:
    assert isinstance(left, SetVariable)
    name = _SET_METHODS.get(symbol)
    keys = isinstance(right, DictViewVariable) and right.part != "values"
    if name is None or not (isinstance(right, SetVariable) or keys):
        return None
    if symbol.endswith("="):
        if left.kind is frozenset:
            name = _SET_METHODS[symbol[:-1]]
        else:
            left.call_method(tx, name, [right], {})
            return left
    return left.call_method(tx, name, [right], {})


def _view_binary(
    tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker | None:
    """``keys() & …``: a set, made from the items of the view in order."""
    assert isinstance(left, DictViewVariable)
    name = _SET_METHODS.get(symbol.removesuffix("="))
    if name is None or left.part == "values":
        return None
    return as_set(tx, left).call_method(tx, name, [right], {})


_BinaryRule = Callable[[Translator, str, VariableTracker, VariableTracker], VariableTracker | None]
_BINARY_RULES: Final[tuple[tuple[type[VariableTracker], _BinaryRule], ...]] = (
    (SequenceVariable, _sequence_binary),
    (DictVariable, _dict_binary),
    (SetVariable, _set_binary),
    (DictViewVariable, _view_binary),
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
    if isinstance(left, UserObjectVariable) or isinstance(right, UserObjectVariable):
        return _compare_objects(tx, symbol, left, right)
    varying = compute(tx, function, [left, right])
    if varying is not None:
        return varying
    for kind, rule in _COMPARE_RULES:
        if isinstance(left, kind) and isinstance(right, kind):
            answer = rule(tx, symbol, left, right)
            if answer is not None:
                return ConstantVariable(answer)
    known = constants([left, right], {})
    if known is not None:
        return fold(function, *known[0])
    if symbol in ("==", "!=") and _never_equal(left, right):
        return ConstantVariable(symbol == "!=")
    if symbol in ("==", "!=") and left.hashed_by_identity and right.hashed_by_identity:
        return ConstantVariable(identical(tx, left, right) == (symbol == "=="))
    raise GraphBreak(f"{left.describe()} {symbol} {right.describe()}")


def _compare_objects(
    tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker
) -> VariableTracker:
    """Rich comparison with a user object: the methods of both sides, then identity for ``==`` and ``!=``."""
    _, name, mirrored = COMPARE[symbol]
    straight, reflected = (left, f"__{name}__", right), (right, f"__{mirrored}__", left)
    kinds = left.python_type(), right.python_type()
    first = kinds[1] is not kinds[0] and issubclass(kinds[1], kinds[0])
    tries = [reflected, straight] if first else [straight, reflected]
    if symbol not in ("==", "!="):
        return _first_answer(tx, symbol, tries)
    for owner, method, other in tries:
        result = _equality(tx, owner, method, other)
        if not (isinstance(result, ConstantVariable) and result.value is NotImplemented):
            return result
    return ConstantVariable(identical(tx, left, right) == (symbol == "=="))


def _equality(tx: Translator, owner: VariableTracker, method: str, other: VariableTracker) -> VariableTracker:
    """``owner.__eq__(other)`` or ``owner.__ne__(other)``, with what `object` makes of them."""
    refused = ConstantVariable(NotImplemented)
    if not isinstance(owner, UserObjectVariable):
        return _builtin_dunder(owner, method, other)
    if static_lookup(owner.kind, method) is not static_lookup(object, method):
        content = other.builtin_content() if isinstance(other, UserObjectVariable) else other
        found = static_lookup(owner.kind, method)
        if owner.content is not None and content is not None and not isinstance(found, types.FunctionType):
            return compare(tx, "==" if method == "__eq__" else "!=", owner.content, content)
        return realize(owner.call_special(tx, method, [other]))
    if method == "__eq__":
        return ConstantVariable(True) if owner is other else refused
    answer = _equality(tx, owner, "__eq__", other)
    if isinstance(answer, ConstantVariable) and answer.value is NotImplemented:
        return answer
    return ConstantVariable(not answer.truth(tx))


def equal(tx: Translator, left: VariableTracker, right: VariableTracker) -> bool:
    """``left is right or left == right``, as containers compare their items."""
    left, right = realize(left), realize(right)
    if left is right:
        return True
    return realize(compare(tx, "==", left, right)).truth(tx)


_FAMILIES: Final[tuple[tuple[type, ...], ...]] = (
    (int, float, complex), (str,), (bytes,), (list,), (tuple,), (dict,), (set, frozenset), (range,), (type(None),),
)  # fmt: skip


def _never_equal(left: VariableTracker, right: VariableTracker) -> bool:
    """Whether two values of built-in classes cannot be equal, for their classes never are."""
    families = []
    for var in (left, right):
        kind = var.python_type()
        if type(var) not in (ConstantVariable, SizeVariable) and kind not in (
            list,
            tuple,
            dict,
            set,
            frozenset,
        ):
            return False
        families.append(next((family for family in _FAMILIES if issubclass(kind, family)), None))
    return None not in families and families[0] is not families[1]


def _compare_sequences(
    tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker
) -> bool | None:
    """Item by item, as lists and tuples do: the first pair that is not equal decides.

    Only lists look at their lengths first (Objects/listobject.c, Objects/tupleobject.c: *richcompare).
    """
    assert isinstance(left, SequenceVariable) and isinstance(right, SequenceVariable)
    if not _same_family(left, right):
        return None
    same_length = len(left.items) == len(right.items)
    if symbol in ("==", "!=") and not same_length and issubclass(left.python_type(), list):
        return symbol == "!="
    for one, other in zip(left.items, right.items, strict=False):
        if not equal(tx, one, other):
            if symbol in ("==", "!="):
                return symbol == "!="
            return realize(compare(tx, symbol, one, other)).truth(tx)
    return bool(COMPARE[symbol][0](len(left.items), len(right.items)))


def _compare_dicts(tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker) -> bool | None:
    assert isinstance(left, DictVariable) and isinstance(right, DictVariable)
    if symbol not in ("==", "!="):
        return None
    if left.kind is OrderedDict and right.kind is OrderedDict and list(left.entries) != list(right.entries):
        return symbol == "!="
    same = left.entries.keys() == right.entries.keys() and all(
        equal(tx, value, right.entries[key][1]) for key, (_, value) in left.entries.items()
    )
    return same == (symbol == "==")


def _compare_sets(tx: Translator, symbol: str, left: VariableTracker, right: VariableTracker) -> bool | None:
    assert isinstance(left, SetVariable) and isinstance(right, SetVariable)
    return bool(COMPARE[symbol][0](left.entries.keys(), right.entries.keys()))


_CompareRule = Callable[[Translator, str, VariableTracker, VariableTracker], bool | None]
_COMPARE_RULES: Final[tuple[tuple[type[VariableTracker], _CompareRule], ...]] = (
    (SequenceVariable, _compare_sequences),
    (DictVariable, _compare_dicts),
    (SetVariable, _compare_sets),
)


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
        prepare_key(tx, item)
        return ConstantVariable(container.contains(item))
    if isinstance(container, InstanceDictVariable):
        return ConstantVariable(container.contains(tx, item))
    if isinstance(container, DictViewVariable) and container.part == "keys":
        prepare_key(tx, item)
        return ConstantVariable(container.owner.contains(item))
    if isinstance(container, ConstantVariable) and isinstance(item, ConstantVariable):
        return fold(operator.contains, container.value, item.value)
    if isinstance(container, SequenceVariable):
        return ConstantVariable(any(equal(tx, each, item) for each in container.items))
    if isinstance(container, RangeVariable):
        known = constants([container, item], {})
        if known is not None:
            return fold(operator.contains, *known[0])
    if isinstance(container, DictViewVariable | IteratorVariable):
        return ConstantVariable(any(equal(tx, each, item) for each in iterator_of(tx, container).unpack(tx)))
    if isinstance(container, TensorVariable):
        return call_torch(tx, "call_method", "__contains__", [container, item], {})
    if isinstance(container, UserObjectVariable | ClassVariable | MappingProxyVariable):
        if static_lookup(container.python_type(), "__contains__") is MISSING:
            return ConstantVariable(
                any(equal(tx, each, item) for each in iterator_of(tx, container).unpack(tx))
            )
        return ConstantVariable(realize(container.call_special(tx, "__contains__", [item])).truth(tx))
    raise GraphBreak(f"{item.describe()} in {container.describe()}")


def get_item(tx: Translator, container: VariableTracker, key: VariableTracker) -> VariableTracker:
    """``container[key]``."""
    container, key = realize(container), realize(key)
    if isinstance(container, TensorVariable):
        return call_torch(tx, "call_function", operator.getitem, [container, key], {})
    if isinstance(container, SequenceVariable | DictVariable | RangeVariable | InstanceDictVariable):
        return container.item(tx, key)
    if isinstance(container, ClassVariable):
        return _class_item(tx, container, key)
    if isinstance(container, ConstantVariable):
        known = constants([key], {})
        if known is not None:
            return fold(operator.getitem, container.value, known[0][0])
    if isinstance(container, UserObjectVariable | MappingProxyVariable):
        return container.call_special(tx, "__getitem__", [key])
    raise GraphBreak(f"{container.describe()}[…]")


def _class_item(tx: Translator, container: ClassVariable, key: VariableTracker) -> VariableTracker:
    """``Class[key]``: the metaclass's ``__getitem__``, else ``__class_getitem__``."""
    if static_lookup(type(container.value), "__getitem__") is not MISSING:
        return container.call_special(tx, "__getitem__", [key])
    found = static_lookup(container.value, "__class_getitem__")
    if isinstance(found, classmethod) and isinstance(found.__func__, types.FunctionType):
        return container.get_attr(tx, "__class_getitem__").call(tx, [key], {})
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
    if isinstance(container, ListVariable | DequeVariable | DictVariable | InstanceDictVariable):
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
