"""Edits of one node that touch the tables of its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fx.ir import _checks
from fx.ir.errors import NodeNameError
from fx.ir.names import RESERVED

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.node import Node
    from fx.ir.types import Op, Target


def rename(graph: Graph, node: Node, name: str) -> None:
    """Give ``node`` exactly this name.

    Raises:
        NodeNameError: the name is taken, or no free identifier.
    """
    if name == node._name:
        return
    if not name.isidentifier() or name in RESERVED:
        raise NodeNameError(f"node {node} cannot be named {name!r}: that is no free Python identifier", node)
    other = graph._names.get(name)
    if other is not None:
        raise NodeNameError(f"node {node} cannot be named {name!r}: another node is", node, other)
    graph._names[node._name] = None
    graph._names[name] = node
    node._name = name
    graph._tell_changed(node, "name")


def retarget(graph: Graph, node: Node, op: Op, target: Target) -> None:
    """Make ``node`` another operation; see :meth:`Node.retarget`."""
    _checks.operation(op, target)
    parameter = None
    if op == "placeholder":
        parameter = _checks.placeholder(cast("str", target), graph._placeholders, node)
    if graph._index is not None:
        graph._index.remove(node)
    if node._op == "placeholder":
        del graph._placeholders[cast("str", node._target).lstrip("*")]
    if parameter is not None:
        graph._placeholders[parameter] = node
    changed = "op" if op != node._op else "target"
    node._op, node._target = op, target
    if graph._index is not None:
        graph._index.add(node)
    graph._tell_changed(node, changed)
