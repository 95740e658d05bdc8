"""Placeholders of every kind are parameters of the same kind."""

import inspect
from typing import Any

import pytest
import torch

from fx.codegen import GraphModule, SignatureError
from fx.ir import Graph


def module(*specs: tuple[Any, ...]) -> GraphModule:
    """A function that returns its parameters as a tuple; a spec is (target, default or absent, kind or absent)."""
    graph = Graph()
    nodes = []
    for target, *rest in specs:
        default = rest[0] if rest and rest[0] is not ... else inspect.Signature.empty
        node = graph.placeholder(target, default_value=default)
        if len(rest) > 1:
            node.meta["parameter_kind"] = rest[1]
        nodes.append(node)
    graph.output(tuple(nodes))
    return GraphModule({}, graph)


def test_positional_only_keyword_only_variadic_and_defaults_bind_as_in_python() -> None:
    gm = module(
        ("a", ..., "POSITIONAL_ONLY"),
        ("b", 2, "POSITIONAL_ONLY"),
        ("c", 3),
        ("*args",),
        ("k", 5),
        ("**kwargs",),
    )

    def same(a: Any, b: Any = 2, /, c: Any = 3, *args: Any, k: Any = 5, **kwargs: Any) -> Any:
        return a, b, c, args, k, kwargs

    ours, theirs = inspect.signature(gm.forward).parameters, inspect.signature(same).parameters
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]
    assert gm(1) == same(1)
    assert gm(1, 20, 30, 40, k=50, b=60) == same(1, 20, 30, 40, k=50, b=60)


def test_keyword_only_without_variadic_gets_a_star() -> None:
    gm = module(("a",), ("k", ..., "KEYWORD_ONLY"))
    assert gm(1, k=2) == (1, 2)
    with pytest.raises(TypeError):
        gm(1, 2)


def test_a_default_that_is_an_object_is_that_object() -> None:
    default = object()
    assert module(("a", default))() == (default,)


@pytest.mark.parametrize(
    "default", [-0.0, float("nan"), [1, [2]], {"a": (1,)}, slice(1, None), torch.float64, None]
)
def test_defaults_are_exact(default: Any) -> None:
    (value,) = module(("a", default))()
    assert repr(value) == repr(default) and type(value) is type(default)


def test_names_of_builtins_are_kept_for_callers_and_still_reach_the_builtins() -> None:
    graph = Graph()
    inputs = [graph.placeholder(name) for name in ("input", "torch", "slice", "inf")]
    called = graph.call_function(torch.relu, (inputs[0],))
    graph.output((called, inputs[1], slice(1, 2), float("inf"), inputs[3]))
    gm = GraphModule({}, graph)
    relu, *rest = gm(input=torch.tensor([-1.0]), torch=1, slice=2, inf=3)
    assert torch.equal(relu, torch.zeros(1)) and rest == [1, slice(1, 2), float("inf"), 3]


def test_a_parameter_called_self_does_not_hide_the_module() -> None:
    graph = Graph()
    own = graph.placeholder("self")
    weight = graph.get_attr("weight")
    graph.output((own, weight))
    gm = GraphModule({"weight": torch.nn.Parameter(torch.ones(2))}, graph)
    result = gm.forward(3)
    assert result == (3, gm.weight)


@pytest.mark.parametrize(
    "specs",
    [
        [("a", 1), ("b",)],
        [("**kwargs",), ("a",)],
        [("*args",), ("*more",)],
        [("a",), ("b", ..., "POSITIONAL_ONLY")],
    ],
)
def test_an_impossible_order_is_refused_and_the_placeholder_named(specs: list[tuple[Any, ...]]) -> None:
    with pytest.raises(SignatureError) as caught:
        module(*specs)
    assert caught.value.node is not None
    assert caught.value.node.name in str(caught.value)
