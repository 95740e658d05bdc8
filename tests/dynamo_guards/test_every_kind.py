"""Every kind on every source that fits: one change misses, an irrelevant one hits, in both forms and in words."""

from __future__ import annotations

import collections
import contextlib
import enum
import math
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import CellType, FunctionType, ModuleType

import pytest
import torch
from torch import nn

from dynamo.guards import (
    UNBOUND,
    AmbientSource,
    AttrSource,
    BuiltinSource,
    CheckFunctionManager,
    ClassAttrSource,
    ClosureSource,
    DictKeySource,
    GlobalSource,
    GuardBuilder,
    GuardScope,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    NNModuleSource,
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

B = GuardBuilder
X, Y = LocalSource("x"), LocalSource("y")
USER_LINE = ("user.py", 7)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Box:
    """An object whose attribute holds the value."""

    def __init__(self, value: object) -> None:
        self.value = value

    def method(self) -> int:
        return 1


class Other(Box):
    pass


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class Bare:
    """An object that may lack its attribute."""

    def __init__(self, *values: object) -> None:
        for value in values:
            self.value = value


class Holder:
    """A class whose attribute holds the value."""

    held: object = None


class Heir(Holder):
    pass


HEIR = Heir()


class Net(nn.Module):
    """A module that holds the value as parameter, buffer, submodule or plain attribute."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.held = value


def _net_with_buffer(value: object) -> nn.Module:
    net = nn.Module()
    net.register_buffer("held", value if isinstance(value, torch.Tensor) else None)
    return net


def with_default(a: object = None, *, b: object = None) -> object:
    return a, b


def reader(cell: object) -> Callable[[], object]:
    return lambda: cell


MODULE = ModuleType("a_module_of_the_test")
TORCH_MODULE = nn.ReLU()


@dataclass(frozen=True)
class Frame:
    """The values of one call; ``first`` is the argument x."""

    first: object = 0
    second: object = 0
    cell: object = 0
    globals: Mapping[str, object] = field(default_factory=dict)
    builtins: Mapping[str, object] = field(default_factory=dict)

    def scope(self) -> GuardScope:
        cells = (CellType() if self.cell is UNBOUND else CellType(self.cell),)
        names, builtins = dict(self.globals), dict(self.builtins)
        return GuardScope(("x", "y"), ("c",), (self.first, self.second), cells, names, builtins)


@dataclass(frozen=True)
class Place:
    """A source, and how a value gets there."""

    name: str
    source: Source
    put: Callable[[object], Frame]
    fits: Callable[[object], bool] = lambda value: True
    told: str = ""  # the source in words, where a test on its base comes first


def _stored(owner: object, name: str, value: object) -> None:
    setattr(owner, name, value)


def _in_class(value: object, first: object) -> Frame:
    _stored(Holder, "held", value)
    return Frame(first)


def _in_module(value: object) -> Frame:
    _stored(MODULE, "held", value)
    return Frame(MODULE)


def _default(value: object) -> Frame:
    with_default.__defaults__ = (value,)
    return Frame(with_default)


def _keyword_default(value: object) -> Frame:
    with_default.__kwdefaults__ = {"b": value}
    return Frame(with_default)


def _iterator(value: object) -> Frame:
    return Frame(iter((0, value)))


def _instance_of(value: object) -> Frame:
    assert isinstance(value, type)
    return Frame(object.__new__(value))


def _function_of(value: object) -> Frame:
    assert isinstance(value, types.CodeType)
    return Frame(FunctionType(value, {}, closure=tuple(CellType() for _ in value.co_freevars)))


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _has_weak_references(value: object) -> bool:
    return type(value).__weakrefoffset__ != 0


def _is_parameter(value: object) -> bool:
    return isinstance(value, nn.Parameter)


def _is_buffer(value: object) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter)


def _is_module(value: object) -> bool:
    return isinstance(value, nn.Module)


def _is_plain(value: object) -> bool:
    return not isinstance(value, torch.Tensor | nn.Module)


def _is_no_descriptor(value: object) -> bool:
    """Whether reading it through a class gives the value itself."""
    return not hasattr(type(value), "__get__")


def _is_own_class(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Box)


def _is_code(value: object) -> bool:
    return isinstance(value, types.CodeType)


PLACES = [
    Place("local", X, Frame),
    Place("closure cell", ClosureSource("c"), lambda v: Frame(cell=v)),
    Place("global", GlobalSource("g"), lambda v: Frame(globals={"g": v})),
    Place("builtin", BuiltinSource("b"), lambda v: Frame(builtins={"b": v})),
    Place("default", default_source(X, 0), _default),
    Place("keyword default", keyword_default_source(X, "b"), _keyword_default),
    Place("cell of a function", closure_cell_source(X, 0), lambda v: Frame(reader(v))),
    Place("attribute", AttrSource(X, "value"), lambda v: Frame(Box(v))),
    Place("attribute of an attribute", AttrSource(AttrSource(X, "value"), "value"), lambda v: Frame(Box(Box(v)))),
    Place("slot", AttrSource(X, "value"), lambda v: Frame(Slotted(v))),
    Place("class attribute", AttrSource(X, "held"), lambda v: _in_class(v, Heir), _is_no_descriptor),
    Place("class attribute of an instance", AttrSource(X, "held"), lambda v: _in_class(v, HEIR), _is_no_descriptor),
    Place("in a class, unbound", ClassAttrSource(TypeSource(X), "held"), lambda v: _in_class(v, HEIR)),
    Place("super()", SuperSource(X, Heir, "held"), lambda v: _in_class(v, HEIR)),
    Place("module attribute", AttrSource(X, "held"), _in_module),
    Place("list item", ItemSource(X, 1), lambda v: Frame([0, v])),
    Place("tuple item", ItemSource(X, 1), lambda v: Frame((0, v))),
    Place("dict item", ItemSource(X, "k"), lambda v: Frame({"k": v})),
    Place("dict item by an object", ItemSource(X, Color.RED), lambda v: Frame({Color.RED: v})),
    Place("ordered dict item", ItemSource(X, "k"), lambda v: Frame(collections.OrderedDict(k=v))),
    Place("dict key", DictKeySource(X, 1), lambda v: Frame({"a key": 0, v: 0}), _is_hashable),
    Place("ordered dict key", DictKeySource(X, 0), lambda v: Frame(collections.OrderedDict({v: 0})), _is_hashable),
    Place("tuple iterator item", TupleIteratorItemSource(X, 1), _iterator),
    Place("instance dict item", ItemSource(InstanceDictSource(X), "value"), lambda v: Frame(Box(v))),
    Place("weak reference", WeakRefCallSource(X), lambda v: Frame(weakref.ref(v)), _has_weak_references),
    Place("type()", TypeSource(X), _instance_of, _is_own_class, "x"),
    Place("code", code_source(X), _function_of, _is_code),
    Place("parameter", AttrSource(X, "held"), lambda v: Frame(Net(v)), _is_parameter),
    Place("buffer", AttrSource(X, "held"), lambda v: Frame(_net_with_buffer(v)), _is_buffer),
    Place("submodule", AttrSource(X, "held"), lambda v: Frame(Net(v)), _is_module),
    Place("plain attribute of a module", AttrSource(X, "held"), lambda v: Frame(Net(v)), _is_plain),
    Place("module state", NNModuleSource(X), Frame, _is_module),
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A kind, a value, and what becomes of it.

    Args:
        name: kind and value.
        create_fn: the kind.
        make: makes the value at capture.
        hit: gives an irrelevantly changed value, or changes the same one.
        miss: gives a relevantly changed value, or changes the same one.
        expected: what the words must say of the value at capture.
        met: what they must say of the changed one.
    """

    name: str
    create_fn: Callable[..., None]
    make: Callable[[], object]
    hit: Callable[[object], object]
    miss: Callable[[object], object]
    expected: str
    met: str


def equals(value: object, same: object, other: object, expected: str, met: str) -> Case:
    return Case(
        f"EQUALS {value!r}",
        B.EQUALS_MATCH,
        lambda: value,
        lambda _: same,
        lambda _: other,
        expected,
        met,
    )


def changed(change: Callable[..., object]) -> Callable[[object], object]:
    """The same value, changed in place."""

    def apply(value: object) -> object:
        change(value)
        return value

    return apply


def always(value: object) -> Callable[..., object]:
    return lambda *_: value


def one() -> int:
    return 1


def two() -> int:
    return 2


def function() -> Callable[[], int]:
    def inner() -> int:
        return 1

    return inner


def patched_class() -> Box:
    class Patched(Box):
        pass

    return Patched(1)


def iterator(*items: object, taken: int = 0) -> Iterator[object]:
    found = iter(items)
    for _ in range(taken):
        next(found)
    return found


def is_even(value: object) -> bool:
    return isinstance(value, int) and value % 2 == 0


def ones(*shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Callable[..., torch.Tensor]:
    return lambda *_: torch.ones(*shape, dtype=dtype, device=device)


def tensor_case(
    name: str,
    make: Callable[..., object],
    hit: Callable[..., object],
    miss: Callable[..., object],
    expected: str,
    met: str,
    kind: Callable[..., None] = B.TENSOR_MATCH,
) -> Case:
    return Case(f"TENSOR {name}", kind, make, hit, miss, expected, met)


BOX, ANOTHER = Box(1), Box(2)
REF, OTHER_REF = weakref.ref(BOX), weakref.ref(ANOTHER)
DEAD: weakref.ref[Box] = weakref.ref(Box(3))
BASE = torch.ones(6)
PAIRS: list[tuple[object, object]] = [
    (BOX, ANOTHER),
    (Box, Other),
    (one.__code__, two.__code__),
    (nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))),
    (torch.ones(1), torch.ones(1)),
    (nn.ReLU(), nn.ReLU()),
]
"""Two objects each, of every sort that some source holds alone."""
STATIC, MOVED = torch.ones(2), torch.ones(2)

