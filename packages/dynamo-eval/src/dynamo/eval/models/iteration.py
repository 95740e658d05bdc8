"""iter, next, zip, enumerate, map, filter, reversed, sorted, sum, min, max, any, all."""

import functools
from collections.abc import Iterator

from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.models import operators
from dynamo.eval.models.builtin_calls import Args, Kwargs, expect
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.constant import ConstantVariable, fold
from dynamo.eval.variables.dictionary import DictVariable, DictViewVariable
from dynamo.eval.variables.iterator import (
    ComputedIteratorVariable,
    IteratorVariable,
    SequenceIteratorVariable,
    StopSymbolicIteration,
    iterator_of,
)
from dynamo.eval.variables.lookup import MISSING, static_lookup
from dynamo.eval.variables.objects import UserIteratorVariable, UserObjectVariable
from dynamo.eval.variables.sequence import (
    ListVariable,
    RangeVariable,
    SequenceVariable,
    TupleVariable,
    sort_items,
)
from dynamo.eval.variables.tensor import TensorVariable


@models(iter)
def call_iter(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("iter", args, kwargs, 1)
    return value.iterate(tx)


@models(next)
def call_next(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    value, *default = expect("next", args, kwargs, 1, 2)
    if isinstance(value, UserObjectVariable):
        value = UserIteratorVariable(value)
    if not isinstance(value, IteratorVariable):
        raise GraphBreak(f"next() of {value.describe()}")
    tx.output.effects.count += 1
    try:
        return realize(value.next(tx))
    except StopSymbolicIteration as stop:
        if default:
            return default[0]
        arguments = () if stop.value is None else (stop.value,)
        raise PythonRaise(StopIteration, arguments) from stop


@models(enumerate)
def call_enumerate(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if "start" in kwargs:
        args = [*args, kwargs["start"]]
        kwargs = {}
    value, *start = expect("enumerate", args, kwargs, 1, 2)
    inner = iterator_of(tx, value)
    count = int(start[0].as_python_constant()) if start else 0

    def compute(tx: Translator) -> VariableTracker:
        nonlocal count
        item = inner.next(tx)
        count += 1
        return TupleVariable([ConstantVariable(count - 1), item])

    return ComputedIteratorVariable(compute, "enumerate")


@models(zip)
def call_zip(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if not set(kwargs) <= {"strict"}:
        raise GraphBreak("zip() with these arguments")
    strict = "strict" in kwargs and realize(kwargs["strict"]).truth(tx)
    inner = [iterator_of(tx, arg) for arg in args]

    def compute(tx: Translator) -> VariableTracker:
        if not inner:
            raise StopSymbolicIteration
        items: list[VariableTracker] = []
        for each in inner:
            try:
                items.append(each.next(tx))
            except StopSymbolicIteration:
                if strict:
                    _zip_ends(tx, inner, len(items))
                raise
        return TupleVariable(items)

    return ComputedIteratorVariable(compute, "zip")


def _zip_ends(tx: Translator, inner: list[IteratorVariable], place: int) -> None:
    """Iterator `place` of ``zip(…, strict=True)`` is exhausted: all others must be.

    Raises:
        PythonRaise: one is not.
    """

    def others(count: int) -> str:
        return " 1" if count == 1 else f"s 1-{count}"

    if place > 0:
        raise PythonRaise(
            ValueError, (f"zip() argument {place + 1} is shorter than argument{others(place)}",)
        )
    for index, each in enumerate(inner[1:], 1):
        try:
            each.next(tx)
        except StopSymbolicIteration:
            continue
        raise PythonRaise(ValueError, (f"zip() argument {index + 1} is longer than argument{others(index)}",))


@models(map)
def call_map(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if kwargs or len(args) < 2:
        raise GraphBreak("map() with these arguments")
    function = realize(args[0])
    inner = [iterator_of(tx, arg) for arg in args[1:]]

    def compute(tx: Translator) -> VariableTracker:
        return function.call(tx, [each.next(tx) for each in inner], {})

    return ComputedIteratorVariable(compute, "map")


@models(filter)
def call_filter(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    function, value = expect("filter", args, kwargs, 2)
    inner = iterator_of(tx, value)
    plain = isinstance(function, ConstantVariable) and function.value is None

    def compute(tx: Translator) -> VariableTracker:
        while True:
            item = inner.next(tx)
            if (item if plain else function.call(tx, [item], {})).truth(tx):
                return item

    return ComputedIteratorVariable(compute, "filter")


@models(reversed)
def call_reversed(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("reversed", args, kwargs, 1)
    if isinstance(value, DictVariable | DictViewVariable):
        return value.call_method(tx, "__reversed__", [], {})
    if isinstance(value, UserObjectVariable) and static_lookup(value.kind, "__reversed__") is not MISSING:
        return realize(value.call_special(tx, "__reversed__", [])).iterate(tx)
    if isinstance(value, RangeVariable):
        return fold(lambda: value.value[::-1]).iterate(tx)
    if not isinstance(value, SequenceVariable):
        raise GraphBreak(f"reversed() of {value.describe()}")
    position = len(value.items)

    def compute(tx: Translator) -> VariableTracker:
        nonlocal position
        position = position - 1 if position <= len(value.items) else -1
        if position < 0:
            raise StopSymbolicIteration
        return realize(value.items[position])

    return ComputedIteratorVariable(compute, "reversed")


@models(sorted)
def call_sorted(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if len(args) != 1 or not set(kwargs) <= {"key", "reverse"}:
        raise GraphBreak("sorted() with these arguments")
    items = iterator_of(tx, args[0]).unpack(tx)
    return ListVariable(sort_items(tx, items, {name: realize(var) for name, var in kwargs.items()}))


@models(sum)
def call_sum(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if "start" in kwargs:
        args = [*args, kwargs["start"]]
        kwargs = {}
    value, *start = expect("sum", args, kwargs, 1, 2)
    total: VariableTracker = start[0] if start else ConstantVariable(0)
    inner = iterator_of(tx, value)
    literals: list[ConstantVariable] = []
    for item in stepped(tx, inner):
        if isinstance(item, ConstantVariable) and isinstance(total, ConstantVariable):
            literals.append(item)
            continue
        total = _fold_sum(inner, literals, total)
        literals.clear()
        total = operators.binary(tx, "+", total, item)
    return _fold_sum(inner, literals, total)


def _fold_sum(
    inner: IteratorVariable, items: list[ConstantVariable], start: VariableTracker
) -> VariableTracker:
    if not items:
        return start
    try:
        return fold(sum, [item.value for item in items], start.as_python_constant())
    except PythonRaise as error:
        if isinstance(inner, SequenceIteratorVariable):
            raise
        raise GraphBreak(f"sum() of {inner.describe()} that ends with {error.what}") from error


def stepped(tx: Translator, inner: IteratorVariable) -> Iterator[VariableTracker]:
    """The items of `inner`, each taken when it is asked for."""
    tx.output.effects.count += 1  # what is taken from an iterator cannot be put back in place
    while True:
        try:
            item = inner.next(tx)
        except StopSymbolicIteration:
            return
        yield realize(item)


@models(any)
def call_any(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("any", args, kwargs, 1)
    return _first_with_truth(tx, value, True)


@models(all)
def call_all(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("all", args, kwargs, 1)
    return _first_with_truth(tx, value, False)


def _first_with_truth(tx: Translator, value: VariableTracker, wanted: bool) -> VariableTracker:
    inner = iterator_of(tx, value)
    tx.output.effects.count += 1  # what is taken from an iterator cannot be put back in place
    while True:
        try:
            item = inner.next(tx)
        except StopSymbolicIteration:
            return ConstantVariable(not wanted)
        if item.truth(tx) is wanted:
            return ConstantVariable(wanted)


@models(min)
def call_min(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    return _extreme(tx, "<", args, kwargs)


@models(max)
def call_max(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    return _extreme(tx, ">", args, kwargs)


def _extreme(tx: Translator, symbol: str, args: Args, kwargs: Kwargs) -> VariableTracker:
    name = "min" if symbol == "<" else "max"
    if not set(kwargs) <= {"key", "default"} or not args or (len(args) > 1 and "default" in kwargs):
        raise GraphBreak(f"{name}() with these arguments")
    items = stepped(tx, iterator_of(tx, args[0])) if len(args) == 1 else map(realize, args)
    key = realize(kwargs["key"]) if "key" in kwargs else ConstantVariable(None)
    plain = isinstance(key, ConstantVariable) and key.value is None
    best: tuple[VariableTracker, VariableTracker] | None = None
    for item in items:
        if isinstance(item, TensorVariable):
            raise GraphBreak(f"{name}() of tensors", "use torch.minimum or torch.maximum")
        rank = item if plain else realize(key.call(tx, [item], {}))
        if best is None or realize(operators.compare(tx, symbol, rank, best[1])).truth(tx):
            best = item, rank
    if best is not None:
        return best[0]
    if "default" in kwargs:
        return realize(kwargs["default"])
    raise GraphBreak(f"ValueError: {name}() of an empty sequence")


@models(functools.reduce)
def call_reduce(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    function, value, *start = expect("reduce", args, kwargs, 2, 3)
    total: VariableTracker | None = start[0] if start else None
    for item in stepped(tx, iterator_of(tx, value)):
        total = item if total is None else realize(function.call(tx, [total, item], {}))
    if total is None:
        raise GraphBreak("TypeError: reduce() of an empty sequence")
    return total
