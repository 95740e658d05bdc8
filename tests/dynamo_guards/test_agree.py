"""The generated Python check and the native program give one answer, whatever the values become."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo.guards import (
    AttrSource,
    CheckFunctionManager,
    Guard,
    GuardBuilder,
    GuardScope,
    ItemSource,
    LocalSource,
    Source,
    is_constant,
    layout,
)

B = GuardBuilder
X = LocalSource("x")


class Box:
    """An object with attributes."""

    def __init__(self, content: object) -> None:
        self.content = content


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, float("nan"), 2.5]),
    st.sampled_from([1j, complex(-0.0, 1)]),
    st.sampled_from(["a", "b", ""]),
    st.sampled_from([b"a", torch.float32, torch.device("cpu"), torch.strided, ...]),
)
DTYPES = st.sampled_from([torch.float32, torch.float64, torch.int64])


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    value = torch.zeros(shape, dtype=draw(DTYPES), device=draw(st.sampled_from(["cpu", "cpu", "meta"])))
    if value.dim() == 2 and draw(st.booleans()):
        value = value.t()  # before gradients are asked for: only a leaf can be copied
    if value.is_floating_point() and draw(st.booleans()):
        value.requires_grad_()
    return value


VALUES = st.recursive(
    SCALARS | tensors(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from(["a", "b", 1, True]), inner, max_size=3),
        inner.map(Box),
    ),
    max_leaves=8,
)


def guards_of(value: object, source: Source, depth: int = 0) -> list[Guard]:
    """All guards that a capture might make for a value."""
    if isinstance(value, torch.Tensor):
        return [source.make_guard(B.TENSOR_MATCH)]
    if is_constant(value):
        return [source.make_guard(B.EQUALS_MATCH)]
    found = [source.make_guard(B.TYPE_MATCH)]
    if isinstance(value, list | tuple):
        found.append(source.make_guard(B.LIST_LENGTH))
        for i, item in enumerate(value):
            found += guards_of(item, ItemSource(source, i), depth + 1)
    elif isinstance(value, dict):
        found.append(source.make_guard(B.DICT_KEYS))
        for key, item in value.items():
            found += guards_of(item, ItemSource(source, key), depth + 1)
    elif isinstance(value, Box):
        found += guards_of(value.content, AttrSource(source, "content"), depth + 1)
    return found


def answers(manager: CheckFunctionManager, value: object) -> tuple[bool, bool, bool]:
    return manager.check([value]), manager.check_fn(value), not manager.failures([value], limit=1)


def changed(value: object, other: object, pick: Callable[[int], int]) -> object:
    """The value with one place inside, chosen by ``pick``, replaced by another value."""
    if isinstance(value, list | tuple) and value and pick(3):
        items = list(value)
        place = pick(len(items))
        items[place] = changed(items[place], other, pick)
        return type(value)(items)
    if isinstance(value, dict) and value and pick(3):
        key = list(value)[pick(len(value))]
        return {**value, key: changed(value[key], other, pick)}
    if isinstance(value, Box) and pick(3):
        return Box(changed(value.content, other, pick))
    return other


@pytest.fixture(params=layout.TIERS)
def tier(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run with each way of reading tensors."""
    name: str = request.param
    assert layout.install_layout(name)[0] == name
    try:
        yield name
    finally:
        layout.install_layout()


@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES, data=st.data())
def test_both_forms_agree_on_changed_values(tier: str, value: object, data: st.DataObject) -> None:
    manager = CheckFunctionManager(guards_of(value, X), GuardScope(("x",), (), (value,), None, {}, {}))
    assert answers(manager, value) == (True, True, True)
    assert answers(manager, copy.deepcopy(value)) == (True, True, True)
    for _ in range(4):
        met = changed(value, data.draw(VALUES), lambda n: data.draw(st.integers(0, n - 1)))
        assert len(set(answers(manager, met))) == 1


@settings(max_examples=150, deadline=None)
@given(st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner)), st.data())
def test_equality_holds_only_for_values_that_look_the_same(value: object, data: st.DataObject) -> None:
    manager = CheckFunctionManager(
        [X.make_guard(B.EQUALS_MATCH)], GuardScope(("x",), (), (value,), None, {}, {})
    )
    other = data.draw(
        st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner))
    )
    assert manager.check([other]) == manager.check_fn(other) == (repr(value) == repr(other))
