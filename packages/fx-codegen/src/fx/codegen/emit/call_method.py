"""``call_method``: calling a method of the first argument."""

from __future__ import annotations

from fx.codegen.emit.writer import Writer
from fx.codegen.errors import CodegenError
from fx.ir import Node


def call_method(node: Node, to: Writer) -> str:
    """``clamp = linear.clamp(min = 0.0)``.

    Raises:
        CodegenError: the node has no positional argument, so there is nothing to call the method of.
    """
    args = node.args
    if not args:
        raise CodegenError(
            f"node {node.name} calls the method {node.target!r} of nothing: it has no argument", node
        )
    called = to.attribute(to.operand(args[0]), str(node.target))
    return f"{to.annotated(node)} = {called}({to.arguments(args[1:], node.kwargs)})"
