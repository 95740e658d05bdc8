"""Cut a module into modules that run one after the other, each called from a new root.

Source: torch.fx ``passes.split_module``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from fx.codegen import GraphModule
from fx.ir import Graph, Node
from fx.trace.passes.subgraph import Subgraph, extract_subgraph

__all__ = ["split_module"]


def split_module(
    m: GraphModule,
    root_m: torch.nn.Module | None,
    split_callback: Callable[[Node], int | str],
    qualname_map: dict[str, str] | None = None,
    partition_affix: str | None = None,
) -> GraphModule:
    """Put each operation of ``m`` into the part that the callback names.

    Parts become submodules ``submod_<part>``, each with the modules, parameters and buffers that it uses, under their old names.
    They run in an order that respects their dependencies.

    Args:
        m: is not changed.
        root_m: not needed; the attributes are taken from ``m``.
        split_callback: gives the part of each operation; it is not asked about placeholders, ``get_attr`` and the output.
        qualname_map: is filled with the new qualified names of modules and attributes, mapped to the old ones.
        partition_affix: parts are called ``submod_<affix>_<part>``.

    Raises:
        ValueError: parts depend on each other in a circle, also through the order of operations with effects.
    """
    parts: dict[str, list[Node]] = {}
    part_of: dict[Node, str] = {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            part_of[node] = str(split_callback(node))
            parts.setdefault(part_of[node], []).append(node)
    order = _ordered(parts, _dependencies(m.graph, part_of))
    prefix = "submod_" if partition_affix is None else f"submod_{partition_affix}_"
    graph, values = Graph(), _Values()
    graph.set_codegen(m.graph.codegen)
    owner = torch.nn.Module()
    owner.training = m.training
    for node in m.graph.find_nodes(op="placeholder"):
        values[node] = graph.node_copy(node)
    for part in order:
        name = f"{prefix}{part}"
        found = extract_subgraph(m, parts[part], name)
        owner.add_module(name, found.module)
        _call(graph, name, found, values)
        if qualname_map is not None:
            _note_names(found.module.graph, name, qualname_map)
    for node in m.graph.find_nodes(op="output"):
        _fetch_rest(m, graph, owner, node, values)
        graph.node_copy(node, values.__getitem__)
    return GraphModule(owner, graph, type(m).__name__)


class _Values(dict[Node, Node]):
    """Nodes of the old graph to nodes of the new root."""


def _dependencies(graph: Graph, part_of: dict[Node, str]) -> dict[str, set[str]]:
    """For each part, the parts that must have run: those whose values it takes, and those on the other side of an effect."""
    needs: dict[str, set[str]] = {part: set() for part in part_of.values()}
    so_far: dict[str, None] = {}
    behind_effects: set[str] = set()
    for node, part in part_of.items():
        needs[part].update(part_of[used] for used in node.all_input_nodes if used in part_of)
        needs[part].update(behind_effects)
        if node.is_impure():
            needs[part].update(so_far)
            behind_effects.add(part)
        so_far[part] = None
    for part, needed in needs.items():
        needed.discard(part)
    return needs


def _ordered(parts: dict[str, list[Node]], needs: dict[str, set[str]]) -> list[str]:
    order: list[str] = []
    waiting = dict.fromkeys(parts)
    while waiting:
        ready = next((part for part in waiting if needs[part].isdisjoint(waiting)), None)
        if ready is None:
            raise ValueError(
                f"the parts {', '.join(waiting)} depend on each other in a circle (by values, or by the order of operations "
                "with effects): assign the operations so that values flow one way."
            )
        order.append(ready)
        del waiting[ready]
    return order


def _call(graph: Graph, name: str, found: Subgraph, values: _Values) -> None:
    call = graph.call_module(name, tuple([values[used] for used in found.inputs]))
    if len(found.outputs) == 1:
        values[found.outputs[0]] = call
        return
    for index, node in enumerate(found.outputs):
        values[node] = graph.call_function(operator.getitem, (call, index))


def _fetch_rest(m: GraphModule, graph: Graph, owner: torch.nn.Module, output: Node, values: _Values) -> None:
    """What the output takes from the root directly."""
    for used in output.all_input_nodes:
        if used.op == "get_attr" and used not in values:
            path = str(used.target)
            value: Any = m
            for step in path.split("."):
                value = getattr(value, step)
            name = path.replace(".", "_")
            setattr(owner, name, value)
            values[used] = graph.get_attr(name)


def _note_names(graph: Graph, prefix: str, names: dict[str, str]) -> None:
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module"):
            names[f"{prefix}.{node.target}"] = str(node.target)
