"""Random programs (``tests/fuzz``) look captured as they look plainly; each runs in a process of its own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_two_hundred_random_programs_run_as_python_runs_them() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--programs", "200", "--seed", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "200 programs, 0 differed" in done.stdout, done.stdout + done.stderr
