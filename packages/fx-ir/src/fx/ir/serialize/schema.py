"""The records of a file, as ``msgspec`` checks them.  Values inside arguments are checked by ``decode``."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fx.ir.types import Op

FORMAT: Final = "fx-ir-graph"
MAJOR: Final = 1
MINOR: Final = 0


class NodeRecord(msgspec.Struct, omit_defaults=True):
    """One node.  ``args`` and the values of ``kwargs`` and ``meta`` are encoded values."""

    name: str
    op: Op
    target: str
    uid: int
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    type: Any = None
    meta: dict[str, Any] = {}


class GraphRecord(msgspec.Struct, omit_defaults=True):
    """One graph: its nodes in order, and the graphs of its submodules by path → position in the file."""

    nodes: list[NodeRecord]
    created: int
    nested: dict[str, int] = {}


class Header(msgspec.Struct):
    """What every version of the format begins with."""

    format: str
    version: tuple[int, int]


class File(msgspec.Struct):
    """A whole file; ``graphs[0]`` is the graph that was saved, and each graph stands before those nested in it."""

    format: str
    version: tuple[int, int]
    graphs: list[GraphRecord]
