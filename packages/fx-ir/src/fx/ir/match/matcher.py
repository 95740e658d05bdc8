"""Subgraph matching: where in a graph does a pattern graph occur?

A pattern is a graph.  Its placeholders stand for any node (the same one wherever the same placeholder stands), every
other node for one with the same operation and matching arguments.  The nodes that the pattern returns are its
*anchors*; a match keeps its other nodes to itself: none of them may have users outside the match.

The first anchor is looked for in the index by (op, target); the rest of its tree follows from the arguments without
search.  Further anchors are reached along the users of what is matched already.  Parts of the pattern that nothing
connects are looked for apart, each once, and put together in the order in which they occur.  So matching costs the
number of candidates times the size of the pattern, whatever the size of the graph.

Source: the torch.fx reference, section "Subgraph rewriting".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fx.ir._args import kind_of, nodes_in
from fx.ir.errors import GraphError
from fx.ir.node import Node

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.types import Argument

SameOperation: TypeAlias = Callable[[Node, Node], bool]
"""Asked with a node of the pattern and one of the graph: is it the same operation, arguments aside?"""

_Nodes: TypeAlias = "dict[Node, Argument]"
"""Nodes of a pattern and what stands for them."""


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """One occurrence of a pattern.

    ``nodes`` maps each operation of the pattern to its node in the graph, and each placeholder of the pattern to what
    stands for it (a node, or a value if literals were allowed); ``anchors`` are the nodes that the pattern returns.
    """

    anchors: tuple[Node, ...]
    nodes: dict[Node, Argument]

    def operations(self) -> list[Node]:
        """The matched nodes of the graph without those that stand for placeholders, in the order of the pattern."""
        return [
            node for key, node in self.nodes.items() if key.op != "placeholder" and isinstance(node, Node)
        ]


def find_matches(
    graph: Graph,
    pattern: Graph,
    *,
    same: SameOperation | None = None,
    literals: bool = False,
    overlapping: bool = False,
    accept: Callable[[Match], bool] | None = None,
) -> list[Match]:
    """The occurrences of ``pattern`` in ``graph``, in order of their first anchor.

    Args:
        same: decides whether two nodes are the same operation; by default, if op and target are equal.  Given one,
            every node is a candidate.
        literals: let placeholders stand for values that are no nodes, too.
        overlapping: also give matches that share an operation with an earlier one.
        accept: asked about each match; those it answers ``False`` for are dropped (and claim no nodes).

    Raises:
        GraphError: the pattern has no output, or returns nothing but placeholders.
    """
    first, *others = [_Part(graph, anchors, same, literals) for anchors in _parts(anchors_of(pattern))]
    order = anchors_of(pattern)
    claimed: set[Node] = set()
    taken: set[Node] = claimed if not overlapping else set()
    found: list[Match] = []
    for candidate in first.candidates:
        for nodes in first.at(candidate):
            match = next(
                (
                    match
                    for match in _completed(nodes, others, order, taken)
                    if accept is None or accept(match)
                ),
                None,
            )
            if match is not None:
                claimed.update(match.operations())
                found.append(match)
                break
    return found


def anchors_of(pattern: Graph) -> list[Node]:
    """The operations that ``pattern`` returns, in order, each once."""
    output = pattern.output_node()
    anchors = [node for node in dict.fromkeys(nodes_in(output.args)) if node.op != "placeholder"]
    if not anchors:
        raise GraphError("a pattern must return the value of at least one operation")
    return anchors


def _parts(anchors: list[Node]) -> list[list[Node]]:
    """The anchors of a pattern, those of a connected part together: each leads to what an earlier one leads to."""
    parts: list[list[Node]] = []
    waiting = {anchor: _leading_to([anchor]) for anchor in anchors}
    while waiting:
        first = next(iter(waiting))
        part, reached = [first], waiting.pop(first)
        while (
            joined := next((a for a, nodes in waiting.items() if not nodes.isdisjoint(reached)), None)
        ) is not None:
            part.append(joined)
            reached |= waiting.pop(joined)
        parts.append(part)
    return parts


def _leading_to(nodes: list[Node]) -> set[Node]:
    """``nodes``, and all whose value they need."""
    reached: set[Node] = set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if node not in reached:
            reached.add(node)
            todo.extend(node.all_input_nodes)
    return reached


def _completed(nodes: _Nodes, others: list[_Part], order: list[Node], claimed: set[Node]) -> Iterator[Match]:
    """The matches that begin with ``nodes`` and have one occurrence of each other part, and nothing that is claimed."""
    if not claimed.isdisjoint(_operations(nodes)):
        return
    waiting: list[Iterator[_Nodes]] = [iter((nodes,))]
    while waiting:
        state = next(waiting[-1], None)
        if state is None:
            waiting.pop()
        elif len(waiting) <= len(others):
            waiting.append(others[len(waiting) - 1].beside(state, claimed))
        elif not _takes_itself(state):
            anchors = tuple([node for node in map(state.get, order) if isinstance(node, Node)])
            yield Match(anchors, state)


def _operations(nodes: _Nodes) -> set[Node]:
    return {node for key, node in nodes.items() if key.op != "placeholder" and isinstance(node, Node)}


def _takes_itself(nodes: _Nodes) -> bool:
    """Does one of the matched operations stand for a placeholder, too?"""
    inside = _operations(nodes)
    return any(
        isinstance(node, Node) and node in inside for key, node in nodes.items() if key.op == "placeholder"
    )


def _same_operation(pattern: Node, node: Node) -> bool:
    return pattern.op == node.op and (pattern.target is node.target or pattern.target == node.target)


class _Part:
    """A connected part of a pattern, ready to be tried at many places."""

    def __init__(self, graph: Graph, anchors: list[Node], same: SameOperation | None, literals: bool) -> None:
        self._anchors = anchors
        self._same = same or _same_operation
        self._literals = literals
        self._links = [_link(anchors[:i], anchor) for i, anchor in enumerate(anchors) if i]
        first = anchors[0]
        self.candidates = (
            graph.find_nodes(op=first.op, target=first.target)
            if same is None
            else [node for node in graph.nodes if node.op not in ("placeholder", "output")]
        )
        self._unmet: Iterator[_Nodes] = (nodes for node in self.candidates for nodes in self.at(node))
        self._met: list[_Nodes] = []
        self._begin = 0

    def at(self, node: Node) -> Iterator[_Nodes]:
        """The occurrences whose first anchor is ``node``; several only if a further anchor can be chosen."""
        nodes: _Nodes = {}
        if not self._tree(self._anchors[0], node, nodes):
            return
        waiting: list[Iterator[_Nodes]] = [iter((nodes,))]
        while waiting:
            state = next(waiting[-1], None)
            if state is None:
                waiting.pop()
            elif len(waiting) < len(self._anchors):
                place = len(waiting)
                waiting.append(self._extended(state, self._anchors[place], self._links[place - 1]))
            elif self._keeps_to_itself(state):
                yield state

    def beside(self, state: _Nodes, claimed: set[Node]) -> Iterator[_Nodes]:
        """``state`` with each occurrence of this part that shares no operation with it and has none that is claimed.

        Occurrences are looked for once.  Those that are claimed are forgotten from the front, so that matches in the
        order of the graph cost linear time.
        """
        place = self._begin
        inside = _operations(state)
        while True:
            if place == len(self._met):
                found = next(self._unmet, None)
                if found is None:
                    return
                self._met.append(found)
            nodes = self._met[place]
            operations = _operations(nodes)
            if not claimed.isdisjoint(operations):
                if place == self._begin:
                    self._begin += 1
            elif inside.isdisjoint(operations):
                yield {**state, **nodes}
            place += 1

    def _extended(self, state: _Nodes, anchor: Node, link: tuple[Node, ...]) -> Iterator[_Nodes]:
        """``state`` with ``anchor`` wherever it may be: at the end of a way along users from a node that is matched."""
        if anchor in state:
            yield state
            return
        start = state[link[0]]
        if not isinstance(start, Node):  # a literal has no users to go along
            graph = next(node.graph for node in state.values() if isinstance(node, Node))
            reached = dict.fromkeys(graph.find_nodes(op=anchor.op))
        else:
            reached = {start: None}
            for step in link[1:]:
                reached = {user: None for node in reached for user in node.users if self._same(step, user)}
        for candidate in reached:
            extended = dict(state)
            if self._tree(anchor, candidate, extended):
                yield extended

    def _tree(self, pattern: Node, node: Node, nodes: _Nodes) -> bool:
        """Match ``pattern`` at ``node`` with everything that it takes; ``nodes`` learns what stands for what."""
        todo: list[tuple[Any, Any]] = [(pattern, node)]
        taken = _operations(nodes)
        while todo:
            wanted, value = todo.pop()
            if not isinstance(wanted, Node):
                if not _unfold(wanted, value, todo):
                    return False
            elif wanted in nodes:
                known = nodes[wanted]
                if known is not value and (
                    isinstance(value, Node)
                    or isinstance(known, Node)
                    or type(known) is not type(value)
                    or not _equal(known, value)
                ):
                    return False
            elif wanted.op == "placeholder":
                if not (isinstance(value, Node) or self._literals):
                    return False
                nodes[wanted] = value
            else:
                if not isinstance(value, Node) or value in taken or not self._same(wanted, value):
                    return False
                nodes[wanted] = value
                taken.add(value)
                if wanted.op != "get_attr":
                    todo.append((wanted.args, value.args))
                    todo.append((wanted.kwargs, value.kwargs))
        return True

    def _keeps_to_itself(self, nodes: _Nodes) -> bool:
        inside = _operations(nodes)
        anchors = {nodes[anchor] for anchor in self._anchors}
        return not _takes_itself(nodes) and all(
            user in inside for node in inside if node not in anchors for user in node.users
        )


def _unfold(wanted: Any, value: Any, todo: list[tuple[Any, Any]]) -> bool:
    """Compare a container or literal of the pattern; what lies in containers is put on ``todo``."""
    if isinstance(wanted, tuple | list):
        if kind_of(type(wanted)) != kind_of(type(value)) or len(wanted) != len(value):
            return False
        todo.extend(zip(wanted, value, strict=True))
        return True
    if isinstance(wanted, dict):
        if not isinstance(value, dict) or wanted.keys() != value.keys():
            return False
        todo.extend((item, value[key]) for key, item in wanted.items())
        return True
    if isinstance(wanted, slice):
        if not isinstance(value, slice):
            return False
        todo.extend(((wanted.start, value.start), (wanted.stop, value.stop), (wanted.step, value.step)))
        return True
    if wanted is value:
        return True
    return type(wanted) is type(value) and _equal(wanted, value)


def _equal(left: object, right: object) -> bool:
    if isinstance(left, float | complex):
        return repr(left) == repr(right)  # the zeros differ in sign, and nan is itself
    try:
        return bool(left == right)
    except (RuntimeError, ValueError):  # tensors and arrays have no single answer
        return False


def _link(earlier: list[Node], anchor: Node) -> tuple[Node, ...]:
    """A way along users, in the pattern, from a node that ``earlier`` anchors reach to ``anchor``."""
    known = _leading_to(earlier)
    ways: dict[Node, tuple[Node, ...]] = {anchor: (anchor,)}
    queue = [anchor]
    for node in queue:
        for value in node.all_input_nodes:
            if value not in ways:
                ways[value] = (value, *ways[node])
                if value in known:
                    return ways[value]
                queue.append(value)
    raise AssertionError("the anchors of a part are connected")
