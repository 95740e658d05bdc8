"""Capture, dispatch, eviction, reset and garbage collection at the same time, in threads and from within each other."""

from __future__ import annotations

import gc
import random
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest
import torch

from dynamo.eval import _frame, config, optimize, reset
from dynamo.eval.cache import code_stats
from tests.oracle.substitute import Guards, guarded


@pytest.fixture(autouse=True)
def _often() -> Iterator[None]:
    """Threads take turns after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
    assert _frame.get_eval_frame() is None
    reset()


def in_threads(jobs: list[Callable[[], None]]) -> None:
    """Run all jobs at once; the first exception of any is raised."""
    faults: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], None]) -> None:
        start.wait()
        try:
            job()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def whole(a: torch.Tensor, b: torch.Tensor, scale: int) -> torch.Tensor:
    return (a * scale + b).relu()


def broken(a: torch.Tensor, b: torch.Tensor, scale: int) -> torch.Tensor:
    x = a * scale
    if b.sum() < 0:
        x = x - 1
    return x + b


def arguments(seed: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Arguments of a few kinds, so that calls hit, miss and recapture."""
    rng = random.Random(seed)
    shape = (rng.randint(1, 3), rng.randint(1, 2))
    dtype = rng.choice([torch.float32, torch.float64, torch.int64])
    generator = torch.Generator().manual_seed(seed)
    values = [torch.randint(-9, 9, shape, generator=generator).to(dtype) for _ in range(2)]
    return values[0], values[1], rng.randint(1, 3)


@pytest.mark.parametrize("function", [whole, broken])
def test_calls_race_captures_evictions_resets_and_collections(function: FunctionType) -> None:
    captured = optimize("eager")(function)
    over = threading.Event()
    calls = [(given, function(*given)) for given in map(arguments, range(40))]

    def calling(seed: int) -> Callable[[], None]:
        def job() -> None:
            rng = random.Random(seed)
            for _ in range(120):
                given, expected = rng.choice(calls)
                made = captured(*given)
                assert made.dtype == expected.dtype and torch.equal(made, expected)

        return job

    def disturbing() -> None:
        rng = random.Random(0)
        while not over.is_set():
            entries = _frame.cache_entries(function.__code__)
            if entries and rng.random() < 0.7:
                rng.choice(entries).release()
            else:
                reset()
            gc.collect(0)
            over.wait(0.002)

    def all_calls() -> None:
        try:
            in_threads([calling(seed) for seed in range(4)])
        finally:
            over.set()

    with config.patch(cache_size_limit=4, accumulated_cache_size_limit=10_000):
        in_threads([all_calls, disturbing])
    stats = code_stats(function.__code__)
    assert stats["entries"] == len(_frame.cache_entries(function.__code__)) <= 8


def test_functions_are_captured_called_and_dropped_in_many_threads() -> None:
    references: list[weakref.ref[Any]] = []

    def job() -> None:
        for n in range(25):
            function = FunctionType(whole.__code__.replace(co_name=f"whole{n}"), whole.__globals__)
            captured = optimize("eager")(function)
            given = arguments(n)
            assert torch.equal(captured(*given), function(*given))
            assert torch.equal(captured(*given), function(*given))
            references.append(weakref.ref(function))

    in_threads([job] * 4)
    gc.collect()
    assert [each for each in references if each() is not None] == []


def test_a_collection_within_every_step_of_a_dispatch_changes_nothing() -> None:
    captured = optimize("eager")(broken)
    calls = [(given, broken(*given)) for given in map(arguments, range(12))]
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        with config.patch(cache_size_limit=3, accumulated_cache_size_limit=1000):
            for given, expected in calls * 2:
                assert torch.equal(captured(*given), expected)
    finally:
        gc.set_threshold(*before)


@pytest.mark.parametrize("what", ["reset", "release", "collect", "reset_code"])
def test_a_guard_may_do_anything_to_the_cache_that_is_being_searched(what: str) -> None:
    def f(x: int) -> int:
        return x

    def meddle(*args: object) -> bool:
        if what == "reset":
            reset()
        elif what == "release":
            for entry in _frame.cache_entries(f.__code__):
                entry.release()
        elif what == "reset_code":
            _frame.reset_code(f.__code__)
        gc.collect()
        return False

    made = 0

    def callback(frame: _frame.FrameView, entries: int) -> _frame.GuardedCode | None:
        nonlocal made
        if frame.f_code is not f.__code__:
            return None
        made += 1
        return guarded(lambda x: -x, meddle if made % 2 else lambda x: x > 5)

    entry = _frame.EntryPoint(f, callback)
    for x in (1, 2, 9, 3, 9, 9, 4):
        assert entry(x) == -x
    assert made >= 3


def test_guards_that_drop_the_last_reference_to_their_own_capture_answer_once_more() -> None:
    def f(x: int) -> int:
        return x

    class Dying(Guards):
        def check_fn(self, *args: object) -> bool:
            _frame.reset_code(f.__code__)
            gc.collect()
            return True

    def callback(frame: _frame.FrameView, entries: int) -> _frame.GuardedCode | None:
        capture = guarded(lambda x: -x)
        return _frame.GuardedCode(capture.code, Dying(lambda x: True)) if frame.f_code is f.__code__ else None

    entry = _frame.EntryPoint(f, callback)
    assert [entry(x) for x in range(1, 6)] == [-1, -2, -3, -4, -5]
