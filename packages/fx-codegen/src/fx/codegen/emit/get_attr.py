"""``get_attr``: fetching from the root module."""

from __future__ import annotations

from fx.codegen.emit.writer import Writer
from fx.ir import Node


def get_attr(node: Node, to: Writer) -> str:
    """``weight = self.linear.weight``."""
    return f"{to.annotated(node)} = {to.attribute(to.root, str(node.target))}"
