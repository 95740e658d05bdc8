"""GraphModule is an nn.Module in every respect, and its copies are what they copy."""

from __future__ import annotations

import copy
import io
import operator
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fx.codegen import CodegenError, GraphModule, MissingAttributeError, PythonCode
from fx.ir import Graph


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.param = nn.Parameter(torch.rand(3, 4))
        self.tied = self.param
        self.register_buffer("offset", torch.ones(4))
        self.register_buffer("scratch", torch.zeros(4), persistent=False)
        self.blocks = nn.ModuleDict({"in": nn.Sequential(nn.Linear(4, 4), nn.ReLU()), "out": nn.Linear(4, 5)})
        self.unused = nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.blocks["in"](x + self.param * self.tied) + self.offset + self.scratch
        result: torch.Tensor = self.blocks["out"](y).clamp(min=0.0)
        return result


def graph_of_model() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    product = graph.call_function(operator.mul, (graph.get_attr("param"), graph.get_attr("tied")))
    added = graph.call_function(operator.add, (x, product))
    hidden = graph.call_module("blocks.in", (added,))
    for name in ("offset", "scratch"):
        hidden = graph.call_function(operator.add, (hidden, graph.get_attr(name)))
    out = graph.call_module("blocks.out", (hidden,))
    last = graph.call_method("clamp", (out,), {"min": 0.0})
    last.meta["note"] = {"kept": True}
    graph.output(last)
    return graph


class Named(GraphModule):
    """A subclass as users write one."""

    def __init__(self, root: nn.Module, graph: Graph) -> None:
        super().__init__(root, graph, "Named")
        self.extra = 7

    def twice(self, x: torch.Tensor) -> Any:
        return self(x) * 2


@pytest.fixture
def model() -> Model:
    return Model().eval()


@pytest.fixture
def gm(model: Model) -> GraphModule:
    return GraphModule(model, graph_of_model(), "Captured")


X = torch.rand(3, 4)

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "torch.save": lambda module: _saved(module),
}


def _saved(module: nn.Module) -> Any:
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


def test_it_computes_what_the_module_computes_and_shares_its_parameters(
    model: Model, gm: GraphModule
) -> None:
    assert torch.equal(gm(X), model(X))
    assert gm.param is model.param
    assert not gm.training


def test_it_holds_exactly_what_the_graph_refers_to(model: Model, gm: GraphModule) -> None:
    assert set(gm.state_dict()) == {name for name in model.state_dict() if not name.startswith("unused")}
    assert "scratch" in dict(gm.named_buffers()) and "scratch" not in gm.state_dict()


def test_a_missing_target_names_node_and_path(model: Model) -> None:
    graph = Graph()
    graph.output(graph.get_attr("blocks.nothing.weight"))
    with pytest.raises(MissingAttributeError, match=r"'blocks\.nothing\.weight'"):
        GraphModule(model, graph)
    with pytest.raises(RuntimeError, match="blocks_nothing_weight"):
        GraphModule({"other": 1}, graph)


def test_a_dict_gives_parents_before_children() -> None:
    graph = Graph()
    graph.output((graph.get_attr("a.b.c"), graph.get_attr("a.b.weight"), graph.call_module("a.b", (X,))))
    linear = nn.Linear(4, 4)
    gm = GraphModule({"a.b.c": 5, "a.b": linear, "a.b.weight": linear.weight}, graph)
    c, weight, value = gm()
    assert c == 5 and weight is linear.weight and torch.equal(value, linear(X))


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_runs_and_keeps_names_meta_hooks_flags_class_and_sharing(how: str, gm: GraphModule) -> None:
    gm.meta["made"] = "by hand"
    calls: list[str] = []
    gm.register_forward_hook(_Recorder(calls))
    made: GraphModule = COPIES[how](gm)
    assert torch.equal(made(X), gm(X))
    assert made.code == gm.code and str(made.graph) == str(gm.graph)
    assert [node.meta for node in made.graph.nodes] == [node.meta for node in gm.graph.nodes]
    assert type(made).__name__ == "Captured" and isinstance(made, GraphModule)
    assert made.training is gm.training and made.meta == gm.meta
    assert made.param is made.tied
    assert len(made._forward_hooks) == 1
    assert set(made.state_dict()) == set(gm.state_dict())


