"""The log of effects on objects that existed before the frame began (or that may outlive it).

Capture runs no user effect: a store is kept symbolically and noted here. When the graph ends the log is
replayed as bytecode, each target once, with its final value: nobody could see the steps between, because nothing
but the graph ran meanwhile. The order is that of the first write since the target was last deleted, which is the order in
which a dict of attributes keeps its keys.
The log holds variables as plain objects; it knows nothing of their kinds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class AttributeWrite:
    """``owner.name = value`` or, with `value` None, ``del owner.name``."""

    owner: object
    name: str
    value: object | None


@final
@dataclass(frozen=True, slots=True)
class CellWrite:
    """A cell's content was replaced; `value` None means emptied."""

    cell: object
    value: object | None


@final
@dataclass(frozen=True, slots=True)
class GlobalWrite:
    """A module global was bound (or, with `value` None, deleted)."""

    namespace: object
    name: str
    value: object | None


@final
@dataclass(frozen=True, slots=True)
class ContentChange:
    """A list, dict or set from outside has other contents now; the variable itself knows which."""

    container: object


Effect = AttributeWrite | CellWrite | GlobalWrite | ContentChange


def _key(effect: Effect) -> tuple[object, ...]:
    match effect:
        case AttributeWrite(owner, name):
            return ("attribute", id(owner), name)
        case CellWrite(cell):
            return ("cell", id(cell))
        case GlobalWrite(namespace, name):
            return ("global", id(namespace), name)
        case ContentChange(container):
            return ("content", id(container))


class EffectLog:
    """Ordered effects, the last one per target.

    >>> log = EffectLog()
    >>> owner = object()
    >>> log.note(AttributeWrite(owner, "a", 1)); log.note(AttributeWrite(owner, "a", 2))
    >>> [effect.value for effect in log]
    [2]
    """

    __slots__ = ("_entries", "count")

    def __init__(self) -> None:
        self._entries: dict[tuple[object, ...], Effect] = {}
        self.count = 0

    def note(self, effect: Effect) -> None:
        """Append `effect`; an earlier one on the same target is superseded."""
        key = _key(effect)
        before = self._entries.get(key)
        if (
            before is None
            or getattr(before, "value", before) is None
            or getattr(effect, "value", effect) is None
        ):
            self._entries.pop(key, None)
        self._entries[key] = effect
        self.count += 1

    def attributes_of(self, owner: object) -> list[str]:
        """The names of all attributes of `owner` that were stored or deleted, in order."""
        return [
            effect.name
            for effect in self._entries.values()
            if isinstance(effect, AttributeWrite) and effect.owner is owner
        ]

    def find(self, effect: Effect) -> Effect | None:
        """The logged effect on the same target as `effect`, if any."""
        return self._entries.get(_key(effect))

    def __iter__(self) -> Iterator[Effect]:
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)
