"""Files bring back exactly what was saved, and nothing that a file says is run."""

from __future__ import annotations

import io
import json
import math
import operator
import sys
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fx.ir
from fx.ir import Graph, OpaqueTarget, TargetError, dumps, load, loads, register_argument_type, save
from fx.ir.analysis import diff
from fx.ir.serialize.errors import FileFormatError, NewerFormatError, UnsavableError
from fx.ir.serialize.opaque import OpaqueLeaf
from fx.ir.serialize.schema import File, GraphRecord, NodeRecord

Pair = namedtuple("Pair", "left right")

VALUES: list[Any] = [
    None, True, False, 0, -1, 1 << 62, -(1 << 63), 1 << 63, 1 << 200, 1.5, -0.0, math.inf, -math.inf, 1e-320, "", "é\n",
    b"\x00\xff", 1j, complex(math.inf, -0.0), ..., range(3), range(1, 1 << 70, 2), slice(None), slice(1, None, -1),
    [], (), {}, [1, (2, [3])], {"a": [1], "b": {}}, {1: 2, (1, 2): "x", None: 3}, Pair(1, [2]), operator.add, int, len,
]  # fmt: skip


def one(value: Any) -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    graph.call_function(operator.add, (x, value), {"k": [value, x]})
    return graph


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_arguments_survive_exactly(value: Any) -> None:
    loaded = loads(dumps(one(value)))
    back: Any = loaded.node_named("add").args[1]
    assert type(back) is type(one(value).node_named("add").args[1])
    assert repr(back) == repr(value)
    assert back == value
    assert loaded.node_named("add").kwargs == {"k": [value, loaded.node_named("x")]}
    assert dumps(loaded) == dumps(one(value))


def test_nan_survives() -> None:
    back: Any = loads(dumps(one(math.nan))).node_named("add").args[1]
    assert math.isnan(back)


def test_names_order_identities_types_traces_and_plain_meta_survive(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.placeholder("x", type_expr=list[int], default_value=None)
    graph.erase_node(graph.call_function(operator.add, (1, 2)))
    node = graph.create_node(
        "call_function", operator.add, (x, 1), {"a.b": 1}, name="add_7", type_expr="Tensor"
    )
    node.stack_trace = 'File "model.py", line 3'
    node.meta.update(shape=(2, 3), note={"k": [1.5]}, live=object())
    graph.output([node], type_expr=dict[str, int])
    path = tmp_path / "graph.json"
    save(graph, path)
    loaded = load(str(path))
    loaded.lint()
    assert str(loaded) == str(graph)
    assert [node.uid for node in loaded.nodes] == [node.uid for node in graph.nodes]
    back = loaded.node_named("add_7")
    assert back.stack_trace == node.stack_trace
    assert back.meta == {"stack_trace": node.stack_trace, "shape": (2, 3), "note": {"k": [1.5]}}
    assert [node.type for node in loaded.nodes] == [list[int], "Tensor", dict[str, int]]
    assert loaded.get_attr("w").uid == graph.get_attr("w").uid
    buffer = io.BytesIO()
    save(graph, buffer)
    buffer.seek(0)
    assert not diff(load(buffer), graph)


def test_nested_graphs_survive() -> None:
    inner = Graph()
    inner.output(inner.call_method("add_", (inner.placeholder("x"), 1)))
    middle = Graph(SimpleNamespace(inner=SimpleNamespace(graph=inner)))
    middle.output(middle.get_attr("inner"))
    outer = Graph(SimpleNamespace(a=SimpleNamespace(b=SimpleNamespace(graph=middle))))
    outer.output(outer.call_module("a.b", (inner,)))
    loaded = loads(dumps(outer))
    middle_back = loaded.nested_graph("a.b")
    assert middle_back is not None
    inner_back = middle_back.nested_graph("inner")
    assert inner_back is not None
    assert [str(middle_back), str(inner_back)] == [str(middle), str(inner)]
    assert loaded.node_named("a_b").args == (inner_back,)
    assert loaded.node_named("a_b").is_impure()
    assert dumps(loaded) == dumps(outer)


def test_graphs_that_nest_in_a_ring_are_refused() -> None:
    graph = Graph()
    graph.output(graph)
    with pytest.raises(UnsavableError, match="ring"):
        dumps(graph)


class Unit:
    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unit) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def test_registered_leaves_survive_and_unregistered_ones_are_named() -> None:
    graph = one(Unit("metre"))
    with pytest.raises(UnsavableError, match="node add.*Unit.*register_argument_type"):
        dumps(graph)
    register_argument_type(
        Unit,
        name="tests.unit",
        format=lambda u: f"<{u.name}>",
        encode=lambda u: u.name,
        decode=lambda text: Unit(text),
    )
    assert "(%x, <metre>)" in str(graph)
    data = dumps(graph)
    assert loads(data).node_named("add").args[1] == Unit("metre")
    unknown = loads(data.replace(b"tests.unit", b"tests.none"))
    assert unknown.node_named("add").args[1] == OpaqueLeaf("tests.none", "metre")
    assert dumps(unknown) == data.replace(b"tests.unit", b"tests.none")


