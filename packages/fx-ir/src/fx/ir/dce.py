"""Dead code elimination: one backward walk, as users stand behind what they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fx.ir import effects

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.node import Node


def eliminate_dead_code(graph: Graph, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
    """Erase every node that nobody takes and that has no effect; see :meth:`Graph.eliminate_dead_code`."""
    is_impure: Callable[[Node], bool] = effects.is_impure if is_impure_node is None else is_impure_node
    erase = graph.erase_node
    changed = False
    for node in reversed(graph.nodes):
        if node._users is None and not is_impure(node):
            erase(node)
            changed = True
    return _in_nested_graphs(graph, is_impure_node) or changed


def _in_nested_graphs(graph: Graph, is_impure_node: Callable[[Node], bool] | None) -> bool:
    """Do the same in the graphs of those submodules that the graph fetches with ``get_attr``."""
    owner: Any = graph.owning_module
    if owner is None and not graph.nested:
        return False
    changed = False
    for path in {str(node.target): None for node in graph.find_nodes(op="get_attr")}:
        nested = graph.nested_graph(path)
        if nested is None or nested is graph or not nested.eliminate_dead_code(is_impure_node):
            continue
        changed = True
        child = owner
        for part in path.split("."):
            child = getattr(child, part, None)
        recompile = getattr(child, "recompile", None)
        if recompile is not None:
            recompile()
    return changed
