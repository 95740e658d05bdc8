"""The tensor guard: what it sees, what it ignores, raw and through Python alike."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch

from dynamo.guards import (
    CheckFunctionManager,
    GuardBuilder,
    GuardBuildError,
    GuardScope,
    LocalSource,
    _check,
    layout,
    native_status,
)

X = LocalSource("x")
B = GuardBuilder


@pytest.fixture(params=layout.TIERS)
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run with raw reads, and again as on a torch whose probes fail."""
    tier: str = request.param
    assert layout.install_layout(tier)[0] == tier
    try:
        yield tier
    finally:
        assert layout.install_layout()[0] == native_status().tensors


def manager_for(value: object, create_fn: Callable[..., None] = B.TENSOR_MATCH) -> CheckFunctionManager:
    scope = GuardScope(("x",), (), (value,), None, {}, {})
    return CheckFunctionManager([X.make_guard(create_fn)], scope)


def both(manager: CheckFunctionManager, value: object) -> bool:
    native = manager.check([value])
    assert manager.check_fn(value) == native
    assert bool(manager.explain_failure([value])) is not native
    return native


class Sub(torch.Tensor):
    """A plain subclass."""


def inference(*shape: int) -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(*shape)


BASE = torch.ones(2, 3)
OTHERS: dict[str, object] = {
    "dtype": torch.ones(2, 3, dtype=torch.float64),
    "device": torch.ones(2, 3, device="meta"),
    "requires_grad": torch.ones(2, 3, requires_grad=True),
    "size": torch.ones(2, 4),
    "dims": torch.ones(2, 3, 1),
    "strides": torch.ones(3, 2).t(),
    "subclass": torch.ones(2, 3).as_subclass(Sub),
    "parameter": torch.nn.Parameter(torch.ones(2, 3), requires_grad=False),
    "layout": torch.ones(2, 3).to_sparse(),
    "neg": torch._neg_view(torch.ones(2, 3)),
    "inference": inference(2, 3),
    "not a tensor": [1],
    "none": None,
    "quantised": torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8),
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_piece_of_metadata_counts(name: str, path: str) -> None:
    manager = manager_for(BASE)
    assert both(manager, BASE)
    assert not both(manager, OTHERS[name])


@pytest.mark.parametrize("name", [name for name, value in OTHERS.items() if isinstance(value, torch.Tensor)])
def test_every_kind_of_tensor_can_be_guarded(name: str, path: str) -> None:
    value = OTHERS[name]
    assert isinstance(value, torch.Tensor)
    manager = manager_for(value)
    assert both(manager, value)
    assert not both(manager, BASE)


def test_conj_is_seen(path: str) -> None:
    plain = torch.ones(2, dtype=torch.complex64)
    manager = manager_for(plain)
    assert both(manager, torch.zeros(2, dtype=torch.complex64))
    assert not both(manager, plain.conj())


def test_values_and_storage_place_do_not_count(path: str) -> None:
    manager = manager_for(BASE)
    assert both(manager, torch.zeros(2, 3))
    assert both(manager, torch.zeros(4, 3)[2:])
    assert both(manager, torch.randn(2, 3).mul_(2))


def test_the_storage_offset_counts_when_asked_for(path: str) -> None:
    manager = manager_for(BASE, partial(B.TENSOR_MATCH, storage_offset=True))
    assert both(manager, torch.zeros(2, 3))
    assert not both(manager, torch.zeros(4, 3)[2:])


def test_the_data_pointer_counts_when_asked_for(path: str) -> None:
    manager = manager_for(BASE, partial(B.TENSOR_MATCH, data_pointer=True))
    assert both(manager, BASE)
    assert not both(manager, BASE.clone())


def test_free_dimensions_may_change(path: str) -> None:
    manager = manager_for(BASE, partial(B.TENSOR_MATCH, dynamic_dims=[0]))
    assert both(manager, torch.ones(7, 3))
    assert not both(manager, torch.ones(7, 4))
    anything = manager_for(BASE, partial(B.TENSOR_MATCH, dynamic_dims=True))
    assert both(anything, torch.ones(7, 9))
    assert not both(anything, torch.ones(7, 9, 1))


