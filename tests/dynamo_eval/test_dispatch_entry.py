"""Entry points: calls that check guards and enter cached code without the hook."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo.eval import _frame
from dynamo.eval.dispatch import EntryPoint, capturing, entry_point, uncaptured
from tests.oracle.substitute import Substitutes, guarded


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    assert _frame.get_eval_frame() is None
    _frame.reset()


def captured(function: Any, replacement: Any = None, **options: Any) -> Any:
    """An entry point whose first call captures the code of `replacement` (of the function itself)."""
    callback = Substitutes()
    callback.put(function, guarded(replacement or function, **options))
    return entry_point(function, callback)


def scale(x: int, factor: int = 2) -> int:
    """Scaled."""
    return x * factor


def scaled_twice(x: int, factor: int = 2) -> int:
    return x * factor * factor


PICKLED = entry_point(scale, Substitutes())
scale_plain = scale
globals()["scale"] = PICKLED  # as the decorator would do; pickle looks it up by this name


# ---- calls ----


def test_the_first_call_captures_and_the_next_ones_hit() -> None:
    entry = captured(scale_plain, scaled_twice, needs_hook=False)
    assert [entry(5), entry(5), entry(5, 3), entry(x=1, factor=4)] == [20, 20, 45, 16]
    assert _frame.code_stats(scale_plain.__code__)["hits"] == 3


SIGNATURES: list[Callable[..., Any]] = [
    lambda: (),
    lambda a: (a,),
    lambda a, b: (a, b),
    lambda a, b=2: (a, b),
    lambda a=1, b=2: (a, b),
    lambda a, /, b: (a, b),
    lambda a, /, b=2, *, c: (a, b, c),
    lambda a, *, b, c=3: (a, b, c),
    lambda *args: args,
    lambda a, *args: (a, args),
    lambda **kwargs: kwargs,
    lambda a, **kwargs: (a, kwargs),
    lambda a, /, **kwargs: (a, kwargs),
    lambda a, b=2, *args, c, d=4, **kwargs: (a, b, args, c, d, kwargs),
    lambda a, /, b=2, *args, c=3, **kwargs: (a, b, args, c, kwargs),
    lambda a, b, c, d, e, f, g, h, i, j, k, m, n=1, o=2, p=3, q=4, r=5, s=6: (a, m, n, o, p, q, r, s),
]


def outcome(call: Callable[..., Any], args: list[int], kwargs: dict[str, int]) -> tuple[str, Any]:
    try:
        return "returned", call(*args, **kwargs)
    except TypeError as error:
        return "raised", str(error)


@given(
    index=st.integers(0, len(SIGNATURES) - 1),
    args=st.lists(st.integers(0, 9), max_size=20),
    kwargs=st.dictionaries(st.sampled_from("abcdefqsz"), st.integers(0, 9), max_size=4),
)
def test_arguments_are_bound_and_refused_as_python_does(
    index: int, args: list[int], kwargs: dict[str, int]
) -> None:
    function = SIGNATURES[index]
    for needs_hook in (True, False):
        seen: list[tuple[Any, ...]] = []

        def check(*values: Any, seen: list[tuple[Any, ...]] = seen) -> bool:
            seen.append(values)
            return True

        entry = captured(function, check_fn=check, needs_hook=needs_hook)
        expected = outcome(function, args, kwargs)
        assert [outcome(entry, args, kwargs) for _ in range(3)] == [expected] * 3
        if expected[0] == "returned":
            frame = entry.capture_callback.seen[0][0]
            assert seen == [tuple(frame.args)] * 2
        _frame.reset_code(function.__code__)


def test_changed_defaults_are_used() -> None:
    def function(a: int = 1, *, b: int = 2) -> tuple[int, int]:
        return a, b

    entry = captured(function)
    assert [entry(), entry()] == [(1, 2), (1, 2)]
    function.__defaults__ = (10,)
    function.__kwdefaults__ = {"b": 20}
    assert entry() == (10, 20)


def test_changed_code_is_captured_anew() -> None:
    def function(a: int) -> int:
        return a

    def other(a: int) -> int:
        return -a

    entry = captured(function)
    assert [entry(1), entry(1)] == [1, 1]
    function.__code__ = other.__code__
    assert entry(1) == -1


def test_one_code_with_several_closures_runs_each_with_its_own() -> None:
    def make(n: int) -> Callable[[int], tuple[int, int]]:
        return lambda x: (x, n)

    callback = Substitutes()
    callback.put(make(0), guarded(make(0), needs_hook=False))
    entries = [entry_point(make(n), callback) for n in range(5)]
    for _ in range(3):
        assert [entry(7) for entry in entries] == [(7, n) for n in range(5)]


def test_the_most_recent_capture_is_asked_first() -> None:
    asked: list[int] = []

    def function(x: int) -> int:
        return x

    def check_for(value: int) -> Callable[[int], bool]:
        def check(x: int) -> bool:
            asked.append(value)
            return x == value

        return check

    callback = Substitutes()
    callback.put(function, *[guarded(function, check_for(value)) for value in range(4)])
    entry = entry_point(function, callback)
    for value in range(4):
        entry(value)
    asked.clear()
    assert entry(1) == 1
    assert asked == [3, 2, 1]
    asked.clear()
    assert entry(1) == 1
    assert asked == [1]
    checks = [capture.manager for capture in _frame.cache_entries(function.__code__)]
    assert len(checks) == 4


def test_a_miss_asks_each_guard_once() -> None:
    asked: list[int] = []

    def function(x: int) -> int:
        return x

    def check(x: int) -> bool:
        asked.append(x)
        return x == 1

    callback = Substitutes()
    callback.put(function, guarded(function, check))
    entry = entry_point(function, callback)
    entry(1)
    assert asked == []
    entry(2)
    assert asked == [2]
    assert _frame.code_stats(function.__code__)["misses"] == 1


def test_python_near_a_fully_captured_function_runs_without_the_hook() -> None:
    def hook_is_on() -> bool:
        return _frame.get_eval_frame() is not None

    def function() -> bool:
        return hook_is_on()

    complete = captured(function, needs_hook=False)
    assert [complete(), complete(), hook_is_on()] == [False, False, False]
    _frame.reset()
    partial = captured(function, needs_hook=True)
    assert [partial(), partial(), hook_is_on()] == [True, True, False]


def test_an_exception_leaves_the_hook_as_it_was() -> None:
    def function(x: int) -> None:
        raise ValueError(x)

    for needs_hook in (True, False):
        entry = captured(function, needs_hook=needs_hook)
        for _ in range(3):
            with pytest.raises(ValueError, match="5"):
                entry(5)
            assert _frame.get_eval_frame() is None
        _frame.reset()


def test_an_entry_point_called_in_a_region_gives_the_region_back() -> None:
    def inner(x: int) -> int:
        return x

    def outer(x: int) -> int:
        return x

    region = Substitutes()
    entry = captured(inner)
    with capturing(region):
        assert [entry(1), entry(1), outer(2)] == [1, 1, 2]
        assert _frame.get_eval_frame() is region
    assert region.names == ["outer"]


def test_uncaptured_hides_all_that_it_calls() -> None:
    def helper(x: int) -> int:
        return x

    def function(x: int) -> int:
        return helper(x)

    region = Substitutes()
    with capturing(region):
        assert uncaptured(function)(1) == 1
        assert uncaptured(uncaptured(function))(1) == 1
        assert region.names == []
        helper(1)
    assert region.names == ["helper"]


def test_any_callable_runs_under_the_hook() -> None:
    def key(x: int) -> int:
        return -x

    callback = Substitutes()
    by_key: Any = entry_point(sorted, callback)
    assert by_key([1, 3, 2], key=key) == [3, 2, 1]
    assert callback.names == ["key"]
    with pytest.raises(TypeError, match="made for a callable, not int"):
        entry_point(3, callback)  # type: ignore[call-overload]  # the error is what is tested


def test_generator_functions_and_coroutines_go_through() -> None:
    def numbers(n: int) -> Iterator[int]:
        yield from range(n)

    async def answer() -> int:
        return 42

    entry = captured(numbers)
    assert [list(entry(3)), list(entry(3))] == [[0, 1, 2]] * 2
    coroutine = captured(answer)
    for _ in range(2):
        with pytest.raises(StopIteration) as stop:
            coroutine().send(None)
        assert stop.value.value == 42
    assert inspect.isgeneratorfunction(entry)
    assert inspect.iscoroutinefunction(coroutine)


# ---- like a function ----


def dispatched(function: Any) -> Any:
    return entry_point(function, Substitutes())


class Model:
    def __init__(self, n: int) -> None:
        self.n = n

    @dispatched
    def method(self, x: int, *, y: int = 1) -> int:
        return self.n + x + y

    @classmethod
    @dispatched
    def build(cls, n: int) -> Model:
        return cls(n)

    @dispatched
    @classmethod
    def build_inside(cls, n: int) -> Model:
        return cls(n)

    @staticmethod
    @dispatched
    def double(x: int) -> int:
        return 2 * x

    @dispatched
    @staticmethod
    def double_inside(x: int) -> int:
        return 2 * x

    @property
    @dispatched
    def negative(self) -> int:
        return -self.n


class Child(Model):
    def method(self, x: int, *, y: int = 1) -> Any:
        return 10 * super().method(x, y=y)


def test_methods_bind_as_those_of_a_function() -> None:
    model: Any = Model(5)
    for _ in range(2):
        assert model.method(1) == 7
        assert model.method(x=1, y=2) == 8
        assert Model.method(model, 1) == 7
        assert Child(5).method(1) == 70
        assert (Model.build(3).n, Child.build(3).n, type(Child.build_inside(3))) == (3, 3, Child)
        assert (model.double(4), Model.double(4), Model.double_inside(4)) == (8, 8, 8)
        assert model.negative == -5
    bound = model.method
    assert bound.__self__ is model and bound(1) == 7
    assert Model.method is Model.__dict__["method"]


def test_a_bound_method_has_an_entry_point_that_binds_no_more() -> None:
    class Owner:
        def __init__(self) -> None:
            self.n = 4

        def add(self, x: int, y: int = 0) -> int:
            return self.n + x + y

    owner = Owner()
    callback = Substitutes()
    callback.put(Owner.add, guarded(Owner.add, lambda self, x, y: self.n == 4, needs_hook=False))
    entry: Any = entry_point(owner.add, callback)
    Holder = type("Holder", (), {"entry": entry})
    assert [entry(1), entry(1), entry(x=2, y=3), Holder().entry(1)] == [5, 5, 9, 5]
    assert _frame.code_stats(Owner.add.__code__)["hits"] == 3
    copied = copy.deepcopy(entry)
    copied.__self__.n = 100
    assert (copied(1), entry(1)) == (101, 5)


def test_it_shows_name_doc_signature_and_attributes_of_the_function() -> None:
    def function(a: int, b: str = "x", *, c: float) -> bytes:
        """What it does."""
        raise NotImplementedError

    function.mark = 3  # type: ignore[attr-defined]  # any attribute
    entry: Any = entry_point(function, Substitutes())
    assert inspect.signature(entry) == inspect.signature(function)
    names = ["__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "mark"]
    names += ["__code__", "__defaults__", "__kwdefaults__", "__closure__", "__globals__"]
    for name in names:
        assert getattr(entry, name) == getattr(function, name), name
    assert entry.__wrapped__ is function
    assert inspect.unwrap(entry) is function
    assert inspect.getsource(entry) == inspect.getsource(function)
    assert inspect.signature(Model.__dict__["method"].__get__(Model(1))) == inspect.Signature.from_callable(
        Model(1).method
    )
    entry.note = 1
    assert entry.note == 1 and not hasattr(function, "note")
    with pytest.raises(AttributeError, match="absent"):
        entry.absent  # noqa: B018
    assert "function" in repr(entry)
    assert callable(entry) and EntryPoint.__mro__ == (EntryPoint, object)


def test_it_is_pickled_by_name_and_copied_as_itself() -> None:
    assert pickle.loads(pickle.dumps(PICKLED)) is PICKLED
    assert copy.copy(PICKLED) is PICKLED and copy.deepcopy({"f": PICKLED})["f"] is PICKLED

    def local() -> None: ...

    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(entry_point(local, Substitutes()))


def test_it_can_be_referred_to_weakly_and_hashed() -> None:
    def function() -> int:
        return 1

    entry = captured(function)
    entry(), entry()
    reference = weakref.ref(entry)
    assert {entry: 1}[entry] == 1
    del entry
    gc.collect()
    assert reference() is None


def test_the_function_and_its_owner_are_freed_with_the_entry_point() -> None:
    class Owner:
        def method(self) -> Any:
            return self

    owner: Any = Owner()
    callback = Substitutes()
    callback.put(Owner.method, guarded(Owner.method, needs_hook=False))
    owner.entry = entry_point(owner.method, callback)
    assert owner.entry() is owner and owner.entry() is owner
    callback.seen.clear()
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None


def test_an_entry_point_may_drop_itself_while_it_runs() -> None:
    def function() -> str:
        holder.clear()
        gc.collect()
        return "done"

    holder: list[Any] = [captured(function)]
    assert holder[0]() == "done"
    holder.append(captured(function))
    _frame.reset()
    assert holder[0]() == "done"


def test_releasing_a_capture_while_it_runs_is_safe() -> None:
    def function(x: int) -> int:
        _frame.reset()
        gc.collect()
        return x + sum([x, x])

    for _ in range(3):
        entry = captured(function)
        assert [entry(n) for n in range(5)] == [0, 3, 6, 9, 12]


def test_subclasses_can_be_made() -> None:
    class Named(EntryPoint[..., Any]):
        label = "named"

    named = Named(sorted, None)
    assert named([2, 1]) == [1, 2] and named.label == "named"


def test_threads_use_one_entry_point_at_the_same_time() -> None:
    def function(x: int) -> int:
        return x * 2

    wrong: list[int] = []

    def callback(frame: _frame.FrameView, entries: int) -> _frame.GuardedCode | None:
        if frame.f_code is not function.__code__:
            return None
        value = frame.args[0]
        return guarded(function, lambda x: bool(x == value), needs_hook=entries % 2 == 0)

    entry = entry_point(function, callback)

    def work(seed: int) -> None:
        for i in range(3000):
            x = (i + seed) % 5
            if entry(x) != 2 * x:
                wrong.append(x)
            if i % 700 == 699:
                _frame.reset_code(function.__code__)

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
