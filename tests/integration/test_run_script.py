"""`hatch run capture SCRIPT.py`: a user's own script, run with capture on."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.layer(x)) + 1


def train(steps):
    torch.manual_seed(0)
    net = Net()
    total = 0.0
    for _ in range(steps):
        y = net(torch.ones(2, 4))
        total += float(y.sum())
    return total


if __name__ == "__main__":
    print("argv", sys.argv[1:], "name", __name__)
    print("total", train(int(sys.argv[1])))
"""


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def test_a_script_prints_what_it_prints_without_us_and_then_a_report(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    plain = run([sys.executable, "script.py", "5"], tmp_path)
    ours = run([sys.executable, "-m", "dynamo.eval.run", "script.py", "5"], tmp_path)
    assert plain.returncode == 0, plain.stderr
    assert ours.returncode == 0, ours.stderr
    for line in plain.stdout.splitlines():
        assert line in ours.stdout.splitlines()
    report = ours.stdout.lower()
    for word in ("opcode", "guards", "calls", "cache hits", "graphs", "recompiles"):
        assert word in report
    assert "of torch.float32, shape (4×4), on cpu" in report, "guards are said in words"


def test_the_exit_status_and_traceback_of_a_failing_script_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys\nprint('before')\nsys.exit(3)\n")
    done = run([sys.executable, "-m", "dynamo.eval.run", "script.py"], tmp_path)
    assert done.returncode == 3
    assert "before" in done.stdout
    (tmp_path / "raising.py").write_text("def f():\n    raise ValueError('mine')\nf()\n")
    done = run([sys.executable, "-m", "dynamo.eval.run", "raising.py"], tmp_path)
    assert done.returncode == 1
    assert "ValueError: mine" in done.stderr
    assert "raising.py" in done.stderr
