"""A check that skips what did not change since the last one: never stale, and it gives back what it took."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dynamo.guards import (
    AttrSource,
    CheckFunctionManager,
    ConstantSource,
    Guard,
    GuardBuilder,
    GuardScope,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    Source,
    SuperSource,
    TypeSource,
    _check,
)

B = GuardBuilder
X = LocalSource("x")


class Box:
    """An object with attributes."""

    shared = "class"

    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)


class OtherBox(Box):
    """The same with another class."""


def ballast() -> list[Guard]:
    """Enough guards on dicts that skipping them pays."""
    kept = {i: i for i in range(40)}
    source = ConstantSource(kept, "kept")
    return [ItemSource(source, i).make_guard(B.EQUALS_MATCH) for i in kept]


def manager_for(value: object, *guards: Guard) -> CheckFunctionManager:
    scope = GuardScope(("x",), (), (value,), None, {}, {})
    return CheckFunctionManager([*guards, *ballast()], scope)


def agree(manager: CheckFunctionManager, value: object) -> bool:
    """The answer; several native checks in a row and the Python form give the same."""
    python = manager.check_fn(value)
    for _ in range(3):
        assert manager.check([value]) is python
    return python


def warm(manager: CheckFunctionManager, value: object) -> None:
    assert agree(manager, value)
    assert manager.program.remembered is _check.MARKS


def attr(name: str, kind: Callable[..., None] = B.EQUALS_MATCH, source: Source = X) -> Guard:
    return AttrSource(source, name).make_guard(kind)


def replace_dict(box: Box) -> None:
    box.__dict__ = {**box.__dict__, "a": 2}


def store_often(box: Box) -> None:
    for i in range(200):  # enough for the interpreter to specialise the store
        box.a = i  # type: ignore[attr-defined]  # made by __init__


CHANGES: dict[str, Callable[[Box], object]] = {
    "setattr": lambda box: setattr(box, "a", 2),
    "a store that the interpreter has specialised": store_often,
    "another value in __dict__": lambda box: box.__dict__.update(a=2),
    "another __dict__": replace_dict,
    "delattr": lambda box: delattr(box, "a"),
    "clear": lambda box: box.__dict__.clear(),
    "popitem": lambda box: [box.__dict__.popitem() for _ in range(len(box.__dict__))],
    "another class": lambda box: setattr(box, "__class__", OtherBox),
    "another value in a nested dict": lambda box: box.d.update(k=2),  # type: ignore[attr-defined]  # made by __init__
    "another nested dict": lambda box: setattr(box, "d", {"k": 2}),
    "another value in a nested object": lambda box: setattr(box.inner, "a", 2),  # type: ignore[attr-defined]  # made by __init__
    "another nested object": lambda box: setattr(box, "inner", Box(a=2)),
    "another tuple": lambda box: setattr(box, "t", (1, 3)),
    "another list item": lambda box: box.items.append(box.items.pop(0)),  # type: ignore[attr-defined]  # made by __init__
}


def full() -> tuple[Box, list[Guard]]:
    box = Box(a=1, f=2.5, d={"k": 1}, inner=Box(a=1), t=(1, 2), items=[1, 2])
    items = AttrSource(X, "items")
    guards = [
        attr("a"),
        attr("f"),
        X.make_guard(B.TYPE_MATCH),
        ItemSource(AttrSource(X, "d"), "k").make_guard(B.EQUALS_MATCH),
        attr("a", source=AttrSource(X, "inner")),
        *(ItemSource(AttrSource(X, "t"), i).make_guard(B.EQUALS_MATCH) for i in range(2)),
        *(ItemSource(items, i).make_guard(B.EQUALS_MATCH) for i in range(2)),
        X.make_guard(partial(B.NOT_PRESENT_IN_GENERIC_DICT, attr="shared")),
    ]
    return box, guards


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_after_several_checks_misses(name: str) -> None:
    box, guards = full()
    manager = manager_for(box, *guards)
    warm(manager, box)
    kept = box.__dict__  # an old dict that lives on tells nothing of the object
    CHANGES[name](box)
    assert not agree(manager, box)
    assert kept is not None


def test_a_shadow_over_a_class_attribute_misses_and_its_end_hits() -> None:
    box, guards = full()
    manager = manager_for(box, *guards)
    warm(manager, box)
    box.shared = "own"
    assert not agree(manager, box)
    del box.shared
    assert agree(manager, box)


def test_a_change_of_what_is_not_guarded_hits_and_stays_remembered() -> None:
    box, guards = full()
    manager = manager_for(box, *guards)
    warm(manager, box)
    for i in range(50):
        box.counter = i  # type: ignore[attr-defined]  # new on purpose
        assert manager.check([box])
        assert manager.program.remembered is _check.MARKS


def test_a_number_that_comes_to_the_same_address_misses() -> None:
    box = Box(f=2.5)
    manager = manager_for(box, attr("f"))
    for value in (3.5, 4.5, 2.25) * 20:
        box.f = 1.25 + 1.25 * len(box.__dict__)  # type: ignore[attr-defined]  # a new 2.5 each time
        assert manager.check([box])
        address = id(box.f)  # type: ignore[attr-defined]  # made by __init__
        box.f = value + len(box.__dict__) - 1  # type: ignore[attr-defined]  # made by __init__
        assert not manager.check([box]), address


def test_a_tuple_that_comes_to_the_same_address_misses() -> None:
    box = Box(t=(1, 2))
    manager = manager_for(
        box, *(ItemSource(AttrSource(X, "t"), i).make_guard(B.EQUALS_MATCH) for i in range(2))
    )
    for _ in range(50):
        box.t = (1, len(box.__dict__) + 1)  # type: ignore[attr-defined]  # made by __init__
        assert manager.check([box])
        box.t = (1, len(box.__dict__) + 2)  # type: ignore[attr-defined]  # made by __init__
        assert not manager.check([box])


def test_a_new_object_at_the_address_of_a_dead_one_misses() -> None:
    manager = manager_for(Box(a=1), attr("a"))
    for _ in range(100):
        assert manager.check([Box(a=1)])
        assert not manager.check([Box(a=2)])


def test_a_dict_replaced_by_an_equal_one_is_followed_from_then_on() -> None:
    box, guards = full()
    manager = manager_for(box, *guards)
    warm(manager, box)
    box.d = {"k": 1}  # type: ignore[attr-defined]  # made by __init__
    assert agree(manager, box)
    box.d["k"] = 2  # type: ignore[attr-defined]  # made by __init__
    assert not agree(manager, box)


def test_a_patched_class_misses() -> None:
    class Base:
        def method(self) -> int:
            return 1

    class Child(Base):
        def method(self) -> int:
            return 2

    child = Child()
    manager = manager_for(
        child,
        X.make_guard(partial(B.CLASS_ATTR_MATCH, attr="method")),
        TypeSource(X).make_guard(B.ID_MATCH),
        SuperSource(X, Child, "method").make_guard(B.ID_MATCH),
        InstanceDictSource(X).make_guard(partial(B.NOT_PRESENT_IN_DICT, key="method")),
    )
    warm(manager, child)
    saved = Base.method
    Base.method = lambda self: 3  # type: ignore[method-assign]  # what is tested
    assert not agree(manager, child)
    Base.method = saved  # type: ignore[method-assign]  # what is tested
    assert agree(manager, child)
    own = Child.method
    del Child.method
    assert not agree(manager, child)
    Child.method = own  # type: ignore[method-assign]  # what is tested
    assert agree(manager, child)


def test_the_order_of_an_ordered_dict_counts() -> None:
    value = OrderedDict(a=1, b=2)
    manager = manager_for(value, X.make_guard(B.DICT_KEYS))
    warm(manager, value)
    value.move_to_end("a")
    assert not agree(manager, value)
    value.move_to_end("b")
    assert agree(manager, value)


def test_modules_in_turn_are_told_apart() -> None:
    nets = [nn.Sequential(*(nn.Linear(2, 2) for _ in range(6))) for _ in range(3)]
    manager = CheckFunctionManager(
        [X.make_guard(B.NN_MODULE_TREE)], GuardScope(("x",), (), (nets[0],), None, {}, {})
    )
    for _ in range(40):
        assert [manager.check([net]) for net in nets] == [True, False, False]
    state = CheckFunctionManager(
        [X.make_guard(B.MODULE_STATE)], GuardScope(("x",), (), (nets[0],), None, {}, {})
    )
    for _ in range(40):
        assert [state.check([net]) for net in nets] == [state.check_fn(net) for net in nets]


def test_a_swapped_tensor_misses() -> None:
    net = nn.Linear(2, 2)  # its parameters are not identified: torch swaps no tensor that has weak references
    manager = manager_for(net, attr("weight", B.TENSOR_MATCH), attr("bias", B.TENSOR_MATCH))
    warm(manager, net)
    torch.utils.swap_tensors(net.weight, nn.Parameter(torch.ones(3, 3)))  # type: ignore[no-untyped-call]  # torch leaves it untyped
    assert not agree(manager, net)


def test_a_predicate_may_drop_what_is_checked() -> None:
    box, guards = full()
    inner = AttrSource(X, "inner")
    dropping: list[bool] = []

    def drop(value: object) -> bool:
        if dropping:
            box.__dict__.pop("inner", None)
            gc.collect()
        return isinstance(value, Box)

    def last(value: object) -> bool:
        return value == 1

    manager = manager_for(
        box,
        *guards,
        inner.make_guard(partial(B.LAMBDA_GUARD, predicate=drop)),
        AttrSource(inner, "a").make_guard(partial(B.LAMBDA_GUARD, predicate=last)),
    )
    warm(manager, box)
    dropping.append(True)
    assert manager.check([box])  # it held when the check began
    assert not agree(manager, box)


def test_a_predicate_that_checks_again_gets_an_answer() -> None:
    box, guards = full()
    answers: list[bool] = []
    managers: list[CheckFunctionManager] = []

    def again(value: object) -> bool:
        if managers and len(answers) < 3:
            answers.append(True)
            answers[-1] = managers[0].check([box])
        return True

    manager = manager_for(box, *guards, X.make_guard(partial(B.LAMBDA_GUARD, predicate=again)))
    managers.append(manager)
    assert manager.check([box]) and manager.check([box])
    assert answers == [True, True, True]


def test_arguments_that_are_new_on_each_call_do_not_spoil_what_is_remembered() -> None:
    box, guards = full()
    scope = GuardScope(("x", "options", "rest"), (), (box, {"scale": 2}, (1, {"k": 1})), None, {}, {})
    options, rest = LocalSource("options"), LocalSource("rest")
    more = [
        options.make_guard(B.DICT_KEYS),
        ItemSource(options, "scale").make_guard(B.EQUALS_MATCH),
        ItemSource(ItemSource(rest, 1), "k").make_guard(B.EQUALS_MATCH),
    ]
    manager = CheckFunctionManager([*guards, *more, *ballast()], scope)
    for _ in range(30):
        assert manager.check([box, {"scale": 2}, (1, {"k": 1})])
        assert not manager.check([box, {"scale": 3}, (1, {"k": 1})])
        assert not manager.check([box, {"scale": 2}, (1, {"k": 2})])
        assert not manager.check([box, {"other": 2}, (1, {"k": 1})])
    assert manager.program.remembered is _check.MARKS
    box.inner.a = 2  # type: ignore[attr-defined]  # made by __init__
    assert not manager.check([box, {"scale": 2}, (1, {"k": 1})])


def test_a_hundred_thousand_checks_leak_nothing() -> None:
    net = nn.Sequential(*(nn.Linear(2, 2) for _ in range(6)))
    other = nn.Sequential(*(nn.Linear(2, 2) for _ in range(6)))
    manager = CheckFunctionManager(
        [X.make_guard(B.NN_MODULE_TREE)], GuardScope(("x",), (), (net,), None, {}, {})
    )
    values: list[object] = [net, *net, *net.parameters(), net.__dict__, type(net), nn.Linear]

    def run() -> None:
        assert manager.program.repeat(50_000, (net,)) == 50_000
        for _ in range(500):
            assert not manager.check([other]) and manager.check([net])
            net.counter = 1  # type: ignore[assignment]  # moves the mark of a dict, changes nothing guarded
            assert manager.check([net])
            net[0].eval()
            assert not manager.check([net])
            net[0].train()

    run()
    counts = [sys.getrefcount(value) for value in values]
    gc.collect()
    tracemalloc.start()
    try:
        run()
        before = tracemalloc.get_traced_memory()[0]
        run()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert [sys.getrefcount(value) for value in values] == counts
    assert after - before < 20_000


def test_what_was_followed_is_given_back() -> None:
    gc.collect()
    before = _check.marks()
    box, guards = full()
    first, second = manager_for(box, *guards), manager_for(box, *guards)
    warm(first, box)
    warm(second, box)
    followed = _check.marks()
    assert sys.version_info < (3, 12) or followed > before
    first.invalidate()
    assert sys.version_info < (3, 12) or before < _check.marks() <= followed
    assert second.check([box])
    del first, second, guards
    gc.collect()
    assert _check.marks() == before
    box.a = 5  # type: ignore[attr-defined]  # a store to a dict that nobody follows any more


def test_nothing_that_was_checked_is_kept_alive() -> None:
    box, guards = full()
    manager = manager_for(box, *guards)
    warm(manager, box)
    counts = [sys.getrefcount(value) for value in box.__dict__.values()]
    for _ in range(1000):
        manager.check([box])
    assert [sys.getrefcount(value) for value in box.__dict__.values()] == counts
    dead: list[bool] = []

    class Mortal(Box):
        def __del__(self) -> None:
            dead.append(True)

    mortal = Mortal(a=1)
    mortals = manager_for(mortal, attr("a"))
    warm(mortals, mortal)
    del mortal
    assert dead == [True]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="dicts have versions; nothing can run out")
def test_without_a_free_watcher_every_check_walks() -> None:
    program = """
