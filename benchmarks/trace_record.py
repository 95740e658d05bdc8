"""What does recording one operation cost, beside torch.fx?

    python benchmarks/trace_record.py [--impl ours|torch|both] [--count N] [--rounds R]

Programs of N equal operations, then whole architectures; processor time of ``Tracer().trace`` per node in microseconds, minimum of
R interleaved rounds.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch import nn

import fx.trace


class Repeat(nn.Module):
    def __init__(self, step: Callable[[Any], Any], count: int, layer: nn.Module | None = None) -> None:
        super().__init__()
        self.step, self.count, self.layer = step, count, layer

    def forward(self, x: Any) -> Any:
        for _ in range(self.count):
            x = self.step(x) if self.layer is None else self.layer(x)
        return x


class Parameters(nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.names = [f"p{index}" for index in range(count)]
        for name in self.names:
            self.register_parameter(name, nn.Parameter(torch.zeros(1)))

    def forward(self, x: Any) -> Any:
        for name in self.names:
            x = x + getattr(self, name)
        return x


class Residual(nn.Module):
    """The shape of ResNet-50: 16 bottlenecks of convolutions, norms and additions."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([self.block() for _ in range(16)])

    @staticmethod
    def block() -> nn.Sequential:
        layers = [[nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.ReLU()] for _ in range(3)]
        return nn.Sequential(*[layer for group in layers for layer in group])

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = torch.relu(block(x) + x)
        return x


class Encoder(nn.Module):
    """The shape of ViT-B/16: 12 layers of attention written out and an MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.ModuleList([nn.Linear(8, 24) for _ in range(12)])
        self.mlp = nn.ModuleList(
            [nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)) for _ in range(12)]
        )

    def forward(self, x: Any) -> Any:
        for qkv, mlp in zip(self.qkv, self.mlp, strict=True):
            batch, length, width = x.shape
            q, k, v = qkv(x).reshape(batch, length, 3, width).permute(2, 0, 1, 3).unbind(0)
            x = x + torch.softmax(q @ k.transpose(-2, -1) / 3.0, dim=-1) @ v
            x = x + mlp(x)
        return x


class Excited(nn.Module):
    """An inverted bottleneck with squeeze and excitation."""

    def __init__(self) -> None:
        super().__init__()
        layers = [[nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.SiLU(inplace=True)] for _ in range(2)]
        self.expand = nn.Sequential(*layers[0])
        self.depthwise = nn.Sequential(*layers[1])
        self.squeeze, self.excite = nn.Conv2d(4, 1, 1), nn.Conv2d(1, 4, 1)
        self.project = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4))

    def forward(self, x: Any) -> Any:
        wide = self.depthwise(self.expand(x))
        scale = nn.functional.silu(self.squeeze(nn.functional.adaptive_avg_pool2d(wide, 1)))
        return x + self.project(torch.sigmoid(self.excite(scale)) * wide)


def efficient() -> nn.Module:
    """The shape of EfficientNet-B0: 16 inverted bottlenecks, a stem and a head."""
    stem, head = [[nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.SiLU(inplace=True)] for _ in range(2)]
    return nn.Sequential(
        *stem,
        *[Excited() for _ in range(16)],
        *head,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 4),
    )


def elapsed(tracer: Callable[[], Any], program: nn.Module) -> float:
    gc.collect()
    gc.disable()
    start = time.process_time()
    tracer().trace(program)
    taken = time.process_time() - start
    gc.enable()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--impl", choices=("ours", "torch", "both"), default="both")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    count = options.count
    programs: dict[str, nn.Module] = {
        "operator": Repeat(lambda x: x + 1, count),
        "method": Repeat(lambda x: x.relu(), count),
        "torch function": Repeat(torch.sigmoid, count),
        "leaf module": Repeat(torch.neg, count, nn.Linear(2, 2)),
        "parameter": Parameters(count),
        "ResNet-50 shape": Residual(),
        "ViT-B/16 shape": Encoder(),
        "EfficientNet-B0": efficient(),
    }
    tracers: dict[str, Callable[[], Any]] = {"ours": fx.trace.Tracer, "torch": torch.fx.Tracer}
    chosen = [name for name in tracers if options.impl in (name, "both")]
    for label, program in programs.items():
        nodes = len(fx.trace.Tracer().trace(program).nodes)
        times = {name: float("inf") for name in chosen}
        for _ in range(options.rounds):
            for name in chosen:
                times[name] = min(times[name], elapsed(tracers[name], program))
        text = "  ".join(f"{name} {value / nodes * 1e6:8.2f}" for name, value in times.items())
        ratio = f"  ratio {times['ours'] / times['torch']:.3f}" if len(chosen) == 2 else ""
        print(f"{label:16} {nodes:5} nodes  {text}  us/node{ratio}", flush=True)


if __name__ == "__main__":
    main()
