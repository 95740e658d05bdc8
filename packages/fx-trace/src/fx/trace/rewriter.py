"""Find a subgraph wherever it occurs, and put another in its place.

Patterns and replacements are functions, modules or graphs. Matching and rewriting are the engine's of ``fx.ir.match``; here
programs become graphs, what a replacement refers to is brought into the module, and constant tensors are compared by value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch

from fx.codegen import GraphModule
from fx.ir import Argument, Graph, Node, map_aggregate
from fx.ir.match import Match as FoundMatch
from fx.ir.match import Rewrite, RewriteError, rewrite
from fx.trace.tracer import Tracer

__all__ = ["InternalMatch", "Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Program: TypeAlias = Callable[..., Any] | torch.nn.Module | Graph
MatchFilter: TypeAlias = Callable[["InternalMatch", Graph, Graph], bool]
ReplacementCallback: TypeAlias = Callable[["InternalMatch", Graph, Graph], Graph | GraphModule]


class Match(NamedTuple):
    """One place where the pattern was found and replaced.

    Attributes:
        anchor: the node of the graph from which the match was found: what the pattern returns. It is erased by the replacement.
        nodes_map: nodes of the pattern to nodes of the graph; a placeholder may also stand for a plain value.

    Source: seed 003, ``replace_pattern``.
    """

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass(frozen=True, slots=True)
class InternalMatch:
    """A match that has been found and not yet replaced; given to filters and to ``replacement_callback``.

    Attributes:
        anchors: nodes of the graph that the pattern returns.
        nodes_map: nodes of the pattern to nodes or values of the graph.
        placeholder_nodes: what stands for the pattern's placeholders, in their order.
        returning_nodes: nodes of the graph that the pattern returns, in its order.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any]
    placeholder_nodes: list[Any]
    returning_nodes: list[Any]


@dataclass(frozen=True, slots=True)
class ReplacedPatterns:
    """A :class:`Match` and the nodes that were put in.

    Attributes:
        anchor: as in :class:`Match`.
        nodes_map: as in :class:`Match`.
        replacements: the new nodes, in order.
    """

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Program, replacement: Program) -> list[Match]:
    """Replace every match of ``pattern`` in ``gm`` that does not overlap an earlier one, and recompile.

    A match may be anywhere in the graph. Parameters of the pattern stand for any value; whatever else the pattern computes must
    be used inside the match only, unless the pattern returns it. Nothing is carried across an operation with effects.

    Args:
        gm: is edited.
        pattern: its parameters must all be used by it.
        replacement: takes as many parameters, and returns as many values.

    Raises:
        fx.ir.match.RewriteError: the replacement does not fit the pattern; nothing is changed.

    Source: seed 003, ``replace_pattern``.
    """
    replaced = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(found.anchor, found.nodes_map) for found in replaced]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Program,
    replacement: Program | None = None,
    match_filters: Sequence[MatchFilter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: ReplacementCallback | None = None,
) -> list[ReplacedPatterns]:
    """As :func:`replace_pattern`, for chosen matches, or with a replacement made for each.

    Args:
        gm: is edited.
        pattern: see :func:`replace_pattern`.
        replacement: the same for every match; or give ``replacement_callback``.
        match_filters: called with the match, ``gm``'s graph and the pattern's graph; all must say yes.
        ignore_literals: a literal in the pattern stands for any value.
        replacement_callback: called like a filter; gives the replacement for the match.

    Raises:
        TypeError: neither or both of ``replacement`` and ``replacement_callback`` are given.
        fx.ir.match.RewriteError: a replacement does not fit the pattern.

    All replacements are made before anything is replaced; what a callback raises leaves ``gm`` as it was.
    """
    if (replacement is None) == (replacement_callback is None):
        raise TypeError("Must provide either a replacement or a replacement callback, and not both")
    owner, pattern_graph = _graph_of(pattern)
    wanted, wildcards = _with_wildcards(pattern_graph) if ignore_literals else (pattern_graph, 0)
    view = _View(pattern_graph, wanted)
    put_in: list[str] = []

    def made(module: torch.nn.Module | None, graph: Graph) -> Graph:
        installed = _installed(gm, module, graph, put_in)
        return _with_unused(installed, wildcards) if wildcards else installed

    def for_match(found: FoundMatch) -> Graph:
        assert replacement_callback is not None
        return made(*_graph_of(replacement_callback(view.of(found), gm.graph, pattern_graph)))

    def accept(found: FoundMatch) -> bool:
        match = view.of(found)
        return all(keep(match, gm.graph, pattern_graph) for keep in match_filters or ())

    put: Graph | Callable[[FoundMatch], Graph] = for_match
    try:
        if replacement is not None:
            module, graph = _graph_of(replacement)
            _check_fit(pattern_graph, graph)
            put = made(module, graph)
        rewrites = rewrite(
            gm.graph,
            wanted,
            put,
            same=_same(owner, gm) if any(n.op in ("call_module", "get_attr") for n in wanted.nodes) else None,
            literals=True,
            accept=accept if match_filters else None,
        )
    except BaseException:
        for name in put_in:
            delattr(gm, name)
        raise
    if rewrites:
        gm.recompile()
    return [view.replaced(done) for done in rewrites]


def _graph_of(program: Program) -> tuple[torch.nn.Module | None, Graph]:
    """The program's graph, and the module that its names refer to."""
    if isinstance(program, Graph):
        return program.owning_module, program
    if isinstance(program, GraphModule):
        return program, program.graph
    tracer = Tracer()
    graph = tracer.trace(program)
    return tracer.root, graph


