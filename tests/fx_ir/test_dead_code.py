"""What dead code elimination keeps, and that everything else goes."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fx.ir import Effects, Graph, Node, OpaqueTarget, effects, has_side_effect


def test_chains_of_unused_nodes_go_in_one_walk() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    unused = graph.placeholder("unused")
    dead = x
    for _ in range(2000):
        dead = graph.call_function(operator.add, (dead, unused))
    graph.get_attr("weight")
    graph.output(graph.call_function(operator.neg, (x,)))
    assert graph.eliminate_dead_code()
    assert [node.name for node in graph.nodes] == ["x", "unused", "neg", "output"]
    assert not graph.eliminate_dead_code()
    graph.lint()


@has_side_effect
def declared() -> None:
    """Has an effect that only its author knows."""


KEPT: list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = [
    ("call_method", "add_", (1,), {}),
    ("call_method", "__setitem__", (0, 1), {}),
    ("call_method", "__iadd__", (1,), {}),
    ("call_method", "append", (1,), {}),
    ("call_method", "bernoulli", (), {}),
    ("call_method", "backward", (), {}),
    ("call_function", operator.setitem, (0, 1), {}),
    ("call_function", operator.iadd, (1,), {}),
    ("call_function", operator.imatmul, (1,), {}),
    ("call_function", print, (), {}),
    ("call_function", setattr, ("a", 1), {}),
    ("call_function", torch.relu_, (), {}),
    ("call_function", torch.add, (1,), {"out": torch.zeros(1)}),
    ("call_function", torch.nn.functional.relu, (), {"inplace": True}),
    ("call_function", declared, (), {}),
    ("call_function", OpaqueTarget("somewhere.unknown"), (), {}),
    ("call_module", "cannot.be.seen", (), {}),
]


@pytest.mark.parametrize(("op", "target", "args", "kwargs"), KEPT, ids=[f"{c[0]}-{c[1]}" for c in KEPT])
def test_effects_are_never_removed_unless_the_caller_says_so(
    op: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.create_node(op, target, (x, *args), kwargs)
    assert node.is_impure()
    assert not graph.eliminate_dead_code()
    assert graph.eliminate_dead_code(lambda node: node.op == "placeholder")
    assert list(graph.nodes) == [x]


@pytest.mark.parametrize(
    ("op", "target"),
    [("call_method", "add"), ("call_method", "__add__"), ("call_method", "_"), ("call_function", operator.add),
     ("call_function", torch.relu), ("get_attr", "w"), ("call_method", "__len__")],
)  # fmt: skip
def test_pure_operations_are_removed(op: Any, target: Any) -> None:
    graph = Graph()
    graph.create_node(op, target, (graph.placeholder("x"), 1), {"out": None, "inplace": False})
    assert graph.eliminate_dead_code()
    assert len(graph.nodes) == 1


def test_random_draws_stay_unless_they_may_go() -> None:
    def draw() -> int:
        return 4

    effects.declare(draw, effects.RANDOM)
    node = Graph().call_function(draw)
    assert node.is_impure()
    assert not node.is_impure(impure_random=False)
    assert effects.effects_of_node(node) == Effects(random=True)


def test_rules_and_declared_names_and_modules_are_asked() -> None:
    class Counter:
        def __call__(self, x: int) -> int:
            return x

    effects.declare("no_such_module.pure", effects.PURE)
    effects.declare_module(Counter, lambda module: effects.IMPURE)
    effects.add_rule(lambda target: effects.IMPURE if getattr(target, "is_special", False) else None)
    graph = Graph(
        SimpleNamespace(counter=Counter(), other=torch.nn.ReLU(), marked=SimpleNamespace(_is_impure=True))
    )

    def special() -> None: ...

    special.is_special = True  # type: ignore[attr-defined]  # a mark of this test
    nodes = [
        graph.call_function(OpaqueTarget("no_such_module.pure")),
        graph.call_function(special),
        graph.call_module("counter"),
        graph.call_module("other"),
        graph.call_module("marked"),
    ]
    assert [node.is_impure() for node in nodes] == [False, True, True, False, True]


def nested(effect: bool) -> tuple[Graph, Graph]:
    """A graph that hands a nested graph to a function and calls it as a module, and the nested graph."""
    inner = Graph()
    x = inner.placeholder("x")
    inner.call_function(operator.add, (x, 2), name="dead")
    if effect:
        inner.call_method("add_", (x, 1))
    inner.output(x)
    graph = Graph(SimpleNamespace(body=SimpleNamespace(graph=inner)))
    y = graph.placeholder("y")
    graph.call_function(operator.call, (graph.get_attr("body"), y))
    graph.call_module("body", (y,))
    graph.output(y)
    return graph, inner


def test_effects_inside_nested_graphs_are_kept_and_their_dead_code_goes() -> None:
    graph, inner = nested(effect=True)
    assert graph.eliminate_dead_code()
    assert [node.op for node in graph.nodes] == [
        "placeholder",
        "get_attr",
        "call_function",
        "call_module",
        "output",
    ]
    assert [node.name for node in inner.nodes] == ["x", "add_", "output"]


def test_nested_graphs_without_effects_go() -> None:
    graph, _ = nested(effect=False)
    assert graph.eliminate_dead_code()
    assert [node.op for node in graph.nodes] == ["placeholder", "output"]


def test_the_predicate_reaches_nested_graphs() -> None:
    graph, inner = nested(effect=True)
    asked: list[Node] = []

    def keep(node: Node) -> bool:
        asked.append(node)
        return node.op != "call_method"

    assert graph.eliminate_dead_code(keep)
    assert [node.name for node in inner.nodes] == ["x", "dead", "output"]
    assert inner.node_named("dead") in asked


def test_purity_looks_at_every_nested_graph_once() -> None:
    """Two calls at each of many levels, which a walk of every path would double at each; and a ring."""
    top = graph = Graph()
    for _ in range(60):
        inner = Graph()
        graph.nested["inner"] = inner
        fetched = graph.create_node("get_attr", "inner")
        for _ in range(2):
            graph.call_function(operator.pos, (fetched,))
        graph.create_node("call_module", "inner")
        graph.output(1)
        graph = inner
    graph.nested["inner"] = top
    call = graph.create_node("call_module", "inner")
    assert not call.is_impure()
    with graph.inserting_after():
        draw = graph.call_method("add_", (call, 1))
    assert all(node.is_impure() for node in top.nodes if node.op == "call_function")
    graph.erase_node(draw)
    assert top.eliminate_dead_code()
    assert [node.op for node in top.nodes] == ["output"]
