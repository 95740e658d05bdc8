"""Sets and frozensets of keys known at capture.

The order of a set depends on hashes, on its history and on the size of its table. A set that the frame made of literals
has a twin, a real set that went through the very same operations, whose order is the order; of other sets only questions
are answered that no order decides.
"""

import operator
from collections.abc import Callable, Iterable
from typing import Any, Final, final

from dynamo.eval.effects import ContentChange
from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.variables.base import Translator, VariableTracker, realize, realized
from dynamo.eval.variables.constant import FRESH, LITERALS, ConstantVariable, from_constant
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.iterator import KeyedIteratorVariable, unpacked_whole
from dynamo.eval.variables.keys import key_of, prepare_key
from dynamo.eval.variables.sequence import BoundMethodVariable
from dynamo.guards import Source

Twin = set[Any] | frozenset[Any]

_OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "union": operator.or_, "intersection": operator.and_, "difference": operator.sub,
    "symmetric_difference": operator.xor,
}  # fmt: skip
_IN_PLACE: Final = {
    "update": "union", "intersection_update": "intersection", "difference_update": "difference",
    "symmetric_difference_update": "symmetric_difference",
}  # fmt: skip
_QUESTIONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "issubset": operator.le, "issuperset": operator.ge, "isdisjoint": lambda left, right: not left & right,
}  # fmt: skip
_DUNDERS: Final = {
    "__or__": "union", "__and__": "intersection", "__sub__": "difference", "__xor__": "symmetric_difference",
    "__ior__": "update", "__iand__": "intersection_update", "__isub__": "difference_update",
    "__ixor__": "symmetric_difference_update",
}  # fmt: skip


@final
class SetVariable(VariableTracker):
    """A set or frozenset.

    Attributes:
        entries: the elements by key.
        twin: a real set with the same history, or None where the order is not known.
        value: for an unchanged set from outside, the set itself.
    """

    mutable = True

    def __init__(
        self,
        items: Iterable[VariableTracker],
        kind: type = set,
        source: Source | None = None,
        *,
        twin: Twin | None = None,
        value: Twin | None = None,
    ) -> None:
        super().__init__(source)
        self.entries: dict[Any, VariableTracker] = {}
        for item in items:
            self.entries.setdefault(key_of(item), item)
        self.kind = kind
        self.removals = 0
        self.value = value
        if twin is None and source is None and _ordered_alike(self.entries):
            twin = kind(list(self.entries))
        self.twin = twin

    def layout(self) -> tuple[int, int]:
        """Another value after any key came or went."""
        return len(self.entries), self.removals

    def python_type(self) -> type:
        return self.kind

    def builtin_content(self) -> VariableTracker | None:
        return self

    def as_python_constant(self) -> Any:
        return self.kind(realize(item).as_python_constant() for item in self.entries.values())

    def truth(self, tx: Translator) -> bool:
        return bool(self.entries)

    def contains(self, key: VariableTracker) -> bool:
        """``key in value``."""
        return key_of(key) in self.entries

    def unordered(self) -> list[VariableTracker]:
        """The elements, for a question that no order decides."""
        return realized(list(self.entries.values()))

    def ordered_keys(self, tx: Translator) -> list[Any]:
        """The keys in the order of the set.

        Raises:
            GraphBreak: the order is not known at capture.
        """
        if len(self.entries) < 2:
            return list(self.entries)
        if self.twin is not None:
            return list(self.twin)
        if self.value is not None and self.source is not None:
            order = tuple(self.value)
            tx.output.guard_that(self.source, _has_order(order), f"the order {order!r}")
            return list(order)
        raise GraphBreak("iterating over a set whose order is not known at capture")

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        return [realize(self.entries[key]) for key in self.ordered_keys(tx)]

    def iterate(self, tx: Translator) -> VariableTracker:
        return KeyedIteratorVariable(self, self.ordered_keys(tx), self.layout, self.entries.__getitem__)

    def changed(self, tx: Translator) -> None:
        """Note that the contents differ from what the outside sees."""
        self.value = None
        if self.source is not None:
            tx.output.effects.note(ContentChange(self))

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if callable(getattr(self.kind, name, None)):
            return BoundMethodVariable(self, name)
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")

    def combined(self, tx: Translator, name: str, other: "SetVariable") -> "SetVariable":
        """``value.union(other)`` and its kin, as a new set."""
        function = _OPERATIONS[name]
        keys = function(self.entries.keys(), other.entries.keys())
        known = {**other.entries, **self.entries}
        twin = None
        if self.twin is not None and other.twin is not None:
            twin = getattr(self.twin, name)(other.twin)
        elif _ordered_alike(keys) and len(keys) > 1:
            return _unordered([known[key] for key in keys], self.kind)
        return SetVariable([known[key] for key in keys], self.kind, twin=twin)

    def _take(self, result: "SetVariable") -> None:
        """Become `result`, in place."""
        if set(self.entries) - set(result.entries):
            self.removals += 1
        entries = {key: self.entries.get(key, item) for key, item in result.entries.items()}
        self.entries.clear()
        self.entries.update(entries)

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        name = _DUNDERS.get(name, name)
        if kwargs or (self.kind is frozenset and name in _CHANGING):
            raise GraphBreak(f"{self.kind.__name__}.{name}() with these arguments")
        if name in _IN_PLACE:
            for arg in args:
                other = as_set(tx, arg)
                self._take(self.combined(tx, _IN_PLACE[name], other))
                if self.twin is not None and other.twin is not None:
                    getattr(self.twin, name)(other.twin)
                else:
                    self.twin = None
            self.changed(tx)
            return ConstantVariable(None)
        if name in _OPERATIONS:
            result = self.copy()
            for arg in args:
                result = result.combined(tx, name, as_set(tx, arg))
            return result
        if name in _QUESTIONS and len(args) == 1:
            other = as_set(tx, args[0])
            return ConstantVariable(bool(_QUESTIONS[name](self.entries.keys(), other.entries.keys())))
        method = _METHODS.get(name)
        if method is None or len(args) != method[0]:
            raise GraphBreak(f"{self.kind.__name__}.{name}()")
        for arg in args:
            prepare_key(tx, arg)
        return method[1](self, tx, *args)

    def copy(self) -> "SetVariable":
        """A set of the same elements."""
        if self.twin is not None:
            return SetVariable(self.entries.values(), self.kind, twin=self.twin.copy())
        return _unordered(list(self.entries.values()), self.kind)

    # -- one method each --------------------------------------------------------------------------------
    def add(self, tx: Translator, item: VariableTracker) -> VariableTracker:
        """``value.add(item)``."""
        key = key_of(item)
        if key not in self.entries:
            self.entries[key] = item
            if isinstance(self.twin, set) and type(key) in LITERALS:
                self.twin.add(key)
            else:
                self.twin = None
            self.changed(tx)
        return ConstantVariable(None)

    def discard(self, tx: Translator, item: VariableTracker) -> VariableTracker:
        """``value.discard(item)``."""
        key = key_of(item)
        if self.entries.pop(key, None) is not None:
            if isinstance(self.twin, set):
                self.twin.discard(key)
            self.removals += 1
            self.changed(tx)
        return ConstantVariable(None)

    def remove(self, tx: Translator, item: VariableTracker) -> VariableTracker:
        """``value.remove(item)``."""
        if not self.contains(item):
            raise PythonRaise(KeyError, (key_of(item),))
        return self.discard(tx, item)

    def pop(self, tx: Translator) -> VariableTracker:
        """``value.pop()``."""
        if not self.entries:
            raise PythonRaise(KeyError, ("pop from an empty set",))
        if isinstance(self.twin, set):
            key = self.twin.pop()
        elif len(self.entries) == 1:
            key = next(iter(self.entries))
        else:
            raise GraphBreak("pop() of a set whose order is not known at capture")
        item = self.entries.pop(key)
        self.removals += 1
        self.changed(tx)
        return realize(item)

    def clear(self, tx: Translator) -> VariableTracker:
        """``value.clear()``."""
        self.entries.clear()
        self.twin = set()
        self.removals += 1
        self.changed(tx)
        return ConstantVariable(None)