def test_targets_of_absent_modules_are_opaque_until_resolved() -> None:
    graph = Graph()
    graph.call_function(OpaqueTarget("this.module"))
    graph.call_function(OpaqueTarget("colorsys.rgb_to_hsv"))
    sys.modules.pop("colorsys", None)
    loaded = loads(dumps(graph))
    assert not diff(loaded, graph)
    assert "colorsys" not in sys.modules
    target: Any = loaded.node_named("rgb_to_hsv").target
    assert target == OpaqueTarget("colorsys.rgb_to_hsv")
    with pytest.raises(TargetError, match="resolve"):
        target(1, 2, 3)
    import colorsys

    assert target.resolve() is colorsys.rgb_to_hsv
    assert loads(dumps(graph)).node_named("rgb_to_hsv").target is colorsys.rgb_to_hsv
    with pytest.raises(TargetError, match="no callable"):
        OpaqueTarget("colorsys.nothing.at.all").resolve()
    with pytest.raises(TargetError, match="no callable"):
        OpaqueTarget("no_such_module.f").resolve()


def test_a_target_whose_name_leads_elsewhere_is_refused() -> None:
    def dumps(graph: Graph) -> None: ...

    dumps.__module__ = "fx.ir"
    graph = Graph()
    graph.call_function(dumps)
    with pytest.raises(UnsavableError, match="node dumps.*register_target"):
        fx.ir.dumps(graph)


def test_a_node_that_no_file_could_bring_back_is_refused() -> None:
    graph = Graph()
    graph.create_node("output", "output")
    with pytest.raises(UnsavableError, match="output"):
        dumps(graph)


def spoiled(change: Any) -> bytes:
    graph = one([1])
    graph.output(graph.node_named("add"))
    data = json.loads(dumps(graph))
    change(data, data["graphs"][0]["nodes"])
    return json.dumps(data).encode()


HOSTILE: list[tuple[str, Any]] = [
    ("does not stand before", lambda d, n: n[1].update(args=[{"node": 1}])),
    ("does not stand before", lambda d, n: n[1].update(args=[{"node": -1}])),
    ("does not stand before", lambda d, n: n[1].update(args=[{"node": True}])),
    ("does not stand behind", lambda d, n: n[1].update(args=[{"graph": 0}])),
    ("does not stand behind", lambda d, n: d["graphs"][0].update(nested={"a": 0})),
    ("no kind of value", lambda d, n: n[1].update(args=[{"eval": "1"}])),
    ("one key", lambda d, n: n[1].update(args=[{"node": 0, "graph": 0}])),
    ("no free name", lambda d, n: n[1].update(name="x")),
    ("no free name", lambda d, n: n[1].update(name="import os")),
    ("no free name", lambda d, n: n[1].update(name="class")),
    ("parameter name", lambda d, n: n[0].update(target="a b")),
    ("op", lambda d, n: n[1].update(op="root")),
    ("call_moon", lambda d, n: n[1].update(op="call_moon")),
    ("uid", lambda d, n: n[1].update(uid=0)),
    ("uid", lambda d, n: n[1].update(uid=10)),
    ("holds no graph", lambda d, n: d.update(graphs=[])),
    ("format", lambda d, n: d.update(format="pickle")),
    ("format version", lambda d, n: d.update(version=[0, 0])),
    ("int", lambda d, n: n[1].update(uid="0")),
    ("makes no node", lambda d, n: n[1].update(args=[{"int": "zzz"}])),
    ("makes no node", lambda d, n: n[1].update(args=[{"float": "zzz"}])),
    ("makes no node", lambda d, n: n[1].update(args=[{"bytes": "?"}])),
    ("list of 3", lambda d, n: n[1].update(args=[{"slice": [1]}])),
    ("needs integers", lambda d, n: n[1].update(args=[{"range": ["a", 1, 1]}])),
    ("makes no node", lambda d, n: n[1].update(args=[{"range": [1, 2, 0]}])),
    ("named tuple", lambda d, n: n[1].update(args=[{"named": ["m.N", ["a); import os; (b"], [1]]}])),
    ("makes no node", lambda d, n: n[1].update(args=[{"named": ["m.N", ["_a"], [1]]}])),
    ("key", lambda d, n: n[1].update(args=[{"dict": [[{"node": 0}, 1]]}])),
    ("list of 2", lambda d, n: n[1].update(args=[{"dict": [[{"dict": [[1, {"leaf": 3}]]}, 1]]}])),
    ("annotation", lambda d, n: n[1].update(type=[1])),
    ("string", lambda d, n: n[1].update(args=[{"name": 1}])),
    ("output cannot have", lambda d, n: n[2].update(args=[])),
    ("placeholder cannot have", lambda d, n: n[0].update(args=[1, 2])),
]  # fmt: skip


