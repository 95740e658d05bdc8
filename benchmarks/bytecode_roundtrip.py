"""How long do decoding and assembling take for one instruction?

    python benchmarks/bytecode_roundtrip.py [--peer] [--rounds N]

Works without torch. Code: every function of six large modules of the standard library. `--peer` runs the `bytecode`
package in the same process, interleaved, where it is installed; torch's own `transform_code_object` is run where torch is.
Times are processor time, minimum of many rounds, in microseconds per instruction of ours.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import inspect
import os
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "packages/dynamo-eval/src/dynamo/eval/bytecode"
GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
MODULES = ("argparse", "ast", "dataclasses", "inspect", "subprocess", "typing")


def load(name: str, path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(
        name, path / "__init__.py", submodule_search_locations=[str(path)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


def code_objects() -> list[types.CodeType]:
    result: list[types.CodeType] = []
    for name in MODULES:
        path = Path(os.__file__).parent / f"{name}.py"
        result += nested(compile(path.read_bytes(), str(path), "exec", dont_inherit=True))
    return result


def tasks(codes: list[types.CodeType], *, peer: bool) -> dict[str, Callable[[], object]]:
    bytecode = load("dynamo_bytecode", PACKAGE)
    decoded = [(code, bytecode.decode(code)) for code in codes]
    result: dict[str, Callable[[], object]] = {
        "decode": lambda: [bytecode.decode(code) for code in codes],
        "assemble": lambda: [bytecode.assemble(code, instructions) for code, instructions in decoded],
        "stack depth": lambda: [bytecode.stack_depths(instructions) for _, instructions in decoded],
        "liveness": lambda: [bytecode.live_before(instructions) for _, instructions in decoded],
    }
    if peer and importlib.util.find_spec("bytecode") is not None:
        other = importlib.import_module("bytecode")
        parsed = [other.Bytecode.from_code(code) for code in codes]
        result["bytecode package: read"] = lambda: [other.Bytecode.from_code(code) for code in codes]
        result["bytecode package: write"] = lambda: [one.to_code() for one in parsed]
    if peer and importlib.util.find_spec("torch") is not None:
        dynamo = importlib.import_module("torch._dynamo.bytecode_transformation")
        # torch takes functions only, and its stack analysis rejects generators.
        functions = [
            code for code in codes if code.co_flags & inspect.CO_OPTIMIZED and not code.co_flags & GENERATORS
        ]
        result["torch: read"] = lambda: [dynamo.cleaned_instructions(code) for code in functions]
        result["torch: transform"] = lambda: [
            dynamo.transform_code_object(code, lambda instructions, options: None) for code in functions
        ]
        result["ours: transform"] = lambda: [
            bytecode.transform_code_object(code, lambda instructions, options: None) for code in functions
        ]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    codes = code_objects()
    work = tasks(codes, peer=options.peer)
    count = sum(len(sys.modules["dynamo_bytecode"].decode(code)) for code in codes)
    best = dict.fromkeys(work, float("inf"))
    for _ in range(options.rounds):
        for name, task in work.items():
            gc.collect()
            gc.disable()  # else the size of the peers' heaps decides
            start = time.process_time()
            task()
            best[name] = min(best[name], time.process_time() - start)
            gc.enable()
    print(
        f"Python {sys.version.split()[0]}, {len(codes)} code objects, {count} instructions, µs per instruction"
    )
    for name, seconds in best.items():
        print(f"{name:26} {seconds / count * 1e6:8.2f}")
    if "torch: transform" in best:
        print(f"{'transform, ours / torch':26} {best['ours: transform'] / best['torch: transform']:8.2f}")
    if "bytecode package: write" in best:
        ours = best["decode"] + best["assemble"]
        theirs = best["bytecode package: read"] + best["bytecode package: write"]
        print(f"{'both ways, ours / package':26} {ours / theirs:8.2f}")


if __name__ == "__main__":
    main()