CASES = [
    Case("TYPE", B.TYPE_MATCH, lambda: 3, always(4), always(True), "type int", "type bool"),
    Case("TYPE of a class of one's own", B.TYPE_MATCH, lambda: BOX, always(ANOTHER), always(Other(1)),
         "type Box", "type Other"),
    Case("TYPE of another class of that name", B.TYPE_MATCH, patched_class, changed(lambda v: setattr(v, "a", 1)),
         lambda _: patched_class(), "type patched_class.<locals>.Patched", "another type patched_class.<locals>.Patched"),
    Case("ID", B.ID_MATCH, lambda: BOX, changed(lambda box: box.__dict__.update(extra=1)), always(ANOTHER),
         f"the object of type Box (id {id(BOX)})", f"(id {id(ANOTHER)})"),
    Case("ID of a singleton", B.ID_MATCH, lambda: None, always(None), always(False), "None", "False"),
    Case("NOT_NONE", B.NOT_NONE_MATCH, lambda: 1, always(0), always(None), "anything but None", "None"),
    equals(2, 2, 3, "type int, 2", "3"),
    equals(1, 1, True, "type int, 1", "type bool"),
    equals(10**2000, 10**2000, 10**2000 + 1, "type int, <int of 6644 bits>", "another <int of 6644 bits>"),
    equals(True, True, 1, "True", "1"),
    equals(0.0, 0.0, -0.0, "type float, 0.0", "-0.0"),
    equals(math.nan, float("nan"), 1.0, "type float, nan", "1.0"),
    equals(math.nan, float("nan"), -math.nan, "type float, nan", "another nan"),
    equals(1j, 1j, complex(-0.0, 1), "type complex, 1j", "(-0+1j)"),
    equals("a", "".join(["a"]), "b", "type str, 'a'", "'b'"),
    equals("a" * 200 + "b", "a" * 200 + "b", "a" * 200 + "c", "type str, 'aaa", "…ac' where …ab' was, from character 201"),
    equals(b"a", b"a", "a", "type bytes, b'a'", "type str"),
    equals((1, 2.0), (1, 2.0), (True, 2.0), "type tuple, (1, 2.0)", "(True, 2.0)"),
    equals([1, 2], [1, 2], [1, 3], "type list, [1, 2]", "[1, 3]"),
    equals({"a": 1}, {"a": 1}, {"a": 1.0}, "type dict, {'a': 1}", "{'a': 1.0}"),
    equals({1}, {1}, {True}, "type set, {1}", "{True}"),
    equals(frozenset({1}), frozenset({1}), frozenset(), "type frozenset, frozenset({1})", "frozenset()"),
    equals(range(3), range(3), range(4), "type range, range(0, 3)", "range(0, 4)"),
    equals(slice(1), slice(1), slice(True), "type slice, slice(None, 1, None)", "slice(None, True, None)"),
    equals(torch.float32, torch.float32, torch.int8, "type dtype, torch.float32", "torch.int8"),
    equals(torch.device("cpu"), torch.device("cpu"), torch.device("meta"), "device(type='cpu')", "type='meta'"),
    equals(torch.Size([2]), torch.Size([2]), torch.Size([3]), "torch.Size([2])", "torch.Size([3])"),
    equals(Color.RED, Color.RED, Color.BLUE, "Color", "<Color.BLUE: 2>"),
    equals(..., ..., None, "Ellipsis", "None"),
    Case("CONSTANT of a list changed in place", B.CONSTANT_MATCH, lambda: [1], changed(len),
         changed(lambda items: items.append(2)), "type list, [1]", "[1, 2]"),
    Case("CONSTANT of an object", B.CONSTANT_MATCH, lambda: BOX, always(BOX), always(ANOTHER), "type Box", "Box"),
    Case("BOOL", B.BOOL_MATCH, lambda: True, always(True), always(1), "True", "1"),
    Case("NONE", B.NONE_MATCH, lambda: None, always(None), always(0), "None", "0"),
    Case("TRUTH", B.TRUTH_MATCH, lambda: "a", always("b"), always(""), "a value that is true", "''"),
    Case("LENGTH of a list", B.LIST_LENGTH, lambda: [1], changed(lambda v: v.__setitem__(0, 2)),
         changed(lambda v: v.append(1)), "length 1", "length 2"),
    Case("LENGTH of a tuple", B.LIST_LENGTH, lambda: (1,), always((2,)), always(()), "length 1", "length 0"),
    Case("LENGTH of a dict", B.LIST_LENGTH, lambda: {1: 2}, always({2: 3}), always({}), "length 1", "length 0"),
    Case("LENGTH of a str", B.SEQUENCE_LENGTH, lambda: "ab", always("cd"), always("c"), "length 2", "length 1"),
    Case("TUPLE_ITERATOR_LEN", B.TUPLE_ITERATOR_LEN, lambda: iterator(1, 2, taken=1),
         always(iterator(3, 4, taken=1)), always(iterator(1, 2)),
         "a tuple iterator at position 1 with 1 items left", "one at position 0 with 2 items left"),
    Case("DICT_KEYS", B.DICT_KEYS, lambda: {"a": 1, "b": 2}, changed(lambda d: d.update(a=3)),
         always({"b": 2, "a": 1}), "the keys ['a', 'b']", "the keys ['b', 'a']"),
    Case("DICT_KEYS of an ordered dict", B.DICT_KEYS, lambda: collections.OrderedDict(a=1, b=2),
         changed(lambda d: d.update(a=3)), changed(lambda d: d.move_to_end("a")),
         "the keys ['a', 'b']", "the keys ['b', 'a']"),
    Case("DICT_VERSION", B.DICT_VERSION, lambda: {"a": BOX}, always({"a": BOX}),
         changed(lambda d: d.update(a=ANOTHER)), "type Box", f"(id {id(ANOTHER)})"),
    Case("DICT_CONTAINS", partial(B.DICT_CONTAINS, key="a"), lambda: {"a": 1}, changed(lambda d: d.update(b=1)),
         changed(lambda d: d.pop("a")), "a key 'a'", "no key 'a'"),
    Case("SET_CONTAINS", partial(B.SET_CONTAINS, key=1), lambda: {1}, changed(lambda s: s.add(2)),
         changed(lambda s: s.clear()), "a key 1", "no key 1"),
    Case("NOT_PRESENT_IN_DICT", partial(B.NOT_PRESENT_IN_DICT, key="b"), lambda: {"a": 1},
         changed(lambda d: d.update(c=1)), changed(lambda d: d.update(b=1)), "no key 'b'", "a key 'b'"),
    Case("NOT_PRESENT_IN_INSTANCE", partial(B.NOT_PRESENT_IN_INSTANCE, attr="method"), lambda: Box(1),
         changed(lambda box: box.__dict__.update(extra=1)), changed(lambda box: box.__dict__.update(method=1)),
         "no key 'method'", "a key 'method'"),
    Case("HASATTR has", partial(B.HASATTR, attr="extra"), lambda: _with_extra(),
         changed(lambda box: box.__dict__.update(value=2)), changed(lambda box: box.__dict__.pop("extra")),
         "an attribute 'extra'", "no attribute 'extra'"),
    Case("HASATTR lacks", partial(B.HASATTR, attr="extra"), lambda: Box(1),
         changed(lambda box: box.__dict__.update(value=2)), changed(lambda box: box.__dict__.update(extra=1)),
         "no attribute 'extra'", "an attribute 'extra'"),
    Case("NAME", B.NAME_MATCH, function, changed(lambda f: setattr(f, "__doc__", "")),
         changed(lambda f: setattr(f, "__name__", "outer")), "'inner'", "'outer'"),
    Case("CLASS_ATTR patched", partial(B.CLASS_ATTR_MATCH, attr="method"), patched_class,
         changed(lambda v: setattr(type(v), "unrelated", 1)), changed(lambda v: setattr(type(v), "method", one)),
         "'method' of the class unchanged", "another 'method'"),
    Case("CLASS_ATTR appears", partial(B.CLASS_ATTR_MATCH, attr="late"), patched_class,
         changed(lambda v: setattr(type(v), "unrelated", 1)), changed(lambda v: setattr(type(v), "late", one)),
         "'late'", "'late'"),
    Case("FUNCTION", B.FUNCTION_MATCH, lambda: one, always(one), always(two), "one", "two"),
    Case("FUNCTION with its code exchanged", B.FUNCTION_MATCH, function,
         changed(lambda f: setattr(f, "__doc__", "")), changed(lambda f: setattr(f, "__code__", two.__code__)),
         "code", "code object two"),
    Case("METHOD", B.METHOD_MATCH, lambda: BOX.method, lambda _: BOX.method, lambda _: ANOTHER.method,
         "type Box", f"(id {id(ANOTHER)})"),
    Case("FUNCTION_CODE", B.FUNCTION_CODE_MATCH, lambda: function(), lambda _: function(), always(two),
         "code", "code object two"),
    Case("BUILTIN", B.BUILTIN_MATCH, lambda: len, always(len), always(sum), "len", "<built-in function sum>"),
    Case("MODULE", B.MODULE_MATCH, lambda: math, always(math), always(types), "module", "<module 'types'"),
    Case("CLASS", B.CLASS_MATCH, lambda: Box, always(Box), always(Other), "Box", "Other"),
    Case("ID of a code object", B.ID_MATCH, lambda: one.__code__, always(one.__code__), always(two.__code__),
         "of type code", "code object two"),
    Case("WEAKREF_ALIVE", B.WEAKREF_ALIVE, lambda: REF, always(OTHER_REF), always(DEAD),
         "a weak reference to a living object", "dead"),
    Case("PREDICATE", partial(B.PREDICATE, predicate=is_even), lambda: 2, always(4), always(5), "is_even", "5"),
    Case("PREDICATE in words", partial(B.PREDICATE, predicate=is_even, words="an even number"), lambda: 2, always(4),
         always(5), "an even number", "5"),
    tensor_case("shape", ones(2, 3), lambda v: v.add_(1), ones(2, 4), "shape (2×3)", "sizes (2, 4) instead of (2, 3)"),
    tensor_case("rank", ones(2), ones(2), ones(2, 1), "shape (2)", "sizes (2, 1) instead of (2,)"),
    tensor_case("dtype", ones(2), ones(2), ones(2, dtype=torch.float64), "torch.float32", "torch.float64"),
    tensor_case("device", ones(2), ones(2), ones(2, device="meta"), "on cpu", "meta"),
    tensor_case("stride", ones(2, 3), ones(2, 3), lambda _: torch.ones(3, 2).t(), "shape (2×3)",
                "strides (1, 2) instead of (3, 1)"),
    tensor_case("layout", ones(2), ones(2), lambda _: torch.ones(2).to_sparse(), "Tensor", "layout torch.sparse_coo"),
    tensor_case("requires_grad", ones(2), ones(2), lambda v: v.requires_grad_(), "Tensor", "requires_grad True"),
    tensor_case("conj", ones(2, dtype=torch.complex64), ones(2, dtype=torch.complex64), lambda v: v.conj(),
                "torch.complex64", "is_conj True instead of False"),
    tensor_case("neg", ones(2), ones(2), lambda v: torch._neg_view(v), "Tensor", "is_neg True instead of False"),
    tensor_case("class", ones(2), ones(2), lambda _: nn.Parameter(torch.ones(2), requires_grad=False), "Tensor",
                "type Parameter"),
    tensor_case("no tensor", ones(2), ones(2), always(1), "Tensor of torch.float32", "type int"),
    tensor_case("of a parameter", lambda: nn.Parameter(torch.ones(2)),
                changed(lambda v: setattr(v, "data", torch.zeros(2))),
                changed(lambda v: setattr(v, "data", torch.zeros(3))), "Parameter", "sizes (3,) instead of (2,)"),
    tensor_case("double", lambda: nn.Parameter(torch.ones(2)),
                changed(lambda v: setattr(v, "data", torch.zeros(2))),
                changed(lambda v: setattr(v, "data", v.data.double())), "Parameter of torch.float32", "torch.float64"),
    tensor_case("free dimension", ones(2, 3), ones(5, 3), ones(2, 4), "shape (?×3)", "sizes (2, 4)", kind=partial(B.TENSOR_MATCH, dynamic_dims=(0,))),
    tensor_case("storage offset", lambda: BASE[2:4], lambda _: BASE.clone()[2:4], lambda _: BASE[1:3], "storage offset 2",
                "storage_offset 1 instead of 2", kind=partial(B.TENSOR_MATCH, storage_offset=True)),
    tensor_case("data pointer", lambda: STATIC, changed(lambda v: v.add_(1)), always(MOVED), f"data at address {STATIC.data_ptr()}",
                f"data_pointer {MOVED.data_ptr()}", kind=partial(B.TENSOR_MATCH, data_pointer=True)),
    Case("NN_MODULE", B.NN_MODULE, lambda: nn.Linear(2, 2), changed(lambda m: m.weight.data.zero_()),
         changed(lambda m: m.eval()), "True", "False"),
    Case("NN_MODULE hook", B.NN_MODULE, lambda: nn.Linear(2, 2), changed(lambda m: setattr(m, "note", 1)),
         changed(lambda m: m.register_forward_hook(one)), "length 0", "length 1"),
    Case("NN_MODULE parameter", B.NN_MODULE, lambda: nn.Linear(2, 2), changed(lambda m: m.weight.data.zero_()),
         changed(lambda m: setattr(m.weight, "data", torch.ones(3, 2))), "shape (2×2)", "sizes (3, 2)"),
    Case("NN_MODULE_TREE", B.NN_MODULE_TREE, lambda: nn.Sequential(nn.Linear(2, 2)),
         changed(lambda m: m[0].bias.data.zero_()), changed(lambda m: m[0].requires_grad_(False)), "Parameter",
         "requires_grad False instead of True"),
    Case("MODULE_STATE", B.MODULE_STATE, nn.ReLU, lambda _: nn.ReLU(), lambda _: nn.ReLU().eval(), "True", "False"),
]  # fmt: skip


