"""Parts made by split_module run as pipeline stages in two processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed
import torch.multiprocessing
from torch import nn

STAGES = 2


def run_stage(rank: int, rendezvous: str, results: str) -> None:
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    from fx.trace import symbolic_trace
    from fx.trace.passes import split_module

    torch.distributed.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=STAGES)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4), nn.Tanh())
    traced = symbolic_trace(model)
    positions = {node: index for index, node in enumerate(traced.graph.nodes)}
    split = split_module(traced, model, lambda node: int(positions[node] > 2))
    stage = PipelineStage(split.get_submodule(f"submod_{rank}"), rank, STAGES, torch.device("cpu"))
    schedule: Any = ScheduleGPipe(stage, 4)
    x = torch.randn(8, 4)
    if rank == 0:
        schedule.step(x)
    else:
        torch.save((schedule.step().detach(), model(x).detach()), results)
    torch.distributed.destroy_process_group()


def test_split_modules_run_as_pipeline_stages(tmp_path: Path) -> None:
    results = tmp_path / "results.pt"
    torch.multiprocessing.spawn(  # type: ignore[attr-defined, no-untyped-call]  # torch.multiprocessing is untyped here
        run_stage, args=(f"file://{tmp_path / 'rendezvous'}", str(results)), nprocs=STAGES
    )
    got, expected = torch.load(results)
    torch.testing.assert_close(got, expected)