@pytest.mark.parametrize(("message", "change"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_spoiled_file_is_refused_with_its_place(message: str, change: Any) -> None:
    with pytest.raises(FileFormatError, match=message):
        loads(spoiled(change))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                "node tuple dict slice named leaf graph name int float complex bytes range ellipsis generic text".split()
            ),
            inner,
            max_size=2,
        )
    ),
    max_leaves=9,
)
FIELDS = st.sampled_from(["name", "op", "target", "uid", "args", "kwargs", "type", "meta"])


def rich() -> Graph:
    graph = one([1, (2.5, {"a": slice(None, 3)}), b"x", 1j, range(3)])
    graph.get_attr("part")
    graph.nested["part"] = one("inner")
    graph.output(graph.node_named("add"))
    return graph


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_files_changed_at_random_load_as_sound_graphs_or_are_refused(data: st.DataObject) -> None:
    content = json.loads(dumps(rich()))
    nodes = [node for graph in content["graphs"] for node in graph["nodes"]]
    for _ in range(data.draw(st.integers(1, 3))):
        data.draw(st.sampled_from(nodes))[data.draw(FIELDS)] = data.draw(JSON)
    loads_or_refuses(json.dumps(content).encode())


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=3)), min_size=1, max_size=4))
def test_files_with_bytes_changed_load_as_sound_graphs_or_are_refused(edits: list[tuple[int, bytes]]) -> None:
    raw = bytearray(dumps(rich()))
    for place, new in edits:
        place %= len(raw)
        raw[place : place + len(new)] = new
    loads_or_refuses(bytes(raw))


def loads_or_refuses(raw: bytes) -> None:
    try:
        loaded = loads(raw)
    except FileFormatError:
        return
    loaded.lint()
    assert not diff(loads(dumps(loaded)), loaded)


def test_every_truncation_is_refused() -> None:
    data = dumps(one([1, (2, {"a": 3})]))
    for length in range(len(data)):
        with pytest.raises(FileFormatError):
            loads(data[:length])


def test_a_newer_major_version_says_to_upgrade_and_a_newer_minor_one_loads() -> None:
    with pytest.raises(NewerFormatError, match="upgrade"):
        loads(spoiled(lambda d, n: d.update(version=[2, 0], graphs="anything at all")))
    assert loads(spoiled(lambda d, n: (d.update(version=[1, 9]), n[0].update(new_field=1)))).node_named("x")


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\x80\x04", b"null", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_file_is_refused(data: bytes) -> None:
    with pytest.raises(FileFormatError):
        loads(data)


def test_deep_nesting_is_refused_and_does_not_crash() -> None:
    deep = b'{"tuple":[' * 50_000 + b"]}" * 50_000
    data = dumps(one("HERE")).replace(b'"HERE"', deep)
    with pytest.raises(FileFormatError, match="deep"):
        loads(data)


def test_nothing_named_in_a_file_is_imported_or_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    called: list[int] = []
    monkeypatch.setattr(fx.ir, "bomb", lambda *args: called.append(1), raising=False)
    for target in ("trap.f", "fx.ir.bomb", "os.system", "fx.ir.types.__getattr__"):
        loaded = loads(
            spoiled(lambda d, n, target=target: n[1].update(target=target, args=[{"name": target}]))
        )
        loaded.lint()
        str(loaded)
        loaded.eliminate_dead_code()
    assert not called
    assert "trap" not in sys.modules


def test_the_depth_of_a_graph_needs_no_stack() -> None:
    graph = Graph()
    node = graph.placeholder("x")
    for _ in range(5000):
        node = graph.call_function(operator.neg, (node,))
    graph.output(node)
    assert not diff(loads(dumps(graph)), graph)


def test_the_schema_that_ships_speaks_of_the_same_fields() -> None:
    schema = json.loads((Path(fx.ir.__file__).parent / "serialize" / "format.schema.json").read_text())
    definitions = schema["$defs"]
    for name, record in (("graph", GraphRecord), ("node", NodeRecord)):
        fields = {field.encode_name: field.required for field in msgspec.structs.fields(record)}
        assert set(definitions[name]["properties"]) == set(fields)
        assert set(definitions[name]["required"]) == {field for field, required in fields.items() if required}
    assert set(schema["required"]) == {field.encode_name for field in msgspec.structs.fields(File)}
    from fx.ir.serialize.decode import _DECODERS

    kinds = {
        next(iter(option["properties"])) for option in definitions["value"]["anyOf"] if "properties" in option
    }
    assert kinds == set(_DECODERS)


def test_the_format_document_speaks_of_every_kind_of_value() -> None:
    from fx.ir.serialize.decode import _DECODERS

    text = (Path(fx.ir.__file__).parent / "serialize" / "FORMAT.md").read_text()
    assert all(f'`{{"{kind}":' in text for kind in _DECODERS)
