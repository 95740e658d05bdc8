"""Temporary replacements in namespaces and classes, shared by all threads that trace.

Python offers no hook for a call of ``len`` or ``math.sqrt`` or of a module, so while a trace runs some names are replaced by
dispatching functions. Those act only for the thread that traces (or for calls with traced values among the arguments) and
otherwise do what the replaced object does. Each replacement counts its users; the last one to leave restores the original,
in whatever order the traces end, and leaves alone what somebody else has put there meanwhile.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, final

__all__ = ["Patches"]

_ABSENT: Final = object()


@dataclass(slots=True)
class _Replacement:
    place: dict[str, Any] | type
    name: str
    before: Any
    put: Any
    users: int

    def restore(self) -> None:
        if isinstance(self.place, type):
            if self.place.__dict__.get(self.name) is self.put:
                setattr(self.place, self.name, self.before)
        elif self.place.get(self.name) is self.put:
            if self.before is _ABSENT:
                del self.place[self.name]
            else:
                self.place[self.name] = self.before


_lock: Final = threading.RLock()
_replacements: Final[dict[tuple[int, str], _Replacement]] = {}


@final
class Patches:
    """The replacements that one trace has asked for; all are given back when the context is left."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[tuple[int, str], None] = {}

    def replace(self, place: dict[str, Any] | type, name: str, make: Callable[[Any], Any]) -> None:
        """Replace ``place``'s ``name`` by ``make(original)`` until the context is left.

        A name that a namespace does not hold is taken from builtins, and removed again at the end. What another trace has already
        replaced is shared with it.

        Raises:
            KeyError: neither the namespace nor builtins has the name.
        """
        self.replace_all(place, (name,), make)

    def replace_all(
        self, place: dict[str, Any] | type, names: Iterable[str], make: Callable[[Any], Any]
    ) -> None:
        """:meth:`replace` for several names of one place."""
        where = id(place)
        with _lock:
            for name in names:
                key = (where, name)
                if key in self._held:
                    continue
                held = _replacements.get(key)
                if held is not None:
                    held.users += 1
                else:
                    before, original = _lookup(place, name)
                    held = _Replacement(place, name, before, make(original), 1)
                    if isinstance(place, type):
                        setattr(place, name, held.put)
                    else:
                        place[name] = held.put
                    _replacements[key] = held
                self._held[key] = None

    def __enter__(self) -> Patches:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            for key in reversed(self._held):
                held = _replacements[key]
                held.users -= 1
                if not held.users:
                    del _replacements[key]
                    held.restore()
            self._held.clear()


def _lookup(place: dict[str, Any] | type, name: str) -> tuple[Any, Any]:
    if isinstance(place, type):
        found = place.__dict__[name]
        return found, found
    if name in place:
        return place[name], place[name]
    if hasattr(builtins, name):
        return _ABSENT, getattr(builtins, name)
    raise KeyError(name)