class _Recorder:
    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def __call__(self, module: nn.Module, args: Any, result: Any) -> None:
        self.calls.append(type(module).__name__)


@pytest.mark.parametrize("how", ["deepcopy", "pickle", "torch.save"])
def test_a_deep_copy_is_independent(how: str, gm: GraphModule) -> None:
    before = gm(X)
    made: GraphModule = COPIES[how](gm)
    with torch.no_grad():
        made.get_parameter("param").zero_()
    made.graph.output_node().args = (next(iter(made.graph.nodes)),)
    made.recompile()
    assert made(X) is X
    assert torch.equal(gm(X), before)
    assert made.graph.owning_module is made and gm.graph.owning_module is gm


@pytest.mark.parametrize("how", COPIES)
def test_a_subclass_survives_copying(how: str, model: Model) -> None:
    named = Named(model, graph_of_model())
    made = COPIES[how](named)
    assert isinstance(made, Named) and made.extra == 7
    assert torch.equal(made.twice(X), model(X) * 2)


def test_copying_again_and_again_does_not_deepen_the_class(gm: GraphModule) -> None:
    made = gm
    for _ in range(3):
        made = copy.deepcopy(pickle.loads(pickle.dumps(made)))
    assert len(type(made).__mro__) == len(type(gm).__mro__)


def test_unpickling_does_not_run_the_code(gm: GraphModule) -> None:
    data = pickle.dumps(gm)
    with torch.nn.modules.module.register_module_forward_pre_hook(_refuse):
        pickle.loads(data)


def _refuse(module: nn.Module, args: Any) -> None:
    raise AssertionError("a module was called")


def test_edits_show_after_recompile_and_assignment_recompiles(gm: GraphModule) -> None:
    before = gm.code
    output = gm.graph.output_node()
    output.args = (next(iter(gm.graph.nodes)),)
    assert gm.code == before and gm(X) is not X
    code = gm.recompile()
    assert isinstance(code, PythonCode) and gm.code == code.src and gm(X) is X
    gm.graph = graph_of_model()
    assert gm.code == before


def test_a_graph_that_is_no_function_leaves_the_module_as_it_was(gm: GraphModule) -> None:
    before, graph = gm.code, gm.graph
    bad = Graph()
    bad.placeholder("a", default_value=1)
    bad.placeholder("b")
    with pytest.raises(CodegenError):
        gm.graph = bad
    assert gm.code == before and gm.graph is graph and torch.equal(gm(X), gm(X))


def test_the_same_text_is_compiled_once_and_only_when_it_runs(model: Model) -> None:
    first, second = GraphModule(model, graph_of_model()), GraphModule(model, graph_of_model())
    assert not callable(vars(type(first))["forward"])
    first(X)
    second(X)
    assert first.forward.__code__ is second.forward.__code__


def test_state_dict_loads_and_named_modules_are_those_in_use(model: Model, gm: GraphModule) -> None:
    other = GraphModule(Model().eval(), graph_of_model())
    other.load_state_dict(gm.state_dict())
    other.scratch = gm.scratch
    assert torch.equal(other(X), gm(X))
    assert dict(gm.named_modules())["blocks.out"] is model.blocks["out"]


def test_functional_call_takes_other_parameters(gm: GraphModule) -> None:
    zero = {name: torch.zeros_like(value) for name, value in gm.state_dict().items() if name != "tied"}
    assert torch.equal(torch.func.functional_call(gm, zero, (X,)), torch.zeros(3, 5))


def test_torchscript_takes_it(model: Model, gm: GraphModule) -> None:
    scripted = torch.jit.script(gm)
    assert torch.equal(scripted(X), model(X))


def test_torch_compile_takes_it(model: Model, gm: GraphModule) -> None:
    compiled = torch.compile(gm, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), model(X))


