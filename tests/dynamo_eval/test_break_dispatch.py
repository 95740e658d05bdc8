"""A function with graph breaks: its rest is entered without the frame hook, and behaves as the function itself."""

import gc
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import pytest
import torch

import dynamo.eval as dynamo
from dynamo.eval import _frame


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


def captures(name: str) -> list[_frame.GuardedCode]:
    codes = [code for code in _frame.codes() if code.co_name.startswith(name)]
    return [entry for code in codes for entry in _frame.cache_entries(code)]


def toy(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def test_a_branch_on_a_tensor_needs_no_hook_anywhere() -> None:
    entry = dynamo.optimize("eager")(toy)
    for b in (torch.ones(3), -torch.ones(3)) * 2:
        assert torch.equal(entry(torch.ones(3), b), toy(torch.ones(3), b))
    found = captures("toy") + captures("resume_in_toy")
    assert len(found) == 3
    assert [guarded.needs_hook for guarded in found] == [False] * 3
    assert sum(guarded.hits for guarded in captures("resume_in_toy")) == 2


def test_the_hook_is_set_where_the_broken_instruction_calls_the_users_code() -> None:
    calls: list[int] = []

    def helper(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        dynamo.graph_break()
        return x * 3

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        z = helper(y)
        return z * y

    entry = dynamo.optimize("eager")(function)
    x = torch.ones(2)
    for _ in range(3):
        assert torch.equal(entry(x), torch.full((2,), 12.0))
    assert len(calls) == 3
    assert [guarded.needs_hook for guarded in captures("function")] == [True]
    assert captures("resume_in_helper")


def test_cells_are_shared_by_both_sides_of_a_break() -> None:
    def make() -> tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[], int]]:
        count = 0

        def step(x: torch.Tensor) -> torch.Tensor:
            nonlocal count
            count += 1
            y = x + count
            dynamo.graph_break()
            count += 10
            return y * count

        return step, lambda: count

    plain, plain_count = make()
    step, step_count = make()
    entry = dynamo.optimize("eager")(step)
    for _ in range(4):
        assert torch.equal(entry(torch.ones(2)), plain(torch.ones(2)))
        assert step_count() == plain_count()


def test_a_traceback_names_the_rest_and_the_users_line() -> None:
    def function(x: torch.Tensor, items: list[int]) -> torch.Tensor:
        y = x + 1
        dynamo.graph_break()
        z = y * 2
        items.index(99)
        return z

    line = function.__code__.co_firstlineno + 4
    entry = dynamo.optimize("eager")(function)
    for _ in range(3):
        with pytest.raises(ValueError, match="99") as caught:
            entry(torch.ones(2), [1])
        last = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert (last.filename, last.lineno) == (__file__, line)
        assert last.name.startswith("resume_in_function_at_") or last.name == "function"
        assert _frame.get_eval_frame() is None


def test_deep_recursion_over_breaks_ends_in_recursion_error() -> None:
    def down(x: torch.Tensor, depth: int) -> torch.Tensor:
        y = x + 1
        dynamo.graph_break()
        return y if depth == 0 else entry(y, depth - 1)

    entry = dynamo.optimize("eager")(down)
    with dynamo.config.patch(cache_size_limit=2):
        assert torch.equal(entry(torch.zeros(1), 30), torch.full((1,), 31.0))
        with pytest.raises(RecursionError):
            entry(torch.zeros(1), 100_000)
    assert torch.equal(entry(torch.zeros(1), 5), torch.full((1,), 6.0))
    assert _frame.get_eval_frame() is None


def test_threads_go_over_the_same_break_at_the_same_time() -> None:
    entry = dynamo.optimize("eager")(toy)
    wrong: list[object] = []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for turn in range(40):
            size = 1 + (turn + seed) % 3
            a, b = (torch.randn(size, generator=generator) for _ in range(2))
            if not torch.equal(entry(a, b), toy(a, b)):
                wrong.append((a, b))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_backend_that_refers_to_the_function_is_freed_with_it() -> None:
    class Trainer:
        def __init__(self) -> None:
            namespace: dict[str, Any] = {"graph_break": dynamo.graph_break, "owner": self}
            exec("def step(x):\n    y = x + 1\n    graph_break()\n    return y * 2\n", namespace)
            self.step = dynamo.optimize(self.compiler)(namespace["step"])

        def compiler(self, gm: Any, example_inputs: list[Any]) -> Any:
            return gm.forward

    trainer = Trainer()
    for _ in range(3):
        assert torch.equal(trainer.step(torch.ones(2)), torch.full((2,), 4.0))
    assert captures("resume_in_step")
    gone = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert gone() is None


def rest_code() -> CodeType:
    def outer() -> Callable[..., tuple[int, ...]]:
        a = 1

        def rest(b: int, c: int) -> tuple[int, ...]:
            return a, b, c

        return rest

    return outer().__code__


def test_a_rest_is_called_with_cells_and_arguments_and_refuses_others() -> None:
    def cell(value: int) -> Any:
        return (lambda: value).__closure__

    rest = _frame.Rest(rest_code())
    assert rest(cell(5), 6, 7) == (5, 6, 7)
    assert "rest" in repr(rest)
    calls: list[tuple[Any, ...]] = [(), (cell(1), 1), (1, 2, 3), ((), 1, 2), (cell(1), 1, 2, 3)]
    for args in calls:
        with pytest.raises(TypeError, match="by cached code only"):
            rest(*args)
    with pytest.raises(TypeError, match="positional"):
        _frame.Rest((lambda *args: args).__code__)


def test_twenty_thousand_broken_calls_leave_nothing_behind() -> None:
    entry = dynamo.optimize("eager")(toy)
    a, b = torch.ones(2), torch.ones(2)
    for _ in range(100):
        entry(a, b)
    gc.collect()
    before, references = len(gc.get_objects()), sys.getrefcount(toy.__globals__)
    for _ in range(20_000):
        entry(a, b)
    gc.collect()
    assert len(gc.get_objects()) - before < 50
    assert abs(sys.getrefcount(toy.__globals__) - references) < 5
