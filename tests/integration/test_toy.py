"""The founding example of frame capture, end to end through all five packages."""

import gc
import logging
import random
import resource
import sys
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch

import dynamo.eval as dynamo
from fx.codegen import GraphModule


class Backend:
    """Keeps each graph that it is given, and hands back the graph's own forward."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: Sequence[torch.Tensor]) -> Callable[..., object]:
        self.graphs.append(gm)
        return gm.forward


def toy_example(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


def inputs(
    count: int, *, size: int = 10, dtype: torch.dtype = torch.float32
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Random pairs, of which the first two take both sides of the branch."""
    pairs = [(torch.randn(size).to(dtype), torch.randn(size).to(dtype)) for _ in range(count - 2)]
    a = torch.randn(size).to(dtype)
    return [(a, torch.ones(size, dtype=dtype)), (a, -torch.ones(size, dtype=dtype)), *pairs]


def test_three_graphs_serve_a_hundred_random_calls_exactly() -> None:
    backend = Backend()
    captured = dynamo.optimize(backend)(toy_example)
    after_both_sides = 0
    for index, (a, b) in enumerate(inputs(100)):
        assert torch.equal(captured(a, b), toy_example(a, b))
        if index == 1:
            after_both_sides = len(backend.graphs)
    assert 2 <= after_both_sides <= 3
    assert len(backend.graphs) == after_both_sides


@pytest.mark.parametrize(
    ("size", "dtype", "word"),
    [(10, torch.float64, "dtype"), (7, torch.float32, "size")],
    ids=["dtype", "size"],
)
def test_another_dtype_or_size_recompiles_once_and_names_the_failed_guard(
    size: int, dtype: torch.dtype, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    backend = Backend()
    captured = dynamo.optimize(backend)(toy_example)
    for a, b in inputs(20):
        captured(a, b)
    before = len(backend.graphs)
    with caplog.at_level(logging.DEBUG, logger="dynamo"):
        for a, b in inputs(20, size=size, dtype=dtype):
            assert torch.equal(captured(a, b), toy_example(a, b))
    assert len(backend.graphs) == 2 * before
    reasons = [record.getMessage() for record in caplog.records if "recompil" in record.getMessage().lower()]
    assert any("a" in reason and word in reason.lower() for reason in reasons), reasons


def test_a_backend_that_raises_leaves_the_eager_result_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    def broken(gm: GraphModule, example_inputs: Sequence[torch.Tensor]) -> Callable[..., object]:
        raise ValueError("no such device today")

    a, b = torch.randn(10), torch.randn(10)
    with caplog.at_level(logging.WARNING, logger="dynamo"):
        assert torch.equal(dynamo.optimize(broken)(toy_example)(a, b), toy_example(a, b))
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "no such device today" in text
    assert "test_toy.py" in text


def test_a_backend_that_raises_is_an_error_where_no_python_may_remain() -> None:
    def broken(gm: GraphModule, example_inputs: Sequence[torch.Tensor]) -> Callable[..., object]:
        raise ValueError("no such device today")

    def f(a: torch.Tensor) -> torch.Tensor:
        return a + 1

    with pytest.raises(Exception, match="no such device today"):
        dynamo.optimize(broken, nopython=True)(f)(torch.randn(3))


def test_a_data_dependent_branch_is_an_error_where_no_python_may_remain() -> None:
    with pytest.raises(Exception, match=r"test_toy\.py"):
        dynamo.optimize(Backend(), nopython=True)(toy_example)(torch.randn(10), torch.randn(10))


def counts(*values: object) -> list[int]:
    return [sys.getrefcount(value) for value in values]


def test_reference_counts_of_arguments_stay_after_miss_hit_and_exception() -> None:
    def failing(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        x = a + b
        raise KeyError("gone")
        return x

    captured, failed = dynamo.optimize(Backend())(toy_example), dynamo.optimize(Backend())(failing)
    a, b = torch.randn(10), torch.randn(10)
    before = counts(a, b)
    captured(a, b)
    gc.collect()
    assert counts(a, b) == before
    for _ in range(50):
        captured(a, b)
    assert counts(a, b) == before
    for _ in range(3):
        with pytest.raises(KeyError, match="gone"):
            failed(a, b)
    gc.collect()
    assert counts(a, b) == before


def test_a_thousand_captures_with_reset_between_do_not_grow_in_memory() -> None:
    random.seed(0)
    pairs = inputs(4)

    def run(times: int) -> None:
        for _ in range(times):
            captured = dynamo.optimize(Backend())(toy_example)
            for a, b in pairs:
                captured(a, b)
            dynamo.reset()

    run(100)
    gc.collect()
    objects, most = len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(900)
    gc.collect()
    assert len(gc.get_objects()) - objects < 100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most < 8_000, "kilobytes of growth"
