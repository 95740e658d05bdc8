"""Rewriting: put a replacement in the place of every match of a pattern, in time linear in the matches.

The replacement is a graph with the same number of returned values.  Its placeholders are taken in order for those of
the pattern.  It goes right behind the match's last operation, or in front of the first user of what the match returns
if that comes earlier; a match is left alone if its inputs are not all computed there, or if bringing its operations
together would carry one across an operation with effects.

Source: the torch.fx reference, section "Subgraph rewriting" (``replace_pattern``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fx.ir._args import map_arg, nodes_in
from fx.ir.errors import GraphError
from fx.ir.match.matcher import Match, SameOperation, find_matches
from fx.ir.node import Node

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.types import Argument


class RewriteError(GraphError, ValueError):
    """The replacement does not fit the pattern."""


@dataclass(frozen=True, slots=True, eq=False)
class Rewrite:
    """One match that was rewritten: ``created`` are the new nodes, ``results`` what stands for the anchors now.

    The nodes of ``match`` are erased from the graph; those that stood for placeholders are as they were at the time
    of the match, and may have been rewritten themselves.
    """

    match: Match
    created: tuple[Node, ...]
    results: tuple[Node, ...]


def rewrite(
    graph: Graph,
    pattern: Graph,
    replacement: Graph | Callable[[Match], Graph],
    *,
    same: SameOperation | None = None,
    literals: bool = False,
    accept: Callable[[Match], bool] | None = None,
) -> list[Rewrite]:
    """Replace every match of ``pattern`` in ``graph``; matches that overlap an earlier one are left alone.

    Args:
        replacement: a graph, or a function that gives one for each match.
        same, literals, accept: as for :func:`find_matches`.

    Raises:
        RewriteError: the replacement has not the pattern's number of placeholders or returned values.  A given graph
            is checked before anything changes; with a function, matches before the offending one are rewritten.
    """
    parameters = graph_parameters(pattern)
    returned = _returned(pattern)
    if not callable(replacement):
        _fits(parameters, returned, replacement)
    effects = _Effects(graph)

    def can_move(match: Match) -> bool:
        return (accept is None or accept(match)) and effects.allow(match.operations())

    matches = find_matches(graph, pattern, same=same, literals=literals, accept=can_move)
    now: dict[Node, Node] = {}
    done: list[Rewrite] = []
    for match in matches:
        with_graph = replacement(match) if callable(replacement) else replacement
        _fits(parameters, returned, with_graph)
        rewritten = _replace(graph, match, parameters, returned, with_graph, now)
        if rewritten is not None:
            done.append(rewritten)
    return done


class _Effects:
    """Where a graph has effects, asked before anything is rewritten."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._impure: list[Node] | None = None

    def allow(self, operations: list[Node]) -> bool:
        """Can the operations be brought together: is none carried across an effect, or its own effect across a node?"""
        if len(operations) < 2:
            return True
        if self._impure is None:
            self._impure = [
                node
                for node in self._graph.nodes
                if node.op not in ("placeholder", "output") and node.is_impure()
            ]
        inside = set(operations)
        first, last = min(operations), max(operations)
        between = self._impure[bisect_right(self._impure, first) : bisect_left(self._impure, last)]
        if any(node not in inside for node in between):
            return False
        if not any(node.is_impure() for node in operations):
            return True
        node = first.next
        while node is not last:
            if node not in inside and node.op != "get_attr":
                return False
            node = node.next
        return True


def graph_parameters(graph: Graph) -> list[Node]:
    """The placeholders of ``graph``, in order."""
    return graph.find_nodes(op="placeholder")


def _returned(graph: Graph) -> list[Any]:
    """The values that ``graph`` returns, in order: the nodes in its output, or the one value."""
    result = graph.output_node().args[0]
    return list(dict.fromkeys(nodes_in(result))) or [result]


def _fits(parameters: list[Node], returned: list[Any], replacement: Graph) -> None:
    if not all(isinstance(value, Node) for value in _returned(replacement)):
        raise RewriteError("the replacement must return values of nodes, not constants")
    given, results = len(graph_parameters(replacement)), len(_returned(replacement))
    if given != len(parameters):
        raise RewriteError(f"the pattern has {len(parameters)} placeholders and the replacement {given}")
    if results != len(returned):
        raise RewriteError(f"the pattern returns {len(returned)} values and the replacement {results}")


def _replace(
    graph: Graph,
    match: Match,
    parameters: list[Node],
    returned: list[Any],
    replacement: Graph,
    now: dict[Node, Node],
) -> Rewrite | None:
    """Rewrite one match; ``None`` if there is no place for the replacement, and then nothing has changed."""
    val_map: dict[Node, Argument] = {}
    for theirs, ours in zip(graph_parameters(replacement), parameters, strict=True):
        if ours in match.nodes:
            val_map[theirs] = map_arg(match.nodes[ours], lambda node: _current(node, now))
        elif theirs.users:
            raise RewriteError(
                f"the replacement takes {theirs}, for which the pattern has only an unused placeholder"
            )
    place = _place(match, list(val_map.values()))
    constants = [key for key, value in val_map.items() if not isinstance(value, Node)]
    if place is None or not set(constants).isdisjoint(_returned(replacement)):
        return None
    copied: list[Node] = []
    with graph.inserting_before(place):
        for node in replacement.nodes:
            if node.op == "output":
                break
            if node.op != "placeholder":
                new = graph.node_copy(node, val_map.__getitem__)
                val_map[node] = new
                copied.append(new)
    results = tuple([value for value in map(val_map.get, _returned(replacement)) if isinstance(value, Node)])
    inside = set(match.operations())
    for old, new_value in zip(map(match.nodes.get, returned), results, strict=True):
        if isinstance(old, Node) and old in inside:
            old.replace_all_uses_with(new_value, lambda user: user not in inside)
            now[old] = new_value
    for node in sorted(match.operations(), reverse=True):
        graph.erase_node(node)
    return Rewrite(match, tuple(copied), results)


def _current(node: Node, now: dict[Node, Node]) -> Node:
    """What stands for ``node`` after the rewrites so far."""
    passed: list[Node] = []
    while node in now:
        passed.append(node)
        node = now[node]
    for link in passed:
        now[link] = node
    return node


def _place(match: Match, values: list[Argument]) -> Node | None:
    """The node before which the replacement may stand: behind the values it takes, before the users of its results."""
    inside = set(match.operations())
    users = [user for anchor in match.anchors for user in anchor.users if user not in inside]
    place = max(inside).next
    if users and min(users) < place:
        place = min(users)
    return None if any(value >= place for value in nodes_in(tuple(values))) else place
