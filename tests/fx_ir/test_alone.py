"""fx.ir works in a process in which torch, numpy and every other package of this repository are out of reach."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fx.ir

PROGRAM = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "numpy", "dynamo") or name in ("fx.codegen", "fx.trace"):
            raise ImportError(f"{name} is not available here")

sys.meta_path.insert(0, Refuse())
sys.path.insert(0, SOURCE)
import operator
before = set(sys.modules)
from fx.ir import Graph, dumps, loads
heavy = {"msgspec", "tabulate", "networkx", "subprocess", "argparse", "json"} & (set(sys.modules) - before)
assert not heavy, heavy
try:
    import torch
except ImportError:
    pass
else:
    raise AssertionError("torch is here")

graph = Graph()
x = graph.placeholder("x")
y = graph.call_function(operator.add, (x, 1))
dead = graph.call_method("relu", (y,))
graph.output(y)
with graph.inserting_after(y):
    z = graph.call_function(operator.mul, (y, 2))
y.replace_all_uses_with(z, lambda user: user is not z)
graph.eliminate_dead_code()
graph.lint()
print(graph)
from fx.ir.analysis import diff, stats
from fx.ir.match import parse_pattern, select
if WITH_FILES:
    assert not diff(graph, loads(dumps(graph)))
assert stats(graph).depth == 4
assert select(graph, parse_pattern("mul(_, 2)")) == [z]
from fx.ir import MissingNormalizerError
import importlib.metadata
importlib.metadata.entry_points = lambda **wanted: ()
try:
    z.normalized_arguments(None)
except MissingNormalizerError as error:
    assert "pip install fx-trace" in str(error)
else:
    raise AssertionError("who normalises?")
assert not any(name.split(".")[0] in ("torch", "numpy", "dynamo") for name in sys.modules)
"""

EXPECTED = """graph():
    %x : [num_users=1] = placeholder[target=x]
    %add : [num_users=1] = call_function[target=operator.add](args = (%x, 1), kwargs = {})
    %mul : [num_users=1] = call_function[target=operator.mul](args = (%add, 2), kwargs = {})
    return mul
"""


def run(with_files: bool, *flags: str) -> subprocess.CompletedProcess[str]:
    source = Path(fx.ir.__file__).parents[2]
    program = PROGRAM.replace("SOURCE", repr(str(source))).replace("WITH_FILES", str(with_files))
    return subprocess.run(
        [sys.executable, *flags, "-c", program], capture_output=True, text=True, check=False
    )


def test_a_graph_is_built_edited_printed_linted_and_saved_without_torch() -> None:
    done = run(True)
    assert (done.returncode, done.stdout, done.stderr) == (0, EXPECTED, "")


def test_everything_but_files_and_tables_needs_the_standard_library_only() -> None:
    done = run(False, "-S", "-E")
    assert (done.returncode, done.stdout, done.stderr) == (0, EXPECTED, "")
