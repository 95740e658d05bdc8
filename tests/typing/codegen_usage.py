"""fx.codegen as a user's editor sees it: checked, never run."""

from typing import Any, assert_type

import torch
import torch.fx

from fx.codegen import CodeGen, GraphModule, PythonCode, register_literal
from fx.codegen.interop import from_torch, to_torch
from fx.ir import Graph


class Mine(GraphModule):
    def twice(self, x: torch.Tensor) -> Any:
        return self(x) * 2


class Loud(CodeGen):
    def process_inputs(self, *args: Any) -> Any:
        return args[0]


def use(root: torch.nn.Module, graph: Graph, other: torch.fx.GraphModule) -> None:
    gm = Mine(root, graph, class_name="Mine")
    assert_type(gm.graph, Graph)
    assert_type(gm.code, str)
    assert_type(gm.recompile(), PythonCode)
    assert_type(gm.print_readable(print_output=False), str)
    assert_type(gm.add_submodule("a.b", root), bool)
    gm.graph = graph
    graph.set_codegen(Loud())
    with graph.on_generate_code(lambda current: current or (lambda body: body)):
        gm.recompile()
    assert_type(from_torch(other), GraphModule)
    assert_type(from_torch(other.graph), Graph)
    assert_type(to_torch(gm), torch.fx.GraphModule)
    assert_type(to_torch(graph), torch.fx.Graph)


@register_literal(complex)
def write(value: Any, to: Any) -> str:
    return repr(value)
