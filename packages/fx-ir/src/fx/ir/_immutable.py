"""Lists and dicts that refuse to change, so that no argument changes behind the back of ``users``.

Source: torch.fx keeps the same two classes; ours behave alike (they hash by content, copy and pickle as themselves).
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, TypeVar

_T = TypeVar("_T")
_K = TypeVar("_K")
_V = TypeVar("_V")


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__} object does not support mutation: it is an argument of a node. "
        "Build a changed copy and assign it, for example node.args = (...)."
    )


class immutable_list(list[_T]):
    """A list that cannot be changed; equal to a list of the same items, and hashable if they are.

    Raises:
        TypeError: on every operation that would change it.
    """

    __slots__ = ()
    __delitem__: Any = _refuse
    __iadd__: Any = _refuse
    __imul__: Any = _refuse
    __setitem__: Any = _refuse
    append: Any = _refuse
    clear: Any = _refuse
    extend: Any = _refuse
    insert: Any = _refuse
    pop: Any = _refuse
    remove: Any = _refuse
    reverse: Any = _refuse
    sort: Any = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # list says it has none; content is fixed here
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type[immutable_list[_T]], tuple[tuple[_T, ...]]]:
        return type(self), (tuple(self),)


class immutable_dict(dict[_K, _V]):
    """A dict that cannot be changed; equal to a dict of the same items, and hashable if they are.

    Raises:
        TypeError: on every operation that would change it.
    """

    __slots__ = ()
    __delitem__: Any = _refuse
    __ior__: Any = _refuse
    __setitem__: Any = _refuse
    clear: Any = _refuse
    pop: Any = _refuse
    popitem: Any = _refuse
    setdefault: Any = _refuse
    update: Any = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # dict says it has none; content is fixed here
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[immutable_dict[_K, _V]], tuple[tuple[tuple[_K, _V], ...]]]:
        return type(self), (tuple(self.items()),)


EMPTY: Final[immutable_dict[str, Any]] = immutable_dict()
"""The keyword arguments of every node that has none."""
