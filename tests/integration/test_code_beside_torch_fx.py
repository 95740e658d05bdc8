"""The generated code of real models beside torch.fx's: line by line the same, but for what the README keeps on purpose."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fx.codegen.interop import from_torch
from fx.trace import symbolic_trace
from tests.oracle.architectures import ARCHITECTURES, inputs_of


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)])
        self.up = nn.ModuleDict({"0": nn.ConvTranspose2d(16, 8, 2, stride=2), "last": nn.Conv2d(16, 2, 1)})
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x: Tensor, slope: float = 0.1) -> Any:
        first = nn.functional.leaky_relu(self.down[0](x), slope)
        second = torch.relu(self.down[1](nn.functional.max_pool2d(first, 2)))
        up = torch.cat((self.up["0"](second) * self.scale, first), dim=1)
        return {
            "out": self.up["last"](up),
            "sizes": (x.shape[0], up.size(-1)),
            "part": up[:, 1:3, ..., None],
        }


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(2)]
        )
        self.rnn = nn.GRU(8, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x.argmax(1).flatten(1) % 20)
        for layer in self.layers:
            x = layer(x)
        x, _ = self.rnn(x)[0], None
        return (
            nn.functional.scaled_dot_product_attention(x, x, x).softmax(-1).masked_fill(x < 0, -float("inf"))
        )


PLAIN: dict[str, Callable[[], nn.Module]] = {
    **{name: make for name, make in ARCHITECTURES.items() if name != "ResNet-50"},
    "unet": UNet,
    "transformer": Transformer,
    "mlp": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(3 * 32 * 32, 8), nn.GELU(), nn.Dropout(), nn.Linear(8, 2)
    ),
}

IMAGES = torch.randn(2, 3, 32, 32)


def lines(code: str) -> list[str]:
    return [line.rstrip() for line in code.strip().split("\n")]


def released(line: str) -> str:
    """A parameter under another name: torch.fx keeps the parameter's own name bound."""
    return re.sub(r"^    (\w+) = (\w+)$", r"    \1 = \2;  \2 = None", line)


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_code_is_the_same_line_by_line(name: str) -> None:
    module = PLAIN[name]().eval()
    ours, theirs = symbolic_trace(module), torch.fx.symbolic_trace(module)
    assert lines(ours.code) == [released(line) for line in lines(theirs.code)]
    (x,) = inputs_of(name).values() if name in ARCHITECTURES else (IMAGES,)
    torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=0)
    torch.testing.assert_close(from_torch(theirs)(x), theirs(x), rtol=0, atol=0)
    assert lines(from_torch(theirs).code) == lines(ours.code)


def test_in_place_addition_stays_in_place_where_torch_fx_adds() -> None:
    module = ARCHITECTURES["ResNet-50"]().eval()
    ours, theirs = symbolic_trace(module), torch.fx.symbolic_trace(module)

    def in_place(line: str) -> str:
        line = re.sub(r"\b(add(_\d+)?) = (\w+) \+ (\w+);", r"\1 = \3;  \1 += \4;", released(line))
        return re.sub(r"\badd(?=\b|_\d)", "iadd", line)

    assert lines(ours.code) == [in_place(line) for line in lines(theirs.code)]
    assert torch.equal(ours(IMAGES), theirs(IMAGES))
