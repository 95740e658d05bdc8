"""The frame hook: which frames it shows, what it runs in their place, how it leaves."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import subprocess
import sys
import textwrap
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from types import NotImplementedType
from typing import Any

import pytest

from dynamo.eval import _frame
from dynamo.eval._frame import FrameView, GuardedCode
from tests.oracle.substitute import Guards, Substitutes, always, guarded, hooked


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    assert _frame.get_eval_frame() is None
    _frame.reset()


def run_python(source: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, timeout=120
    )


# ---- what is shown ----


def test_a_frame_is_shown_with_its_bound_arguments_function_and_closure() -> None:
    cell = 5

    def function(a: int, /, b: int, *rest: int, c: int = 3, **more: int) -> int:
        return a + b + c + cell + sum(rest) + sum(more.values())

    callback = Substitutes()
    with hooked(callback):
        result = function(1, 2, 7, 8, d=9)
    frame, entries = callback.seen[0]
    assert result == 1 + 2 + 3 + 5 + 15 + 9
    assert entries == 0
    assert frame.f_locals == {"a": 1, "b": 2, "c": 3, "rest": (7, 8), "more": {"d": 9}}
    assert frame.args == [1, 2, 3, (7, 8), {"d": 9}]
    assert frame.function is function and frame.f_code is function.__code__
    assert frame.closure is function.__closure__
    assert frame.f_globals is globals() and frame.f_builtins["len"] is len
    assert frame.f_lineno == function.__code__.co_firstlineno


def test_skipped_code_is_shown_once_and_its_callees_still_are() -> None:
    def inner(x: int) -> int:
        return x + 1

    def outer(x: int) -> int:
        return inner(x)

    callback = Substitutes()
    with hooked(callback):
        assert [outer(1), outer(2)] == [2, 3]
    assert callback.names == ["outer", "inner"]


def test_skip_code_hides_code_and_reset_code_shows_it_again() -> None:
    def function() -> int:
        return 1

    callback = Substitutes()
    _frame.skip_code(function.__code__)
    with hooked(callback):
        function()
        assert callback.names == []
        _frame.reset_code(function.__code__)
        function()
    assert callback.names == ["function"]


def test_class_and_module_bodies_are_not_shown() -> None:
    callback = Substitutes()
    with hooked(callback):

        class Body:
            value = 1

        exec(compile("y = 2", "<body>", "exec"), {})
    assert Body.value == 1
    assert callback.names == []


def test_the_callback_runs_without_capture_and_capture_returns_after_it() -> None:
    def deeper() -> int:
        return 1

    def function() -> int:
        return deeper()

    seen = []

    def callback(frame: _frame.FrameView, entries: int) -> None:
        seen.append(frame.f_code.co_name)
        assert _frame.get_eval_frame() is None
        deeper()

    with hooked(callback):
        function()
        assert _frame.get_eval_frame() is callback
    assert seen[:2] == ["function", "deeper"]


def test_set_eval_frame_returns_the_previous_callback() -> None:
    first, second = Substitutes(), Substitutes()
    assert _frame.set_eval_frame(first) is None
    assert _frame.set_eval_frame(second) is first
    assert _frame.set_eval_frame(None) is second
    with pytest.raises(TypeError, match="callable or None, not int"):
        _frame.set_eval_frame(3)  # type: ignore[arg-type]  # the error is what is tested


# ---- what runs in its place ----


def add(a: Any, b: Any) -> Any:
    return a + b


def test_a_capture_runs_at_once_and_on_every_hit() -> None:
    def replacement(a: Any, b: Any) -> Any:
        extra = [a, b]
        return ("captured", *extra)

    callback = Substitutes()
    callback.put(add, guarded(replacement, lambda a, b: type(a) is int))
    with hooked(callback):
        results = [add(1, 2), add(3, 4), add("x", "y")]
    assert results == [("captured", 1, 2), ("captured", 3, 4), "xy"]
    assert [entries for _, entries in callback.seen] == [0, 1]
    assert _frame.code_stats(add.__code__) == {
        "entries": 1,
        "hits": 1,
        "misses": 1,
        "captures": 1,
        "recompiles": 0,
        "dropped": 0,
        "skip": True,
    }


def test_after_a_skip_existing_captures_stay_in_use() -> None:
    def replacement(a: Any, b: Any) -> Any:
        return "captured"

    callback = Substitutes()
    callback.put(add, guarded(replacement, lambda a, b: type(a) is int), None)
    with hooked(callback):
        assert [add(1, 2), add(1.0, 2.0), add(1, 2), add(1.0, 2.0)] == ["captured", 3.0, "captured", 3.0]
    assert len(callback.seen) == 2


def test_code_with_larger_and_smaller_frames_runs_in_place() -> None:
    def many(a: Any, b: Any) -> Any:
        c, d, e, f, g, h = a, b, a, b, a, b
        return [[c, d, e, f], [g, h, (a, b, (c, (d, (e, (f, (g, (h, 1)))))))]]

    def none(a: Any, b: Any) -> Any:
        return None

    def wide(a: Any, b: Any) -> Any:
        c, d, e, f = a, b, a, b
        return [c, d, e, f, [i for i in range(a)]]

    for original, replacement in [(wide, many), (wide, none), (none, many), (many, wide)]:
        callback = Substitutes()
        callback.put(original, guarded(replacement))
        with hooked(callback):
            results = [original(2, 3) for _ in range(3)]
        assert results == [replacement(2, 3)] * 3
        _frame.reset()


def test_a_frame_that_begins_a_new_stack_chunk_runs_its_capture() -> None:
    # The data stack grows in chunks of 16 kB: somewhere in this recursion a frame does not fit.
    def count(n: int) -> int:
        return 0 if n == 0 else 1 + count(n - 1)

    def replacement(n: int) -> int:
        a, b, c, d, e, f, g, h = range(8)
        return 0 if n == 0 else 1 + count(n - 1) + a + (b - b) * (c + d + e + f + g + h)

    callback = Substitutes()
    callback.put(count, guarded(replacement))
    with hooked(callback):
        assert count(400) == 400
    assert _frame.code_stats(count.__code__)["hits"] == 400


def test_cells_and_free_variables_work_in_place() -> None:
    free = [10]

    def original(a: int) -> Callable[[], int]:
        return lambda: a + free[0]

    def replacement(a: int) -> Callable[[], int]:
        b = a * 100

        def inner() -> int:
            return a + b + free[0]

        return inner

    # the same free variable, read in another way
    callback = Substitutes()
    callback.put(original, guarded(replacement))
    with hooked(callback):
        assert original(1)() == 111
        assert original(2)() == 212


def test_varargs_and_keywords_reach_the_capture() -> None:
    def original(a: int, *rest: int, k: int = 4, **more: int) -> Any:
        return None

    def replacement(a: int, *rest: int, k: int = 4, **more: int) -> Any:
        return a, rest, k, more

    callback = Substitutes()
    callback.put(original, guarded(replacement))
    with hooked(callback):
        results = [original(1), original(1, 2, 3, k=5, z=6)]
    assert results == [(1, (), 4, {}), (1, (2, 3), 5, {"z": 6})]


def test_a_capture_of_other_shape_is_refused() -> None:
    def other(a: Any, c: Any) -> Any:
        return None

    def generator(a: Any, b: Any) -> Any:
        yield a

    for wrong in (other, generator):
        callback = Substitutes()
        callback.put(add, guarded(wrong))
        with hooked(callback), pytest.raises(TypeError, match="new code of add has other arguments"):
            add(1, 2)
    callback = Substitutes()
    callback.put(add, _frame.GuardedCode(add.__code__, Guards(always)))
    with hooked(callback), pytest.raises(ValueError, match="new code, not the code of add itself"):
        add(1, 2)
    assert add(1, 2) == 3 and _frame.cache_entries(add.__code__) == []


def test_an_answer_that_is_no_capture_is_refused() -> None:
    def callback(frame: _frame.FrameView, entries: int) -> Any:
        return 5 if frame.f_code is add.__code__ else None

    with hooked(callback), pytest.raises(TypeError, match="GuardedCode, None or NotImplemented, not int"):
        add(1, 2)


def test_a_frame_that_is_put_off_is_shown_again() -> None:
    def f(x: int) -> int:
        return x

    capture = guarded(lambda x: -x)
    answers: list[GuardedCode | NotImplementedType] = [NotImplemented, NotImplemented, capture]

    def callback(frame: FrameView, entries: int) -> GuardedCode | NotImplementedType | None:
        return answers.pop(0) if frame.f_code is f.__code__ else None

    with hooked(callback):
        assert [f(1), f(2), f(3), f(4)] == [1, 2, -3, -4]
    assert not answers and _frame.code_stats(f.__code__)["captures"] == 1


def test_code_of_a_capture_is_never_shown_itself() -> None:
    def replacement(a: Any, b: Any) -> Any:
        return add(a, b) if a else "end"

    callback = Substitutes()
    callback.put(add, guarded(replacement))
    with hooked(callback):
        assert add(0, 1) == "end"
    assert callback.names == ["add"]


def test_frames_called_from_cached_code_are_shown_when_it_needs_the_hook() -> None:
    def helper(x: int) -> int:
        return x

    def original(x: int) -> int:
        return helper(x)

    def replacement(x: int) -> int:
        return helper(x) + 1

    for needs_hook in (True, False):
        callback = Substitutes()
        callback.put(original, guarded(replacement, needs_hook=needs_hook))
        with hooked(callback):
            assert [original(1), original(2)] == [2, 3]
            assert _frame.get_eval_frame() is callback
        assert callback.names == (["original", "helper"] if needs_hook else ["original"])
        _frame.reset()


# ---- exceptions ----


def test_exceptions_of_callback_and_capture_reach_the_caller() -> None:
    def replacement(a: Any, b: Any) -> Any:
        raise ValueError("inside")

    callback = Substitutes()
    callback.put(add, KeyError("capture"), guarded(replacement))
    with hooked(callback):
        with pytest.raises(KeyError, match="capture"):
            add(1, 2)
        for _ in range(3):
            with pytest.raises(ValueError, match="inside"):
                add(1, 2)
        assert _frame.get_eval_frame() is callback


def test_a_traceback_shows_the_line_of_the_code_that_ran() -> None:
    def replacement(a: Any, b: Any) -> Any:
        raise ValueError("inside")

    callback = Substitutes()
    callback.put(add, guarded(replacement))
    with hooked(callback):
        try:
            add(1, 2)
        except ValueError as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
    assert last.lineno == replacement.__code__.co_firstlineno + 1
    assert last.filename == __file__


def test_a_guard_that_raises_does_not_hold() -> None:
    def replacement(a: Any, b: Any) -> Any:
        return "captured"

    def check(a: Any, b: Any) -> bool:
        return bool(a.missing)

    callback = Substitutes()
    callback.put(add, guarded(replacement, check))
    with hooked(callback):
        assert [add(1, 2), add(1, 2)] == ["captured", 3]


def test_an_interrupt_in_a_guard_reaches_the_caller() -> None:
    def check(a: Any, b: Any) -> bool:
        raise KeyboardInterrupt

    callback = Substitutes()
    callback.put(add, guarded(add, check))
    with hooked(callback):
        assert add(1, 2) == 3
        with pytest.raises(KeyboardInterrupt):
            add(1, 2)
    assert add(1, 2) == 3


def test_a_guard_may_reset_the_cache_that_is_being_searched() -> None:
    def check(a: Any, b: Any) -> bool:
        _frame.reset()
        gc.collect()
        return False

    callback = Substitutes()
    callback.put(add, guarded(add, check))
    with hooked(callback):
        assert [add(1, 2), add(1, 2)] == [3, 3]
    assert len(callback.seen) == 2


# ---- generators and coroutines ----


def drain(generator: Generator[Any, Any, Any]) -> list[Any]:
    got = [next(generator)]
    got.append(generator.send("sent"))
    with contextlib.suppress(StopIteration):
        got.append(generator.throw(ValueError("thrown")))
    generator.close()
    return got


def generate(n: int) -> Generator[Any, Any, str]:
    received = yield n
    try:
        yield received
    except ValueError as error:
        yield str(error)
    return "done"


def test_generators_run_under_the_hook_as_without_it() -> None:
    expected = drain(generate(3))
    callback = Substitutes()
    with hooked(callback):
        assert drain(generate(3)) == expected
        assert list(x for x in range(3)) == [0, 1, 2]
    assert "generate" in callback.names


def test_a_capture_of_a_generator_function_makes_the_generator() -> None:
    def replacement(n: int) -> Generator[Any, Any, str]:
        try:
            received = yield n * 10
            yield received
        except ValueError as error:
            yield f"again {error}"
        return "replaced"

    callback = Substitutes()
    callback.put(generate, guarded(replacement))
    with hooked(callback):
        for _ in range(3):
            assert drain(generate(3)) == [30, "sent", "again thrown"]
        unfinished = generate(1)
        next(unfinished)
    del unfinished
    gc.collect()


def test_coroutines_and_async_generators_run_as_without_the_hook() -> None:
    async def numbers(n: int) -> AsyncIterator[int]:
        for i in range(n):
            await asyncio.sleep(0)
            yield i

    async def total(n: int) -> int:
        return sum([i async for i in numbers(n)])

    async def doubled(n: int) -> int:
        return 2 * await main(n)

    async def main(n: int) -> int:
        return sum(await asyncio.gather(total(n), total(n)))

    async def top(n: int) -> int:
        return await main(n)

    assert asyncio.run(top(4)) == 12
    callback = Substitutes()
    callback.put(top, guarded(doubled))
    callback.put(total, guarded(total))
    # doubled has `main` as its free variable, as top has
    with hooked(callback):
        assert asyncio.run(top(4)) == 24


# ---- threads, forks, interpreters ----


def test_the_callback_belongs_to_its_thread() -> None:
    callback = Substitutes()
    results = []

    def work() -> None:
        results.append((_frame.get_eval_frame(), add(1, 2)))

    with hooked(callback):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert results == [(None, 3)]
    assert "add" not in callback.names


def test_threads_capture_and_run_at_the_same_time() -> None:
    def replacement(a: Any, b: Any) -> Any:
        return a * 1000 + b

    wrong = []

    def callback(frame: _frame.FrameView, entries: int) -> _frame.GuardedCode | None:
        if frame.f_code is not add.__code__ or entries > 6:
            return None
        value = frame.args[0]
        return guarded(replacement, lambda a, b: bool(a == value))

    def work(seed: int) -> None:
        with hooked(callback):
            for i in range(2000):
                a = (seed + i) % 12
                got = add(a, 1)
                if got not in (a + 1, a * 1000 + 1):
                    wrong.append(got)
                if i % 500 == 499:
                    _frame.reset_code(add.__code__)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
