"""Queries, subgraph matching and rewriting, beside torch.fx where it does the same."""

from __future__ import annotations

import operator
from typing import Any, cast

import pytest
import torch
import torch.fx
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx.subgraph_rewriter import replace_pattern

from fx.ir import Graph, GraphError, Node
from fx.ir.match import (
    ANY,
    NodePattern,
    PatternError,
    RewriteError,
    find_matches,
    parse_pattern,
    rewrite,
    select,
)


def sample() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    a = graph.call_function(operator.add, (x, 1))
    b = graph.call_function(torch.add, (a, x), {"alpha": 2})
    c = graph.call_method("relu", (b,))
    d = graph.call_function(torch.cat, ((a, c), [0]))
    graph.output(d)
    return graph


QUERIES: list[tuple[NodePattern | str, list[str]]] = [
    (NodePattern(), ["x", "add", "add_1", "relu", "cat", "output"]),
    (NodePattern(op="call_function"), ["add", "add_1", "cat"]),
    (NodePattern(op="call_function", target=torch.add), ["add_1"]),
    (NodePattern(target="torch.*"), ["add_1", "cat"]),
    (NodePattern(target="add"), ["add", "add_1"]),
    (NodePattern(name="add*", users=2), ["add"]),
    (NodePattern(args=(ANY, 1)), ["add"]),
    (NodePattern(args=(ANY, True)), []),
    (NodePattern(kwargs={"alpha": 2}), ["add_1"]),
    ("add(_, _)", ["add", "add_1"]),
    ("operator.add(x, 1)", ["add"]),
    ("torch.add(add(x, 1), x, alpha=_)", ["add_1"]),
    ("torch.add(add(x, 2), x)", []),
    ("relu(...)", ["relu"]),
    ("cat((add, relu(_)), [0])", ["cat"]),
    ("cat([add, relu(_)], [0])", []),
    ("add_1", ["add_1"]),
    ("_", ["x", "add", "add_1", "relu", "cat", "output"]),
]


@pytest.mark.parametrize(("pattern", "names"), QUERIES, ids=[str(q[0]) for q in QUERIES])
def test_queries_find_what_they_describe(pattern: NodePattern | str, names: list[str]) -> None:
    wanted = parse_pattern(pattern) if isinstance(pattern, str) else pattern
    assert [node.name for node in select(sample(), wanted)] == names


@pytest.mark.parametrize("text", ["add(", "1", "a + b", "add(**x)", "add(lambda: 1)", "", "[x]", "\0"])
def test_text_that_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(PatternError):
        parse_pattern(text)


def build(function: Any, *names: str) -> Graph:
    """A graph from a function of (graph, placeholders...)."""
    graph = Graph()
    graph.output(function(graph, *[graph.placeholder(name) for name in names]))
    return graph


def add_relu(graph: Graph, a: Node, b: Node | int) -> Node:
    return graph.call_function(torch.relu, (graph.call_function(torch.add, (a, b)),))


def test_a_match_maps_the_pattern_to_the_graph() -> None:
    pattern = build(add_relu, "a", "b")
    graph = build(lambda g, x: add_relu(g, add_relu(g, x, x), x), "x")
    matches = find_matches(graph, pattern)
    assert [str(match.anchors[0]) for match in matches] == ["relu", "relu_1"]
    assert {str(k): str(v) for k, v in matches[1].nodes.items()} == {
        "relu": "relu_1", "add": "add_1", "a": "relu", "b": "x",
    }  # fmt: skip


def test_the_same_placeholder_stands_for_the_same_node() -> None:
    pattern = build(lambda g, a: add_relu(g, a, a), "a")
    graph = build(lambda g, x, y: (add_relu(g, x, y), add_relu(g, y, y)), "x", "y")
    assert [str(match.anchors[0]) for match in find_matches(graph, pattern)] == ["relu_1"]


def test_inner_nodes_with_users_outside_are_no_match() -> None:
    def leaky(graph: Graph, x: Node) -> Any:
        relu = add_relu(graph, x, x)
        return relu, relu.args[0]

    assert find_matches(build(leaky, "x"), build(add_relu, "a", "b")) == []


def test_placeholders_stand_for_values_only_when_allowed() -> None:
    pattern = build(add_relu, "a", "b")
    graph = build(lambda g, x: add_relu(g, x, 1), "x")
    assert find_matches(graph, pattern) == []
    [match] = find_matches(graph, pattern, literals=True)
    assert match.nodes[pattern.node_named("b")] == 1


def test_overlapping_matches_are_left_out_unless_wanted() -> None:
    def chain(graph: Graph, x: Node) -> Node:
        for _ in range(4):
            x = graph.call_method("f", (x,))
        return x

    pattern = build(lambda g, a: g.call_method("f", (g.call_method("f", (a,)),)), "a")
    graph = build(chain, "x")
    assert [str(match.anchors[0]) for match in find_matches(graph, pattern)] == ["f_1", "f_3"]
    assert len(find_matches(graph, pattern, overlapping=True)) == 3


