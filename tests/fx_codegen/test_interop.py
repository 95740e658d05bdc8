"""Graphs go to torch.fx and come back without loss."""

from __future__ import annotations

import json
import operator
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.fx
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from fx.codegen import BoxedCodeGen, CodeGen, GraphModule, InteropError, PyTreeCodeGen
from fx.codegen.interop import from_torch, to_torch
from fx.codegen.interop.__main__ import main
from fx.ir import Graph


class Net(nn.Module):
    scale: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 5)
        self.register_buffer("scale", torch.ones(5))

    def forward(self, x: torch.Tensor, more: dict[str, torch.Tensor]) -> dict[str, Any]:
        y = torch.nn.functional.gelu(self.linear(x)) * self.scale
        y.add_(1)
        return {"a": y[..., 1:], "b": [more["k"] * 2, x.mean(dim=-1, dtype=torch.float64)]}


def arguments() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    return torch.rand(3, 4), {"k": torch.rand(2)}


def equal(left: Any, right: Any) -> bool:
    left_leaves, left_spec = torch.utils._pytree.tree_flatten(left)
    right_leaves, right_spec = torch.utils._pytree.tree_flatten(right)
    return left_spec == right_spec and all(map(torch.equal, left_leaves, right_leaves))


def assert_same_graph(left: Any, right: Any) -> None:
    assert str(left).strip() == str(right).strip()
    for ours, theirs in zip(left.nodes, right.nodes, strict=True):
        assert (ours.name, ours.op, ours.target, ours.type) == (
            theirs.name,
            theirs.op,
            theirs.target,
            theirs.type,
        )
        assert list(ours.meta) == list(theirs.meta)
        assert all(ours.meta[key] is theirs.meta[key] for key in ours.meta)


def traced() -> torch.fx.GraphModule:
    return torch.fx.symbolic_trace(Net())


def made() -> torch.fx.GraphModule:
    return make_fx(lambda x, more: {"a": x.sin() + more["k"].sum()})(*arguments())


def exported() -> torch.fx.GraphModule:
    return torch.export.export(Net(), arguments()).module()


def compiled() -> torch.fx.GraphModule:
    seen: list[torch.fx.GraphModule] = []
    torch._dynamo.reset()

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        seen.append(gm)
        return gm.forward

    torch.compile(Net(), backend=backend)(*arguments())
    return seen[0]


def with_pytrees() -> torch.fx.GraphModule:
    concrete = {"more": {"k": torch.fx._symbolic_trace.PH}}
    return torch.fx.symbolic_trace(Net(), concrete_args=concrete)


SOURCES = {
    "symbolic_trace": traced,
    "make_fx": made,
    "export": exported,
    "compile": compiled,
    "pytree": with_pytrees,
}


@pytest.mark.parametrize("source", SOURCES)
def test_graphs_of_torch_come_here_run_and_go_back_without_loss(source: str) -> None:
    theirs = SOURCES[source]()
    ours = from_torch(theirs)
    assert isinstance(ours, GraphModule)
    assert_same_graph(ours.graph, theirs.graph)
    ours.graph.lint()
    back = to_torch(ours)
    assert_same_graph(back.graph, theirs.graph)
    assert type(back.graph._codegen) is type(theirs.graph._codegen)
    assert back.code == theirs.code
    assert dict(ours.state_dict(keep_vars=True)).keys() == dict(theirs.state_dict(keep_vars=True)).keys()
    assert all(ours.state_dict()[key] is not None for key in theirs.state_dict())
    if source != "compile":
        x = arguments()
        torch.manual_seed(0)
        expected = theirs(*x)
        assert equal(ours(*x), expected) and equal(back(*x), expected)
    else:
        inputs = [node.meta["example_value"] for node in theirs.graph.nodes if node.op == "placeholder"]
        assert len(inputs) == len([node for node in ours.graph.nodes if node.op == "placeholder"])


