"""What fx.ir is told of torch's effects, beside torch's own schemas and beside what calls really do."""

from typing import Any

import pytest
import torch
from torch import nn

import fx.codegen  # noqa: F401  # tells fx.ir about torch
from fx.ir import Graph, Node, dumps, effects, find_target, loads

F = nn.functional


def schemas_say(name: str) -> tuple[bool, bool] | None:
    """Whether some overload of the operator (but those that write to ``out=``) writes to an argument; draws."""
    packet = getattr(torch.ops.aten, name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return None
    writes = draws = False
    for overload in packet.overloads():  # type: ignore[no-untyped-call]  # torch has no annotation here
        operator = getattr(packet, overload)
        written = [
            a for a in operator._schema.arguments if a.alias_info is not None and a.alias_info.is_write
        ]
        if not any(argument.kwarg_only for argument in written):
            writes |= bool(written)
            draws |= torch.Tag.nondeterministic_seeded in operator.tags
    return writes, draws


MADE_IN_C = [torch, *[getattr(torch._C, name) for name in ("_nn", "_linalg", "_fft", "_special")]]


@pytest.mark.parametrize("owner", MADE_IN_C, ids=lambda owner: owner.__name__)
def test_functions_made_in_c_do_what_the_schemas_say(owner: Any) -> None:
    seen = 0
    for name in dir(owner):
        function = getattr(owner, name)
        said = schemas_say(name) if type(function) is type(torch.abs) and not name.startswith("__") else None
        if said is not None:
            found = effects.effects_of(function)
            assert found.impure or (bool(found.mutates), found.random) == said, name
            seen += 1
    assert seen > 10


def test_methods_do_what_the_schemas_say() -> None:
    seen = 0
    for name in dir(torch.Tensor):
        said = (
            schemas_say(name) if callable(getattr(torch.Tensor, name)) and not name.startswith("__") else None
        )
        if said is not None:
            found = effects.effects_of_method(name)
            assert found.impure or bool(found.mutates) >= said[0], name
            assert said[0] or found.impure or found.random == said[1], name
            seen += 1
    assert seen > 100


def test_operators_do_what_the_schemas_say() -> None:
    for name in ("relu", "relu_", "bernoulli", "add", "index_put_", "rand", "copy_"):
        packet = getattr(torch.ops.aten, name)
        found = effects.effects_of(packet)
        assert (bool(found.mutates), found.random) == schemas_say(name), name


def node(target: Any, *args: Any, **kwargs: Any) -> Node:
    return Graph().call_function(target, args, kwargs)


x, w, ones = torch.rand(4, 3), torch.rand(9, 3), torch.ones(3)
i = torch.tensor([1, 2])
CALLS: list[tuple[Node, bool, bool]] = [  # call, changes an argument, draws
    (node(F.dropout, x), False, True),
    (node(F.dropout, x, 0.5, False), False, False),
    (node(F.dropout, x, 0.0), False, False),
    (node(F.dropout, x, training=False), False, False),
    (node(F.alpha_dropout, x), False, False),
    (node(F.alpha_dropout, x, training=True), False, True),
    (node(torch.dropout, x, 0.5, True), False, True),
    (node(torch.dropout, x, 0.5, False), False, False),
    (node(F.scaled_dot_product_attention, x, x, x), False, False),
    (node(F.scaled_dot_product_attention, x, x, x, None, 0.5), False, True),
    (node(F.scaled_dot_product_attention, x, x, x, dropout_p=0.5), False, True),
    (node(F.rrelu, -x), False, False),
    (node(F.rrelu, -x, training=True), False, True),
    (node(F.batch_norm, x, ones.clone(), ones.clone(), training=True), True, False),
    (node(F.batch_norm, x, ones.clone(), ones.clone()), False, False),
    (node(F.batch_norm, x, None, None, training=True), False, False),
    (node(torch.batch_norm, x, None, None, ones.clone(), ones.clone(), True, 0.1, 1e-5, False), True, False),
    (
        node(torch.batch_norm, x, None, None, ones.clone(), ones.clone(), False, 0.1, 1e-5, False),
        False,
        False,
    ),
    (
        node(
            torch.ops.aten.native_batch_norm.default,
            x,
            None,
            None,
            ones.clone(),
            ones.clone(),
            True,
            0.1,
            1e-5,
        ),
        True,
        False,
    ),
    (node(F.instance_norm, x[None], ones.new_ones(4), ones.new_ones(4)), True, False),
    (node(F.embedding, i, w.clone(), max_norm=0.1), True, False),
    (node(F.embedding, i, w.clone()), False, False),
    (node(F.embedding_bag, i, w.clone(), i[:1] * 0, 0.1), True, False),
    (node(torch.relu_, -x), True, False),
    (node(torch.bernoulli, x), False, True),
]


@pytest.mark.parametrize(("call", "changes", "draws"), CALLS, ids=lambda value: str(value))
def test_a_call_is_judged_by_its_arguments_as_it_behaves(call: Node, changes: bool, draws: bool) -> None:
    found = effects.effects_of_node(call)
    assert (bool(found.mutates), found.random, found.impure) == (changes, draws, False)
    target: Any = call.target
    tensors = [arg for arg in (*call.args, *call.kwargs.values()) if isinstance(arg, torch.Tensor)]
    before, state = [tensor.clone() for tensor in tensors], torch.get_rng_state()
    target(*call.args, **call.kwargs)
    assert any(not torch.equal(*pair) for pair in zip(before, tensors, strict=True)) == changes
    assert (not torch.equal(state, torch.get_rng_state())) == draws


MODULES: list[tuple[nn.Module, bool]] = [
    (nn.Linear(2, 2), False),
    (nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout())), True),
    (nn.BatchNorm1d(2), True),
    (nn.Embedding(3, 2), False),
    (nn.Embedding(3, 2, max_norm=1.0), True),
    (nn.LSTM(2, 2, 2), False),
    (nn.LSTM(2, 2, 2, dropout=0.5), True),
    (nn.TransformerEncoderLayer(4, 2), True),
    (nn.TransformerEncoderLayer(4, 2, dropout=0.0), True),  # Dropout(0.0) is taken as one that draws
]


@pytest.mark.parametrize(("module", "impure"), MODULES, ids=lambda value: type(value).__name__)
def test_a_module_does_what_those_in_it_do(module: nn.Module, impure: bool) -> None:
    assert bool(effects.effects_of_module(module)) == impure
    if not isinstance(module, nn.Embedding):
        assert not effects.effects_of_module(module.eval())


def test_operators_are_found_by_name_while_a_file_is_loaded() -> None:
    graph = Graph()
    for target in (torch.ops.aten.frobenius_norm.dim, torch.ops.aten.special_i1e, torch.abs):
        graph.call_function(target, (graph.placeholder(f"x{len(graph.nodes)}"),))
    loaded = loads(dumps(graph))
    assert [n.target for n in loaded.nodes] == [n.target for n in graph.nodes]
    for name in (
        "torch.ops.no.such",
        "torch.ops.aten.__class__",
        "torch.ops.aten",
        "torch.ops.aten.add.no_such",
    ):
        assert find_target(name) is None
