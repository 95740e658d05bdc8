"""Common subexpressions: compute what is computed twice once.

Two nodes are merged when they do the same to the same values, neither has effects, and nobody could tell the two results apart:
no node with effects stands between them, neither leads to a value that is changed in place, and not both are returned.
"""

from __future__ import annotations

from typing import Any

from fx.codegen import GraphModule
from fx.ir import Graph, Node
from fx.ir.effects import effects_of_node
from fx.trace.passes.base import PassResult

__all__ = ["eliminate_common_subexpressions"]


def eliminate_common_subexpressions(gm: GraphModule) -> PassResult:
    """Merge equal nodes into the first of them; edits ``gm``."""
    changed_in_place = _leading_to_mutation(gm.graph)
    outputs = gm.graph.find_nodes(op="output")
    returned = set(outputs[0].all_input_nodes) if outputs else set()
    known: dict[Any, Node] = {}
    changes: list[str] = []
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.is_impure():
            known.clear()
            continue
        if node in changed_in_place:
            continue
        first = known.setdefault(_key(node), node)
        if first is node or (first in returned and node in returned):
            continue
        node.replace_all_uses_with(first)
        if node in returned:
            returned.add(first)
        gm.graph.erase_node(node)
        changes.append(f"{node.name} is {first.name}")
    if changes:
        gm.recompile()
    return PassResult(gm, tuple(changes))


def _leading_to_mutation(graph: Graph) -> set[Node]:
    """Nodes whose value, or something that may be a view of it, is changed in place."""
    found: set[Node] = set()
    todo = [used for node in graph.nodes if effects_of_node(node).mutates for used in node.all_input_nodes]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo.extend(node.all_input_nodes)
    return found


def _key(node: Node) -> Any:
    return node.op, node.target, _exact(node.args), _exact(dict(node.kwargs))


def _exact(value: Any) -> Any:
    """Something hashable that is equal only for arguments that mean the same: ``-0.0``, ``True`` and types count."""
    if isinstance(value, Node):
        return value
    if isinstance(value, (tuple, list)):
        return type(value).__name__, tuple([_exact(item) for item in value])
    if isinstance(value, dict):
        return "dict", tuple([(key, _exact(item)) for key, item in value.items()])
    if isinstance(value, slice):
        return "slice", _exact((value.start, value.stop, value.step))
    if isinstance(value, (bool, int, str, bytes, type(None))):
        return type(value), value
    if isinstance(value, (float, complex)):
        return type(value), repr(value)
    try:
        hash(value)
    except TypeError:
        return type(value), id(value)
    return type(value), value
