"""``call_module``: calling a submodule of the root."""

from __future__ import annotations

from fx.codegen.emit.writer import Writer
from fx.ir import Node


def call_module(node: Node, to: Writer) -> str:
    """``linear = self.linear(x)``."""
    called = to.attribute(to.root, str(node.target))
    return f"{to.annotated(node)} = {called}({to.arguments(node.args, node.kwargs)})"
