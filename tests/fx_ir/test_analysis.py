"""Diff, statistics and topology, beside networkx and brute force."""

from __future__ import annotations

import copy
import operator
import shutil
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx.ir import Graph, MissingLibraryError, Node
from fx.ir.analysis import (
    ancestors,
    critical_path,
    depths,
    descendants,
    diff,
    dominators,
    live_ranges,
    peak_live,
    post_dominators,
    reaches,
    stats,
    to_networkx,
)
from fx.ir.printing.dot import format_dot, format_svg


def random_graph(steps: list[list[int]]) -> Graph:
    graph = Graph()
    nodes = [graph.placeholder("x"), graph.placeholder("y")]
    for inputs in steps:
        nodes.append(graph.call_function(max, tuple(nodes[i % len(nodes)] for i in inputs)))
    return graph


graphs = st.lists(st.lists(st.integers(0, 50), max_size=3), max_size=20).map(random_graph)


@given(graphs)
def test_topology_agrees_with_networkx(graph: Graph) -> None:
    other = to_networkx(graph)
    nodes = list(graph.nodes)
    for node in nodes:
        assert ancestors(node) == networkx.ancestors(other, node)
        assert descendants(node) == networkx.descendants(other, node)
    assert all(reaches(a, b) == (b in networkx.descendants(other, a)) for a in nodes for b in nodes)
    assert (
        max(depths(graph).values())
        == len(critical_path(graph))
        == networkx.dag_longest_path_length(other) + 1
    )
    path = critical_path(graph)
    assert all(a in b.all_input_nodes for a, b in zip(path, path[1:], strict=False))


@given(graphs)
def test_dominators_agree_with_networkx(graph: Graph) -> None:
    for found, forward in ((dominators(graph), True), (post_dominators(graph), False)):
        other: Any = to_networkx(graph) if forward else to_networkx(graph).reverse()
        ends = [node for node in graph.nodes if not (node.all_input_nodes if forward else node.users)]
        other.add_edges_from(("root", node) for node in ends)
        theirs = networkx.immediate_dominators(other, "root")
        assert {node: theirs[node] if theirs[node] != "root" else None for node in graph.nodes} == found


@given(graphs)
def test_live_ranges_hold_every_use_and_nothing_more(graph: Graph) -> None:
    nodes = list(graph.nodes)
    ranges = live_ranges(graph)
    for i, node in enumerate(nodes):
        uses = [j for j, user in enumerate(nodes) if node in user.all_input_nodes]
        assert ranges[node] == (i, max(uses, default=i))
    assert peak_live(graph) == max(
        sum(start <= i <= end for start, end in ranges.values()) for i in range(len(nodes))
    )


def sample() -> Graph:
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    a = graph.call_function(operator.add, (x, y))
    b = graph.call_function(operator.mul, (a, 2))
    c = graph.call_method("relu", (b,))
    d = graph.call_function(operator.neg, (y,))
    graph.output((c, d))
    return graph


def names(nodes: Any) -> list[str]:
    return [str(node) for node in nodes]


def test_a_renamed_graph_shows_no_difference() -> None:
    graph = sample()
    other = copy.deepcopy(graph)
    for i, node in enumerate(other.nodes):
        node.name = f"n{i}"
    changes = diff(graph, other)
    assert not changes
    assert len(changes.renamed) == len(graph.nodes)


def test_added_and_removed_nodes_are_named() -> None:
    graph, other = sample(), sample()
    with other.inserting_after(other.node_named("add")):
        new = other.call_function(operator.pos, (other.node_named("add"),))
    other.node_named("mul").replace_input_with(other.node_named("add"), new)
    there, back = diff(graph, other), diff(other, graph)
    assert names(there.added) == names(back.removed) == ["pos"]
    assert there.removed == back.added == ()
    assert [(change.before.name, change.fields) for change in there.changed] == [("mul", ("args",))]


@pytest.mark.parametrize(
    ("edit", "fields"),
    [
        (lambda node: node.update_arg(1, 3), ("args",)),
        (lambda node: node.update_arg(1, 2.0), ("args",)),
        (lambda node: node.update_arg(1, True), ("args",)),
        (lambda node: node.update_kwarg("k", None), ("kwargs",)),
        (lambda node: setattr(node, "target", operator.sub), ("target",)),
        (lambda node: setattr(node, "type", int), ("type",)),
        (lambda node: node.retarget("call_method", "mul"), ("op", "target")),
    ],
)
def test_one_change_is_one_finding_however_much_depends_on_it(edit: Any, fields: tuple[str, ...]) -> None:
    graph, other = sample(), sample()
    edit(other.node_named("mul"))
    changes = diff(graph, other)
    assert [(change.before.name, change.fields) for change in changes.changed] == [("mul", fields)]
    assert not (changes.added or changes.removed or changes.moved)


def test_moved_nodes_are_the_fewest_that_explain_the_order() -> None:
    graph, other = sample(), sample()
    other.node_named("add").prepend(other.node_named("neg"))
    changes = diff(graph, other)
    assert [(str(a), str(b)) for a, b in changes.moved] == [("neg", "neg")]
    assert not (changes.added or changes.removed or changes.changed)
    assert changes.to_dict()["moved"] == [["neg", "neg"]]


@given(graphs)
def test_a_graph_does_not_differ_from_its_copy(graph: Graph) -> None:
    changes = diff(graph, copy.deepcopy(graph))
    assert not changes
    assert not changes.renamed


@given(graphs, graphs)
def test_every_node_is_accounted_for_in_a_diff(a: Graph, b: Graph) -> None:
    changes = diff(a, b)
    assert len(a.nodes) - len(changes.removed) == len(b.nodes) - len(changes.added)
    assert {node.graph for node in changes.removed} <= {a}
    assert {node.graph for node in changes.added} <= {b}


def test_statistics_of_a_known_graph() -> None:
    numbers = stats(sample())
    assert (numbers.nodes, numbers.edges, numbers.depth) == (7, 7, 5)
    assert numbers.ops == {"call_function": 3, "placeholder": 2, "call_method": 1, "output": 1}
    assert numbers.targets["call_function operator.add"] == 1
    assert numbers.critical_path == ("x", "add", "mul", "relu", "output")
    assert (numbers.widest, numbers.max_fan_out) == ("y", 2)
    assert stats(Graph()).nodes == 0


def test_dot_names_every_node_and_edge() -> None:
    graph = sample()
    text = format_dot(graph, 'a "quoted"\nname')
    assert text.startswith('digraph "a \\"quoted\\"\\nname" {')
    for node in graph.nodes:
        assert f'"{node.name}" [' in text
        assert all(f'"{value}" -> "{node}"' in text for value in node.all_input_nodes)


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_svg_is_drawn_by_graphviz() -> None:
    assert "</svg>" in format_svg(sample())


def test_without_graphviz_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingLibraryError, match="Graphviz"):
        format_svg(sample())


def test_depth_meets_no_recursion_limit() -> None:
    graph = Graph()
    node: Node = graph.placeholder("x")
    for _ in range(5000):
        node = graph.call_function(operator.neg, (node,))
    graph.output(node)
    assert len(critical_path(graph)) == 5002
    assert len(dominators(graph)) == 5002
    assert len(ancestors(node)) == 5000
    assert not diff(graph, copy.deepcopy(graph))