def test_a_pattern_may_return_several_values() -> None:
    def two(graph: Graph, a: Node) -> Any:
        inner = graph.call_method("f", (a,))
        return graph.call_method("g", (inner,)), graph.call_method("h", (inner,))

    def swapped(graph: Graph, a: Node) -> Any:
        both = graph.call_method("both", (a,))
        return graph.call_function(operator.getitem, (both, 0)), graph.call_function(
            operator.getitem, (both, 1)
        )

    graph = build(lambda g, x: [*two(g, x), *two(g, x)], "x")
    assert len(rewrite(graph, build(two, "a"), build(swapped, "a"))) == 2
    graph.lint()
    assert [node.name for node in graph.nodes if node.op == "call_method"] == ["both", "both_1"]
    assert str(graph.output_node().args[0]) == "[getitem, getitem_1, getitem_2, getitem_3]"


def test_a_rewrite_may_return_an_input_and_may_follow_another() -> None:
    pattern = build(lambda g, a: g.call_method("f", (g.call_method("f", (a,)),)), "a")

    def chain(graph: Graph, x: Node) -> Node:
        for _ in range(6):
            x = graph.call_method("f", (x,))
        return x

    graph = build(chain, "x")
    assert len(rewrite(graph, pattern, build(lambda g, a: a, "a"))) == 3
    graph.lint()
    assert [node.name for node in graph.nodes] == ["x", "output"]
    graph = build(chain, "x")
    done = rewrite(graph, pattern, build(lambda g, a: g.call_method("g", (a,)), "a"))
    assert [str(rewritten.results[0]) for rewritten in done] == ["g", "g_1", "g_2"]
    assert str(graph.output_node().args[0]) == "g_2"
    graph.lint()


def test_replacements_that_do_not_fit_change_nothing() -> None:
    graph = build(lambda g, x: add_relu(g, x, x), "x")
    before = str(graph)
    pattern = build(add_relu, "a", "b")
    for wrong in (
        build(lambda g, a: a, "a"),
        build(lambda g, a, b: (a, b), "a", "b"),
    ):
        with pytest.raises(RewriteError):
            rewrite(graph, pattern, wrong)
        assert str(graph) == before
    with pytest.raises(GraphError, match="at least one operation"):
        find_matches(graph, build(lambda g, a: a, "a"))


def test_a_replacement_may_return_a_literal() -> None:
    graph = build(lambda g, x: [add_relu(g, x, x), {"key": add_relu(g, x, x)}], "x")
    done = rewrite(graph, build(add_relu, "a", "b"), build(lambda g, a, b: 1, "a", "b"))
    assert [rewritten.results for rewritten in done] == [(1,), (1,)]
    graph.lint()
    assert graph.output_node().args[0] == [1, {"key": 1}]
    assert [node.name for node in graph.nodes] == ["x", "output"]


def test_what_became_a_literal_is_a_literal_to_later_matches() -> None:
    pattern = build(lambda g, a: g.call_method("f", (a,)), "a")
    parameter = pattern.node_named("a")
    graph = build(lambda g, x: g.call_method("f", (g.call_method("f", (x,)),)), "x")
    done = rewrite(
        graph,
        pattern,
        build(lambda g, a: 7, "a"),
        accept=lambda match: match.nodes[parameter] is graph.node_named("x"),
    )
    assert len(done) == 1 and graph.node_named("f_1").args == (7,)
    again = rewrite(graph, pattern, build(lambda g, a: g.call_method("g", (a, a)), "a"), literals=True)
    assert [rewritten.created[0].args for rewritten in again] == [(7, 7)]
    chain = build(lambda g, x: g.call_method("f", (g.call_method("f", (x,)),)), "x")
    answers = iter([build(lambda g, a: 7, "a"), build(lambda g, a: g.call_method("g", (a,)), "a")])
    rewrite(chain, pattern, lambda match: next(answers))
    chain.lint()
    assert chain.node_named("g").args == (7,)


def test_a_replacement_may_return_one_value_for_two() -> None:
    def two(graph: Graph, a: Node) -> Any:
        return graph.call_method("f", (a,)), graph.call_method("g", (a,))

    def one(graph: Graph, a: Node) -> Any:
        both = graph.call_method("h", (a,))
        return both, both

    graph = build(lambda g, x: two(g, x), "x")
    [done] = rewrite(graph, build(two, "a"), build(one, "a"))
    assert done.results == (done.created[0], done.created[0])
    assert str(graph.output_node().args[0]) == "(h, h)"
    graph.lint()
    doubled = build(lambda g, a: (g.call_method("f", (a,)),) * 2, "a")
    with pytest.raises(RewriteError, match="twice"):
        rewrite(build(two, "x"), doubled, build(lambda g, a: (a, g.call_method("h", (a,))), "a"))


