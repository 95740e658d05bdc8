"""Every kind: a change after the check was built is a miss, an irrelevant one a hit, and both forms agree."""

from __future__ import annotations

import builtins
import collections
import enum
import math
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import pytest
import torch

from dynamo.guards import (
    UNBOUND,
    AmbientSource,
    AttrSource,
    BuiltinSource,
    CellSource,
    CheckFunctionManager,
    ClosureSource,
    DictKeySource,
    GlobalSource,
    Guard,
    GuardBuilder,
    GuardScope,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    Source,
    SuperSource,
    TupleIteratorItemSource,
    TypeSource,
    WeakRefCallSource,
    closure_cell_source,
    code_source,
    default_source,
    keyword_default_source,
)

X = LocalSource("x")
B = GuardBuilder


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Plain:
    shared = 1

    def __init__(self, value: object = 1) -> None:
        self.value = value

    def method(self) -> int:
        return 1


class Child(Plain):
    def method(self) -> int:
        return 2


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def both(manager: CheckFunctionManager, value: object) -> bool:
    """The answer of the two forms, which must be one."""
    native = manager.check([value])
    assert manager.check_fn(value) == native
    assert bool(manager.explain_failure([value])) is not native
    return native


def manager_for(value: object, *guards: Guard) -> CheckFunctionManager:
    return CheckFunctionManager(guards, GuardScope(("x",), (), (value,), None, globals(), vars(builtins)))


def tuple_iterator(*items: object, taken: int = 0) -> object:
    iterator = iter(items)
    for _ in range(taken):
        next(iterator)
    return iterator


def nested(value: object) -> Callable[[], object]:
    return lambda: value


def with_defaults(a: int = 1, *, b: int = 2) -> int:
    return a + b


def is_even(value: object) -> bool:
    return isinstance(value, int) and value % 2 == 0


NAN = math.nan


@dataclass(frozen=True)
class Case:
    """Guards made for ``value``; ``hits`` and ``misses`` are other values for the same argument."""

    name: str
    value: object
    create_fn: Callable[..., None]
    hits: list[object] = field(default_factory=list)
    misses: list[object] = field(default_factory=list)
    source: Source = X


def values_equal(value: object, hits: list[object], misses: list[object]) -> Case:
    return Case(f"EQUALS {value!r}", value, B.EQUALS_MATCH, hits, misses)


