"""iter, next, zip, enumerate, map, filter, reversed, sorted, sum, min, max, any, all."""

import functools

from dynamo.eval.errors import GraphBreak
from dynamo.eval.models import operators
from dynamo.eval.models.builtin_calls import Args, Kwargs, expect
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.constant import ConstantVariable, fold
from dynamo.eval.variables.iterator import (
    ComputedIteratorVariable,
    IteratorVariable,
    StopSymbolicIteration,
    iterator_of,
)
from dynamo.eval.variables.sequence import ListVariable, SequenceVariable, TupleVariable, sort_items
from dynamo.eval.variables.tensor import TensorVariable


@models(iter)
def call_iter(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("iter", args, kwargs, 1)
    return value.iterate(tx)


@models(next)
def call_next(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    value, *default = expect("next", args, kwargs, 1, 2)
    if not isinstance(value, IteratorVariable):
        raise GraphBreak(f"next() of {value.describe()}")
    tx.output.effects.count += 1
    try:
        return realize(value.next(tx))
    except StopSymbolicIteration as stop:
        if default:
            return default[0]
        raise GraphBreak("StopIteration") from stop


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
    strict = kwargs.get("strict")
    if strict is not None and strict.truth(tx):
        raise GraphBreak("zip(strict=True)")
    inner = [iterator_of(tx, arg) for arg in args]

    def compute(tx: Translator) -> VariableTracker:
        if not inner:
            raise StopSymbolicIteration
        return TupleVariable([each.next(tx) for each in inner])

    return ComputedIteratorVariable(compute, "zip")


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
    items = iterator_of(tx, value).unpack(tx)
    if all(isinstance(item, ConstantVariable) for item in items) and isinstance(total, ConstantVariable):
        return _fold_sum(items, total)
    for item in items:
        total = operators.binary(tx, "+", total, item)
    return total


def _fold_sum(items: list[VariableTracker], start: ConstantVariable) -> VariableTracker:
    return fold(sum, [item.as_python_constant() for item in items], start.value)


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
    if not set(kwargs) <= {"key", "default"} or not args:
        raise GraphBreak(f"{name}() with these arguments")
    items = iterator_of(tx, args[0]).unpack(tx) if len(args) == 1 else [realize(arg) for arg in args]
    if not items:
        if "default" in kwargs:
            return realize(kwargs["default"])
        raise GraphBreak(f"ValueError: {name}() of an empty sequence")
    if any(isinstance(item, TensorVariable) for item in items):
        raise GraphBreak(f"{name}() of tensors", "use torch.minimum or torch.maximum")
    key = kwargs.get("key")
    keys = [realize(key).call(tx, [item], {}) for item in items] if key is not None else items
    best = 0
    for i in range(1, len(items)):
        if operators.compare(tx, symbol, keys[i], keys[best]).truth(tx):
            best = i
    return items[best]


@models(functools.reduce)
def call_reduce(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    function, value, *start = expect("reduce", args, kwargs, 2, 3)
    items = iterator_of(tx, value).unpack(tx)
    if not start and not items:
        raise GraphBreak("TypeError: reduce() of an empty sequence")
    total = start[0] if start else items.pop(0)
    for item in items:
        total = function.call(tx, [total, item], {})
    return total
