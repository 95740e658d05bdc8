"""Backends that run the graph by Python alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynamo.eval.backends.registry import register_backend

if TYPE_CHECKING:
    from fx.codegen import GraphModule


@register_backend
def eager(gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    """Run the captured graph as it is."""
    return gm.forward


@register_backend
def interpreter(gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    """Run the captured graph node by node, with `fx.trace.Interpreter`: slow, but an error names its node."""
    from fx.trace import Interpreter

    return Interpreter(gm).run
