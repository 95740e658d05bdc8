"""Rebuilding, one rule per kind of variable; each pushes exactly one value."""

from collections import deque

import torch

from dynamo.eval.bytecode import create
from dynamo.eval.errors import Outlives
from dynamo.eval.models.operators import UnionVariable
from dynamo.eval.models.pure import NumericLimitsVariable
from dynamo.eval.rebuild import runtime
from dynamo.eval.rebuild.emitter import Emitter, Unrebuildable, rebuilds
from dynamo.eval.rebuild.sources import load_source
from dynamo.eval.variables.base import VariableTracker
from dynamo.eval.variables.binding import BoundBuiltinVariable, BuiltinVariable
from dynamo.eval.variables.cached import CachedFunctionVariable
from dynamo.eval.variables.cell import CellVariable
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantMethodVariable, ConstantVariable, OpaqueConstant
from dynamo.eval.variables.context import GradDecoratedVariable, GradModeVariable
from dynamo.eval.variables.deques import DequeVariable
from dynamo.eval.variables.dictionary import (
    DefaultDictVariable,
    DictVariable,
    DictViewVariable,
)
from dynamo.eval.variables.entry_point import EntryPointVariable
from dynamo.eval.variables.exception import ExceptionVariable
from dynamo.eval.variables.function import MethodVariable, NestedFunctionVariable
from dynamo.eval.variables.generator import GeneratorVariable
from dynamo.eval.variables.iterator import SequenceIteratorVariable
from dynamo.eval.variables.lookup import builtin_layout
from dynamo.eval.variables.module import NNModuleVariable
from dynamo.eval.variables.null import NullVariable
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.partial import GetterVariable, PartialVariable
from dynamo.eval.variables.sequence import (
    BoundMethodVariable,
    ListVariable,
    NamedTupleVariable,
    RangeVariable,
    SizeVariable,
    SliceVariable,
    TupleVariable,
)
from dynamo.eval.variables.sets import SetVariable
from dynamo.eval.variables.symbolic import SymbolicVariable
from dynamo.eval.variables.tensor import StructSequenceVariable, TensorMethodVariable, TensorVariable
from dynamo.eval.variables.torch_function import TorchVariable


@rebuilds(
    ConstantVariable, OpaqueConstant, ClassVariable, BuiltinVariable, TorchVariable, EntryPointVariable,
    CachedFunctionVariable, UnionVariable, NumericLimitsVariable,
)  # fmt: skip
def rebuild_constant(emit: Emitter, var: ConstantVariable) -> None:
    emit.constant(var.value)


@rebuilds(NullVariable)
def rebuild_null(emit: Emitter, var: NullVariable) -> None:
    emit.add(create.push_null())


@rebuilds(TensorVariable)
def rebuild_tensor(emit: Emitter, var: TensorVariable) -> None:
    emit.load_node(var.node)


@rebuilds(SymbolicVariable)
def rebuild_symbolic(emit: Emitter, var: SymbolicVariable) -> None:
    if var.source is not None:
        load_source(emit, var.source)
    else:
        emit.load_node(var.node)


def _items(emit: Emitter, items: list[VariableTracker]) -> None:
    for item in items:
        emit.load(item)


@rebuilds(TupleVariable)
def rebuild_tuple(emit: Emitter, var: TupleVariable) -> None:
    _items(emit, var.items)
    emit.add(create.build_tuple(len(var.items)))


@rebuilds(ListVariable)
def rebuild_list(emit: Emitter, var: ListVariable) -> None:
    _items(emit, var.items)
    emit.add(create.build_list(len(var.items)))


@rebuilds(SizeVariable)
def rebuild_size(emit: Emitter, var: SizeVariable) -> None:
    if var.varies:
        emit.callable(torch.Size)
        rebuild_tuple(emit, var)
        emit.call(1)
    else:
        emit.constant(var.as_python_constant())


@rebuilds(NamedTupleVariable)
def rebuild_namedtuple(emit: Emitter, var: NamedTupleVariable) -> None:
    emit.callable(var.named_kind._make)
    rebuild_tuple(emit, var)
    emit.call(1)


@rebuilds(StructSequenceVariable)
def rebuild_struct_sequence(emit: Emitter, var: StructSequenceVariable) -> None:
    emit.callable(var.struct_kind)
    rebuild_tuple(emit, var)
    emit.call(1)


@rebuilds(RangeVariable)
def rebuild_range(emit: Emitter, var: RangeVariable) -> None:
    emit.constant(var.value)


@rebuilds(SliceVariable)
def rebuild_slice(emit: Emitter, var: SliceVariable) -> None:
    _items(emit, var.parts)
    emit.add(create.build_slice(3))


