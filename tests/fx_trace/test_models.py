"""Whole architectures, written with torch.nn: traced, run and compared with eager, in train and eval mode."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx
from torch import nn

import fx.trace as ft
from fx.trace import passes


class Bottleneck(nn.Module):
    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inside != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(inside, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    """ResNet-50 with narrow layers: the graph is that of the real one."""

    def __init__(self, width: int = 4, depths: tuple[int, ...] = (3, 4, 6, 3)) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.pool = nn.MaxPool2d(3, 2, 1)
        blocks: list[nn.Module] = []
        inside = width
        for index, depth in enumerate(depths):
            for number in range(depth):
                blocks.append(Bottleneck(inside, width << index, 2 if index and not number else 1))
                inside = 4 * (width << index)
        self.layers = nn.Sequential(*blocks)
        self.head = nn.Linear(inside, 10)

    def forward(self, x):
        x = self.layers(self.pool(self.stem(x)))
        return self.head(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


class InvertedResidual(nn.Module):
    """MobileNet's block; with squeeze and excitation, EfficientNet's."""

    def __init__(self, inside: int, outside: int, stride: int, expand: int, squeeze: bool) -> None:
        super().__init__()
        wide = inside * expand
        activation = nn.SiLU if squeeze else nn.ReLU6
        self.expand = nn.Sequential(
            nn.Conv2d(inside, wide, 1, bias=False), nn.BatchNorm2d(wide), activation()
        )
        self.depthwise = nn.Sequential(
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), activation()
        )
        self.squeeze = Squeeze(wide) if squeeze else None
        self.project = nn.Sequential(nn.Conv2d(wide, outside, 1, bias=False), nn.BatchNorm2d(outside))
        self.is_residual = stride == 1 and inside == outside

    def forward(self, x):
        out = self.depthwise(self.expand(x))
        if self.squeeze is not None:
            out = self.squeeze(out)
        out = self.project(out)
        return x + out if self.is_residual else out


class Squeeze(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(width, 2, 1), nn.Conv2d(2, width, 1)

    def forward(self, x):
        scale = x.mean((2, 3), keepdim=True)
        return x * torch.sigmoid(self.up(nn.functional.silu(self.down(scale))))


def mobile_net(squeeze: bool) -> nn.Module:
    plan = [(4, 4, 1, 1), (4, 6, 2, 4), (6, 6, 1, 4), (6, 8, 2, 4), (8, 8, 1, 4)]
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, 2, 1, bias=False),
        nn.BatchNorm2d(4),
        *[InvertedResidual(*step, squeeze) for step in plan],
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(8, 10),
    )


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        weights = (q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class ViT(nn.Module):
    def __init__(self, width: int = 16, depth: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, 17, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * depth)])
        self.attentions = nn.ModuleList([Attention(width, 4) for _ in range(depth)])
        self.mlps = nn.ModuleList(
            [
                nn.Sequential(
                    nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width)
                )
                for _ in range(depth)
            ]
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.size(0), -1, -1), x], dim=1) + self.position
        for index, (attention, mlp) in enumerate(zip(self.attentions, self.mlps, strict=True)):
            x = x + attention(self.norms[2 * index](x))
            x = x + mlp(self.norms[2 * index + 1](x))
        return self.head(x[:, 0])


MODELS: dict[str, Callable[[], nn.Module]] = {
    "resnet": ResNet,
    "mobilenet": lambda: mobile_net(squeeze=False),
    "efficientnet": lambda: mobile_net(squeeze=True),
    "vit": ViT,
}
IMAGES = torch.randn(2, 3, 32, 32)


def outcome(module: Any, x: torch.Tensor) -> tuple[Any, ...]:
    """Result, gradients and buffers after one step with a fixed seed."""
    torch.manual_seed(1)
    result = module(x)
    result.square().sum().backward()
    gradients = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    return result.detach(), gradients, {name: b.clone() for name, b in module.named_buffers()}


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_traced_architectures_compute_what_eager_does(name: str, mode: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().train(mode == "train")
    eager = copy.deepcopy(model)
    theirs = torch.fx.symbolic_trace(copy.deepcopy(model))
    traced = ft.symbolic_trace(model)
    traced.graph.lint()
    assert traced.training is model.training
    assert len(traced.graph.nodes) == len(theirs.graph.nodes)
    expected, got = outcome(eager, IMAGES), outcome(traced, IMAGES)
    assert torch.equal(got[0], expected[0])
    for ours, wanted in zip(got[1:], expected[1:], strict=True):
        assert set(ours) <= set(wanted)
        assert all(torch.equal(value, wanted[key]) for key, value in ours.items())


@pytest.mark.parametrize("name", sorted(MODELS))
def test_passes_and_interpreters_keep_what_architectures_compute(name: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    expected = model(IMAGES)
    traced = ft.symbolic_trace(model)
    torch.testing.assert_close(ft.Interpreter(traced).run(IMAGES), expected, rtol=0, atol=0)
    torch.testing.assert_close(ft.Transformer(traced).transform()(IMAGES), expected, rtol=0, atol=0)
    manager = passes.PassManager(
        [passes.fuse_conv_bn, passes.eliminate_common_subexpressions, passes.eliminate_dead_code]
    )
    torch.testing.assert_close(manager(traced).graph_module(IMAGES), expected, rtol=1e-3, atol=1e-4)
    half = len(traced.graph.nodes) // 2
    positions = {node: index for index, node in enumerate(traced.graph.nodes)}
    split = passes.split_module(traced, None, lambda node: int(positions[node] > half))
    torch.testing.assert_close(split(IMAGES), traced(IMAGES), rtol=0, atol=0)


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