def _check_fit(pattern: Graph, replacement: Graph) -> None:
    wanted, given = (len(graph.find_nodes(op="placeholder")) for graph in (pattern, replacement))
    if wanted != given:
        raise RewriteError(f"the pattern has {wanted} placeholders and the replacement {given}")


class _View:
    """Shows matches of the graph that was searched for as matches of the pattern that was given."""

    def __init__(self, pattern: Graph, searched: Graph) -> None:
        self._pairs = [
            (given, looked_for)
            for given, looked_for in zip(pattern.nodes, _without_wildcards(searched), strict=True)
            if given.op != "output"
        ]
        self._parameters = pattern.find_nodes(op="placeholder")
        self._returned = pattern.output_node().all_input_nodes

    def _nodes_map(self, found: FoundMatch) -> dict[Node, Any]:
        nodes = found.nodes
        return {given: nodes[searched] for given, searched in self._pairs if searched in nodes}

    def of(self, found: FoundMatch) -> InternalMatch:
        nodes = self._nodes_map(found)
        return InternalMatch(
            list(found.anchors),
            nodes,
            [nodes.get(parameter) for parameter in self._parameters],
            [nodes[returned] for returned in self._returned],
        )

    def replaced(self, done: Rewrite) -> ReplacedPatterns:
        return ReplacedPatterns(done.match.anchors[0], self._nodes_map(done.match), list(done.created))


_WILDCARD = "wildcard_of_literal"


def _without_wildcards(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if _WILDCARD not in node.meta]


def _with_wildcards(pattern: Graph) -> tuple[Graph, int]:
    """A copy in which each literal is a placeholder of its own, and how many there are."""
    copy = Graph()
    new: dict[Node, Node] = {}
    count = 0

    def wildcard(literal: Argument) -> Argument:
        nonlocal count
        if isinstance(literal, Node):
            return new[literal]
        count += 1
        made = copy.placeholder(f"any_literal_{count}")
        made.meta[_WILDCARD] = True
        return made

    for node in pattern.nodes:
        if node.op == "placeholder":
            new[node] = copy.node_copy(node)
        elif node.op == "output":
            new[node] = copy.node_copy(node, new.__getitem__)
        else:
            args, kwargs = map_aggregate(node.args, wildcard), map_aggregate(dict(node.kwargs), wildcard)
            new[node] = copy.create_node(node.op, node.target, args, dict(kwargs))
    return copy, count


def _with_unused(replacement: Graph, count: int) -> Graph:
    """A copy with more placeholders, which nothing uses."""
    copy = Graph()
    new: dict[Node, Any] = {}
    parameters = replacement.find_nodes(op="placeholder")
    for node in parameters:
        new[node] = copy.node_copy(node)
    for index in range(count):
        copy.placeholder(f"any_literal_{index}")
    copy.output(copy.graph_copy(replacement, new))
    return copy


def _same(pattern_owner: torch.nn.Module | None, gm: GraphModule) -> Callable[[Node, Node], bool]:
    """Same operation, where fetched attributes are the same if their values are."""

    def same(wanted: Node, node: Node) -> bool:
        if wanted.op != node.op:
            return False
        if wanted.op in ("call_function", "call_method"):
            return wanted.target == node.target
        theirs, ours = _attribute(pattern_owner, str(wanted.target)), _attribute(gm, str(node.target))
        if wanted.op == "call_module":
            # A pattern names a module of the program's; its own stands for any of the same type there.
            return wanted.target == node.target and (theirs is None or type(theirs) is type(ours))
        return _same_value(theirs, ours)

    return same


def _attribute(owner: torch.nn.Module | None, path: str) -> object:
    value: object = owner
    for part in path.split("."):
        value = getattr(value, part, None)
    return value


def _same_value(left: object, right: object) -> bool:
    if left is None or right is None or left is right:
        return left is right and left is not None
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        alike = (left.dtype, left.device, left.shape) == (right.dtype, right.device, right.shape)
        return alike and _same_bits(left, right)
    return False


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Equal where zeros of other signs are not, and nan is itself."""
    if (
        left.layout != torch.strided
        or right.layout != torch.strided
        or left.is_quantized
        or right.is_quantized
    ):
        return False
    left, right = (value.detach().resolve_conj().resolve_neg().contiguous() for value in (left, right))
    return torch.equal(left.flatten().view(torch.uint8), right.flatten().view(torch.uint8))


def _installed(gm: GraphModule, owner: torch.nn.Module | None, graph: Graph, put_in: list[str]) -> Graph:
    """``graph`` with everything that it refers to put into ``gm``, under new names where the old are taken.

    ``put_in`` learns the names that ``gm`` did not have before.
    """
    names: dict[Node, str] = {}
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module"):
            value = _attribute(owner, str(node.target)) if owner is not None else None
            present = _attribute(gm, str(node.target))
            if value is not None and value is not present:
                names[node] = _put(gm, str(node.target), value, present is None, put_in)
    if not names:
        return graph
    copy = Graph()
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        new[node] = copy.node_copy(node, new.__getitem__)
        if node in names:
            new[node].target = names[node]
    return copy


def _put(gm: GraphModule, path: str, value: Any, is_free: bool, put_in: list[str]) -> str:
    name = path.replace(".", "_")
    if "." not in path and is_free:
        name = path
    count = 0
    base = name
    while hasattr(gm, name):
        if getattr(gm, name) is value:
            return name
        count += 1
        name = f"{base}_{count}"
    setattr(gm, name, value)
    put_in.append(name)
    return name
