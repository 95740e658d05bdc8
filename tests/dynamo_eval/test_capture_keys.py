"""One function captured for several backends: each runs its own captures, and they go with it."""

import gc
import weakref
from collections.abc import Callable, Iterator
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


class Backend:
    """Counts its captures and the calls of its graphs."""

    def __init__(self) -> None:
        self.captures = 0
        self.calls = 0

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        self.captures += 1

        def run(*args: Any) -> Any:
            self.calls += 1
            return gm.forward(*args)

        return run


def add_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def broken(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    dynamo.graph_break()
    return y * 2


def test_each_backend_runs_its_own_graphs() -> None:
    first, second = Backend(), Backend()
    x = torch.ones(2)
    for _ in range(3):
        assert torch.equal(dynamo.optimize(first)(add_one)(x), x + 1)
        assert torch.equal(dynamo.optimize(second)(add_one)(x), x + 1)
    assert (first.captures, second.captures) == (1, 1)
    assert (first.calls, second.calls) == (3, 3)


def test_the_rest_after_a_break_belongs_to_the_same_backend() -> None:
    first, second = Backend(), Backend()
    x = torch.ones(2)
    for _ in range(3):
        for backend in (first, second):
            assert torch.equal(dynamo.optimize(backend)(broken)(x), (x + 1) * 2)
    assert (first.captures, second.captures) == (2, 2)
    assert (first.calls, second.calls) == (6, 6)


def test_one_graph_is_demanded_though_captures_with_breaks_exist() -> None:
    x = torch.ones(2)
    dynamo.optimize("eager")(broken)(x)
    with pytest.raises(dynamo.Unsupported):
        dynamo.optimize("eager", nopython=True)(broken)(x)
    assert torch.equal(dynamo.optimize("eager")(broken)(x), (x + 1) * 2)


def test_a_frame_that_one_backend_declined_is_shown_to_another() -> None:
    def refuses(gm: Any, example_inputs: list[Any]) -> Any:
        raise RuntimeError("no")

    works = Backend()
    x = torch.ones(2)
    for _ in range(2):
        assert torch.equal(dynamo.optimize(refuses)(add_one)(x), x + 1)
        assert torch.equal(dynamo.optimize(works)(add_one)(x), x + 1)
    assert (works.captures, works.calls) == (1, 2)


def test_captures_of_a_backend_that_is_gone_are_freed_by_the_next_capture() -> None:
    class Graph:
        def __init__(self, run: Callable[..., Any]) -> None:
            self.run = run

        def __call__(self, *args: Any) -> Any:
            return self.run(*args)

    graphs: list[weakref.ref[Graph]] = []

    def backend(gm: Any, example_inputs: list[Any]) -> Any:
        graph = Graph(gm.forward)
        graphs.append(weakref.ref(graph))
        return graph

    x = torch.ones(2)
    for _ in range(20):  # more than cache_size_limit
        dynamo.optimize(lambda gm, example_inputs: backend(gm, example_inputs))(add_one)(x)
        gc.collect()
    assert len(graphs) == 20
    assert sum(graph() is not None for graph in graphs) <= 1


def test_callbacks_without_key_share_captures_and_keys_must_be_weakly_referable() -> None:
    class Keyed(_frame.KeyedCallback):
        def __call__(self, frame: _frame.FrameView, entries: int) -> None:
            shown.append((self.key, frame.f_code.co_name, entries))

    shown: list[tuple[object, str, int]] = []
    one, other = type("Key", (), {})(), type("Key", (), {})()
    callbacks = [Keyed(one), Keyed(one), Keyed(other)]
    function = lambda: 5  # noqa: E731
    for callback in callbacks:
        assert _frame.EntryPoint(function, callback)() == 5
    assert shown == [(one, "<lambda>", 0), (other, "<lambda>", 0)]
    with pytest.raises(TypeError, match="weakly"):
        Keyed(5)
