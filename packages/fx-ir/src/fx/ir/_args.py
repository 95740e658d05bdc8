"""Walking, mapping and freezing nested arguments.

One table, from class to kind, decides what a value is; subclasses find their kind once through their MRO.  Nodes are
told to this module by ``node.py`` (``KINDS[Node] = NODE``), so that it need not import them.  Containers are tuple,
named tuple, list, dict and slice; everything else is a leaf.  The depth of the recursion is the nesting of one
argument, never the size of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast

from fx.ir._immutable import immutable_dict, immutable_list
from fx.ir.errors import ArgumentError
from fx.ir.types import Argument

if TYPE_CHECKING:
    from fx.ir.node import Node

_T = TypeVar("_T")
_A = TypeVar("_A", bound=Argument)

LEAF: Final = 0
NODE: Final = 1
TUPLE: Final = 2
NAMED: Final = 3
LIST: Final = 4
DICT: Final = 5
SLICE: Final = 6

KINDS: Final[dict[type, int]] = {
    **dict.fromkeys((type(None), bool, int, float, complex, str, bytes, range, EllipsisType), LEAF),
    tuple: TUPLE,
    list: LIST,
    immutable_list: LIST,
    dict: DICT,
    immutable_dict: DICT,
    slice: SLICE,
}
"""Class → kind, for the classes met so far."""

PLAIN: Final = frozenset(cls for cls, kind in KINDS.items() if kind == LEAF)
"""The leaf classes that Python itself brings; asked on hot paths, where most arguments are of them."""


class ArgumentType(NamedTuple, Generic[_T]):
    """How the instances of one leaf class are printed and stored; see :func:`register_argument_type`."""

    cls: type[_T]
    name: str
    format: Callable[[_T], str] | None
    encode: Callable[[_T], object] | None
    decode: Callable[[Any], _T] | None


_TYPES: Final[dict[type, ArgumentType[Any]]] = {}
_BY_NAME: Final[dict[str, ArgumentType[Any]]] = {}


def register_argument_type(
    cls: type[_T],
    *,
    name: str | None = None,
    format: Callable[[_T], str] | None = None,
    encode: Callable[[_T], object] | None = None,
    decode: Callable[[Any], _T] | None = None,
) -> ArgumentType[_T]:
    """Make instances of ``cls`` (and its subclasses) leaves of arguments, also when ``cls`` is a container.

    Args:
        name: how files call the class; by default its qualified name.
        format: text in printed graphs; by default ``str``.
        encode: to plain data (what JSON has), for saving; without it a graph that holds such a value cannot be saved.
        decode: from that plain data, for loading.  It must not run code that the data chooses.

    Raises:
        ArgumentError: the class, or the name, is registered already with other functions, or is one of ours.
    """
    entry = ArgumentType(cls, name or f"{cls.__module__}.{cls.__qualname__}", format, encode, decode)
    known = _TYPES.get(cls)
    if known == entry:
        return entry
    if known is not None or entry.name in _BY_NAME or KINDS.get(cls) not in (None, LEAF):
        raise ArgumentError(f"the argument type {entry.name} is registered already")
    _TYPES[cls] = _BY_NAME[entry.name] = entry
    for seen in [seen for seen in KINDS if issubclass(seen, cls)]:
        del KINDS[seen]  # classified before the registration
    KINDS[cls] = LEAF
    return entry


def argument_type(value: object) -> ArgumentType[Any] | None:
    """The registration that covers ``value``, that of its nearest class, or ``None``."""
    for cls in type(value).__mro__:
        if cls in _TYPES:
            return _TYPES[cls]
    return None


def argument_type_named(name: str) -> ArgumentType[Any] | None:
    """The registration whose ``name`` this is, or ``None``."""
    return _BY_NAME.get(name)


def kind_of(cls: type) -> int:
    """The kind of ``cls``, found through its MRO on first sight."""
    kind = KINDS.get(cls)
    if kind is None:
        kind = next((KINDS[base] for base in cls.__mro__ if base in KINDS), LEAF)
        if kind == TUPLE and hasattr(cls, "_fields"):
            kind = NAMED
        KINDS[cls] = kind
    return kind


MAX_NESTING: Final = 100
"""How deep containers of arguments may nest in each other.  Python reads no source with 200 nested brackets; below
this limit, no operation on a graph meets the recursion limit."""


def freeze(value: Any, found: list[Node], depth: int = 0) -> Any:
    """An immutable equal of ``value``; the nodes in it are appended to ``found``, in order, once per use.

    A tuple or immutable container that holds nothing to freeze is returned itself.  ``depth`` is the number of
    containers around it.

    Raises:
        ArgumentError: a node is the key of a dict, or containers nest deeper than :data:`MAX_NESTING`.
    """
    kind = kind_of(type(value))
    if kind == NODE:
        found.append(value)
        return value
    if kind == LEAF:
        return value
    if kind == DICT:
        return freeze_dict(value, found, depth)
    if depth >= MAX_NESTING:
        raise _too_deep()
    depth += 1
    if kind == SLICE:
        parts = [freeze(part, found, depth) for part in (value.start, value.stop, value.step)]
        same = parts[0] is value.start and parts[1] is value.stop and parts[2] is value.step
        return value if same else slice(*parts)
    items = [freeze(item, found, depth) for item in value]
    if kind == LIST:
        same = type(value) is immutable_list and all(map(_is, items, value))
        return value if same else immutable_list(items)
    if kind == NAMED:
        return value if all(map(_is, items, value)) else type(value)(*items)
    return value if type(value) is tuple and all(map(_is, items, value)) else tuple(items)


def freeze_dict(value: dict[Any, Any], found: list[Node], depth: int = 0) -> immutable_dict[Any, Any]:
    """:func:`freeze` for a dict."""
    if depth >= MAX_NESTING:
        raise _too_deep()
    for key in value:
        if KINDS.get(type(key)) == NODE:
            raise ArgumentError(f"node {key} is a key of a dict argument; only values may be nodes", key)
    depth += 1
    return immutable_dict([(key, freeze(item, found, depth)) for key, item in value.items()])


def _too_deep() -> ArgumentError:
    return ArgumentError(
        f"an argument nests containers more than {MAX_NESTING} deep (or holds itself); pass its parts as nodes"
    )


def _is(left: object, right: object) -> bool:
    return left is right


def nodes_in(value: Any) -> Iterator[Node]:
    """The nodes in ``value``, in order, once per use."""
    kind = kind_of(type(value))
    if kind == NODE:
        yield value
    elif kind == DICT:
        for item in value.values():
            yield from nodes_in(item)
    elif kind == SLICE:
        for item in (value.start, value.stop, value.step):
            yield from nodes_in(item)
    elif kind != LEAF:
        for item in value:
            yield from nodes_in(item)


def map_aggregate(a: _A, fn: Callable[[Argument], Argument]) -> _A:
    """Apply ``fn`` to every leaf and every node of ``a``; containers keep their shape.

    Lists and dicts come back as :class:`immutable_list` and :class:`immutable_dict`, other subclasses of tuple than
    named tuples as tuple.

    Raises:
        ArgumentError: ``a`` nests deeper than Python's stack, as no argument of a node does.
    """
    return cast("_A", _mapped(a, fn, fn))


def map_arg(a: _A, fn: Callable[[Node], Argument]) -> _A:
    """Apply ``fn`` to every node of ``a``; leaves stay, containers keep their shape; see :func:`map_aggregate`."""
    return cast("_A", _mapped(a, fn, None))


def _mapped(a: Any, on_node: Callable[[Node], Any], on_leaf: Callable[[Any], Any] | None) -> Any:
    try:
        return _map(a, on_node, on_leaf)
    except RecursionError:
        freeze(a, [])  # says so if ``a`` is to blame, and not the function
        raise


def _map(a: Any, on_node: Callable[[Node], Any], on_leaf: Callable[[Any], Any] | None) -> Any:
    kind = KINDS.get(type(a))
    if kind is None:
        kind = kind_of(type(a))
    if kind == NODE:
        return on_node(a)
    if kind == LEAF:
        return a if on_leaf is None else on_leaf(a)
    if kind == TUPLE:
        return tuple([_map(item, on_node, on_leaf) for item in a])
    if kind == LIST:
        return immutable_list([_map(item, on_node, on_leaf) for item in a])
    if kind == DICT:
        return immutable_dict([(key, _map(item, on_node, on_leaf)) for key, item in a.items()])
    if kind == NAMED:
        return type(a)(*[_map(item, on_node, on_leaf) for item in a])
    return slice(*[_map(item, on_node, on_leaf) for item in (a.start, a.stop, a.step)])