import ctypes, torch
CALLBACK = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
callback = CALLBACK(lambda *event: 0)
try:
    while True:
        ctypes.pythonapi.PyDict_AddWatcher(callback)
except RuntimeError:
    pass
import dynamo.guards as g
assert not g.native_status().remembers, g.native_status()
assert "no dict watcher left" in str(g.native_status())
net = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(8)))
manager = g.CheckFunctionManager(
    [g.LocalSource("x").make_guard(g.GuardBuilder.NN_MODULE_TREE)], g.GuardScope(("x",), (), (net,), None, {}, {})
)
assert manager.check([net]) and manager.check([net]) and not manager.program.remembered
net.eval()
assert not manager.check([net])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


NAMES = st.sampled_from(["a", "b", "c"])
LEAVES = st.one_of(st.integers(0, 2), st.sampled_from([0.5, 1.5, "s", None]), st.tuples(st.integers(0, 1)))


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> object:
    kind = draw(st.integers(0, 3)) if depth else 0
    if kind == 0:
        return draw(LEAVES)
    entries = {name: draw(trees(depth - 1)) for name in draw(st.lists(NAMES, unique=True, max_size=3))}
    if kind == 1:
        return entries
    return OrderedDict(entries) if kind == 2 else Box(**entries)


def guards_of(value: object, source: Source) -> list[Guard]:
    if isinstance(value, Box):
        found = [source.make_guard(B.TYPE_MATCH)]
        for name, item in value.__dict__.items():
            found += guards_of(item, AttrSource(source, name))
        missing = [name for name in ("a", "b", "c") if name not in value.__dict__]
        return found + [
            source.make_guard(partial(B.NOT_PRESENT_IN_GENERIC_DICT, attr=name)) for name in missing
        ]
    if isinstance(value, dict):
        found = [source.make_guard(B.DICT_KEYS)]
        for name, item in value.items():
            found += guards_of(item, ItemSource(source, name))
        return found
    return [source.make_guard(B.EQUALS_MATCH)]


