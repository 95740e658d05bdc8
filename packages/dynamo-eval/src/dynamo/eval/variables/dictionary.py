"""Dicts with keys known at capture, and their views."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any, Final, final

from dynamo.eval.effects import ContentChange
from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.variables.base import NotConstant, Translator, VariableTracker, realize
from dynamo.eval.variables.constant import FRESH, ConstantVariable, from_constant
from dynamo.eval.variables.iterator import KeyedIteratorVariable, unpacked_whole
from dynamo.eval.variables.keys import key_of, prepare_key
from dynamo.eval.variables.lookup import static_lookup
from dynamo.eval.variables.sequence import BoundMethodVariable, TupleVariable
from dynamo.guards import Source

Entry = tuple[VariableTracker, VariableTracker]


class DictVariable(VariableTracker):
    """A dict (or `OrderedDict`); changes are kept here and, if it came from outside, logged for replay."""

    mutable = True

    def __init__(self, entries: Iterable[Entry], kind: type = dict, source: Source | None = None) -> None:
        super().__init__(source)
        self.entries: dict[Any, Entry] = {key_of(key): (key, value) for key, value in entries}
        self.kind = kind
        self.removals = 0

    def layout(self) -> tuple[int, int]:
        """Another value after any key came or went."""
        return len(self.entries), self.removals

    def builtin_content(self) -> VariableTracker | None:
        return self

    def python_type(self) -> type:
        return self.kind

    def as_python_constant(self) -> Any:
        if self.kind is not dict:
            raise NotConstant
        return {key: realize(value).as_python_constant() for key, (_, value) in self.entries.items()}

    def as_graph_arg(self) -> Any:
        return {key: realize(value).as_graph_arg() for key, (_, value) in self.entries.items()}

    def as_fake(self) -> Any:
        return {key: realize(value).as_fake() for key, (_, value) in self.entries.items()}

    def truth(self, tx: Translator) -> bool:
        return bool(self.entries)

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        return [key for key, _ in self.entries.values()]

    def iterate(self, tx: Translator) -> VariableTracker:
        return KeyedIteratorVariable(self, self.entries, self.layout, lambda key: self.entries[key][0])

    def changed(self, tx: Translator) -> None:
        """Note that the contents differ from what the outside sees."""
        if self.source is not None:
            tx.output.effects.note(ContentChange(self))

    def item(self, tx: Translator, key: VariableTracker) -> VariableTracker:
        """``value[key]``."""
        prepare_key(tx, key)
        entry = self.entries.get(key_of(key))
        if entry is None:
            return self.missing(tx, key)
        return realize(entry[1])

    def missing(self, tx: Translator, key: VariableTracker) -> VariableTracker:
        """``value[key]`` for a key that is not there."""
        raise PythonRaise(KeyError, (key_of(key),))

    def contains(self, key: VariableTracker) -> bool:
        """``key in value``."""
        return key_of(key) in self.entries

    def set_item(self, tx: Translator, key: VariableTracker, value: VariableTracker | None) -> None:
        """``value[key] = …``, or ``del value[key]`` for None."""
        prepare_key(tx, key)
        known = key_of(key)
        if value is None:
            if known not in self.entries:
                raise PythonRaise(KeyError, (known,))
            del self.entries[known]
            self.removals += 1
        else:
            kept = self.entries[known][0] if known in self.entries else key
            self.entries[known] = (kept, value)
        self.changed(tx)

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if callable(getattr(self.kind, name, None)):
            return BoundMethodVariable(self, name)
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        method = getattr(self, f"_do_{name.strip('_')}", None)
        if method is None or (kwargs and name not in ("update", "popitem", "move_to_end")):
            raise GraphBreak(f"{self.kind.__name__}.{name}()")
        if args and name in _KEYED:
            prepare_key(tx, args[0])
        try:
            return method(tx, *args, **kwargs)  # type: ignore[no-any-return]  # every _do_ method returns one
        except TypeError as error:
            raise GraphBreak(f"{self.kind.__name__}.{name}() with {len(args)} arguments") from error

    def _do_get(
        self, tx: Translator, key: VariableTracker, default: VariableTracker | None = None
    ) -> VariableTracker:
        entry = self.entries.get(key_of(key))
        return realize(entry[1]) if entry is not None else default or ConstantVariable(None)

    def _do_getitem(self, tx: Translator, key: VariableTracker) -> VariableTracker:
        return self.item(tx, key)

    def _do_setitem(self, tx: Translator, key: VariableTracker, value: VariableTracker) -> VariableTracker:
        self.set_item(tx, key, value)
        return ConstantVariable(None)

    def _do_contains(self, tx: Translator, key: VariableTracker) -> VariableTracker:
        return ConstantVariable(self.contains(key))

    def _do_len(self, tx: Translator) -> VariableTracker:
        return ConstantVariable(len(self.entries))

    def _do_keys(self, tx: Translator) -> VariableTracker:
        return DictViewVariable(self, "keys")

    def _do_values(self, tx: Translator) -> VariableTracker:
        return DictViewVariable(self, "values")

    def _do_items(self, tx: Translator) -> VariableTracker:
        return DictViewVariable(self, "items")

    def _do_copy(self, tx: Translator) -> VariableTracker:
        if self.kind not in (dict, OrderedDict):
            raise GraphBreak(f"{self.kind.__name__}.copy()")
        return DictVariable(self.entries.values(), self.kind)

    def _do_pop(
        self, tx: Translator, key: VariableTracker, default: VariableTracker | None = None
    ) -> VariableTracker:
        known = key_of(key)
        if known not in self.entries:
            if default is None:
                raise PythonRaise(KeyError, (known,))
            return default
        value = realize(self.entries.pop(known)[1])
        self.removals += 1
        self.changed(tx)
        return value

    def _do_setdefault(
        self, tx: Translator, key: VariableTracker, default: VariableTracker | None = None
    ) -> VariableTracker:
        if not self.contains(key):
            self.set_item(tx, key, default or ConstantVariable(None))
        return realize(self.entries[key_of(key)][1])

    def _do_popitem(self, tx: Translator, last: VariableTracker | None = None) -> VariableTracker:
        at_end = last is None or realize(last).truth(tx)
        if not self.entries or (not at_end and self.kind is not OrderedDict):
            raise PythonRaise(KeyError, ("popitem(): dictionary is empty",))
        known = next(reversed(self.entries) if at_end else iter(self.entries))
        key, value = self.entries.pop(known)
        self.removals += 1
        self.changed(tx)
        return TupleVariable([key, realize(value)])

    def _do_move_to_end(
        self, tx: Translator, key: VariableTracker, last: VariableTracker | None = None
    ) -> VariableTracker:
        known = key_of(key)
        if self.kind is not OrderedDict or known not in self.entries:
            raise GraphBreak(f"KeyError: {known!r}")
        entry = self.entries.pop(known)
        if last is None or realize(last).truth(tx):
            self.entries[known] = entry
        else:
            rest = list(self.entries.items())
            self.entries.clear()
            self.entries.update([(known, entry), *rest])
        self.removals += 1
        self.changed(tx)
        return ConstantVariable(None)

    def _do_iter(self, tx: Translator) -> VariableTracker:
        return self.iterate(tx)

    def _do_reversed(self, tx: Translator) -> VariableTracker:
        keys = list(reversed(self.entries))
        return KeyedIteratorVariable(self, keys, self.layout, lambda key: self.entries[key][0])

    def _do_delitem(self, tx: Translator, key: VariableTracker) -> VariableTracker:
        self.set_item(tx, key, None)
        return ConstantVariable(None)

    def _do_clear(self, tx: Translator) -> VariableTracker:
        self.entries.clear()
        self.removals += 1
        self.changed(tx)
        return ConstantVariable(None)

    def _do_update(
        self, tx: Translator, other: VariableTracker | None = None, **named: VariableTracker
    ) -> VariableTracker:
        if other is not None:
            self.merge(tx, other)
        for name, value in named.items():
            self.set_item(tx, ConstantVariable(name), value)
        return ConstantVariable(None)

    def merge(self, tx: Translator, other: VariableTracker) -> None:
        """``self.update(other)``."""
        other = realize(other)
        if isinstance(other, DictVariable):
            pairs = list(other.entries.values())
        elif isinstance(other.builtin_content(), DictVariable) and _is_plain_mapping(other.python_type()):
            pairs = list(other.builtin_content().entries.values())  # type: ignore[union-attr]  # seen just before
        elif callable(getattr(other.python_type(), "keys", None)):
            names = realize(other.call_method(tx, "keys", [], {})).unpack(tx)
            pairs = [(name, other.call_method(tx, "__getitem__", [name], {})) for name in names]
        else:
            pairs = []
            for item in unpacked_whole(tx, other):
                pair = item.unpack(tx)
                if len(pair) != 2:
                    raise GraphBreak("dict.update() with items that are no pairs")
                pairs.append((pair[0], pair[1]))
        for key, value in pairs:
            self.set_item(tx, key, value)


def _is_plain_mapping(kind: type) -> bool:
    """Whether ``dict.update`` takes the entries of a subclass of dict as they are."""
    return static_lookup(kind, "__iter__") is static_lookup(dict, "__iter__") and static_lookup(
        kind, "keys"
    ) is static_lookup(dict, "keys")


_KEYED: Final = frozenset("get __contains__ pop setdefault move_to_end".split())


@final
class DefaultDictVariable(DictVariable):
    """A `collections.defaultdict`."""

    def __init__(
        self, entries: Iterable[Entry], factory: VariableTracker, source: Source | None = None
    ) -> None:
        super().__init__(entries, defaultdict, source)
        self.factory = factory

    def missing(self, tx: Translator, key: VariableTracker) -> VariableTracker:
        factory = realize(self.factory)
        if isinstance(factory, ConstantVariable) and factory.value is None:
            return super().missing(tx, key)
        value = factory.call(tx, [], {})
        self.set_item(tx, key, value)
        return value


@final
class DictViewVariable(VariableTracker):
    """``keys()``, ``values()`` or ``items()`` of a dict."""

    def __init__(self, owner: DictVariable, part: str) -> None:
        super().__init__()
        self.owner = owner
        self.part = part

    def describe(self) -> str:
        return f"dict.{self.part}()"

    def builtin_content(self) -> VariableTracker | None:
        return self

    def python_type(self) -> type:
        return type(getattr({}, self.part)())

    def truth(self, tx: Translator) -> bool:
        return bool(self.owner.entries)

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        return [self._item(key) for key in self.owner.entries]

    def _item(self, known: Any) -> VariableTracker:
        key, value = self.owner.entries[known]
        if self.part == "keys":
            return key
        return realize(value) if self.part == "values" else TupleVariable([key, realize(value)])

    def iterate(self, tx: Translator) -> VariableTracker:
        return KeyedIteratorVariable(self, self.owner.entries, self.owner.layout, self._item)

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name == "__len__" and not args:
            return ConstantVariable(len(self.owner.entries))
        if name == "__iter__" and not args:
            return self.iterate(tx)
        if name == "__reversed__" and not args:
            keys = list(reversed(self.owner.entries))
            return KeyedIteratorVariable(self, keys, self.owner.layout, self._item)
        if name == "__contains__" and len(args) == 1 and self.part == "keys":
            prepare_key(tx, args[0])
            return ConstantVariable(self.owner.contains(args[0]))
        raise GraphBreak(f"{self.describe()}.{name}()")

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if callable(getattr(self.python_type(), name, None)):
            return BoundMethodVariable(self, name)
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")


FRESH[dict] = lambda value: DictVariable([(from_constant(k), from_constant(v)) for k, v in value.items()])
