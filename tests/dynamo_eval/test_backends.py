"""Backends by name: where they are looked for, what runs the graph, and what happens when one fails."""

import copy
import importlib
import logging
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dynamo.eval as dynamo
from dynamo.eval.backends import registry
from fx.codegen import GraphModule

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_BACKENDS", dict(registry._BACKENDS))
    monkeypatch.setattr(registry, "_TAGS", dict(registry._TAGS))
    dynamo.reset()
    torch.manual_seed(0)
    yield
    dynamo.reset()


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def picked(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return x[index] * 2


def turned(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).t()


def flat(x: torch.Tensor) -> torch.Tensor:
    return x.view(-1)


def written(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1) * 2


def counted(gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    return gm.forward


# -- the registry --------------------------------------------------------------------------------------------


def test_a_backend_is_registered_by_name_directly_and_as_a_decorator() -> None:
    @dynamo.register_backend
    def first(gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        return gm.forward

    @dynamo.register_backend(name="another", tags=["experimental"])
    def second(gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        return gm.forward

    assert dynamo.lookup_backend("first") is first
    assert dynamo.lookup_backend("another") is second
    assert dynamo.register_backend(counted, "counted") is counted
    assert {"first", "counted"} <= set(dynamo.list_backends())
    assert "another" not in dynamo.list_backends()
    assert "another" in dynamo.list_backends(exclude_tags=())


def test_a_taken_name_is_refused_and_changes_nothing() -> None:
    eager = dynamo.lookup_backend("eager")
    with pytest.raises(dynamo.UsageError, match="named 'eager' already"):
        dynamo.register_backend(counted, "eager")
    assert dynamo.lookup_backend("eager") is eager


def test_an_unknown_name_names_the_near_ones() -> None:
    with pytest.raises(dynamo.UsageError, match="'inducter'.*Did you mean 'inductor'.*eager"):
        dynamo.optimize("inducter")
    with pytest.raises(dynamo.UsageError, match="a name or a callable, not int"):
        dynamo.optimize(3)  # type: ignore[arg-type]


def announce(folder: Path, group: str, name: str, text: str) -> None:
    """An installed package, as far as the import system can tell, that announces one backend."""
    (folder / f"announced_{name}.py").write_text(text)
    metadata = folder / f"announced_{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: announced_{name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = announced_{name}:backend\n")


@pytest.mark.parametrize(
    ("group", "module"), [("dynamo_eval_backends", "fx.codegen"), ("torch_dynamo_backends", "torch.fx")]
)
def test_an_installed_package_announces_backends(
    group: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = module.replace(".", "_")
    text = f"""
from {module} import GraphModule

seen = []

def backend(gm, example_inputs):
    assert isinstance(gm, GraphModule), type(gm)
    seen.append(example_inputs)
    return gm.forward
"""
    announce(tmp_path, group, name, text)
    monkeypatch.syspath_prepend(tmp_path)
    assert name in dynamo.list_backends()
    assert f"announced_{name}" not in sys.modules

    x = torch.randn(3)
    assert torch.equal(dynamo.optimize(name, nopython=True)(doubled)(x), x * 2)
    assert len(importlib.import_module(f"announced_{name}").seen) == 1


def test_an_announced_backend_that_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(tmp_path, "dynamo_eval_backends", "broken", "raise ImportError('no such compiler')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(dynamo.UsageError, match="'broken'.*'announced_broken:backend'.*no such compiler"):
        dynamo.optimize("broken")


def test_a_backend_registered_with_torch_is_found_and_gets_a_graph_of_torch() -> None:
    from torch._dynamo.backends import registry as of_torch

    kinds: list[type] = []

    def only_torch_knows(gm: Any, example_inputs: list[Any]) -> Any:
        kinds.append(type(gm).__mro__[1])
        return gm.forward

    of_torch.register_backend(only_torch_knows)
    try:
        x = torch.randn(4)
        assert torch.equal(dynamo.optimize("only_torch_knows", nopython=True)(doubled)(x), x * 2)
        assert kinds == [torch.fx.GraphModule]
    finally:
        of_torch._COMPILER_FNS.pop("only_torch_knows")
        of_torch._BACKENDS.pop("only_torch_knows")


# -- running graphs ------------------------------------------------------------------------------------------


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.last = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(torch.relu(self.norm(self.first(x))))
        return result


def trained(model: nn.Module, forward: Callable[..., Any], steps: int) -> list[torch.Tensor]:
    """Losses and last gradients of some steps on fixed data."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1)
    seen = []
    for _ in range(steps):
        x, y = torch.randn(6, 4), torch.randn(6, 2)
        loss = nn.functional.mse_loss(forward(x), y)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()
        seen.append(loss.detach())
    return [*seen, *(parameter.grad for parameter in model.parameters() if parameter.grad is not None)]


@pytest.mark.parametrize("backend", ["eager", "interpreter", "aot_eager", "aot_eager_decomp_partition"])
def test_losses_and_gradients_are_those_of_eager(backend: str) -> None:
    model = Small()
    expected = trained(twin := copy.deepcopy(model), twin, 5)
    met = trained(model, dynamo.optimize(backend, nopython=True)(model), 5)
    assert len(met) == len(expected) == 11
    for ours, theirs in zip(met, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


@needs_compiler
def test_inductor_trains_as_eager_does() -> None:
    model = Small()
    expected = trained(twin := copy.deepcopy(model), twin, 3)
    met = trained(model, dynamo.optimize("inductor", nopython=True)(model), 3)
    for ours, theirs in zip(met, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["aot_eager", "interpreter"])
def test_writes_to_inputs_reach_the_caller(backend: str) -> None:
    def fill(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        y[0] = 5.0
        return x.view(-1) * y.sum()

    captured = dynamo.optimize(backend, nopython=True)(fill)
    given = [torch.zeros(2, 2), torch.ones(3)]
    plain = copy.deepcopy(given)
    assert torch.equal(captured(*given), fill(*plain))
    assert all(map(torch.equal, given, plain))


def shifted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.mul_(2)
    return y + x.sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "interpreter", "aot_eager_decomp_partition"])
def test_a_write_is_seen_through_other_inputs_that_share_its_memory(backend: str) -> None:
    captured = dynamo.optimize(backend, nopython=True)(shifted)
    for sharing in (False, True, False, True):
        results = []
        for function in (captured, shifted):
            base = torch.arange(6.0)
            other = base[2:5] if sharing else torch.arange(2.0, 5.0)
            results.append((function(base[1:4], other), base, other))
        for met, expected in zip(*results, strict=True):
            assert torch.equal(met, expected)


def test_an_error_in_the_interpreter_backend_names_the_node() -> None:
    captured = dynamo.optimize("interpreter")(picked)
    assert torch.equal(captured(torch.arange(3), torch.tensor([1])), torch.tensor([2]))
    with pytest.raises(IndexError) as caught:
        captured(torch.arange(3), torch.tensor([7]))
    assert "getitem" in str([*getattr(caught.value, "__notes__", ()), caught.value])


# -- failing -------------------------------------------------------------------------------------------------


def failing(gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    raise ValueError("not on a Monday")


def no_callable(gm: GraphModule, example_inputs: list[Any]) -> Any:
    return 3


@pytest.mark.parametrize(
    ("backend", "words"), [(failing, "'failing' raised ValueError: not on a Monday"), (no_callable, "int")]
)
def test_a_failing_backend_leaves_eager_and_says_why(
    backend: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="dynamo.eval"):
        assert torch.equal(dynamo.optimize(backend)(doubled)(torch.ones(2)), torch.full((2,), 2.0))
    assert words in caplog.text and "doubled" in caplog.text
    dynamo.reset()
    with pytest.raises(dynamo.BackendError, match=words):
        dynamo.optimize(backend, nopython=True)(doubled)(torch.ones(2))


# -- ONNX Runtime --------------------------------------------------------------------------------------------


def test_onnxruntime_runs_values_and_refuses_memory() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model = Small().eval()
    captured = dynamo.optimize("onnxruntime", nopython=True)(model)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(5, 4)
            torch.testing.assert_close(captured(x), model(x))
        assert dynamo.optimize("onnxruntime", nopython=True)(turned)(x).stride() == turned(x).stride()
    with pytest.raises(dynamo.BackendError, match="no gradients"):
        dynamo.optimize("onnxruntime", nopython=True)(Small())(x)
    with pytest.raises(dynamo.BackendError, match="shares memory"):
        dynamo.optimize("onnxruntime", nopython=True)(flat)(x)
    with pytest.raises(dynamo.BackendError, match="writes to its input"):
        dynamo.optimize("onnxruntime", nopython=True)(written)(x)
