"""The tool that compares Python versions says what differs and nothing else."""

import importlib.util
import subprocess
import sys
from pathlib import Path

from dynamo.eval.bytecode.versions.select import FACTS

TOOL = Path(__file__).parents[2] / "tools/opcode_diff.py"


def test_a_python_does_not_differ_from_itself() -> None:
    command = [sys.executable, str(TOOL), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    version = ".".join(map(str, sys.version_info[:3]))
    assert done.stdout.startswith(f"{version} → {version}: ")
    assert len(done.stdout.splitlines()) == 1


def test_differences_are_named() -> None:
    spec = importlib.util.spec_from_file_location("opcode_diff", TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    this = tool.probe(sys.executable)
    assert set(this["instructions"]) == set(FACTS.opmap) | (set(this["instructions"]) & {"ENTER_EXECUTOR"})
    changed = {name: dict(facts) for name, facts in this["instructions"].items()}
    changed["NOP"]["caches"] = 3
    changed["LOAD_HAT"] = dict(changed["LOAD_CONST"])
    del changed["SWAP"]
    lines = tool.report(this, {"version": "4.0.0", "instructions": changed}, tool.mentioned_names())
    assert len(lines) == 4
    assert "LOAD_HAT" in lines[1] and "NEW" in lines[1]
    assert lines[2].split() == ["-", "SWAP"]
    assert "NOP" in lines[3] and "caches 0 → 3" in lines[3]


def test_every_instruction_of_this_python_is_known() -> None:
    """A new Python's instructions must each be met somewhere in the package before its facts are complete."""
    spec = importlib.util.spec_from_file_location("opcode_diff", TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert set(FACTS.opmap) <= tool.mentioned_names()