def test_many_dimensions_are_read_right(path: str) -> None:
    value = torch.ones(2, 1, 3, 1, 2, 4, 1)
    manager = manager_for(value)
    assert both(manager, torch.zeros(2, 1, 3, 1, 2, 4, 1))
    assert not both(manager, torch.zeros(2, 1, 3, 1, 2, 5, 1))
    assert not both(manager, torch.zeros(2, 1, 3, 1, 4, 2, 1).transpose(4, 5))


def test_metadata_changed_in_place_misses(path: str) -> None:
    value = torch.ones(2, 3)
    manager = manager_for(value)
    value.requires_grad_()
    assert not both(manager, value)
    value.requires_grad_(False)
    assert both(manager, value)
    value.data = torch.ones(3, 3)
    assert not both(manager, value)


def test_nested_tensors_are_told_from_dense_ones(path: str) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    manager = manager_for(nested)
    assert both(manager, nested)
    assert not both(manager, BASE)


def test_functional_wrappers_are_told_from_plain_tensors() -> None:
    answers: list[bool] = []
    manager = manager_for(torch.ones(3))

    def function(x: torch.Tensor) -> torch.Tensor:
        answers.append(both(manager, x))
        return x * 1

    torch.func.vmap(function)(torch.ones(2, 3))
    torch.func.grad(lambda x: function(x).sum())(torch.ones(3))
    assert answers == [False, False]


def test_a_value_that_is_no_tensor_is_refused() -> None:
    with pytest.raises(GuardBuildError, match="cannot guard x: int is not a tensor"):
        manager_for(3)


def test_a_subclass_with_torch_function_runs_none_of_its_code() -> None:
    calls: list[object] = []

    class Spy(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # torch's own
            calls.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]  # torch's own

    value = torch.ones(2).as_subclass(Spy)
    manager = manager_for(value)
    calls.clear()
    assert manager.check([value])
    assert calls == []


def test_native_reads_equal_torch_for_random_tensors(path: str) -> None:
    if path == "python":
        assert _check.tensor_metadata(BASE) is None
        return
    generator = torch.Generator().manual_seed(1)
    tensors = []
    for _ in range(300):
        dims = int(torch.randint(0, 8, (), generator=generator))
        shape = torch.randint(0, 4, (dims,), generator=generator).tolist()
        value = torch.empty(shape, dtype=layout._DTYPES[dims])
        tensors.append(value.permute(torch.randperm(dims, generator=generator).tolist()))
    layout.verify(tensors)


def test_a_torch_whose_layout_differs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_key_set", lambda tensor: -1)
    try:
        reason = "no place holds the dispatch keys"
        assert layout.install_layout() == ("python", {"raw": reason, "shim": reason})
        assert _check.tensor_metadata(BASE) is None
        assert both(manager_for(BASE), BASE)
    finally:
        monkeypatch.undo()
        assert layout.install_layout()[0] == native_status().tensors


def test_a_torch_whose_tensors_lie_otherwise_is_read_through_the_stable_interface(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layout, "_find_sizes", lambda samples: layout._only([], "sizes and strides"))
    try:
        assert layout.install_layout() == ("shim", {"raw": "no place holds the sizes and strides"})
        assert both(manager_for(BASE), BASE)
        assert not both(manager_for(BASE), torch.ones(3, 2))
    finally:
        monkeypatch.undo()
        assert layout.install_layout()[0] == native_status().tensors


@pytest.mark.parametrize("tier", layout.TIERS)
def test_the_environment_chooses_how_tensors_are_read(tier: str) -> None:
    program = "import dynamo.guards as g; print(g.native_status().tensors)"
    environment = {**os.environ, layout.TIER_VARIABLE: tier}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == tier
