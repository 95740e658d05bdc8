"""Tuples, named tuples, `torch.Size`, lists, ranges and slices."""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, final

import torch

from dynamo.eval.effects import ContentChange
from dynamo.eval.errors import GraphBreak, PythonRaise, raised_by_python
from dynamo.eval.variables.base import Translator, VariableTracker, realize, realized
from dynamo.eval.variables.calls import model_of
from dynamo.eval.variables.constant import FRESH, ConstantVariable, fold, from_constant
from dynamo.eval.variables.iterator import SequenceIteratorVariable, unpacked_whole
from dynamo.eval.variables.symbolic import SymbolicVariable, compute
from dynamo.guards import Source


class SequenceVariable(VariableTracker):
    """What tuples and lists share: known length, items that may not have been read yet."""

    kind: ClassVar[Any]  # a class that an iterable of items makes

    def __init__(self, items: Sequence[VariableTracker], source: Source | None = None) -> None:
        super().__init__(source)
        self.items = list(items)

    def builtin_content(self) -> VariableTracker | None:
        return self

    def python_type(self) -> type:
        return self.kind  # type: ignore[no-any-return]  # see `kind`

    def as_python_constant(self) -> Any:
        return self.kind(realize(item).as_python_constant() for item in self.items)

    def as_graph_arg(self) -> Any:
        return self.kind(realize(item).as_graph_arg() for item in self.items)

    def as_fake(self) -> Any:
        return self.kind(realize(item).as_fake() for item in self.items)

    def truth(self, tx: Translator) -> bool:
        return bool(self.items)

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        return realized(self.items)

    def iterate(self, tx: Translator) -> VariableTracker:
        return SequenceIteratorVariable(self, self.items)

    def item(self, tx: Translator, key: VariableTracker) -> VariableTracker:
        """``value[key]`` for a known index or slice."""
        index = index_of(key)
        try:
            found = self.items[index]
        except IndexError as error:
            message = (
                "list index out of range" if isinstance(self, ListVariable) else "tuple index out of range"
            )
            raise PythonRaise(IndexError, (message,)) from error
        if isinstance(found, list):
            return self.sliced(found)
        return realize(found)

    def sliced(self, items: list[VariableTracker]) -> VariableTracker:
        """A slice of this value."""
        raise NotImplementedError

    def positions(self, tx: Translator, wanted: VariableTracker) -> Iterator[int]:
        """Where items are `wanted` or equal to it, compared one by one, as the methods of lists and tuples do."""
        equal = model_of(operator.eq)
        assert equal is not None
        wanted = realize(wanted)
        for place, item in enumerate(realized(self.items)):
            if item is wanted or realize(equal(tx, [item, wanted], {})).truth(tx):
                yield place

    def _index(self, tx: Translator, args: list[VariableTracker]) -> VariableTracker:
        if len(args) > 1:
            bounds = slice(*map(index_of, args[1:]))
            if not all(isinstance(bound, int | None) for bound in (bounds.start, bounds.stop)):
                raise GraphBreak("a slice as a bound of index()")
            wanted = set(range(len(self.items))[bounds])
        else:
            wanted = set(range(len(self.items)))
        for place in self.positions(tx, args[0]):
            if place in wanted:
                return ConstantVariable(place)
        raise GraphBreak(f"ValueError: {args[0].describe()} is not in the {self.kind.__name__}")

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name == "index" and 1 <= len(args) <= 3 and not kwargs:
            return self._index(tx, args)
        if name == "count" and len(args) == 1 and not kwargs:
            return ConstantVariable(len(list(self.positions(tx, args[0]))))
        if name == "__contains__" and len(args) == 1 and not kwargs:
            return ConstantVariable(next(self.positions(tx, args[0]), None) is not None)
        if name == "__len__":
            return ConstantVariable(len(self.items))
        if name == "__getitem__" and len(args) == 1:
            return self.item(tx, args[0])
        if name == "__iter__":
            return self.iterate(tx)
        raise GraphBreak(f"{self.kind.__name__}.{name}()")

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if callable(getattr(self.python_type(), name, None)):
            return BoundMethodVariable(self, name)
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")


@final
class BoundMethodVariable(VariableTracker):
    """A bound method of a built-in container that is not called at once."""

    def __init__(self, owner: VariableTracker, name: str) -> None:
        super().__init__()
        self.owner = owner
        self.name = name

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return self.owner.call_method(tx, self.name, args, kwargs)


class TupleVariable(SequenceVariable):
    """A tuple."""

    kind: ClassVar[Any] = tuple
    mutable = True  # not changeable, but `is` tells two equal ones apart

    def sliced(self, items: list[VariableTracker]) -> VariableTracker:
        return TupleVariable(items)


