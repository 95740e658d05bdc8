"""fx.ir as a user's editor sees it: checked by mypy and pyright, never run."""

from __future__ import annotations

import operator
from typing import Any, Literal, assert_type

from fx.ir import (
    Argument,
    Effects,
    Graph,
    InsertPoint,
    Node,
    NodeList,
    Op,
    Target,
    Users,
    dumps,
    effects,
    immutable_dict,
    load,
    loads,
    map_arg,
    register_argument_type,
)
from fx.ir.analysis import Diff, LiveRange, Stats, diff, dominators, live_ranges, stats
from fx.ir.lint import Breach, check
from fx.ir.match import Match, NodePattern, Rewrite, find_matches, parse_pattern, rewrite, select

graph = Graph()
x = graph.placeholder("x", type_expr=int)
node = graph.call_function(operator.add, (x, 1), {"alpha": 2})

assert_type(x, Node)
assert_type(
    node.op, Literal["placeholder", "get_attr", "call_function", "call_method", "call_module", "output"]
)
assert_type(node.target, Target)
assert_type(node.args, tuple[Argument, ...])
assert_type(node.kwargs, immutable_dict[str, Argument])
assert_type(node.users, Users)
assert_type(list(node.users), list[Node])
assert_type(node.all_input_nodes, list[Node])
assert_type(node.meta, dict[str, Any])
assert_type(node.stack_trace, str | None)
assert_type(node.graph, Graph)
assert_type(node.next, Node)
assert_type(x < node, bool)
assert_type(node.replace_all_uses_with(x), list[Node])
assert_type(node.format_node(), str | None)
assert_type(node.is_impure(), bool)

assert_type(graph.nodes, NodeList)
assert_type([n.name for n in reversed(graph.nodes)], list[str])
assert_type(graph.find_nodes(op="call_function", target=operator.add), list[Node])
assert_type(graph.node_named("x"), Node)
assert_type(graph.inserting_before(x), InsertPoint)
assert_type(graph.graph_copy(Graph(), {}, return_output_node=True), tuple[Argument, Node] | None)
assert_type(graph.eliminate_dead_code(lambda n: n.op == "output"), bool)
assert_type(map_arg((x, 1), lambda n: n.name), tuple[Node, int])

with graph.inserting_after(x) as point:
    assert_type(point, InsertPoint)

op: Op = "call_method"
graph.create_node(op, "relu", (x,))

assert_type(dumps(graph), bytes)
assert_type(loads(b""), Graph)
assert_type(load("graph.json"), Graph)
assert_type(effects.effects_of(operator.add), Effects)
assert_type(check(graph), list[Breach])
assert_type(diff(graph, graph), Diff)
assert_type(stats(graph), Stats)
assert_type(dominators(graph), dict[Node, Node | None])
assert_type(live_ranges(graph), dict[Node, LiveRange])
assert_type(select(graph, parse_pattern("add(_, 1)")), list[Node])
assert_type(select(graph, NodePattern(op="output")), list[Node])
assert_type(find_matches(graph, graph), list[Match])
assert_type(rewrite(graph, graph, graph), list[Rewrite])
register_argument_type(
    complex, encode=lambda number: [number.real, number.imag], decode=lambda data: complex(*data)
)


class Recorder:
    """A listener needs no base class."""

    def node_created(self, node: Node) -> None: ...
    def node_erased(self, node: Node) -> None: ...
    def node_replaced(self, old: Node, new: Node, user: Node) -> None: ...
    def node_changed(self, node: Node, field: str) -> None: ...


graph.add_listener(Recorder())


class Reverser:
    """Nor does a code generator."""

    body_transformer = None

    def python_code(self, graph: Graph, root_module: str, *, verbose: bool = False, **options: Any) -> str:
        return root_module

    def process_inputs(self, *args: Any) -> Any:
        return args

    def process_outputs(self, out: Any) -> Any:
        return out
