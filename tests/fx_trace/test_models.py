"""Whole architectures, written with torch.nn: traced, run and compared with eager, in train and eval mode."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.fx
from torch import nn

import fx.trace as ft
from fx.trace import passes
from tests.oracle.architectures import ARCHITECTURES, inputs_of


def outcome(module: Any, inputs: dict[str, Any]) -> tuple[Any, ...]:
    """Result, gradients and buffers after one step with a fixed seed."""
    torch.manual_seed(1)
    result = module(**inputs)
    result.square().sum().backward()
    gradients = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    return result.detach(), gradients, {name: b.clone() for name, b in module.named_buffers()}


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("name", sorted(ARCHITECTURES))
def test_traced_architectures_compute_what_eager_does(name: str, mode: str) -> None:
    torch.manual_seed(0)
    model = ARCHITECTURES[name]().train(mode == "train")
    eager = copy.deepcopy(model)
    theirs = torch.fx.symbolic_trace(copy.deepcopy(model))
    traced = ft.symbolic_trace(model)
    traced.graph.lint()
    assert traced.training is model.training
    assert len(traced.graph.nodes) == len(theirs.graph.nodes)
    expected, got = outcome(eager, inputs_of(name)), outcome(traced, inputs_of(name))
    assert torch.equal(got[0], expected[0])
    for ours, wanted in zip(got[1:], expected[1:], strict=True):
        assert set(ours) <= set(wanted)
        assert all(torch.equal(value, wanted[key]) for key, value in ours.items())


@pytest.mark.parametrize("name", sorted(ARCHITECTURES))
def test_passes_and_interpreters_keep_what_architectures_compute(name: str) -> None:
    torch.manual_seed(0)
    model = ARCHITECTURES[name]().eval()
    (x,) = inputs_of(name).values()
    expected = model(x)
    traced = ft.symbolic_trace(model)
    torch.testing.assert_close(ft.Interpreter(traced).run(x), expected, rtol=0, atol=0)
    torch.testing.assert_close(ft.Transformer(traced).transform()(x), expected, rtol=0, atol=0)
    manager = passes.PassManager(
        [passes.fuse_conv_bn, passes.eliminate_common_subexpressions, passes.eliminate_dead_code]
    )
    torch.testing.assert_close(manager(traced).graph_module(x), expected, rtol=1e-3, atol=1e-4)
    half = len(traced.graph.nodes) // 2
    positions = {node: index for index, node in enumerate(traced.graph.nodes)}
    split = passes.split_module(traced, None, lambda node: int(positions[node] > half))
    torch.testing.assert_close(split(x), traced(x), rtol=0, atol=0)


@pytest.mark.parametrize("factory", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer])
def test_torchs_own_transformer_layers_are_leaves(factory: Any) -> None:
    layer = factory(8, 2, dim_feedforward=16, batch_first=True).eval()
    x = torch.randn(2, 5, 8)

    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x, x) if factory is nn.TransformerDecoderLayer else self.layer(x)

    program = Program()
    torch.testing.assert_close(ft.symbolic_trace(program)(x), program(x), rtol=0, atol=0)
