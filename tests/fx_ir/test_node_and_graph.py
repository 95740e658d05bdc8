"""Node and Graph beside torch.fx, and what they refuse."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch.fx

from fx.ir import (
    ArgumentError,
    CycleError,
    ErasedNodeError,
    ForeignNodeError,
    Graph,
    GraphError,
    MissingCodeGenError,
    Node,
    NodeInUseError,
    NodeNameError,
    NoSuchNodeError,
    OpcodeError,
    PlaceholderError,
    TargetError,
    UseBeforeDefinitionError,
    immutable_dict,
    immutable_list,
    map_aggregate,
    map_arg,
)


class Pair(NamedTuple):
    left: Any
    right: Any


def example(graph: Any) -> Any:
    """The same edits on a graph of ours or of torch."""
    x = graph.placeholder("x", type_expr=int)
    y = graph.placeholder("y", default_value=None)
    weight = graph.get_attr("layers.0.weight")
    total = graph.call_function(operator.add, (x, y))
    total = graph.call_function(operator.add, (total, 1), {"alpha": weight})
    lin = graph.call_module("layers.0", (total,), {"k": [x, {"a": y}]})
    relu = graph.call_method("relu", (lin, slice(x, None, 2)))
    nested = graph.call_function(torch.nn.functional.relu, (relu,), {"inplace": False}, type_expr=list[int])
    graph.call_function(torch.add, ([x, (y, 1.5)], "text", None, torch.float32))
    graph.create_node("call_function", torch.cat, ((x, y),), {}, name="my_cat")
    graph.create_node("call_function", torch.cat, ((x,),), {}, name="class")
    graph.create_node("call_method", "__add__", (x, y))
    graph.create_node("call_method", "someCamelCase", (x,), name=None)
    graph.create_node("call_function", max, (x, y))
    graph.output((nested, [x]))
    return graph


def test_the_same_edits_print_as_in_torch() -> None:
    assert str(example(Graph())) == str(example(torch.fx.Graph()))


@pytest.mark.parametrize("format_of", ["format_node", "__repr__"])
def test_each_node_prints_as_in_torch(format_of: str) -> None:
    for ours, theirs in zip(example(Graph()).nodes, example(torch.fx.Graph()).nodes, strict=True):
        assert getattr(ours, format_of)() == getattr(theirs, format_of)()


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.uint8]
)
@pytest.mark.parametrize("key", ["val", "tensor_meta", "example_value", "other"])
def test_format_node_shows_what_is_noted_of_tensors_as_torch_does(dtype: torch.dtype, key: str) -> None:
    shown = []
    for make in (Graph, torch.fx.Graph):
        graph: Any = make()
        node = graph.call_function(torch.abs, (graph.placeholder("x"),), type_expr=int)
        node.meta[key] = torch.ones(2, 3, dtype=dtype).t()
        shown.append([node.format_node(include_tensor_metadata=wanted) for wanted in (True, False)])
    assert shown[0] == shown[1]


def test_format_node_collects_placeholders_and_the_type_of_the_output() -> None:
    graph = Graph()
    x = graph.placeholder("x", type_expr=int)
    out = graph.output(x, type_expr=float)
    names, typename = ["self"], [""]
    assert x.format_node(names) is None
    assert names == ["self", "x: int"]
    assert out.format_node(names, typename) == "return x"
    assert typename == [" -> float"]


def test_the_table_prints_as_in_torch(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tabulate")
    example(Graph()).print_tabular()
    ours = capsys.readouterr().out
    example(torch.fx.Graph()).print_tabular()
    assert ours == capsys.readouterr().out


@pytest.mark.parametrize("method", ["create_node", "placeholder", "get_attr", "call_function", "call_method",
                                    "call_module", "output", "node_copy", "graph_copy", "erase_node", "find_nodes",
                                    "inserting_before", "inserting_after", "eliminate_dead_code", "lint",
                                    "set_codegen", "on_generate_code", "process_inputs", "process_outputs"])  # fmt: skip
def test_graph_methods_take_the_parameters_of_torch(method: str) -> None:
    ours = list(inspect.signature(getattr(Graph, method)).parameters)
    theirs = list(inspect.signature(getattr(torch.fx.Graph, method)).parameters)
    assert ours[: len(theirs)] == theirs


@pytest.mark.parametrize("method", ["append", "prepend", "update_arg", "insert_arg", "update_kwarg", "is_impure",
                                    "replace_all_uses_with", "replace_input_with", "__init__"])  # fmt: skip
def test_node_methods_take_the_parameters_of_torch(method: str) -> None:
    ours = list(inspect.signature(getattr(Node, method)).parameters)
    assert ours == list(inspect.signature(getattr(torch.fx.Node, method)).parameters)


NAMES = ["add", "add_1", "add", "x_5", "x", "x", "x_5", "list", "list", "class", "9lives", "a.b.c", "", "a-b", "add_1",
         "_", "x_05", "x_5_6", "torch", "inf", "ünicode", "a__b", "_1", "A"]  # fmt: skip


def test_names_are_those_of_torch() -> None:
    ours, theirs = Graph(), torch.fx.Graph()
    for name in NAMES:
        for _ in range(3):
            made = ours.create_node("get_attr", "t", name=name).name
            assert made == theirs.create_node("get_attr", "t", name=name).name


@pytest.mark.parametrize(
    "target", ["layer1.0.ConvBn", "__getitem__", "weight", "HTTPServer", "x__y__", "__a"]
)
def test_names_from_targets_are_those_of_torch(target: str) -> None:
    ours, theirs = Graph(), torch.fx.Graph()
    for op in ("get_attr", "call_module", "call_method"):
        mine = ours.create_node(op, target).name
        assert mine == theirs.create_node(op, target).name


def test_a_name_is_never_given_twice() -> None:
    graph = Graph()
    first = graph.call_function(operator.add, (1, 2))
    graph.erase_node(first)
    assert graph.call_function(operator.add, (1, 2)).name == "add_1"


def test_nodes_are_found_by_name_also_after_renaming() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    uid = x.uid
    x.name = "first"
    assert graph.node_named("first") is x
    assert x.uid == uid
    with pytest.raises(NoSuchNodeError, match="'x'"):
        graph.node_named("x")
    y = graph.placeholder("y")
    for wrong in ("first", "class", "no name", "", "list"):
        with pytest.raises(NodeNameError):
            y.name = wrong
    assert y.name == "y"


def test_insertion_points_nest_and_are_restored() -> None:
    def build(graph: Any) -> str:
        x = graph.placeholder("x")
        out = graph.output(x)
        with graph.inserting_before(out):
            a = graph.call_method("a", (x,))
            with graph.inserting_after(x):
                graph.call_method("b", (x,))
                graph.call_method("c", (x,))
            graph.call_method("d", (a,))
        graph.inserting_before(a)
        graph.call_method("e", (x,))
        graph.call_method("f", (x,))
        with graph.inserting_before():
            graph.get_attr("g")
            graph.get_attr("h")
        with graph.inserting_after():
            graph.get_attr("i")
        return str(graph)

    assert build(Graph()) == build(torch.fx.Graph())


@pytest.mark.parametrize("behind", [False, True])
def test_an_insertion_point_survives_the_erasure_of_its_node(behind: bool) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    gone = graph.call_method("gone", (x,))
    last = graph.call_method("last", (x,))
    with graph.inserting_after(gone) if behind else graph.inserting_before(gone):
        with graph.inserting_before(last):
            graph.erase_node(gone)
        graph.call_method("new", (x,))
    graph.lint()
    assert [node.name for node in graph.nodes] == ["x", "new", "last"]


@pytest.mark.parametrize("backwards", [False, True])
def test_the_list_can_be_edited_while_it_is_iterated(backwards: bool) -> None:
    graph = Graph()
    for i in range(50):
        graph.get_attr(f"a{i}")
    seen: list[str] = []
    for node in reversed(graph.nodes) if backwards else graph.nodes:
        seen.append(str(node.target))
        if len(seen) % 2:
            graph.erase_node(node)
        if len(seen) % 5 == 0 and node.next in graph.nodes and node.prev in graph.nodes:
            graph.erase_node(node.prev if backwards else node.next)
        if len(seen) % 7 == 0 and node in graph.nodes:
            with graph.inserting_after(node) if backwards else graph.inserting_before(node):
                graph.get_attr("never_seen")
    graph.lint()
    expected = [f"a{i}" for i in range(50)]
    assert set(seen) <= set(expected)
    assert seen == sorted(seen, key=expected.index, reverse=backwards)


def test_users_follow_every_change_of_arguments() -> None:
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    node = graph.call_function(operator.add, (x, [x, 1]), {"k": {"d": x}})
    assert list(x.users) == [node]
    assert node.all_input_nodes == [x]
    node.update_arg(0, y)
    assert list(y.users) == [node]
    node.update_kwarg("k", 1)
    node.insert_arg(1, (y, slice(x, y)))
    assert node.args == (y, (y, slice(x, y)), [x, 1])
    node.args = ()
    assert not x.users
    assert not y.users
    assert dict(x.users) == {}


def test_arguments_are_frozen_all_the_way_down() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(operator.add, ([x, {"a": [1]}],), {"k": Pair(x, [x])})
    inner: Any = node.args[0]
    assert type(inner) is immutable_list
    assert type(inner[1]) is immutable_dict
    pair: Any = node.kwargs["k"]
    assert type(pair) is Pair
    assert type(pair.right) is immutable_list
    kwargs: Any = node.kwargs
    changes: list[Callable[[], object]] = [
        lambda: inner.append(1),
        lambda: inner.__setitem__(0, 1),
        lambda: inner[1].update(b=1),
        lambda: kwargs.pop("k"),
        lambda: inner.sort(),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="does not support mutation"):
            change()
    assert hash(inner[1]["a"]) == hash(immutable_list([1]))
    assert copy.deepcopy(inner[1]) == pickle.loads(pickle.dumps(inner[1])) == {"a": [1]}


def test_map_arg_and_map_aggregate_keep_shapes() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    value: Any = (x, [1, {"a": x, "b": slice(x, 2)}], Pair(x, range(3)), "s")
    assert map_arg(value, lambda node: node.name) == (
        "x", [1, {"a": "x", "b": slice("x", 2)}], Pair("x", range(3)), "s",
    )  # fmt: skip
    assert map_aggregate((1, [2, Pair(3, 4)]), lambda leaf: leaf) == (1, [2, Pair(3, 4)])
    seen: list[Any] = []
    map_aggregate(value, seen.append)
    assert seen == [x, 1, x, x, 2, None, x, range(3), "s"]


def test_find_nodes_follows_every_edit() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    a = graph.call_function(operator.add, (x, x))
    assert graph.find_nodes(op="call_function", target=operator.add) == [a]
    with graph.inserting_before(a):
        b = graph.call_function(operator.add, (x, 1))
    assert graph.find_nodes(op="call_function", target=operator.add) == [b, a]
    assert graph.find_nodes(op="call_function", target=operator.add, sort=False) == [a, b]
    b.target = operator.mul
    assert graph.find_nodes(op="call_function", target=operator.add) == [a]
    assert graph.find_nodes(op="call_function") == [b, a]
    graph.erase_node(b)
    assert graph.find_nodes(op="call_function", target=operator.mul) == []
    a.retarget("call_method", "add")
    assert graph.find_nodes(op="call_method", target="add") == [a]
    graph.lint()


def test_replace_all_uses_with_asks_for_each_user_and_copies_meta() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["shape"] = (2,)
    y = graph.placeholder("y")
    a = graph.call_function(operator.add, (x, x))
    b = graph.call_function(operator.mul, (x, [x]))
    assert x.replace_all_uses_with(y, lambda user: user is b, propagate_meta=True) == [b]
    assert a.args == (x, x)
    assert b.args == (y, [y])
    assert y.meta == {"shape": (2,)}
    with pytest.raises(GraphError, match="meta of its own"):
        x.replace_all_uses_with(y, propagate_meta=True)


def test_many_replacements_settle_once_and_in_any_order() -> None:
    graph = Graph()
    xs = [graph.placeholder(f"x{i}") for i in range(20)]
    node = graph.call_function(max, (tuple(xs), *xs), {"k": xs})
    graph.output(node)
    for i in range(10):
        node.replace_input_with(xs[i], xs[i + 10])
    for i in range(10, 15):
        node.replace_input_with(xs[i], xs[0])
    node.replace_input_with(xs[0], xs[3])
    node.replace_input_with(xs[3], xs[1])
    expected = [*[xs[1]] * 5, *xs[15:], *[xs[1]] * 5, *xs[15:]]
    assert node.args == (tuple(expected), *expected)
    assert node.kwargs == {"k": expected}
    assert node.all_input_nodes == [xs[1], *xs[15:]]
    graph.lint()


@pytest.fixture
def graph() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(operator.neg, (x,))
    z = graph.call_function(operator.add, (x, y))
    graph.output(z)
    return graph


REFUSED: list[tuple[str, type[GraphError], str, Callable[[Graph], object]]] = [
    ("an erased node as argument", ErasedNodeError, "gone",
     lambda g: g.call_function(operator.neg, (erased(g),))),
    ("an argument of another graph", ForeignNodeError, "other_x",
     lambda g: g.call_function(operator.neg, ([foreign()],))),
    ("a keyword argument of another graph", ForeignNodeError, "other_x",
     lambda g: g.node_named("add").update_kwarg("k", foreign())),
    ("creation before an argument", UseBeforeDefinitionError, "add", lambda g: create_first(g)),
    ("an argument that stands behind", UseBeforeDefinitionError, "add",
     lambda g: setattr(g.node_named("neg"), "args", (g.node_named("add"),))),
    ("a node as its own argument", CycleError, "neg",
     lambda g: g.node_named("neg").update_arg(0, g.node_named("neg"))),
    ("replacement by a user", CycleError, "neg",
     lambda g: g.node_named("x").replace_all_uses_with(g.node_named("neg"))),
    ("replacement by a later node", UseBeforeDefinitionError, "add",
     lambda g: g.node_named("x").replace_all_uses_with(g.node_named("add"), lambda u: u.name == "neg")),
    ("replacement by a foreign node", ForeignNodeError, "other_x",
     lambda g: g.node_named("x").replace_all_uses_with(foreign())),
    ("replacement by an erased node", ErasedNodeError, "gone",
     lambda g: g.node_named("x").replace_all_uses_with(erased(g))),
    ("an input replaced by a foreign node", ForeignNodeError, "other_x",
     lambda g: g.node_named("neg").replace_input_with(g.node_named("x"), foreign())),
    ("an input replaced by a later node", UseBeforeDefinitionError, "add",
     lambda g: g.node_named("neg").replace_input_with(g.node_named("x"), g.node_named("add"))),
    ("moving before an input", UseBeforeDefinitionError, "neg",
     lambda g: g.node_named("neg").prepend(g.node_named("add"))),
    ("moving behind a user", UseBeforeDefinitionError, "neg",
     lambda g: g.node_named("add").append(g.node_named("x"))),
    ("moving a foreign node", ForeignNodeError, "other_x", lambda g: g.node_named("x").append(foreign())),
    ("moving an erased node", ErasedNodeError, "gone", lambda g: g.node_named("x").append(erased(g))),
    ("moving next to an erased node", ErasedNodeError, "gone", lambda g: erased(g).append(g.node_named("add"))),
    ("erasing a used node", NodeInUseError, "neg.*add", lambda g: g.erase_node(g.node_named("neg"))),
    ("erasing a foreign node", ForeignNodeError, "other_x", lambda g: g.erase_node(foreign())),
    ("erasing twice", ErasedNodeError, "gone", lambda g: g.erase_node(erased(g))),
    ("editing an erased node", ErasedNodeError, "gone", lambda g: setattr(erased(g), "args", ())),
    ("renaming an erased node", ErasedNodeError, "gone", lambda g: setattr(erased(g), "name", "new")),
    ("inserting at a foreign node", ForeignNodeError, "other_x", lambda g: g.inserting_before(foreign())),
    ("inserting at an erased node", ErasedNodeError, "gone", lambda g: g.inserting_after(erased(g))),
    ("a second placeholder of one name", PlaceholderError, "'x'", lambda g: g.placeholder("x")),
    ("a placeholder that is no parameter", PlaceholderError, "'a b'", lambda g: g.placeholder("a b")),
    ("a placeholder that is a keyword", PlaceholderError, "'class'", lambda g: g.placeholder("class")),
    ("a placeholder of three stars", PlaceholderError, r"\*\*\*x", lambda g: g.placeholder("***x")),
    ("a placeholder retargeted to another", PlaceholderError, "'x'",
     lambda g: setattr(first_placeholder(g, "w"), "target", "x")),
    ("an unknown opcode", OpcodeError, "call_moon", lambda g: g.create_node("call_moon", "x")),  # type: ignore[arg-type]  # refused
    ("a target that cannot be called", TargetError, "'add'", lambda g: g.create_node("call_function", "add")),
    ("a method that is no name", TargetError, "neg", lambda g: g.create_node("call_method", operator.neg)),
    ("an opcode that does not fit", TargetError, "neg", lambda g: setattr(g.node_named("neg"), "op", "get_attr")),
    ("args that are no tuple", ArgumentError, "tuple", lambda g: g.call_function(max, [1])),  # type: ignore[arg-type]  # refused
    ("kwargs that are no dict", ArgumentError, "dict", lambda g: g.call_function(max, (), [1])),  # type: ignore[arg-type]  # refused
    ("a node as key", ArgumentError, "x", lambda g: g.call_function(max, ({g.node_named("x"): 1},))),
    ("an index outside", ArgumentError, "insert_arg", lambda g: g.node_named("add").insert_arg(3, 1)),
    ("the root as argument", GraphError, "root", lambda g: g.call_function(max, (g.node_named("x").prev,))),
    ("a copy whose arguments stayed behind", ForeignNodeError, "other_x",
     lambda g: g.node_copy(next(iter(foreign().users)))),
]  # fmt: skip


def erased(graph: Graph) -> Node:
    gone = graph.call_function(operator.pos, (graph.node_named("x"),), name="gone")
    graph.erase_node(gone)
    return gone


def foreign() -> Node:
    other = Graph()
    node = other.placeholder("other_x")
    other.call_function(operator.neg, (node,))
    return node


def create_first(graph: Graph) -> None:
    with graph.inserting_before(graph.node_named("neg")):
        graph.call_function(operator.pos, (graph.node_named("add"),))


def first_placeholder(graph: Graph, name: str) -> Node:
    with graph.inserting_before():
        return graph.placeholder(name)


@pytest.mark.parametrize(("what", "error", "named", "edit"), REFUSED, ids=[case[0] for case in REFUSED])
def test_a_refused_edit_names_the_nodes_and_changes_nothing(
    graph: Graph, what: str, error: type[GraphError], named: str, edit: Callable[[Graph], object]
) -> None:
    if "retargeted" in what:
        first_placeholder(graph, "w")
        graph.erase_node(graph.node_named("w"))
    before = str(graph)
    users = {node: list(node.users) for node in graph.nodes}
    with pytest.raises(error, match=named) as caught:
        edit(graph)
    if "retargeted" in what:
        graph.erase_node(graph.node_named("w_1"))
    assert type(caught.value) is error
    assert str(graph) == before
    assert {node: list(node.users) for node in graph.nodes} == users
    graph.lint()


def test_graph_copy_that_fails_leaves_no_nodes_behind(graph: Graph) -> None:
    other = Graph()
    other.placeholder("a")
    other.placeholder("x")
    before = str(graph)
    val_map: dict[Node, Any] = {}
    with pytest.raises(PlaceholderError):
        graph.graph_copy(other, val_map)
    assert str(graph) == before
    assert not val_map
    graph.lint()


def test_graph_copy_gives_the_value_of_the_output() -> None:
    source, target = example(Graph()), Graph()
    val_map: dict[Node, Any] = {}
    result = target.graph_copy(source, val_map)
    copied = target.output(result)
    assert str(target) == str(source)
    assert copied.args == target.output_node().args
    assert target.graph_copy(source, val_map, return_output_node=True) == (result, source.output_node())
    assert Graph().graph_copy(Graph(), {}) is None


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_copies_are_equal_and_independent(duplicate: Callable[[Graph], Graph]) -> None:
    graph = example(Graph(tracer_extras={"a": 1}))
    graph.nodes.__iter__().__next__().meta["shape"] = [1]
    graph.erase_node(graph.call_function(operator.add, (1, 2)))
    copied = duplicate(graph)
    copied.lint()
    assert str(copied) == str(graph)
    assert [node.uid for node in copied.nodes] == [node.uid for node in graph.nodes]
    assert [list(map(str, node.users)) for node in copied.nodes] == [
        list(map(str, n.users)) for n in graph.nodes
    ]
    assert copied.node_named("x").meta == {"shape": [1]}
    assert copied.call_function(operator.add, (1, 2)).name == graph.call_function(operator.add, (1, 2)).name
    copied.node_named("x").meta["other"] = 1
    assert "other" not in graph.node_named("x").meta
    assert set(copied.nodes).isdisjoint(graph.nodes)


def test_a_node_copied_or_pickled_brings_its_graph() -> None:
    graph = example(Graph())
    node = graph.node_named("relu")
    for copied in (copy.deepcopy(node), pickle.loads(pickle.dumps(node))):
        assert copied.name == "relu"
        assert copied.graph is not graph
        assert str(copied.graph) == str(graph)


def test_nodes_compare_by_position() -> None:
    graph = Graph()
    nodes = [graph.get_attr("a") for _ in range(20)]
    for _ in range(200):
        with graph.inserting_before(nodes[-1]):
            nodes.insert(-1, graph.get_attr("a"))
    assert sorted(reversed(nodes)) == nodes
    assert nodes[3] < nodes[4] <= nodes[4] and nodes[5] > nodes[4] >= nodes[4]
    assert nodes[0] in graph.nodes
    graph.erase_node(nodes[0])
    assert nodes[0] not in graph.nodes
    graph.lint()


class Recorder:
    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def node_created(self, node: Node) -> None:
        self.heard.append(("created", node.name))

    def node_erased(self, node: Node) -> None:
        self.heard.append(("erased", node.name, list(map(str, node.all_input_nodes))))

    def node_replaced(self, old: Node, new: Node, user: Node) -> None:
        self.heard.append(("replaced", old.name, new.name, user.name))

    def node_changed(self, node: Node, field: str) -> None:
        self.heard.append(("changed", node.name, field))


def test_listeners_hear_every_edit_and_no_refused_one() -> None:
    graph, recorder = Graph(), Recorder()
    graph.add_listener(recorder)
    x, y = graph.placeholder("x"), graph.placeholder("y")
    a = graph.call_function(operator.add, (x, 1))
    b = graph.call_function(operator.add, (x, a))
    x.replace_all_uses_with(y)
    b.replace_input_with(y, x)
    b.args = (x,)
    b.kwargs = {"k": 1}
    b.name = "c"
    b.target = operator.mul
    a.prepend(b)
    with pytest.raises(GraphError):
        a.args = (a,)
    graph.erase_node(b)
    graph.remove_listener(recorder)
    graph.placeholder("z")
    assert recorder.heard == [
        ("created", "x"), ("created", "y"), ("created", "add"), ("created", "add_1"),
        ("replaced", "x", "y", "add"), ("replaced", "x", "y", "add_1"), ("replaced", "y", "x", "add_1"),
        ("changed", "add_1", "args"), ("changed", "add_1", "kwargs"), ("changed", "c", "name"),
        ("changed", "c", "target"), ("changed", "c", "position"), ("erased", "c", ["x"]),
    ]  # fmt: skip


class Reverser:
    """A code generator that shows what reaches it."""

    body_transformer: Callable[[list[str]], list[str]] | None = None

    def python_code(self, graph: Graph, root_module: str, *, verbose: bool = False, **options: Any) -> str:
        lines = [str(node) for node in graph.nodes]
        return (
            "|".join(self.body_transformer(lines) if self.body_transformer else lines)
            + f"|{root_module}|{options}"
        )

    def process_inputs(self, *args: Any) -> Any:
        return args[::-1]

    def process_outputs(self, out: Any) -> Any:
        return [out]


def test_code_generation_goes_to_the_code_generator() -> None:
    graph = Graph()
    graph.output(graph.placeholder("x"))
    graph.set_codegen(Reverser())
    assert graph.process_inputs(1, 2) == (2, 1)
    assert graph.process_outputs(3) == [3]
    assert graph.python_code("self", verbose=True, width=3) == "x|output|self|{'width': 3}"
    with graph.on_generate_code(lambda earlier: lambda lines: ["first", *lines]):
        with graph.on_generate_code(
            lambda earlier: lambda lines: ["zeroth", *(earlier(lines) if earlier else [])]
        ):
            assert graph.python_code("self").startswith("zeroth|first|x")
        assert graph.python_code("self").startswith("first|x")
    graph.on_generate_code(lambda earlier: lambda lines: lines[::-1])
    assert graph.python_code("self").startswith("output|x")
    assert copy.deepcopy(graph).codegen is not graph.codegen


def test_without_a_code_generator_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from fx.ir import _codegen

    monkeypatch.setattr(_codegen, "_defaults", [])
    monkeypatch.setattr(_codegen, "GROUP", "fx.no.such.group")
    with pytest.raises(MissingCodeGenError, match="pip install fx-codegen"):
        Graph().python_code("self")


def test_missing_attributes_of_the_owning_module_are_warned_of() -> None:
    owner = torch.nn.Module()
    owner.lin = torch.nn.Linear(2, 2)
    graph = Graph(owner)
    graph.get_attr("lin.weight")
    graph.call_module("lin")
    with pytest.warns(UserWarning, match="lin.nothing"):
        graph.get_attr("lin.nothing")
    with pytest.warns(UserWarning, match="conv"):
        graph.call_module("conv")
