"""Passes keep what a module computes, and report what they changed."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import copy
import operator
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.fx
import torch.nn.functional as F
from torch import nn
from torch.fx.passes.shape_prop import ShapeProp as TorchShapeProp

import fx.trace as ft
from fx.codegen import GraphModule
from fx.ir import Graph, Node
from fx.trace import passes


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4)
        self.block = nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4, 2)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.uniform_(module.get_buffer("running_mean"))
                nn.init.uniform_(module.get_buffer("running_var"), 0.5, 2.0)
                nn.init.uniform_(module.weight)

    def forward(self, x):
        x = self.block(self.bn1(self.conv1(x)).relu())
        return self.head(x.mean(dim=(2, 3)))


IMAGE = torch.randn(2, 3, 8, 8)


def targets(gm: GraphModule, op: Any = "call_function") -> list[Any]:
    return [node.target for node in gm.graph.find_nodes(op=op)]


def test_shapes_are_those_that_torch_fx_finds_on_real_and_fake_tensors() -> None:
    model = ConvNet().eval()
    ours, fake, theirs = ft.symbolic_trace(model), ft.symbolic_trace(model), torch.fx.symbolic_trace(model)
    passes.ShapeProp(ours).propagate(IMAGE)
    passes.ShapeProp.on_fake_tensors(fake).propagate(IMAGE)
    TorchShapeProp(theirs).propagate(IMAGE)
    for a, b, c in zip(ours.graph.nodes, fake.graph.nodes, theirs.graph.nodes, strict=True):
        expected = c.meta["tensor_meta"]
        assert a.meta["tensor_meta"][:6] == tuple(expected)[:6]
        assert b.meta["tensor_meta"] == a.meta["tensor_meta"]
        assert type(b.meta["val"]).__name__ == "FakeTensor"
        assert a.meta["type"] is torch.Tensor


def test_shapes_of_containers_are_found() -> None:
    traced = ft.symbolic_trace(lambda x: (x.split(2), x.size(0)))
    passes.ShapeProp(traced).propagate(torch.ones(4, 3))
    split = traced.graph.node_named("split").meta["tensor_meta"]
    assert [part.shape for part in split] == [(2, 3), (2, 3)]


def test_the_profiler_gives_a_table_and_folded_stacks(tmp_path: Path) -> None:
    ticks = iter(range(1000))
    traced = ft.symbolic_trace(ConvNet().eval())
    profiler = passes.Profiler(traced, clock=lambda: float(next(ticks)))
    profiler.run(IMAGE)
    profiler.run(IMAGE)
    table = profiler.table()
    assert (
        "conv1" in table and "mean (us)" in table and len(table.splitlines()) == len(traced.graph.nodes) + 2
    )
    profiler.write_flame_graph(tmp_path / "out.folded")
    lines = (tmp_path / "out.folded").read_text().splitlines()
    assert "forward;block;block.0;block_0 2000000" in lines
    assert all(line.rpartition(" ")[2].isdigit() for line in lines)


def test_dead_code_goes_and_effects_stay() -> None:
    def program(x):
        torch.neg(x)
        x.add_(1)
        return x

    traced = ft.symbolic_trace(program)
    result = passes.eliminate_dead_code(traced)
    assert result.changes == ("erased neg",) and result.modified
    assert traced(torch.zeros(1)) == 1
    assert not passes.eliminate_dead_code(traced).modified


def test_equal_computations_are_merged_where_nobody_can_tell() -> None:
    def program(x, y):
        return (
            (x + y).relu() * (x + y).relu()
            + torch.add(x, 0.0)
            + torch.add(x, -0.0)
            + torch.add(x, 1)
            + torch.add(x, True)
        )

    traced = ft.symbolic_trace(program)
    x, y = torch.randn(3), torch.randn(3)
    before = traced(x, y)
    result = passes.eliminate_common_subexpressions(traced)
    assert result.changes == ("add_1 is add", "relu_1 is relu")
    assert torch.equal(traced(x, y), before)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (x.clone(), x.clone()),
        lambda x: x.clone().add_(1) + x.clone(),
        lambda x: (x * 2) + x.add_(1) + (x * 2),
        lambda x: F.dropout(x, 0.5) + F.dropout(x, 0.5),
        lambda x: x.clone().view(-1).add_(1).sum() + x.clone().view(-1).sum(),
    ],
)
def test_computations_that_can_be_told_apart_are_not_merged(program: Any) -> None:
    traced = ft.symbolic_trace(program)
    count = len(traced.graph.nodes)
    torch.manual_seed(0)
    expected = program(torch.ones(4))
    passes.eliminate_common_subexpressions(traced)
    torch.manual_seed(0)
    result = traced(torch.ones(4))
    torch.testing.assert_close(result, expected)
    clones = traced.graph.find_nodes(op="call_method", target="clone")
    assert len(traced.graph.nodes) == count or clones


def test_constants_are_computed_once() -> None:
    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.arange(4.0))
            self.weight = nn.Parameter(torch.ones(4))

        table: torch.Tensor

        def forward(self, x):
            return x * (self.table.flip(0) + torch.ones(4)).exp() + self.weight.exp() + torch.rand_like(x) * 0

    class Buffers(ft.Tracer):
        proxy_buffer_attributes = True

    module, x = Program(), torch.randn(4)
    traced = GraphModule(module, Buffers().trace(module))
    result = passes.fold_constants(traced)
    torch.testing.assert_close(traced(x), module(x))
    assert result.modified and "_folded_0" in dict(traced.named_buffers())
    assert [t for t in targets(traced, "call_method")] == ["exp"]
    assert not passes.fold_constants(traced).modified
    assert passes.fold_constants(traced, fold_parameters=True).modified
    torch.testing.assert_close(traced(x), module(x))


def test_batch_norms_are_folded_into_convolutions() -> None:
    model = ConvNet().eval()
    state = copy.deepcopy(model.state_dict())
    traced = ft.symbolic_trace(model)
    result = passes.fuse_conv_bn(traced)
    assert result.changes == ("fused bn1 into conv1", "fused block.1 into block.0")
    torch.testing.assert_close(traced(IMAGE), model(IMAGE), rtol=1e-4, atol=1e-5)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert not any(isinstance(m, nn.BatchNorm2d) for m in traced.modules())
    assert not passes.fuse_conv_bn(ft.symbolic_trace(ConvNet().train())).modified


class Layers(nn.Module):
    """A convolution and a norm, used by ``how``."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        norm = nn.BatchNorm2d(3)
        nn.init.ones_(norm.get_buffer("running_mean"))
        self.pair = nn.Sequential(nn.Conv2d(3, 3, 1), norm)

    def forward(self, x):
        conv: Any = self.pair[0]
        norm: Any = self.pair[1]
        y = norm(conv(x))
        if self.how == "weight":
            return y + conv.weight.sum()
        if self.how == "whole":
            return y + self.pair(x)
        if self.how == "layer twice":
            return y + conv(x)
        if self.how == "norm twice":
            return y + norm(x)
        return y


