"""Captured modules: a limit of their own, eager's results and hooks, copies, and an end."""

import copy
import gc
import pickle
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import dynamo.eval as dynamo
from dynamo.eval.backends.testing import CompileCounter


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    torch.manual_seed(0)
    yield
    dynamo.reset()


class Scaled(nn.Module):
    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        return torch.relu(self.drop(self.inner(x))) * scale


def doubled(module: nn.Module, args: Any, result: torch.Tensor) -> torch.Tensor:
    return result * 2


MODULES = [
    lambda: nn.Linear(3, 3),
    lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)),
    lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.GELU()),
    lambda: nn.Sequential(nn.LayerNorm(3), nn.Tanh()),
    Scaled,
]


@pytest.mark.parametrize("make", MODULES)
def test_a_simple_module_is_one_graph_in_both_modes(make: Any) -> None:
    module, counter = make(), CompileCounter()
    eager = copy.deepcopy(module)
    captured = dynamo.optimize(counter, nopython=True)(module)
    for training in (True, False):
        captured.train(training)
        eager.train(training)
        assert captured.training is module.training is training
        for _ in range(2):
            x = torch.randn(5, 3)
            torch.manual_seed(1)
            expected = eager(x)
            torch.manual_seed(1)
            assert torch.equal(captured(x), expected)
    assert counter.frame_count in (1, 2)
    for name, value in eager.state_dict().items():
        assert torch.equal(value, module.state_dict()[name])


def test_each_of_many_modules_is_captured_once_and_hit_afterwards() -> None:
    counter = CompileCounter()
    modules = [nn.Linear(3, 3) for _ in range(12)]
    captured = [dynamo.optimize(counter, nopython=True)(module) for module in modules]
    x = torch.randn(2, 3)
    for turn in range(3):
        for module, optimized in zip(modules, captured, strict=True):
            assert torch.equal(optimized(x), module(x)), turn
        assert counter.frame_count == len(modules)


def test_keyword_arguments_reach_the_module() -> None:
    module = Scaled().eval()
    captured = dynamo.optimize("eager", nopython=True)(module)
    x = torch.randn(2, 3)
    assert torch.equal(captured(x, scale=3.0), module(x, scale=3.0))
    assert torch.equal(captured(x=x), module(x))
    assert torch.equal(captured.forward(x, 4.0), module(x, 4.0))


def test_gradients_are_those_of_eager() -> None:
    module = Scaled().eval()
    twin = copy.deepcopy(module)
    x = torch.randn(2, 3)
    dynamo.optimize("eager")(module)(x).sum().backward()
    twin(x).sum().backward()
    for mine, theirs in zip(module.parameters(), twin.parameters(), strict=True):
        assert mine.grad is not None and theirs.grad is not None
        assert torch.equal(mine.grad, theirs.grad)


@pytest.mark.parametrize("where", ["original", "captured", "inner"])
def test_hooks_added_and_removed_later_are_seen(where: str) -> None:
    module = Scaled().eval()
    captured = dynamo.optimize("eager")(module)
    x = torch.randn(2, 3)
    plain = module(x)
    assert torch.equal(captured(x), plain)
    owner = {"original": module, "captured": captured, "inner": module.inner}[where]
    handle = owner.register_forward_hook(doubled)
    for _ in range(2):
        assert torch.equal(captured(x), plain * 2)
    handle.remove()
    assert torch.equal(captured(x), plain)


def test_pre_hooks_and_backward_hooks_run() -> None:
    module = nn.Linear(3, 3)
    captured = dynamo.optimize("eager")(module)
    x = torch.randn(2, 3, requires_grad=True)
    captured(x)
    seen: list[str] = []
    module.register_forward_pre_hook(lambda module, args: seen.append("pre"))
    module.register_full_backward_hook(lambda module, grads, outs: seen.append("backward"))
    captured(x).sum().backward()
    assert seen == ["pre", "backward"]


def test_a_replaced_forward_is_seen() -> None:
    module = Scaled().eval()
    captured = dynamo.optimize("eager")(module)
    x = torch.randn(2, 3)
    captured(x)
    setattr(captured, "inner", nn.Identity())  # noqa: B010  # the class says Linear
    assert torch.equal(captured(x), torch.relu(x) * 2.0)
    module.forward = lambda x: x - 1  # type: ignore[method-assign,assignment,misc]  # what is tested
    assert torch.equal(captured(x), x - 1)


@pytest.mark.parametrize("backend", ["eager", CompileCounter()])
def test_copies_are_captured_modules_apart_from_the_first(backend: Any) -> None:
    module = Scaled().eval()
    captured = dynamo.optimize(backend)(module)
    x = torch.randn(2, 3)
    expected = captured(x)
    copies = [copy.deepcopy(captured)]
    if backend == "eager":
        copies.append(pickle.loads(pickle.dumps(captured)))
    for each in copies:
        assert type(each) is type(captured)
        assert torch.equal(each(x), expected)
        assert not each.training
    with torch.no_grad():
        module.inner.weight.zero_()
    for each in copies:
        assert torch.equal(each(x), expected)


def test_the_state_is_that_of_the_module_of_torch_compile() -> None:
    module = Scaled()
    ours: nn.Module = dynamo.optimize("eager")(module)
    theirs: Any = torch.compile(module, backend="eager")
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    assert [name for name, _ in ours.named_modules()] == [name for name, _ in theirs.named_modules()]
    ours.load_state_dict(theirs.state_dict())
    assert ours.inner is module.inner


def test_capturing_a_captured_module_again_captures_the_original() -> None:
    counter = CompileCounter()
    module = nn.Linear(3, 3)
    captured = dynamo.optimize(counter, nopython=True)(dynamo.optimize("eager")(module))
    x = torch.randn(2, 3)
    assert torch.equal(captured(x), module(x))
    assert counter.frame_count == 1
    assert list(captured.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]


def test_the_graph_is_freed_with_its_module() -> None:
    graphs: list[weakref.ref[Any]] = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(weakref.ref(module))
        return module.forward

    module = Scaled().eval()
    captured = dynamo.optimize(backend)(module)
    captured(torch.randn(2, 3))
    alive = weakref.ref(module)
    del module, captured
    gc.collect()
    assert alive() is None
    assert [graph() for graph in graphs] == [None]


def test_the_graph_of_a_function_is_freed_with_the_class_that_its_guards_name() -> None:
    graphs: list[weakref.ref[Any]] = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(weakref.ref(module))
        return module.forward

    def apply(module: nn.Module, x: torch.Tensor) -> Any:
        return module(x) + 1

    def local() -> nn.Module:
        class Local(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x * 2

        return Local()

    captured = dynamo.optimize(backend)(apply)
    module = local()
    captured(module, torch.randn(2, 3))
    assert graphs[0]() is not None
    kind = weakref.ref(type(module))
    del module
    gc.collect()
    assert kind() is None
    gc.collect()  # the graph and its module refer to each other
    assert graphs[0]() is None


def test_a_break_inside_a_module_names_the_users_file(caplog: pytest.LogCaptureFixture) -> None:
    class Printing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + 1
            print(end="")
            return x * 2

    with pytest.raises(dynamo.Unsupported, match=r"test_modules_captured\.py"):
        dynamo.optimize("eager", nopython=True)(Printing())(torch.ones(2))
    x = torch.randn(2)
    assert torch.equal(dynamo.optimize("eager")(Printing())(x), (x + 1) * 2)
