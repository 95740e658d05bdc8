"""Run CPython's own tests on bytecode that was taken apart and written again.

    python tools/run_cpython_tests.py [--stir] [--stdlib] [test_exceptions test_generators ...]

Every code object of the named test modules (with --stdlib: of all modules imported after the start) is decoded and
assembled before it runs. Plain, the bytes come back the same. With --stir the same program is written differently:
superinstructions stay split and a NOP stands before almost every instruction, so that all jumps, exception entries and
lines are laid out anew; tests that compare disassembly (test_dis), or that move `f_lineno` (the JumpTestCase of
test_sys_settrace), then fail rightly.

Needs no torch: works with any CPython 3.11-3.13 that ships `test`. The exit status is that of the tests.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import time
import types
import unittest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamo.eval.bytecode import Instruction

PACKAGE = Path(__file__).parents[1] / "packages/dynamo-eval/src/dynamo/eval/bytecode"
TESTS = ("test_exceptions", "test_generators", "test_grammar", "test_contextlib", "test_dis")


def load_bytecode() -> types.ModuleType:
    """The bytecode package by itself, without `dynamo.eval`, which needs torch."""
    name = "dynamo_bytecode"
    spec = importlib.util.spec_from_file_location(
        name, PACKAGE / "__init__.py", submodule_search_locations=[str(PACKAGE)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Rewriter:
    """Rewrites a code object and those within it; counts them."""

    def __init__(self, bytecode: types.ModuleType, *, stir: bool) -> None:
        self.bytecode = bytecode
        self.stir = stir
        self.count = 0

    def rewrite(self, code: types.CodeType) -> types.CodeType:
        self.count += 1
        instructions = self.bytecode.decode(code)
        consts = [self.rewrite(item) if isinstance(item, types.CodeType) else item for item in code.co_consts]
        for inst in instructions:
            if inst.opname == "LOAD_CONST" and isinstance(inst.argval, types.CodeType):
                inst.argval = consts[inst.arg]
        if self.stir:
            instructions = self._stirred(instructions)
        result: object = self.bytecode.assemble(code, instructions, consts=consts)
        assert isinstance(result, types.CodeType)
        return result

    def _stirred(self, instructions: list[Instruction]) -> list[Instruction]:
        result: list[Instruction] = []
        for inst in instructions:
            inst.fuse = False
            # A generator looks for RESUME right after where it stopped (CPython, Objects/genobject.c).
            if inst.opname not in ("RESUME", "MAKE_CELL", "COPY_FREE_VARS", "RETURN_GENERATOR"):
                result.append(self.bytecode.Instruction("NOP").copy_place(inst))
            result.append(inst)
        return result


class RewritingLoader(importlib.machinery.SourceFileLoader):
    """Compiles from source, so that no cached bytecode is read or written."""

    rewriter: Rewriter

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        return self.rewriter.rewrite(compile(self.get_data(path), path, "exec", dont_inherit=True))


class RewritingFinder(importlib.abc.MetaPathFinder):
    """Puts `RewritingLoader` in place of the loader of the chosen modules."""

    def __init__(self, names: frozenset[str] | None) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if self.names is not None and fullname not in self.names:
            return None
        places = [str(place) for place in path] if isinstance(path, (list, tuple)) else None
        spec = importlib.machinery.PathFinder.find_spec(fullname, places)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader and spec.origin:
            spec.loader = RewritingLoader(fullname, spec.origin)
        return spec


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("tests", nargs="*", help="default: " + " ".join(TESTS) + "; with --stir not test_dis")
    parser.add_argument("--stir", action="store_true", help="write the same program differently")
    parser.add_argument("--stdlib", action="store_true", help="also rewrite what the tests import")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    rewriter = Rewriter(load_bytecode(), stir=options.stir)
    RewritingLoader.rewriter = rewriter
    chosen = options.tests or [name for name in TESTS if not (options.stir and name == "test_dis")]
    names = [f"test.{name}" for name in chosen]
    sys.meta_path.insert(0, RewritingFinder(None if options.stdlib else frozenset(names)))
    return int(any([run(name, rewriter, verbose=options.verbose) for name in names]))


def run(name: str, rewriter: Rewriter, *, verbose: bool) -> bool:
    """Run one test module and print a line about it; says whether something failed."""
    before, start = rewriter.count, time.perf_counter()
    suite = unittest.defaultTestLoader.loadTestsFromName(name)
    with open(os.devnull, "w") as nowhere:
        result = unittest.TextTestRunner(sys.stderr if verbose else nowhere, verbosity=1 + verbose).run(suite)
    bad = [*result.failures, *result.errors]
    seconds = time.perf_counter() - start
    print(
        f"{name}: {result.testsRun} tests, {len(bad)} failed, {len(result.skipped)} skipped,"
        f" {rewriter.count - before} code objects rewritten, {seconds:.1f} s"
    )
    for test, trace in bad:
        print(f"  {test}\n    {trace.strip().splitlines()[-1]}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
