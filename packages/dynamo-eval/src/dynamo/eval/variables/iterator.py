"""Iterators over values known at capture."""

import builtins
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.variables.base import Translator, VariableTracker, realize


class StopSymbolicIteration(Exception):
    """The iterator is exhausted.

    Attributes:
        value: what a generator returned.
    """

    def __init__(self, value: VariableTracker | None = None) -> None:
        super().__init__()
        self.value = value


class IteratorVariable(VariableTracker):
    """An iterator made by the captured code."""

    mutable = True

    def next(self, tx: Translator) -> VariableTracker:
        """The next item.

        Raises:
            StopSymbolicIteration: there is none.
        """
        raise NotImplementedError

    def iterate(self, tx: Translator) -> VariableTracker:
        return self

    def truth(self, tx: Translator) -> bool:
        return True

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        items: list[VariableTracker] = []
        tx.output.effects.count += 1  # exhausting an iterator cannot be undone in place
        while True:
            try:
                items.append(self.next(tx))
            except StopSymbolicIteration:
                return items


@final
class SequenceIteratorVariable(IteratorVariable):
    """An iterator over a list, tuple or range: the very list of items, and a position."""

    def __init__(self, owner: VariableTracker, items: list[VariableTracker]) -> None:
        super().__init__()
        self.owner = owner
        self.items = items
        self.position = 0
        self.exhausted = False

    def python_type(self) -> type:
        return type(iter(self.owner.python_type()())) if self.owner.python_type() in (list, tuple) else object

    def next(self, tx: Translator) -> VariableTracker:
        if self.exhausted or self.position >= len(self.items):
            self.exhausted = True
            raise StopSymbolicIteration
        self.position += 1
        return realize(self.items[self.position - 1])


@final
class KeyedIteratorVariable(IteratorVariable):
    """An iterator over a dict, a view of one, or a set: items are read when asked for, while the keys stay the same.

    Python raises when the number of keys changed; here any change of the keys breaks.

    Args:
        owner: what is iterated.
        keys: its keys now, in order.
        layout: a value that is another one after any key came or went.
        item: what the iterator gives for a key.
    """

    def __init__(
        self,
        owner: VariableTracker,
        keys: Iterable[Any],
        layout: Callable[[], object],
        item: Callable[[Any], VariableTracker],
    ) -> None:
        super().__init__()
        self.owner = owner
        self.keys = list(keys)
        self.layout = layout
        self.before = layout()
        self.item = item
        self.position = 0
        self.exhausted = False

    def describe(self) -> str:
        return f"an iterator over {self.owner.describe()}"

    def next(self, tx: Translator) -> VariableTracker:
        if self.exhausted:
            raise StopSymbolicIteration
        if self.layout() != self.before:
            raise GraphBreak(f"{self.owner.describe()} whose keys changed while it is iterated")
        if self.position >= len(self.keys):
            self.exhausted = True
            raise StopSymbolicIteration
        self.position += 1
        return realize(self.item(self.keys[self.position - 1]))


def _kind_of(name: str) -> type:
    """The class of the iterators that a function of `builtins` or `itertools` gives."""
    kind = getattr(builtins, name, None) or getattr(itertools, name, None)
    if not isinstance(kind, type):
        raise GraphBreak(f"the type of a {name} iterator")
    return kind


@final
class ComputedIteratorVariable(IteratorVariable):
    """`zip`, `map`, `enumerate`, … : each item computed when it is asked for, as Python does."""

    def __init__(self, compute: Callable[[Translator], VariableTracker], name: str) -> None:
        super().__init__()
        self.compute = compute
        self.name = name

    def python_type(self) -> type:
        return _kind_of(self.name)

    def describe(self) -> str:
        return f"a {self.name} iterator"

    def next(self, tx: Translator) -> VariableTracker:
        try:
            return self.compute(tx)
        except PythonRaise as error:
            if issubclass(error.kind, StopIteration):  # a function that it called ends it
                raise StopSymbolicIteration from error
            raise


@final
class GeneratedIteratorVariable(IteratorVariable):
    """An iterator of `itertools`, written as a generator of variables.

    Attributes:
        tx: who asks for the present item; the generator reads it.
    """

    def __init__(
        self,
        name: str,
        tx: Translator,
        generate: "Callable[[GeneratedIteratorVariable], Iterator[VariableTracker]]",
    ) -> None:
        super().__init__()
        self.name = name
        self.tx = tx
        self.items = generate(self)

    def python_type(self) -> type:
        return _kind_of(self.name)

    def describe(self) -> str:
        return f"a {self.name} iterator"

    def next(self, tx: Translator) -> VariableTracker:
        self.tx = tx
        try:
            return realize(next(self.items))
        except StopIteration:
            raise StopSymbolicIteration from None

    def each(self, inner: IteratorVariable) -> Iterator[VariableTracker]:
        """The items of another iterator, asked for one by one."""
        while True:
            try:
                item = inner.next(self.tx)
            except StopSymbolicIteration:
                return
            yield item


def unpacked_whole(tx: Translator, var: VariableTracker) -> list[VariableTracker]:
    """All items, for an operation of which an exception half-way would leave a part done.

    Raises:
        GraphBreak: the iteration raises.
    """
    try:
        return realize(var).unpack(tx)
    except PythonRaise as error:
        raise GraphBreak(f"an iteration that ends with {error.what}") from error


def iterator_of(tx: Translator, var: VariableTracker) -> IteratorVariable:
    """``iter(var)`` as something that can be stepped at capture."""
    found = realize(var).iterate(tx)
    if not isinstance(found, IteratorVariable):
        raise GraphBreak(f"iterating over {var.describe()}")
    return found