def test_a_function_that_raises_or_does_not_fit_leaves_the_graph_as_it_was() -> None:
    pattern = build(lambda g, a: g.call_method("f", (a,)), "a")
    for bad in (lambda: 1 / 0, lambda: build(lambda g, a, b: g.call_method("h", (a,)), "a", "b")):
        graph = build(lambda g, x: g.call_method("f", (g.call_method("f", (x,)),)), "x")
        before, count = str(graph), iter(range(9))

        def answer(match: Any, bad: Any = bad, count: Any = count) -> Any:
            return build(lambda g, a: g.call_method("g", (a,)), "a") if next(count) == 0 else bad()

        with pytest.raises((ZeroDivisionError, RewriteError)):
            rewrite(graph, pattern, answer)
        assert str(graph) == before


def test_parts_that_nothing_connects_are_put_together_in_order_and_in_linear_time() -> None:
    def two(graph: Graph, a: Node, b: Node) -> Any:
        return graph.call_method("f", (a,)), graph.call_method("g", (graph.call_method("h", (b,)),))

    def many(graph: Graph, x: Node) -> Any:
        lonely = [graph.call_method("g", (x,)) for _ in range(10_000)]  # candidates that match nothing
        made = [two(graph, x, x) for _ in range(10_000)]
        return lonely, made

    graph = build(many, "x")
    pattern = build(two, "a", "b")
    found = find_matches(graph, pattern)
    assert len(found) == 10_000
    made: Any = cast("Any", graph.output_node().args[0])[1]
    assert [match.anchors for match in found] == [tuple(pair) for pair in made]
    assert len(find_matches(build(lambda g, x: [*two(g, x, x), g.call_method("f", (x,))], "x"), pattern)) == 1


def test_anchors_may_be_connected_by_a_later_one() -> None:
    def three(graph: Graph, a: Node, b: Node) -> Any:
        return graph.call_method("f", (a,)), graph.call_method("g", (b,)), graph.call_method("add", (a, b))

    graph = build(lambda g, x, y: [*three(g, x, y), *three(g, y, x)], "x", "y")
    found = find_matches(graph, build(three, "a", "b"))
    assert [[str(node) for node in match.anchors] for match in found] == [
        ["f", "g", "add"],
        ["f_1", "g_1", "add_1"],
    ]


def test_a_caller_may_say_which_operations_are_the_same() -> None:
    def relu(node: Node) -> bool:
        return node.target in ("relu", torch.relu)

    graph = build(lambda g, x: [g.call_method("relu", (x,)), g.call_function(torch.relu, (x,))], "x")
    pattern = build(lambda g, a: g.call_method("relu", (a,)), "a")
    assert len(find_matches(graph, pattern)) == 1
    found = find_matches(graph, pattern, same=lambda wanted, node: relu(wanted) and relu(node))
    assert [match.anchors[0].op for match in found] == ["call_method", "call_function"]


def test_accept_and_a_function_decide_match_by_match() -> None:
    pattern = build(lambda g, a, b: g.call_function(operator.add, (a, b)), "a", "b")
    graph = build(lambda g, x: [g.call_function(operator.add, (x, i)) for i in range(4)], "x")

    def constant(match: Any) -> Graph:
        number = match.nodes[pattern.node_named("b")]
        return build(lambda g, a, b: g.call_function(operator.mul, (a, number * 10)), "a", "b")

    done = rewrite(
        graph,
        pattern,
        constant,
        literals=True,
        accept=lambda match: match.nodes[pattern.node_named("b")] != 2,
    )
    assert len(done) == 3
    graph.lint()
    assert [node.args[1] for node in graph.nodes if node.op == "call_function"] == [0, 10, 2, 30]


OPS: list[Any] = [torch.relu, torch.sigmoid, torch.tanh]


def random_graph(make: Any, steps: list[tuple[int, int, int]]) -> Any:
    graph = make()
    values = [graph.placeholder("x")]
    for op, left, right in steps:
        a, b = values[left % len(values)], values[right % len(values)]
        made = graph.call_function(torch.add, (a, b)) if op == 3 else graph.call_function(OPS[op], (a,))
        values.append(made)
    graph.output(tuple(values[-3:]))
    return graph


def pattern_module(x: Any) -> Any:
    return torch.sigmoid(torch.relu(x))


def replacement_module(x: Any) -> Any:
    return torch.tanh(x)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=14))
def test_rewriting_gives_what_torch_gives(steps: list[tuple[int, int, int]]) -> None:
    theirs = torch.fx.GraphModule(torch.nn.Module(), random_graph(torch.fx.Graph, steps))
    count = len(replace_pattern(theirs, pattern_module, replacement_module))
    ours = random_graph(Graph, steps)
    pattern = build(lambda g, x: g.call_function(torch.sigmoid, (g.call_function(torch.relu, (x,)),)), "x")
    done = rewrite(ours, pattern, build(lambda g, x: g.call_function(torch.tanh, (x,)), "x"))
    ours.lint()
    assert len(done) == count
    assert structure(ours) == structure(theirs.graph)


def structure(graph: Any) -> Any:
    """What the output computes, with nodes as nested tuples."""
    values: dict[Any, Any] = {}
    for node in graph.nodes:
        args = tuple(values.get(arg, arg) if hasattr(arg, "op") else arg for arg in node.args)
        if node.op == "output":
            return [values[arg] for arg in node.args[0]]
        values[node] = (node.op, str(node.target), args)
    return None
