"""Replacing patterns gives what eager Python gives for the replaced program, and drops or reorders nothing."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import fx.trace as ft
from fx.ir import Graph, Node
from fx.ir.match import RewriteError


def test_the_example_of_the_manual() -> None:
    def program(x, w1, w2):
        m1 = torch.cat([w1, w2]).sum()
        m2 = torch.cat([w1, w2]).sum()
        return x + torch.max(m1) + torch.max(m2)

    traced = ft.symbolic_trace(program)
    matches = ft.replace_pattern(
        traced, lambda w1, w2: torch.cat([w1, w2]).sum(), lambda w1, w2: torch.stack([w1, w2])
    )
    assert len(matches) == 2
    assert len(traced.graph.find_nodes(op="call_function", target=torch.stack)) == 2
    assert not traced.graph.find_nodes(op="call_function", target=torch.cat)
    x, w1, w2 = torch.ones(2), torch.randn(3), torch.randn(3)
    assert torch.equal(traced(x, w1, w2), x + torch.stack([w1, w2]).max() + torch.stack([w1, w2]).max())
    anchor, nodes_map = matches[0]
    assert isinstance(anchor, Node) and anchor in nodes_map.values()
    assert [node.op for node in nodes_map] == ["placeholder", "placeholder", "call_function", "call_method"]


def replaced(program, pattern, replacement, *args: Any, **options: Any) -> tuple[int, Any]:
    traced = ft.symbolic_trace(program)
    done = ft.replace_pattern_with_filters(traced, pattern, replacement, **options)
    traced.graph.lint()
    return len(done), traced(*args)


def test_back_to_back_matches_and_matches_in_containers_are_replaced() -> None:
    count, result = replaced(
        lambda x: [torch.neg(torch.neg(torch.neg(x))), {"k": (torch.neg(x),)}],
        lambda x: torch.neg(x),
        lambda x: x + 1,
        torch.tensor(1.0),
    )
    assert count == 4 and result == [torch.tensor(4.0), {"k": (torch.tensor(2.0),)}]


def test_of_overlapping_matches_the_first_is_replaced() -> None:
    count, result = replaced(
        lambda x: x.relu().relu().relu(), lambda x: x.relu().relu(), lambda x: x - 5, torch.tensor(1.0)
    )
    assert count == 1 and result == torch.tensor(0.0)


def test_a_value_that_escapes_keeps_its_match_alone() -> None:
    def program(x):
        inner = torch.neg(x)
        return torch.abs(inner), inner

    assert replaced(program, lambda x: torch.abs(torch.neg(x)), lambda x: x * 9, torch.ones(1))[0] == 0
    count, result = replaced(
        program, lambda x: (torch.abs(torch.neg(x)), torch.neg(x)), lambda x: (x, x + 1), torch.ones(1)
    )
    assert count == 0 and result[1] == -1


def test_a_pattern_may_return_several_values() -> None:
    def program(x):
        inner = torch.neg(x)
        return torch.abs(inner) + inner

    def pattern(x):
        inner = torch.neg(x)
        return torch.abs(inner), inner

    count, result = replaced(program, pattern, lambda x: (x * 2, x * 3), torch.tensor(1.0))
    assert count == 1 and result == 5.0


@pytest.mark.parametrize(
    ("literal", "given_literal", "count"),
    [(0.0, -0.0, 0), (-0.0, -0.0, 1), (True, 1, 0), (1, 1, 1), (1, 1.0, 0), (math.inf, math.inf, 1)],
)
def test_literals_are_matched_exactly(literal: Any, given_literal: Any, count: int) -> None:
    program, pattern = (lambda x: torch.add(x, given_literal)), (lambda x: torch.add(x, literal))
    assert replaced(program, pattern, lambda x: x * 2, torch.ones(1))[0] == count
    assert replaced(program, pattern, lambda x: x * 2, torch.ones(1), ignore_literals=True)[0] == 1


def test_parameters_of_the_pattern_stand_for_literals_too() -> None:
    count, result = replaced(
        lambda x: torch.add(x, 3), lambda x, y: torch.add(x, y), lambda x, y: torch.mul(x, y), torch.tensor(2)
    )
    assert count == 1 and result == 6


def test_filters_choose_and_a_callback_computes_the_replacement() -> None:
    def program(x):
        return torch.add(x, 1) * torch.add(x, 2)

    def only_two(match, graph, pattern) -> bool:
        return 2 in [a for node in match.anchors for a in node.args]

    assert replaced(
        program, lambda x, y: torch.add(x, y), lambda x, y: x - y, torch.tensor(5), match_filters=[only_two]
    ) == (1, torch.tensor(18))

    def scaled(match, graph, pattern) -> Graph:
        (literal,) = [value for value in match.placeholder_nodes if not isinstance(value, Node)]
        return ft.Tracer().trace(lambda x, y: x * (10 * literal))

    count, result = replaced(
        program, lambda x, y: torch.add(x, y), None, torch.tensor(5), replacement_callback=scaled
    )
    assert count == 2 and result == 50 * 100


def test_effects_between_and_inside_matches_keep_their_order() -> None:
    def program(x):
        y = torch.neg(x)
        x.add_(1)
        return torch.abs(y), x * 2

    x = torch.tensor([1.0, 2.0])
    count, result = replaced(program, lambda x: torch.abs(torch.neg(x)), lambda x: x * 1, x.clone())
    expected = program(x.clone())
    assert count == 0 and all(map(torch.equal, result, expected))

    def safe(x):
        y = torch.abs(torch.neg(x))
        x.add_(1)
        return y + 0, x * 2

    count, result = replaced(safe, lambda x: torch.abs(torch.neg(x)), lambda x: x * 1, x.clone())
    assert count == 1 and all(map(torch.equal, result, safe(x.clone())))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x).relu()


def test_modules_and_constants_of_a_replacement_are_brought_along_under_free_names() -> None:
    module, other = Block(), Block()
    traced = ft.symbolic_trace(module)
    shift = torch.ones(3)
    assert len(ft.replace_pattern(traced, lambda x: x.relu(), lambda x: x + shift)) == 1
    x = torch.randn(2, 3)
    assert torch.equal(traced(x), module.linear(x) + shift)
    again = ft.symbolic_trace(module)
    assert len(ft.replace_pattern(again, lambda x: x.relu(), ft.symbolic_trace(other))) == 1
    assert torch.equal(again(x), other(module.linear(x)))
    assert again.linear is module.linear


def test_constant_tensors_are_matched_by_value() -> None:
    two, three = torch.tensor(2.0), torch.tensor(3.0)
    program = lambda x: (x * torch.tensor(2.0)) + (x * three)  # noqa: E731
    count, result = replaced(program, lambda x: x * two, lambda x: x - 1, torch.tensor(5.0))
    assert count == 1 and result == 4 + 15


@pytest.mark.parametrize(
    ("given", "sought", "count"),
    [
        (torch.tensor([0.0]), torch.tensor([0.0]), 1),
        (torch.tensor([0.0]), torch.tensor([-0.0]), 0),
        (torch.tensor([math.nan]), torch.tensor([math.nan]), 1),
        (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64), 0),
        (torch.tensor(1j).conj(), torch.tensor(complex(0, -1)), 1),
        (torch.eye(2).to_sparse(), torch.eye(2).to_sparse(), 0),
        (torch.ones(2, 1).expand(2, 3), torch.ones(2, 3), 1),
    ],
)
def test_constant_tensors_match_to_the_bit(given: torch.Tensor, sought: torch.Tensor, count: int) -> None:
    traced = ft.symbolic_trace(lambda x: torch.relu(torch.add(x, given)))
    matches = ft.replace_pattern(traced, lambda x: torch.add(x, sought), lambda x: torch.sub(x, 1))
    assert len(matches) == count


def test_a_module_of_another_type_is_no_match() -> None:
    class Program(nn.Module):
        def __init__(self, layer: nn.Module) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x)

    def matches(layer: nn.Module, sought: nn.Module) -> int:
        traced = ft.symbolic_trace(Program(layer))
        return len(ft.replace_pattern(traced, Program(sought), lambda x: x + 1))

    assert matches(nn.ReLU(), nn.ReLU()) == 1
    assert matches(nn.ReLU(), nn.Tanh()) == 0


def test_a_replacement_that_does_not_fit_changes_nothing() -> None:
    traced = ft.symbolic_trace(lambda x: torch.neg(x))
    before = str(traced.graph)
    with pytest.raises(RewriteError, match="1 placeholders and the replacement 2"):
        ft.replace_pattern(traced, lambda x: torch.neg(x), lambda x, y: x + y)
    with pytest.raises(RewriteError, match="returns 1 values and the replacement 2"):
        ft.replace_pattern(traced, lambda x: torch.neg(x), lambda x: (x + 1, x + 2))
    with pytest.raises(TypeError, match="either"):
        ft.replace_pattern_with_filters(traced, lambda x: torch.neg(x))
    assert str(traced.graph) == before


OPERATIONS = {"neg": torch.neg, "abs": torch.abs, "relu": torch.relu, "exp": torch.exp}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 5), st.integers(0, 5)), max_size=12
    )
)
def test_replacing_a_pattern_by_the_same_computation_keeps_every_result(steps: Any) -> None:
    def program(x):
        values = [x]
        for name, left, right in steps:
            a, b = values[left % len(values)], values[right % len(values)]
            values.append(OPERATIONS[name](a) + b)
        return values

    def pattern(a, b):
        return torch.neg(torch.relu(a) + b)

    def same(a, b):
        return -1 * (torch.clamp(a, min=0) + b)

    def neg_pattern(a, b):
        return torch.neg(a) + b

    def neg_same(a, b):
        return b - a

    x = torch.tensor([0.5, -1.5], dtype=torch.float64)
    traced = ft.symbolic_trace(program)
    ft.replace_pattern(traced, pattern, same)
    matches = ft.replace_pattern(traced, neg_pattern, neg_same)
    traced.graph.lint()
    torch.testing.assert_close(traced(x), program(x), equal_nan=True)
    if any(name == "neg" for name, _, _ in steps):
        assert matches


def test_a_callback_that_raises_leaves_the_module_as_it_was() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return x * self.scale

    traced = ft.symbolic_trace(lambda x: torch.relu(torch.relu(x)))
    before, code, count = str(traced.graph), traced.code, iter(range(9))

    def callback(match, graph, pattern):
        if next(count) == 1:
            raise KeyError("the second match")
        return ft.symbolic_trace(Scaled())

    with pytest.raises(KeyError, match="second match"):
        ft.replace_pattern_with_filters(traced, lambda x: torch.relu(x), replacement_callback=callback)
    assert str(traced.graph) == before and traced.code == code and not list(traced.parameters())


def test_a_replacement_may_return_a_literal() -> None:
    traced = ft.symbolic_trace(lambda x: (torch.relu(x) + 1, torch.numel(x)))
    assert len(ft.replace_pattern(traced, lambda x: torch.numel(x), lambda x: 6)) == 1
    assert traced(torch.ones(2, 3))[1] == 6
