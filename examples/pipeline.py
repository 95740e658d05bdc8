"""Cut a traced model into stages and run them as a pipeline, each stage in a process of its own.

The stages are what `split_module` makes of the graph; they keep the parameters under their old names. The processes talk over
gloo, on this machine alone, through `torch.distributed.pipelining`, which sends four micro-batches forward and their gradients
back.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from fx.codegen import GraphModule
from fx.trace import symbolic_trace
from fx.trace.passes import split_module

STAGES = 2
MICRO_BATCHES = 4


def model_and_data() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """The same model, input and target in each process."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))
    return model, torch.randn(8, 4), torch.randn(8, 2)


def cut(model: nn.Module) -> GraphModule:
    """The model as `submod_0` and `submod_1`: the first and the second half of its operations."""
    traced = symbolic_trace(model)
    calls = [node for node in traced.graph.nodes if node.op == "call_module"]
    first = set(calls[: len(calls) // STAGES])
    return split_module(traced, model, lambda node: 0 if node in first else 1)


def run_stage(rank: int, rendezvous: str) -> None:
    """Take part in one training step as the stage `rank`, and compare with the whole model."""
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=STAGES)
    model, x, target = model_and_data()
    part = cut(model).get_submodule(f"submod_{rank}")
    expected = model(x)
    torch.autograd.backward([nn.functional.mse_loss(expected, target)])
    wanted = {name: value.grad for name, value in part.named_parameters()}
    model.zero_grad()  # the parts hold the model's own parameters

    stage = PipelineStage(part, rank, STAGES, torch.device("cpu"))
    schedule: Any = ScheduleGPipe(stage, MICRO_BATCHES, loss_fn=nn.functional.mse_loss)
    if rank == 0:
        schedule.step(x)
    else:
        result = schedule.step(target=target)
        torch.testing.assert_close(result, expected)
    for name, value in part.named_parameters():
        torch.testing.assert_close(value.grad, wanted[name])
    dist.barrier()
    print(
        f"stage {rank}: {type(part).__name__}, gradients of {', '.join(wanted)} as without a pipeline",
        flush=True,
    )
    dist.destroy_process_group()


def main() -> None:
    """Start a process for each stage."""
    print(cut(model_and_data()[0]).code)
    with tempfile.TemporaryDirectory() as folder:
        rendezvous = (Path(folder) / "rendezvous").as_uri()
        processes.spawn(run_stage, args=(rendezvous,), nprocs=STAGES)  # type: ignore[attr-defined, no-untyped-call]  # untyped in torch


if __name__ == "__main__":
    main()
