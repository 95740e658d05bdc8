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
from typing import TYPE_CHECKING

from fx.ir._args import map_aggregate, map_arg, nodes_in
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
    """One match that was rewritten: ``created`` are the new nodes, ``results`` what stands for the returned values now.

    The nodes of ``match`` are erased from the graph; those that stood for placeholders are as they were at the time
    of the match, and may have been rewritten themselves.
    """

    match: Match
    created: tuple[Node, ...]
    results: tuple[Argument, ...]


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

    A function is asked for all its graphs before anything is rewritten, so what it raises leaves ``graph`` as it was.

    Raises:
        RewriteError: the replacement has not the pattern's number of placeholders or returned values, or takes a value
            for which the pattern has only an unused placeholder; nothing has changed.
    """
    parameters = graph_parameters(pattern)
    returned = _returned(pattern)
    fixed = None if callable(replacement) else _Replacement.of(replacement, parameters, returned)
    effects = _Effects(graph)

    def can_move(match: Match) -> bool:
        return (accept is None or accept(match)) and effects.allow(match.operations())

    def put_for(match: Match) -> _Replacement:
        if not callable(replacement):
            assert fixed is not None
            return fixed
        return _Replacement.of(replacement(match), parameters, returned)

    matches = find_matches(graph, pattern, same=same, literals=literals, accept=can_move)
    put = [put_for(match) for match in matches]
    for match, chosen in zip(matches, put, strict=True):
        _has_all(parameters, match, chosen)
    now: dict[Node, Argument] = {}
    done: list[Rewrite] = []
    for match, chosen in zip(matches, put, strict=True):
        rewritten = _replace(graph, match, parameters, returned, chosen, now)
        if rewritten is not None:
            done.append(rewritten)
    return done


@dataclass(frozen=True, slots=True, eq=False)
class _Replacement:
    """A graph that fits the pattern, taken apart once for all the places where it is put."""

    parameters: list[Node]
    operations: list[Node]
    results: list[Argument]

    @classmethod
    def of(cls, graph: Graph, parameters: list[Node], returned: list[Argument]) -> _Replacement:
        """Raises RewriteError: the graph does not take or return what the pattern with these does."""
        made = cls(
            graph_parameters(graph),
            [node for node in graph.nodes if node.op not in ("placeholder", "output")],
            _returned(graph),
        )
        _fits(parameters, returned, made)
        return made


class _Effects:
    """Where a graph has effects, asked before anything is rewritten."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._impure: list[Node] | None = None
        self._are_impure: set[Node] = set()

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
            self._are_impure = set(self._impure)
        if not self._impure:
            return True
        inside = set(operations)
        first, last = min(operations), max(operations)
        between = self._impure[bisect_right(self._impure, first) : bisect_left(self._impure, last)]
        if any(node not in inside for node in between):
            return False
        if self._are_impure.isdisjoint(operations):
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


def _returned(graph: Graph) -> list[Argument]:
    """The values that ``graph`` returns, in order, as often as it returns them: what its output's containers hold."""
    values: list[Argument] = []

    def note(value: Argument) -> Argument:
        values.append(value)
        return value

    map_aggregate(graph.output_node().args[0], note)
    return values


def _fits(parameters: list[Node], returned: list[Argument], replacement: _Replacement) -> None:
    given, results = len(replacement.parameters), replacement.results
    if given != len(parameters):
        raise RewriteError(f"the pattern has {len(parameters)} placeholders and the replacement {given}")
    if len(results) != len(returned):
        raise RewriteError(f"the pattern returns {len(returned)} values and the replacement {len(results)}")
    known: dict[Node, Argument] = {}
    for old, new in zip(returned, results, strict=True):
        if isinstance(old, Node) and known.setdefault(old, new) is not new:
            raise RewriteError(
                f"the pattern returns {old} twice, and the replacement two different values", old
            )


def _has_all(parameters: list[Node], match: Match, replacement: _Replacement) -> None:
    for theirs, ours in zip(replacement.parameters, parameters, strict=True):
        if theirs.users and ours not in match.nodes:
            raise RewriteError(
                f"the replacement takes {theirs}, for which the pattern has only an unused placeholder",
                theirs,
            )


def _replace(
    graph: Graph,
    match: Match,
    parameters: list[Node],
    returned: list[Argument],
    replacement: _Replacement,
    now: dict[Node, Argument],
) -> Rewrite | None:
    """Rewrite one match; ``None`` if there is no place for the replacement, and then nothing has changed."""
    val_map: dict[Node, Argument] = {}
    for theirs, ours in zip(replacement.parameters, parameters, strict=True):
        if ours in match.nodes:
            val_map[theirs] = map_arg(match.nodes[ours], lambda node: _current(node, now))
    place = _place(match, list(val_map.values()))
    if place is None:
        return None
    copied: list[Node] = []
    with graph.inserting_before(place):
        for node in replacement.operations:
            new = graph.node_copy(node, val_map.__getitem__)
            val_map[node] = new
            copied.append(new)
    results = tuple([val_map[value] if isinstance(value, Node) else value for value in replacement.results])
    inside = set(match.operations())
    for pattern_node, new_value in zip(returned, results, strict=True):
        old = match.nodes[pattern_node] if isinstance(pattern_node, Node) else None
        if isinstance(old, Node) and old in inside:
            _use_instead(old, new_value, inside)
            now[old] = new_value
    for node in sorted(inside, reverse=True):
        graph.erase_node(node)
    return Rewrite(match, tuple(copied), results)


def _use_instead(old: Node, new: Argument, inside: set[Node]) -> None:
    """Let all users of ``old`` that are not ``inside`` take ``new``, a node or a value."""
    if isinstance(new, Node):
        old.replace_all_uses_with(new, lambda user: user not in inside)
        return

    def replaced(node: Node) -> Argument:
        return new if node is old else node

    for user in list(old.users):
        if user not in inside:
            args, kwargs = map_arg(user.args, replaced), map_arg(user.kwargs, replaced)
            user.args, user.kwargs = args, kwargs


def _current(node: Node, now: dict[Node, Argument]) -> Argument:
    """What stands for ``node`` after the rewrites so far."""
    passed: list[Node] = []
    value: Argument = node
    while isinstance(value, Node) and value in now:
        passed.append(value)
        value = now[value]
    for link in passed:
        now[link] = value
    return value


def _place(match: Match, values: list[Argument]) -> Node | None:
    """The node before which the replacement may stand: behind the values it takes, before the users of its results."""
    inside = set(match.operations())
    users = [user for anchor in match.anchors for user in anchor.users if user not in inside]
    place = max(inside).next
    if users and min(users) < place:
        place = min(users)
    return None if any(value >= place for value in nodes_in(tuple(values))) else place
