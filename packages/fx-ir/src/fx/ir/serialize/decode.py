"""Bytes → records → graph.  Nothing is imported, called or evaluated that the file chooses.

Names of callables are looked up among the modules that are loaded already; what is not there becomes opaque.  Every
reference to a node leads backwards and every reference to a graph forwards, so nothing runs in a ring.
"""

from __future__ import annotations

import base64
import keyword
import sys
from collections import namedtuple
from collections.abc import Callable
from types import GenericAlias
from typing import Any, Final

import msgspec

from fx.ir import _args
from fx.ir._immutable import EMPTY
from fx.ir.errors import GraphError
from fx.ir.graph import Graph
from fx.ir.lint.rules import has_good_count
from fx.ir.node import Node, freeze_args
from fx.ir.serialize.errors import FileFormatError, NewerFormatError
from fx.ir.serialize.opaque import OpaqueLeaf, OpaqueType
from fx.ir.serialize.schema import FORMAT, MAJOR, MINOR, File, GraphRecord, Header, NodeRecord
from fx.ir.targets import OpaqueTarget, find_target

_header: Final = msgspec.json.Decoder(Header)
_file: Final = msgspec.json.Decoder(File)


def decode(data: bytes) -> Graph:
    """The graph in the bytes of a file, checked by the same rules as every edit.

    Raises:
        NewerFormatError: written in a newer major version.
        FileFormatError: no graph file, truncated, or contents that make no graph.
    """
    try:
        header = _header.decode(data)
        if header.format != FORMAT:
            raise FileFormatError(f"this is no graph file: its format is {header.format!r}, not {FORMAT!r}")
        if header.version[0] > MAJOR:
            raise NewerFormatError(
                f"the file has format version {header.version[0]}.{header.version[1]}, and this fx-ir reads up to "
                f"{MAJOR}.{MINOR}: upgrade fx-ir"
            )
        if header.version[0] < 1 or header.version[1] < 0:
            raise FileFormatError(f"there is no format version {header.version[0]}.{header.version[1]}")
        return _Reader(_file.decode(data)).graph()
    except msgspec.ValidationError as error:
        raise FileFormatError(f"this is no graph file: {error}") from error
    except msgspec.DecodeError as error:
        raise FileFormatError(f"the file is truncated or no JSON: {error}") from error
    except (RecursionError, UnicodeDecodeError) as error:
        raise FileFormatError("the file nests too deep or is no text") from error


