"""The hook and the process: deep recursion, fork, subinterpreters, shutdown, debuggers, memory."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest

from dynamo.eval import _frame
from tests.oracle import process
from tests.oracle.substitute import Substitutes, guarded, hooked

PRELUDE = """
import sys, threading
from dynamo.eval import _frame
from tests.oracle import process
from tests.oracle.substitute import Substitutes, guarded, hooked

def depth_of(function):
    reached = 0
    def count():
        nonlocal reached
        reached += 1
        function(count)
    try:
        count()
    except RecursionError:
        return reached
"""


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    assert _frame.get_eval_frame() is None
    _frame.reset()


def run_python(source: str) -> str:
    return process.run_python(source, PRELUDE)


# ---- recursion ----

RECURSE = """
def recurse(again):
    again()

limit = {limit}
sys.setrecursionlimit(limit)
def measure():
    plain = depth_of(recurse)
    {setup}
    print(plain, under)
threading.stack_size({stack})
thread = threading.Thread(target=measure)
thread.start()
thread.join()
"""

SETUPS = {
    "hook": "with hooked(Substitutes()): under = depth_of(recurse)",
    "captured": """
    callback = Substitutes()
    callback.put(recurse, guarded(lambda again: again()))
    with hooked(callback): under = depth_of(recurse)
""",
    "entry point": """
    callback = Substitutes()
    callback.put(recurse, guarded(lambda again: again(), needs_hook=False))
    under = depth_of(_frame.EntryPoint(recurse, callback))
