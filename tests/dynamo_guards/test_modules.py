"""State of nn.Module: DESIGN.md's policy, one test a row."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from dynamo.guards import CheckFunctionManager, GuardBuilder, GuardScope, LocalSource, _check

X = LocalSource("x")
B = GuardBuilder


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Sequential(nn.BatchNorm1d(3), nn.ReLU())
        self.scale = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.second(self.first(x)) * self.scale
        return y


def manager_for(value: object, create_fn: Callable[..., None] = B.NN_MODULE_TREE) -> CheckFunctionManager:
    return CheckFunctionManager([X.make_guard(create_fn)], GuardScope(("x",), (), (value,), None, {}, {}))


def both(manager: CheckFunctionManager, value: object) -> bool:
    native = manager.check([value])
    assert manager.check_fn(value) == native
    assert bool(manager.explain_failure([value])) is not native
    return native


def step(net: Net) -> None:
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(4, 2)).sum().backward()
    optimiser.step()
    optimiser.zero_grad()


def shared_data(net: Net) -> None:
    with torch.no_grad():
        net.first.weight.copy_(torch.ones(3, 2))


HITS: dict[str, Callable[[Net], object]] = {
    "copy_ into a parameter": shared_data,
    "an optimiser step": step,
    "load_state_dict": lambda net: net.load_state_dict({k: v.clone() for k, v in net.state_dict().items()}),
    ".data of the same shape": lambda net: setattr(net.first.weight, "data", torch.zeros(3, 2)),
    "a call in training": lambda net: net(torch.ones(4, 2)),
}

MISSES: dict[str, Callable[[Net], object]] = {
    "eval()": lambda net: net.eval(),
    "eval() of a submodule": lambda net: net.second[0].eval(),
    "a submodule replaced": lambda net: setattr(net, "first", nn.Linear(2, 3)),
    "a submodule added": lambda net: net.add_module("third", nn.ReLU()),
    "a submodule deleted": lambda net: delattr(net, "second"),
    "a parameter replaced": lambda net: setattr(net.first, "weight", nn.Parameter(torch.ones(3, 2))),
    "a parameter set to None": lambda net: setattr(net.first, "bias", None),
    "a parameter added": lambda net: net.register_parameter("extra", nn.Parameter(torch.ones(1))),
    "a buffer replaced": lambda net: setattr(net.second[0], "running_mean", torch.zeros(3)),
    "a buffer added": lambda net: net.register_buffer("extra", torch.ones(1)),
    "a forward hook": lambda net: net.register_forward_hook(lambda *a: None),
    "a forward pre-hook on a submodule": lambda net: net.first.register_forward_pre_hook(lambda *a: None),
    "a backward hook": lambda net: net.register_full_backward_hook(lambda *a: None),
    ".data of another shape": lambda net: setattr(net.first.weight, "data", torch.zeros(4, 2)),
    "double()": lambda net: net.double(),
    "to(meta)": lambda net: net.to("meta"),
    "requires_grad_(False)": lambda net: net.requires_grad_(False),
    "forward set on the instance": lambda net: setattr(net, "forward", lambda x: x),
    "another class": lambda net: setattr(net, "__class__", nn.Module),
}


@pytest.mark.parametrize("name", HITS)
def test_what_does_not_change_the_meaning_hits(name: str) -> None:
    net = Net()
    manager = manager_for(net)
    assert both(manager, net) and both(manager, net)
    HITS[name](net)
    assert both(manager, net) and both(manager, net), manager.explain_failure([net])


@pytest.mark.parametrize("name", MISSES)
def test_what_changes_the_meaning_misses(name: str) -> None:
    net = Net()
    manager = manager_for(net)
    assert both(manager, net) and both(manager, net)
    assert manager.program.remembered is _check.MARKS  # the next check skips what did not change
    MISSES[name](net)
    assert not manager.check([net])
    assert not manager.check([net])
    assert not manager.check_fn(net)
    assert manager.explain_failure([net])


def test_a_hook_that_is_removed_again_hits() -> None:
    net = Net()
    manager = manager_for(net)
    handle = net.register_forward_hook(lambda *a: None)
    assert not both(manager, net)
    handle.remove()
    assert both(manager, net)


@pytest.mark.parametrize("attr", ["forward", "__call__"])
def test_a_patched_class_misses(attr: str) -> None:
    class Patched(Net):
        pass

    net = Patched()
    manager = manager_for(net)
    assert both(manager, net)
    Patched.unrelated = 1  # type: ignore[attr-defined]  # irrelevant to the guard
    assert both(manager, net)
    own = Patched.__dict__.get(attr)
    setattr(Patched, attr, lambda self, x: x)
    assert not both(manager, net)
    assert own is None
    delattr(Patched, attr)
    assert both(manager, net)


def test_another_module_of_the_same_state_misses_by_identity_and_hits_without_it() -> None:
    relu, other = nn.ReLU(), nn.ReLU()
    assert not both(manager_for(relu, B.NN_MODULE), other)
    free = manager_for(relu, B.MODULE_STATE)
    assert both(free, other)
    other.eval()
    assert not both(free, other)


def test_attributes_reach_parameters_and_submodules_without_python() -> None:
    net = Net()
    path = LocalSource("x")
    from dynamo.guards import AttrSource

    guards = [
        AttrSource(AttrSource(path, "first"), "weight").make_guard(B.TENSOR_MATCH),
        AttrSource(path, "scale").make_guard(B.EQUALS_MATCH),
        AttrSource(AttrSource(path, "second"), "training").make_guard(B.BOOL_MATCH),
    ]
    manager = CheckFunctionManager(guards, GuardScope(("x",), (), (net,), None, {}, {}))
    assert both(manager, net) and both(manager, Net())
    net.scale = 3.0
    assert not both(manager, net)
    net.scale = 2.0
    net.second.eval()
    assert not both(manager, net)
    net.second.train()
    net.first.weight = nn.Parameter(torch.ones(3, 2, dtype=torch.float64))
    assert not both(manager, net)


def test_state_guards_are_left_out_on_request() -> None:
    from dynamo.guards import NNModuleSource

    net = Net()
    guards = [NNModuleSource(X).make_guard(B.NN_MODULE)]
    scope = GuardScope(("x",), (), (net,), None, {}, {})
    assert guards[0].is_nn_module()
    manager = CheckFunctionManager(guards, scope, guard_nn_modules=False)
    net.eval()
    assert manager.check([net])
    assert not CheckFunctionManager(guards, scope).check([Net()])