@pytest.mark.parametrize(
    "how", ["once", "weight", "whole", "layer twice", "norm twice", "hook", "backward hook"]
)
def test_a_convolution_that_something_else_sees_is_not_fused(how: str) -> None:
    class Whole(ft.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return module_qualified_name == "pair" or super().is_leaf_module(m, module_qualified_name)

    model = Layers(how).eval()
    seen: list[int] = []
    if how == "hook":
        model.pair[0].register_forward_hook(lambda *_: seen.append(1))
    if how == "backward hook":
        model.pair[0].register_full_backward_hook(lambda *_: seen.append(1))
    state = copy.deepcopy(model.state_dict())
    traced = GraphModule(model, Whole().trace(model))
    changed = passes.fuse_conv_bn(traced).modified
    assert changed == (how in ("once", "norm twice"))
    torch.testing.assert_close(traced(IMAGE), model(IMAGE), rtol=1e-4, atol=1e-5)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert isinstance(model.pair[1], nn.BatchNorm2d)


def test_operations_are_decomposed_by_a_table() -> None:
    rules: dict[Any, Any] = {F.relu: lambda x, inplace: (x > 0) * x, "square": lambda x: x * x}
    traced = ft.symbolic_trace(lambda x: F.relu(x).square() + F.relu(-x))
    traced.graph.node_named("relu").meta["mark"] = 1
    x = torch.randn(5)
    before = traced(x)
    result = passes.decompose(traced, rules)
    assert result.changes == ("decomposed relu", "decomposed square", "decomposed relu_1")
    assert F.relu not in targets(traced) and operator.gt in targets(traced)
    assert traced.graph.node_named("gt").meta["mark"] == 1
    assert torch.equal(traced(x), before)


def test_arguments_are_matched_to_parameters() -> None:
    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            return (
                F.dropout(self.linear(x), 0.1, self.training),
                torch.flatten(x, 1),
                torch.add(x, x, alpha=2),
            )

    module = Program().eval()
    traced = ft.symbolic_trace(module)
    named = traced.graph.node_named
    pair = passes.normalized_arguments(named("dropout"), traced, normalize_to_only_use_kwargs=True)
    assert pair == ((), {"input": named("linear"), "p": 0.1, "training": False, "inplace": False})
    pair = passes.normalized_arguments(named("linear"), traced, normalize_to_only_use_kwargs=True)
    assert pair == ((), {"input": named("x")})
    pair = passes.normalized_arguments(named("add"), traced, (torch.Tensor, torch.Tensor), {"alpha": int})
    assert pair is not None and pair.args == (named("x"), named("x")) and pair.kwargs["alpha"] == 2
    assert passes.normalized_arguments(named("x"), traced) is None
    assert named("add").normalized_arguments(traced, (torch.Tensor, torch.Tensor), {"alpha": int}) == pair
    assert passes.normalize_arguments(traced).modified
    x = torch.randn(3, 2)
    for ours, expected in zip(traced(x), module(x), strict=True):
        assert torch.equal(ours, expected)


def by_name(node: Node) -> int:
    return (
        0
        if "conv1" in node.name or "bn1" in node.name
        else 1
        if "block" in node.name or node.name == "relu"
        else 2
    )


def test_a_module_is_split_by_a_callback() -> None:
    model = ConvNet().eval()
    traced = ft.symbolic_trace(model)
    names: dict[str, str] = {}
    split = passes.split_module(traced, model, by_name, names)
    assert [node.target for node in split.graph.find_nodes(op="call_module")] == [
        "submod_0",
        "submod_1",
        "submod_2",
    ]
    assert torch.equal(split(IMAGE), model(IMAGE))
    assert names["submod_0.conv1"] == "conv1" and names["submod_2.head"] == "head"
    assert split.get_submodule("submod_0.conv1") is model.conv1


def test_parts_with_several_values_parameters_and_effects_are_split_right() -> None:
    weight = nn.Parameter(torch.randn(3))

    def program(x):
        a, b = x + weight, x * weight
        a.add_(1)
        return {"r": a * b - a, "w": weight}

    traced = ft.symbolic_trace(program)
    part = {"add": "p", "mul": "p", "add_": "q"}
    split = passes.split_module(traced, None, lambda node: part.get(node.name, "r"))
    x = torch.randn(3)
    assert torch.equal(split(x)["r"], program(x)["r"]) and split(x)["w"] is weight


def test_parts_in_a_circle_are_refused() -> None:
    traced = ft.symbolic_trace(lambda x: torch.neg(torch.exp(torch.abs(x))))
    with pytest.raises(ValueError, match="circle"):
        passes.split_module(traced, None, lambda node: 1 if node.name == "exp" else 0)
    effects = ft.symbolic_trace(lambda x: (torch.neg(x), x.add_(1), torch.exp(x)))
    with pytest.raises(ValueError, match="effects"):
        passes.split_module(effects, None, lambda node: 1 if node.name == "add_" else 0)


def supports(*functions: Any) -> Any:
    return lambda modules, node: node.target in functions


def test_supported_operations_are_grouped_without_circles() -> None:
    def program(x, y):
        a = torch.neg(x)
        b = torch.sigmoid(a)
        c = torch.neg(a) + torch.neg(b)
        return torch.neg(c) * y, b

    traced = ft.symbolic_trace(program)
    x, y = torch.randn(3), torch.randn(3)
    expected = program(x, y)
    partitioner = passes.CapabilityBasedPartitioner(traced, supports(torch.neg, operator.add, operator.mul))
    partitions = partitioner.propose_partitions()
    assert [[node.name for node in p.nodes] for p in partitions] == [
        ["neg", "neg_1"],
        ["neg_2", "add", "neg_3", "mul"],
    ]
    result = partitioner.fuse_partitions(partitions)
    traced.graph.lint()
    assert len(result.changes) == 2 and targets(traced, "call_module") == ["fused_0", "fused_1"]
    for ours, wanted in zip(traced(x, y), expected, strict=True):
        assert torch.equal(ours, wanted)


def test_a_subgraph_is_extracted_with_its_state() -> None:
    model = ConvNet().eval()
    traced = ft.symbolic_trace(model)
    nodes = [node for node in traced.graph.nodes if node.name in ("conv1", "bn1", "relu")]
    found = passes.extract_subgraph(traced, nodes)
    assert [node.name for node in found.inputs] == ["x"] and [n.name for n in found.outputs] == ["relu"]
    assert torch.equal(found.module(IMAGE), model.bn1(model.conv1(IMAGE)).relu())
    with pytest.raises(ValueError, match="cannot extract x"):
        passes.extract_subgraph(traced, traced.graph.nodes)


def test_the_smallest_failing_part_is_found() -> None:
    def program(x):
        for _ in range(5):
            x = torch.exp(torch.neg(x))
        x = torch.tan(torch.sin(x))
        for _ in range(9):
            x = torch.abs(x) + 1
        return x

    def fails(module: GraphModule, inputs: tuple[Any, ...]) -> bool:
        module(*inputs)
        called = targets(module)
        return torch.sin in called and torch.tan in called

    traced = ft.symbolic_trace(program)
    found = passes.minimise(traced, (torch.ones(2),), fails)
    assert [node.name for node in found.nodes] == ["sin", "tan"]
    assert fails(found.module, found.inputs) and found.tries < 20
    with pytest.raises(passes.NothingFails):
        passes.minimise(traced, (torch.ones(2),), lambda module, inputs: False)


def test_recorded_inputs_are_as_they_were_before_in_place_operations() -> None:
    def program(x):
        y = x * 1
        z = torch.sqrt(y)
        y.sub_(10)
        return z + y

    traced = ft.symbolic_trace(program)
    found = passes.minimise(
        traced,
        (torch.full((1,), 4.0),),
        lambda m, i: (
            torch.sqrt in targets(m) and bool((m(*i) == 2).all()) if len(m.graph.nodes) < 4 else True
        ),
    )
    assert found.inputs[0].item() == 4.0


def test_graphs_are_drawn_with_shapes(tmp_path: Path) -> None:
    traced = ft.symbolic_trace(ConvNet().eval())
    passes.ShapeProp(traced).propagate(IMAGE)
    drawer = passes.GraphDrawer(traced, 'a "name"')
    dot = drawer.dot()
    assert '"x" -> "conv1";' in dot and "float32[2, 4, 6, 6]" in dot and "BatchNorm2d" in dot
    drawer.write(tmp_path / "graph.dot")
    if shutil.which("dot") is None:
        with pytest.raises(passes.GraphvizMissing, match="install graphviz"):
            drawer.svg()
    else:
        assert "<svg" in drawer.svg()


def test_a_manager_runs_passes_until_nothing_changes_and_checks_between() -> None:
    traced = ft.symbolic_trace(lambda x: (x + 1) * (x + 1) + torch.neg(x) * 0)
    manager = passes.PassManager(
        [passes.eliminate_common_subexpressions, passes.eliminate_dead_code], rounds=3
    )
    result = manager(traced)
    assert result.changes == ("eliminate_common_subexpressions: add_1 is add",)

    def breaking(gm: GraphModule) -> passes.PassResult:
        raise ZeroDivisionError("oops")

    with pytest.raises(passes.PassError, match="pass breaking failed: oops") as caught:
        passes.PassManager([breaking])(traced)
    assert caught.value.pass_name == "breaking" and isinstance(caught.value.__cause__, ZeroDivisionError)

    def refuse(gm: GraphModule) -> None:
        raise ValueError("too many nodes")

    with pytest.raises(passes.PassError, match="does not pass the checks: too many nodes"):
        passes.PassManager([passes.eliminate_dead_code], checks=[refuse])(traced)


def test_a_graph_without_output_is_left_in_peace() -> None:
    graph = Graph()
    graph.call_function(torch.neg, (graph.placeholder("x"),))
    assert not passes.eliminate_common_subexpressions(GraphModule({}, graph)).modified
