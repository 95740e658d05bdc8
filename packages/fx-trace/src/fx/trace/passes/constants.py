"""Constant folding: compute once, now, what does not depend on the inputs.

Folded are operations without effects whose inputs are all constants: literals, constant tensors and buffers, and parameters if
asked for. The results become buffers of the module. A later change of a folded buffer no longer shows.
"""

from __future__ import annotations

import torch

from fx.codegen import GraphModule
from fx.ir import Node
from fx.ir.effects import effects_of_node
from fx.trace.interpreter import Interpreter
from fx.trace.passes.base import PassResult

__all__ = ["fold_constants"]


def fold_constants(gm: GraphModule, fold_parameters: bool = False) -> PassResult:
    """Replace constant operations by fetches of their results; edits ``gm``.

    Args:
        gm: is edited; nothing is folded from attributes that its graph changes in place.
        fold_parameters: also fold what depends on parameters, which then no longer train.
    """
    constant: dict[Node, object] = {}
    interpreter = Interpreter(gm, garbage_collect_values=False)
    changed = {
        used for node in gm.graph.nodes if effects_of_node(node).mutates for used in node.all_input_nodes
    }
    for node in gm.graph.nodes:
        if _is_constant(gm, node, constant, changed, fold_parameters):
            interpreter.env = constant  # shared: run_node reads its inputs there
            with torch.no_grad():
                constant[node] = interpreter.run_node(node)
    changes = [
        f"folded {node.name}"
        for node, value in constant.items()
        if node.op != "get_attr" and isinstance(value, torch.Tensor) and _replace(gm, node, value, constant)
    ]
    if changes:
        gm.graph.eliminate_dead_code()
        gm.recompile()
    return PassResult(gm, tuple(changes))


def _is_constant(
    gm: GraphModule, node: Node, constant: dict[Node, object], changed: set[Node], fold_parameters: bool
) -> bool:
    if node in changed:
        return False
    if node.op == "get_attr":
        value = Interpreter(gm).fetch_attr(str(node.target))
        return isinstance(value, torch.Tensor) and (
            fold_parameters or not (isinstance(value, torch.nn.Parameter) or value.requires_grad)
        )
    if node.op not in ("call_function", "call_method") or node.is_impure():
        return False
    inputs = node.all_input_nodes
    return all(used in constant for used in inputs) and (bool(inputs) or node.op == "call_function")


def _replace(gm: GraphModule, node: Node, value: torch.Tensor, constant: dict[Node, object]) -> bool:
    """Put ``value`` in the place of ``node`` where something that is not folded itself uses it."""
    if all(user in constant for user in node.users):
        return False
    number = 0
    while hasattr(gm, f"_folded_{number}"):
        number += 1
    gm.register_buffer(f"_folded_{number}", value.detach().clone())
    with gm.graph.inserting_before(node):
        fetched = gm.graph.get_attr(f"_folded_{number}")
    node.replace_all_uses_with(fetched)
    return True