def test_nested_and_shared_modules_stay_nested_and_shared() -> None:
    inner = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    root = nn.Module()
    root.first = inner
    root.again = inner
    root.held = nn.Sequential(inner, nn.Tanh())
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    for name in ("first", "again", "held"):
        x = graph.call_module(name, (x,))
    graph.output(x)
    theirs = torch.fx.GraphModule(root, graph, "Outer")
    ours = from_torch(theirs)
    assert not any(isinstance(module, torch.fx.GraphModule) for module in ours.modules())
    assert (
        isinstance(ours.first, GraphModule)
        and ours.first is ours.again
        and ours.get_submodule("held.0") is ours.first
    )
    assert isinstance(theirs.get_submodule("held.0"), torch.fx.GraphModule)
    assert type(ours).__name__ == "Outer"
    value = torch.rand(3, 2)
    back = to_torch(ours)
    assert torch.equal(ours(value), theirs(value)) and torch.equal(back(value), theirs(value))
    assert not any(isinstance(module, GraphModule) for module in back.modules())


def test_ours_is_taken_by_torch_s_tools() -> None:
    graph = Graph()
    x = graph.placeholder("x", torch.Tensor)
    weight = graph.get_attr("weight")
    graph.output(graph.call_function(operator.matmul, (x, weight)))
    gm = GraphModule({"weight": nn.Parameter(torch.ones(4, 2))}, graph)
    theirs = to_torch(gm)
    value = torch.rand(3, 4)
    from torch.fx.passes.shape_prop import ShapeProp

    ShapeProp(theirs).propagate(value)
    assert torch.equal(torch.fx.Interpreter(theirs).run(value), gm(value))
    assert [node.name for node in theirs.graph.nodes] == [node.name for node in gm.graph.nodes]


def test_code_generators_are_converted() -> None:
    assert type(from_torch(traced()).graph.codegen) is CodeGen
    assert type(from_torch(with_pytrees()).graph.codegen) is PyTreeCodeGen
    graph = Graph()
    graph.output(graph.placeholder("x"))
    graph.set_codegen(BoxedCodeGen())
    gm = GraphModule({}, graph)
    assert to_torch(gm)([5]) == gm([5]) == 5

    class Own(CodeGen):
        pass

    graph.set_codegen(Own())
    with pytest.raises(InteropError, match="Own has no counterpart"):
        to_torch(graph)


def test_a_generator_of_torch_without_counterpart_is_carried_along() -> None:
    class Doubling(torch.fx.graph.CodeGen):
        def generate_output(self, output_args: Any) -> str:  # type: ignore[override]  # the older signature
            return f"return ({output_args!r}, {output_args!r})"

    graph = torch.fx.Graph()
    graph.output(graph.placeholder("x"))
    graph.set_codegen(Doubling())
    ours = from_torch(torch.fx.GraphModule({}, graph))
    assert ours(3) == (3, 3)
    assert isinstance(to_torch(ours).graph._codegen, Doubling)


@pytest.mark.parametrize("value", [3, nn.Linear(1, 1)])
def test_other_things_are_refused(value: Any) -> None:
    with pytest.raises(InteropError, match="takes a"):
        from_torch(value)
    with pytest.raises(InteropError, match="takes a"):
        to_torch(value)


def test_the_command_writes_a_file_that_is_read_without_torch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = torch.export.export(Net(), arguments())
    torch.export.save(program, tmp_path / "model.pt2")
    assert main(["convert", str(tmp_path / "model.pt2"), str(tmp_path / "o.json")]) == 0
    json.loads((tmp_path / "o.json").read_bytes())
    script = (
        "import sys; sys.modules['torch'] = None; from fx.ir import load; g = load('o.json');"
        "g.lint(); print([n.name for n in g.nodes]); assert sys.modules['torch'] is None"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60
    ).stdout
    assert shown.strip() == str([node.name for node in program.graph.nodes])
    assert main(["convert", "missing.pt2", "x"]) == 1
    assert "missing.pt2" in capsys.readouterr().err
