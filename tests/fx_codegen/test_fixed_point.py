"""Trace → code → trace comes to rest: tracing generated code gives that code again."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fx.trace import symbolic_trace


class Variadic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor, *args: Any, k: int = 3, **kwargs: Any) -> Any:
        y = self.linear(x) * self.weight
        y += 1
        z = torch.nn.functional.relu(y[..., 1:], inplace=False).sum(dim=-1, dtype=torch.float64)
        return {"a": z, "b": (x.shape[0], args[0], kwargs["q"], float("inf"), -0.0)}


class Names(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict({"class": nn.Sequential(nn.Linear(4, 4), nn.Tanh()), "0": nn.Identity()})

    def forward(self, input: torch.Tensor, torch_: torch.Tensor) -> torch.Tensor:
        inf = self.blocks["class"](input)
        result: torch.Tensor = self.blocks["0"](inf).pow(2) ** -1 @ torch_
        return result


@pytest.mark.parametrize("module", [Variadic(), Names()], ids=["variadic", "names"])
def test_tracing_generated_code_gives_the_same_code_and_graph(module: nn.Module) -> None:
    once = symbolic_trace(module)
    again = symbolic_trace(once)
    assert again.code == once.code
    assert str(again.graph) == str(once.graph)
