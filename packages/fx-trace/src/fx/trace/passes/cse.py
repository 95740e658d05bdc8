"""Common subexpressions of a graph module."""

from __future__ import annotations

from fx.codegen import GraphModule
from fx.ir import cse
from fx.trace.passes.base import PassResult

__all__ = ["eliminate_common_subexpressions"]


def eliminate_common_subexpressions(gm: GraphModule) -> PassResult:
    """Merge equal nodes into the first of them, by :mod:`fx.ir.cse`; edits ``gm``."""
    merged = cse.eliminate_common_subexpressions(gm.graph)
    if merged:
        gm.recompile()
    return PassResult(gm, tuple([f"{name} is {first.name}" for name, first in merged.items()]))
