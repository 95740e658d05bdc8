"""Running the rules: all of them, reporting every breach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fx.ir.errors import GraphError
from fx.ir.lint.fast import holds
from fx.ir.lint.rules import RULES, Breach

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.node import Node


class LintError(GraphError):
    """A graph breaks invariants; ``breaches`` holds them all."""

    breaches: tuple[Breach, ...]

    def __init__(self, breaches: tuple[Breach, ...], graph: Graph) -> None:
        shown = "\n".join(f"- {breach}" for breach in breaches[:20])
        more = f"\n- and {len(breaches) - 20} more" if len(breaches) > 20 else ""
        super().__init__(
            f"the graph is not well formed:\n{shown}{more}",
            *dict.fromkeys(node for breach in breaches for node in breach.nodes),
        )
        self.breaches = breaches


def check(graph: Graph) -> list[Breach]:
    """Every place where an invariant does not hold, rule after rule; empty for a well-formed graph."""
    nodes, ring = _walk(graph)
    if ring is not None:
        return [ring]
    return [breach for rule in RULES.values() for breach in rule(graph, nodes)]


def require(graph: Graph) -> None:
    """Raise :class:`LintError` unless :func:`check` finds nothing."""
    if holds(graph):
        nodes = list(graph.nodes) if graph.owning_module is not None or graph._index is not None else []
        breaches = [breach for name in ("index", "owning module") for breach in RULES[name](graph, nodes)]
    else:
        breaches = check(graph)
    if breaches:
        raise LintError(tuple(breaches), graph)


def _walk(graph: Graph) -> tuple[list[Node], Breach | None]:
    """The nodes that stand in the list, erased ones included; a breach if the list does not come back to the root."""
    nodes: list[Node] = []
    seen: set[Node] = set()
    node = graph._root._next
    while node is not graph._root:
        if node in seen:
            return nodes, Breach("links", f"the list of nodes runs in a ring at node {node}", (node,))
        seen.add(node)
        nodes.append(node)
        node = node._next
    return nodes, None
