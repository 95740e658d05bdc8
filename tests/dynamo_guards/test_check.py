"""The manager: validity, what is kept alive, errors at build and at run time, words, text, the capsule."""

from __future__ import annotations

import ctypes
import gc
import logging
import subprocess
import sys
import weakref
from functools import partial
from types import FunctionType
from typing import cast

import pytest
import torch

import dynamo.guards
from dynamo.guards import (
    AttrSource,
    CheckFunctionManager,
    ClosureSource,
    GlobalSource,
    Guard,
    GuardBuilder,
    GuardBuildError,
    GuardError,
    GuardScope,
    GuardSource,
    ItemSource,
    LocalSource,
    _check,
)

X, Y = LocalSource("x"), LocalSource("y")
B = GuardBuilder


class Plain:
    value = 1


def manager_for(value: object, *guards: Guard) -> CheckFunctionManager:
    return CheckFunctionManager(guards, GuardScope(("x",), (), (value,), None, {}, {}))


def test_the_text_is_that_of_the_seed() -> None:
    tensor = torch.ones(2)
    scope = GuardScope(("y", "x"), (), (2, tensor), None, {}, {})
    guards = [X.make_guard(B.TENSOR_MATCH), Y.make_guard(B.EQUALS_MATCH, ("toy.py", 14))]
    manager = CheckFunctionManager(guards, scope)
    assert " and ".join(manager.code_parts) == (
        f"___guarded_code.valid and ___check_type_id(y, {id(int)}) and y == 2 and ___check_tensors(x)"
    )
    assert manager.verbose_code_parts[1].endswith("y == 2  # toy.py:14")
    assert "def check_fn(y, x, /):" in manager.source
    assert manager.check_fn(2, tensor) is True


def test_the_words_name_each_source_once_with_all_that_must_hold_of_it() -> None:
    tensor = torch.ones(2, 3)
    scope = GuardScope(("y", "x"), (), ([2], tensor), None, {}, {})
    guards = [
        X.make_guard(B.TENSOR_MATCH),
        Y.make_guard(B.TYPE_MATCH),
        ItemSource(Y, 0).make_guard(B.EQUALS_MATCH),
    ]
    words = CheckFunctionManager(guards, scope).words
    assert sorted(sentence.split(":")[0] for sentence in words) == ["x", "y", "y[0]"]
    of_source = dict(sentence.split(": ", 1) for sentence in words)
    assert "float32" in of_source["x"] and "2×3" in of_source["x"]
    assert of_source["y"] == "type list"
    assert of_source["y[0]"] == "type int, 2"


def test_a_guard_can_come_with_a_name_alone() -> None:
    value = Plain()
    value.value = [1, {"k": 5}]  # type: ignore[assignment]  # any value will do
    guard = Guard("x.value[1]['k']", GuardSource.LOCAL, B.EQUALS_MATCH)
    manager = manager_for(value, guard)
    assert manager.check([value])
    value.value[1]["k"] = 6  # type: ignore[index]  # see above
    assert not manager.check([value])
    with pytest.raises(GuardBuildError, match="nothing_like_it is no argument"):
        manager_for(1, Guard("nothing_like_it", GuardSource.LOCAL, B.TYPE_MATCH))
    with pytest.raises(GuardBuildError, match="not an expression"):
        manager_for(1, Guard("x +", GuardSource.LOCAL, B.TYPE_MATCH))


def test_odd_argument_names_work() -> None:
    scope = GuardScope((".0", "___globals"), (), (1, 2), None, {}, {})
    guards = [LocalSource(name).make_guard(B.EQUALS_MATCH) for name in scope.arg_names]
    manager = CheckFunctionManager(guards[:1], scope)
    assert manager.check([1, 2]) and manager.check_fn(1, 2)
    assert not manager.check([2, 2]) and not manager.check_fn(2, 2)


def test_the_death_of_an_object_makes_the_check_invalid() -> None:
    value = Plain()
    manager = manager_for(value, X.make_guard(B.ID_MATCH))
    check_fn = manager.check_fn
    assert manager.valid and check_fn(value)
    del value
    gc.collect()
    assert not manager.valid
    assert not manager.program.valid
    assert not check_fn(Plain()) and not manager.check([Plain()])
    assert "not valid" in manager.explain_failure([Plain()])


