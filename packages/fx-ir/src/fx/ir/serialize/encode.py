"""Graph → records → bytes.

A value that JSON has stands for itself; every other value is an object with one key that says what it is, so that a
JSON object is never a value by itself.
"""

from __future__ import annotations

import base64
import math
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fx.ir import _args
from fx.ir.errors import ArgumentError
from fx.ir.graph import Graph
from fx.ir.lint.rules import has_good_count
from fx.ir.node import Node
from fx.ir.serialize.errors import UnsavableError
from fx.ir.serialize.opaque import OpaqueLeaf, OpaqueType
from fx.ir.serialize.schema import FORMAT, MAJOR, MINOR, File, GraphRecord, NodeRecord
from fx.ir.targets import OpaqueTarget, find_target, qualified_name

if TYPE_CHECKING:
    from collections.abc import Iterable

_LARGEST: Final = 1 << 63
_SIMPLE: Final = _args.PLAIN | {Node}  # types of arguments that hold no graph


def encode(graph: Graph) -> bytes:
    """The bytes of a file that holds ``graph`` and the graphs nested in it.

    Raises:
        UnsavableError: an argument has no encoding, a target's name leads to another callable, or graphs nest in a
            ring; the message names the node.
    """
    writer = _Writer(_in_order(graph))
    records = [writer.record(nested) for nested in writer.graphs]
    return msgspec.json.encode(File(FORMAT, (MAJOR, MINOR), records))


def _in_order(graph: Graph) -> list[Graph]:
    """``graph`` and the graphs nested in it, each before those nested in itself."""
    finished: dict[Graph, None] = {}
    opened: set[Graph] = set()
    todo = [graph]
    while todo:
        current = todo[-1]
        if current in opened:
            todo.pop()
            finished.setdefault(current)
            opened.discard(current)
            continue
        if current in finished:
            todo.pop()
            continue
        opened.add(current)
        for child in _children(current):
            if child in opened:
                raise UnsavableError("graphs nest in a ring, and a file cannot hold that")
            todo.append(child)
    return list(finished)[::-1]


def _children(graph: Graph) -> list[Graph]:
    """The graphs directly nested in ``graph``: those of its submodules, and those among its arguments."""
    found = dict.fromkeys(child for _, child in nested_graphs(graph))

    def note(leaf: Any) -> Any:
        if isinstance(leaf, Graph):
            found.setdefault(leaf)
        return leaf

    for node in graph.nodes:
        if node._kwargs or not _SIMPLE.issuperset(map(type, node.args)):
            _args.map_aggregate((node.args, node.kwargs), note)
    return list(found)