_plain, _ref_target = Plain(), Plain()
_function = nested(5)
CASES = [
    Case("TYPE_MATCH", 3, B.TYPE_MATCH, [4, -1], [True, 3.0, "3", None]),
    Case("ID_MATCH", _plain, B.ID_MATCH, [_plain], [Plain(), None]),
    Case("NOT_NONE_MATCH", 1, B.NOT_NONE_MATCH, [2, "x", False], [None]),
    values_equal(2, [2], [3, True, 2.0, "2", -2]),
    values_equal(1, [1], [True, 1.0]),
    values_equal(10**30, [10**30], [10**30 + 1]),
    values_equal(True, [True], [1, False]),
    values_equal(None, [None], [0, False]),
    values_equal(0.0, [0.0], [-0.0, 0, False]),
    values_equal(-0.0, [-0.0], [0.0]),
    values_equal(NAN, [NAN, float("nan")], [1.0, -NAN]),
    values_equal(1j, [1j], [1 + 1j, complex(-0.0, 1)]),
    values_equal("a", ["a", "".join(["a"])], ["b", b"a"]),
    values_equal(b"a", [b"a"], ["a", b"b"]),
    values_equal((1, 2.0), [(1, 2.0)], [(1, 2), (True, 2.0), (1, 2.0, 3), [1, 2.0]]),
    values_equal([1, "a"], [[1, "a"]], [[1], ["a", 1], (1, "a")]),
    values_equal({"a": 1}, [{"a": 1}], [{"a": True}, {"b": 1}, {}]),
    values_equal({"a": 1, "b": 2}, [{"a": 1, "b": 2}], [{"b": 2, "a": 1}]),
    values_equal({1, 2}, [{2, 1}], [{1, 3}, {True, 2}, frozenset({1, 2})]),
    values_equal(frozenset({1}), [frozenset({1})], [frozenset({True}), frozenset()]),
    values_equal(range(3), [range(0, 3)], [range(4), range(0, 3, 2)]),
    values_equal(slice(1, 2), [slice(1, 2, None)], [slice(1, 3), slice(True, 2)]),
    values_equal(torch.float32, [torch.float32], [torch.float64]),
    values_equal(torch.device("cpu"), [torch.device("cpu")], [torch.device("meta"), "cpu"]),
    values_equal(torch.Size([2, 3]), [torch.Size([2, 3])], [torch.Size([2, 4]), (2, 3)]),
    values_equal(Color.RED, [Color.RED], [Color.BLUE, 1]),
    values_equal(..., [...], [None]),
    Case("CONSTANT_MATCH of a constant", 7, B.CONSTANT_MATCH, [7], [8]),
    Case("CONSTANT_MATCH of an object", _plain, B.CONSTANT_MATCH, [_plain], [Plain()]),
    Case("BOOL_MATCH", True, B.BOOL_MATCH, [True], [False, 1]),
    Case("NONE_MATCH", None, B.NONE_MATCH, [None], [False]),
    Case("TRUTH_MATCH", [1], B.TRUTH_MATCH, [[2, 3]], [[], (1,)]),
    Case("LIST_LENGTH list", [1, 2], B.LIST_LENGTH, [[3, 4]], [[1], [1, 2, 3], (1, 2)]),
    Case("LIST_LENGTH tuple", (1, 2), B.LIST_LENGTH, [(3, 4)], [(1,), [1, 2]]),
    Case("LIST_LENGTH dict", {1: 2}, B.LIST_LENGTH, [{3: 4}], [{}, {1: 2, 3: 4}]),
    Case("LIST_LENGTH set", {1}, B.LIST_LENGTH, [{2}], [set()]),
    Case("DICT_KEYS", {"a": 1, "b": 2}, B.DICT_KEYS, [{"a": 5, "b": 6}], [{"b": 2, "a": 1}, {"a": 1}, {}, []]),
    Case("DICT_KEYS exact", {1: 0}, B.DICT_KEYS, [{1: 1}], [{True: 0}, {1.0: 0}]),
    Case(
        "DICT_KEYS ordered",
        collections.OrderedDict(a=1),
        B.DICT_KEYS,
        [collections.OrderedDict(a=2)],
        [{"a": 1}, collections.OrderedDict(b=1)],
    ),
    Case("DICT_VERSION", {"a": _plain}, B.DICT_VERSION, [{"a": _plain}], [{"a": Plain()}, {}]),
    Case("DICT_CONTAINS", {"a": 1}, partial(B.DICT_CONTAINS, key="a"), [{"a": 2, "b": 3}], [{}, {"b": 1}]),
    Case("SET_CONTAINS", {1}, partial(B.SET_CONTAINS, key=1), [{1, 2}], [set(), {2}]),
    Case("NOT_PRESENT_IN_DICT", {"a": 1}, partial(B.NOT_PRESENT_IN_DICT, key="b"), [{}], [{"b": 1}]),
    Case("HASATTR present", Plain(), partial(B.HASATTR, attr="value"), [Plain(2)], [1]),
    Case("NAME_MATCH", with_defaults, B.NAME_MATCH, [with_defaults], [nested]),
    Case("FUNCTION_MATCH", _function, B.FUNCTION_MATCH, [_function], [nested(5), nested]),
    Case("METHOD_MATCH", _plain.method, B.METHOD_MATCH, [_plain.method], [Plain().method, nested]),
    Case("FUNCTION_CODE_MATCH", nested(1), B.FUNCTION_CODE_MATCH, [nested(2)], [with_defaults, len]),
    Case("BUILTIN_MATCH", len, B.BUILTIN_MATCH, [len], [sum]),
    Case("MODULE_MATCH", math, B.MODULE_MATCH, [math], [torch, None]),
    Case("CLASS_MATCH", Plain, B.CLASS_MATCH, [Plain], [Child]),
    Case("WEAKREF_ALIVE", weakref.ref(_ref_target), B.WEAKREF_ALIVE, [weakref.ref(_plain)], [weakref.ref(Plain()), 1]),
    Case(
        "TUPLE_ITERATOR_LEN",
        tuple_iterator(1, 2, 3, taken=1),
        B.TUPLE_ITERATOR_LEN,
        [tuple_iterator(7, 8, 9, taken=1)],
        [tuple_iterator(1, 2, 3), tuple_iterator(1, 2, taken=1), tuple_iterator(1, taken=1), iter([1])],
    ),
    Case("PREDICATE", 4, partial(B.PREDICATE, predicate=is_even), [6], [5]),
    Case("attribute", Plain(3), B.EQUALS_MATCH, [Plain(3)], [Plain(4), Child(3), 3], AttrSource(X, "value")),
    Case("slot", Slotted(3), B.EQUALS_MATCH, [Slotted(3)], [Slotted(4), Plain(3)], AttrSource(X, "value")),
    Case("list item", [1, 2], B.EQUALS_MATCH, [[0, 2], [0, 2, 9]], [[1, 3], [1], (1, 2)], ItemSource(X, 1)),
    Case("tuple item", (1, 2), B.EQUALS_MATCH, [(0, 2)], [(1, 3), (1,)], ItemSource(X, 1)),
    Case("dict item", {"k": 2}, B.EQUALS_MATCH, [{"k": 2, "l": 1}], [{"k": 3}, {}], ItemSource(X, "k")),
    Case("dict key", {"k": 2}, B.EQUALS_MATCH, [{"k": 5}], [{"l": 2}, {}], DictKeySource(X, 0)),
    Case("object key", {Color.RED: 2}, B.EQUALS_MATCH, [{Color.RED: 2}], [{Color.BLUE: 2}], ItemSource(X, Color.RED)),
    Case("type()", _plain, B.ID_MATCH, [Plain()], [Child(), 1], TypeSource(X)),
    Case("instance dict", Plain(3), B.DICT_KEYS, [Plain(4)], [Child(3)], InstanceDictSource(X)),
    Case("weakref call", weakref.ref(_plain), B.ID_MATCH, [weakref.ref(_plain)], [weakref.ref(_ref_target)], WeakRefCallSource(X)),
    Case(
        "tuple iterator item",
        tuple_iterator(1, 2, 3),
        B.EQUALS_MATCH,
        [tuple_iterator(0, 2), tuple_iterator(7, 0, 2, taken=1)],
        [tuple_iterator(1), tuple_iterator(1, 3), iter([1, 2])],
        TupleIteratorItemSource(X, 1),
    ),
    Case("super", Child(), B.ID_MATCH, [Child(5)], [Plain()], SuperSource(X, Child, "method")),
    Case("closure of a function", nested(5), B.EQUALS_MATCH, [nested(5)], [nested(6)], closure_cell_source(X, 0)),
    Case("code of a function", nested(5), B.ID_MATCH, [nested(6)], [with_defaults], code_source(X)),
    Case("default", with_defaults, B.EQUALS_MATCH, [with_defaults], [nested], default_source(X, 0)),
    Case("keyword default", with_defaults, B.EQUALS_MATCH, [with_defaults], [nested], keyword_default_source(X, "b")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_relevant_change_misses_and_an_irrelevant_one_hits(case: Case) -> None:
    manager = manager_for(case.value, case.source.make_guard(case.create_fn))
    assert both(manager, case.value)
    for value in case.hits:
        assert both(manager, value), value
    for value in case.misses:
        assert not both(manager, value), value


def test_every_builder_method_has_a_case_in_this_folder() -> None:
    import pathlib

    text = "".join(path.read_text() for path in pathlib.Path(__file__).parent.glob("test_*.py"))
    kinds = [name for name in vars(GuardBuilder) if name.isupper() and not name.startswith("_")]
    assert kinds
    aliases = {id(vars(GuardBuilder)[name]) for name in kinds if f".{name}" in text}
    assert [name for name in kinds if id(vars(GuardBuilder)[name]) not in aliases] == []


def test_a_container_changed_in_place_misses() -> None:
    value: dict[str, list[int]] = {"a": [1]}
    manager = manager_for(value, X.make_guard(B.EQUALS_MATCH))
    assert both(manager, value)
    value["a"].append(2)
    assert not both(manager, value)


def test_a_shadow_in_the_instance_misses() -> None:
    value = Plain()
    manager = manager_for(value, X.make_guard(partial(B.NOT_PRESENT_IN_GENERIC_DICT, attr="shared")))
    value.value = 5
    assert both(manager, value)
    value.shared = 2
    assert not both(manager, value)


def test_a_lacking_attribute_that_appears_misses() -> None:
    value = Plain()
    manager = manager_for(value, X.make_guard(partial(B.HASATTR, attr="later")))
    assert both(manager, value)
    value.other = 1  # type: ignore[attr-defined]  # the test adds attributes
    assert both(manager, value)
    value.later = 1  # type: ignore[attr-defined]  # the test adds attributes
    assert not both(manager, value)


def test_a_class_patched_later_misses() -> None:
    class Patched(Plain):
        pass

    value = Patched()
    manager = manager_for(value, X.make_guard(partial(B.CLASS_ATTR_MATCH, attr="method")))
    Patched.other = 1  # type: ignore[attr-defined]  # irrelevant to the guard
    assert both(manager, value)
    Patched.method = lambda self: 3  # type: ignore[method-assign]  # the patch under test
    assert not both(manager, value)


def test_a_base_class_patched_later_misses() -> None:
    class Base:
        pass

    class Derived(Base):
        pass

    value = Derived()
    manager = manager_for(value, X.make_guard(partial(B.CLASS_ATTR_MATCH, attr="late")))
    assert both(manager, value)
    Base.late = 1  # type: ignore[attr-defined]  # the patch under test
    assert not both(manager, value)


def test_an_exchanged_code_object_misses() -> None:
    def function() -> int:
        return 1

    manager = manager_for(function, X.make_guard(B.FUNCTION_MATCH))
    function.__defaults__ = None
    assert both(manager, function)
    function.__code__ = (lambda: 2).__code__
    assert not both(manager, function)


def test_changed_defaults_miss() -> None:
    def function(a: int = 1) -> int:
        return a

    manager = manager_for(function, default_source(X, 0).make_guard(B.EQUALS_MATCH))
    function.__doc__ = "irrelevant"
    assert both(manager, function)
    function.__defaults__ = (2,)
    assert not both(manager, function)


def test_a_changed_cell_or_another_closure_misses() -> None:
    def make(value: int) -> tuple[types.FunctionType, Callable[[int], None]]:
        held = value

        def reader() -> int:
            return held

        def writer(new: int) -> None:
            nonlocal held
            held = new

        assert isinstance(reader, types.FunctionType)
        return reader, writer

    reader, writer = make(1)
    scope = GuardScope.of_call(reader, ())
    manager = CheckFunctionManager([ClosureSource("held").make_guard(B.EQUALS_MATCH)], scope)
    assert manager.check(()) and manager.check_fn()
    other_reader, _ = make(1)
    assert manager.check((), other_reader.__closure__)
    writer(2)
    assert not manager.check(()) and not manager.check_fn()
    kind = CheckFunctionManager([CellSource("held").make_guard(B.TYPE_MATCH)], scope)
    assert kind.check(()) and kind.check_fn()
    assert kind.check((), other_reader.__closure__)


def test_globals_and_builtins_are_those_of_the_call() -> None:
    space: dict[str, object] = {"scale": 2}
    names: dict[str, object] = {"len": len, "sum": sum}
    scope = GuardScope((), (), (), None, space, names)
    guards = [
        GlobalSource("scale").make_guard(B.EQUALS_MATCH),
        BuiltinSource("len").make_guard(B.BUILTIN_MATCH),
        GlobalSource("len").make_guard(B.GLOBAL_ABSENT),
    ]
    manager = CheckFunctionManager(guards, scope)
    assert manager.check(()) and manager.check_fn()
    assert not manager.check((), None, {"scale": 3})
    space["unrelated"] = 1
    assert manager.check(()) and manager.check_fn()
    space["len"] = sum
    assert not manager.check(()) and not manager.check_fn()
    del space["len"]
    names["len"] = sum
    assert not manager.check(()) and not manager.check_fn()


def test_an_argument_that_gets_a_value_misses() -> None:
    scope = GuardScope(("x",), (), (UNBOUND,), None, {}, {})
    manager = CheckFunctionManager([X.make_guard(B.UNBOUND)], scope)
    assert both(manager, UNBOUND)
    assert not both(manager, 1)


def test_aliasing_is_checked_both_ways() -> None:
    one, two = Plain(), Plain()
    y = LocalSource("y")
    scope = GuardScope(("x", "y"), (), (one, one), None, {}, {})
    same = CheckFunctionManager([X.make_guard(partial(B.OBJECT_ALIASING, other=y))], scope)
    scope = GuardScope(("x", "y"), (), (one, two), None, {}, {})
    different = CheckFunctionManager([X.make_guard(partial(B.NOT_ALIASING, others=[y]))], scope)
    for a, b in ((one, one), (two, two), (one, two)):
        assert same.check([a, b]) == same.check_fn(a, b) == (a is b)
        assert different.check([a, b]) == different.check_fn(a, b) == (a is not b)


class Mode(torch.overrides.TorchFunctionMode):
    """Another torch-function mode."""


AMBIENT_CHANGES: dict[str, Callable[[], object]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu"),
    "default device": lambda: torch.device("meta"),
    "function mode": Mode,
    "torch function disabled": torch._C.DisableTorchFunctionSubclass,
}


@pytest.mark.parametrize("change", AMBIENT_CHANGES)
def test_a_change_of_ambient_state_misses(change: str) -> None:
    manager = manager_for(1, AmbientSource().make_guard(B.AMBIENT))
    assert both(manager, 1) and both(manager, 2)
    with AMBIENT_CHANGES[change]():  # type: ignore[attr-defined]  # all are context managers
        assert not both(manager, 1)
    assert both(manager, 1)


GLOBAL_SETTINGS: dict[str, tuple[Callable[[], object], Callable[[object], None], object]] = {
    "dtype": (
        torch.get_default_dtype,
        cast(Callable[[object], None], torch.set_default_dtype),
        torch.float64,
    ),
    "deterministic": (
        torch.are_deterministic_algorithms_enabled,
        cast(Callable[[object], None], torch.use_deterministic_algorithms),
        True,
    ),
    "threads": (torch.get_num_threads, cast(Callable[[object], None], torch.set_num_threads), 7),
}


@pytest.mark.parametrize("name", GLOBAL_SETTINGS)
def test_a_change_of_a_global_setting_misses(name: str) -> None:
    get, put, other = GLOBAL_SETTINGS[name]
    before = get()
    manager = manager_for(1, AmbientSource().make_guard(B.GLOBAL_STATE))
    put(other)
    try:
        assert not both(manager, 1)
    finally:
        put(before)
    assert both(manager, 1)


def test_another_mode_of_the_same_number_misses() -> None:
    with Mode():
        manager = manager_for(1, AmbientSource().make_guard(B.TORCH_FUNCTION_STATE))
        assert both(manager, 1)
    with Mode():
        assert not both(manager, 1)


def test_autocast_of_another_dtype_misses() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        manager = manager_for(1, AmbientSource().make_guard(B.AMBIENT))
        assert both(manager, 1)
        with torch.autocast("cpu", dtype=torch.float16):
            assert not both(manager, 1)


@pytest.mark.parametrize("kind", [B.GRAD_MODE, B.DETERMINISTIC_ALGORITHMS, B.DEFAULT_DEVICE])
def test_a_part_of_the_ambient_state_ignores_the_rest(kind: Callable[..., None]) -> None:
    manager = manager_for(1, AmbientSource().make_guard(kind))
    with torch.autocast("cpu"):
        assert both(manager, 1)
    with torch.no_grad():
        assert both(manager, 1) is (kind is not B.GRAD_MODE)