def _with_extra() -> Box:
    box = Box(1)
    box.__dict__["extra"] = 1
    return box


def answers(manager: CheckFunctionManager, scope: GuardScope) -> tuple[bool, bool, str]:
    """The native form's answer, the Python form's, and the failure in words."""
    frame = (scope.args, scope.closure, scope.globals, scope.builtins)
    check_fn = manager.bind(scope.closure, scope.globals, scope.builtins)
    return manager.check(*frame), check_fn(*scope.args), manager.explain_failure(*frame)


def fitting() -> Iterator[object]:
    for case in CASES:
        values = [case.make()]
        values += [case.hit(values[0]), case.miss(case.make())]
        for place in PLACES:
            if all(place.fits(value) for value in values):
                yield pytest.param(case, place, id=f"{case.name[:60]} at {place.name}")


@pytest.mark.parametrize(("case", "place"), list(fitting()))
def test_a_change_misses_and_is_told_and_an_irrelevant_one_hits(case: Case, place: Place) -> None:
    value = case.make()
    scope = place.put(value).scope()
    manager = CheckFunctionManager([place.source.make_guard(case.create_fn, USER_LINE)], scope)
    assert answers(manager, scope) == (True, True, "")
    kept = case.hit(value)
    scope = place.put(kept).scope()
    assert answers(manager, scope) == (True, True, "")
    kept = case.miss(value)
    scope = place.put(kept).scope()
    native, python, words = answers(manager, scope)
    assert (native, python) == (False, False)
    kind = case.create_fn.func if isinstance(case.create_fn, partial) else case.create_fn
    source, rest = words.split(": expected ")
    expected, rest = rest.split(", met ")
    assert (place.told or place.source.name()) in source
    assert case.expected in expected, words
    assert case.met in rest, words
    assert rest.endswith(f" ({kind.__name__}, for user.py:7)")


