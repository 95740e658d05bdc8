"""Whole architectures written with torch.nn alone, narrow, with their inputs.

The graphs are those of the real ones; what is narrow is the layers.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

__all__ = ["ARCHITECTURES", "inputs_of"]


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


class ConvNeXtBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(1e-1 * torch.ones(width))

    def forward(self, x):
        out = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        out = self.scale * self.narrow(nn.functional.gelu(self.wide(out)))
        return x + out.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Stages of 3, 3, 9 and 3 blocks, as ConvNeXt-T has."""

    def __init__(self) -> None:
        super().__init__()
        widths, depths = (4, 8, 8, 12), (3, 3, 9, 3)
        self.stages = nn.ModuleList()
        inside = 3
        for width, depth in zip(widths, depths, strict=True):
            down = nn.Conv2d(inside, width, 2, 2)
            self.stages.append(nn.Sequential(down, *[ConvNeXtBlock(width) for _ in range(depth)]))
            inside = width
        self.norm, self.head = nn.LayerNorm(inside), nn.Linear(inside, 10)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.head(self.norm(x.mean([-2, -1])))


class UNet(nn.Module):
    """Four levels down and up, joined by concatenation."""

    def __init__(self, levels: int = 4, width: int = 4) -> None:
        super().__init__()
        widths = [width << level for level in range(levels)]
        self.down = nn.ModuleList()
        inside = 3
        for outside in widths:
            self.down.append(self.convolutions(inside, outside))
            inside = outside
        self.pool = nn.MaxPool2d(2)
        self.bottom = self.convolutions(inside, inside)
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * w if w != inside else w, w, 2, 2) for w in widths])
        self.join = nn.ModuleList([self.convolutions(2 * w, w) for w in widths])
        self.head = nn.Conv2d(width, 2, 1)

    @staticmethod
    def convolutions(inside: int, outside: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for width in (inside, outside):
            layers += [
                nn.Conv2d(width, outside, 3, padding=1),
                nn.BatchNorm2d(outside),
                nn.ReLU(inplace=True),
            ]
        return nn.Sequential(*layers)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for up, join in zip(reversed(self.up), reversed(self.join), strict=True):
            x = join(torch.cat([kept.pop(), up(x)], dim=1))
        return self.head(x)


class Recurrent(nn.Module):
    """A language model over an LSTM or a GRU of two layers."""

    def __init__(self, cell: type[nn.LSTM | nn.GRU]) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.cell = cell(8, 12, num_layers=2, dropout=0.1, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 50)

    def forward(self, tokens):
        out, _ = self.cell(self.embed(tokens))
        return self.head(out)


class UnrolledLSTM(nn.Module):
    """An LSTM cell applied a fixed number of times, its gates written out."""

    def __init__(self, steps: int = 7) -> None:
        super().__init__()
        self.steps = steps
        self.embed = nn.Embedding(50, 8)
        self.gates = nn.Linear(8 + 12, 4 * 12)

    def forward(self, tokens):
        embedded = self.embed(tokens)
        h = c = embedded.new_zeros(tokens.size(0), 12)
        for step in range(self.steps):
            i, f, g, o = self.gates(torch.cat([embedded[:, step], h], dim=1)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h


class Translation(nn.Module):
    """torch.nn.Transformer between embeddings and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.transformer = nn.Transformer(8, 2, 2, 2, 16, batch_first=True)
        self.head = nn.Linear(8, 50)

    def forward(self, tokens):
        embedded = self.embed(tokens)
        return self.head(self.transformer(embedded, embedded))


class Encoder(nn.Module):
    """torch.nn.TransformerEncoder with positions and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.position = nn.Embedding(50, 8), nn.Parameter(torch.randn(1, 7, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8), enable_nested_tensor=False)
        self.head = nn.Linear(8, 5)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens) + self.position).mean(1))


class Decoder(nn.Module):
    """torch.nn.TransformerDecoder with a causal mask, over a memory of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.memory = nn.Embedding(50, 8), nn.Parameter(torch.randn(1, 5, 8))
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(7))
        self.head = nn.Linear(8, 50)

    def forward(self, tokens):
        memory = self.memory.expand(tokens.size(0), -1, -1)
        return self.head(self.decoder(self.embed(tokens), memory, tgt_mask=self.mask))


ARCHITECTURES: dict[str, Callable[[], nn.Module]] = {
    "ResNet-50": ResNet,
    "MobileNetV2": lambda: mobile_net(squeeze=False),
    "EfficientNet": lambda: mobile_net(squeeze=True),
    "ConvNeXt-T": ConvNeXt,
    "ViT": ViT,
    "U-Net": UNet,
    "LSTM": lambda: Recurrent(nn.LSTM),
    "GRU": lambda: Recurrent(nn.GRU),
    "LSTM, unrolled": UnrolledLSTM,
    "nn.Transformer": Translation,
    "nn.TransformerEncoder": Encoder,
    "nn.TransformerDecoder": Decoder,
}
_ON_TOKENS = {name for name in ARCHITECTURES if name.startswith(("LSTM", "GRU", "nn."))}


def inputs_of(name: str) -> dict[str, Any]:
    """Random inputs of an architecture, by parameter name."""
    draw = torch.Generator().manual_seed(3)
    if name in _ON_TOKENS:
        return {"tokens": torch.randint(0, 50, (2, 7), generator=draw)}
    return {"x" if name not in _OF_SEQUENTIAL else "input": torch.randn(2, 3, 32, 32, generator=draw)}


_OF_SEQUENTIAL = {"MobileNetV2", "EfficientNet"}
