"""Random sequences of edits against a model in plain dicts, with every invariant checked after each step, and
against ``torch.fx.Graph`` where the two agree."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import torch.fx
from hypothesis import given, settings
from hypothesis import strategies as st

from fx.ir import Graph, GraphError, Node, dumps, loads
from fx.ir.analysis import diff
from fx.ir.lint import check


class Model:
    """A graph as a list of names and a dict from name to argument names; the same edits, done the slow way."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.args: dict[str, list[str]] = {}

    def allowed(self, order: list[str], args: dict[str, list[str]]) -> bool:
        position = {name: i for i, name in enumerate(order)}
        return all(
            value in position and position[value] < position[name] for name in order for value in args[name]
        )

    def change(self, order: list[str], args: dict[str, list[str]]) -> bool:
        if not self.allowed(order, args):
            return False
        self.order, self.args = order, args
        return True

    def users(self, name: str) -> set[str]:
        return {user for user in self.order if name in self.args[user]}


class Pair:
    """The model, our graph and torch's, edited together."""

    def __init__(self) -> None:
        self.model, self.graph, self.torch = Model(), Graph(), torch.fx.Graph()
        self.nodes: dict[str, Node] = {}
        self.theirs: dict[str, Any] = {}
        for _ in range(2):
            self.create(0, [])

    def pick(self, number: int) -> str:
        return self.model.order[number % len(self.model.order)]

    def do(self, accepted: bool, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
        """Ours must accept exactly what the model accepts; then torch does it, too."""
        before = str(self.graph)
        try:
            ours()
        except GraphError:
            assert not accepted
            assert str(self.graph) == before
        else:
            assert accepted
            theirs()

    def create(self, at: int, inputs: list[int]) -> None:
        order = self.model.order
        place = at % (len(order) + 1)
        names = [self.pick(i) for i in inputs] if order else []
        made: list[Any] = []

        def insert(graph: Any, nodes: dict[str, Any], flat: bool) -> None:
            args = tuple(nodes[name] for name in names)
            with (
                graph.inserting_before(nodes[order[place]] if place < len(order) else None)
                if place < len(order)
                else graph.inserting_after()
            ):
                made.append(graph.call_function(operator.add, args if flat else (list(args),), {"k": 1}))

        flat = len(names) % 2 == 0
        self.do(
            all(order.index(name) < place for name in names),
            lambda: insert(self.graph, self.nodes, flat),
            lambda: insert(self.torch, self.theirs, flat),
        )
        if made:
            node, theirs = made
            assert node.name == theirs.name
            self.nodes[node.name], self.theirs[node.name] = node, theirs
            self.model.order = [*order[:place], node.name, *order[place:]]
            self.model.args[node.name] = names

    def erase(self, number: int) -> None:
        name = self.pick(number)
        model = self.model
        accepted = not model.users(name) and len(model.order) > 2
        if len(model.order) > 2:
            self.do(
                accepted,
                lambda: self.graph.erase_node(self.nodes[name]),
                lambda: self.torch.erase_node(self.theirs[name]),
            )
        if accepted:
            model.order.remove(name)
            del model.args[name], self.nodes[name], self.theirs[name]

    def move(self, number: int, to: int, behind: bool) -> None:
        name, anchor = self.pick(number), self.pick(to)
        if name == anchor:
            return
        order = [other for other in self.model.order if other != name]
        order.insert(order.index(anchor) + behind, name)
        accepted = self.model.change(order, self.model.args)
        method = "append" if behind else "prepend"
        self.do(
            accepted,
            lambda: getattr(self.nodes[anchor], method)(self.nodes[name]),
            lambda: getattr(self.theirs[anchor], method)(self.theirs[name]),
        )

    def set_args(self, number: int, inputs: list[int]) -> None:
        name, names = self.pick(number), [self.pick(i) for i in inputs]
        accepted = self.model.change(self.model.order, {**self.model.args, name: names})
        self.do(
            accepted,
            lambda: setattr(self.nodes[name], "args", tuple(self.nodes[other] for other in names)),
            lambda: setattr(self.theirs[name], "args", tuple(self.theirs[other] for other in names)),
        )

    def replace_input(self, number: int, old: int, new: int) -> None:
        name, left, right = self.pick(number), self.pick(old), self.pick(new)
        args = [right if value == left else value for value in self.model.args[name]]
        accepted = self.model.order.index(right) < self.model.order.index(name)
        if accepted:
            assert self.model.change(self.model.order, {**self.model.args, name: args})
        self.do(
            accepted,
            lambda: self.nodes[name].replace_input_with(self.nodes[left], self.nodes[right]),
            lambda: self.theirs[name].replace_input_with(self.theirs[left], self.theirs[right]),
        )

    def replace_all(self, old: int, new: int, keep: int) -> None:
        left, right, kept = self.pick(old), self.pick(new), self.pick(keep)
        args = {
            name: [right if value == left and name != kept else value for value in values]
            for name, values in self.model.args.items()
        }
        accepted = self.model.change(self.model.order, args)
        self.do(
            accepted,
            lambda: self.nodes[left].replace_all_uses_with(self.nodes[right], lambda user: user.name != kept),
            lambda: self.theirs[left].replace_all_uses_with(
                self.theirs[right], lambda user: user.name != kept
            ),
        )

    def verify(self) -> None:
        model = self.model
        assert [node.name for node in self.graph.nodes] == model.order
        assert [node.name for node in reversed(self.graph.nodes)] == model.order[::-1]
        assert len(self.graph.nodes) == len(model.order)
        for name in model.order:
            node = self.nodes[name]
            assert self.graph.node_named(name) is node
            assert {user.name for user in node.users} == model.users(name)
            assert [value.name for value in node.all_input_nodes] == list(dict.fromkeys(model.args[name]))
        assert check(self.graph) == []
        self.graph.lint()
        assert str(self.graph) == str(self.torch)


small = st.integers(0, 30)
edits = st.one_of(
    st.tuples(st.just("create"), small, st.lists(small, max_size=3)),
    st.tuples(st.just("create"), st.just(1000), st.lists(small, max_size=12)),
    st.tuples(st.just("erase"), small),
    st.tuples(st.just("move"), small, small, st.booleans()),
    st.tuples(st.just("set_args"), small, st.lists(small, max_size=3)),
    st.tuples(st.just("replace_input"), small, small, small),
    st.tuples(st.just("replace_all"), small, small, small),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(edits, max_size=25))
def test_random_edits_agree_with_the_model_and_with_torch(steps: list[Any]) -> None:
    pair = Pair()
    for name, *arguments in steps:
        getattr(pair, name)(*arguments)
        pair.verify()


@settings(max_examples=30, deadline=None)
@given(st.lists(edits, max_size=25))
def test_copies_and_files_of_random_graphs_show_no_difference(steps: list[Any]) -> None:
    pair = Pair()
    for name, *arguments in steps:
        getattr(pair, name)(*arguments)
    for duplicate in (
        copy.deepcopy(pair.graph),
        pickle.loads(pickle.dumps(pair.graph)),
        loads(dumps(pair.graph)),
    ):
        duplicate.lint()
        assert not diff(pair.graph, duplicate)
        assert str(duplicate) == str(pair.graph)
        assert [node.uid for node in duplicate.nodes] == [node.uid for node in pair.graph.nodes]


@settings(max_examples=30, deadline=None)
@given(st.lists(edits, max_size=25), st.sets(small, max_size=4))
def test_dead_code_of_random_graphs_is_what_the_outputs_do_not_need(steps: list[Any], kept: set[int]) -> None:
    pair = Pair()
    for name, *arguments in steps:
        getattr(pair, name)(*arguments)
    needed = {pair.pick(number) for number in kept}
    roots = set(needed)
    todo = list(needed)
    while todo:
        for value in pair.model.args[todo.pop()]:
            if value not in needed:
                needed.add(value)
                todo.append(value)
    pair.graph.eliminate_dead_code(lambda node: node.name in roots)
    assert {node.name for node in pair.graph.nodes} == needed