""",
}


@pytest.mark.parametrize("setup", SETUPS)
def test_recursion_ends_where_plain_python_ends(setup: str) -> None:
    source = RECURSE.format(limit=1000, stack=0, setup=SETUPS[setup])
    plain, under = map(int, run_python(source).split())
    assert 400 < plain <= 1000
    assert abs(plain - under) <= 6


@pytest.mark.parametrize("stack", [1 << 20, 16 << 20])
@pytest.mark.parametrize("setup", SETUPS)
def test_recursion_far_beyond_the_c_stack_does_not_crash(setup: str, stack: int) -> None:
    source = RECURSE.format(limit=200_000, stack=stack, setup=SETUPS[setup])
    plain, under = map(int, run_python(source).split())
    assert plain > 50_000
    assert under > 500


def test_a_hooked_region_goes_as_deep_as_plain_python_with_a_raised_limit() -> None:
    source = RECURSE.format(limit=100_000, stack=8 << 20, setup=SETUPS["hook"])
    plain, under = map(int, run_python(source).split())
    assert abs(plain - under) <= 6


# ---- processes and interpreters ----


def test_a_forked_child_captures_and_leaves_the_hook() -> None:
    source = """
    import os, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of fork() beside threads
    def f(x): return x
    def g(x): return -x
    callback = Substitutes()
    ready, done = threading.Event(), threading.Event()
    def other():
        with hooked(callback):
            ready.set()
            done.wait()
    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()
    child = os.fork()
    if child == 0:
        fresh = Substitutes()
        fresh.put(f, guarded(g))
        with hooked(fresh):
            results = [f(1), f(2)]
        os._exit(7 if results == [-1, -2] and f(3) == 3 else 8)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    print(os.waitstatus_to_exitcode(status))
    """
    assert run_python(source) == "7\n"


def test_a_subinterpreter_is_refused_in_words() -> None:
    source = """
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        import _interpreters as interpreters
    code = "\\n".join([
        f"import sys; sys.path[:] = {sys.path!r}",
        "try: import dynamo.eval._frame",
        "except ImportError as error: print(error, flush=True)",
    ])
    created = interpreters.create(isolated=False) if sys.version_info < (3, 13) else interpreters.create("legacy")
    interpreters.run_string(created, code)
    interpreters.destroy(created)
    """
    assert "main interpreter only" in run_python(source)


def test_shutdown_is_clean_with_the_hook_set_and_threads_running() -> None:
    source = """
    import atexit, weakref
    def f(x): return x
    def g(x): return [x]
    callback = Substitutes()
    callback.put(f, guarded(g))
    def late():
        print(f(1))
    atexit.register(late)
    threading.Thread(target=lambda: threading.Event().wait(), daemon=True).start()
    class Last:
        def __del__(self):
            f(2)
    last = Last()
    _frame.set_eval_frame(callback)
    f(3)
    """
    assert run_python(source) == "[1]\n"


# ---- debuggers and profilers ----


def original(x: int) -> int:
    y = x + 1
    return y


def twin(x: int) -> int:
    y = x + 1
    return y


def with_lines_of(function: Callable[..., Any], model: Callable[..., Any]) -> Any:
    """The function with the name and place of `model`, as a translator gives them to new code."""
    code, shown = function.__code__, model.__code__
    return FunctionType(
        code.replace(
            co_name=shown.co_name, co_qualname=shown.co_qualname, co_firstlineno=shown.co_firstlineno
        ),
        function.__globals__,
    )


def traced(call: Callable[[], object]) -> list[tuple[str, str, int]]:
    events: list[tuple[str, str, int]] = []

    def trace(frame: Any, event: str, arg: object) -> Any:
        if frame.f_code.co_name not in ("call", "<lambda>", "__exit__"):
            events.append((event, frame.f_code.co_name, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return events


def test_settrace_sees_the_calls_and_lines_of_the_function_and_none_of_ours() -> None:
    expected = traced(lambda: original(1))
    callback = Substitutes()
    callback.put(original, guarded(with_lines_of(twin, original)))
    with hooked(callback):
        captured = traced(lambda: original(1))
        hit = traced(lambda: original(1))
    assert captured == hit == expected
    entry = _frame.EntryPoint(original, callback)
    assert traced(lambda: entry(1)) == expected


def test_setprofile_sees_one_call_and_one_return() -> None:
    def profiled(call: Callable[[], object]) -> list[tuple[str, str]]:
        events: list[tuple[str, str]] = []
        sys.setprofile(lambda frame, event, arg: events.append((event, frame.f_code.co_name)))
        try:
            call()
        finally:
            sys.setprofile(None)
        return [event for event in events if event[0] in ("call", "return")]

    expected = profiled(lambda: original(1))
    callback = Substitutes()
    callback.put(original, guarded(with_lines_of(twin, original)))
    with hooked(callback):
        assert profiled(lambda: original(1)) == expected
        assert profiled(lambda: original(1)) == expected


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring came with Python 3.12")
def test_monitoring_sees_the_start_and_return_of_cached_code() -> None:
    def monitored(call: Callable[[], object]) -> list[str]:
        events: list[str] = []
        monitoring: Any = vars(sys)["monitoring"]
        monitoring.use_tool_id(4, "test")
        monitoring.register_callback(
            4, monitoring.events.PY_START, lambda c, o: events.append(f"start {c.co_name}")
        )
        monitoring.register_callback(
            4, monitoring.events.PY_RETURN, lambda c, o, value: events.append(f"return {c.co_name}")
        )
        monitoring.set_events(4, monitoring.events.PY_START | monitoring.events.PY_RETURN)
        try:
            call()
        finally:
            monitoring.set_events(4, 0)
            monitoring.free_tool_id(4)
        return events

    expected = monitored(lambda: original(1))
    callback = Substitutes()
    callback.put(original, guarded(with_lines_of(twin, original)))
    with hooked(callback):
        original(1)
        assert monitored(lambda: original(1)) == expected


def test_a_frame_inside_cached_code_shows_its_function_and_locals() -> None:
    def outer(a: int) -> Any:
        return None

    def replacement(a: int) -> Any:
        b = a + 1
        frame = sys._getframe()
        assert frame.f_back is not None
        return frame.f_locals["a"], frame.f_locals["b"], b, frame.f_back.f_code.co_name

    callback = Substitutes()
    callback.put(outer, guarded(replacement))
    here = sys._getframe().f_code.co_name
    with hooked(callback):
        assert [outer(1), outer(1)] == [(1, 2, 2, here)] * 2
    assert _frame.EntryPoint(outer, callback)(1) == (1, 2, 2, here)


# ---- memory ----


class Token:
    """Something that can be weakly referred to."""


def leaks(call: Callable[[], object], calls: int = 100_000) -> int:
    """Bytes that are held after so many calls more than before them."""
    for _ in range(100):
        call()
    gc.collect()
    tracemalloc.start()
    call()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(calls):
        call()
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


def take(a: Any, *rest: Any, k: Any = None, **more: Any) -> Any:
    return (a, rest, k, more)


def take_generator(a: Any) -> Iterator[Any]:
    yield a


def fail(a: Any) -> Any:
    raise ValueError(a)


def capture_of(function: Callable[..., Any], check_fn: Callable[..., bool]) -> Substitutes:
    callback = Substitutes()
    callback.put(function, guarded(function, check_fn))
    return callback


@pytest.mark.parametrize("outcome", ["hit", "miss", "error", "generator", "callback error", "misfit"])
@pytest.mark.parametrize("way", ["hook", "entry"])
def test_references_are_balanced(outcome: str, way: str) -> None:
    token = Token()

    def refuse(frame: _frame.FrameView, entries: int) -> None:
        if frame.f_code is take.__code__:
            raise ValueError("refused")

    def never(*args: Any) -> bool:
        return False

    def always(*args: Any) -> bool:
        return True

    function: Callable[..., Any]
    callback: Callable[..., Any]
    if outcome in ("hit", "misfit"):
        function, callback = take, capture_of(take, always)
    elif outcome == "miss":
        function, callback = take, capture_of(take, never)
    elif outcome == "generator":
        function, callback = take_generator, capture_of(take_generator, always)
    elif outcome == "error":
        function, callback = fail, capture_of(fail, always)
    else:
        function, callback = take, refuse
    arguments: tuple[Any, ...] = (token,) if function is not take else (token, token)
    keywords = {} if function is not take else {"k": token, "z": token}
    if outcome == "misfit":
        arguments = ()
    called = _frame.EntryPoint(function, callback) if way == "entry" else function
    before = sys.getrefcount(token)

    def call() -> None:
        try:
            result = called(*arguments, **keywords)
            if outcome == "generator":
                next(result)
        except (ValueError, TypeError):
            pass

    if way == "entry":
        grown = leaks(call, 20_000)
    else:
        previous = _frame.set_eval_frame(callback)
        try:
            grown = leaks(call, 20_000)
        finally:
            _frame.set_eval_frame(previous)
    assert grown < 20_000
    if isinstance(callback, Substitutes):
        callback.seen.clear()
    gc.collect()
    assert sys.getrefcount(token) == before


def test_a_captured_function_made_anew_each_time_frees_its_closure() -> None:
    def make() -> tuple[Any, weakref.ref[Token]]:
        token = Token()

        def inner(a: int) -> Any:
            return token

        return inner, weakref.ref(token)

    first, _ = make()
    callback = Substitutes()
    callback.put(first, guarded(first, needs_hook=False))
    references = []
    for _ in range(10):
        inner, reference = make()
        entry = _frame.EntryPoint(inner, callback)
        assert entry(1) is reference()
        assert entry(1) is reference()
        references.append(reference)
    callback.seen.clear()
    del inner, entry
    gc.collect()
    assert [reference() for reference in references] == [None] * 10
    assert _frame.code_stats(first.__code__)["hits"] == 19


def test_a_hundred_thousand_hits_hold_no_memory() -> None:
    entry = _frame.EntryPoint(original, capture_of(original, lambda x: True))
    assert leaks(lambda: entry(1)) < 2_000


def test_capture_and_reset_a_thousand_times_hold_no_memory() -> None:
    def cycle() -> None:
        callback = capture_of(original, lambda x: True)
        entry = _frame.EntryPoint(original, callback)
        entry(1)
        entry(1)
        _frame.reset()

    assert leaks(cycle, 1_000) < 20_000