def test_the_death_of_a_class_makes_the_check_invalid() -> None:
    def make() -> CheckFunctionManager:
        class Gone:
            pass

        return manager_for(Gone(), X.make_guard(B.TYPE_MATCH))

    manager = make()
    gc.collect()
    assert not manager.valid


def test_the_program_outlives_its_manager_and_still_sees_a_death() -> None:
    value = Plain()
    program = manager_for(value, X.make_guard(B.ID_MATCH)).program
    gc.collect()
    assert program.check((value,))
    del value
    gc.collect()
    assert not program.valid


def test_invalidate_makes_both_forms_miss() -> None:
    manager = manager_for(1, X.make_guard(B.EQUALS_MATCH))
    check_fn = manager.check_fn
    manager.invalidate()
    assert not manager.check([1]) and not check_fn(1) and not manager.check_fn(1)


def test_who_asked_is_called_once_when_the_check_becomes_invalid() -> None:
    seen: list[str] = []
    manager = manager_for(1, X.make_guard(B.EQUALS_MATCH))
    manager.on_invalidate(lambda: seen.append("first"))
    manager.on_invalidate(lambda: seen.append("second"))
    assert seen == []
    manager.invalidate()
    manager.invalidate()
    assert seen == ["first", "second"]
    manager.on_invalidate(lambda: seen.append("late"))
    assert seen == ["first", "second", "late"]


def test_who_asked_is_called_once_when_watched_objects_die() -> None:
    first, second, seen = Plain(), Plain(), []
    scope = GuardScope(("x", "y"), (), (first, second), None, {}, {})
    manager = CheckFunctionManager([X.make_guard(B.ID_MATCH), Y.make_guard(B.ID_MATCH)], scope)
    manager.on_invalidate(lambda: seen.append(manager.valid))
    del scope, first
    gc.collect()
    assert seen == [False]
    del second
    gc.collect()
    assert seen == [False]


def test_nothing_of_the_user_is_kept_alive() -> None:
    class Holder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

    module, tensor = Holder(), torch.ones(3)
    scope = GuardScope(("x", "y"), (), (module, tensor), None, {}, {})
    guards = [X.make_guard(B.NN_MODULE_TREE), Y.make_guard(B.TENSOR_MATCH), Y.make_guard(B.ID_MATCH)]
    manager = CheckFunctionManager(guards, scope)
    assert manager.check([module, tensor]) and manager.check_fn(module, tensor)
    assert not manager.explain_failure([module, tensor])
    objects: list[object] = [module, module.linear.weight, tensor, Holder]
    refs = [weakref.ref(value) for value in objects]
    del module, tensor, scope, guards, Holder, objects
    gc.collect()
    assert [ref() for ref in refs] == [None] * 4
    assert not manager.valid


def test_after_detach_no_cell_is_kept() -> None:
    def make() -> tuple[CheckFunctionManager, weakref.ref[Plain]]:
        held = Plain()

        def reader() -> Plain:
            return held

        manager = CheckFunctionManager(
            [ClosureSource("held").make_guard(B.TYPE_MATCH)],
            GuardScope.of_call(cast(FunctionType, reader), ()),
        )
        assert manager.check(()) and manager.check_fn()
        manager.detach()
        with pytest.raises(GuardError, match="bind"):
            manager.check_fn()
        assert manager.program.check((), reader.__closure__)
        assert reader.__closure__ is not None
        assert manager.bind(reader.__closure__, {}, {})()
        return manager, weakref.ref(held)

    _, ref = make()
    gc.collect()
    assert ref() is None


def test_after_detach_no_namespace_is_kept_but_that_of_a_module_is_found() -> None:
    namespace: dict[str, object] = {"held": Plain()}
    exec("def reader(): return held", namespace)
    manager = CheckFunctionManager(
        [GlobalSource("held").make_guard(B.TYPE_MATCH)],
        GuardScope.of_call(cast(FunctionType, namespace["reader"]), ()),
    )
    ref = weakref.ref(namespace["held"])
    manager.detach()
    assert manager.check((), None, namespace, {})
    with pytest.raises(GuardError, match="namespaces"):
        manager.check(())
    namespace.clear()
    gc.collect()
    assert ref() is None

    own = CheckFunctionManager(
        [GlobalSource("Plain").make_guard(B.ID_MATCH)],
        GuardScope.of_call(cast(FunctionType, lambda: Plain), ()),
    )
    own.detach()
    assert own.check(()) and own.check_fn()


