"""Every operation on a graph far deeper than Python's stack."""

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.ir_scale import operations
from fx.ir import Graph, Node, cse, dumps, loads, map_aggregate, map_arg
from fx.ir.analysis import diff, stats, to_networkx
from fx.ir.errors import ArgumentError
from fx.ir.lint import check
from fx.ir.match import find_matches
from fx.ir.printing.dot import format_dot


def test_every_operation_works_on_a_deep_graph() -> None:
    seen = set()
    for name, run in operations(20_000):
        run()
        seen.add(name)
    assert len(seen) == 28


@pytest.mark.parametrize("size", [1, 2, 7])
def test_every_operation_works_on_a_small_graph(size: int) -> None:
    for _, run in operations(size):
        run()


NESTINGS: dict[str, Callable[[Any], Any]] = {
    "list": lambda value: [value],
    "tuple": lambda value: (1, value),
    "dict": lambda value: {"k": value},
    "slice": lambda value: slice(value, None),
}


def nested(kind: str, depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = NESTINGS[kind](value)
    return value


def one_nested(kind: str, depth: int) -> tuple[Graph, Node]:
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(operator.neg, (nested(kind, depth, x),), {"k": nested(kind, depth - 1, x)})
    graph.output(node)
    return graph, node


@pytest.mark.parametrize("kind", NESTINGS)
def test_every_operation_works_on_the_deepest_arguments(kind: str) -> None:
    graph, node = one_nested(kind, 100)
    [x] = node.all_input_nodes
    assert check(graph) == []
    graph.lint()
    assert map_arg(node.args, lambda _: 1) == nested_tuple(kind, 1)
    assert map_aggregate(node.args, lambda value: value) == node.args
    for duplicate in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph)), loads(dumps(graph))):
        assert not diff(graph, duplicate)
        assert str(duplicate) == str(graph)
    assert len(find_matches(graph, copy.deepcopy(graph))) == 1
    assert stats(graph).nodes == to_networkx(graph).number_of_nodes() == 3
    assert format_dot(graph)
    with graph.inserting_before(node):
        y = graph.call_function(operator.pos, (x,))
        again = graph.node_copy(node)
    node.replace_all_uses_with(again)
    x.replace_all_uses_with(y, lambda user: user is again)
    assert again.all_input_nodes == [y]
    cse.eliminate_common_subexpressions(graph)
    graph.eliminate_dead_code()
    assert node._erased
    graph.lint()


def nested_tuple(kind: str, value: Any) -> Any:
    return (nested(kind, 100, value),)


@pytest.mark.parametrize("kind", NESTINGS)
@pytest.mark.parametrize("depth", [101, 100_000])
def test_deeper_arguments_are_refused_and_change_nothing(kind: str, depth: int) -> None:
    graph, node = one_nested(kind, 100)
    [x] = node.all_input_nodes
    deep = nested(kind, depth, x)
    before = str(graph)
    edits: list[Callable[[], object]] = [
        lambda: graph.call_function(operator.neg, (deep,)),
        lambda: setattr(node, "args", (deep,)),
        lambda: setattr(node, "kwargs", {"k": deep}),
        lambda: node.update_arg(0, deep),
        lambda: node.update_kwarg("k", deep),
        lambda: node.insert_arg(0, deep),
    ]
    for edit in edits:
        with pytest.raises(ArgumentError, match="100 deep"):
            edit()
        assert str(graph) == before
        graph.lint()
    if depth > 10_000:
        with pytest.raises(ArgumentError, match="100 deep"):
            map_arg(deep, lambda value: value)
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(ArgumentError, match="holds itself"):
        graph.output(ring)


def test_meta_that_nests_without_end_is_no_plain_data() -> None:
    graph, node = one_nested("list", 1)
    ring: list[Any] = []
    ring.append(ring)
    node.meta.update(deep=nested("list", 100_000, 1), ring=ring, fine=nested("tuple", 100, 1))
    assert loads(dumps(graph)).node_named("neg").meta == {"fine": nested("tuple", 100, 1)}


@pytest.mark.parametrize("depth", [3, 20_000])
def test_nested_graphs_may_nest_deeper_than_the_stack(depth: int) -> None:
    top = graph = Graph()
    for _ in range(depth):
        inner = Graph()
        inner.call_function(operator.neg, (1,))  # dead
        graph.output(graph.create_node("get_attr", "inner"))
        graph.nested["inner"] = inner
        graph = inner
    graph.output(1)
    for duplicate in (copy.deepcopy(top), pickle.loads(pickle.dumps(top)), loads(dumps(top))):
        assert not diff(top, duplicate)
    assert top.eliminate_dead_code()
    top.lint()