@rebuilds(DictVariable, DefaultDictVariable)
def rebuild_dict(emit: Emitter, var: DictVariable) -> None:
    if var.kind is not dict:
        emit.callable(var.kind)
        if isinstance(var, DefaultDictVariable):
            emit.load(var.factory)
    _entries(emit, var)
    if var.kind is not dict:
        emit.call(2 if isinstance(var, DefaultDictVariable) else 1)


def _entries(emit: Emitter, var: DictVariable) -> None:
    for key, value in var.entries.values():
        emit.load(key)
        emit.load(value)
    emit.add(create.build_map(len(var.entries)))


@rebuilds(SetVariable)
def rebuild_set(emit: Emitter, var: SetVariable) -> None:
    if var.kind is frozenset:
        emit.callable(frozenset)
    _items(emit, list(var.entries.values()))
    emit.add(create.build_set(len(var.entries)))
    if var.kind is frozenset:
        emit.call(1)


@rebuilds(PartialVariable)
def rebuild_partial(emit: Emitter, var: PartialVariable) -> None:
    emit.callable(runtime.make_partial)
    emit.load(var.function)
    _items(emit, var.args)
    emit.add(create.build_tuple(len(var.args)))
    for name, value in var.kwargs.items():
        emit.constant(name)
        emit.load(value)
    emit.add(create.build_map(len(var.kwargs)))
    emit.call(3)


@rebuilds(GetterVariable)
def rebuild_getter(emit: Emitter, var: GetterVariable) -> None:
    function, parts = var.value.__reduce__()
    emit.callable(function)
    for part in parts:
        emit.constant(part)
    emit.call(len(parts))


@rebuilds(DequeVariable)
def rebuild_deque(emit: Emitter, var: DequeVariable) -> None:
    emit.callable(deque)
    _items(emit, var.items)
    emit.add(create.build_list(len(var.items)))
    emit.constant(var.maxlen)
    emit.call(2)


@rebuilds(DictViewVariable)
def rebuild_view(emit: Emitter, var: DictViewVariable) -> None:
    emit.load(var.owner)
    emit.add(create.load_method(var.part), create.call(0))


@rebuilds(SequenceIteratorVariable)
def rebuild_iterator(emit: Emitter, var: SequenceIteratorVariable) -> None:
    """An iterator over the same sequence, moved on; a range starts at the next number instead."""
    owner = var.owner
    if isinstance(owner, RangeVariable):
        emit.callable(iter)
        emit.constant(owner.value[var.position :])
        emit.call(1)
    elif isinstance(owner, ListVariable | TupleVariable) and not var.exhausted:
        emit.callable(runtime.list_iterator)
        emit.load(owner)
        emit.constant(var.position)
        emit.call(2)
    else:
        raise Unrebuildable(f"an iterator over {owner.describe()}")


@rebuilds(MethodVariable)
def rebuild_method(emit: Emitter, var: MethodVariable) -> None:
    emit.callable(runtime.bind_method)
    emit.load(var.function)
    emit.load(var.owner)
    emit.call(2)


@rebuilds(BoundMethodVariable, TensorMethodVariable, ConstantMethodVariable)
def rebuild_bound(
    emit: Emitter, var: BoundMethodVariable | TensorMethodVariable | ConstantMethodVariable
) -> None:
    owner = var.owner
    if isinstance(owner, GradModeVariable) and owner.before is not None and var.name == "__exit__":
        emit.callable(runtime.entered_grad_mode)
        emit.constant(owner.mode)
        emit.constant(owner.before)
        emit.call(2)
        return
    emit.load(owner)
    emit.add(create.load_attr(var.name))


@rebuilds(GradModeVariable)
def rebuild_grad_mode(emit: Emitter, var: GradModeVariable) -> None:
    if var.before is not None:
        raise Unrebuildable(f"{var.describe()} that was entered")
    emit.callable(runtime.grad_mode_context)
    emit.constant(var.mode)
    emit.call(1)


@rebuilds(GradDecoratedVariable)
def rebuild_grad_decorated(emit: Emitter, var: GradDecoratedVariable) -> None:
    emit.callable(runtime.decorated_with_grad_mode)
    emit.constant(var.mode)
    emit.load(var.function)
    emit.call(2)


@rebuilds(CellVariable)
def rebuild_cell(emit: Emitter, var: CellVariable) -> None:
    """The frame's own cell, one from outside, or a new one filled later (its content may refer to it)."""
    if var.local_name is not None:
        emit.local_cells.add(var.local_name)
        emit.add(create.load_closure(var.local_name))
        return
    if var.source is not None:
        load_source(emit, var.source)
        return
    emit.callable(runtime.empty_cell)
    emit.call(0)
    emit.keep(var)
    content = var.content
    if content is not None:

        def fill() -> None:
            emit.load(content)
            emit.load(var)
            emit.add(create.store_attr("cell_contents"))

        emit.later.append(fill)


