"""Functions that rewritten code calls while it runs. Each does what the original instructions did."""

import contextlib
import functools
import types
from collections import OrderedDict
from typing import Any, Final

import torch


def _probe() -> None:
    """A function made from its code in a frame has that frame's globals."""


PROBE: Final = _probe.__code__


def class_attribute(kind: type, name: str) -> Any:
    """What the MRO of a class holds under a name, unbound."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    raise AttributeError(name)


def instance_dict(value: object) -> dict[str, Any]:
    """The dict of an object's own attributes."""
    found: dict[str, Any] = object.__getattribute__(value, "__dict__")
    return found


def referent(reference: Any) -> Any:
    """The object that a weak reference leads to."""
    return reference()


def store_attribute(value: Any, name: str, attribute: Any) -> None:
    """Store as `object.__setattr__` does, into a slot or the object's own dict, past a property of that name."""
    for base in type(value).__mro__:
        if isinstance(base.__dict__.get(name), types.MemberDescriptorType):
            object.__setattr__(value, name, attribute)
            return
    instance_dict(value)[name] = attribute


def delete_own_attribute(value: Any, name: str) -> None:
    """Delete what `store_attribute` stores, if it is there: the captured code may have stored it first."""
    for base in type(value).__mro__:
        if isinstance(base.__dict__.get(name), types.MemberDescriptorType):
            with contextlib.suppress(AttributeError):
                object.__delattr__(value, name)
            return
    instance_dict(value).pop(name, None)


def delete_attribute(value: Any, name: str) -> None:
    """``del value.name``, if it is there: the captured code may have stored it first."""
    with contextlib.suppress(AttributeError):
        delattr(value, name)


def fill_object(value: Any, attributes: dict[str, Any]) -> None:
    """Give an object its attributes, in order."""
    for name, attribute in attributes.items():
        store_attribute(value, name, attribute)


def replace_list(target: list[Any], items: list[Any]) -> None:
    """Give a list its final items, keeping its identity."""
    list.__setitem__(target, slice(None), items)


def replace_deque(target: Any, items: list[Any]) -> None:
    """Give a deque its final items, keeping its identity."""
    target.clear()
    target.extend(items)


def make_partial(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``partial(function, *args, **kwargs)``."""
    return functools.partial(function, *args, **kwargs)


def replace_dict(target: dict[Any, Any], items: dict[Any, Any]) -> None:
    """Give a dict its final contents and order, keeping its identity."""
    kind = OrderedDict if isinstance(target, OrderedDict) else dict
    kind.clear(target)
    for key, value in items.items():
        kind.__setitem__(target, key, value)


def replace_set(target: set[Any], items: set[Any]) -> None:
    """Give a set its final contents, keeping its identity."""
    set.clear(target)
    set.update(target, items)


def list_iterator(owner: Any, position: int) -> Any:
    """An iterator over a list or tuple that has given `position` items."""
    iterator = iter(owner)
    iterator.__setstate__(position)
    return iterator


def entered_grad_mode(mode: bool, before: bool) -> Any:
    """The bound ``__exit__`` of ``no_grad()`` or ``enable_grad()``, entered when grad mode was `before`."""
    torch._C._set_grad_enabled(before)
    context = torch.enable_grad() if mode else torch.no_grad()
    context.__enter__()
    return context.__exit__


def grad_mode_context(mode: bool) -> Any:
    """``enable_grad()`` or ``no_grad()``, not entered."""
    return torch.enable_grad() if mode else torch.no_grad()


def new_exception(kind: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    """An exception with these ``args``, its ``__init__`` having run at capture."""
    made: BaseException = kind.__new__(kind, *arguments)
    made.args = arguments
    return made


def decorated_with_grad_mode(mode: bool, function: Any) -> Any:
    """What ``enable_grad()`` or ``no_grad()`` makes of a function."""
    return grad_mode_context(mode)(function)


def bind_method(function: Any, owner: Any) -> Any:
    """``function`` bound to ``owner``."""
    return types.MethodType(function, owner)


def bind_builtin(method: Any, owner: Any) -> Any:
    """A descriptor made in C, bound: a class method to a class, another one to an object."""
    if isinstance(method, types.ClassMethodDescriptorType):
        return method.__get__(None, owner)
    return method.__get__(owner)


def make_function(
    code: types.CodeType,
    namespace: dict[str, Any],
    defaults: tuple[Any, ...] | None,
    keyword_defaults: dict[str, Any] | None,
    annotations: tuple[Any, ...] | None,
    closure: tuple[types.CellType, ...],
) -> types.FunctionType:
    """What MAKE_FUNCTION gives, in the globals `namespace`."""
    function = types.FunctionType(code, namespace, code.co_name, defaults, closure)
    function.__qualname__ = code.co_qualname
    function.__kwdefaults__ = keyword_defaults
    if annotations is not None:
        function.__annotations__ = dict(zip(annotations[::2], annotations[1::2], strict=True))
    return function


def empty_cell() -> types.CellType:
    """A cell that nothing was stored in."""
    return types.CellType()


def empty_a_cell(cell: types.CellType) -> None:
    """What DELETE_DEREF does."""
    del cell.cell_contents
