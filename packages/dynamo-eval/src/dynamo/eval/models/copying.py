"""`copy.copy` and `copy.deepcopy` of containers and plain objects."""

import copy
import types
from collections.abc import Callable
from typing import Any, Final

from dynamo.eval.errors import GraphBreak
from dynamo.eval.models.builtin_calls import Args, Kwargs, expect
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.deques import DequeVariable
from dynamo.eval.variables.dictionary import DefaultDictVariable, DictVariable
from dynamo.eval.variables.function import FunctionVariable
from dynamo.eval.variables.instance_dict import InstanceDictVariable
from dynamo.eval.variables.lookup import MISSING, static_lookup
from dynamo.eval.variables.module import NNModuleVariable
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.sequence import ListVariable, NamedTupleVariable, SizeVariable, TupleVariable
from dynamo.eval.variables.sets import SetVariable

_Each = Callable[[VariableTracker], VariableTracker]
#: methods that change what `copy` does with an object
_PROTOCOL: Final = (
    "__copy__", "__deepcopy__", "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs_ex__",
    "__getnewargs__",
)  # fmt: skip


@models(copy.copy)
def call_copy(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("copy", args, kwargs, 1)
    if _is_atom(value) or isinstance(value, TupleVariable):
        return value
    return _copied(tx, value, lambda item: item, {})


@models(copy.deepcopy)
def call_deepcopy(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("deepcopy", args, kwargs, 1)
    return _deep(tx, value, {})


def _is_atom(value: VariableTracker) -> bool:
    frozen = isinstance(value, SetVariable) and value.kind is frozenset
    return isinstance(value, ConstantVariable | ClassVariable | FunctionVariable | SizeVariable) or frozen


def _deep(tx: Translator, value: VariableTracker, memo: dict[int, VariableTracker]) -> VariableTracker:
    value = realize(value)
    if _is_atom(value):
        return value
    known = memo.get(id(value))
    if known is not None:
        return known
    if type(value) in (TupleVariable, NamedTupleVariable):
        assert isinstance(value, TupleVariable)
        items = [_deep(tx, item, memo) for item in value.items]
        if all(new is realize(old) for new, old in zip(items, value.items, strict=True)):
            return value
        made: VariableTracker = TupleVariable(items)
        if isinstance(value, NamedTupleVariable):
            made = NamedTupleVariable(items, value.named_kind)
        return memo.setdefault(id(value), made)
    return _copied(tx, value, lambda item: _deep(tx, item, memo), memo)


def _copied(
    tx: Translator, value: VariableTracker, each: _Each, memo: dict[int, VariableTracker]
) -> VariableTracker:
    """A new container or object with ``each`` of its parts; `memo` knows it before its parts are copied."""
    if isinstance(value, ListVariable):
        made_list = ListVariable([])
        memo[id(value)] = made_list
        made_list.items.extend([each(item) for item in value.items])
        return made_list
    if isinstance(value, DequeVariable):
        made_deque = DequeVariable([], value.maxlen)
        memo[id(value)] = made_deque
        made_deque.items.extend([each(item) for item in value.items])
        return made_deque
    if isinstance(value, DictVariable):
        made_dict = (
            DefaultDictVariable([], value.factory)
            if isinstance(value, DefaultDictVariable)
            else DictVariable([], value.kind)
        )
        memo[id(value)] = made_dict
        for key, item in list(value.entries.values()):
            made_dict.set_item(tx, each(key), each(item))
        return made_dict
    if isinstance(value, SetVariable):
        return memo.setdefault(id(value), value.copy())
    if isinstance(value, UserObjectVariable):
        return _copied_object(tx, value, each, memo)
    raise GraphBreak(f"a copy of {value.describe()}")


def _copied_object(
    tx: Translator, value: UserObjectVariable, each: _Each, memo: dict[int, VariableTracker]
) -> VariableTracker:
    kind = value.kind
    if isinstance(value, NNModuleVariable) or value.content is not None or not _is_copied_plainly(kind):
        raise GraphBreak(f"a copy of {value.describe()}")
    made = UserObjectVariable(None, kind, None, value.class_variable())
    memo[id(value)] = made
    for key, item in InstanceDictVariable(value).snapshot(tx).entries.values():
        made.set_own(tx, str(key.as_python_constant()), each(item))
    return made


def _is_copied_plainly(kind: type) -> bool:
    """Whether a copy is an object of the class with the same attributes, and no code of the class runs."""
    own: list[Any] = [
        name for name in _PROTOCOL if static_lookup(kind, name) not in (MISSING, static_lookup(object, name))
    ]
    slots = any(
        isinstance(held, types.MemberDescriptorType)
        for base in kind.__mro__
        for held in base.__dict__.values()
    )
    plain_new = static_lookup(kind, "__new__") is static_lookup(object, "__new__")
    return not own and not slots and plain_new and not hasattr(kind, "__del__")
