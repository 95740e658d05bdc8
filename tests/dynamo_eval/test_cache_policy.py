"""The cache of a code object: order, limits, reasons, and what is freed when."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dynamo.eval import _frame, cache
from dynamo.eval.cache import CacheLimits, GuardedCode
from dynamo.eval.dispatch import capturing, entry_point
from dynamo.guards import CheckFunctionManager, GuardBuilder, GuardScope, LocalSource
from tests.oracle.substitute import Guards, Substitutes, always, guarded


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    _frame.reset()


def double(x: Any) -> Any:
    return x + x


def double_captured(x: Any) -> Any:
    return ("captured", x + x)


class Owner:
    """A user's object that guards and captures refer to."""

    def __add__(self, other: object) -> str:
        return "sum"


def native(x: Any, create_fn: Callable[..., Any]) -> CheckFunctionManager:
    scope = GuardScope(("x",), (), (x,), None, globals(), vars(__import__("builtins")))
    return CheckFunctionManager([LocalSource("x").make_guard(create_fn)], scope)


def dispatch(*captures: GuardedCode) -> Any:
    callback = Substitutes()
    callback.put(double, *captures)
    return entry_point(double, callback)


# ---- native guards ----


@pytest.mark.parametrize("way", ["entry", "hook"])
def test_a_native_program_decides_over_arguments(way: str) -> None:
    callback = Substitutes()
    callback.put(double, GuardedCode(double_captured.__code__, native(1, GuardBuilder.TYPE_MATCH)))
    called: Any = entry_point(double, callback) if way == "entry" else double
    with capturing(callback if way == "hook" else None):
        results = [called(1), called(2), called("a"), called(3)]
    assert results == [("captured", 2), ("captured", 4), "aa", ("captured", 6)]


def test_closure_and_globals_reach_native_guards() -> None:
    from dynamo.guards import ClosureSource, GlobalSource

    factor = 2
    namespace: dict[str, Any] = {"offset": 10}

    def model(x: int) -> int:
        return x * factor

    exec(
        "def make(factor):\n    def function(x):\n        return x * factor + offset\n    return function",
        namespace,
    )
    function = namespace["make"](factor)

    def callback(frame: _frame.FrameView, entries: int) -> GuardedCode | None:
        if frame.f_code is not function.__code__:
            return None
        scope = GuardScope(
            ("x",), ("factor",), tuple(frame.args), frame.closure, frame.f_globals, frame.f_builtins
        )
        sources = [ClosureSource("factor"), GlobalSource("offset")]
        guards = [source.make_guard(GuardBuilder.EQUALS_MATCH) for source in sources]
        return GuardedCode(function.__code__.replace(), CheckFunctionManager(guards, scope))

    entry = entry_point(function, callback)
    for _ in range(2):
        assert entry(1) == 12
    assert _frame.code_stats(function.__code__)["captures"] == 1
    function.__closure__[0].cell_contents = 3
    assert [entry(1), entry(1)] == [13, 13]
    namespace["offset"] = 20
    assert [entry(1), entry(1)] == [23, 23]
    assert _frame.code_stats(function.__code__)["captures"] == 3
    assert _frame.code_stats(function.__code__)["recompiles"] == 2


def test_a_foreign_program_is_refused() -> None:
    class Manager:
        program = object()
        check_fn = staticmethod(always)

    with pytest.raises(TypeError, match="GuardProgram of dynamo.guards, not object"):
        GuardedCode(double.__code__, Manager())
    with pytest.raises(AttributeError, match="check_fn"):
        GuardedCode(double.__code__, object())  # type: ignore[arg-type]  # the error is what is tested


# ---- order ----


@pytest.mark.parametrize("count", [1, 2, 8])
def test_captures_in_turn_cost_one_check_each(count: int) -> None:
    asked: list[int] = []

    def check_for(value: int) -> Callable[[int], bool]:
        def check(x: int) -> bool:
            asked.append(value)
            return x == value

        return check

    entry = dispatch(*[guarded(double, check_for(value)) for value in range(count)])
    for _ in range(3):
        for value in range(count):
            entry(value)
    asked.clear()
    for _ in range(2):
        for value in range(count):
            assert entry(value) == 2 * value
    assert asked == list(range(count)) * 2