def places(value: object) -> list[object]:
    inner = value.__dict__ if isinstance(value, Box) else value
    if not isinstance(inner, dict):
        return []
    return [value, *(place for item in inner.values() for place in places(item))]


def mutate(place: object, name: str, new: object, kind: int) -> None:
    """Change one object or dict of the tree in one of the ways that Python has."""
    if isinstance(place, Box):
        if kind == 0:
            place.__dict__ = {**place.__dict__, name: new}
        elif kind == 1:
            place.__dict__.pop(name, None)
        elif kind == 2:
            place.__class__ = OtherBox if type(place) is Box else Box
        else:
            setattr(place, name, new)
    elif isinstance(place, dict):
        if kind == 0:
            place.pop(name, None)
        elif kind == 1 and isinstance(place, OrderedDict) and name in place:
            place.move_to_end(name)
        elif kind == 2:
            place.clear()
        else:
            place[name] = new


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_both_forms_agree_while_a_tree_changes(data: st.DataObject) -> None:
    root = Box(top=data.draw(trees()), other=data.draw(trees()))
    manager = manager_for(root, *guards_of(root, X))
    saved = [root]
    assert agree(manager, root)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.sampled_from(places(root)))
        name = data.draw(st.sampled_from(["a", "b", "c", "top", "other"]))
        mutate(place, name, data.draw(trees(depth=2)), data.draw(st.integers(0, 5)))
        agree(manager, root)
    assert saved[0] is root
