"""Bytecode that follows a `Source` from the frame, by kind of source."""

from collections.abc import Callable
from functools import singledispatch
from typing import Protocol

from dynamo.eval.bytecode import Instruction, create
from dynamo.eval.errors import CaptureError
from dynamo.eval.rebuild import runtime
from dynamo.guards import (
    AttrSource,
    BuiltinSource,
    CellSource,
    ClassAttrSource,
    ClosureSource,
    ConstantSource,
    FunctionPartSource,
    GlobalSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    Source,
    TypeSource,
    WeakRefCallSource,
)


class Sink(Protocol):
    """Where instructions go."""

    @property
    def cell_names(self) -> frozenset[str]: ...
    def add(self, *instructions: Instruction) -> None: ...
    def constant(self, value: object) -> None: ...
    def callable(self, value: object) -> None: ...
    def call(self, count: int) -> None: ...


@singledispatch
def _load(source: Source, sink: Sink) -> None:
    raise CaptureError(f"no bytecode follows {source.name()}")


def load_source(sink: Sink, source: Source) -> None:
    """Push the value that `source` leads to."""
    _load(source, sink)


@_load.register
def _(source: LocalSource, sink: Sink) -> None:
    name = source.local_name
    sink.add(create.load_deref(name) if name in sink.cell_names else create.load_fast(name))


@_load.register
def _(source: ClosureSource, sink: Sink) -> None:
    sink.add(create.load_deref(source.free_name))


@_load.register
def _(source: CellSource, sink: Sink) -> None:
    sink.add(create.load_closure(source.free_name))


@_load.register
def _(source: GlobalSource, sink: Sink) -> None:
    sink.add(create.load_global(source.global_name))


@_load.register
def _(source: BuiltinSource, sink: Sink) -> None:
    sink.add(create.load_global(source.builtin_name))


@_load.register
def _(source: ConstantSource, sink: Sink) -> None:
    sink.constant(source.value)


@_load.register
def _(source: AttrSource, sink: Sink) -> None:
    _load(source.origin, sink)
    sink.add(create.load_attr(source.attr))


@_load.register
def _(source: FunctionPartSource, sink: Sink) -> None:
    _load(source.origin, sink)
    sink.add(create.load_attr(source.part))


@_load.register
def _(source: ItemSource, sink: Sink) -> None:
    _load(source.origin, sink)
    sink.constant(source.key)
    sink.add(create.binary_subscr())


def _through(function: Callable[..., object], source: Source, sink: Sink, *operands: object) -> None:
    sink.callable(function)
    _load(source, sink)
    for operand in operands:
        sink.constant(operand)
    sink.call(1 + len(operands))


@_load.register
def _(source: TypeSource, sink: Sink) -> None:
    _through(type, source.origin, sink)


@_load.register
def _(source: ClassAttrSource, sink: Sink) -> None:
    _through(runtime.class_attribute, source.origin, sink, source.attr)


@_load.register
def _(source: InstanceDictSource, sink: Sink) -> None:
    _through(runtime.instance_dict, source.origin, sink)


@_load.register
def _(source: WeakRefCallSource, sink: Sink) -> None:
    _through(runtime.referent, source.origin, sink)
