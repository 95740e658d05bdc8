"""Subgraph matching: where in a graph does a pattern graph occur?

A pattern is a graph.  Its placeholders stand for any node (the same one wherever the same placeholder stands), every
other node for one with the same operation and matching arguments.  The nodes that the pattern returns are its
*anchors*; a match keeps its other nodes to itself: none of them may have users outside the match.

The first anchor is looked for in the index by (op, target); the rest of its tree follows from the arguments without
search.  Further anchors are reached along the users of what is matched already.  So matching costs the number of
candidates times the size of the pattern, whatever the size of the graph.

Source: the torch.fx reference, section "Subgraph rewriting".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
            all nodes with the op of the first anchor are candidates.
        literals: let placeholders stand for values that are no nodes, too.
        overlapping: also give matches that share an operation with an earlier one.
        accept: asked about each match; those it answers ``False`` for are dropped (and claim no nodes).

    Raises:
        GraphError: the pattern has no output, or returns nothing but placeholders.
    """
    anchors = anchors_of(pattern)
    first = anchors[0]
    if same is None:
        candidates = graph.find_nodes(op=first.op, target=first.target)
    else:
        candidates = graph.find_nodes(op=first.op)
    matcher = _Matcher(anchors, same or _same_operation, literals)
    claimed: set[Node] = set()
    found: list[Match] = []
    for candidate in candidates:
        for match in matcher.at(candidate):
            operations = match.operations()
            if not overlapping and not claimed.isdisjoint(operations):
                continue
            if accept is not None and not accept(match):
                continue
            claimed.update(operations)
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


def _same_operation(pattern: Node, node: Node) -> bool:
    return pattern.op == node.op and (pattern.target is node.target or pattern.target == node.target)


class _Matcher:
    """One pattern, ready to be tried at many places."""

    def __init__(self, anchors: list[Node], same: SameOperation, literals: bool) -> None:
        self._anchors = anchors
        self._same = same
        self._literals = literals
        self._links = [_link(anchors[:i], anchor) for i, anchor in enumerate(anchors) if i]

    def at(self, node: Node) -> Iterator[Match]:
        """The matches whose first anchor is ``node``; several only if a further anchor can be chosen."""
        nodes: dict[Node, Argument] = {}
        if not self._tree(self._anchors[0], node, nodes):
            return
        states = [nodes]
        for anchor, link in zip(self._anchors[1:], self._links, strict=True):
            states = list(self._extended(states, anchor, link))
        for state in states:
            if self._keeps_to_itself(state):
                yield Match(
                    tuple([node for node in map(state.get, self._anchors) if isinstance(node, Node)]), state
                )

    def _extended(
        self, states: Iterable[dict[Node, Argument]], anchor: Node, link: tuple[Node, ...]
    ) -> Iterator[dict[Node, Argument]]:
        for state in states:
            if anchor in state:
                yield state
                continue
            for candidate in self._candidates(state, anchor, link):
                extended = dict(state)
                if self._tree(anchor, candidate, extended):
                    yield extended

    def _candidates(
        self, state: dict[Node, Argument], anchor: Node, link: tuple[Node, ...]
    ) -> Iterable[Node]:
        """Where ``anchor`` may be: at the end of a way along users from a node that is matched."""
        start = state.get(link[0]) if link else None
        if not isinstance(start, Node):
            graph = next(node.graph for node in state.values() if isinstance(node, Node))
            return graph.find_nodes(op=anchor.op)
        reached: dict[Node, None] = {start: None}
        for step in link[1:]:
            reached = {user: None for node in reached for user in node.users if self._same(step, user)}
        return reached

    def _tree(self, pattern: Node, node: Node, nodes: dict[Node, Argument]) -> bool:
        """Match ``pattern`` at ``node`` with everything that it takes; ``nodes`` learns what stands for what."""
        todo: list[tuple[Any, Any]] = [(pattern, node)]
        taken = {node for key, node in nodes.items() if key.op != "placeholder" and isinstance(node, Node)}
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

    def _keeps_to_itself(self, nodes: dict[Node, Argument]) -> bool:
        inside = {node for key, node in nodes.items() if key.op != "placeholder" and isinstance(node, Node)}
        anchors = {nodes[anchor] for anchor in self._anchors}
        if any(
            isinstance(node, Node) and node in inside
            for key, node in nodes.items()
            if key.op == "placeholder"
        ):
            return False
        return all(user in inside for node in inside if node not in anchors for user in node.users)


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
    """A way along users, in the pattern, from a node that ``earlier`` anchors reach to ``anchor``; empty if none."""
    known: set[Node] = set()
    todo = list(earlier)
    while todo:
        node = todo.pop()
        if node not in known:
            known.add(node)
            todo.extend(node.all_input_nodes)
    ways: dict[Node, tuple[Node, ...]] = {anchor: (anchor,)}
    queue = [anchor]
    for node in queue:
        for value in node.all_input_nodes:
            if value not in ways:
                ways[value] = (value, *ways[node])
                if value in known:
                    return ways[value]
                queue.append(value)
    return ()
