"""Order labels stay right wherever nodes come and go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx.ir import Graph


def labels_grow(graph: Graph) -> bool:
    nodes = list(graph.nodes)
    return all(a < b and not b < a for a, b in zip(nodes, nodes[1:], strict=False))


@pytest.mark.parametrize("place", ["front", "behind the first", "before the last", "middle"])
def test_thousands_of_insertions_at_one_place_keep_the_order(place: str) -> None:
    graph = Graph()
    model = [graph.get_attr("a"), graph.get_attr("b")]
    for i in range(3000):
        position = {
            "front": 0,
            "behind the first": 1,
            "before the last": len(model) - 1,
            "middle": 1 + i // 2,
        }[place]
        with graph.inserting_before(model[position]):
            model.insert(position, graph.get_attr("c"))
    assert list(graph.nodes) == model
    assert labels_grow(graph)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()), max_size=200))
def test_random_insertions_and_moves_keep_the_order(moves: list[tuple[float, float, bool]]) -> None:
    graph = Graph()
    model = [graph.get_attr("a"), graph.get_attr("b")]
    for at, source, is_move in moves:
        anchor = model[int(at * (len(model) - 1))]
        if is_move:
            moved = model[int(source * (len(model) - 1))]
            if moved is not anchor:
                anchor.prepend(moved)
                model.remove(moved)
                model.insert(model.index(anchor), moved)
        else:
            with graph.inserting_before(anchor):
                model.insert(model.index(anchor), graph.get_attr("c"))
    assert list(graph.nodes) == model
    assert list(reversed(graph.nodes)) == model[::-1]
    assert labels_grow(graph)
