"""Sizes and integers that vary: one capture serves them all, and never a wrong result."""

import contextlib
import inspect
import math
import operator
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

import dynamo.eval as dynamo
from dynamo.eval.backends.testing import CompileCounter
from tests.oracle.eager import assert_like_eager


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    torch.manual_seed(0)
    yield
    dynamo.reset()


def alike(met: Any, expected: Any) -> None:
    """The same values of the same types, inside containers too."""
    assert type(met) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert (
            met.shape == expected.shape and met.stride() == expected.stride() and met.dtype == expected.dtype
        )
        torch.testing.assert_close(met, expected, rtol=0, atol=0)
    elif isinstance(expected, tuple | list) and not isinstance(expected, torch.Size):
        assert len(met) == len(expected)
        for ours, theirs in zip(met, expected, strict=True):
            alike(ours, theirs)
    else:
        assert met == expected


def count(fn: Callable[..., Any], calls: list[tuple[Any, ...]], **options: Any) -> int:
    """Call captured and plain with each of `calls`; the number of graphs that it took."""
    counter = CompileCounter()
    captured = dynamo.optimize(counter, nopython=True, **options)(fn)
    for args in calls:
        alike(captured(*args), fn(*args))
    return counter.frame_count


# -- when a size becomes a symbol ------------------------------------------------------------------------------