class _Reader:
    """What is known while one file is read."""

    def __init__(self, file: File) -> None:
        self._records = file.graphs
        self._graphs: list[Graph] = [Graph() for _ in file.graphs]
        self._current = 0
        self._nodes: list[Node] = []
        self._targets: dict[str, Callable[..., Any]] = {}

    def graph(self) -> Graph:
        if not self._graphs:
            raise FileFormatError("the file holds no graph")
        for position in range(len(self._graphs)):
            self._fill(position)
        return self._graphs[0]

    def _fill(self, position: int) -> None:
        record, graph = self._records[position], self._graphs[position]
        self._current, self._nodes = position, []
        for number, node in enumerate(record.nodes):
            try:
                self._nodes.append(self._node(graph, node))
            except FileFormatError as error:
                raise FileFormatError(f"graph {position}, node {number} ({node.name!r}): {error}") from error
            except (GraphError, TypeError, ValueError, KeyError, OverflowError) as error:
                what = f"graph {position}, node {number} ({node.name!r}) makes no node: {error}"
                raise FileFormatError(what) from error
        self._number(graph, record)
        graph.nested = {path: self._nested(child) for path, child in record.nested.items()}

    def _number(self, graph: Graph, record: GraphRecord) -> None:
        """Give the nodes the identities that they had."""
        uids = {node.uid for node in record.nodes}
        if len(uids) != len(record.nodes) or (uids and not (min(uids) >= 0 and max(uids) < record.created)):
            raise FileFormatError(
                f"the uids of graph {self._current} are not distinct numbers below 'created'"
            )
        for node, made in zip(record.nodes, self._nodes, strict=True):
            made.uid = node.uid
        graph._created = record.created

    def _node(self, graph: Graph, record: NodeRecord) -> Node:
        found: list[Node] = []
        args = freeze_args(tuple([self.value(arg) for arg in record.args]), found) if record.args else ()
        kwargs = EMPTY
        if record.kwargs:
            decoded = {key: self.value(arg) for key, arg in record.kwargs.items()}
            kwargs = _args.freeze_dict(decoded, found)
        target = self.target(record.target) if record.op == "call_function" else record.target
        annotation = None if record.type is None else self._type(record.type)
        meta = {key: self.value(item) for key, item in record.meta.items()} if record.meta else None
        node = graph._insert_named(record.op, target, args, kwargs, found, record.name, annotation, meta)
        if record.op != "call_function" and not has_good_count(node):
            raise FileFormatError(
                f"{record.op} cannot have {len(args)} positional and {len(kwargs)} keyword arguments"
            )
        return node

    def target(self, name: str) -> Callable[..., Any]:
        """The loaded callable of this name, or an opaque one."""
        known = self._targets.get(name)
        if known is None:
            known = self._targets[name] = find_target(name) or OpaqueTarget(name)
        return known

    def value(self, value: Any) -> Any:
        """One encoded argument."""
        cls = type(value)
        if cls is dict:
            if len(value) != 1:
                raise FileFormatError(f"a value must be an object with one key, not {sorted(value)[:5]}")
            [(kind, content)] = value.items()
            decoder = _DECODERS.get(kind)
            if decoder is None:
                raise FileFormatError(f"there is no kind of value {kind!r}")
            return decoder(self, content)
        if cls is list:
            return [self.value(item) for item in value]
        return value

    def _type(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        if isinstance(value, dict) and len(value) == 1:
            [(kind, content)] = value.items()
            if kind == "name" and isinstance(content, str):
                return self.target(content)
            if kind == "text" and isinstance(content, str):
                return OpaqueType(content)
            if (
                kind == "generic"
                and isinstance(content, list)
                and len(content) == 2
                and isinstance(content[1], list)
            ):
                origin, arguments = self._type(content[0]), tuple(map(self._type, content[1]))
                if isinstance(origin, type):
                    return GenericAlias(origin, arguments)
                return OpaqueType(f"{origin!r}[{', '.join(map(repr, arguments))}]")
        raise FileFormatError(f"no annotation: {value!r}")

    def node(self, position: Any) -> Node:
        """The node that a reference speaks of, which must stand before."""
        if type(position) is not int or not 0 <= position < len(self._nodes):
            raise FileFormatError(f"a reference to node {position!r}, which does not stand before")
        return self._nodes[position]

    def _nested(self, position: Any) -> Graph:
        if type(position) is not int or not self._current < position < len(self._graphs):
            raise FileFormatError(f"a reference to graph {position!r}, which does not stand behind")
        return self._graphs[position]


def _sequence(content: Any, length: int | None = None) -> list[Any]:
    if type(content) is not list or (length is not None and len(content) != length):
        raise FileFormatError(
            f"a list{'' if length is None else f' of {length}'} is needed, not {content!r:.60}"
        )
    return content


def _text(content: Any) -> str:
    if type(content) is not str:
        raise FileFormatError(f"a string is needed, not {content!r:.60}")
    return content


def _named(reader: _Reader, content: Any) -> tuple[Any, ...]:
    """A named tuple: of its class if that is loaded and has these fields, else of a class made alike."""
    name, fields, items = _sequence(content, 3)
    fields = [_text(field) for field in _sequence(fields)]
    values = [reader.value(item) for item in _sequence(items, len(fields))]
    module, _, qualname = _text(name).rpartition(".")
    cls: Any = find_target(name)
    if not (isinstance(cls, type) and issubclass(cls, tuple) and list(getattr(cls, "_fields", ())) == fields):
        cls = _class_like(module, qualname, tuple(fields))
    return tuple.__new__(cls, values)


_CLASSES: Final[dict[tuple[str, str, tuple[str, ...]], type]] = {}


def _class_like(module: str, qualname: str, fields: tuple[str, ...]) -> type:
    key = (module, qualname, fields)
    if key not in _CLASSES:
        name = qualname.rpartition(".")[2]
        if not all(part.isidentifier() and not keyword.iskeyword(part) for part in (name, *fields)):
            raise FileFormatError(f"{qualname!r} with fields {fields!r} is no named tuple")
        made = namedtuple(name, fields)  # type: ignore[misc]  # its fields are known only now
        made.__module__, made.__qualname__ = sys.intern(module), qualname
        _CLASSES[key] = made
    return _CLASSES[key]


def _leaf(reader: _Reader, content: Any) -> Any:
    name, data = _sequence(content, 2)
    registered = _args.argument_type_named(_text(name))
    value = reader.value(data)
    if registered is None or registered.decode is None:
        return OpaqueLeaf(name, _frozen(value))
    return registered.decode(value)


def _frozen(value: Any) -> Any:
    return _args.freeze(value, [])


def _dict(reader: _Reader, content: Any) -> dict[Any, Any]:
    pairs = [_sequence(pair, 2) for pair in _sequence(content)]
    return {_frozen(reader.value(key)): reader.value(item) for key, item in pairs}


def _range(reader: _Reader, content: Any) -> range:
    parts = [reader.value(part) for part in _sequence(content, 3)]
    if not all(type(part) is int for part in parts):
        raise FileFormatError("a range needs integers")
    return range(*parts)


def _complex(reader: _Reader, content: Any) -> complex:
    real, imaginary = (reader.value(part) for part in _sequence(content, 2))
    return complex(real, imaginary)


_DECODERS: Final[dict[str, Callable[[_Reader, Any], Any]]] = {
    "node": lambda reader, content: reader.node(content),
    "graph": lambda reader, content: reader._nested(content),
    "tuple": lambda reader, content: tuple([reader.value(item) for item in _sequence(content)]),
    "dict": _dict,
    "slice": lambda reader, content: slice(*[reader.value(part) for part in _sequence(content, 3)]),
    "range": _range,
    "named": _named,
    "leaf": _leaf,
    "name": lambda reader, content: reader.target(_text(content)),
    "int": lambda reader, content: int(_text(content), 16),
    "float": lambda reader, content: float(_text(content)),
    "complex": _complex,
    "bytes": lambda reader, content: base64.b64decode(_text(content), validate=True),
    "ellipsis": lambda reader, content: ...,
}
