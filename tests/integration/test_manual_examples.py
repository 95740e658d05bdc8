"""The examples of torch.fx's manual (a founding document), moved over by changing imports, each with what it promises."""

import importlib
import math
import sys
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from fx.codegen import GraphModule
from fx.ir import Argument, Graph, Node, map_arg
from fx.trace import (
    PH,
    GraphAppendingTracer,
    Interpreter,
    Proxy,
    TraceError,
    Tracer,
    Transformer,
    replace_pattern,
    symbolic_trace,
    wrap,
)
from fx.trace.passes.drawer import GraphDrawer


class Top(nn.Module):
    """Of the manual's section on printing."""

    def __init__(self) -> None:
        super().__init__()
        self.param = nn.Parameter(torch.rand(3, 4))
        self.linear = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Any:
        return torch.topk(torch.sum(self.linear(x + self.linear.weight).relu(), dim=-1), 3)


class Add(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.add(x, y)


def test_a_graph_of_every_opcode_prints_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    symbolic_trace(Top()).graph.print_tabular()
    printed = capsys.readouterr().out.split("\n")
    assert printed[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert [line.split()[0] for line in printed[2:] if line] == [
        "placeholder",
        "get_attr",
        "call_function",
        "call_module",
        "call_method",
        "call_function",
        "call_function",
        "output",
    ]


def test_a_transform_sets_targets_in_place() -> None:
    def transform(m: nn.Module, tracer_class: type[Tracer] = Tracer) -> nn.Module:
        graph = tracer_class().trace(m)
        for node in graph.nodes:
            if node.op == "call_function" and node.target == torch.add:
                node.target = torch.mul
        graph.lint()
        return GraphModule(m, graph)

    x, y = torch.randn(3), torch.randn(3)
    assert torch.equal(transform(Add())(x, y), x * y)


def test_a_node_goes_in_after_another_and_takes_its_users() -> None:
    traced = symbolic_trace(Add())
    (node,) = traced.graph.find_nodes(op="call_function", target=torch.add)
    with traced.graph.inserting_after(node):
        new_node = traced.graph.call_function(torch.relu, args=(node,))
        node.replace_all_uses_with(new_node, delete_user_cb=lambda user: user is not new_node)
    traced.recompile()
    x, y = torch.randn(9), torch.randn(9)
    assert torch.equal(traced(x, y), torch.relu(x + y))


def test_proxies_decompose_functions() -> None:
    def relu_decomposition(x: Proxy) -> Proxy:
        return (x > 0) * x

    rules: dict[object, Callable[..., Proxy]] = {torch.relu: relu_decomposition}

    def decompose(model: nn.Module, tracer_class: type[Tracer] = Tracer) -> nn.Module:
        graph = tracer_class().trace(model)
        new_graph = Graph()
        env: dict[str, Node] = {}
        tracer = GraphAppendingTracer(new_graph)
        for node in graph.nodes:
            if node.op == "call_function" and node.target in rules:
                proxy_args = [Proxy(env[x.name], tracer) if isinstance(x, Node) else x for x in node.args]
                env[node.name] = rules[node.target](*proxy_args).node
            else:
                env[node.name] = new_graph.node_copy(node, lambda x: env[x.name])
        return GraphModule(model, new_graph)

    class Relu(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(x) + 1

    decomposed = decompose(Relu())
    x = torch.randn(9)
    assert torch.equal(decomposed(x), torch.relu(x) + 1)
    assert "relu" not in str(decomposed.code)


class ShapeProp:
    """The manual's interpreter by hand: it notes what it finds as attributes of the nodes."""

    def __init__(self, mod: GraphModule) -> None:
        self.mod = mod
        self.graph = mod.graph
        self.modules = dict(mod.named_modules())

    def propagate(self, *args: object) -> object:
        args_iter = iter(args)
        env: dict[str, Any] = {}

        def load_arg(a: Argument) -> Any:
            return map_arg(a, lambda n: env[n.name])

        def fetch_attr(target: str) -> Any:
            found: Any = self.mod
            for atom in target.split("."):
                found = getattr(found, atom)
            return found

        result: Any = None
        for node in self.graph.nodes:
            if node.op == "placeholder":
                result = next(args_iter)
            elif node.op == "get_attr":
                result = fetch_attr(str(node.target))
            elif node.op == "call_function":
                result = cast("Callable[..., object]", node.target)(
                    *load_arg(node.args), **load_arg(node.kwargs)
                )
            elif node.op == "call_method":
                self_obj, *rest = load_arg(node.args)
                result = getattr(self_obj, str(node.target))(*rest, **load_arg(node.kwargs))
            elif node.op == "call_module":
                result = self.modules[str(node.target)](*load_arg(node.args), **load_arg(node.kwargs))
            else:
                return load_arg(node.args[0])
            if isinstance(result, Tensor):
                node.shape, node.dtype = result.shape, result.dtype  # type: ignore[attr-defined]  # the manual's own
            env[node.name] = result
        return result


def test_an_interpreter_by_hand_notes_shapes() -> None:
    module = Top()
    traced = symbolic_trace(module)
    x = torch.rand(5, 4)
    found = cast("tuple[Tensor, Tensor]", ShapeProp(traced).propagate(x))
    assert torch.equal(found[0], module(x)[0])
    shapes = {node.name: tuple(node.shape) for node in traced.graph.nodes if hasattr(node, "shape")}
    assert shapes["linear_weight"] == (5, 4) and shapes["linear"] == shapes["relu"] == (5, 5)


class AddParameter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.ones(3))

    def forward(self, y: Tensor) -> Tensor:
        return self.x + y


def test_generated_code_can_be_pasted_into_a_class() -> None:
    traced = symbolic_trace(AddParameter())
    space: dict[str, Any] = {"torch": torch}
    exec(traced.code, space)
    pasted = type("SubclassM", (AddParameter,), {"forward": space["forward"]})()
    y = torch.randn(3)
    assert torch.equal(pasted(y), traced(y))


def test_to_folder_writes_a_package_that_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    traced = symbolic_trace(AddParameter())
    traced.to_folder(tmp_path / "foo_of_manual", "Bar")
    try:
        bar = importlib.import_module("foo_of_manual").Bar()
        y = torch.randn(3)
        assert torch.equal(bar(y), traced(y))
    finally:
        sys.modules.pop("foo_of_manual", None)


def test_a_graph_is_drawn() -> None:
    traced = symbolic_trace(AddParameter())
    dot = GraphDrawer(traced, "name").dot()
    assert dot.startswith("digraph") and "add" in dot


def test_dynamic_control_flow_is_an_error_that_names_the_line() -> None:
    def func_to_trace(x: Tensor) -> Tensor:
        if x.sum() > 0:
            return torch.relu(x)
        return torch.neg(x)

    line = func_to_trace.__code__.co_firstlineno + 1
    with pytest.raises(TraceError, match="cannot be used as inputs to control flow") as raised:
        symbolic_trace(func_to_trace)
    assert f"{Path(__file__).name}:{line}" in str(raised.value) or f"line {line}" in str(raised.value)


@pytest.mark.parametrize("flag", [False, True])
def test_static_control_flow_is_followed(flag: bool) -> None:
    class MyModule(nn.Module):
        def __init__(self, do_activation: bool = False) -> None:
            super().__init__()
            self.do_activation = do_activation
            self.linear = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            x = self.linear(x)
            if self.do_activation:
                x = torch.relu(x)
            return x

    assert ("torch.relu" in symbolic_trace(MyModule(flag)).code) == flag


def test_concrete_args_decide_branches_and_flatten_containers() -> None:
    def f(x: Any, flag: bool) -> Any:
        return x if flag else x * 2

    with pytest.raises(TraceError):
        symbolic_trace(f)
    assert symbolic_trace(f, concrete_args={"flag": True})(3, True) == 3

    def g(a: Any, b: bool) -> Any:
        if b == True:  # noqa: E712  # as the manual has it
            return a
        return a * 2

    assert symbolic_trace(g, concrete_args={"b": False})(3, False) == 6

    def h(x: dict[str, Any]) -> Any:
        out = 0
        for v in x.values():
            out += v
        return out

    flat = symbolic_trace(h, concrete_args={"x": {"a": PH, "b": PH, "c": PH}})
    assert flat({"a": 1, "b": 2, "c": 4}) == 7


def normalize(x: Tensor) -> Tensor:
    """Normalize ``x`` by the size of the batch dimension; x: (batch, …)."""
    return x / sqrt(len(x))


def normalize_by_wrapped(x: Tensor) -> Tensor:
    """The same with names of its own, as ``wrap`` is for a whole module."""
    return x / wrapped_sqrt(wrapped_len(x))


wrapped_len, wrapped_sqrt = len, math.sqrt
wrap("wrapped_len")
wrap("wrapped_sqrt")


def test_len_and_sqrt_are_recorded_when_they_are_wrapped() -> None:
    with pytest.raises(TraceError, match="'len' is not supported in symbolic tracing by default"):
        symbolic_trace(normalize)
    traced = symbolic_trace(normalize_by_wrapped)
    assert [node.target for node in traced.graph.find_nodes(op="call_function")][:2] == [len, sqrt]
    x = torch.rand(3, 4)
    assert torch.equal(traced(x), normalize(x))


@wrap
def my_custom_function(x: Any, y: Any) -> Any:
    """A function that stays one call."""
    return x * x + y * y


@wrap
def torch_randn(x: Tensor, shape: int) -> Tensor:
    """Random numbers that are drawn on each call; x: any tensor, which makes the call one to record."""
    return torch.randn(shape)


def test_wrapped_functions_stay_calls() -> None:
    traced = symbolic_trace(lambda x, y: my_custom_function(x, y))
    assert [node.target for node in traced.graph.find_nodes(op="call_function")] == [my_custom_function]
    assert traced(2, 3) == 13
    drawing = symbolic_trace(lambda x: x + torch_randn(x, 5))
    zeros = torch.zeros(5)
    assert not torch.equal(drawing(zeros), drawing(zeros))


def test_leaf_modules_stay_calls_and_the_set_of_them_can_be_changed() -> None:
    class MySpecialSubmodule(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.neg(x)

    class MyModule(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 4)
            self.submod = MySpecialSubmodule()

        def forward(self, x: Tensor) -> Tensor:
            return cast("Tensor", self.submod(self.linear(x)))

    class AllLeaves(Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return True

    code = symbolic_trace(MyModule()).code
    assert "self.linear(x)" in code and "torch.neg(linear)" in code and "submod" not in code
    module = MyModule()
    assert "self.submod(linear)" in GraphModule(module, AllLeaves().trace(module)).code


def test_a_training_flag_that_is_read_is_baked_in_but_a_dropout_module_keeps_it() -> None:
    class DropoutRepro(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.dropout(x, training=self.training)

    class DropoutRepro2(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout()

        def forward(self, x: Tensor) -> Tensor:
            return cast("Tensor", self.drop(x))

    x = torch.ones(50, 30)
    baked = symbolic_trace(DropoutRepro())
    assert "training = True" in baked.code
    assert not torch.equal(baked.eval()(x), x)
    assert torch.equal(symbolic_trace(DropoutRepro2()).eval()(x), x)


def sigmoid_of(x: Tensor) -> Tensor:
    return torch.sigmoid(x).neg()


def test_an_interpreter_swaps_two_functions() -> None:
    class NegSigmSwapInterpreter(Interpreter):
        def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if target == torch.sigmoid:
                return torch.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if target == "neg":
                call_self, *args_tail = args
                return call_self.sigmoid(*args_tail, **kwargs)
            return super().call_method(target, args, kwargs)

    x = torch.randn(3, 4)
    result = NegSigmSwapInterpreter(symbolic_trace(sigmoid_of)).run(x)
    torch.testing.assert_close(result, torch.neg(x).sigmoid())


def test_a_transformer_swaps_two_functions() -> None:
    class NegSigmSwapXformer(Transformer):
        def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if target == torch.sigmoid:
                return torch.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if target == "neg":
                call_self, *args_tail = args
                return call_self.sigmoid(*args_tail, **kwargs)
            return super().call_method(target, args, kwargs)

    x = torch.randn(3, 4)
    transformed = NegSigmSwapXformer(symbolic_trace(sigmoid_of)).transform()
    torch.testing.assert_close(transformed(x), torch.neg(x).sigmoid())


def test_each_match_of_a_pattern_is_replaced() -> None:
    class M(nn.Module):
        def forward(self, x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
            m1 = torch.cat([w1, w2]).sum()
            m2 = torch.cat([w1, w2]).sum()
            return x + torch.max(m1) + torch.max(m2)

    def pattern(w1: Tensor, w2: Tensor) -> Tensor:
        return torch.cat([w1, w2])

    def replacement(w1: Tensor, w2: Tensor) -> Tensor:
        return torch.stack([w1, w2])

    traced = symbolic_trace(M())
    matches = replace_pattern(traced, pattern, replacement)
    assert len(matches) == 2
    assert {match.anchor.target for match in matches} == {torch.cat}
    assert traced.code.count("torch.stack([w1, w2])") == 2 and "cat" not in traced.code
    x, w1, w2 = torch.randn(4), torch.randn(3), torch.randn(3)
    both = torch.stack([w1, w2]).sum()
    assert torch.equal(traced(x, w1, w2), x + torch.max(both) + torch.max(both))


def test_a_replacement_takes_the_parameters_of_the_pattern_even_those_it_does_not_use() -> None:
    def pattern(x: Tensor, y: Tensor) -> Tensor:
        return torch.neg(x) + torch.relu(y)

    def replacement(x: Tensor, y: Tensor) -> Tensor:
        return torch.relu(x)

    traced = symbolic_trace(lambda x, y: torch.neg(x) + torch.relu(y))
    assert len(replace_pattern(traced, pattern, replacement)) == 1
    x = torch.randn(5)
    assert torch.equal(traced(x, x), torch.relu(x))


def test_an_error_in_traced_code_names_the_line_that_was_traced_and_so_do_comments() -> None:
    def product(x: Tensor, y: Tensor) -> Tensor:
        z = x + 1
        return z @ y

    traced = symbolic_trace(product)
    first = product.__code__.co_firstlineno
    with pytest.raises(RuntimeError) as raised:
        traced(torch.ones(2, 3), torch.ones(2, 3))
    (note,) = raised.value.__notes__
    assert f'File "{__file__}", line {first + 2}, in product' in note and "return z @ y" in note
    source = traced.graph.python_code("self", verbose=True).src
    assert f"# File: {__file__}:{first + 1} in product, code: z = x + 1" in source
    assert f"# File: {__file__}:{first + 2} in product, code: return z @ y" in source
