"""The text: what it looks like beside torch.fx's, what is released, and what never stands in it."""

import ast
import operator
import typing
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

from fx.codegen import CodegenError, GraphModule
from fx.ir import Graph


def build(graph: Any) -> None:
    """The same graph in either library."""
    x = graph.placeholder("x", torch.Tensor)
    data = graph.placeholder("input", default_value=3)
    weight = graph.get_attr("layers.0.weight")
    product = graph.call_function(operator.matmul, (x, weight))
    item = graph.call_function(operator.getitem, (product, (Ellipsis, slice(None, 2, None))))
    relu = graph.call_function(torch.nn.functional.relu, (item,), {"inplace": False})
    mean = graph.call_method("mean", (relu,), {"dim": -1, "keepdim": True}, torch.Tensor)
    shape = graph.call_function(getattr, (mean, "shape"))
    zeros = graph.call_function(
        torch.zeros, (shape,), {"dtype": torch.float64, "device": torch.device("cpu")}
    )
    power = graph.call_function(operator.pow, (zeros, data))
    low = graph.call_function(operator.lt, (power, float("inf")))
    op = graph.call_function(torch.ops.aten.add.Tensor, (power, low))
    called = graph.call_module("layers.0", (x,))
    graph.call_function(print, ("seen", called))
    graph.output({"a": op, "b": [called, None]})


def root() -> torch.nn.Module:
    module = torch.nn.Module()
    module.layers = torch.nn.Sequential(torch.nn.Linear(4, 4))
    return module


def test_the_text_is_torch_fx_s_but_for_the_release_of_renamed_parameters() -> None:
    ours, theirs = Graph(), torch.fx.Graph()
    build(ours)
    build(theirs)
    text = GraphModule(root(), ours).code.replace("input_1 = input;  input = None", "input_1 = input")
    assert text.strip() == torch.fx.GraphModule(root(), theirs).code.strip()


def run(make: Callable[[Graph], Any], *args: Any, attributes: dict[str, Any] | None = None) -> Any:
    graph = Graph()
    graph.output(make(graph))
    return GraphModule(attributes or {}, graph)(*args)


def test_in_place_operators_work_on_the_same_object_and_leave_the_name_alone() -> None:
    tensor = torch.ones(2)
    result = run(lambda g: g.call_function(operator.iadd, (g.placeholder("x"), 1)), tensor)
    assert result is tensor and torch.equal(tensor, torch.full((2,), 2.0))

    def immutable(g: Graph) -> Any:
        x = g.placeholder("x")
        return (g.call_function(operator.iadd, (x, 1)), x)

    assert run(immutable, 5) == (6, 5)


def test_item_assignment_gives_none_as_the_function_does() -> None:
    values = [1, 2]
    assert run(lambda g: g.call_function(operator.setitem, (g.placeholder("x"), 0, 9)), values) is None
    assert values == [9, 2]


def test_negative_literals_bind_as_values() -> None:
    assert run(lambda g: g.call_function(operator.pow, (-2, g.placeholder("x"))), 2) == 4
    assert run(lambda g: g.call_method("bit_length", (5,))) == 3


def test_integers_of_any_length_are_written() -> None:
    big = 10**5000
    assert run(lambda g: (big, -big)) == (big, -big)


def test_values_are_released_after_their_last_use_parameters_included() -> None:
    class Value:
        pass

    alive: list[bool] = []
    graph = Graph()
    given = graph.placeholder("input")
    made = graph.call_function(Value)
    watch = graph.call_function(lambda a, b: (weakref.ref(a), weakref.ref(b)), (given, made))
    graph.call_function(lambda refs: alive.extend(ref() is not None for ref in refs), (watch,))
    graph.output(None)
    gm = GraphModule({}, graph)
    box = [Value()]
    gm.forward(box.pop())
    assert alive == [False, False]


