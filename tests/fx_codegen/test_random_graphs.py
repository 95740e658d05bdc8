"""Generated code computes what the nodes say: random graphs, run as code and evaluated node by node."""

from __future__ import annotations

import ast
import builtins
import enum
import math
import operator
import os
import struct
from collections import namedtuple
from typing import Any

import hypothesis.strategies as st
import torch
from hypothesis import HealthCheck, Phase, given, settings

from fx.codegen import GraphModule
from fx.ir import Graph, Node, map_aggregate, map_arg

Pair = namedtuple("Pair", ["left", "right"])


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


class Opaque:
    """Equal to itself only, and without a repr that could be read back."""

    def __repr__(self) -> str:
        return "); import os; ("


def same(left: Any, right: Any) -> bool:
    """Equal to the last bit, types and signs of zeros and nans included."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack("<d", left) == struct.pack("<d", right)
    if isinstance(left, complex):
        return same(left.real, right.real) and same(left.imag, right.imag)
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, slice):
        return same((left.start, left.stop, left.step), (right.start, right.stop, right.step))
    return left is right or bool(left == right)


def thaw(value: Any) -> Any:
    """Lists and dicts of arguments as the plain ones that a call gets."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[thaw(item) for item in value])
    if type(value) is tuple:
        return tuple([thaw(item) for item in value])
    if isinstance(value, slice):
        return slice(thaw(value.start), thaw(value.stop), thaw(value.step))
    return value


def evaluate(module: GraphModule, values: list[Any]) -> Any:
    """The meaning of the nodes, one by one, without any generated code."""
    made: dict[Node, Any] = {}
    given_values = iter(values)

    def fetch(path: str) -> Any:
        found: Any = module
        for step in path.split("."):
            found = getattr(found, step)
        return found

    for node in module.graph.nodes:
        args, kwargs = (
            thaw(map_arg(node.args, made.__getitem__)),
            thaw(map_arg(node.kwargs, made.__getitem__)),
        )
        if node.op == "placeholder":
            made[node] = next(given_values)
        elif node.op == "get_attr":
            made[node] = fetch(str(node.target))
        elif node.op == "call_function":
            target: Any = node.target
            made[node] = target(*args, **kwargs)
        elif node.op == "call_method":
            made[node] = getattr(args[0], str(node.target))(*args[1:], **kwargs)
        elif node.op == "call_module":
            made[node] = fetch(str(node.target))(*args, **kwargs)
        else:
            return args[0]
    return None


def pack(*args: Any, **kwargs: Any) -> Any:
    """Takes whatever there is, and gives it back."""
    return (args, list(kwargs.items()))


def size(*args: Any, **kwargs: Any) -> int:
    return len(args) * 10 + len(kwargs)


class Packer(torch.nn.Module):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return ("module", args, list(kwargs.items()))


NAMES = (
    "x y self torch inf nan len slice input complex device getattr type Ellipsis range float __debug__ forward pack "
    "args_list NoneType print tuple"
).split()
KEYWORDS = "a from class None x-y ünï torch def ﬁ".split()
PATHS = ["weight", "layers.0", "odd.class.x y", "self", "torch", "a.from"]

nan_with_bits = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000123))[0]
floats = st.one_of(
    st.floats(), st.sampled_from([-0.0, math.inf, -math.inf, math.nan, -math.nan, nan_with_bits, 1e-323])
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    floats,
    st.builds(complex, floats, floats),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.sampled_from(
        [Ellipsis, torch.float32, torch.channels_last, torch.strided, torch.device("cpu"), Colour.BLUE]
    ),
    st.sampled_from(
        [torch.device("cuda", 1), torch.Size([2, 3]), Opaque(), int, torch.relu, len, operator.add, Pair]
    ),
    st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 3)),
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(Pair, inner, inner),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3),
        st.builds(slice, inner, inner, inner),
    )


class Ref:
    """Stands for a node while arguments are drawn."""

    def __init__(self, number: int) -> None:
        self.number = number


literals = st.recursive(scalars, containers, max_leaves=4)
drawn_arguments = st.recursive(
    st.one_of(scalars, st.builds(Ref, st.integers(0, 9))), containers, max_leaves=4
)
argument_lists = st.lists(drawn_arguments, max_size=3).map(tuple)
keyword_arguments = st.dictionaries(st.sampled_from(KEYWORDS), drawn_arguments, max_size=2)


def fill(value: Any, nodes: list[Node]) -> Any:
    """``value`` with the nodes that its references mean."""
    if isinstance(value, Ref):
        return nodes[value.number % len(nodes)] if nodes else None
    return map_aggregate(value, lambda leaf: fill(leaf, nodes) if isinstance(leaf, Ref) else leaf)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[GraphModule, list[Any]]:
    graph = Graph()
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    nodes = [graph.placeholder(name) for name in names]
    attributes: dict[str, Any] = {}
    for _ in range(draw(st.integers(0, 6))):
        args, kwargs = fill(draw(argument_lists), nodes), fill(draw(keyword_arguments), nodes)
        kind = draw(st.sampled_from(["function", "operator", "item", "method", "attr", "module"]))
        wish = draw(st.one_of(st.none(), st.sampled_from([name for name in NAMES if name not in names])))
        if kind == "function":
            made = graph.create_node("call_function", draw(st.sampled_from([pack, size])), args, kwargs, wish)
        elif kind == "operator":
            number = graph.create_node("call_function", size, args, kwargs, wish)
            function: Any = draw(
                st.sampled_from([operator.add, operator.pow, operator.iadd, operator.neg, operator.eq])
            )
            left = draw(st.sampled_from([number, 3, -2]))
            made = graph.call_function(function, (left,) if function is operator.neg else (left, 2))
        elif kind == "item":
            made = graph.call_function(operator.getitem, (graph.call_function(pack, args, kwargs), 0))
        elif kind == "method":
            made = graph.call_method("count", (graph.call_function(pack, args), draw(literals)))
        elif kind == "attr":
            path = draw(st.sampled_from(PATHS))
            attributes.setdefault(path, torch.nn.Parameter(torch.ones(1)))
            made = graph.create_node("get_attr", path, (), {}, wish)
        else:
            attributes["odd.packer"] = Packer()
            made = graph.create_node("call_module", "odd.packer", args, kwargs, wish)
        nodes.append(made)
    graph.output(fill(draw(drawn_arguments), nodes))
    return GraphModule(attributes, graph), draw(st.lists(literals, min_size=len(names), max_size=len(names)))


PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
EXAMPLES = int(os.environ.get("FX_CODEGEN_EXAMPLES", "100"))
"""Raise it for a longer search."""


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(graphs())
def test_generated_code_computes_what_the_nodes_say(case: tuple[GraphModule, list[Any]]) -> None:
    module, values = case
    module.graph.lint()
    assert same(module(*values), evaluate(module, values)), module.code


@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(graphs())
def test_every_text_parses_uses_all_its_globals_and_is_the_same_on_every_run(
    case: tuple[GraphModule, list[Any]],
) -> None:
    module, _ = case
    tree = ast.parse(module.code)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert set(module._python_code.globals) <= used
    defined = {arg.arg for arg in ast.walk(tree) if isinstance(arg, ast.arg)}
    stored = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    assert used <= set(module._python_code.globals) | defined | stored | set(dir(builtins))
    assert module.graph.python_code("self").src == module.code
