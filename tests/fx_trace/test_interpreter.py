"""Interpreters run graphs as the generated code does; transformers keep everything that they do not change."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import gc
import operator
import pickle
import weakref
from typing import Any

import pytest
import torch
import torch.fx
from torch import nn

import fx.trace as ft
from fx.codegen import GraphModule
from fx.ir import Graph, Node


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x, scale=2.0, *rest, shift=1):
        y = self.layers(x) * self.weight
        z = torch.cat([y, x], dim=-1).add(shift, alpha=scale)
        return {"z": z[..., 1:], "rest": rest, "pair": (y.size(0), [y])}


class Plain(ft.Interpreter):
    pass


class Overriding(ft.Interpreter):
    def run_node(self, n: Node) -> Any:
        return super().run_node(n)


@pytest.mark.parametrize("kind", [ft.Interpreter, Plain, Overriding])
@pytest.mark.parametrize("collect", [True, False])
def test_running_gives_what_calling_gives(kind: type[ft.Interpreter], collect: bool) -> None:
    traced = ft.symbolic_trace(Model())
    x = torch.randn(2, 4)
    interpreter = kind(traced, garbage_collect_values=collect)
    for args in ((x,), (x, 3.0), (x, 3.0, 4, 5)):
        torch.testing.assert_close(interpreter.run(*args)["z"], traced(*args)["z"], rtol=0, atol=0)
        assert list(interpreter.run(*args)["rest"]) == list(traced(*args)["rest"])
    kept = {node.name for node in interpreter.env}
    assert ("relu" in kept or "layers_1" in kept) is not collect
    assert "output" in kept


def test_each_step_can_be_overridden() -> None:
    class Swap(ft.Interpreter):
        def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return (
                torch.neg(*args, **kwargs)
                if target is torch.sigmoid
                else super().call_function(target, args, kwargs)
            )

        def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return args[0].sigmoid() if target == "neg" else super().call_method(target, args, kwargs)

    traced = ft.symbolic_trace(lambda x: torch.sigmoid(x).neg())
    x = torch.randn(3, 4)
    assert torch.equal(Swap(traced).run(x), torch.neg(x).sigmoid())


def test_known_values_are_not_computed_again() -> None:
    calls: list[str] = []

    class Counting(ft.Interpreter):
        def run_node(self, n: Node) -> Any:
            calls.append(n.name)
            return super().run_node(n)

    traced = ft.symbolic_trace(lambda x: torch.neg(x) + 1)
    given = {traced.graph.node_named("neg"): torch.tensor(5.0)}
    assert Counting(traced).run(torch.tensor(1.0), initial_env=given) == 6
    assert "neg" not in calls and set(given) == {traced.graph.node_named("neg")}


def test_a_plan_follows_edits_of_the_graph() -> None:
    traced = ft.symbolic_trace(lambda x: torch.neg(x) + 1)
    interpreter = ft.Interpreter(traced)
    x = torch.tensor(2.0)
    assert interpreter.run(x) == -1
    node = traced.graph.node_named("neg")
    node.target = torch.square
    assert interpreter.run(x) == 5
    add = traced.graph.node_named("add")
    add.args = (node, 10)
    assert interpreter.run(x) == 14
    with traced.graph.inserting_after(node):
        new = traced.graph.call_function(torch.exp, (node,))
    node.replace_all_uses_with(new, lambda user: user is not new)
    assert interpreter.run(torch.tensor(0.0)) == 11
    add.replace_input_with(new, node)
    assert interpreter.run(torch.tensor(0.0)) == 10


@pytest.mark.parametrize("kind", [ft.Interpreter, Overriding])
def test_inputs_are_freed_early_in_a_boxed_run(kind: type[ft.Interpreter]) -> None:
    alive: list[bool] = []

    def observe(y: Any) -> Any:
        gc.collect()
        alive.extend(reference() is not None for reference in references)
        return y

    graph = Graph()
    x, unused = graph.placeholder("x"), graph.placeholder("unused")
    graph.output(graph.call_function(observe, (graph.call_function(torch.neg, (x,)),)))
    inputs = [torch.ones(2), torch.ones(3)]
    references = [weakref.ref(value) for value in inputs]
    assert torch.equal(kind(GraphModule({}, graph)).boxed_run(inputs), torch.full((2,), -1.0))
    assert inputs == [] and alive == [False, False]
    with pytest.raises(ft.NodeError, match="expected 2 arguments.*received 1 .missing"):
        kind(GraphModule({}, graph)).boxed_run([1])
    assert unused.op == "placeholder"


@pytest.mark.parametrize("kind", [ft.Interpreter, Overriding])
def test_an_error_names_the_node_and_the_users_line(kind: type[ft.Interpreter]) -> None:
    traced = ft.symbolic_trace(lambda x: torch.ones(3) @ x)
    with pytest.raises(RuntimeError) as caught:
        kind(traced).run(torch.ones(4))
    (note,) = caught.value.__notes__
    assert "While executing %matmul" in note
    assert __file__ in note and "torch.ones(3) @ x" in note


def test_missing_values_and_attributes_are_named() -> None:
    graph = Graph()
    graph.output(graph.call_module("inner.missing", (graph.placeholder("x"),)))
    owner = nn.Module()
    owner.inner = nn.Module()
    for kind in (ft.Interpreter, Overriding):
        with pytest.raises(ft.NodeError, match=r"nonexistent target inner\.missing"):
            kind(owner, graph=graph).run(1)
    with pytest.raises(ft.NodeError, match="parameter x, but one was not passed"):
        ft.Interpreter(ft.symbolic_trace(lambda x: x)).run()
    traced = ft.symbolic_trace(lambda x: x + 1)
    with pytest.raises(ft.NodeError, match="referenced nonexistent value x"):
        ft.Interpreter(traced).run_node(traced.graph.node_named("add"))


# -- transformers ---------------------------------------------------------------------------------------------------


def test_a_transformer_that_changes_nothing_keeps_everything() -> None:
    model = Model()
    traced = ft.symbolic_trace(model)
    traced.register_forward_hook(lambda module, args, result: {**result, "hooked": True})
    for node in traced.graph.nodes:
        node.meta["mark"] = node.name
        node.stack_trace = f"trace of {node.name}"
    new = ft.Transformer(traced).transform()
    assert str(new.graph) == str(traced.graph) and new.code == traced.code
    assert [node.meta for node in new.graph.nodes] == [node.meta for node in traced.graph.nodes]
    assert type(new).__name__ == type(traced).__name__
    x = torch.randn(2, 4)
    assert new(x)["hooked"] and torch.equal(new(x)["z"], model(x)["z"])
    assert new.graph is not traced.graph


def test_a_transformer_swaps_operations_and_marks_where_they_come_from() -> None:
    class Swap(ft.Transformer):
        def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if target is torch.sigmoid:
                return torch.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if target == "neg":
                return args[0].sigmoid()
            return super().call_method(target, args, kwargs)

    traced = ft.symbolic_trace(lambda x: torch.sigmoid(x).neg())
    traced.graph.node_named("sigmoid").meta.update(val="old", custom="kept")
    new = Swap(traced).transform()
    x = torch.randn(3, 4)
    assert torch.equal(new(x), torch.neg(x).sigmoid())
    meta = new.graph.node_named("neg").meta
    assert meta["custom"] == "kept" and "val" not in meta
    assert meta["location"] == traced.graph.node_named("sigmoid").meta["location"]


def test_modules_under_two_names_keep_both() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = self.b = nn.ReLU()

        def forward(self, x):
            return self.a(x)

    traced = ft.symbolic_trace(Shared())
    traced.graph.node_named("a").target = "b"
    assert [
        n.target
        for n in ft.Transformer(GraphModule(Shared(), traced.graph))
        .transform()
        .graph.find_nodes(op="call_module")
    ] == ["b"]


def test_flattened_arguments_survive_a_transformer() -> None:
    traced = ft.symbolic_trace(lambda x: [x["a"] + 1, x["b"]], {"x": {"a": ft.PH, "b": ft.PH}})
    new = ft.Transformer(traced).transform()
    assert new({"a": 1, "b": 2}) == [2, 2]


def test_transformed_modules_can_be_pickled() -> None:
    new = ft.Transformer(ft.symbolic_trace(Model())).transform()
    x = torch.randn(2, 4)
    assert torch.equal(pickle.loads(pickle.dumps(new))(x)["z"], new(x)["z"])


# -- writing with proxies -------------------------------------------------------------------------------------------


def test_proxies_append_to_a_graph() -> None:
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    sigmoid: Any = torch.sigmoid
    result = (ft.Proxy(x) + ft.Proxy(y)).relu() * sigmoid(ft.Proxy(x))
    graph.output(result.node)
    a, b = torch.randn(3), torch.randn(3)
    assert torch.equal(GraphModule({}, graph)(a, b), (a + b).relu() * torch.sigmoid(a))


def test_proxies_insert_where_the_graph_inserts() -> None:
    traced = ft.symbolic_trace(lambda x: torch.neg(x) + 1)
    neg = traced.graph.node_named("neg")
    with traced.graph.inserting_after(neg):
        doubled = ft.Proxy(neg) * 2
    neg.replace_all_uses_with(doubled.node, lambda user: user is not doubled.node)
    traced.recompile()
    assert traced(torch.tensor(3.0)) == -5
    assert [node.name for node in traced.graph.nodes] == ["x", "neg", "mul", "add", "output"]


def test_in_place_operators_and_stores_are_recorded_as_such() -> None:
    def program(x):
        alias = x
        x += 1
        x[0] = 5
        x *= 2
        return alias, x

    traced = ft.symbolic_trace(program)
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets == [operator.iadd, operator.setitem, operator.imul]
    for result, expected in zip(traced(torch.ones(2)), program(torch.ones(2)), strict=True):
        assert torch.equal(result, expected)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    assert torch.equal(traced(torch.ones(2))[0], program(torch.ones(2))[0])