def test_cache_entries_have_the_latest_hit_first() -> None:
    captures = [guarded(double, lambda x, value=value: x == value) for value in range(3)]
    entry = dispatch(*captures)
    for value in (0, 1, 2, 0, 1):
        entry(value)
    assert cache.cache_entries(double.__code__) == [captures[1], captures[0], captures[2]]
    assert [capture.hits for capture in captures] == [1, 1, 0]


# ---- limits and reasons ----


def test_limits_speak_when_they_are_reached() -> None:
    limits = CacheLimits(entries=2, accumulated=3)

    def callback(frame: _frame.FrameView, entries: int) -> GuardedCode | None:
        if frame.f_code is not double.__code__:
            return None
        if cache.limit_reached(frame.f_code, limits):
            return None
        value = frame.args[0]
        return guarded(double_captured, lambda x: x == value)

    entry = entry_point(double, callback)
    assert cache.limit_reached(double.__code__, limits) is None
    assert [entry(0), entry(1)] == [("captured", 0), ("captured", 2)]
    full = cache.limit_reached(double.__code__, limits)
    assert full is not None and full.startswith("double has 2 captures, the limit (cache_size_limit)")
    assert [entry(2), entry(2), entry(0)] == [4, 4, ("captured", 0)]
    for capture in cache.cache_entries(double.__code__):
        capture.release()
    assert cache.limit_reached(double.__code__, limits) is None
    assert cache.limit_reached(double.__code__, CacheLimits(accumulated=2)) is not None
    cache.reset_code(double.__code__)
    assert cache.limit_reached(double.__code__, CacheLimits(entries=1, accumulated=1)) is None


def test_reasons_are_kept_until_reset() -> None:
    cache.note_recompile(double.__code__, "x was float32, is float64")
    cache.note_recompile(double.__code__, "x had 1 dimension, has 2")
    assert cache.recompile_reasons(double.__code__) == (
        "x was float32, is float64",
        "x had 1 dimension, has 2",
    )
    _frame.reset()
    assert cache.recompile_reasons(double.__code__) == ()
    assert guarded(double).reason is None
    assert GuardedCode(double.__code__.replace(), Guards(always), reason="first").reason == "first"


def test_why_missed_names_the_failed_guard_of_each_capture() -> None:
    seen: list[tuple[str, ...]] = []

    def callback(frame: _frame.FrameView, entries: int) -> GuardedCode | None:
        if frame.f_code is not double.__code__:
            return None
        seen.append(cache.why_missed(frame))
        x = frame.args[0]
        return GuardedCode(double.__code__.replace(), native(x, GuardBuilder.TYPE_MATCH))

    entry = entry_point(double, callback)
    for value in (1, "a", 1.5):
        entry(value)
    assert [len(reasons) for reasons in seen] == [0, 1, 2]
    assert "x" in seen[1][0] and "int" in seen[1][0]


def test_counters_add_up_and_codes_lists_what_is_known() -> None:
    entry = dispatch(guarded(double, lambda x: x == 1))
    for value in (1, 1, 2, 2, 1):
        entry(value)
    counters = _frame.code_stats(double.__code__)
    assert (counters["hits"], counters["misses"], counters["captures"], counters["skip"]) == (2, 2, 1, True)
    assert double.__code__ in _frame.codes()
    total = _frame.stats()
    assert total["hits"] >= 2 and total["entries"] >= 1 and total["codes"] >= 1
    _frame.reset()
    assert _frame.codes() == [] and set(_frame.stats().values()) == {0}


# ---- what is freed when ----


def graph_of(capture_target: dict[str, Any]) -> tuple[GuardedCode, weakref.ref[Owner]]:
    """A capture whose code holds a graph (an object), and a weak reference to that graph."""
    graph = Owner()
    code = double.__code__.replace(co_consts=(*double.__code__.co_consts, graph))
    capture_target["capture"] = GuardedCode(code, Guards(always))
    return capture_target["capture"], weakref.ref(graph)