def test_data_parallel_replicas_run_with_parameters_of_their_own(model: Model, gm: GraphModule) -> None:
    replica = gm._replicate_for_data_parallel()
    for key, child in gm._modules.items():
        replica._modules[key] = child
    replica.param = torch.zeros(3, 4)
    replica.tied = torch.zeros(3, 4)
    expected = model.blocks["out"](model.blocks["in"](X) + model.get_buffer("offset")).clamp(min=0.0)
    assert torch.equal(replica(X), expected)
    assert torch.equal(gm(X), model(X))


def test_hooks_run_around_forward(gm: GraphModule) -> None:
    gm.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    gm.register_forward_hook(lambda module, args, result: result + 1)
    assert torch.equal(gm(X), gm.forward(X * 0) + 1)


def test_submodules_are_added_and_deleted_by_path(gm: GraphModule) -> None:
    assert gm.add_submodule("new.deep.linear", nn.Linear(2, 2))
    assert isinstance(gm.get_submodule("new.deep.linear"), nn.Linear)
    assert not gm.add_submodule("param.x", nn.ReLU())
    assert not gm.delete_submodule("new.wrong") and not gm.delete_submodule("param")
    assert gm.delete_submodule("new.deep.linear")
    gm.add_submodule("new.other", nn.ReLU())
    gm.delete_all_unused_submodules()
    assert {name for name, _ in gm.named_modules()} == {
        "", "blocks", "blocks.in", "blocks.in.0", "blocks.in.1", "blocks.out",
    }  # fmt: skip
    gm(X)


def test_print_readable_shows_nested_modules_and_shapes(
    gm: GraphModule, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = Graph()
    inner.output(inner.call_function(torch.relu, (inner.placeholder("y"),)))
    outer = Graph()
    called = outer.call_module("inner", (outer.placeholder("x"),))
    called.meta["val"] = torch.ones(2, 3)
    outer.output(called)
    text = GraphModule({"inner": GraphModule({}, inner)}, outer).print_readable(include_stride=True)
    assert capsys.readouterr().out.strip() == text.strip()
    assert 'inner: "f32[2, 3][3, 1]" = self.inner(x)' in text
    assert "    class inner(torch.nn.Module):\n        def forward(self, y):" in text
    compile(text, "readable", "exec")


def test_to_folder_is_imported_by_a_fresh_interpreter_without_this_library(
    tmp_path: Path, model: Model
) -> None:
    graph = graph_of_model()
    clamp = graph.output_node().args[0]
    with graph.inserting_before(graph.output_node()):
        scaled = graph.call_function(operator.mul, (clamp, float("inf")))
        private = graph.call_function(torch.nn.functional.relu, (graph.get_attr("__private"),))
    graph.output_node().args = ((scaled, private, torch.float64, torch.ones(2)),)
    model.__dict__["__private"] = None
    setattr(model, "__private", nn.Parameter(torch.ones(2)))
    gm = GraphModule(model, graph)
    gm.to_folder(tmp_path / "dumped", "Dumped")
    torch.save(gm(X), tmp_path / "expected.pt")
    torch.save(X, tmp_path / "x.pt")
    script = textwrap.dedent(
        """
        import sys
        for name in ("fx.ir", "fx.codegen"):
            sys.modules[name] = None
        import torch
        from dumped import Dumped
        want = torch.load("expected.pt")
        got = Dumped()(torch.load("x.pt"))
        assert torch.equal(torch.nan_to_num(got[0]), torch.nan_to_num(want[0]))
        assert torch.equal(got[1], want[1]) and got[2] is torch.float64 and torch.equal(got[3], want[3])
        """
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, timeout=120)


def test_what_is_no_module_and_no_graph_is_refused(gm: GraphModule) -> None:
    with pytest.raises(TypeError, match="Module or a dict"):
        GraphModule(3, graph_of_model())  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(TypeError, match="interop"):
        gm.graph = torch.fx.Graph()  # type: ignore[assignment]  # the mistake under test
