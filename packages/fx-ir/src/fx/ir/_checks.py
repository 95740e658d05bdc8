"""Checks that edits make before they change anything, and the words for what they refuse."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, NoReturn

from fx.ir._order import END, ERASED
from fx.ir.errors import (
    CycleError,
    ErasedNodeError,
    ForeignNodeError,
    GraphError,
    OpcodeError,
    PlaceholderError,
    TargetError,
    UseBeforeDefinitionError,
)
from fx.ir.types import OPS

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.node import Node


def in_list(node: Node) -> None:
    """``node`` stands in its graph, or is the root."""
    if node._label >= ERASED:
        raise ErasedNodeError(f"node {node} was erased and cannot be edited", node)


def in_graph(node: Node) -> None:
    """``node`` stands in its graph."""
    in_list(node)
    if node._label == END:
        raise GraphError("the root of a graph is no operation and cannot be edited", node)


def usable(graph: Graph, node: Node) -> None:
    """``node`` stands in ``graph``."""
    if node.graph is not graph:
        raise ForeignNodeError(f"node {node} belongs to another graph; copy it with node_copy first", node)
    in_graph(node)


def refuse(graph: Graph, node: Node, user: Node | None) -> NoReturn:
    """Say why ``user`` (``None``: the node that is being created) cannot take the value of ``node``."""
    who = "the new node" if user is None else f"node {user}"
    involved = (node,) if user is None else (node, user)
    if node.graph is not graph:
        raise ForeignNodeError(
            f"{who} cannot take node {node}: it belongs to another graph; "
            "when copying, map it with arg_transform (see Graph.node_copy)",
            *involved,
        )
    if node._label >= ERASED:
        raise ErasedNodeError(f"{who} cannot take node {node}: it was erased", *involved)
    if node is user:
        raise CycleError(
            f"{who} would take its own value; in replace_all_uses_with, "
            "leave the new node out with delete_user_cb=lambda user: user is not new",
            *involved,
        )
    if node._label == END:
        raise GraphError(f"{who} cannot take the root of the graph", *involved)
    raise UseBeforeDefinitionError(
        f"{who} cannot take node {node}: it is computed only behind it; "
        "move it with append or prepend, or create it in front (Graph.inserting_before)",
        *involved,
    )


def place(node: Node, before: Node, after: Node) -> None:
    """``node`` may move between the neighbours ``before`` and ``after``: behind its inputs, before its users."""
    for value in node.all_input_nodes:
        if value._label >= after._label:
            raise UseBeforeDefinitionError(
                f"node {node} cannot move before node {after}: it takes node {value}, which stands behind",
                node,
                value,
            )
    if before._label == END:
        return
    for user in node.users:
        if user._label <= before._label:
            raise UseBeforeDefinitionError(
                f"node {node} cannot move behind node {before}: node {user}, which takes it, stands there or before",
                node,
                user,
            )


def operation(op: object, target: object) -> None:
    """``op`` is one of the six opcodes and ``target`` fits it."""
    if op not in OPS:
        raise OpcodeError(f"{op!r} is no opcode; there are {', '.join(OPS)}")
    if op == "call_function":
        if not callable(target):
            raise TargetError(
                f"call_function needs a callable target, not {target!r} ({type(target).__name__})"
            )
    elif not isinstance(target, str):
        raise TargetError(f"{op} needs a str target, not {target!r} ({type(target).__name__})")


def placeholder(target: str, taken: dict[str, Node], node: Node | None) -> str:
    """The parameter name in ``target`` (``*args`` and ``**kwargs`` lose their stars), if ``node`` may have it."""
    parameter = target.lstrip("*") if target.startswith("*") and not target.startswith("***") else target
    if not parameter.isidentifier() or keyword.iskeyword(parameter):
        raise PlaceholderError(f"{target!r} is no parameter name, so it cannot be a placeholder")
    other = taken.get(parameter)
    if other is not None and other is not node:
        raise PlaceholderError(f"placeholder {target!r} exists already (node {other})", other)
    return parameter
