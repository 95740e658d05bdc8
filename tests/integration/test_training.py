"""Training through captured modules: losses, gradients and states are those of eager, step after step."""

import copy
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import dynamo.eval as dynamo


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    torch.manual_seed(0)
    yield
    dynamo.reset()


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.layers(x), y)


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, 2)
        q, k, v = [part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts]
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        result: torch.Tensor = x + self.down(F.gelu(self.up(self.norm2(x))))
        return result


class GPT(nn.Module):
    def __init__(self, words: int = 50, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(16, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hidden = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            hidden = block(hidden)
        scores = self.head(self.norm(hidden))
        return F.cross_entropy(scores.view(-1, scores.size(-1)), y.view(-1))


class Residual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.short = nn.Conv2d(inside, outside, 1, stride) if stride != 1 or inside != outside else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (x if self.short is None else self.short(x)))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 1, 1)
        self.layers = nn.Sequential(Residual(8, 8, 1), Residual(8, 16, 2))
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(self.layers(F.relu(self.stem(x))).mean((2, 3))), y)


Batch = tuple[torch.Tensor, torch.Tensor]
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Batch]]] = {
    "mlp": (MLP, lambda: (torch.randn(6, 8), torch.randint(0, 4, (6,)))),
    "gpt": (GPT, lambda: (torch.randint(0, 50, (4, 12)), torch.randint(0, 50, (4, 12)))),
    "resnet": (ResNet, lambda: (torch.randn(4, 3, 12, 12), torch.randint(0, 10, (4,)))),
}
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.05, momentum=0.9),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, 1e-3),
}


def states(model: nn.Module) -> list[torch.Tensor]:
    grads = [each.grad for each in model.parameters() if each.grad is not None]
    return [*grads, *model.state_dict().values()]


def compare(model: nn.Module, twin: nn.Module, tolerance: float) -> None:
    for met, expected in zip(states(model), states(twin), strict=True):
        torch.testing.assert_close(met, expected, rtol=tolerance, atol=tolerance)


def train(name: str, optimizer: str, backend: str, steps: int, tolerance: float = 0.0) -> None:
    make, batch = MODELS[name]
    model = make()
    twin = copy.deepcopy(model)
    captured = dynamo.optimize(backend, nopython=True)(model)
    ours, theirs = OPTIMIZERS[optimizer](model.parameters()), OPTIMIZERS[optimizer](twin.parameters())
    for _ in range(steps):
        data = batch()
        losses = []
        for forward, stepper in ((captured, ours), (twin, theirs)):
            stepper.zero_grad()
            loss = forward(*data)
            loss.backward()
            losses.append(loss.detach())
        torch.testing.assert_close(losses[0], losses[1], rtol=tolerance, atol=tolerance)
        compare(model, twin, tolerance)
        ours.step()
        theirs.step()


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_twenty_steps_are_those_of_eager(name: str, optimizer: str, backend: str) -> None:
    train(name, optimizer, backend, 20)


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
@pytest.mark.parametrize("name", ["mlp", "gpt"])
def test_inductor_trains_as_eager_does(name: str) -> None:
    train(name, "sgd", "inductor", 20, 1e-4)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients_accumulate(backend: str) -> None:
    make, batch = MODELS["resnet"]
    model = make()
    twin = copy.deepcopy(model)
    captured = dynamo.optimize(backend, nopython=True)(model)
    for _ in range(3):
        data = batch()
        captured(*data).backward()
        twin(*data).backward()
    compare(model, twin, 0.0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_autocast_around_the_call_is_part_of_the_capture(backend: str) -> None:
    make, batch = MODELS["mlp"]
    model = make()
    twin = copy.deepcopy(model)
    captured = dynamo.optimize(backend, nopython=True)(model)
    for enabled in (True, False, True):
        data = batch()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            met, expected = captured(*data), twin(*data)
        assert met.dtype == expected.dtype
        torch.testing.assert_close(met, expected)
        met.backward()
        expected.backward()
        compare(model, twin, 1e-6)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_training_and_evaluation_take_turns(backend: str) -> None:
    make, batch = MODELS["resnet"]
    model = make()
    twin = copy.deepcopy(model)
    captured = dynamo.optimize(backend, nopython=True)(model)
    for step in range(6):
        data = batch()
        captured.train(step % 2 == 0)
        twin.train(step % 2 == 0)
        with torch.set_grad_enabled(step % 2 == 0):
            met, expected = captured(*data), twin(*data)
        torch.testing.assert_close(met, expected, rtol=0, atol=0)
        assert met.requires_grad is expected.requires_grad
        compare(model, twin, 0.0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_captured_part_inside_a_checkpoint(backend: str) -> None:
    make, batch = MODELS["mlp"]
    model = make()
    twin = copy.deepcopy(model)
    captured = dynamo.optimize(backend, nopython=True)(model)
    for _ in range(3):
        data = batch()
        checkpoint(captured, *data, use_reentrant=False).backward()
        twin(*data).backward()
    compare(model, twin, 0.0)


def test_a_checkpoint_inside_a_captured_module() -> None:
    class Saving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.last = (
                nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU()),
                nn.Linear(8, 2),
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.last(checkpoint(self.inner, x, use_reentrant=False))
            return result

    model = Saving()
    twin = copy.deepcopy(model)
    captured = dynamo.optimize("eager")(model)
    for seed in range(3):
        x = torch.randn(5, 4)
        for forward in (captured, twin):
            torch.manual_seed(seed)
            forward(x).sum().backward()
        compare(model, twin, 0.0)


def test_the_state_of_a_captured_module_is_saved_and_loaded() -> None:
    make, batch = MODELS["mlp"]
    captured = dynamo.optimize("eager", nopython=True)(make())
    data = batch()
    expected = captured(*data)
    file = io.BytesIO()
    torch.save(captured.state_dict(), file)
    file.seek(0)
    other = dynamo.optimize("eager", nopython=True)(make())
    assert not torch.equal(other(*data), expected)
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(*data), expected)


WORKER = """
import os, sys
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
import dynamo.eval as dynamo

dist.init_process_group("gloo", rank=int(sys.argv[1]), world_size=2, init_method="file://" + sys.argv[2])
torch.manual_seed(0)
make = lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
plain, inner = make(), make()
inner.load_state_dict(plain.state_dict())
if sys.argv[3] == "inside":
    model = DistributedDataParallel(dynamo.optimize(sys.argv[4], nopython=True)(inner))
else:
    model = dynamo.optimize(sys.argv[4])(DistributedDataParallel(inner))
reference = DistributedDataParallel(plain)
optimizers = [torch.optim.SGD(each.parameters(), 0.1) for each in (inner, plain)]
torch.manual_seed(int(sys.argv[1]))
for _ in range(4):
    x = torch.randn(5, 4)
    losses = [each(x).square().sum() for each in (model, reference)]
    assert torch.equal(*losses), losses
    for loss, optimizer in zip(losses, optimizers):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for ours, theirs in zip(inner.parameters(), plain.parameters()):
        assert torch.equal(ours, theirs) and torch.equal(ours.grad, theirs.grad)
dist.destroy_process_group()
print("alike")
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
@pytest.mark.parametrize(("place", "backend"), [("inside", "aot_eager"), ("outside", "eager")])
def test_two_processes_train_as_eager_ones_do(place: str, backend: str, tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(tmp_path / "store"), place, backend],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for worker in workers:
        out, err = worker.communicate(timeout=120)
        assert worker.returncode == 0, err
        assert out == "alike\n"
