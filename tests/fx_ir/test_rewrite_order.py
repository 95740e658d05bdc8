"""Rewriting moves nothing across an effect, and tells literals apart that compare equal."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest

from fx.ir import Graph
from fx.ir.match import find_matches, rewrite


def double(value: Any) -> Any:
    return value * 2


def pattern_of_neg_abs() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.abs, (graph.call_function(operator.neg, (x,)),)))
    return graph


def replacement() -> Graph:
    graph = Graph()
    graph.output(graph.call_function(double, (graph.placeholder("x"),)))
    return graph


def test_the_replacement_stands_where_the_match_stood_in_front_of_a_later_effect() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    found = graph.call_function(operator.abs, (graph.call_function(operator.neg, (x,)),))
    graph.call_method("add_", (x, 1))
    graph.output(graph.call_function(operator.pos, (found,)))
    assert len(rewrite(graph, pattern_of_neg_abs(), replacement())) == 1
    assert [node.target for node in graph.nodes][1:4] == [double, "add_", operator.pos]
    graph.lint()


def test_a_match_with_an_effect_in_its_midst_is_left_alone() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    inner = graph.call_function(operator.neg, (x,))
    graph.call_method("add_", (x, 1))
    graph.output(graph.call_function(operator.abs, (inner,)))
    before = str(graph)
    assert rewrite(graph, pattern_of_neg_abs(), replacement()) == []
    assert str(graph) == before


@pytest.mark.parametrize(
    ("wanted", "given", "same"),
    [
        (0.0, -0.0, False),
        (-0.0, -0.0, True),
        (True, 1, False),
        (1.0, 1, False),
        (math.nan, float("nan"), True),
    ],
)
def test_literals_match_exactly(wanted: object, given: object, same: bool) -> None:
    def graph_with(literal: object) -> Graph:
        graph = Graph()
        graph.output(graph.call_function(operator.add, (graph.placeholder("x"), literal)))
        return graph

    assert bool(find_matches(graph_with(given), graph_with(wanted))) is same