def test_odd_paths_are_fetched_by_getattr() -> None:
    paths = ["a.0", "class", "x y", "a.b-c", 'quo"te', "back\\slash", "ünï", "__debug__"]
    attributes = {path: torch.nn.Parameter(torch.full((1,), float(i))) for i, path in enumerate(paths)}
    values = run(lambda g: tuple([g.get_attr(path) for path in paths]), attributes=attributes)
    assert all(value is attributes[path] for value, path in zip(values, paths, strict=True))


def test_annotations_survive_those_that_need_imports_too() -> None:
    types = [
        torch.Tensor, list[torch.Tensor], typing.Optional[torch.Tensor], int | None, typing.List[int],  # noqa: UP006, UP045
        dict[str, tuple[int, ...]], Callable[[int], str], typing.Any, typing.TypeVar("T"), "Forward", None.__class__,
        typing.Literal["a; b"], typing.Callable[..., int],
    ]  # fmt: skip
    graph = Graph()
    nodes = [graph.placeholder(f"p{i}", type_expr) for i, type_expr in enumerate(types)]
    graph.output(nodes[0], tuple[int, torch.Tensor])
    forward: Any = GraphModule({}, graph).forward
    found = forward.__annotations__
    assert found.pop("return") == tuple[int, torch.Tensor]
    wanted = [None if type_expr is type(None) else type_expr for type_expr in types]
    assert list(found.values()) == wanted


def test_names_from_outside_are_never_pasted() -> None:
    evil = "x); __import__('os').abort(); ("

    def function(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return args, kwargs

    function.__name__ = function.__qualname__ = evil
    function.__module__ = f"torch.{evil}"
    type_expr = type(evil, (), {"__module__": evil})
    graph = Graph()
    x = graph.placeholder("x", type_expr)
    x.stack_trace = f'File "a\nimport os", line 1, in f\n  {evil}\r\nimport os'
    called = graph.call_function(function, (x, evil), {evil: 1})
    called.stack_trace = f'File "a.py", line 1, in f\n  {evil}\r\x0cimport os'
    graph.output(graph.call_function(getattr, (called, evil, None)))
    for verbose in (False, True):
        code = graph.python_code("self", verbose=verbose)
        tree = ast.parse(code.src)
        assert len(tree.body) == 1 and not any(isinstance(node, ast.Import) for node in ast.walk(tree))
        calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert all("import" not in call or call in code.globals for call in calls)


def test_a_method_of_nothing_is_refused() -> None:
    graph = Graph()
    with pytest.raises(CodegenError, match="method 'sum' of nothing"):
        graph.output(graph.call_method("sum", ()))
        graph.python_code("self")


def test_a_graph_without_nodes_returns_none() -> None:
    assert GraphModule({}, Graph())() is None


def test_verbose_names_the_line_of_the_user_once_per_group() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    for _ in range(2):
        x = graph.call_function(torch.relu, (x,))
        x.stack_trace = '  File "model.py", line 14, in forward\n    return relu(relu(x))\n'
    x.meta["val"] = torch.ones(2, 3)
    graph.output(x)
    text = graph.python_code("self", verbose=True).src
    assert text.count("# File: model.py:14 in forward, code: return relu(relu(x))") == 1
    assert 'relu_1: "f32[2, 3]" = torch.relu(relu)' in text


@pytest.mark.parametrize("depth", [1, 28, 29, 30, 31, 39, 40, 41, 60, 74])
def test_arguments_nest_as_deep_as_a_graph_allows(depth: int) -> None:
    def nested_of(value: Any) -> Any:
        for level in range(depth):
            value = (
                [value] if level % 3 == 0 else (value, level) if level % 3 == 1 else {"k": slice(value, None)}
            )
        return value

    def nested(x: Any) -> Any:
        return x

    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(nested, (nested_of(x),))
    graph.call_function(nested, (nested_of("quiet"),))
    graph.output((y, nested_of(x)))
    graph.lint()
    gm = GraphModule({}, graph)
    result = gm(7)
    value: Any = result[1]
    again: Any = result[0]
    for level in reversed(range(depth)):
        value = value[0] if level % 3 < 2 else value["k"].start
        again = again[0] if level % 3 < 2 else again["k"].start
    assert value == again == 7
