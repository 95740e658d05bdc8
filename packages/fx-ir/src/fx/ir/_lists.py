"""The list of nodes as its readers see it, and the place where a graph inserts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fx.ir._order import END, ERASED
from fx.ir.node import Node

if TYPE_CHECKING:
    from types import TracebackType

    from fx.ir.graph import Graph


class NodeList:
    """The nodes of a graph in order; live, and safe to edit while iterated, in both directions.

    ``len`` is O(1), and so is ``in``.  An iterator standing on a node that is erased goes on behind (or in front of)
    the place where that was.
    """

    __slots__ = ("_graph",)

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __len__(self) -> int:
        return self._graph._len

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and node.graph is self._graph and node._label < END

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node = root._next
        while node is not root:
            if node._label < END:
                yield node
            node = node._next

    def __reversed__(self) -> Iterator[Node]:
        root = self._graph._root
        node = root._prev
        while node is not root:
            if node._label < END:
                yield node
            node = node._prev

    def __repr__(self) -> str:
        return f"[{', '.join(node.name for node in self)}]"


class InsertPoint:
    """Where a graph inserts; as a context manager, puts the earlier place back at the end."""

    __slots__ = ("_earlier", "graph")

    def __init__(self, graph: Graph, anchor: Node, behind: bool) -> None:
        self.graph: Graph = graph
        self._earlier = (graph._anchor, graph._behind)
        graph._anchor, graph._behind = anchor, behind

    def __enter__(self) -> InsertPoint:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        anchor, behind = self._earlier
        while anchor._label >= ERASED:  # it was erased meanwhile: its place is between its neighbours
            anchor = anchor._prev if behind else anchor._next
        self.graph._anchor, self.graph._behind = anchor, behind
