"""Remove what nobody needs: nodes without users and effects, then submodules that no node calls."""

from __future__ import annotations

from collections.abc import Callable

from fx.codegen import GraphModule
from fx.ir import Node
from fx.trace.passes.base import PassResult

__all__ = ["eliminate_dead_code"]


def eliminate_dead_code(gm: GraphModule, is_impure_node: Callable[[Node], bool] | None = None) -> PassResult:
    """Erase dead nodes.

    Args:
        gm: is edited.
        is_impure_node: says which unused nodes stay; by default the registry ``fx.ir.effects`` does.
    """
    before = {node: node.name for node in gm.graph.nodes}
    if not gm.graph.eliminate_dead_code(is_impure_node):
        return PassResult(gm)
    kept = set(gm.graph.nodes)
    gm.delete_all_unused_submodules()
    gm.recompile()
    return PassResult(gm, tuple(f"erased {name}" for node, name in before.items() if node not in kept))