@rebuilds(NestedFunctionVariable)
def rebuild_function(emit: Emitter, var: NestedFunctionVariable) -> None:
    """Made in this frame's globals, or in those of the followed function whose code made it."""
    emit.callable(runtime.make_function)
    emit.constant(var.code)
    if var.namespace_source is None:
        emit.add(*create.make_function(runtime.PROBE), create.load_attr("__globals__"))
    else:
        load_source(emit, var.namespace_source)
    for part in (var.defaults, var.keyword_defaults, var.annotations):
        if part is None:
            emit.constant(None)
        else:
            emit.load(part)
    _items(emit, list(var.closure))
    emit.add(create.build_tuple(len(var.closure)))
    emit.call(6)


@rebuilds(BoundBuiltinVariable)
def rebuild_bound_builtin(emit: Emitter, var: BoundBuiltinVariable) -> None:
    emit.callable(runtime.bind_builtin)
    emit.constant(var.method)
    emit.load(var.owner)
    emit.call(2)


@rebuilds(GeneratorVariable)
def rebuild_generator(emit: Emitter, var: GeneratorVariable) -> None:
    """Python makes it instead; one with a ``try`` or ``with`` must also be dropped when Python drops it."""
    what = f"{var.describe()} that is used outside of the graph"
    if var.frame.has_blocks:
        raise Unrebuildable(what)
    raise Outlives(what, var.made_at)


@rebuilds(ExceptionVariable)
def rebuild_exception(emit: Emitter, var: ExceptionVariable) -> None:
    """One that was not raised: it has no traceback yet."""
    if var.raised_at is not None:
        raise Outlives(f"{var.describe()} that was raised and is kept", var.raised_at)
    if var.arguments is None or var.cause is not None or var.context is not None:
        raise Unrebuildable(f"{var.describe()} whose arguments are not known")
    assert var.class_var is not None
    emit.callable(runtime.new_exception)
    emit.load(var.class_var)
    _items(emit, var.arguments)
    emit.add(create.build_tuple(len(var.arguments)))
    emit.call(2)
    emit.keep(var)

    def fill() -> None:
        emit.callable(runtime.fill_object)
        emit.load(var)
        for name, value in var.fresh_attributes.items():
            emit.constant(name)
            emit.load(value)
        emit.add(create.build_map(len(var.fresh_attributes)))
        emit.call(2)
        emit.add(create.pop_top())

    if var.fresh_attributes:
        emit.later.append(fill)


@rebuilds(UserObjectVariable, NNModuleVariable)
def rebuild_object(emit: Emitter, var: UserObjectVariable) -> None:
    """An object that the frame made: empty first, since its attributes may refer to it."""
    assert var.class_var is not None
    layout = builtin_layout(var.kind)
    assert layout is not None
    emit.callable(layout.__new__)
    emit.load(var.class_var)
    if isinstance(var.content, TupleVariable):
        rebuild_tuple(emit, var.content)
    elif isinstance(var.content, SetVariable) and layout is frozenset:
        rebuild_set(emit, var.content)
    emit.call(2 if layout in (tuple, frozenset) else 1)
    emit.keep(var)

    def fill() -> None:
        emit.callable(runtime.fill_object)
        emit.load(var)
        for name, value in var.fresh_attributes.items():
            emit.constant(name)
            emit.load(value)
        emit.add(create.build_map(len(var.fresh_attributes)))
        emit.call(2)
        emit.add(create.pop_top())

    def fill_content() -> None:
        content = var.content
        if isinstance(content, DictVariable):
            emit.callable(runtime.replace_dict)
        elif isinstance(content, ListVariable):
            emit.callable(runtime.replace_list)
        elif isinstance(content, SetVariable):
            emit.callable(runtime.replace_set)
        emit.load(var)
        if isinstance(content, DictVariable):
            _entries(emit, content)
        elif isinstance(content, ListVariable):
            rebuild_list(emit, content)
        elif isinstance(content, SetVariable):
            rebuild_set(emit, content)
        emit.call(2)
        emit.add(create.pop_top())

    if var.content is not None and layout not in (tuple, frozenset):
        emit.later.append(fill_content)
    if not var.fresh_attributes:
        return
    if all(isinstance(value, ConstantVariable) for value in var.fresh_attributes.values()):
        fill()  # at once: it may be a key, whose hash reads its attributes
    else:
        emit.later.append(fill)
