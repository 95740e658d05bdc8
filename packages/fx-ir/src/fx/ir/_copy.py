"""Copying and pickling whole graphs, node after node: no recursion along the edges, so no limit on depth."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from fx.ir._args import PLAIN, map_aggregate, map_arg
from fx.ir._immutable import EMPTY
from fx.ir._order import ERASED
from fx.ir.node import Node

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.types import Argument

_FORMAT: Final = 1


def deepcopy_graph(graph: Graph, memo: dict[int, Any]) -> Graph:
    """A copy of ``graph`` with nodes of its own; ``memo`` learns where each node and the graph went."""
    copied = type(graph)(tracer_cls=graph._tracer_cls, tracer_extras=graph._tracer_extras)
    memo[id(graph)] = copied
    val_map: dict[Node, Node] = {graph._root: copied._root}
    mapped = val_map.__getitem__
    new_node, node_class = Node.__new__, Node
    before = copied._root
    for node in graph.nodes:
        new = val_map[node] = memo[id(node)] = new_node(node_class)
        new.graph = copied
        new.type, new.uid, new._name, new._label = node.type, node.uid, node._name, node._label
        new._op, new._target = node._op, node._target
        args = node.args
        for arg in args:
            if type(arg) is not Node and type(arg) not in PLAIN:
                new._args = map_arg(args, mapped)
                break
        else:
            new._args = tuple([mapped(arg) if type(arg) is Node else arg for arg in args])
        new._kwargs = map_arg(node._kwargs, mapped) if node._kwargs else EMPTY
        new._meta = copy.copy(node._meta) if node._meta else None
        new._pending = None
        new._prev, before._next = before, new
        before = new
    before._next, copied._root._prev = copied._root, before
    for node, new in val_map.items():
        users = node._users
        if users is None:
            new._users = None
        elif isinstance(users, dict):
            new._users = {mapped(user): None for user in users}
        else:
            new._users = mapped(users)
    copied._len = graph._len
    copied._created = graph._created
    copied._names = {name: None if node is None else mapped(node) for name, node in graph._names.items()}
    copied._counts = dict(graph._counts)
    copied._placeholders = {name: mapped(node) for name, node in graph._placeholders.items()}
    if graph._codegen is not None:
        copied._codegen = copy.deepcopy(graph._codegen, memo)
    return copied


def copy_into(
    graph: Graph, g: Graph, val_map: dict[Node, Any], return_output_node: bool
) -> Argument | tuple[Argument, Node] | None:
    """Copy the nodes of ``g`` to the insertion point of ``graph``; see :meth:`Graph.graph_copy`."""
    mapped = val_map.__getitem__
    copied: list[Node] = []
    try:
        for node in g.nodes:
            if node in val_map:
                continue
            if node._op == "output":
                result = map_arg(node.args[0], mapped)
                return (result, node) if return_output_node else result
            val_map[node] = new = graph.node_copy(node, mapped)
            copied.append(new)
    except Exception:
        for new in reversed(copied):
            graph.erase_node(new)
        for old in [old for old, new in val_map.items() if isinstance(new, Node) and new._label >= ERASED]:
            del val_map[old]
        raise
    return None


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


def rebuild(graph_class: type[Graph], state: dict[str, Any]) -> Graph:
    """The graph that :func:`flatten` took apart."""
    tracer_cls, tracer_extras = state["tracer"]
    graph = graph_class(state["owning_module"], tracer_cls, tracer_extras)
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
    return map_aggregate(value, lambda leaf: made[leaf.position] if isinstance(leaf, _Ref) else leaf)
