"""The first examples of the founding documents, as their readers would type them."""

import torch

from fx.trace import symbolic_trace


class MyModule(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.param = torch.nn.Parameter(torch.rand(3, 4))
        self.linear = torch.nn.Linear(4, 5)

    def forward(self, x):  # type: ignore[no-untyped-def]  # the manual's example has no annotations
        return self.linear(x + self.param).clamp(min=0.0, max=1.0)


GRAPH = """\
graph():
    %x : [num_users=1] = placeholder[target=x]
    %param : [num_users=1] = get_attr[target=param]
    %add : [num_users=1] = call_function[target=operator.add](args = (%x, %param), kwargs = {})
    %linear : [num_users=1] = call_module[target=linear](args = (%add,), kwargs = {})
    %clamp : [num_users=1] = call_method[target=clamp](args = (%linear,), kwargs = {min: 0.0, max: 1.0})
    return clamp"""

BODY = """\
    param = self.param
    add = x + param;  x = param = None
    linear = self.linear(add);  add = None
    clamp = linear.clamp(min = 0.0, max = 1.0);  linear = None
    return clamp"""


def test_the_first_example_prints_the_graph_and_code_that_the_manual_shows_and_runs() -> None:
    module = MyModule()
    traced = symbolic_trace(module)
    assert str(traced.graph).strip() == GRAPH
    assert BODY in traced.code
    assert "def forward(self, x):" in traced.code
    x = torch.rand(3, 4)
    assert torch.equal(traced(x), module(x))


def test_the_first_example_prints_as_torch_fx_prints_it() -> None:
    module = MyModule()
    ours, theirs = symbolic_trace(module), torch.fx.symbolic_trace(module)
    assert str(ours.graph).strip() == str(theirs.graph).strip()
    assert ours.code.strip() == theirs.code.strip()
