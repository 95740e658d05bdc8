"""One whole check in C: ours beside torch's guard manager, in one process, interleaved.

    python benchmarks/guards_check.py [--impl ours|torch|both]

Figures are ns per check (minimum of many rounds), and the ratio ours / torch's.  Ours is repeated from C; torch's manager is
called from Python, which is about 100 ns of its figure.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from types import FunctionType

import torch

from dynamo.guards import (
    AmbientSource,
    CheckFunctionManager,
    GlobalSource,
    Guard,
    GuardBuilder,
    GuardScope,
    ItemSource,
    LocalSource,
    native_status,
)

B = GuardBuilder
ROUNDS, COUNT = 15, 300
SCALE = 3


def module_of(parameters: int, submodules: int) -> torch.nn.Module:
    """A module with so many parameters in all, spread over so many submodules (itself included)."""
    root = torch.nn.Module()
    modules = [root]
    for i in range(submodules - 1):
        child = torch.nn.Module()
        modules[i // 4].add_module(f"m{i}", child)
        modules.append(child)
    for i in range(parameters):
        modules[i % submodules].register_parameter(f"p{i}", torch.nn.Parameter(torch.ones(2, 2)))
    return root


def manager(values: dict[str, object], *guards: Guard) -> CheckFunctionManager:
    return CheckFunctionManager(
        guards, GuardScope(tuple(values), (), tuple(values.values()), None, globals(), {})
    )


def cases() -> dict[str, tuple[dict[str, object], list[Guard], float | None]]:
    """Name → values, guards, target in ns."""
    ambient = AmbientSource().make_guard(B.AMBIENT)
    scale = GlobalSource("SCALE").make_guard(B.EQUALS_MATCH)

    def tensors(count: int) -> tuple[dict[str, object], list[Guard]]:
        values: dict[str, object] = {f"t{i}": torch.ones(2, 3) for i in range(count)}
        return values, [LocalSource(name).make_guard(B.TENSOR_MATCH) for name in values]

    two, two_guards = tensors(2)
    many, many_guards = tensors(34)
    listed: dict[str, object] = {"x": [torch.ones(2, 3) for _ in range(64)]}
    list_guards = [ItemSource(LocalSource("x"), i).make_guard(B.TENSOR_MATCH) for i in range(64)]
    big: dict[str, object] = {"x": module_of(160, 97)}
    return {
        "2 tensors": (two, two_guards, None),
        "34 tensors": (many, many_guards, None),
        "ambient state": (two, [ambient], None),
        "2 tensors + global + ambient": (two, [*two_guards, scale, ambient], 150),
        "list of 64 tensors": (listed, list_guards, None),
        "module, 160 parameters, 97 modules": (big, [LocalSource("x").make_guard(B.NN_MODULE_TREE)], 2000),
    }


def ours(values: dict[str, object], guards: list[Guard]) -> Callable[[], float]:
    """A round of our check: ns per check."""
    made = manager(values, *guards)
    args = tuple(values.values())
    assert made.check(args)
    run = partial(made.program.repeat, COUNT, args, None, globals(), {})

    def once() -> float:
        start = time.perf_counter_ns()
        run()
        return (time.perf_counter_ns() - start) / COUNT

    return once


def torch_check(values: dict[str, object], name: str) -> Callable[[], float] | None:
    """A round of the check that torch.compile makes for a function reading these values: ns per check."""
    import torch._dynamo as dynamo

    names = ", ".join(values)
    reads = {
        "ambient state": "torch.ones(2)",
        "2 tensors + global + ambient": f"({' + '.join(values)}) * SCALE",
        "list of 64 tensors": "sum(x)",
        "module, 160 parameters, 97 modules": "x(torch.ones(2, 2))",
    }.get(name, " + ".join(values))
    space: dict[str, object] = {"torch": torch, "SCALE": SCALE}
    exec(f"def f({names}):\n    return {reads}", space)
    function = space["f"]
    assert isinstance(function, FunctionType)
    if name.startswith("module"):
        module = values["x"]
        assert isinstance(module, torch.nn.Module)

        class Reading(torch.nn.Module):
            def forward(self, y: torch.Tensor) -> torch.Tensor:
                for parameter in self.parameters():
                    y = y + parameter
                return y

        for each in module.modules():
            each.__class__ = Reading
    dynamo.reset()
    torch.compile(function, backend="eager")(*values.values())
    entries = dynamo.eval_frame._debug_get_cache_entry_list(function.__code__)
    frame_locals = dict(values)

    check = entries[0].guard_manager.check

    def once() -> float:
        start = time.perf_counter_ns()
        for _ in range(COUNT):
            check(frame_locals)
        return (time.perf_counter_ns() - start) / COUNT

    assert entries[0].guard_manager.check(frame_locals)
    return once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impl", choices=("ours", "torch", "both"), default="both")
    chosen = parser.parse_args().impl
    torch.set_num_threads(1)
    print(native_status())
    print(f"{'check':38}{'ours ns':>10}{'torch ns':>10}{'ratio':>8}{'target ns':>11}")
    for name, (values, guards, target) in cases().items():
        rounds: dict[str, Callable[[], float] | None] = {
            "torch": torch_check(values, name) if chosen != "ours" else None,
            "ours": ours(values, guards) if chosen != "torch" else None,
        }
        best = {key: float("inf") if run is not None else float("nan") for key, run in rounds.items()}
        for _ in range(ROUNDS):
            for key, run in rounds.items():
                if run is not None:
                    best[key] = min(run(), best[key])
        ratio = best["ours"] / best["torch"]
        print(f"{name:38}{best['ours']:10.1f}{best['torch']:10.1f}{ratio:8.3f}{target or '':>11}", flush=True)


if __name__ == "__main__":
    main()