def frame_of(first: object, second: object = 0) -> GuardScope:
    return Frame(first, second).scope()


SOURCES_OF_NOTHING = [
    Place("argument", X, Frame),
    Place("empty cell", ClosureSource("c"), lambda v: Frame(cell=v)),
    Place("global", GlobalSource("g"), lambda v: Frame(globals={} if v is UNBOUND else {"g": v})),
    Place("builtin", BuiltinSource("b"), lambda v: Frame(builtins={} if v is UNBOUND else {"b": v})),
    Place("dict item", ItemSource(X, "k"), lambda v: Frame({} if v is UNBOUND else {"k": v})),
    Place("list item", ItemSource(X, 0), lambda v: Frame([] if v is UNBOUND else [v])),
    Place("attribute", AttrSource(X, "value"), lambda v: Frame(Bare() if v is UNBOUND else Bare(v))),
]


@pytest.mark.parametrize("place", SOURCES_OF_NOTHING, ids=lambda place: place.name)
def test_a_value_where_there_was_none_misses_and_is_told(place: Place) -> None:
    manager = CheckFunctionManager(
        [place.source.make_guard(B.UNBOUND, USER_LINE)], scope := place.put(UNBOUND).scope()
    )
    assert answers(manager, scope) == (True, True, "")
    assert answers(manager, place.put(UNBOUND).scope()) == (True, True, "")
    assert answers(manager, place.put(5).scope()) == (
        False,
        False,
        f"{place.source.name()}: expected no value, met 5 (UNBOUND, for user.py:7)",
    )


