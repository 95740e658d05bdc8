"""Relations between values: both forms, words, and what is refused."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dynamo.guards import (
    AmbientSource,
    CheckFunctionManager,
    Guard,
    GuardBuilder,
    GuardBuildError,
    GuardScope,
    LocalSource,
)


def manager(x: object, y: object, template: str, holds: Callable[..., object]) -> CheckFunctionManager:
    names: Sequence[str] = ("x", "y")
    scope = GuardScope(names, (), [x, y], None, {}, vars(builtins))
    sources = [LocalSource(name) for name in names]
    guards = [
        source.make_guard(functools.partial(GuardBuilder.TENSOR_MATCH, dynamic_dims=True))
        for source, value in zip(sources, (x, y), strict=True)
        if isinstance(value, torch.Tensor)
    ]
    relation = functools.partial(GuardBuilder.SHAPE_RELATION, sources=sources, template=template, holds=holds)
    return CheckFunctionManager([Guard("sizes", AmbientSource(), relation), *guards], scope)


SAME_LENGTH = ("{0}.size()[0] == {1}.size()[0]", lambda x, y: x.size()[0] == y.size()[0])


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_both_forms_agree_and_follow_the_relation(first: int, second: int, width: int) -> None:
    check = manager(torch.ones(2, 3), torch.ones(2), *SAME_LENGTH)
    values = [torch.ones(first, width), torch.ones(second)]
    assert check.check_fn(*values) is check.check(values) is (first == second)


def test_a_relation_is_asked_after_the_types_and_told_in_words() -> None:
    check = manager(torch.ones(2, 3), torch.ones(2), *SAME_LENGTH)

    class Trap:
        def size(self) -> object:
            raise AssertionError("the relation ran on an object of another type")

    assert not check.check([Trap(), torch.ones(2)])
    assert not check.check_fn(torch.ones(2, 3), Trap())
    assert any("x.size()[0] == y.size()[0]" in words for words in check.words)
    assert "x.size()[0] == y.size()[0]" in str(check.explain_failure([torch.ones(3, 3), torch.ones(2)]))


def test_integers_are_checked_by_type_first() -> None:
    check = manager(torch.ones(4), 4, "{0}.size()[0] == {1}", lambda x, y: x.size()[0] == y)
    assert check.check([torch.ones(6), 6])
    assert not check.check([torch.ones(6), 5])
    assert not check.check([torch.ones(1), True])


def test_a_relation_that_does_not_hold_at_capture_is_refused() -> None:
    with pytest.raises(GuardBuildError, match=r"x\.size\(\)\[0\] == y\.size\(\)\[0\] does not hold"):
        manager(torch.ones(3), torch.ones(2), *SAME_LENGTH)
    with pytest.raises(GuardBuildError, match="raises"):
        manager(torch.ones(()), torch.ones(2), *SAME_LENGTH)
