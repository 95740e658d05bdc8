"""Common subexpressions: what is computed twice is computed once; one forward walk.

Two nodes are merged when they do the same to the same values, neither has effects, and nobody could tell the two
results apart: no node with effects stands between them, neither leads to a value that is changed in place, and not both
are returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fx.ir import _args, effects

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.node import Node

_EXACT: Final = frozenset({type(None), bool, int, str, bytes, type(...)})
"""Classes whose equal instances mean the same; the class itself goes into the key, as ``True == 1``."""


def eliminate_common_subexpressions(
    graph: Graph, is_impure_node: Callable[[Node], bool] | None = None
) -> dict[str, Node]:
    """Merge equal nodes of ``graph`` into the first of them.

    Args:
        is_impure_node: says which nodes have effects; by default :func:`fx.ir.effects.is_impure`.

    Returns:
        The name of each node that was erased, and the node that took its place.
    """
    is_impure: Callable[[Node], bool] = effects.is_impure if is_impure_node is None else is_impure_node
    changed_in_place = _leading_to_mutation(graph)
    returned = {node for output in graph.find_nodes(op="output") for node in output.all_input_nodes}
    known: dict[object, Node] = {}
    merged: dict[str, Node] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if is_impure(node):
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
        graph.erase_node(node)
        merged[node.name] = first
    return merged


def _leading_to_mutation(graph: Graph) -> set[Node]:
    """Nodes whose value, or something that may be a view of it, is changed in place."""
    found: set[Node] = set()
    todo = [
        used for node in graph.nodes if effects.effects_of_node(node).mutates for used in node.all_input_nodes
    ]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo.extend(node.all_input_nodes)
    return found


def _key(node: Node) -> object:
    return node.op, _exact(node.target), _exact(node.args), _exact(node.kwargs)


def _exact(value: Any) -> object:
    """Something hashable that is equal only for arguments that mean the same: ``-0.0``, ``True`` and types count."""
    cls = type(value)
    if cls in _EXACT:
        return cls, value
    kind = _args.kind_of(cls)
    if kind == _args.NODE:
        return value
    if kind == _args.DICT:
        return kind, tuple([(key, _exact(item)) for key, item in value.items()])
    if kind == _args.SLICE:
        return kind, _exact((value.start, value.stop, value.step))
    if kind != _args.LEAF:
        return cls, tuple([_exact(item) for item in value])
    if cls in (float, complex):
        return cls, repr(value)
    try:
        hash(value)
    except TypeError:
        return cls, id(value)
    return cls, value
