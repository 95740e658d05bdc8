"""A function must be one graph, and look as in eager Python."""

from collections.abc import Callable, Sequence
from typing import Any

import dynamo.eval as dynamo
from tests.oracle.eager import assert_like_eager


def assert_whole(function: Callable[..., Any], *calls: Sequence[Any], graphs: int = 1) -> None:
    """`function` is captured without a break, `graphs` times for all `calls` (each made twice), and right each time."""
    counter = dynamo.CompileCounter()
    dynamo.reset()

    def capture(fn: Callable[..., Any]) -> Callable[..., Any]:
        return dynamo.optimize(counter, nopython=True)(fn)

    assert_like_eager(capture, function, [tuple(call) for call in calls for _ in range(2)])
    assert counter.frame_count == graphs, f"{function.__name__}: {counter.frame_count} graphs, not {graphs}"


def assert_right(function: Callable[..., Any], *calls: Sequence[Any]) -> None:
    """`function` looks as in eager Python, however many graphs it takes."""
    dynamo.reset()
    assert_like_eager(dynamo.optimize("eager"), function, [tuple(call) for call in calls for _ in range(2)])
