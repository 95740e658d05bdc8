"""Take some nodes of a graph out as a module of their own."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from fx.codegen import GraphModule
from fx.ir import Graph, Node

__all__ = ["Subgraph", "extract_subgraph", "fuse_subgraph"]


@final
@dataclass(frozen=True, slots=True)
class Subgraph:
    """A module that computes some nodes of a graph.

    Attributes:
        module: takes the values of ``inputs`` and gives those of ``outputs``: the value itself if there is one, else a tuple.
        inputs: nodes outside whose values are needed.
        outputs: nodes inside whose values are needed outside.
    """

    module: GraphModule
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]


def extract_subgraph(gm: GraphModule, nodes: Iterable[Node], name: str = "Subgraph") -> Subgraph:
    """Copy ``nodes`` into a module of their own; ``gm`` is not changed.

    Fetches of attributes (``get_attr``) that ``nodes`` use come along, so that the module owns what it reads.

    Args:
        gm: supplies modules and attributes.
        nodes: of ``gm``'s graph, in any order; placeholders and the output cannot be among them.
        name: class name of the module.

    Raises:
        ValueError: ``nodes`` is empty, or holds a placeholder, the output or a node of another graph.
    """
    inside = dict.fromkeys(nodes)
    bad = [n for n in inside if n.graph is not gm.graph or n.op in ("placeholder", "output")]
    if bad or not inside:
        raise ValueError(
            f"cannot extract {', '.join(node.name for node in bad) or 'no nodes'}: give operations of this module's graph."
        )
    ordered = sorted(inside)
    graph = Graph()
    new: dict[Node, Node] = {}
    inputs = list(
        dict.fromkeys(
            used
            for node in ordered
            for used in node.all_input_nodes
            if used not in inside and used.op != "get_attr"
        )
    )
    for used in inputs:
        made = new[used] = graph.placeholder(used.name, used.type)
        made.meta = dict(used.meta)
    for node in ordered:
        for used in node.all_input_nodes:
            if used not in new and used.op == "get_attr":
                new[used] = graph.node_copy(used)
        if node not in new:
            new[node] = graph.node_copy(node, new.__getitem__)
    outputs = [node for node in ordered if any(user not in inside for user in node.users)]
    if not outputs:
        outputs = [ordered[-1]]
    results = tuple([new[node] for node in outputs])
    graph.output(results[0] if len(results) == 1 else results)
    return Subgraph(GraphModule(gm, graph, name), tuple(inputs), tuple(outputs))


def fuse_subgraph(gm: GraphModule, nodes: Iterable[Node], name: str) -> Node:
    """Put one call of a new submodule ``name`` in the place of ``nodes``; edits ``gm`` (recompile it afterwards).

    Raises:
        ValueError: see :func:`extract_subgraph`; or the nodes cannot be brought together, because another node stands between
            that uses one of them and is used by one, or that has effects.
    """
    inside = set(nodes)
    found = extract_subgraph(gm, inside, name)
    _require_movable(inside)
    _move_users_behind(inside)
    place = max(inside).next
    gm.add_submodule(name, found.module)
    operator_results: dict[Node, Node] = {}
    with gm.graph.inserting_before(place):
        call = gm.graph.call_module(name, found.inputs)
        if len(found.outputs) == 1:
            operator_results[found.outputs[0]] = call
        else:
            for index, node in enumerate(found.outputs):
                operator_results[node] = gm.graph.call_function(operator.getitem, (call, index))
    for node, result in operator_results.items():
        node.replace_all_uses_with(result, lambda user: user not in inside)
        result.meta = {**node.meta, **result.meta}
    for node in sorted(inside, reverse=True):
        if not node.users:
            gm.graph.erase_node(node)
    return call


def _require_movable(inside: set[Node]) -> None:
    first, last = min(inside), max(inside)
    depends: set[Node] = set()
    node = first
    while node is not last:
        if node not in inside and node.op != "placeholder" and node.is_impure():
            raise ValueError(
                f"{node.name} has effects and stands between the nodes: they cannot become one call."
            )
        if node not in inside and any(used in inside or used in depends for used in node.all_input_nodes):
            depends.add(node)
        node = node.next
        if node in inside and any(used in depends for used in node.all_input_nodes):
            raise ValueError(
                f"{node.name} needs a value that is computed outside from {', '.join(n.name for n in sorted(inside))}: "
                "the nodes cannot become one call."
            )


def _move_users_behind(inside: set[Node]) -> None:
    """Move the nodes between that depend on ``inside`` behind it, in order."""
    node, last = min(inside), max(inside)
    depends: set[Node] = set()
    waiting: list[Node] = []
    while node is not last:
        if node not in inside and any(used in inside or used in depends for used in node.all_input_nodes):
            depends.add(node)
            waiting.append(node)
        node = node.next
    after = last
    for node in waiting:
        after.append(node)
        after = node
