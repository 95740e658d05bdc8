"""Effects as bytecode.

Two passes: first every value and target that the effects mention is loaded and held (sources still lead where they
led at entry), then the stores happen in the order of the log.
"""

import types
from collections.abc import Callable
from typing import Any

from dynamo.eval.bytecode import create
from dynamo.eval.effects import AttributeWrite, CellWrite, ContentChange, Effect, GlobalWrite
from dynamo.eval.rebuild import runtime
from dynamo.eval.rebuild.emitter import Emitter, Unrebuildable
from dynamo.eval.variables.base import VariableTracker
from dynamo.eval.variables.cell import CellVariable
from dynamo.eval.variables.deques import DequeVariable
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.lookup import is_data_descriptor, static_lookup
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.sequence import ListVariable
from dynamo.eval.variables.sets import SetVariable


def replay_effects(emit: Emitter, namespace: dict[str, Any], *, every_cell: bool) -> None:
    """Write all effects of the capture.

    Args:
        namespace: globals of the root frame.
        every_cell: also store to the frame's own cells that nothing rebuilt refers to, as a break needs.

    Raises:
        Unrebuildable: a value that cannot be made, or a target that no instruction reaches.
    """
    private = [effect for effect in emit.output.effects if not every_cell and _is_private(effect)]
    stores = [_prepare(emit, effect, namespace) for effect in emit.output.effects if effect not in private]
    while emit.later or (emit.local_cells and private):
        if emit.later:
            emit.later.pop(0)()
        else:
            stores.extend(_prepare(emit, effect, namespace) for effect in private)
            private = []
    for store in stores:
        store()


def _is_private(effect: Effect) -> bool:
    """Whether only the frame itself, or a function that it made, can see the effect."""
    cell = effect.cell if isinstance(effect, CellWrite) else None
    return isinstance(cell, CellVariable) and cell.local_name is not None


def _held(emit: Emitter, value: object) -> VariableTracker | None:
    return emit.hold(value) if isinstance(value, VariableTracker) else None


def _prepare(emit: Emitter, effect: Effect, namespace: dict[str, Any]) -> Callable[[], None]:
    match effect:
        case AttributeWrite(owner, name, value):
            return _attribute(emit, _held(emit, owner), name, _held(emit, value))
        case CellWrite(cell, value):
            return _cell(emit, cell, _held(emit, value))
        case GlobalWrite(target, name, value):
            if target is not namespace:
                raise Unrebuildable(f"the store to global {name!r} of another module")
            return _global(emit, name, _held(emit, value))
        case ContentChange(container):
            return _content(emit, container)


def _attribute(
    emit: Emitter, owner: VariableTracker | None, name: str, value: VariableTracker | None
) -> Callable[[], None]:
    assert owner is not None
    runs_code = _stores_run_code(owner, name)
    if value is None:

        def delete() -> None:
            emit.callable(runtime.delete_own_attribute if runs_code else runtime.delete_attribute)
            emit.load(owner)
            emit.constant(name)
            emit.call(2)
            emit.add(create.pop_top())

        return delete

    def store_own() -> None:
        emit.callable(runtime.store_attribute)
        emit.load(owner)
        emit.constant(name)
        emit.load(value)
        emit.call(3)
        emit.add(create.pop_top())

    def store() -> None:
        emit.load(value)
        emit.load(owner)
        emit.add(create.store_attr(name))

    return store_own if runs_code else store


def _stores_run_code(owner: VariableTracker, name: str) -> bool:
    """Whether a plain store would run more than `object.__setattr__`, which capture has followed already."""
    if not isinstance(owner, UserObjectVariable):
        return False
    found = static_lookup(owner.kind, name)
    return (
        any(
            static_lookup(owner.kind, hook) is not static_lookup(object, hook)
            for hook in ("__setattr__", "__delattr__")
        )
        or is_data_descriptor(found)
        and not isinstance(found, types.MemberDescriptorType)
    )


def _cell(emit: Emitter, cell: object, value: VariableTracker | None) -> Callable[[], None]:
    assert isinstance(cell, CellVariable)
    name = cell.local_name
    if name is None:
        emit.hold(cell)

    def store() -> None:
        if name is not None:
            if value is None:
                emit.constant(None)
                emit.add(create.store_deref(name), create.delete_deref(name))
            else:
                emit.load(value)
                emit.add(create.store_deref(name))
        elif value is None:
            emit.callable(runtime.empty_a_cell)
            emit.load(cell)
            emit.call(1)
            emit.add(create.pop_top())
        else:
            emit.load(value)
            emit.load(cell)
            emit.add(create.store_attr("cell_contents"))

    return store


def _global(emit: Emitter, name: str, value: VariableTracker | None) -> Callable[[], None]:
    def store() -> None:
        if value is None:
            # It may not be there: the captured code may have stored it first.
            emit.constant(None)
            emit.add(create.store_global(name), create.delete_global(name))
        else:
            emit.load(value)
            emit.add(create.store_global(name))

    return store


def _content(emit: Emitter, container: object) -> Callable[[], None]:
    """Replace the contents: the new ones are gathered now, in a fresh container, and moved in later."""
    assert isinstance(container, ListVariable | DequeVariable | DictVariable | SetVariable)
    emit.hold(container)
    if isinstance(container, ListVariable | DequeVariable):
        is_list = isinstance(container, ListVariable)
        function: Callable[..., None] = runtime.replace_list if is_list else runtime.replace_deque
        for item in container.items:
            emit.load(item)
        emit.add(create.build_list(len(container.items)))
    elif isinstance(container, DictVariable):
        function = runtime.replace_dict
        for key, value in container.entries.values():
            emit.load(key)
            emit.load(value)
        emit.add(create.build_map(len(container.entries)))
    else:
        function = runtime.replace_set
        for item in container.entries.values():
            emit.load(item)
        emit.add(create.build_set(len(container.entries)))
    contents = emit.temporary()

    def store() -> None:
        emit.callable(function)
        emit.load(container)
        emit.add(create.load_fast(contents))
        emit.call(2)
        emit.add(create.pop_top())

    return store