def test_references_are_balanced_after_hit_miss_and_error() -> None:
    def boom(value: object) -> bool:
        if value is bad:
            raise RuntimeError("boom")
        return True

    good, bad, other = Plain(), Plain(), Plain()
    logging.getLogger("dynamo.guards").disabled = True
    manager = manager_for(
        good,
        X.make_guard(partial(B.PREDICATE, predicate=boom)),
        AttrSource(X, "value").make_guard(B.EQUALS_MATCH),
    )
    other.value = 2
    before = [sys.getrefcount(v) for v in (good, bad, other)]
    for _ in range(50):
        assert [manager.check([v]) for v in (good, bad, other)] == [True, False, False]
    gc.collect()
    logging.getLogger("dynamo.guards").disabled = False
    assert [sys.getrefcount(v) for v in (good, bad, other)] == before


def test_a_check_that_raises_is_a_miss_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    armed: list[bool] = []

    def predicate(value: object) -> bool:
        if armed:
            raise ZeroDivisionError("in the user's predicate")
        return True

    manager = manager_for(1, X.make_guard(partial(B.PREDICATE, predicate=predicate)))
    assert manager.check([1]) and manager.check_fn(1)
    armed.append(True)
    with caplog.at_level(logging.WARNING, logger="dynamo.guards"):
        assert not manager.check([1])
        assert not manager.check_fn(1)
    assert manager.program.errors == 1
    assert [
        record.message for record in caplog.records if "ZeroDivisionError" in record.message
    ].__len__() == 2


class Refusing:
    @property
    def computed(self) -> int:
        return 1

    def __getattr__(self, name: str) -> int:
        if name == "dynamic":
            return 1
        raise AttributeError(name)


class OddList(list[int]):
    def __getitem__(self, key: object) -> int:  # type: ignore[override]  # what the test is about
        return 0


@pytest.mark.parametrize(
    ("value", "guard", "reason"),
    [
        (
            Refusing(),
            AttrSource(X, "computed").make_guard(B.EQUALS_MATCH),
            r"x\.computed: computed is a property",
        ),
        (Refusing(), AttrSource(X, "dynamic").make_guard(B.EQUALS_MATCH), r"x\.dynamic: dynamic comes from"),
        (OddList([1]), ItemSource(X, 0).make_guard(B.EQUALS_MATCH), r"x\[0\]: OddList defines __getitem__"),
        (
            Plain(),
            AttrSource(X, "absent").make_guard(B.TYPE_MATCH),
            r"x\.absent: it cannot be read at capture",
        ),
        (Plain(), X.make_guard(B.EQUALS_MATCH), "x: Plain has no exact equality"),
        ([Plain()], X.make_guard(B.EQUALS_MATCH), "x: list has no exact equality"),
        (1, X.make_guard(B.BOOL_MATCH), "x: it is 1, not one of"),
        (1, X.make_guard(B.DICT_KEYS), "x: int is not a dict"),
        (1, X.make_guard(partial(B.PREDICATE, predicate=lambda v: v == 2)), "x: the predicate does not hold"),
        (1, X.make_guard(partial(B.AMBIENT, states=["weather"])), "'weather' is no ambient state"),
    ],
)
def test_a_guard_that_cannot_be_generated_names_its_source(value: object, guard: Guard, reason: str) -> None:
    with pytest.raises(GuardBuildError, match=f"cannot guard {reason}" if reason[0] == "x" else reason):
        manager_for(value, guard)


def test_the_first_failing_guard_is_told_in_words() -> None:
    scope = GuardScope(("x", "y"), (), (1, torch.ones(2, 3)), None, {}, {})
    guards = [X.make_guard(B.EQUALS_MATCH, ("model.py", 7)), Y.make_guard(B.TENSOR_MATCH, ("model.py", 9))]
    manager = CheckFunctionManager(guards, scope)
    assert manager.explain_failure([1, torch.ones(2, 3)]) == ""
    assert (
        manager.explain_failure([2, torch.ones(2, 3)])
        == "x: expected type int, 1, met 2 (EQUALS_MATCH, for model.py:7)"
    )
    words = [str(failure) for failure in manager.failures(["a", torch.ones(2, 4)])]
    assert words == [
        "x: expected type int, 1, met type str (EQUALS_MATCH, for model.py:7)",
        "y: expected Tensor of torch.float32, shape (2×3), on cpu, met sizes (2, 4) instead of (2, 3), "
        "strides (4, 1) instead of (3, 1) (TENSOR_MATCH, for model.py:9)",
    ]