@pytest.mark.parametrize("place", PLACES[:4] + PLACES[7:10], ids=lambda place: place.name)
def test_a_value_that_is_gone_misses_and_is_told(place: Place) -> None:
    scope = place.put(5).scope()
    manager = CheckFunctionManager([place.source.make_guard(B.EQUALS_MATCH, USER_LINE)], scope)
    for gone in (Frame(UNBOUND, 0, UNBOUND), Frame(Bare(), 0, UNBOUND)):
        native, python, words = answers(manager, gone.scope())
        assert (native, python) == (False, False)
        assert "met no such value" in words or "met type Bare" in words


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_aliasing_is_checked_and_told_at_every_source(place: Place) -> None:
    value, another = next(
        pair for pair in PAIRS if place.fits(pair[0]) and place.fits(pair[1])
    )  # one that the source can hold

    def scope_of(held: object, second: object) -> GuardScope:
        frame = place.put(held)
        return Frame(frame.first, second, frame.cell, frame.globals, frame.builtins).scope()

    scope = scope_of(value, value)
    guard = place.source.make_guard(partial(B.OBJECT_ALIASING, other=Y), USER_LINE)
    same = CheckFunctionManager([guard], scope)
    assert answers(same, scope) == (True, True, "")
    scope = scope_of(value, another)
    guard = place.source.make_guard(partial(B.NOT_ALIASING, others=[Y]), USER_LINE)
    different = CheckFunctionManager([guard], scope)
    assert answers(different, scope) == (True, True, "")
    assert answers(same, scope) == (
        False,
        False,
        f"{place.source.name()}: expected the same object as y, met another object (OBJECT_ALIASING, for user.py:7)",
    )
    assert answers(different, scope_of(value, value)) == (
        False,
        False,
        f"{place.source.name()}: expected another object than y, met the same object (NOT_ALIASING, for user.py:7)",
    )


