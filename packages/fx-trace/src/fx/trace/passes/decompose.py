"""Replace operations by smaller ones, given as ordinary functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fx.codegen import GraphModule
from fx.ir import Argument, Graph, Node
from fx.trace.passes.base import PassResult
from fx.trace.plan import load
from fx.trace.proxy import Proxy
from fx.trace.transformer import TransformerTracer

__all__ = ["decompose"]


def decompose(gm: GraphModule, rules: Mapping[Callable[..., Any] | str, Callable[..., Any]]) -> PassResult:
    """Replace each call of a function, or of a method named by a string, by what its rule does.

    Args:
        gm: is edited.
        rules: by target; a rule takes the call's arguments and computes the result with other operations. It is traced for each
            call, so it may look at literal arguments.

    Source: seed 003, "Proxy/Retracing".
    """
    new_graph = Graph()
    new_graph.set_codegen(gm.graph.codegen)
    tracer = TransformerTracer(new_graph, gm)
    values: dict[Node, Any] = {}
    changes: list[str] = []
    for node in gm.graph.nodes:
        rule = rules.get(node.target) if node.op in ("call_function", "call_method") else None
        if rule is None:
            values[node] = new_graph.node_copy(node, values.__getitem__)
            continue
        tracer.source = node

        def proxied(used: Node) -> Proxy:
            return Proxy(values[used], tracer)

        result = rule(*load(node.args, proxied), **load(dict(node.kwargs), proxied))
        values[node] = lowered = tracer.create_arg(result)
        changes.append(f"decomposed {node.name}")
        _rename(lowered, node.name)
    if changes:
        gm.graph = new_graph
    return PassResult(gm, tuple(changes))


def _rename(value: Argument, name: str) -> None:
    if isinstance(value, Node) and value.name != name:
        value.meta.setdefault("decomposed_from", name)