class _Writer:
    """What one file holds so far."""

    def __init__(self, graphs: list[Graph]) -> None:
        self.graphs = graphs
        self._positions = {graph: i for i, graph in enumerate(graphs)}
        self._nodes: dict[Node, int] = {}
        self._targets: dict[int, str] = {}

    def position(self, graph: Graph) -> int:
        """Where ``graph`` stands in the file."""
        try:
            return self._positions[graph]
        except KeyError:
            raise UnsavableError("it holds a graph outside its arguments") from None

    def record(self, graph: Graph) -> GraphRecord:
        """One graph, encoded."""
        self._nodes = {node: i for i, node in enumerate(graph.nodes)}
        nodes = [self._node(node) for node in graph.nodes]
        nested = {path: self.position(child) for path, child in nested_graphs(graph)}
        return GraphRecord(nodes, graph._created, nested)

    def _node(self, node: Node) -> NodeRecord:
        nodes = self._nodes
        if node._op != "call_function" and not has_good_count(node):
            raise UnsavableError(f"node {node}: {node._op} cannot have these arguments", node)
        try:
            args = [
                {"node": nodes[arg]} if type(arg) is Node and arg in nodes else self.value(arg)
                for arg in node.args
            ]
            kwargs = {key: self.value(arg) for key, arg in node.kwargs.items()} if node._kwargs else {}
            target = node._target if isinstance(node._target, str) else self._target(node._target)
            annotation = None if node.type is None else self._type(node.type)
        except UnsavableError as error:
            raise UnsavableError(f"node {node}: {error}", node) from error.__cause__
        meta = self._meta(node._meta) if node._meta else {}
        return NodeRecord(node._name, node._op, target, node.uid, args, kwargs, annotation, meta)

    def _target(self, target: Callable[..., Any]) -> str:
        known = self._targets.get(id(target))
        if known is None:
            known = self._targets[id(target)] = self._checked_name(target)
        return known

    def _checked_name(self, target: Callable[..., Any]) -> str:
        name = qualified_name(target)
        found = None if isinstance(target, OpaqueTarget) else find_target(name)
        if found is not None and found is not target and found != target:
            raise UnsavableError(
                f"the name {name} of its target leads to another callable; give it a name with register_target"
            )
        return name

    def value(self, value: Any) -> Any:
        """One argument, encoded."""
        cls = type(value)
        if cls is Node:
            try:
                return {"node": self._nodes[value]}
            except KeyError:
                raise UnsavableError(f"it takes node {value}, which is not in the graph") from None
        if value is None or cls is bool or cls is str:
            return value
        encoder = _ENCODERS.get(cls)
        if encoder is None:
            return self._other(value)
        return encoder(self, value)

    def _other(self, value: Any) -> Any:
        kind = _args.kind_of(type(value))
        if kind == _args.NAMED:
            cls = type(value)
            name = f"{cls.__module__}.{cls.__qualname__}"
            return {"named": [name, list(cls._fields), [self.value(item) for item in value]]}
        if kind in _BY_KIND:
            return _BY_KIND[kind](self, value)
        registered = _args.argument_type(value)
        if registered is not None and registered.encode is not None:
            return {"leaf": [registered.name, self.value(registered.encode(value))]}
        if isinstance(value, Graph):
            return {"graph": self.position(value)}
        if callable(value) and _leads_back(value):
            return {"name": qualified_name(value)}
        raise UnsavableError(
            f"the format has no encoding for {type(value).__module__}.{type(value).__qualname__}; "
            "give it one with register_argument_type(cls, encode=..., decode=...)"
        )

    def _type(self, annotation: Any) -> Any:
        """An annotation: its name if it is a class that can be found by it, its parts if it is generic, else text."""
        if isinstance(annotation, str):
            return annotation
        if isinstance(annotation, types.GenericAlias):
            return {
                "generic": [
                    self._type(annotation.__origin__),
                    [self._type(arg) for arg in annotation.__args__],
                ]
            }
        if isinstance(annotation, OpaqueType):
            return {"text": annotation.text}
        if isinstance(annotation, type | OpaqueTarget) and annotation is not type(None):
            name = qualified_name(annotation)
            if _leads_back(annotation):
                return {"name": name}
        return {"text": repr(annotation)}

    def _meta(self, meta: dict[str, Any]) -> dict[str, Any]:
        """The plain data in ``meta``; other entries are left out, as files hold no live objects."""
        kept: dict[str, Any] = {}
        for key, value in meta.items():
            if not isinstance(key, str):
                continue
            try:
                if type(value) not in _args.PLAIN:
                    _args.freeze(value, [])  # refuses rings and what nests deeper than a reader may follow
                kept[key] = self.value(value)
            except (UnsavableError, ArgumentError):
                continue
        return kept


def _leads_back(value: Callable[..., Any]) -> bool:
    """Will the name of ``value`` lead to it again?"""
    return isinstance(value, OpaqueTarget) or find_target(qualified_name(value)) is value


def nested_graphs(graph: Graph) -> Iterable[tuple[str, Graph]]:
    """The graphs of those submodules that the nodes of ``graph`` speak of, by path."""
    paths = {str(node._target): None for node in graph.nodes if node._op in ("get_attr", "call_module")}
    for path in paths:
        child = graph.nested_graph(path)
        if child is not None:
            yield path, child


def _int(writer: _Writer, value: int) -> Any:
    return value if -_LARGEST <= value < _LARGEST else {"int": hex(value)}


def _float(writer: _Writer, value: float) -> Any:
    return value if math.isfinite(value) else {"float": repr(value)}


def _list(writer: _Writer, value: list[Any]) -> Any:
    return [writer.value(item) for item in value]


def _tuple(writer: _Writer, value: tuple[Any, ...]) -> Any:
    return {"tuple": [writer.value(item) for item in value]}


def _dict(writer: _Writer, value: dict[Any, Any]) -> Any:
    return {"dict": [[writer.value(key), writer.value(item)] for key, item in value.items()]}


def _slice(writer: _Writer, value: slice) -> Any:
    return {"slice": [writer.value(part) for part in (value.start, value.stop, value.step)]}


_ENCODERS: Final[dict[type, Callable[[_Writer, Any], Any]]] = {
    int: _int,
    float: _float,
    complex: lambda writer, value: {"complex": [_float(writer, value.real), _float(writer, value.imag)]},
    bytes: lambda writer, value: {"bytes": base64.b64encode(value).decode("ascii")},
    range: lambda writer, value: {
        "range": [_int(writer, part) for part in (value.start, value.stop, value.step)]
    },
    types.EllipsisType: lambda writer, value: {"ellipsis": True},
    tuple: _tuple,
    slice: _slice,
    OpaqueLeaf: lambda writer, value: {"leaf": [value.name, writer.value(value.data)]},
}
_BY_KIND: Final[dict[int, Callable[[_Writer, Any], Any]]] = {
    _args.TUPLE: _tuple,
    _args.LIST: _list,
    _args.DICT: _dict,
    _args.SLICE: _slice,
}
