"""`itertools`: lazy where Python is lazy, so that what feeds an iterator runs when Python would run it."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from dynamo.eval.errors import GraphBreak
from dynamo.eval.models import operators
from dynamo.eval.models.builtin_calls import Args, Kwargs, expect
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.iterator import (
    GeneratedIteratorVariable,
    IteratorVariable,
    StopSymbolicIteration,
    iterator_of,
    unpacked_whole,
)
from dynamo.eval.variables.sequence import TupleVariable

Generated = GeneratedIteratorVariable


def _named(name: str, args: Args, kwargs: Kwargs, *names: str) -> list[VariableTracker | None]:
    """Arguments by position or name; None for those not given."""
    if len(args) > len(names) or not set(kwargs) <= set(names[len(args) :]):
        raise GraphBreak(f"{name}() with these arguments")
    return [
        realize(args[i]) if i < len(args) else realize(kwargs[each]) if each in kwargs else None
        for i, each in enumerate(names)
    ]


def _given(name: str, var: VariableTracker | None) -> VariableTracker:
    if var is None:
        raise GraphBreak(f"TypeError: {name}() with too few arguments")
    return var


def _integer(name: str, var: VariableTracker) -> int:
    value = var.as_python_constant()
    if type(value) is not int:
        raise GraphBreak(f"{name}() with {var.describe()}")
    return value


def _is_none(var: VariableTracker | None) -> bool:
    return var is None or isinstance(var, ConstantVariable) and var.value is None


@models(itertools.count)
def call_count(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    start, step = _named("count", args, kwargs, "start", "step")

    def items(it: Generated) -> Iterator[VariableTracker]:
        value = start if start is not None else ConstantVariable(0)
        by = step if step is not None else ConstantVariable(1)
        while True:
            yield value
            value = operators.binary(it.tx, "+", value, by)

    return Generated("count", tx, items)


@models(itertools.repeat)
def call_repeat(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    value, times = _named("repeat", args, kwargs, "object", "times")
    item = _given("repeat", value)
    source = itertools.repeat(item) if times is None else itertools.repeat(item, _integer("repeat", times))
    return Generated("repeat", tx, lambda it: iter(source))


@models(itertools.cycle)
def call_cycle(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (given,) = expect("cycle", args, kwargs, 1)
    inner = iterator_of(tx, given)

    def items(it: Generated) -> Iterator[VariableTracker]:
        seen = []
        for item in it.each(inner):
            seen.append(item)
            yield item
        while seen:
            yield from seen

    return Generated("cycle", tx, items)


def _chained(tx: Translator, parts: IteratorVariable) -> VariableTracker:
    def items(it: Generated) -> Iterator[VariableTracker]:
        for part in it.each(parts):
            yield from it.each(iterator_of(it.tx, part))

    return Generated("chain", tx, items)


@models(itertools.chain)
def call_chain(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    expect("chain", args, kwargs, 0, len(args))
    return _chained(tx, iterator_of(tx, TupleVariable(args)))


@models(itertools.chain.__dict__["from_iterable"])
def call_from_iterable(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    kind, parts = expect("chain.from_iterable", args, kwargs, 2)
    if not isinstance(kind, ClassVariable) or kind.value is not itertools.chain:
        raise GraphBreak("from_iterable() of a subclass of chain")
    return _chained(tx, iterator_of(tx, parts))


@models(itertools.islice)
def call_islice(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    given = expect("islice", args, kwargs, 2, 4)
    inner = iterator_of(tx, given[0])
    numbers = [None if _is_none(each) else _integer("islice", each) for each in given[1:]]
    window = slice(*numbers)
    start, stop, step = window.start or 0, window.stop, 1 if window.step is None else window.step
    if start < 0 or step < 1 or (stop is not None and stop < 0):
        raise GraphBreak("ValueError: islice() with negative numbers")

    def items(it: Generated) -> Iterator[VariableTracker]:
        wanted = itertools.count(start, step) if stop is None else iter(range(start, max(start, stop), step))
        at = 0
        source = it.each(inner)
        for place in wanted:
            while at < place:
                if next(source, None) is None:
                    return
                at += 1
            item = next(source, None)
            if item is None:
                return
            at += 1
            yield item
        while stop is not None and at < stop:  # as C does: the rest up to `stop` is taken too
            if next(source, None) is None:
                return
            at += 1

    return Generated("islice", tx, items)


def _indexed(function: Callable[..., Iterator[tuple[int, ...]]], name: str) -> None:
    """Register a combinatoric function: it takes all items at once, then gives tuples of them."""

    @models(function)
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        given, length = _named(name, args, kwargs, "iterable", "r")
        items = unpacked_whole(tx, _given(name, given))
        extra = () if _is_none(length) else (_integer(name, _given(name, length)),)
        try:
            places = function(range(len(items)), *extra)
        except (TypeError, ValueError) as error:
            raise GraphBreak(f"{type(error).__name__}: {error}") from error
        return Generated(name, tx, lambda it: (TupleVariable([items[i] for i in each]) for each in places))


_indexed(itertools.permutations, "permutations")
_indexed(itertools.combinations, "combinations")
_indexed(itertools.combinations_with_replacement, "combinations_with_replacement")


@models(itertools.product)
def call_product(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if not set(kwargs) <= {"repeat"}:
        raise GraphBreak("product() with these arguments")
    repeat = _integer("product", realize(kwargs["repeat"])) if "repeat" in kwargs else 1
    if repeat < 0:
        raise GraphBreak("ValueError: repeat argument cannot be negative")
    pools = [unpacked_whole(tx, arg) for arg in args] * repeat
    found = itertools.product(*pools)
    return Generated("product", tx, lambda it: (TupleVariable(list(each)) for each in found))


@models(itertools.accumulate)
def call_accumulate(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    given, function, initial = _named("accumulate", args, kwargs, "iterable", "func", "initial")
    inner = iterator_of(tx, _given("accumulate", given))

    def items(it: Generated) -> Iterator[VariableTracker]:
        source = it.each(inner)
        total = next(source, None) if _is_none(initial) else initial
        if total is None:
            return
        yield total
        for item in source:
            if function is None or _is_none(function):
                total = operators.binary(it.tx, "+", total, item)
            else:
                total = realize(function.call(it.tx, [total, item], {}))
            yield total

    return Generated("accumulate", tx, items)


@models(itertools.zip_longest)
def call_zip_longest(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if not set(kwargs) <= {"fillvalue"}:
        raise GraphBreak("zip_longest() with these arguments")
    fill = realize(kwargs["fillvalue"]) if "fillvalue" in kwargs else ConstantVariable(None)
    inner = [iterator_of(tx, arg) for arg in args]

    def items(it: Generated) -> Iterator[VariableTracker]:
        ended: set[int] = set()
        while inner:
            row: list[VariableTracker] = []
            for i, each in enumerate(inner):
                try:
                    row.append(fill if i in ended else each.next(it.tx))
                except StopSymbolicIteration:
                    ended.add(i)
                    if len(ended) == len(inner):
                        return
                    row.append(fill)
            yield TupleVariable(row)

    return Generated("zip_longest", tx, items)


@models(itertools.starmap)
def call_starmap(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    function, given = expect("starmap", args, kwargs, 2)
    inner = iterator_of(tx, given)
    return Generated(
        "starmap",
        tx,
        lambda it: (function.call(it.tx, unpacked_whole(it.tx, item), {}) for item in it.each(inner)),
    )


def _selecting(function: Any, name: str, select: Callable[..., Iterator[VariableTracker]]) -> None:
    """Register a function of a predicate and an iterable."""

    @models(function)
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        predicate, given = expect(name, args, kwargs, 2)
        inner = iterator_of(tx, given)

        def items(it: Generated) -> Iterator[VariableTracker]:
            def holds(item: VariableTracker) -> bool:
                if _is_none(predicate):
                    return item.truth(it.tx)
                return realize(predicate.call(it.tx, [item], {})).truth(it.tx)

            return select(holds, it.each(inner))

        return Generated(name, tx, items)


_selecting(itertools.takewhile, "takewhile", itertools.takewhile)
_selecting(itertools.dropwhile, "dropwhile", itertools.dropwhile)
_selecting(itertools.filterfalse, "filterfalse", itertools.filterfalse)


@models(itertools.compress)
def call_compress(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    data, selectors = _named("compress", args, kwargs, "data", "selectors")
    first = iterator_of(tx, _given("compress", data))
    second = iterator_of(tx, _given("compress", selectors))

    def items(it: Generated) -> Iterator[VariableTracker]:
        for item, wanted in zip(it.each(first), it.each(second), strict=False):
            if wanted.truth(it.tx):
                yield item

    return Generated("compress", tx, items)


@models(itertools.pairwise)
def call_pairwise(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (given,) = expect("pairwise", args, kwargs, 1)
    inner = iterator_of(tx, given)
    return Generated(
        "pairwise", tx, lambda it: (TupleVariable(list(pair)) for pair in itertools.pairwise(it.each(inner)))
    )


@models(itertools.groupby)
def call_groupby(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    """Groups are made whole when they are reached: asking for the next group drops the rest of the last one in Python."""
    given, key = _named("groupby", args, kwargs, "iterable", "key")
    items = unpacked_whole(tx, _given("groupby", given))
    keys = [item if key is None or _is_none(key) else realize(key.call(tx, [item], {})) for item in items]
    groups: list[tuple[VariableTracker, list[VariableTracker]]] = []
    for name, item in zip(keys, items, strict=True):
        if not groups or not operators.equal(tx, groups[-1][0], name):
            groups.append((name, []))
        groups[-1][1].append(item)

    def rows(it: Generated) -> Iterator[VariableTracker]:
        latest: list[list[VariableTracker]] = []
        for name, members in groups:
            for before in latest:
                before.clear()
            rest = list(members)
            latest = [rest]
            yield TupleVariable([name, Generated("groupby", it.tx, lambda inner, rest=rest: _taken(rest))])  # type: ignore[misc]  # a default argument binds the loop's value

    return Generated("groupby", tx, rows)


def _taken(items: list[VariableTracker]) -> Iterator[VariableTracker]:
    while items:
        yield items.pop(0)


@models(itertools.tee)
def call_tee(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    given, count = _named("tee", args, kwargs, "iterable", "n")
    inner = iterator_of(tx, _given("tee", given))
    buffers: list[list[VariableTracker]] = [[] for _ in range(2 if count is None else _integer("tee", count))]

    def items(it: Generated, own: list[VariableTracker]) -> Iterator[VariableTracker]:
        while True:
            if not own:
                try:
                    item = inner.next(it.tx)
                except StopSymbolicIteration:
                    return
                for each in buffers:
                    each.append(item)
            yield own.pop(0)

    return TupleVariable([_tee(tx, items, own) for own in buffers])


def _tee(
    tx: Translator,
    items: Callable[[Generated, list[VariableTracker]], Iterator[VariableTracker]],
    own: list[VariableTracker],
) -> VariableTracker:
    return Generated("tee", tx, lambda it: items(it, own))


if hasattr(itertools, "batched"):

    @models(itertools.batched)
    def call_batched(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        given, count = _named("batched", args, kwargs, "iterable", "n")
        inner = iterator_of(tx, _given("batched", given))
        size = _integer("batched", _given("batched", count))
        if size < 1:
            raise GraphBreak("ValueError: n must be at least one")

        def rows(it: Generated) -> Iterator[VariableTracker]:
            source = it.each(inner)
            while row := list(itertools.islice(source, size)):
                yield TupleVariable(row)

        return Generated("batched", tx, rows)
