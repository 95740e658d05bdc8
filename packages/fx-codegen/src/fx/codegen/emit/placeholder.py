"""``placeholder``: a parameter; a line of its own only where the value has another name than the parameter."""

from __future__ import annotations

from fx.codegen.emit.writer import Writer
from fx.ir import Node


def placeholder(node: Node, to: Writer) -> str:
    """Nothing, or ``input_1 = input;  input = None``: the parameter lets go of the value at once."""
    name, parameter = to.names[node], to.parameters[node]
    return "" if name == parameter else f"{name} = {parameter};  {parameter} = None"