def pooled(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(x.shape[0] * x.shape[1], -1).sum(0) / x.shape[0]


SIZES = [(torch.randn(size, 3, 2),) for size in (4, 5, 6, 9, 2)]


def test_the_second_size_makes_a_symbol_and_the_third_is_a_hit() -> None:
    assert count(pooled, SIZES) == 2


def test_sizes_are_taken_as_they_are_where_that_is_asked() -> None:
    assert count(pooled, SIZES, dynamic=False) == 5
    dynamo.reset()
    with dynamo.config.patch(automatic_dynamic_shapes=False):
        assert count(pooled, SIZES) == 5


def test_all_sizes_are_symbols_from_the_start_where_that_is_asked() -> None:
    assert count(pooled, [*SIZES, (torch.randn(7, 8, 9),)], dynamic=True) == 1


def test_sizes_zero_and_one_have_captures_of_their_own() -> None:
    calls = [(torch.randn(size, 3, 2),) for size in (4, 1, 5, 6, 1, 7)]
    assert count(pooled, calls) == 3


def test_an_integer_that_varies_is_an_input() -> None:
    def first(x: torch.Tensor, n: int) -> tuple[torch.Tensor, int]:
        return x[:n] * n, n + 1

    x = torch.randn(20)
    assert count(first, [(x, 3), (x, 4), (x, 5), (x, 17)]) == 2
    assert count(first, [(x, True), (x, 0)]) == 2


def test_an_integer_attribute_that_counts_calls_is_an_input() -> None:
    class Counting:
        calls = 0

        def step(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x * self.calls

    ours, plain = Counting(), Counting()
    counter = CompileCounter()
    captured = dynamo.optimize(counter)(ours.step)
    for _ in range(6):
        x = torch.randn(3)
        alike(captured(x), plain.step(x))
        assert ours.calls == plain.calls
    assert counter.frame_count <= 3


class Box:
    def __init__(self, value: int) -> None:
        self.value = value


def test_inputs_whose_sources_are_written_alike_are_told_apart() -> None:
    def alike_in_name(x: torch.Tensor, box: Box, box_value: int) -> tuple[torch.Tensor, int, int]:
        return x * box.value + box_value, box.value + box_value, box.value

    calls = [(torch.ones(3), Box(3 * number), 100 * number) for number in range(2, 8)]
    assert_like_eager(dynamo.optimize("eager", dynamic=True), alike_in_name, calls)


def test_an_integer_attribute_read_twice_is_one_input() -> None:
    def twice(x: torch.Tensor, box: Box) -> tuple[torch.Tensor, bool]:
        first = box.value
        second = box.value
        return x + first * second, first is second

    calls = [(torch.ones(3), Box(3 * number)) for number in range(1000, 1008)]
    assert_like_eager(dynamo.optimize("eager"), twice, calls)


def test_equal_sizes_stay_equal_or_are_captured_again() -> None:
    def both(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y if x.shape == y.shape else x.sum() + y.sum()

    def pair(first: int, second: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(first), torch.randn(second)

    assert count(both, [pair(3, 3), pair(4, 4), pair(5, 5), pair(5, 6), pair(7, 8), pair(9, 9)]) <= 4


def test_parameters_keep_their_sizes() -> None:
    class Scaled(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(width))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    counter = CompileCounter()
    for width in (2, 3, 4):
        module = Scaled(width)
        x = torch.randn(5, width)
        alike(dynamo.optimize(counter, nopython=True)(module)(x), module(x))
    assert counter.frame_count == 3


# -- what code does with them ----------------------------------------------------------------------------------


def branching(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] > 4 else x - 1


def test_a_branch_on_a_size_bounds_it() -> None:
    calls = [(torch.randn(size),) for size in (6, 7, 8, 3, 2, 4, 5)]
    assert count(branching, calls) == 3


def unrolled(x: torch.Tensor) -> torch.Tensor:
    total = x[0]
    for i in range(1, x.shape[0]):
        total = total + x[i] * i
    return total


def formatted(x: torch.Tensor) -> tuple[torch.Tensor, str]:
    return x + 1, f"{x.shape[0]} rows"


def keyed(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    return x * 2, {3: 30, 4: 40, 5: 50, 6: 60}[x.shape[0]]


@pytest.mark.parametrize("fn", [unrolled, formatted, keyed])
def test_code_that_needs_the_number_itself_gets_a_capture_for_each(fn: Callable[..., Any]) -> None:
    assert count(fn, [(torch.randn(size, 2),) for size in (3, 4, 5, 6)]) == 4


def of_every_kind(x: torch.Tensor) -> tuple[Any, ...]:
    rows, columns = x.size()
    return (
        x.new_zeros(rows, columns + 1),
        torch.arange(rows * 2),
        x[: rows // 2],
        x[rows - 1],
        x.view(columns, rows).t().contiguous(),
        torch.cat([x, x[1:]]).shape,
        x.numel(),
        len(x),
        x.stride(),
        x.shape.numel() % 7,
        rows / columns,
        -rows,
        x.shape[-2:],
        [rows, {"columns": columns}["columns"]],
        x.expand(3, rows, columns).sum((1, 2)),
        torch.ones(x.shape) * rows,
        x.nbytes,
        min(rows, 4),
        rows == columns,
        x.shape == (rows, columns),
        x.shape == [rows, columns],  # type: ignore[comparison-overlap]  # never equal, and no error
        x > rows,
        [0] * (rows // rows),
        rows in (3, 11),
        int(rows) + 1,
        rows is None,
    )


def test_numbers_come_out_as_python_makes_them() -> None:
    assert (
        count(of_every_kind, [(torch.randn(size, 6),) for size in (8, 9, 10, 20)]) <= 4
    )  # `rows in (…)` needs the number


def test_operators_that_torch_writes_in_cpp_keep_sizes_free() -> None:
    def padded(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        wide = nn.functional.pad(torch.cat([x, y]), (0, 3)).view(2, -1)
        return nn.functional.interpolate(wide[None], scale_factor=2.0).squeeze(0)

    assert count(padded, [(torch.randn(size, 3), torch.randn(size + 2, 3)) for size in (4, 5, 6, 9)]) == 2


def test_a_graph_break_hands_numbers_to_the_rest() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        rows = x.shape[0] * 2
        y = x + rows
        dynamo.graph_break()
        return y.repeat(2)[:rows] * rows

    counter = CompileCounter()
    captured = dynamo.optimize(counter)(broken)
    for size in (4, 5, 6, 7, 8):
        x = torch.randn(size)
        alike(captured(x), broken(x))
    assert counter.frame_count <= 5


NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in (
        "add",
        "sub",
        "mul",
        "floordiv",
        "mod",
        "truediv",
        "lt",
        "le",
        "eq",
        "ne",
        "gt",
        "ge",
        "pow",
        "and_",
    )
}


def power_within_reach(base: Any, exponent: Any) -> Any:
    """``base ** exponent``, refused where Python itself would fill the memory: powers of powers."""
    assume(not isinstance(exponent, int) or abs(exponent) * base_bits(base) < 4096)
    return base**exponent


def base_bits(base: Any) -> int:
    return base.bit_length() if isinstance(base, int) else 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(NUMBERS)), st.integers(-3, 5), st.booleans()), min_size=1, max_size=4
    ),
    st.lists(st.tuples(st.integers(2, 9), st.integers(-4, 9)), min_size=3, max_size=5),
)
def test_arithmetic_is_that_of_python(
    steps: list[tuple[str, int, bool]], calls: list[tuple[int, int]]
) -> None:
    def reckon(number: Any, other: Any, operations: dict[str, Callable[[Any, Any], Any]]) -> Any:
        for name, constant, swap in steps:
            operand = other if constant == 5 else constant
            number = operations[name](operand, number) if swap else operations[name](number, operand)
            other = other + 1
        return number

    def program(x: torch.Tensor, n: int) -> Any:
        return x + 1, reckon(x.shape[0], n, NUMBERS)

    for size, n in calls:
        with contextlib.suppress(ArithmeticError, TypeError, ValueError):
            reckon(size, n, NUMBERS | {"pow": power_within_reach})
    dynamo.reset()
    captured = dynamo.optimize("eager")(program)
    for size, n in calls:
        x = torch.randn(size)
        try:
            expected = program(x, n)
        except (ArithmeticError, TypeError, ValueError) as error:
            with pytest.raises(type(error)) as met:
                captured(x, n)
            assert str(met.value) == str(error)
        else:
            met_value = captured(x, n)
            if any(isinstance(each, float) and math.isnan(each) for each in expected):
                continue
            alike(met_value, expected)


# -- marks ------------------------------------------------------------------------------------------------------


def test_a_marked_dimension_is_a_symbol_at_once() -> None:
    x = torch.randn(4, 3)
    dynamo.mark_dynamic(x, 0)
    assert count(pooled3, [(x,), (torch.randn(5, 3),), (torch.randn(9, 3),)]) == 1


def pooled3(x: torch.Tensor) -> torch.Tensor:
    return x.sum(0) * x.shape[0]


def test_a_marked_dimension_that_cannot_be_free_is_an_error_with_the_reason() -> None:
    x = torch.randn(4, 3)
    dynamo.mark_dynamic(x, 0)
    with pytest.raises(dynamo.UsageError, match=r"x\.size\(\)\[0\].* constant \(4\)") as met:
        dynamo.optimize("eager")(unrolled)(x)
    line = line_of(unrolled, "for i in")
    assert f"x.size()[0] == 4 is asked for by {line}, 'for i in range(1, x.shape[0]):'" in str(met.value)
    assert "TORCH_LOGS" not in str(met.value)
    small = torch.randn(1, 3)
    dynamo.mark_dynamic(small, 0)
    with pytest.raises(dynamo.UsageError, match="dimension 0 of x was marked dynamic, but has size 1"):
        dynamo.optimize("eager")(pooled3)(small)
    with pytest.raises(IndexError, match="no dimension 2"):
        dynamo.mark_dynamic(x, 2)


def test_weak_marks_and_static_marks() -> None:
    x = torch.randn(4, 3)
    dynamo.maybe_mark_dynamic(x, [0])
    assert count(unrolled, [(x,), (torch.randn(5, 3),)]) == 2
    dynamo.reset()
    calls = []
    for size in (4, 5, 6):
        y = torch.randn(size, 3)
        dynamo.mark_static(y)
        calls.append((y,))
    assert count(pooled3, calls) == 3


def test_bounds_of_a_mark_are_guarded() -> None:
    x = torch.randn(4, 3)
    dynamo.mark_dynamic(x, 0, min=3, max=6)
    assert count(pooled3, [(x,), (torch.randn(6, 3),), (torch.randn(7, 3),)]) == 2


def line_of(function: Callable[..., Any], text: str) -> str:
    """Where a line that begins with `text` is, as ``file:line``."""
    lines, first = inspect.getsourcelines(function)
    place = next(number for number, line in enumerate(lines) if line.strip().startswith(text))
    return f"{function.__code__.co_filename}:{first + place}"


def one_row(x: torch.Tensor) -> torch.Tensor:
    """A function of its own, which the next one calls."""
    return x if x.shape[0] > 4 else x + 1


def test_what_the_code_forces_is_named_with_the_line_of_the_user() -> None:
    def looped(x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.relu(one_row(x))
        for _ in range(x.shape[1]):
            y = y + 1
        return y.view(2, -1)

    captured = dynamo.optimize("eager", nopython=True, dynamic=True)(looped)
    captured(torch.randn(6, 3))
    report = dynamo.report()
    assert f"x.size()[1] == 3 (for {line_of(looped, 'for _ in')})" in report
    assert f"5 <= x.size()[0] (for {line_of(one_row, 'return x if')})" in report
    assert f"% 2) == 0 (for {line_of(looped, 'return y.view')})" in report
    captured(torch.randn(8, 4))
    assert f"expected x.size()[1] == 3, met sizes (8, 4), strides (4, 1) (SHAPE_RELATION, for {__file__}" in (
        dynamo.report()
    )


# -- guards and backends ----------------------------------------------------------------------------------------


def test_guards_tell_bounds_in_words() -> None:
    captured = dynamo.optimize("eager")(branching)
    for size in (6, 7, 3):
        captured(torch.randn(size))
    text = str(dynamo.report())
    assert "5 <= x.size()[0]" in text
    assert "met sizes (3,)" in text


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        result: torch.Tensor = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return result


BACKENDS = ["eager", "aot_eager", "interpreter"]
if shutil.which("g++") is not None:
    BACKENDS.append("inductor")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_takes_any_batch_and_length_forward_and_backward(backend: str) -> None:
    model = Attention()
    lookup = dynamo.lookup_backend(backend)
    graphs = 0

    def counting(gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        nonlocal graphs
        graphs += 1
        return lookup(gm, example_inputs)

    captured = dynamo.optimize(counting, nopython=True)(model)
    for batch, length in ((2, 5), (3, 6), (4, 7), (5, 12), (3, 3)):
        x = torch.randn(batch, length, 8)
        expected = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
        met = torch.autograd.grad(captured(x).square().sum(), list(model.parameters()))
        for ours, theirs in zip(met, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    assert graphs == 2
