"""Common subexpressions: what may be merged is, and nothing else."""

import operator
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx.ir import Graph, Node
from fx.ir.cse import eliminate_common_subexpressions


def merged(body: Callable[[Graph, Node], Any]) -> int:
    graph = Graph()
    graph.output(body(graph, graph.placeholder("x")))
    found = eliminate_common_subexpressions(graph)
    graph.lint()
    assert not set(found) & {node.name for node in graph.nodes}
    assert all(node in graph.nodes for node in found.values())
    return len(found)


def sum_of(graph: Graph, left: Any, right: Any) -> Node:
    return graph.call_function(operator.add, (left, right))


def test_the_same_on_the_same_is_computed_once_also_in_chains() -> None:
    assert merged(lambda g, x: sum_of(g, sum_of(g, sum_of(g, x, 1), 2), sum_of(g, sum_of(g, x, 1), 2))) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [(0.0, -0.0), (1, True), (1, 1.0), ([1], (1,)), ("a", b"a"), (slice(1), slice(2)), ({"a": 1}, {"a": 2})],
)
def test_values_that_only_look_equal_are_kept_apart(first: Any, second: Any) -> None:
    assert merged(lambda g, x: sum_of(g, sum_of(g, x, first), sum_of(g, x, second))) == 0
    assert merged(lambda g, x: sum_of(g, sum_of(g, x, first), sum_of(g, x, first))) == 1


def test_nothing_is_merged_across_effects_or_into_what_is_changed_in_place() -> None:
    def across(graph: Graph, x: Node) -> Node:
        first = graph.call_function(operator.getitem, (x, 0))
        graph.call_method("add_", (x, 1))
        return sum_of(graph, first, graph.call_function(operator.getitem, (x, 0)))

    def into(graph: Graph, x: Node) -> Node:
        first, second = sum_of(graph, x, 1), sum_of(graph, x, 1)
        graph.call_method("add_", (graph.call_method("view", (first, 3)), 1))
        return sum_of(graph, first, second)

    assert merged(across) == merged(into) == 0


def test_impure_calls_and_two_results_stay() -> None:
    assert merged(lambda g, x: (g.call_function(print, (x,)), g.call_function(print, (x,)))) == 0
    assert merged(lambda g, x: (sum_of(g, x, 1), sum_of(g, x, 1))) == 0
    assert merged(lambda g, x: (sum_of(g, x, 1), sum_of(g, sum_of(g, x, 1), 2))) == 1


def test_a_caller_may_say_what_is_impure() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(sum_of(graph, graph.call_method("f", (x,)), graph.call_method("f", (x,))))
    assert not eliminate_common_subexpressions(graph, lambda node: node.target == "f")
    assert list(eliminate_common_subexpressions(graph)) == ["f_1"]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), max_size=20), st.integers()
)
def test_values_stay_what_they_were(steps: list[tuple[int, int, int]], x: int) -> None:
    functions = (operator.add, operator.sub, operator.mul)
    graph = Graph()
    nodes = [graph.placeholder("x")]
    for function, left, right in steps:
        args = (nodes[left % len(nodes)], nodes[right % len(nodes)])
        nodes.append(graph.call_function(functions[function], args))
    graph.output(tuple(nodes))

    before = run(graph, x)
    eliminate_common_subexpressions(graph)
    graph.lint()
    assert run(graph, x) == before


def run(graph: Graph, x: int) -> list[int]:
    """What the output's nodes are, computed one by one."""
    env: dict[Any, Any] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            env[node] = x
        elif node.op == "call_function":
            env[node] = cast("Callable[..., int]", node.target)(*[env[arg] for arg in node.args])
    return [env[node] for node in cast("tuple[Node, ...]", graph.output_node().args[0])]
