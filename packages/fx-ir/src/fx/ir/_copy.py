"""Copying and pickling whole graphs, node after node: no recursion along the edges, so no limit on depth."""

from __future__ import annotations

import copy
from typing import Any, Final

from fx.ir._args import map_arg
from fx.ir._immutable import EMPTY
from fx.ir.graph import Graph
from fx.ir.node import Node

_FORMAT: Final = 1


def deepcopy_graph(graph: Graph, memo: dict[int, Any]) -> Graph:
    """A copy of ``graph`` with nodes of its own; ``memo`` learns where each node and the graph went."""
    copied = Graph(tracer_cls=graph._tracer_cls, tracer_extras=graph._tracer_extras)
    memo[id(graph)] = copied
    val_map: dict[Node, Node] = {}
    mapped = val_map.__getitem__
    for node in graph.nodes:
        val_map[node] = memo[id(node)] = copied.node_copy(node, mapped)
    _restore_names(graph, copied)
    if graph._codegen is not None:
        copied._codegen = copy.deepcopy(graph._codegen, memo)
    return copied


def _restore_names(graph: Graph, copied: Graph) -> None:
    """Give the copy the same names, and the same choice of names to come."""
    names: dict[str, Node | None] = dict.fromkeys(graph._names)
    for old, new in zip(graph.nodes, copied.nodes, strict=True):
        new._name = old._name
        new.uid = old.uid
        names[old._name] = new
    copied._names = names
    copied._counts = dict(graph._counts)
    copied._created = graph._created


class _Ref:
    """Stands for the n-th node in pickled arguments."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position

    def __reduce__(self) -> tuple[type[_Ref], tuple[int]]:
        return _Ref, (self.position,)


def flatten(graph: Graph) -> dict[str, Any]:
    """The graph as plain containers, for pickle; nodes are named by their position."""
    positions = {node: _Ref(i) for i, node in enumerate(graph.nodes)}
    mapped = positions.__getitem__
    return {
        "format": _FORMAT,
        "nodes": [
            (
                node._op,
                node._target,
                map_arg(node.args, mapped),
                dict(map_arg(node.kwargs, mapped)) if node._kwargs else None,
                node._name,
                node.type,
                node.uid,
                node._meta or None,
            )
            for node in graph.nodes
        ],
        "names": [name for name, node in graph._names.items() if node is None],
        "counts": graph._counts,
        "created": graph._created,
        "owning_module": graph.owning_module,
        "tracer": (graph._tracer_cls, graph._tracer_extras),
        "codegen": graph._codegen,
    }


def rebuild(state: dict[str, Any]) -> Graph:
    """The graph that :func:`flatten` took apart."""
    tracer_cls, tracer_extras = state["tracer"]
    graph = Graph(state["owning_module"], tracer_cls, tracer_extras)
    graph._codegen = state["codegen"]
    made: list[Node] = []
    for op, target, args, kwargs, name, type_expr, uid, meta in state["nodes"]:
        args = _resolve(args, made)
        kwargs = _resolve(kwargs, made) if kwargs else EMPTY
        node = graph.create_node(op, target, args, kwargs, name, type_expr)
        node._name, node.uid, node._meta = name, uid, meta
        made.append(node)
    graph._names = {**dict.fromkeys(state["names"]), **{node._name: node for node in made}}
    graph._counts = state["counts"]
    graph._created = state["created"]
    return graph


def _resolve(value: Any, made: list[Node]) -> Any:
    from fx.ir._args import map_aggregate

    return map_aggregate(value, lambda leaf: made[leaf.position] if isinstance(leaf, _Ref) else leaf)
