"""Every example runs from start to end, as a reader would run it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = [*sorted((ROOT / "examples").glob("*.py")), ROOT / "docs" / "autodidax.py"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_demo_reports_graphs_guards_and_counts() -> None:
    (toy,) = [path for path in EXAMPLES if path.stem == "toy"]
    done = subprocess.run([sys.executable, str(toy)], capture_output=True, text=True, timeout=300)
    assert done.stdout.count("my_compiler() called") in (2, 3)
    assert "call_function  add" in done.stdout
    assert "a: Tensor of torch.float32, shape (10), on cpu" in done.stdout
    assert done.stdout.rstrip().endswith("recompiles: 0")
