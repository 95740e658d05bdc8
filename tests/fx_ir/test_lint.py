"""Every invariant, broken through private fields, is named by its own rule, and ``lint`` raises for it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

from fx.ir import Graph, Node
from fx.ir.lint import RULES, LintError, check


def build() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y")
    a = graph.call_function(operator.add, (x, y), {"k": [x]})
    b = graph.call_method("relu", (a,))
    c = graph.call_function(operator.mul, (b, b))
    graph.output((c, [a]))
    return graph


def other_node() -> Node:
    return Graph().placeholder("foreign")


def put(node: Node, **fields: Any) -> None:
    for name, value in fields.items():
        setattr(node, name, value)


def swap(graph: Graph, first: str, second: str) -> None:
    """Exchange two neighbours without looking."""
    a, b = graph.node_named(first), graph.node_named(second)
    before, after = a._prev, b._next
    before._next, b._prev, b._next, a._prev, a._next, after._prev = b, before, a, b, after, a
    a._label, b._label = b._label, a._label


def with_index(graph: Graph) -> dict[Any, Any]:
    graph.find_nodes(op="output")
    assert graph._index is not None
    return graph._index._table


BREACHES: list[tuple[str, str, Callable[[Graph], object]]] = [
    ("links", "mul", lambda g: put(g.node_named("mul"), _prev=g.node_named("add"))),
    ("links", "x", lambda g: put(g.node_named("mul"), _next=g.node_named("x"))),
    ("length", "7 nodes", lambda g: setattr(g, "_len", 7)),
    ("owner", "relu", lambda g: put(g.node_named("relu"), graph=Graph())),
    ("erased", "relu", lambda g: put(g.node_named("relu"), _label=other_node()._label + (1 << 201))),
    ("order", "relu", lambda g: put(g.node_named("relu"), _label=0)),
    ("order", "root", lambda g: put(g._root, _label=1)),
    ("definition", "relu", lambda g: swap(g, "relu", "mul")),
    ("definition", "foreign", lambda g: put(g.node_named("relu"), _args=(other_node(),))),
    ("users", "relu", lambda g: put(g.node_named("add"), _users=g.node_named("output"))),
    ("users", "mul", lambda g: put(g.node_named("x"), _users={g.node_named("add"): None, g.node_named("mul"): None})),
    ("frozen", "add", lambda g: put(g.node_named("add"), _args=[*g.node_named("add").args])),
    ("frozen", "add", lambda g: put(g.node_named("add"), _kwargs={"k": [g.node_named("x")]})),
    ("frozen", "output", lambda g: put(g.node_named("output"), _args=((g.node_named("mul"), [g.node_named("add")]),))),
    ("opcode", "call_moon", lambda g: put(g.node_named("relu"), _op="call_moon")),
    ("opcode", "relu", lambda g: put(g.node_named("relu"), _target=operator.neg)),
    ("opcode", "mul", lambda g: put(g.node_named("mul"), _target="mul")),
    ("arguments", "output", lambda g: setattr(g.node_named("output"), "args", ())),
    ("arguments", "x", lambda g: setattr(g.node_named("x"), "args", (1, 2))),
    ("arguments", "relu", lambda g: setattr(g.node_named("relu"), "args", ())),
    ("names", "class", lambda g: put(g.node_named("relu"), _name="class")),
    ("names", "add", lambda g: put(g.node_named("relu"), _name="add")),
    ("names", "relu", lambda g: g._names.update(relu=None)),
    ("names", "ghost", lambda g: g._names.update(ghost=g.node_named("relu"))),
    ("placeholders", "'x'", lambda g: put(g.node_named("y"), _target="x")),
    ("placeholders", "'1y'", lambda g: put(g.node_named("y"), _target="1y")),
    ("placeholders", "table", lambda g: g._placeholders.clear()),
    ("output", "output", lambda g: put(g.node_named("output"), _users=g.node_named("mul"))),
    ("identity", "one uid", lambda g: put(g.node_named("mul"), uid=0)),
    ("identity", "never given", lambda g: put(g.node_named("mul"), uid=99)),
    ("index", "mul", lambda g: with_index(g)["call_function"].clear()),
    ("index", "not in the graph", lambda g: with_index(g)["output"].update(ghost={other_node(): None})),
    ("insertion point", "foreign", lambda g: setattr(g, "_anchor", other_node())),
    ("owning module", "conv", lambda g: in_module(g, "conv")),
    ("owning module", "no module", lambda g: in_module(g, "lin.weight.shape")),
]  # fmt: skip


def in_module(graph: Graph, target: str) -> None:
    owner = torch.nn.Module()
    owner.lin = torch.nn.Linear(2, 2)
    graph.owning_module = owner
    graph.create_node("call_module", "lin")
    graph.create_node("call_module", target)


@pytest.mark.parametrize(
    ("rule", "named", "spoil"), BREACHES, ids=[f"{b[0]}-{i}" for i, b in enumerate(BREACHES)]
)
def test_a_broken_invariant_is_found_by_its_rule(
    rule: str, named: str, spoil: Callable[[Graph], object]
) -> None:
    graph = build()
    graph.lint()
    spoil(graph)
    found = [breach for breach in check(graph) if breach.rule == rule]
    assert found
    assert any(named in breach.message for breach in found)
    with pytest.raises(LintError, match=rule) as caught:
        graph.lint()
    assert caught.value.breaches


def test_every_rule_is_broken_above() -> None:
    assert {rule for rule, _, _ in BREACHES} == set(RULES)


def test_a_report_names_every_breach() -> None:
    graph = build()
    put(graph.node_named("mul"), uid=99)
    put(graph.node_named("relu"), _name="class")
    rules = {breach.rule for breach in check(graph)}
    assert {"identity", "names"} <= rules
