"""Reachability, depth, dominators and live ranges; all iterative, all linear (dominators: n log n).

Source: Cooper, Harvey, Kennedy, *A Simple, Fast Dominance Algorithm* (2001): in an acyclic graph one pass in order is
enough.  Common ancestors are found by jump pointers: Myers, *An Applicative Random-Access Stack* (1983).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from fx.ir.node import Node

if TYPE_CHECKING:
    from fx.ir.graph import Graph


def ancestors(*nodes: Node) -> set[Node]:
    """Everything that the values of ``nodes`` are computed from, without the nodes themselves (unless one needs one)."""
    return _closure(nodes, lambda node: node.all_input_nodes)


def descendants(*nodes: Node) -> set[Node]:
    """Everything that is computed from the values of ``nodes``."""
    return _closure(nodes, lambda node: node.users)


def _closure(nodes: Iterable[Node], step: Callable[[Node], Iterable[Node]]) -> set[Node]:
    found: set[Node] = set()
    todo = list(nodes)
    while todo:
        for other in step(todo.pop()):
            if other not in found:
                found.add(other)
                todo.append(other)
    return found


def reaches(source: Node, target: Node) -> bool:
    """Is ``target`` computed from ``source``?  Only nodes that stand between the two are looked at."""
    seen = {source}
    todo = [source]
    while todo:
        for user in todo.pop().users:
            if user is target:
                return True
            if user < target and user not in seen:
                seen.add(user)
                todo.append(user)
    return False


def depths(graph: Graph) -> dict[Node, int]:
    """For each node, the number of nodes on the longest way that ends in it."""
    found: dict[Node, int] = {}
    for node in graph.nodes:
        found[node] = 1 + max([found[value] for value in node.all_input_nodes], default=0)
    return found


def critical_path(graph: Graph) -> list[Node]:
    """A longest way through the graph, from its start to its end."""
    depth = depths(graph)
    if not depth:
        return []
    node = max(depth, key=depth.__getitem__)
    path = [node]
    while node.all_input_nodes:
        node = max(node.all_input_nodes, key=depth.__getitem__)
        path.append(node)
    return path[::-1]


class LiveRange(NamedTuple):
    """From which position to which a value must be kept; both count nodes from 0.  Unused: both are its own."""

    start: int
    end: int


def live_ranges(graph: Graph) -> dict[Node, LiveRange]:
    """For each node, the positions of its computation and of its last use."""
    position = {node: i for i, node in enumerate(graph.nodes)}
    return {
        node: LiveRange(start, max([position[user] for user in node.users], default=start))
        for node, start in position.items()
    }


def peak_live(graph: Graph) -> int:
    """The largest number of values that must be kept at one time, at the computation of some node."""
    change = [0] * (len(graph.nodes) + 1)
    for start, end in live_ranges(graph).values():
        change[start] += 1
        change[end + 1] -= 1
    peak = live = 0
    for step in change:
        live += step
        peak = max(peak, live)
    return peak


def dominators(graph: Graph) -> dict[Node, Node | None]:
    """For each node its immediate dominator: the last node that every way to it passes; ``None`` if there is none.

    Ways start at nodes that take nothing.
    """
    return _dominators(graph.nodes, lambda node: node.all_input_nodes)


def post_dominators(graph: Graph) -> dict[Node, Node | None]:
    """For each node the first node that every way from it passes; ways end at nodes that nobody takes."""
    return _dominators(reversed(graph.nodes), lambda node: node.users)


class _Tree:
    """The dominator tree as it grows: parent, depth and jump pointer of each number; number 0 is the root."""

    def __init__(self) -> None:
        self._parent = [0]
        self._depth = [0]
        self._jump = [0]

    def add(self, parent: int) -> int:
        jump = self._jump[parent]
        deep = self._depth
        far = self._jump[jump]
        self._parent.append(parent)
        self._jump.append(far if deep[parent] - deep[jump] == deep[jump] - deep[far] else parent)
        deep.append(deep[parent] + 1)
        return len(deep) - 1

    def common(self, a: int, b: int) -> int:
        """The deepest number that both stand under, in O(log n)."""
        depth, jump, parent = self._depth, self._jump, self._parent
        if depth[a] < depth[b]:
            a, b = b, a
        while depth[a] > depth[b]:
            a = jump[a] if depth[jump[a]] >= depth[b] else parent[a]
        while a != b:
            if jump[a] != jump[b]:
                a, b = jump[a], jump[b]
            else:
                a, b = parent[a], parent[b]
        return a


def _dominators(nodes: Iterable[Node], before: Callable[[Node], Iterable[Node]]) -> dict[Node, Node | None]:
    tree = _Tree()
    number: dict[Node, int] = {}
    by_number: list[Node | None] = [None]
    found: dict[Node, Node | None] = {}
    for node in nodes:
        sources = [number[other] for other in before(node)]
        parent = sources[0] if sources else 0
        for source in sources[1:]:
            parent = tree.common(parent, source)
        number[node] = tree.add(parent)
        by_number.append(node)
        found[node] = by_number[parent]
    return found
