"""GuardBuilder: what each guard kind demands, as clauses.

A kind looks at the value at capture and adds the clauses that must hold for it later.  Every container or object that
is stepped through gets a clause on its type first, so that no step can run code of a class that capture did not see.

Source: seed "TorchDynamo overview", part on making guards.
"""

from __future__ import annotations

import enum
import operator
import types
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, NamedTuple

import torch

from dynamo.guards import _check, ambient
from dynamo.guards.errors import GuardBuildError
from dynamo.guards.kinds.ambient import AmbientIs, ModesAre
from dynamo.guards.kinds.clause import Clause, Test, short
from dynamo.guards.kinds.containers import ClassHolds, HasAttribute, IteratorAt, Keys, Length, Member
from dynamo.guards.kinds.relations import Related
from dynamo.guards.kinds.tensors import TensorIs, tensor_spec
from dynamo.guards.kinds.values import (
    Equals,
    Holds,
    IsAlive,
    IsNotObject,
    IsObject,
    IsSingleton,
    IsUnbound,
    Same,
    Truth,
    TypeIs,
)
from dynamo.guards.parse import parse_source
from dynamo.guards.scope import GuardScope
from dynamo.guards.sources import (
    AttrSource,
    Guard,
    InstanceDictSource,
    ItemSource,
    Source,
    SuperSource,
    TypeSource,
)
from dynamo.guards.sources.steps import class_attribute, is_shadowed, ordered_keys

SINGLETONS: Final = (None, True, False, Ellipsis, NotImplemented)
_SINGLETON_IDS: Final = frozenset(id(value) for value in SINGLETONS)
_SCALARS: Final = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    type(...),
    range,
    slice,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)
_COLLECTIONS: Final = (tuple, frozenset, torch.Size, list, set, dict)
_MUTABLE: Final = (list, set, dict)
_SIZED: Final = (list, tuple, dict, set, frozenset, str)
_DESCRIPTORS: Final = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
)
_HEAP_TYPE: Final = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: set for a class that may die."""

_TRUTHS: Final = (*_SCALARS, *_COLLECTIONS)
_NAMED: Final = (type, types.FunctionType, types.BuiltinFunctionType)
_MODULE_DICTS: Final = ("_parameters", "_buffers", "_modules")
_HOOKS: Final = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)
_CLASS_PARTS: Final = ("forward", "__call__", "__getattr__")


def is_constant(value: object) -> bool:
    """Whether equality of this value can be checked exactly and its copy can be kept."""
    kind = type(value)
    if kind in _SCALARS or isinstance(value, enum.Enum):
        return True
    if kind is dict and isinstance(value, dict):
        return all(is_constant(key) and is_constant(item) for key, item in value.items())
    if kind in _COLLECTIONS and isinstance(value, Iterable):
        return all(is_constant(item) for item in value)
    return False


def has_weak_references(value: object) -> bool:
    """Whether the death of an object can be told."""
    return type(value).__weakrefoffset__ != 0


def outlives_checks(value: object) -> bool:
    """Whether an object belongs to a class that is never freed, so that keeping it keeps nothing of the user's."""
    return isinstance(value, _DESCRIPTORS) and not value.__objclass__.__flags__ & _HEAP_TYPE


