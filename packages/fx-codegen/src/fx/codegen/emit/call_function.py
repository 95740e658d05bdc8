"""``call_function``: an operator where Python has one for it, else a call."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

from fx.codegen.emit.writer import Writer
from fx.codegen.operators import ASSIGNMENTS, EXPRESSIONS
from fx.ir import Node


def call_function(node: Node, to: Writer) -> str:
    """``add = x + y``, ``relu = torch.relu(x)``; ``iadd = x;  iadd += y`` for what works in place.

    The last form does what :func:`operator.iadd` does, no less and no more: the object of ``x`` changes if it can, and
    ``x`` keeps naming it, which ``x += y`` would not hold for an ``x`` that cannot change.
    """
    args, kwargs = node.args, node.kwargs
    target = cast("Callable[..., Any]", node.target)
    known = id(target)
    if not kwargs:
        express = EXPRESSIONS.get(known)
        if express is not None:
            text = express(args, to)
            if text is not None:
                return f"{to.annotated(node)} = {text}"
        elif known in ASSIGNMENTS and len(args) == 2:
            name = to.names[node]
            return f"{to.annotated(node)} = {to.value(args[0])};  {name} {ASSIGNMENTS[known]} {to.value(args[1])}"
        elif target is operator.setitem and len(args) == 3 and type(args[0]) is Node:
            item = f"{to.names[args[0]]}[{to.value(args[1])}] = {to.value(args[2])}"
            return f"{item};  {to.annotated(node)} = None"
    return f"{to.annotated(node)} = {to.globals.path(target)}({to.arguments(args, kwargs)})"
