"""Changing how code is generated: transformers, overridden methods, nested containers, boxed arguments."""

from __future__ import annotations

import copy
import gc
import operator
import os
import pickle
import subprocess
import sys
import typing
import weakref
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from fx.codegen import BoxedCodeGen, CodeGen, GraphModule, PyTreeCodeGen, PyTreeInfo, SignatureError
from fx.ir import Graph


def adding() -> Graph:
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.output(graph.call_function(operator.add, (x, y)))
    return graph


class ListCodeGen(CodeGen):
    """The manual's example: one list instead of parameters."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        return f"""
def forward(self, args_list: List[torch.Tensor]){maybe_return_annotation}:
    {", ".join(free_vars)} = args_list"""

    def additional_globals(self) -> list[tuple[str, Any]]:
        return [("List", typing.List)]  # noqa: UP006 - what the manual has

    def process_inputs(self, *inputs: Any) -> Any:
        assert len(inputs) == 1
        return inputs[0]


class Doubling(CodeGen):
    def generate_output(self, output_args: Any) -> str:  # type: ignore[override]  # torch.fx's older signature
        return f"return torch.mul({output_args!r}, 2)"


def test_a_graph_without_a_generator_gets_the_default_one() -> None:
    assert type(adding().codegen) is CodeGen
    assert (
        adding().python_code("self").src
        == "def forward(self, x, y):\n    add = x + y;  x = y = None\n    return add\n"
    )


def test_a_list_of_arguments_as_in_the_manual() -> None:
    graph = adding()
    graph.set_codegen(ListCodeGen())
    gm = GraphModule({}, graph)
    assert gm([1, 2]) == 3
    assert list(graph.process_inputs([1, 2])) == [1, 2]
    assert pickle.loads(pickle.dumps(gm))([1, 2]) == 3
    assert copy.deepcopy(gm)([1, 2]) == 3


def test_an_overridden_output_finds_torch() -> None:
    graph = adding()
    graph.set_codegen(Doubling())
    assert torch.equal(GraphModule({}, graph)(torch.ones(1), torch.ones(1)), torch.full((1,), 4.0))


def test_transformers_of_the_body_chain_and_are_restored() -> None:
    gm = GraphModule({}, adding())
    plain = gm.code

    def seen(body: list[str]) -> list[str]:
        return ["seen = [x]\n", *body]

    with gm.graph.on_generate_code(lambda current: seen):
        gm.recompile()
        assert gm.code.split("\n")[1] == "    seen = [x]"
        gm.graph.on_generate_code(
            lambda current: lambda body: ["import math\n", *(current(body) if current else body)]
        )
        gm.recompile()
        assert gm.code.split("\n")[1:3] == ["    import math", "    seen = [x]"]
        assert gm(1, 2) == 3
    gm.recompile()
    assert gm.code == plain


def test_nested_containers_go_in_and_out() -> None:
    graph = Graph()
    a, b, c = (graph.placeholder(name) for name in ("x_1", "y_1", "y_2"))
    graph.output([graph.call_function(operator.add, (a, b)), c])
    tree = (1, {"p": 2, "q": 3})
    _, in_spec = pytree.tree_flatten((tree, {}))
    _, out_spec = pytree.tree_flatten({"sum": 0, "rest": (0,)})
    graph.set_codegen(PyTreeCodeGen(PyTreeInfo(["x", "y"], in_spec, out_spec)))
    gm = GraphModule({}, graph)
    expected = {"sum": 3, "rest": (3,)}
    for made in (gm, copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
        assert made(1, {"p": 2, "q": 3}) == expected
        assert made(1, y={"q": 3, "p": 2}) == expected
    flat = graph.process_inputs(1, {"p": 2, "q": 3})
    assert list(flat) == [1, 2, 3] and graph.process_outputs([3, 3]) == expected


def test_names_in_pytree_information_are_checked() -> None:
    graph = Graph()
    graph.output(graph.placeholder("x"))
    _, spec = pytree.tree_flatten([1])
    graph.set_codegen(PyTreeCodeGen(PyTreeInfo(["x); import os; ("], spec, None)))
    with pytest.raises(SignatureError, match="orig_args"):
        GraphModule({}, graph)


def test_boxed_arguments_are_taken_out_of_the_list_and_freed() -> None:
    class Value:
        pass

    alive: list[bool] = []
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("args_list")
    watch = graph.call_function(lambda value: weakref.ref(value), (x,))
    graph.call_function(lambda ref: alive.append(ref() is not None), (watch,))
    graph.output(y)
    graph.set_codegen(BoxedCodeGen())
    gm = GraphModule({}, graph)
    box = [Value(), 2]
    gc.collect()
    assert gm(box) == 2 and box == [] and alive == [False]
    assert gm._boxed_call
    assert not GraphModule({}, adding())._boxed_call


def test_the_same_graph_gives_the_same_text_in_every_process() -> None:
    script = (
        "import torch, operator, fx.codegen; from fx.ir import Graph; g = Graph(); x = g.placeholder('x');"
        "v = g.call_function(torch.relu, (x,), {'b': 1, 'a': frozenset('abc'), 'from': {'k': x}});"
        "g.output((v, torch.float32, float('nan'), range(3)), torch.Tensor); print(g.python_code('self').src)"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=120,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(texts) == 1