def _copied(value: object) -> object:
    """A constant that later changes of the user's own containers do not reach."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if type(value) is list:
        return [_copied(item) for item in value]
    return set(value) if type(value) is set else value


class _Class(NamedTuple):
    """What clauses say of a class."""

    number: int
    name: str
    described: str


class GuardBuilder:
    """Collects the clauses of all guards of one check.

    Args:
        scope: the values at capture.

    Attributes:
        clauses: what was collected, each clause once, in the order of checking.
        tests: the native form of each.
    """

    def __init__(self, scope: GuardScope) -> None:
        self.scope: Final = scope
        self.clauses: list[Clause] = []
        self.tests: list[Test] = []
        self._seen: set[tuple[object, ...]] = set()
        self._watched: dict[int, object] = {}
        self._classes: dict[type, _Class] = {}
        self._typed: set[Source] = set()

    @property
    def watched(self) -> list[object]:
        """Objects whose ids the clauses hold: their death must end the check's validity."""
        return list(self._watched.values())

    def path(self, guard: Guard) -> Source:
        """The guard's source, read off its name when it brings none."""
        return guard.origin if guard.origin is not None else parse_source(guard.name, self.scope)

    def get(self, source: Source) -> object:
        """The value at capture. Raises: GuardBuildError when the source names nothing."""
        try:
            return source.load(self.scope)
        except (LookupError, AttributeError, TypeError) as error:
            raise GuardBuildError(source.name(), f"it cannot be read at capture ({error})") from error

    def add(self, clause: Clause) -> None:
        """Add a clause, after the type clauses of all that its source steps through; once."""
        base = clause.source.base
        if base is not None:
            self._require_types(clause.guard, base)
            if not isinstance(clause, IsUnbound):
                self._vouch_for_step(clause.guard, clause.source)
        test = clause.native()
        operand = test.operand if isinstance(test.operand, str) else id(test.operand)
        key = (clause.source, test.op, test.number, operand, test.other, test.place)
        known = len(self._seen)
        self._seen.add(key)  # one hash of the path, where asking first would take two
        if len(self._seen) > known:
            self.clauses.append(clause)
            self.tests.append(test)

    def watch(self, value: object) -> int:
        """The id of an object, which the check will follow to its death.

        What belongs to a class that never dies is kept instead (`outlives_checks`).
        """
        self._watched.setdefault(id(value), value)
        return id(value)

    def _class(self, cls: type) -> _Class:
        """The id of a class, which is watched, and its names: the same objects for all clauses."""
        found = self._classes.get(cls)
        if found is None:
            name = cls.__qualname__
            found = self._classes[cls] = _Class(self.watch(cls), name, f"of type {name}")
        return found

    def _described(self, value: object) -> str:
        """What an object is, without its repr: that of a tensor or a model takes milliseconds."""
        name = getattr(value, "__qualname__", None) if isinstance(value, _NAMED) else None
        return name if isinstance(name, str) else self._class(type(value)).described

    def _require_types(self, guard: Guard, source: Source) -> None:
        if source in self._typed:
            return
        if source.base is not None:
            self._require_types(guard, source.base)
            self._vouch_for_step(guard, source)
        self._type_is(guard, source, type(self.get(source)))

    def _vouch_for_step(self, guard: Guard, source: Source) -> None:
        """What a step needs before it is taken, so that it runs no code and meets no other object by chance."""
        if isinstance(source, SuperSource):
            self.watch(source.after)
        elif isinstance(source, AttrSource) and is_shadowed(self.get(source.origin), source.attr):
            self.add(Member(guard, InstanceDictSource(source.origin), source.attr, True))

    def _type_is(self, guard: Guard, source: Source, cls: type) -> None:
        known = len(self._typed)
        self._typed.add(source)
        if len(self._typed) > known:
            found = self._class(cls)
            self.add(TypeIs(guard, source, found.number, found.name))

    def _equals(self, guard: Guard, source: Source, value: object) -> None:
        self._typed.add(source)
        self.add(Equals(guard, source, value, self._class(type(value)).number))

    def _object_is(self, guard: Guard, source: Source, value: object) -> None:
        if id(value) in _SINGLETON_IDS:
            self.add(IsSingleton(guard, source, value))
        elif has_weak_references(value) or outlives_checks(value):
            self.add(IsObject(guard, source, self.watch(value), self._described(value)))
        elif is_constant(value) and type(value) not in _MUTABLE:
            self._equals(guard, source, value)
        else:
            raise GuardBuildError(
                source.name(),
                f"the identity of a {type(value).__qualname__} cannot be guarded: nothing tells when it dies "
                "and its address is used again; guard its type and contents",
            )

    def TYPE_MATCH(self, guard: Guard) -> None:
        """The exact type."""
        source = self.path(guard)
        self._type_is(guard, source, type(self.get(source)))

    def ID_MATCH(self, guard: Guard) -> None:
        """The very same object."""
        source = self.path(guard)
        self._object_is(guard, source, self.get(source))

    def NOT_NONE_MATCH(self, guard: Guard) -> None:
        """Anything but None."""
        self.add(IsNotObject(guard, self.path(guard), None))

    def EQUALS_MATCH(self, guard: Guard) -> None:
        """The same type and an equal constant: exact for -0.0, nan, bool against int, and inside containers.

        Raises: GuardBuildError for a value that is no constant.
        """
        source = self.path(guard)
        value = self.get(source)
        if id(value) in _SINGLETON_IDS or isinstance(value, enum.Enum):
            self._object_is(guard, source, value)
            return
        if not is_constant(value):
            raise GuardBuildError(
                source.name(),
                f"{type(value).__qualname__} has no exact equality; use TYPE_MATCH or ID_MATCH",
            )
        self._equals(guard, source, _copied(value))

    def CONSTANT_MATCH(self, guard: Guard) -> None:
        """EQUALS_MATCH for constants, ID_MATCH for anything else."""
        if is_constant(self.get(self.path(guard))):
            self.EQUALS_MATCH(guard)
        else:
            self.ID_MATCH(guard)

    def BOOL_MATCH(self, guard: Guard) -> None:
        """``value is True`` or ``value is False``. Raises: GuardBuildError for another value."""
        self._singleton_match(guard, (True, False))

    def NONE_MATCH(self, guard: Guard) -> None:
        """``value is None``. Raises: GuardBuildError for another value."""
        self._singleton_match(guard, (None,))

    def _singleton_match(self, guard: Guard, allowed: Sequence[object]) -> None:
        source = self.path(guard)
        value = self.get(source)
        if not any(value is one for one in allowed):
            raise GuardBuildError(source.name(), f"it is {short(value)}, not one of {list(allowed)}")
        self.add(IsSingleton(guard, source, value))

    def TRUTH_MATCH(self, guard: Guard) -> None:
        """``bool(value)``, for builtin types. Raises: GuardBuildError where truth would run code."""
        source = self.path(guard)
        value = self.get(source)
        if type(value) not in _TRUTHS:
            raise GuardBuildError(source.name(), f"the truth of {type(value).__qualname__} may run code")
        self._type_is(guard, source, type(value))
        self.add(Truth(guard, source, bool(value)))

    def LIST_LENGTH(self, guard: Guard) -> None:
        """The type and the number of items (list, tuple, dict, set, str)."""
        source = self.path(guard)
        value = self.get(source)
        if not isinstance(value, _SIZED):
            raise GuardBuildError(source.name(), f"{type(value).__qualname__} has no length to guard")
        builtin = next(cls for cls in _SIZED if isinstance(value, cls))
        if class_attribute(type(value), "__len__") is not class_attribute(builtin, "__len__"):
            raise GuardBuildError(
                source.name(), f"{type(value).__qualname__} defines __len__, which runs code"
            )
        self._type_is(guard, source, type(value))
        self.add(Length(guard, source, len(value)))

    SEQUENCE_LENGTH = LIST_LENGTH

    def TUPLE_ITERATOR_LEN(self, guard: Guard) -> None:
        """The position of a tuple iterator and how much it has left."""
        source = self.path(guard)
        value = self.get(source)
        if type(value) is not type(iter(())):
            raise GuardBuildError(source.name(), f"{type(value).__qualname__} is not a tuple iterator")
        self._type_is(guard, source, type(value))
        self.add(IteratorAt(guard, source, _check.tuple_iterator_index(value), operator.length_hint(value)))

    def DICT_KEYS(self, guard: Guard) -> None:
        """The type of a dict, and its keys in order."""
        source = self.path(guard)
        value = self.get(source)
        if not isinstance(value, dict):
            raise GuardBuildError(source.name(), f"{type(value).__qualname__} is not a dict")
        self._type_is(guard, source, type(value))
        self.add(Keys(guard, source, ordered_keys(value)))

    DICT_CONST_KEYS = DICT_KEYS
    DICT_KEYS_MATCH = DICT_KEYS

    def DICT_VERSION(self, guard: Guard) -> None:
        """A dict unchanged: its keys in order and the identity of every value."""
        source = self.path(guard)
        self.DICT_KEYS(guard)
        value = self.get(source)
        assert isinstance(value, dict)  # DICT_KEYS refused anything else
        for key, item in dict.items(value):
            self._object_is(guard, ItemSource(source, key), item)

    def DICT_CONTAINS(self, guard: Guard, key: Hashable, invert: bool = False) -> None:
        """A dict or set contains a key; ``invert``: does not."""
        source = self.path(guard)
        value = self.get(source)
        if not isinstance(value, dict | set | frozenset):
            raise GuardBuildError(source.name(), f"{type(value).__qualname__} is no dict or set")
        self._type_is(guard, source, type(value))
        self.add(Member(guard, source, key, not invert))

    SET_CONTAINS = DICT_CONTAINS

    def NOT_PRESENT_IN_DICT(self, guard: Guard, key: Hashable) -> None:
        """A dict or set does not contain a key."""
        self.DICT_CONTAINS(guard, key, invert=True)

    def NOT_PRESENT_IN_GENERIC_DICT(self, guard: Guard, attr: str) -> None:
        """The instance's own ``__dict__`` does not have a name: no shadow over the class attribute."""
        source = self.path(guard)
        self._type_is(guard, source, type(self.get(source)))
        self.add(Member(guard, InstanceDictSource(source), attr, False))

    NOT_PRESENT_IN_INSTANCE = NOT_PRESENT_IN_GENERIC_DICT

    def HASATTR(self, guard: Guard, attr: str | None = None) -> None:
        """Having an attribute, or lacking it, is as at capture; without ``attr`` the last attribute of the path."""
        source = self.path(guard)
        if attr is None:
            if not isinstance(source, AttrSource):
                raise GuardBuildError(source.name(), "HASATTR needs an attribute's path, or attr=")
            attr, source = source.attr, source.origin
        value = self.get(source)
        self._type_is(guard, source, type(value))
        self.add(HasAttribute(guard, source, attr, hasattr(value, attr)))

    def NAME_MATCH(self, guard: Guard) -> None:
        """The ``__name__`` of a class or function."""
        source = self.path(guard)
        value = self.get(source)
        if not isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
            raise GuardBuildError(source.name(), f"{type(value).__qualname__} has no name to guard")
        named = AttrSource(source, "__name__")
        self._type_is(guard, source, type(value))
        self._equals(guard, named, value.__name__)

    def CLASS_ATTR_MATCH(self, guard: Guard, attr: str) -> None:
        """What the value's class holds under a name is unchanged (or still nothing): patches are seen."""
        source = self.path(guard)
        cls = type(self.get(source))
        self._type_is(guard, source, cls)
        self._class_holds(guard, source, cls, attr)

    def _class_holds(self, guard: Guard, source: Source, cls: type, attr: str) -> None:
        held = class_attribute(cls, attr)
        number = 0 if held is None else self.watch(held)
        self.add(ClassHolds(guard, TypeSource(source), attr, number))

    def FUNCTION_MATCH(self, guard: Guard) -> None:
        """The same function with the same code object."""
        source = self.path(guard)
        value = self.get(source)
        if isinstance(value, types.MethodType):
            self.METHOD_MATCH(guard)
            return
        self._object_is(guard, source, value)
        if isinstance(value, types.FunctionType):
            self._object_is(guard, AttrSource(source, "__code__"), value.__code__)

    CLOSURE_MATCH = FUNCTION_MATCH

    def METHOD_MATCH(self, guard: Guard) -> None:
        """A bound method of the same function on the same object."""
        source = self.path(guard)
        value = self.get(source)
        if not isinstance(value, types.MethodType):
            raise GuardBuildError(source.name(), f"{type(value).__qualname__} is not a bound method")
        self._type_is(guard, source, types.MethodType)
        self._object_is(guard, AttrSource(source, "__func__"), value.__func__)
        self._object_is(guard, AttrSource(source, "__self__"), value.__self__)

    def FUNCTION_CODE_MATCH(self, guard: Guard) -> None:
        """Any function with the same code object (its closure and defaults have guards of their own)."""
        source = self.path(guard)
        value = self.get(source)
        if not isinstance(value, types.FunctionType):
            raise GuardBuildError(source.name(), f"{type(value).__qualname__} is not a Python function")
        self._type_is(guard, source, types.FunctionType)
        self._object_is(guard, AttrSource(source, "__code__"), value.__code__)

    def BUILTIN_MATCH(self, guard: Guard) -> None:
        """The same builtin."""
        self.ID_MATCH(guard)

    def MODULE_MATCH(self, guard: Guard) -> None:
        """The same Python module (``import`` kind)."""
        source = self.path(guard)
        value = self.get(source)
        if not isinstance(value, types.ModuleType):
            raise GuardBuildError(source.name(), f"{type(value).__qualname__} is not a Python module")
        self._object_is(guard, source, value)

    PYMODULE_MATCH = MODULE_MATCH

    def CLASS_MATCH(self, guard: Guard) -> None:
        """The same class."""
        self.ID_MATCH(guard)

    def WEAKREF_ALIVE(self, guard: Guard) -> None:
        """A weak reference whose object still lives."""
        source = self.path(guard)
        if not isinstance(self.get(source), weakref.ref):
            raise GuardBuildError(source.name(), "it is not a weak reference")
        self._type_is(guard, source, type(self.get(source)))
        self.add(IsAlive(guard, source))

    def OBJECT_ALIASING(self, guard: Guard, other: Source) -> None:
        """Two sources give one object, as at capture; also the name of DUPLICATE_INPUT."""
        self.add(Same(guard, self.path(guard), other, True))

    DUPLICATE_INPUT = OBJECT_ALIASING

    def NOT_ALIASING(self, guard: Guard, others: Sequence[Source]) -> None:
        """The source gives another object than each of the others."""
        source = self.path(guard)
        for other in others:
            self.add(Same(guard, source, other, False))

    def UNBOUND(self, guard: Guard) -> None:
        """The source names nothing: an unbound argument, an empty cell, an absent global or item."""
        source = self.path(guard)
        self.add(IsUnbound(guard, source))

    GLOBAL_ABSENT = UNBOUND

    def TENSOR_MATCH(
        self,
        guard: Guard,
        *,
        dynamic_dims: Sequence[int] | bool = (),
        storage_offset: bool = False,
        data_pointer: bool = False,
    ) -> None:
        """Exact class, dtype, device, layout, requires_grad, sizes, strides, dispatch keys and flags.

        Args:
            guard: the guard on a tensor.
            dynamic_dims: dimensions whose size is free (all strides then, too); True for all.
            storage_offset: also the storage offset.
            data_pointer: also the address of the data (a static input).
        """
        source = self.path(guard)
        value = self.get(source)
        if not isinstance(value, torch.Tensor):
            raise GuardBuildError(source.name(), f"{type(value).__qualname__} is not a tensor")
        spec = tensor_spec(value, dynamic_dims=dynamic_dims, offset=storage_offset, pointer=data_pointer)
        self._class(type(value))
        self._typed.add(source)
        self.add(TensorIs(guard, source, spec))

    def NN_MODULE(self, guard: Guard) -> None:
        """The same ``nn.Module`` in the same state: training flag, hooks, parameters, buffers, submodules, class code.

        Values of parameters may change; their metadata and identity may not.
        """
        source = self.path(guard)
        value = self.get(source)
        if not isinstance(value, torch.nn.Module):
            raise GuardBuildError(source.name(), f"{type(value).__qualname__} is not an nn.Module")
        self._type_is(guard, source, type(value))
        self._object_is(guard, source, value)
        self.MODULE_STATE(guard)

    def MODULE_STATE(self, guard: Guard) -> None:
        """The state part of NN_MODULE, for a module whose identity is free."""
        source = self.path(guard)
        module = self.get(source)
        if not isinstance(module, torch.nn.Module):
            raise GuardBuildError(source.name(), f"{type(module).__qualname__} is not an nn.Module")
        cls = type(module)
        for attr in _CLASS_PARTS:
            self._class_holds(guard, source, cls, attr)
        inside = InstanceDictSource(source)
        self.add(Member(guard, inside, "forward", "forward" in module.__dict__))
        for attr in ("training", *(["forward"] if "forward" in module.__dict__ else [])):
            self._object_is(guard, ItemSource(inside, attr), module.__dict__[attr])
        for attr in _HOOKS:
            self._hooks(guard, ItemSource(inside, attr), module.__dict__.get(attr))
        for attr in _MODULE_DICTS:
            self._members(guard, ItemSource(inside, attr), module.__dict__[attr])

    def _hooks(self, guard: Guard, source: Source, hooks: object) -> None:
        if not isinstance(hooks, dict):
            return
        self._type_is(guard, source, type(hooks))
        self.add(Keys(guard, source, ordered_keys(hooks)) if hooks else Length(guard, source, 0))
        for key, hook in hooks.items():
            self._object_is(guard, ItemSource(source, key), hook)

    def _members(self, guard: Guard, source: Source, members: dict[str, object]) -> None:
        self._type_is(guard, source, type(members))
        self.add(Keys(guard, source, ordered_keys(members)) if members else Length(guard, source, 0))
        for name, member in members.items():
            path = ItemSource(source, name)
            self._object_is(guard, path, member)
            if isinstance(member, torch.Tensor):
                self.add(TensorIs(guard, path, tensor_spec(member)))

    def NN_MODULE_TREE(self, guard: Guard) -> None:
        """NN_MODULE on a module and on all that it contains."""
        source = self.path(guard)
        root = self.get(source)
        if not isinstance(root, torch.nn.Module):
            raise GuardBuildError(source.name(), f"{type(root).__qualname__} is not an nn.Module")
        paths: dict[int, Source] = {id(root): source}
        todo: list[tuple[Source, torch.nn.Module]] = [(source, root)]
        while todo:
            path, module = todo.pop(0)
            self.NN_MODULE(Guard(path.name(), guard.source, guard.create_fn, path, guard.user_line))
            children = ItemSource(InstanceDictSource(path), "_modules")
            for name, child in module._modules.items():
                if child is not None and id(child) not in paths:
                    paths[id(child)] = ItemSource(children, name)
                    todo.append((paths[id(child)], child))

    def AMBIENT(self, guard: Guard, states: Sequence[str] | None = None) -> None:
        """Torch's state around the call (`ambient.STATES`), all of it or the named parts.

        Raises: GuardBuildError for an unknown name.
        """
        source = self.path(guard)
        for name in states if states is not None else ambient.relevant():
            if name not in ambient.BY_NAME:
                raise GuardBuildError(
                    source.name(), f"{name!r} is no ambient state: {', '.join(ambient.BY_NAME)}"
                )
            self.add(AmbientIs(guard, source, name, ambient.read(name)))
        if states is None or {"function_modes", "dispatch_modes"} & set(states):
            self._modes(guard, source)

    def _modes(self, guard: Guard, source: Source) -> None:
        modes = ambient.active_modes()
        for mode in modes:
            self.watch(mode)
        if modes:
            self.add(ModesAre(guard, source, tuple(id(mode) for mode in modes), short(modes)))

    def GRAD_MODE(self, guard: Guard) -> None:
        """Grad mode and inference mode."""
        self.AMBIENT(guard, ("grad_mode", "inference_mode"))

    def DEFAULT_DEVICE(self, guard: Guard) -> None:
        """The default device, which is a torch-function mode, and the default dtype."""
        self.AMBIENT(guard, ("default_dtype", "function_modes"))

    def DETERMINISTIC_ALGORITHMS(self, guard: Guard) -> None:
        """``torch.use_deterministic_algorithms``."""
        self.AMBIENT(guard, ("deterministic", "deterministic_warn_only"))

    def TORCH_FUNCTION_STATE(self, guard: Guard) -> None:
        """The stacks of torch-function and dispatch modes, and whether torch functions are disabled."""
        self.AMBIENT(guard, ("function_modes", "function_disabled", "dispatch_modes"))

    GLOBAL_STATE = AMBIENT

    def LAMBDA_GUARD(self, guard: Guard, predicate: Callable[[object], bool], words: str = "") -> None:
        """A predicate of the user; it must hold at capture. Raises: GuardBuildError when it does not, or raises."""
        source = self.path(guard)
        value = self.get(source)
        try:
            holds = bool(predicate(value))
        except Exception as error:  # the user's predicate may raise anything
            raise GuardBuildError(source.name(), f"the predicate raises {error!r}") from error
        if not holds:
            raise GuardBuildError(source.name(), f"the predicate does not hold for {short(value)}")
        self.add(Holds(guard, source, predicate, words or f"{short(predicate)} to hold"))

    PREDICATE = LAMBDA_GUARD

    def SHAPE_RELATION(
        self, guard: Guard, sources: Sequence[Source], template: str, holds: Callable[..., object]
    ) -> None:
        """An expression over sizes and integers of several sources; checked after all other guards.

        Make the guard on an `AmbientSource`, whose guards come last, and guard the type of every source.

        Args:
            guard: the guard.
            sources: where the values are.
            template: the expression, with ``{0}`` for the first source, ``{1}`` for the second …
            holds: the expression as a function of the values.

        Raises: GuardBuildError when it does not hold at capture, or raises.
        """
        values = [self.get(source) for source in sources]
        words = template.format(*(source.name() for source in sources))
        try:
            met = bool(holds(*values))
        except Exception as error:  # an expression of another package
            raise GuardBuildError(sources[0].name(), f"{words} raises {error!r}") from error
        if not met:
            raise GuardBuildError(sources[0].name(), f"{words} does not hold at capture")
        for source in sources:
            self._require_types(guard, source)
        self.add(Related(guard, sources[0], tuple(sources[1:]), template, holds))