_METHODS: Final[dict[str, tuple[int, Callable[..., VariableTracker]]]] = {
    "add": (1, SetVariable.add),
    "discard": (1, SetVariable.discard),
    "remove": (1, SetVariable.remove),
    "pop": (0, SetVariable.pop),
    "clear": (0, SetVariable.clear),
    "copy": (0, lambda var, tx: var.copy()),
    "__contains__": (1, lambda var, tx, item: ConstantVariable(var.contains(item))),
    "__len__": (0, lambda var, tx: ConstantVariable(len(var.entries))),
    "__iter__": (0, lambda var, tx: var.iterate(tx)),
}
_CHANGING: Final = frozenset({"add", "discard", "remove", "pop", "clear", *_IN_PLACE})


def _has_order(order: tuple[Any, ...]) -> Callable[[Any], bool]:
    return lambda value: tuple(value) == order


def _ordered_alike(keys: Iterable[Any]) -> bool:
    """Whether the hashes of all keys are the same in each call: those of literals, for this process."""
    return all(type(key) in LITERALS for key in keys)


def _unordered(items: list[VariableTracker], kind: type) -> SetVariable:
    made = SetVariable(items, kind)
    if len(items) > 1:
        made.twin = None
    return made


def as_set(tx: Translator, var: VariableTracker) -> SetVariable:
    """The elements of an iterable, as a set method takes them."""
    var = realize(var)
    if isinstance(var, SetVariable):
        return var
    items = unpacked_whole(tx, var)
    for item in items:
        prepare_key(tx, item)
    made = SetVariable(items)
    if made.twin is not None and isinstance(var, DictVariable):
        made.twin = set(dict.fromkeys(made.entries))
    return made


def set_of(tx: Translator, var: VariableTracker | None, kind: type) -> SetVariable:
    """``kind(var)`` for `set` and `frozenset`."""
    if var is None:
        return SetVariable([], kind)
    var = realize(var)
    if isinstance(var, SetVariable):
        made = var.copy()
        twin = kind(var.twin) if var.twin is not None else None
        return (
            SetVariable(made.entries.values(), kind, twin=twin)
            if twin is not None
            else _unordered(list(made.entries.values()), kind)
        )
    given = as_set(tx, var)
    if given.twin is not None:
        keys = [key_of(item) for item in given.entries.values()]
        twin = kind(dict.fromkeys(keys)) if isinstance(var, DictVariable) else kind(keys)
        return SetVariable(given.entries.values(), kind, twin=twin)
    return _unordered(list(given.entries.values()), kind)


FRESH[set] = lambda value: SetVariable([from_constant(item) for item in value], twin=value)
FRESH[frozenset] = lambda value: SetVariable([from_constant(item) for item in value], frozenset, twin=value)