@final
class SizeVariable(TupleVariable):
    """A `torch.Size`."""

    kind: ClassVar[Any] = torch.Size

    @property
    def varies(self) -> bool:
        """Whether one of the sizes is known only when the graph runs."""
        return any(isinstance(realize(item), SymbolicVariable) for item in self.items)

    def as_graph_arg(self) -> Any:
        return tuple(realize(item).as_graph_arg() for item in self.items)  # torch.Size holds integers only

    def as_fake(self) -> Any:
        return tuple(realize(item).as_fake() for item in self.items)

    def sliced(self, items: list[VariableTracker]) -> VariableTracker:
        return SizeVariable(items)

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name == "numel" and not args:
            product: VariableTracker = ConstantVariable(1)
            for item in self.items:
                product = compute(tx, operator.mul, [product, item]) or fold(
                    operator.mul, product.as_python_constant(), realize(item).as_python_constant()
                )
            return product
        return super().call_method(tx, name, args, kwargs)


@final
class NamedTupleVariable(TupleVariable):
    """An instance of a class made by `collections.namedtuple` or `typing.NamedTuple`."""

    def __init__(self, items: Sequence[VariableTracker], kind: Any, source: Source | None = None) -> None:
        super().__init__(items, source)
        self.named_kind = kind

    def python_type(self) -> type:
        return self.named_kind  # type: ignore[no-any-return]  # a namedtuple class has no common static type

    def as_python_constant(self) -> Any:
        return self.named_kind._make(realize(item).as_python_constant() for item in self.items)

    def as_graph_arg(self) -> Any:
        return self.named_kind._make(realize(item).as_graph_arg() for item in self.items)

    def as_fake(self) -> Any:
        return self.named_kind._make(realize(item).as_fake() for item in self.items)

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name in self.named_kind._fields:
            return realize(self.items[self.named_kind._fields.index(name)])
        if name == "_fields":
            return from_constant(self.named_kind._fields)
        return super().get_attr(tx, name)

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name == "_replace" and not args:
            items = list(self.items)
            for key, value in kwargs.items():
                if key not in self.named_kind._fields:
                    raise GraphBreak(f"ValueError: got unexpected field name {key!r}")
                items[self.named_kind._fields.index(key)] = value
            return NamedTupleVariable(items, self.named_kind)
        return super().call_method(tx, name, args, kwargs)