@pytest.mark.parametrize("how", ["reset", "reset_code", "release"])
def test_a_graph_is_freed_at_once(how: str) -> None:
    holder: dict[str, Any] = {}
    capture, graph = graph_of(holder)
    callback = Substitutes()
    callback.put(double, capture)
    entry = entry_point(double, callback)
    assert [entry(1), entry(1), entry(1)] == [2, 2, 2]
    if how == "release":
        capture.release()
        assert not capture.cached
    holder.clear()
    del capture
    if how == "reset":
        _frame.reset()
    elif how == "reset_code":
        _frame.reset_code(double.__code__)
    assert graph() is None
    assert entry(1) == 2


def test_a_graph_is_freed_with_the_code_of_its_function() -> None:
    namespace: dict[str, Any] = {}
    exec("def function(x):\n    return x + x\n", namespace)
    holder: dict[str, Any] = {}
    capture, graph = graph_of(holder)
    callback = Substitutes()
    callback.put(namespace["function"], capture)
    entry = entry_point(namespace["function"], callback)
    assert [entry(1), entry(1)] == [2, 2]
    holder.clear()
    del capture, entry, callback
    namespace.clear()
    gc.collect()
    assert graph() is None


def test_a_capture_whose_owner_died_is_dropped_where_it_is_met() -> None:
    owner = Owner()
    capture = GuardedCode(double.__code__.replace(), native(owner, GuardBuilder.ID_MATCH))
    entry = dispatch(capture)
    assert [entry(owner), entry(owner)] == ["sum", "sum"]
    assert capture.cached and capture.valid
    reference = weakref.ref(owner)
    entry.capture_callback.seen.clear()
    del owner
    assert reference() is None
    assert not capture.valid
    assert entry(3) == 6
    assert not capture.cached
    assert _frame.code_stats(double.__code__)["dropped"] == 1


def test_captures_whose_owners_died_are_dropped_by_drop_invalid_and_by_the_next_capture() -> None:
    def other(x: int) -> int:
        return x

    for drop in (True, False):
        owner = Owner()
        capture = GuardedCode(double.__code__.replace(), native(owner, GuardBuilder.ID_MATCH))
        entry = dispatch(capture)
        entry(owner)
        entry.capture_callback.seen.clear()
        del owner
        assert capture.cached
        if drop:
            assert _frame.drop_invalid() == 1
        else:
            callback = Substitutes()
            callback.put(other, guarded(other))
            assert entry_point(other, callback)(1) == 1
        assert not capture.cached
        _frame.reset()


def test_guards_that_tell_of_their_end_free_the_capture_at_once() -> None:
    class Telling(Guards):
        def __init__(self) -> None:
            super().__init__(always)
            self.callbacks: list[Callable[[], None]] = []

        def on_invalidate(self, callback: Callable[[], None]) -> None:
            self.callbacks.append(callback)

    guards = Telling()
    capture = GuardedCode(double.__code__.replace(), guards)
    cache.release_when_invalid(capture)
    entry = dispatch(capture)
    entry(1)
    assert capture.cached
    guards.callbacks[0]()
    assert not capture.cached
    reference = weakref.ref(capture)
    del capture, entry
    gc.collect()
    assert reference() is None
    guards.callbacks[0]()


def test_the_same_capture_cannot_be_in_two_caches() -> None:
    def other(x: Any) -> Any:
        return x

    capture = guarded(double)
    assert dispatch(capture)(1) == 2
    callback = Substitutes()
    callback.put(other, capture)
    with pytest.raises(ValueError, match="already is in the cache"):
        entry_point(other, callback)(1)


def test_captures_carry_notes_and_can_be_subclassed() -> None:
    class Noted(GuardedCode):
        graph: str

    noted = Noted(double.__code__.replace(), Guards(always))
    noted.graph = "graph"
    assert dispatch(noted)(2) == 4
    (kept,) = cache.cache_entries(double.__code__)
    assert kept is noted and kept.code is noted.code and kept.check_fn(1)
    assert "double" in repr(kept)