class Mode(torch.overrides.TorchFunctionMode):
    """A mode that does nothing."""


@contextlib.contextmanager
def setting(get: Callable[[], object], put: Callable[..., object], value: object) -> Iterator[None]:
    before = get()
    put(value)
    try:
        yield
    finally:
        put(before)


@dataclass(frozen=True)
class Ambient:
    kind: Callable[..., None]
    relevant: Callable[[], contextlib.AbstractContextManager[object]]
    irrelevant: Callable[[], contextlib.AbstractContextManager[object]]
    expected: str
    met: str


def autocast() -> contextlib.AbstractContextManager[object]:
    return torch.autocast("cpu")


def other_dtype() -> contextlib.AbstractContextManager[object]:
    return setting(torch.get_default_dtype, torch.set_default_dtype, torch.float64)


def deterministic() -> contextlib.AbstractContextManager[object]:
    return setting(torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True)


def threads() -> contextlib.AbstractContextManager[object]:
    return setting(torch.get_num_threads, torch.set_num_threads, torch.get_num_threads() + 1)


nothing = contextlib.nullcontext
AMBIENT = {
    "grad mode": Ambient(B.GRAD_MODE, torch.no_grad, autocast, "grad mode on", "grad mode off"),
    "inference": Ambient(B.AMBIENT, torch.inference_mode, nothing, "grad mode on", "grad mode off"),
    "autocast": Ambient(B.AMBIENT, autocast, nothing, "autocast cpu off", "autocast cpu on"),
    "dtype": Ambient(
        B.DEFAULT_DEVICE,
        other_dtype,
        torch.no_grad,
        "default dtype torch.float32",
        "default dtype torch.float64",
    ),
    "device": Ambient(
        B.DEFAULT_DEVICE, lambda: torch.device("meta"), autocast, "function modes 0", "function modes 1"
    ),
    "deterministic": Ambient(
        B.DETERMINISTIC_ALGORITHMS, deterministic, torch.no_grad, "deterministic off", "deterministic on"
    ),
    "function mode": Ambient(B.TORCH_FUNCTION_STATE, Mode, autocast, "function modes 0", "function modes 1"),
    "functions disabled": Ambient(
        B.TORCH_FUNCTION_STATE,
        torch._C.DisableTorchFunctionSubclass,
        torch.no_grad,
        "function disabled off",
        "function disabled for subclasses",
    ),
    "threads": Ambient(
        B.GLOBAL_STATE,
        threads,
        nothing,
        "threads {threads}",
        "threads {more}",
    ),
}