class ListVariable(SequenceVariable):
    """A list; changes are kept here and, if it came from outside, logged for replay."""

    kind = list
    mutable = True

    def sliced(self, items: list[VariableTracker]) -> VariableTracker:
        return ListVariable(items)

    def changed(self, tx: Translator) -> None:
        """Note that the items differ from what the outside sees."""
        if self.source is not None:
            tx.output.effects.note(ContentChange(self))

    def set_item(self, tx: Translator, key: VariableTracker, value: VariableTracker | None) -> None:
        """``value[key] = …``, or ``del value[key]`` for None."""
        index = index_of(key)
        try:
            if isinstance(index, slice):
                fresh = value.unpack(tx) if value is not None else []
                self.items[index] = fresh
            elif value is None:
                del self.items[index]
            else:
                self.items[index] = value
        except (IndexError, ValueError) as error:
            raise raised_by_python(error) from error
        self.changed(tx)

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        change = _LIST_CHANGES.get(name)
        if change is None or kwargs:
            if name == "copy" and not args and not kwargs:
                return ListVariable(self.items)
            if name == "sort":
                return self._sort(tx, args, kwargs)
            return super().call_method(tx, name, args, kwargs)
        result = change(tx, self, args)
        self.changed(tx)
        return result

    def _sort(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if args or not set(kwargs) <= {"reverse", "key"}:
            raise GraphBreak("list.sort() with these arguments")
        self.items[:] = sort_items(tx, self.unpack(tx), kwargs)  # iterators walk this very list
        self.changed(tx)
        return ConstantVariable(None)


def sort_items(
    tx: Translator, items: list[VariableTracker], kwargs: dict[str, VariableTracker]
) -> list[VariableTracker]:
    """`items` in the order that `sorted` gives, keys being known at capture."""
    key = kwargs.get("key")
    reverse = kwargs.get("reverse")
    has_key = key is not None and not (isinstance(key, ConstantVariable) and key.value is None)
    keyed = [key.call(tx, [item], {}) if has_key and key is not None else item for item in items]
    try:
        keys = [each.as_python_constant() for each in keyed]
        order = sorted(
            range(len(items)), key=keys.__getitem__, reverse=bool(reverse and reverse.as_python_constant())
        )
    except GraphBreak:
        raise
    except Exception as error:
        raise GraphBreak("sorting by values not known at capture") from error
    return [items[i] for i in order]


def _append(tx: Translator, var: ListVariable, args: list[VariableTracker]) -> VariableTracker:
    _expect("list.append", args, 1)
    var.items.append(args[0])
    return ConstantVariable(None)


def _extend(tx: Translator, var: ListVariable, args: list[VariableTracker]) -> VariableTracker:
    _expect("list.extend", args, 1)
    var.items.extend(unpacked_whole(tx, args[0]))
    return ConstantVariable(None)


def _insert(tx: Translator, var: ListVariable, args: list[VariableTracker]) -> VariableTracker:
    _expect("list.insert", args, 2)
    var.items.insert(index_of(args[0]), args[1])
    return ConstantVariable(None)


def _pop(tx: Translator, var: ListVariable, args: list[VariableTracker]) -> VariableTracker:
    index = index_of(args[0]) if args else -1
    if not -len(var.items) <= index < len(var.items):
        raise PythonRaise(IndexError, ("pop index out of range" if var.items else "pop from empty list",))
    return realize(var.items.pop(index))


def _clear(tx: Translator, var: ListVariable, args: list[VariableTracker]) -> VariableTracker:
    _expect("list.clear", args, 0)
    var.items.clear()
    return ConstantVariable(None)


def _reverse(tx: Translator, var: ListVariable, args: list[VariableTracker]) -> VariableTracker:
    _expect("list.reverse", args, 0)
    var.items.reverse()
    return ConstantVariable(None)


def _remove(tx: Translator, var: ListVariable, args: list[VariableTracker]) -> VariableTracker:
    _expect("list.remove", args, 1)
    found = next(var.positions(tx, args[0]), None)
    if found is None:
        raise PythonRaise(ValueError, ("list.remove(x): x not in list",))
    del var.items[found]
    return ConstantVariable(None)


_ListChange = Callable[[Translator, ListVariable, list[VariableTracker]], VariableTracker]
_LIST_CHANGES: Final[dict[str, _ListChange]] = {
    "append": _append, "extend": _extend, "insert": _insert, "pop": _pop, "clear": _clear,
    "reverse": _reverse, "remove": _remove, "__iadd__": _extend,
}  # fmt: skip


def _expect(name: str, args: list[VariableTracker], count: int) -> None:
    if len(args) != count:
        raise GraphBreak(f"TypeError: {name}() with {len(args)} arguments")


@final
class RangeVariable(VariableTracker):
    """A range of known bounds."""

    def __init__(self, value: range, source: Source | None = None) -> None:
        super().__init__(source)
        self.value = value

    def builtin_content(self) -> VariableTracker | None:
        return self

    def python_type(self) -> type:
        return range

    def as_python_constant(self) -> range:
        return self.value

    def truth(self, tx: Translator) -> bool:
        return bool(self.value)

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        if len(self.value) > 100_000:
            raise GraphBreak("a range too long to unroll")
        return [ConstantVariable(each) for each in self.value]

    def iterate(self, tx: Translator) -> VariableTracker:
        return SequenceIteratorVariable(self, self.unpack(tx))

    def item(self, tx: Translator, key: VariableTracker) -> VariableTracker:
        """``value[key]``."""
        return fold(self.value.__getitem__, index_of(key))

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        return from_constant(getattr(self.value, name, NotImplemented))

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name in ("index", "count", "__contains__", "__len__") and not kwargs:
            return fold(getattr(self.value, name), *[realize(arg).as_python_constant() for arg in args])
        return super().call_method(tx, name, args, kwargs)


@final
class SliceVariable(VariableTracker):
    """A slice; its parts may be tensors when it indexes a tensor."""

    def __init__(self, parts: Sequence[VariableTracker], source: Source | None = None) -> None:
        super().__init__(source)
        none = ConstantVariable(None)
        given = realized(parts)
        start, stop = (none, given[0]) if len(given) == 1 else (given[0], given[1])
        self.parts = [start, stop, given[2] if len(given) > 2 else none]

    def builtin_content(self) -> VariableTracker | None:
        return self

    def python_type(self) -> type:
        return slice

    def as_python_constant(self) -> slice:
        return slice(*[part.as_python_constant() for part in self.parts])

    def as_graph_arg(self) -> Any:
        return slice(*[part.as_graph_arg() for part in self.parts])

    def as_fake(self) -> Any:
        return slice(*[part.as_fake() for part in self.parts])

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        names = ("start", "stop", "step")
        if name in names:
            return self.parts[names.index(name)]
        return super().get_attr(tx, name)


def index_of(key: VariableTracker) -> Any:
    """A known integer or slice.

    Raises:
        GraphBreak: a tensor, or any object with ``__index__``.
        PythonRaise: a slice whose bounds are no integers, or whose step is 0.
    """
    key = realize(key)
    if isinstance(key, ConstantVariable | SliceVariable):
        try:
            value = key.as_python_constant()
        except Exception as error:
            raise GraphBreak("an index not known at capture") from error
        if isinstance(value, slice):
            try:
                value.indices(0)
            except (TypeError, ValueError) as error:
                raise raised_by_python(error) from error
        if isinstance(value, int | slice):
            return value
    raise GraphBreak(f"indexing a sequence by {key.describe()}")


def _fresh_sequence(variable: type[SequenceVariable]) -> Callable[[Any], VariableTracker]:
    return lambda value: variable([from_constant(item) for item in value])


FRESH[tuple] = _fresh_sequence(TupleVariable)
FRESH[torch.Size] = _fresh_sequence(SizeVariable)
FRESH[list] = _fresh_sequence(ListVariable)
FRESH[range] = RangeVariable
FRESH[slice] = lambda value: SliceVariable([from_constant(p) for p in (value.start, value.stop, value.step)])
