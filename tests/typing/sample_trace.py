"""What a user's editor and type checker see of fx.trace."""

from __future__ import annotations

from typing import assert_type

import torch

from fx.codegen import GraphModule
from fx.ir import Graph, Node
from fx.trace import (
    GraphAppendingTracer,
    Interpreter,
    Match,
    Proxy,
    Tracer,
    Transformer,
    replace_pattern,
    symbolic_trace,
    wrap,
)
from fx.trace.passes import PassManager, PassResult, eliminate_dead_code


@wrap
def leaf(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


class NoLeaves(Tracer):
    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        return False


def use(module: torch.nn.Module, node: Node) -> None:
    traced = symbolic_trace(module, concrete_args={"flag": True})
    assert_type(traced, GraphModule)
    assert_type(NoLeaves().trace(module), Graph)
    proxy = Proxy(node, GraphAppendingTracer(node.graph))
    assert_type(proxy + 1, Proxy)
    assert_type(proxy[0], Proxy)
    assert_type(proxy == 1, Proxy)
    assert_type(proxy.node, Node)
    assert_type(leaf(torch.ones(1), 2.0), torch.Tensor)
    assert_type(Transformer(traced).transform(), GraphModule)
    Interpreter(traced, garbage_collect_values=False).run(torch.ones(1), enable_io_processing=False)
    assert_type(replace_pattern(traced, lambda x: x + 1, lambda x: x - 1), list[Match])
    assert_type(PassManager([eliminate_dead_code], rounds=2)(traced), PassResult)
