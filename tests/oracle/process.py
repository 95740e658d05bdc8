"""A fresh interpreter, for what can be seen only at its start, at its end or in its death."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def run_python(source: str, prelude: str = "") -> str:
    """What a fresh interpreter prints for `prelude` and the dedented `source`.

    It must end well, with nothing on standard error. `prelude` is not dedented.
    """
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", prelude + textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
