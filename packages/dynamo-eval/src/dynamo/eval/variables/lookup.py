"""How CPython finds attributes: the MRO without binding, what a descriptor is, which built-in class lays out an object."""

import types
from collections import OrderedDict, deque
from typing import Final

from dynamo.eval.errors import GraphBreak

MISSING: Final = object()
_HEAP_TYPE: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement, or by C code that asks for it
_PLAIN_LAYOUTS: Final = (OrderedDict, deque, dict, list, set, frozenset, tuple, object)


class NoSuchAttribute(GraphBreak):
    """Python would raise AttributeError here."""


def static_lookup(kind: type, name: str) -> object:
    """The attribute of a class as `_PyType_Lookup` finds it, without binding; `MISSING` if there is none."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING


def is_descriptor(found: object) -> bool:
    """Whether reading the class attribute `found` through an instance computes something."""
    return hasattr(type(found), "__get__")


def is_data_descriptor(found: object) -> bool:
    """Whether the class attribute `found` goes before the instance's own dict."""
    kind = type(found)
    return is_descriptor(found) and (hasattr(kind, "__set__") or hasattr(kind, "__delete__"))


def is_python_class(kind: type) -> bool:
    """Whether a class statement made `kind`."""
    return bool(kind.__flags__ & _HEAP_TYPE)


def builtin_layout(kind: type) -> type | None:
    """The built-in class below a class written in Python whose C state capture can follow; `object` for none.

    None where another C class keeps state of its own in the objects.
    """
    for base in kind.__mro__:
        if base in _PLAIN_LAYOUTS:
            return base
        if not is_python_class(base) or base.__module__ == "_collections":
            return None
    return None


def has_instance_dict(kind: type) -> bool:
    """Whether objects of a class keep attributes in a dict of their own."""
    return isinstance(static_lookup(kind, "__dict__"), types.GetSetDescriptorType)