@pytest.mark.parametrize("name", AMBIENT)
def test_every_part_of_the_ambient_state_is_checked_and_told(name: str) -> None:
    case = AMBIENT[name]
    scope = frame_of(1)
    manager = CheckFunctionManager([AmbientSource().make_guard(case.kind, USER_LINE)], scope)
    assert answers(manager, scope) == (True, True, "")
    with case.irrelevant():
        assert answers(manager, scope) == (True, True, "")
    with case.relevant():
        native, python, words = answers(manager, scope)
    assert (native, python) == (False, False)
    threads = torch.get_num_threads()  # other test modules set it
    told = f"torch: expected {case.expected}, met {case.met} (".format(threads=threads, more=threads + 1)
    assert words.startswith(told), words
    assert words.endswith("for user.py:7)")


def test_another_mode_is_told_by_the_modes() -> None:
    scope = frame_of(1)
    with Mode() as mode:
        manager = CheckFunctionManager([AmbientSource().make_guard(B.TORCH_FUNCTION_STATE, USER_LINE)], scope)
        assert answers(manager, scope) == (True, True, "")
    with Mode():
        native, python, words = answers(manager, scope)
    assert (native, python) == (False, False)
    assert words.count("Mode object at") == 2 and " met the modes [" in words
    assert mode is not None


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_relation_is_checked_and_told_at_every_source_of_tensors(place: Place) -> None:
    fitting_values = [
        make for make in (torch.ones, lambda n: nn.Parameter(torch.ones(n))) if place.fits(make(1))
    ]
    if not fitting_values:
        pytest.skip("no tensor can be there")
    make = fitting_values[0]

    def scope_of(first: int, second: int) -> tuple[GuardScope, object]:
        frame = place.put(kept := make(first))
        return Frame(frame.first, torch.ones(second), frame.cell, frame.globals, frame.builtins).scope(), kept

    relation = partial(
        B.SHAPE_RELATION,
        sources=[place.source, Y],
        template="{0}.size()[0] == {1}.size()[0]",
        holds=lambda a, b: a.size()[0] == b.size()[0],
    )
    scope, _kept = scope_of(2, 2)
    manager = CheckFunctionManager([AmbientSource().make_guard(relation, USER_LINE)], scope)
    assert answers(manager, scope) == (True, True, "")
    scope, _kept = scope_of(3, 3)
    assert answers(manager, scope) == (True, True, "")
    scope, _kept = scope_of(3, 2)
    name = place.source.name()
    assert answers(manager, scope) == (
        False,
        False,
        f"{name}: expected {name}.size()[0] == y.size()[0], met sizes (3,), strides (1,) "
        "(SHAPE_RELATION, for user.py:7)",
    )