def test_equal_guards_cost_one_instruction() -> None:
    guards = [X.make_guard(B.EQUALS_MATCH), X.make_guard(B.TYPE_MATCH), X.make_guard(B.EQUALS_MATCH)]
    manager = manager_for(1, *guards)
    assert manager.program.instructions == 2  # load, and a test of type and value


def test_shared_paths_are_loaded_once() -> None:
    value = {"a": {"b": 1, "c": 2}}
    inner = ItemSource(X, "a")
    guards = [ItemSource(inner, key).make_guard(B.EQUALS_MATCH) for key in ("b", "c")]
    loads = {op: number for number, op in enumerate(_check.OPCODES)}
    manager = manager_for(value, *guards)
    # x, its type, x['a'], its type, and for each of two keys: item, type and value
    assert manager.program.instructions == 8
    assert loads["ARG"] == 0


class API(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32),
        ("check", ctypes.PYFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)),
        ("valid", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)),
    ]


def test_other_packages_reach_the_check_through_the_capsule() -> None:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = API.from_address(get(_check.C_API, b"dynamo.guards._check.C_API"))
    assert api.version == 1
    space = {"scale": 2}
    scope = GuardScope(("x",), (), (1,), None, space, {})
    guards = [X.make_guard(B.EQUALS_MATCH), GlobalSource("scale").make_guard(B.EQUALS_MATCH)]
    manager = CheckFunctionManager(guards, scope)

    def check(value: object, names: dict[str, int]) -> int:
        args = (ctypes.c_void_p * 1)(id(value))
        return int(api.check(id(manager.program), ctypes.addressof(args), None, id(names), id({})))

    assert check(1, space) == 1
    assert check(2, space) == 0
    assert check(1, {"scale": 3}) == 0
    assert (
        int(api.check(id(manager.program), ctypes.addressof((ctypes.c_void_p * 1)()), None, id(space), None))
        == 0
    )
    assert api.valid(id(manager.program)) == 1
    manager.invalidate()
    assert api.valid(id(manager.program)) == 0
    assert check(1, space) == 0


def test_a_malformed_program_is_refused() -> None:
    for instruction in ((200, 0, 0, 0, None), (0, 0, 5, 0, None), (0, 9, 0, 0, None), (19, 0, 7, 0, None)):
        with pytest.raises(ValueError, match="out of range"):
            _check.GuardProgram((instruction,), 1, 1, [])


def test_the_status_says_how_checks_run() -> None:
    status = dynamo.guards.native_status()
    assert status.tensors in ("raw", "shim", "python")
    assert bool(status.tensors_refused) is (status.tensors != "raw")
    assert all(reason in str(status) for reason in status.tensors_refused.values())
    assert torch.__version__ in str(status)
    assert set(status.ambient_native).isdisjoint(status.ambient_refused)


DROPS_WHAT_IS_READ = """
import gc
from dynamo.guards import AttrSource, CheckFunctionManager, GuardBuilder, GuardScope, ItemSource, LocalSource

class Plain:
    count = 1
    def __init__(self):
        self.items = [1]

def dropping(self):
    box.clear()
    gc.collect()
    refilled = [b"x" * size for size in range(400)]
    return 1

x, box = [Plain()], []
first = ItemSource(LocalSource("x"), 0)
guards = [
    AttrSource(first, "count").make_guard(GuardBuilder.EQUALS_MATCH),
    AttrSource(first, "items").make_guard(GuardBuilder.LIST_LENGTH),
]
manager = CheckFunctionManager(guards, GuardScope(("x",), (), (x,), None, {}, {}))
assert manager.check([x])
Plain.count = property(dropping)
for _ in range(50):
    box.append(Plain())
    manager.check([box])
"""


def test_a_property_patched_in_later_may_drop_what_the_check_reads() -> None:
    """In a process of its own: what was freed and read on crashed it."""
    done = subprocess.run([sys.executable, "-c", DROPS_WHAT_IS_READ], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
