"""Errors, debugger and inspection: generated code is code like any other."""

from __future__ import annotations

import gc
import inspect
import io
import linecache
import operator
import pdb
import pickle
import traceback

import pytest
import torch
from torch import nn

from fx.codegen import GraphModule
from fx.ir import Graph


def failing() -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    weight = graph.get_attr("weight")
    first = graph.call_function(torch.relu, (x,))
    product = graph.call_function(operator.matmul, (first, weight))
    product.stack_trace = '  File "model.py", line 14, in forward\n    return relu(x) @ self.weight\n'
    graph.output(product)
    return GraphModule({"weight": nn.Parameter(torch.ones(4, 5))}, graph, "Failing")


def text_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("make", [failing, lambda: pickle.loads(pickle.dumps(failing()))])
def test_an_error_shows_the_generated_line_the_node_the_shapes_and_the_user_s_line(make) -> None:  # type: ignore[no-untyped-def]  # a factory
    gm = make()
    with pytest.raises(RuntimeError) as caught:
        gm(torch.ones(2, 3))
    text = text_of(caught.value)
    assert "matmul = relu @ weight;  relu = weight = None\n" in text
    assert "While running node %matmul" in text and "target=operator.matmul" in text and "of Failing" in text
    assert "relu: Tensor float32 (2, 3)" in text and "weight: Parameter float32 (4, 5)" in text
    assert 'File "model.py", line 14, in forward' in text and "return relu(x) @ self.weight" in text


def test_an_error_in_a_nested_module_gets_a_note_of_each_level_once() -> None:
    inner = failing()
    graph = Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("value"),)))
    outer = GraphModule({"inner": inner}, graph, "Outer")
    with pytest.raises(RuntimeError) as caught:
        outer(torch.ones(2, 3))
    notes = caught.value.__notes__
    assert ["of Failing" in notes[0], "of Outer" in notes[1], len(notes)] == [True, True, 2]


def test_the_error_keeps_type_arguments_and_identity() -> None:
    error = KeyError("gone")

    def fail(x: object) -> None:
        raise error

    graph = Graph()
    graph.output(graph.call_function(fail, (graph.placeholder("x"),)))
    gm = GraphModule({}, graph)
    with pytest.raises(KeyError) as caught:
        gm(1)
    assert caught.value is error and caught.value.args == ("gone",)


def test_wrong_arguments_raise_as_for_any_function() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        failing()()


def test_a_line_that_a_transformer_added_breaks_no_note() -> None:
    gm = failing()
    gm.graph.on_generate_code(lambda _: lambda body: ["unrelated = 1\n", "\n", *body])
    gm.recompile()
    with pytest.raises(RuntimeError) as caught:
        gm(torch.ones(2, 3))
    assert "While running node %matmul" in text_of(caught.value)


def test_inspect_getsource_shows_the_code() -> None:
    gm = failing()
    assert inspect.getsource(gm.forward) == gm.code
    assert inspect.getsource(type(gm).forward) == gm.code


def test_pdb_steps_into_generated_code_and_lists_it() -> None:
    gm = failing()
    gm(torch.ones(2, 4))
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("next\nlist\np x.shape\ncontinue\n"), stdout=out, readrc=False)
    debugger.use_rawinput = False
    debugger.runcall(gm.forward, torch.ones(2, 4))
    text = out.getvalue()
    assert "-> relu = torch.relu(x);  x = None" in text and "matmul = relu @ weight" in text
    assert "torch.Size([2, 4])" in text


def test_lines_are_forgotten_when_the_code_is() -> None:
    graph = Graph()
    graph.output(graph.call_function(operator.add, (graph.placeholder("only_here"), 12345)))
    gm = GraphModule({}, graph)
    assert gm(1) == 12346
    filename = gm.forward.__code__.co_filename
    assert filename in linecache.cache
    del gm, graph
    for number in range(300):  # pushes the text out of the cache of compiled texts
        other = Graph()
        other.output(number)
        GraphModule({}, other)()
    gc.collect()
    assert filename not in linecache.cache
