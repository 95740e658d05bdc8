"""Tracing records what a program does; real torch.fx is the oracle where the two agree."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import operator
import sys
import threading
from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.fx
import torch.nn.functional as F
from torch import nn
from torch.fx._symbolic_trace import PH as TORCH_PH

import fx.trace as ft
from fx.ir import Graph


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.param = nn.Parameter(torch.rand(3, 4))
        self.linear = nn.Linear(4, 5)

    def forward(self, x):
        return self.linear(x + self.param).clamp(min=0.0, max=1.0)


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), Inner())
        self.register_buffer("shift", torch.ones(4))
        self.constant = torch.full((4,), 2.0)

    def forward(self, x):
        y = self.inner(x) + self.shift
        y = self.inner(y) * self.constant
        return torch.cat([x, y], dim=-1).sum(dim=-1, keepdim=True)


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight).sigmoid() ** 2


def test_the_first_example_prints_the_graph_and_code_of_the_manual_and_runs() -> None:
    module = Small()
    traced = ft.symbolic_trace(module)
    assert str(traced.graph) == (
        "graph():\n"
        "    %x : [num_users=1] = placeholder[target=x]\n"
        "    %param : [num_users=1] = get_attr[target=param]\n"
        "    %add : [num_users=1] = call_function[target=operator.add](args = (%x, %param), kwargs = {})\n"
        "    %linear : [num_users=1] = call_module[target=linear](args = (%add,), kwargs = {})\n"
        "    %clamp : [num_users=1] = call_method[target=clamp](args = (%linear,), kwargs = {min: 0.0, max: 1.0})\n"
        "    return clamp"
    )
    assert "clamp = linear.clamp(min = 0.0, max = 1.0);  linear = None" in traced.code
    x = torch.rand(3, 4)
    assert torch.equal(traced(x), module(x))


def arithmetic(x, y):
    return (x + 1) * 2 - y / 3 + (1 - x) ** 2 + abs(-x) + 2**y + x // 3 + x % 4


def comparisons(x, y):
    return (x > y) | (x >= 2) & (x < 3) ^ (y <= 1) | (x == y) | ~(x != y)


def indexing(x, y):
    return x[0], x[..., 1:], x[:, None], x[y.long() % 2], x[x > 0]


def shapes(x, y):
    return x.view(x.shape[0], -1).T.reshape(x.size(1), x.size(0)) @ y.transpose(0, 1).contiguous()


def functions(x, y):
    z = torch.stack([x, y], dim=0)
    a, b = z.unbind(0)
    return {"a": F.relu(a), "b": [torch.where(b > 0, a, b), (F.softmax(z, dim=1),)]}


def attributes(x, y):
    return x.to(dtype=torch.float64, device=x.device).add(y.to(x.dtype), alpha=2), y.ndim, x.new_zeros(3)


def unpacking(x, y):
    values, (first, second) = x, y.topk(2)[0].T
    return values, first + second


@pytest.mark.parametrize(
    "function", [arithmetic, comparisons, indexing, shapes, functions, attributes, unpacking]
)
def test_traced_functions_have_the_graph_of_torch_fx_and_eager_results(function: Callable[..., Any]) -> None:
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    ours, theirs = ft.symbolic_trace(function), torch.fx.symbolic_trace(function)
    assert str(ours.graph) == str(theirs.graph)
    torch.testing.assert_close(ours(x, y), function(x, y), equal_nan=True, rtol=0, atol=0)
    ours.graph.lint()


@pytest.mark.parametrize("factory", [Small, Nested])
def test_traced_modules_have_the_graph_of_torch_fx_and_eager_results(factory: type[nn.Module]) -> None:
    module = factory()
    ours, theirs = ft.symbolic_trace(module), torch.fx.symbolic_trace(copy.deepcopy(module))
    assert str(ours.graph) == str(theirs.graph)
    x = torch.randn(3, 4)
    assert torch.equal(ours(x), module(x))


def test_nodes_say_which_modules_and_which_line_they_come_from() -> None:
    graph = ft.Tracer().trace(Nested())
    sigmoids = [node for node in graph.nodes if node.target == "sigmoid"]
    first, second = (list(node.meta["nn_module_stack"].items()) for node in sigmoids)
    assert first == [("inner", ("inner", nn.Sequential)), ("inner.2", ("inner.2", Inner))]
    assert [key for key, _ in second] == ["inner@1", "inner.2@1"]
    location = sigmoids[0].meta["location"]
    assert location.filename == __file__ and location.function == "forward"
    assert location.source == "return F.linear(x, self.weight).sigmoid() ** 2"


def test_scopes_are_noted_by_node_name() -> None:
    tracer = ft.Tracer()
    graph = tracer.trace(Nested())
    node = graph.node_named("sigmoid")
    assert tracer.node_name_to_scope[node.name] == ("inner.2", Inner)
    assert tracer.node_name_to_scope["cat"] == ("", None)


def test_record_stack_traces_gives_each_node_the_users_stack() -> None:
    class Recording(ft.Tracer):
        record_stack_traces = True

    graph = Recording().trace(Nested())
    trace = graph.node_named("sigmoid").stack_trace
    assert trace is not None
    assert trace.endswith("return F.linear(x, self.weight).sigmoid() ** 2")
    assert "y = self.inner(x) + self.shift" in trace
    assert "fx/trace" not in trace.replace("tests/fx_trace", "")


# -- parameters -----------------------------------------------------------------------------------------------------


def every_kind(a: Any, b: Any, /, c: Any, d: Any = 4, *args: Any, e: Any, f: Any = 6, **kwargs: Any) -> Any:
    return a + 2 * b + 3 * c + 4 * d + 5 * args[0] + 6 * e + 7 * f + 8 * kwargs["g"]


def test_every_kind_of_parameter_binds_as_in_the_original() -> None:
    traced = ft.symbolic_trace(every_kind)
    for args, kwargs in (((1, 2, 3, 4, 5), {"e": 6, "g": 8}), ((1, 2, 3, 9, 5, 7), {"e": 1, "f": 0, "g": 2})):
        assert traced(*args, **kwargs) == every_kind(*args, **kwargs)
    with pytest.raises(TypeError):
        traced(1, 2, 3, 4, 5, 6, g=8)


def test_keyword_only_parameters_stay_so() -> None:
    def function(a: Any, *, k: Any, scale: Any = 2) -> Any:
        return a * scale + k

    traced = ft.symbolic_trace(function)
    assert traced(1, k=5) == 7
    with pytest.raises(TypeError):
        traced(1, 5)


def test_defaults_and_annotations_are_kept_objects_included() -> None:
    weight = torch.ones(2)

    def function(x: torch.Tensor, w: torch.Tensor = weight, bias: float = -0.0) -> torch.Tensor:
        return x * w + bias

    traced = ft.symbolic_trace(function)
    placeholders = traced.graph.find_nodes(op="placeholder")
    assert [node.type for node in placeholders] == [torch.Tensor, torch.Tensor, float]
    assert traced.graph.output_node().type is torch.Tensor
    assert placeholders[1].args[0] is weight
    assert repr(placeholders[2].args[0]) == "-0.0"
    assert torch.equal(traced(torch.arange(2.0)), torch.arange(2.0))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def encode(self, x: Any, scale: Any = 3) -> Any:
        return self.linear(x) * scale

    def forward(self, x: Any) -> Any:
        return self.encode(x).relu()


class Scaler:
    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, x: Any) -> Any:
        return x * self.by

    def shift(self, x: Any) -> Any:
        return x + self.by


def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) + 1

    return wrapper


@decorate
def decorated(x: Any, *, y: Any) -> Any:
    return x * y


def test_methods_partials_callables_closures_and_decorated_functions_can_be_traced() -> None:
    model, factor = Model(), torch.tensor(3.0)
    x = torch.randn(2, 2)
    cases: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
        (model.encode, (x,), {}),
        (model.encode, (x, 5), {}),
        (Scaler(2.0), (x,), {}),
        (Scaler(2.0).shift, (x,), {}),
        (functools.partial(arithmetic, y=x), (x,), {}),
        (functools.partial(arithmetic, x), (x,), {}),
        (lambda x: x * factor, (x,), {}),
        (decorated, (x,), {"y": 3}),
    ]
    for function, args, kwargs in cases:
        torch.testing.assert_close(ft.symbolic_trace(function)(*args, **kwargs), function(*args, **kwargs))
    assert [n.target for n in ft.symbolic_trace(model.encode).graph.find_nodes(op="call_module")] == [
        "linear"
    ]


def test_what_is_no_python_function_is_refused_with_advice() -> None:
    with pytest.raises(ft.RootError, match="Call it from a Python function"):
        ft.symbolic_trace(torch.relu)


# -- concrete arguments ---------------------------------------------------------------------------------------------


def branch(a, flag):
    return a if flag else a * 2


def test_a_concrete_argument_decides_a_branch_and_is_asserted() -> None:
    ours = ft.symbolic_trace(branch, {"flag": False})
    theirs = torch.fx.symbolic_trace(branch, {"flag": False})
    assert str(ours.graph) == str(theirs.graph)
    assert ours(3, False) == 6
    with pytest.raises(AssertionError, match="flag has been specialized to have value False"):
        ours(3, True)


def test_none_is_asserted_too() -> None:
    traced = ft.symbolic_trace(lambda x, mask=None: x if mask is None else x * mask, {"mask": None})
    assert traced(3) == traced(3, None) == 3
    with pytest.raises(AssertionError, match="None"):
        traced(3, 4)


class Pair(NamedTuple):
    first: Any
    second: Any


def test_structures_with_placeholders_are_flattened_and_results_rebuilt() -> None:
    def function(x: Any, y: Any, pair: Any) -> Any:
        total = 0
        for value in x.values():
            total += value
        return {"total": total * y, "pair": Pair(pair.second, [pair.first])}

    concrete = {"x": {"a": ft.PH, "b": ft.PH, "c": 3}, "pair": Pair(ft.PH, ft.PH)}
    traced = ft.symbolic_trace(function, concrete)
    args = ({"a": 1, "b": 2, "c": 3}, 4, Pair(5, 6))
    assert traced(*args) == function(*args)
    assert ft.Interpreter(traced).run(*args) == function(*args)
    with pytest.raises(AssertionError, match="specialized"):
        traced({"a": 1, "b": 2, "c": 4}, 4, Pair(5, 6))


def test_the_nodes_of_a_flattened_trace_are_those_of_torch_fx() -> None:
    def function(x):
        return x[0] + x[1]["k"]

    ours = ft.symbolic_trace(function, {"x": [ft.PH, {"k": ft.PH}]})
    theirs = torch.fx.symbolic_trace(function, {"x": [TORCH_PH, {"k": TORCH_PH}]})
    assert str(ours.graph) == str(theirs.graph)


@dataclasses.dataclass
class Config:
    scale: float
    use_bias: bool


def test_a_data_class_can_be_a_concrete_argument() -> None:
    def function(x: Any, config: Config) -> Any:
        return x * config.scale + (1 if config.use_bias else 0)

    traced = ft.symbolic_trace(function, {"config": Config(2.0, True)})
    assert traced(3, Config(2.0, True)) == 7.0
    with pytest.raises(AssertionError, match="config.use_bias has been specialized to have value True"):
        traced(3, Config(2.0, False))


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    x: Any
    pair: tuple[Any, ...]
    options: dict[str, Any]
    config: Config


def test_a_data_class_may_hold_inputs() -> None:
    def function(batch: Batch, y: Any) -> Any:
        total = batch.x + batch.pair[0] * batch.options["k"] + y
        return total * batch.config.scale if batch.config.use_bias else total

    marked = Batch(ft.PH, (ft.PH, 3), {"k": ft.PH, "mode": "a"}, Config(ft.PH, True))  # type: ignore[arg-type]
    traced = ft.symbolic_trace(function, {"batch": marked})
    batch = Batch(1, (2, 3), {"k": 4, "mode": "a"}, Config(5.0, True))
    assert traced(batch, 6) == function(batch, 6)
    for other, message in (
        (dataclasses.replace(batch, pair=(2, 4)), r"batch\.pair\[1\].* value 3"),
        (dataclasses.replace(batch, pair=(2, 3, 4)), "batch.pair .* 2 elements"),
        (dataclasses.replace(batch, options={"k": 4, "mode": "b"}), r"batch\.options\['mode'\].* value a"),
        (dataclasses.replace(batch, config=Config(5.0, False)), "batch.config.use_bias .* value True"),
    ):
        with pytest.raises(AssertionError, match=message):
            traced(other, 6)


def test_concrete_arguments_may_be_given_by_position() -> None:
    traced = ft.symbolic_trace(branch, ([ft.PH], True))
    assert traced([7], True) == [7]
    with pytest.raises(ft.RootError, match="expected 2 arguments but got 1"):
        ft.symbolic_trace(branch, (ft.PH,))


def test_unknown_names_in_concrete_args_are_refused() -> None:
    with pytest.raises(ft.RootError, match="'falg'.*'a', 'flag'"):
        ft.symbolic_trace(branch, {"falg": True})


def test_placeholders_carry_the_attributes_of_their_mark() -> None:
    graph = ft.Tracer().trace(branch, {"a": [ft.PHWithMeta(ph_key="input")], "flag": True})
    assert graph.node_named("a_1").meta["ph_key"] == "input"


# -- arguments ------------------------------------------------------------------------------------------------------


@torch.fx.wrap
def consume(value: Any) -> Any:
    return value


ft.wrap("consume")


def test_containers_tuples_data_classes_and_slices_are_lowered() -> None:
    def function(x: Any) -> Any:
        return (
            consume({"k": [x, (x, 1)]}),
            consume(Pair(x, 2)).first,
            consume(Config(x, False)).scale,
            consume(slice(x, None)),
        )

    traced = ft.symbolic_trace(function)
    assert traced(3) == ({"k": [3, (3, 1)]}, 3, 3, slice(3, None))
    assert len(traced.graph.find_nodes(op="call_function", target=Config)) == 1


def test_tensors_are_found_in_the_module_or_stored_in_it() -> None:
    module = Nested()
    extra = torch.full((4,), 5.0)
    tracer = ft.Tracer()
    graph = tracer.trace(lambda x: x + extra)
    assert graph.find_nodes(op="get_attr", target="_tensor_constant0")
    assert tracer.root._tensor_constant0 is extra
    targets = [node.target for node in ft.Tracer().trace(module).find_nodes(op="get_attr")]
    assert targets == ["inner.2.weight", "shift", "constant"]


def test_an_argument_that_no_graph_holds_is_named_with_the_line() -> None:
    class Odd:
        pass

    with pytest.raises(ft.ArgumentTypeError, match="Odd.*override Tracer.create_arg") as caught:
        ft.symbolic_trace(lambda x: consume((x, Odd())))
    assert caught.value.location is not None and caught.value.location.filename == __file__
    with pytest.raises(ft.ArgumentTypeError, match="Keys for dictionaries"):
        ft.symbolic_trace(lambda x: consume({x: 1}))


def test_failed_traces_take_their_constants_out_of_the_module() -> None:
    class Failing(nn.Module):
        def forward(self, x: Any) -> Any:
            y = x + torch.ones(2)
            return y if y.sum() > 0 else x

    module = Failing()
    before = set(vars(module))
    with pytest.raises(ft.ControlFlowError):
        ft.symbolic_trace(module)
    assert set(vars(module)) == before


# -- overriding -----------------------------------------------------------------------------------------------------


def test_leaf_modules_can_be_chosen() -> None:
    class AllLeaves(ft.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return True

    class NoLeaves(ft.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return False

    module, x = Nested(), torch.randn(2, 4)
    assert [n.target for n in AllLeaves().trace(module).find_nodes(op="call_module")] == ["inner", "inner"]
    tracer = NoLeaves()
    graph = tracer.trace(module)
    assert not graph.find_nodes(op="call_module")
    from fx.codegen import GraphModule

    assert torch.equal(GraphModule(tracer.root, graph)(x), module(x))


def test_every_step_of_recording_can_be_overridden() -> None:
    seen: list[str] = []

    class Watching(ft.Tracer):
        def create_arg(self, a: Any) -> Any:
            seen.append("create_arg")
            return a.value if isinstance(a, Box) else super().create_arg(a)

        def create_node(self, *args: Any, **kwargs: Any) -> Any:
            seen.append("create_node")
            return super().create_node(*args, **kwargs)

        def proxy(self, node: Any) -> ft.Proxy:
            seen.append("proxy")
            return super().proxy(node)

        def to_bool(self, obj: ft.Proxy) -> bool:
            return True

        def iter(self, obj: ft.Proxy) -> Any:
            return iter([obj[0], obj[1]])

        def keys(self, obj: ft.Proxy) -> Any:
            return ["a", "b"]

        def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, ft.Proxy]) -> Any:
            seen.append(f"getattr {attr}")
            return super().getattr(attr, attr_val, parameter_proxy_cache)

    class Box:
        value = 7

    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x: Any, d: Any) -> Any:
            if x.sum() > 0:
                x = x + consume((x, Box()))[1]
            return [v * self.weight for v in x], dict(**d)

    graph = Watching().trace(Program())
    assert {"create_arg", "create_node", "proxy", "getattr weight"} <= set(seen)
    from fx.codegen import GraphModule

    result = GraphModule(Program(), graph)(torch.ones(2), {"a": 1, "b": 2})
    assert result[1] == {"a": 1, "b": 2} and len(result[0]) == 2
    assert torch.equal(result[0][1], torch.full((2,), 8.0))


def test_parameters_may_answer_with_their_real_shapes() -> None:
    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2, 3))

        def forward(self, x: Any) -> Any:
            if self.weight.shape[0] == 2 and self.weight.dim() == 2 and self.weight.numel() == 6:
                return x @ self.weight
            return x

    graph = ft.Tracer(param_shapes_constant=True).trace(Program())
    assert graph.find_nodes(op="call_function", target=operator.matmul)
    with pytest.raises(ft.ControlFlowError):
        ft.symbolic_trace(Program())


def test_buffers_become_traced_values_when_asked_for() -> None:
    class Buffers(ft.Tracer):
        proxy_buffer_attributes = True

    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.arange(4.0))

        table: torch.Tensor

        def forward(self, x: Any) -> Any:
            return self.table.flip(0)[x]

    names = [node.name for node in Buffers().trace(Program()).nodes]
    assert names == ["x", "table", "flip", "getitem", "output"]


def test_mutable_operations_are_refused_when_asked_for() -> None:
    class Strict(ft.Tracer):
        check_mutable_operations = True

    for function in (
        lambda x: x.add_(1),
        lambda x: F.relu(x, inplace=True),
        lambda x: torch.add(x, 1, out=x),
        lambda x: operator.iadd(x, 1),
        lambda x: torch.relu_(x),
    ):
        with pytest.raises(ft.MutationError, match="mutable operation"):
            Strict().trace(function)
    assert len(Strict().trace(lambda x: torch.add(x.mul(2), 1)).nodes) == 4


def test_asserts_are_recorded_when_asked_for() -> None:
    class Asserting(ft.Tracer):
        trace_asserts = True

    scope: dict[str, Any] = {}  # the test runner rewrites asserts in this file
    text = "assert x.shape[0] == 2; assert x.sum() > 0, 'must be positive'; return x * 2"
    exec(f"def function(x): {text}", scope)
    function = scope["function"]
    from fx.codegen import GraphModule

    tracer = Asserting()
    traced = GraphModule({}, tracer.trace(function))
    assert torch.equal(traced(torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(AssertionError):
        traced(torch.ones(3))
    with pytest.raises(ft.ControlFlowError):
        ft.symbolic_trace(function)


def test_tracers_can_be_copied() -> None:
    tracer = ft.Tracer(autowrap_functions=(helper,))
    copied = copy.deepcopy(tracer)
    assert str(copied.trace(lambda x: helper(x))) == str(tracer.trace(lambda x: helper(x)))


def test_a_module_outside_the_root_is_refused_with_advice() -> None:
    outside = nn.Linear(2, 2)
    with pytest.raises(ft.ModulePathError, match="not installed as a submodule.*Assign it"):
        ft.symbolic_trace(lambda x: outside(x))


# -- leaf functions -------------------------------------------------------------------------------------------------


def helper(x: Any) -> Any:
    return x * 2


@ft.wrap
def leaf(x: Any, shape: Any) -> Any:
    return torch.randn(shape) if x is None else x + len(shape)


ft.wrap("len")
ft.wrap("getattr")


def test_wrapped_names_math_and_builtins_are_recorded() -> None:
    def function(x: Any) -> Any:
        return leaf(x, (2, 3)) / sqrt(len(x)) + math.floor(getattr(x, "ndim") / 2)  # noqa: B009

    traced = ft.symbolic_trace(function)
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets[:3] == [leaf, len, math.sqrt] and getattr in targets and math.floor in targets
    x = torch.randn(4, 2)
    torch.testing.assert_close(traced(x), function(x))
    assert traced.graph.node_named("len_1").meta["is_wrapped"]


def test_functions_of_modules_named_to_the_tracer_are_recorded() -> None:
    tracer = ft.Tracer(autowrap_modules=(math, np), autowrap_functions=(helper,))
    graph = tracer.trace(lambda x: helper(np.abs(x)) + math.sin(x))
    assert [node.target for node in graph.nodes if node.op == "call_function"] == [
        np.abs,
        helper,
        math.sin,
        operator.add,
    ]


class Kernels:
    """Methods that are leaves."""

    def scale(self, x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x

    @staticmethod
    def shift(x: Any) -> Any:
        return x + 1 if x.sum() > 0 else x

    @classmethod
    def flip(cls, x: Any) -> Any:
        return -x if x.sum() > 0 else x


ft.wrap("Kernels.shift")
ft.wrap("np.linalg.norm")
ft.wrap(np.linalg.det)
ft.wrap(dataclasses.replace)


def test_functions_are_recorded_in_the_modules_and_classes_that_hold_them() -> None:
    before = dict(vars(Kernels)), dict(vars(np.linalg)), dict(vars(dataclasses))
    function = lambda x: Kernels().shift(x) + np.linalg.norm(x) * np.linalg.det(x)  # noqa: E731
    traced = ft.symbolic_trace(function)
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets == [Kernels.shift, np.linalg.norm, np.linalg.det, operator.mul, operator.add]
    x = torch.eye(2)
    torch.testing.assert_close(traced(x), function(x))
    assert before == (dict(vars(Kernels)), dict(vars(np.linalg)), dict(vars(dataclasses)))


def test_a_method_named_to_the_tracer_is_recorded() -> None:
    tracer = ft.Tracer(autowrap_functions=(Kernels.scale, np.cross))
    graph = tracer.trace(lambda kernels, x: Kernels.scale(kernels, np.cross(x, x)))
    assert [n.target for n in graph.find_nodes(op="call_function")] == [np.cross, Kernels.scale]


def test_functions_stay_leaves_when_another_trace_of_the_same_ends() -> None:
    inside, ended = threading.Event(), threading.Event()

    def function(x: Any) -> Any:
        inside.set()
        assert ended.wait(30)
        return helper(x) + Kernels.shift(x)

    def other(x: Any) -> Any:
        threads[1].start()
        assert inside.wait(30)
        return helper(x)

    def trace(name: str, program: Any) -> None:
        graphs[name] = ft.Tracer(autowrap_functions=(helper,)).trace(program)
        if name == "first":
            ended.set()

    graphs: dict[str, Graph] = {}
    threads = [threading.Thread(target=trace, args=args) for args in (("first", other), ("second", function))]
    threads[0].start()
    for thread in threads:
        while not thread.ident:
            assert not ended.wait(0.01) or thread.ident
        thread.join()
    targets = {name: [n.target for n in g.find_nodes(op="call_function")] for name, g in graphs.items()}
    assert targets == {"first": [helper], "second": [helper, Kernels.shift, operator.add]}


def test_wrap_works_at_module_scope_only() -> None:
    with pytest.raises(NotImplementedError, match="top level of a module"):
        ft.wrap("len")
    with pytest.raises(RuntimeError, match="callable or string"):
        ft.wrap(3)  # type: ignore[call-overload]  # that is the error


# -- nothing changes outside ----------------------------------------------------------------------------------------


def outside_state() -> tuple[Any, ...]:
    return (
        dict(globals()),
        dict(vars(math)),
        nn.Module.__call__,
        nn.Module.__getattr__,
        dict(vars(sys.modules["builtins"])),
    )


def test_globals_builtins_and_classes_are_as_before_also_after_an_exception() -> None:
    before = outside_state()
    ft.symbolic_trace(Nested())
    with pytest.raises(ft.TraceError):
        ft.symbolic_trace(lambda x: sqrt(len(x)) if x else x)
    with pytest.raises(ZeroDivisionError):
        ft.symbolic_trace(lambda x: leaf(x, (1 / 0,)))
    after = outside_state()
    assert all(a == b for a, b in zip(before, after, strict=True))
    assert "len" not in globals()


def test_two_threads_may_trace_while_a_third_runs() -> None:
    before = outside_state()
    expected = str(ft.Tracer().trace(Nested()))
    failures: list[BaseException] = []
    stop = threading.Event()

    def traces() -> None:
        try:
            for _ in range(20):
                assert str(ft.Tracer().trace(Nested())) == expected
                with pytest.raises(ft.TraceError):
                    ft.Tracer().trace(lambda x: len(x) if x else x)
        except BaseException as error:
            failures.append(error)

    def runs() -> None:
        module, x = Nested(), torch.randn(2, 4)
        result = module(x)
        try:
            while not stop.is_set():
                assert torch.equal(module(x), result)
                assert isinstance(module.inner[2].weight, nn.Parameter)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=traces) for _ in range(2)]
    runner = threading.Thread(target=runs)
    for thread in (*threads, runner):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    runner.join()
    assert not failures
    assert all(a == b for a, b in zip(before, outside_state(), strict=True))


def test_traces_nest() -> None:
    class Retracing(ft.Tracer):
        def call_module(self, m: Any, forward: Any, args: Any, kwargs: Any) -> Any:
            if isinstance(m, Inner):
                inner.append(ft.Tracer().trace(m))
                return self.create_proxy("call_module", self.path_of_module(m), args, kwargs)
            return super().call_module(m, forward, args, kwargs)

    inner: list[Graph] = []
    graph = Retracing().trace(Nested())
    assert [n.target for n in graph.find_nodes(op="call_module")][2] == "inner.2"
    assert [n.op for n in inner[0].nodes][:2] == ["placeholder", "get_attr"]


def test_a_membership_test_goes_through_an_overridden_iter() -> None:
    class Deciding(ft.Tracer):
        def iter(self, obj: ft.Proxy) -> Any:
            return iter([obj[0], obj[1]])

        def to_bool(self, obj: ft.Proxy) -> bool:
            return str(obj.node.args[1]) == "3" and obj.node.args[0].name == "getitem_1"  # type: ignore[union-attr]  # a node

    def f(x: Any) -> Any:
        return x + 1 if 3 in x else x - 1

    class TorchsDeciding(torch.fx.Tracer):
        def iter(self, obj: Any) -> Any:
            return iter([obj[0], obj[1]])

        def to_bool(self, obj: Any) -> bool:
            return str(obj.node.args[1]) == "3" and obj.node.args[0].name == "getitem_1"

    ours, theirs = Deciding().trace(f), TorchsDeciding().trace(f)
    assert [node.name for node in ours.nodes] == [node.name for node in theirs.nodes]
    with pytest.raises(ft.TraceError, match="whether `x` holds the item"):
        ft.symbolic_trace(f)
