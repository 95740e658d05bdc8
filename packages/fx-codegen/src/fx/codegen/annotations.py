"""How a type annotation is written: readable where Python has a spelling, else through a global that holds it.

The text of a name in an annotation comes from the object, after checks; a string annotation (a forward reference)
stays a string literal.
"""

from __future__ import annotations

import types
import typing
from typing import Any

from fx.codegen.globals import Globals


def annotation(value: Any, to: Globals) -> str:
    """The expression that evaluates to the type ``value``."""
    if value is None or value is type(None):
        return "None"
    if value is ...:
        return "..."
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, (list, tuple)):
        inner = ", ".join([annotation(item, to) for item in value])
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, types.UnionType):
        return " | ".join([annotation(item, to) for item in typing.get_args(value)])
    if typing.get_origin(value) is not None:
        return _subscripted(value, to)
    if isinstance(value, type):
        return to.path(value)
    return to.reference(value, _hint(value))


def _subscripted(value: Any, to: Globals) -> str:
    """``list[int]``, ``typing.Optional[...]``; kept whole as a global where arguments have no spelling of their own."""
    origin, args = typing.get_origin(value), typing.get_args(value)
    if origin is typing.Union:
        text = ", ".join([annotation(item, to) for item in args])
        return f"{to.reference(typing.Union, 'typing.Union')}[{text}]"
    name = getattr(value, "_name", None)
    alias = (
        getattr(typing, name, None) if type(value).__module__ == "typing" and isinstance(name, str) else None
    )
    if isinstance(value, types.GenericAlias):
        base = to.path(origin)
    elif alias is not None and typing.get_origin(alias) is origin:
        base = to.reference(alias, f"typing.{name}")
    else:
        return to.reference(value, _hint(value))
    if not args or origin.__module__ == "collections.abc" or not all(_is_plain_type(item) for item in args):
        return to.reference(value, _hint(value))
    return f"{base}[{', '.join([annotation(item, to) for item in args])}]"


def _is_plain_type(value: Any) -> bool:
    return value is ... or isinstance(value, (type, types.UnionType)) or typing.get_origin(value) is not None


def _hint(value: Any) -> str:
    return f"type_{getattr(value, '_name', None) or getattr(value, '__name__', None) or type(value).__name__}"
