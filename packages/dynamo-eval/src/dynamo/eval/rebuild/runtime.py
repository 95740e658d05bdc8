"""Functions that rewritten code calls while it runs. Each does what the original instructions did."""

import types
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
    return value.__dict__


def replace_list(target: list[Any], items: list[Any]) -> None:
    """Give a list its final items, keeping its identity."""
    list.__setitem__(target, slice(None), items)


def replace_dict(target: dict[Any, Any], items: dict[Any, Any]) -> None:
    """Give a dict its final contents and order, keeping its identity."""
    type(target).clear(target)
    for key, value in items.items():
        type(target).__setitem__(target, key, value)


def replace_set(target: set[Any], items: set[Any]) -> None:
    """Give a set its final contents, keeping its identity."""
    target.clear()
    target.update(items)


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


def new_object(kind: type, attributes: dict[str, Any]) -> Any:
    """An object of a plain class with these attributes, its ``__init__`` having run at capture."""
    value: Any = object.__new__(kind)
    value.__dict__.update(attributes)
    return value


def bind_method(function: Any, owner: Any) -> Any:
    """``function`` bound to ``owner``."""
    return types.MethodType(function, owner)


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
