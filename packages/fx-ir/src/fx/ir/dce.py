"""Dead code elimination: one backward walk, as users stand behind what they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from fx.ir import effects

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.node import Node


def eliminate_dead_code(graph: Graph, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
    """Erase every node that nobody takes and that has no effect; see :meth:`Graph.eliminate_dead_code`.

    The same is done in the graphs of those submodules that the graph fetches with ``get_attr``, and in theirs, each
    once, outer ones first; a submodule in which anything changed is recompiled, and so are those around it.
    """
    is_impure: Callable[[Node], bool] = effects.is_impure if is_impure_node is None else is_impure_node
    holders: dict[Graph, list[tuple[Graph, str]]] = {graph: []}
    changed: dict[Graph, None] = {}
    todo = [graph]
    while todo:
        outer = todo.pop()
        if _erase_dead(outer, is_impure):
            changed[outer] = None
        for path, inner in _fetched_graphs(outer):
            if inner not in holders:
                holders[inner] = []
                todo.append(inner)
            holders[inner].append((outer, path))
    spreading = list(changed)
    while spreading:
        for outer, path in holders[spreading.pop()]:
            _recompile(outer.owning_module, path)
            if outer not in changed:
                changed[outer] = None
                spreading.append(outer)
    return graph in changed


def _erase_dead(graph: Graph, is_impure: Callable[[Node], bool]) -> bool:
    erase = graph.erase_node
    changed = False
    for node in reversed(graph.nodes):
        if node._users is None and not is_impure(node):
            erase(node)
            changed = True
    return changed


def _fetched_graphs(graph: Graph) -> Iterator[tuple[str, Graph]]:
    """The graphs of the submodules that ``graph`` fetches, by path."""
    if graph.owning_module is None and not graph.nested:
        return
    for path in {str(node.target): None for node in graph.find_nodes(op="get_attr")}:
        inner = graph.nested_graph(path)
        if inner is not None:
            yield path, inner


def _recompile(owner: Any, path: str) -> None:
    child = owner
    for part in path.split("."):
        child = getattr(child, part, None)
    recompile = getattr(child, "recompile", None)
    if recompile is not None:
        recompile()
