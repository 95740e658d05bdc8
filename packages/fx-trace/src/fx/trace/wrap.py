"""Leaf functions: functions that a trace keeps as one call instead of running them with traced values.

``wrap`` only takes note; the names are replaced in their namespaces while a trace runs. The replacement looks for a traced
value among the arguments: if there is one, the call is recorded by that value's tracer, else the function runs as always.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final, TypeVar, overload

from fx.trace.errors import RootError
from fx.trace.patching import Patches
from fx.trace.proxy import tracer_in

__all__ = ["original", "patch_autowrapped", "patch_homes", "patch_wrapped_names", "recording", "wrap"]

F = TypeVar("F", bound=Callable[..., Any])

_HEAP_TYPE: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class whose attributes can be set

_lock: Final = threading.Lock()
_names: Final[dict[tuple[int, str], dict[str, Any]]] = {}
_functions: Final[dict[int, Callable[..., Any]]] = {}
_of_builtins: Final[dict[int, Callable[..., Any]]] = {}


@overload
def wrap(fn_or_name: str) -> str: ...
@overload
def wrap(fn_or_name: F) -> F: ...
def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Make a function a leaf: a trace records its call when a traced value is among the arguments.

    Call it at module scope, with a function, with the name of a global or built-in function that the module uses (``"len"``,
    ``"sqrt"``, ``"np.linalg.norm"``), or as a decorator. A wrapped function object is also found in the module or class that
    defines it, and under the names by which other traced modules imported it.

    Args:
        fn_or_name: the function, or its name in the calling module; dots lead into modules and classes.

    Returns:
        The argument, unchanged.

    Raises:
        RuntimeError: the argument is neither a function nor a name.
        NotImplementedError: called inside a function, where the name cannot be replaced.

    Source: seed 003, ``torch.fx.wrap``.
    """
    if not isinstance(fn_or_name, str):
        fn_or_name = original(fn_or_name)
    if not isinstance(fn_or_name, str) and not callable(fn_or_name):
        raise RuntimeError(
            f"Unsupported type for global function! Must be either a callable or string name, got {type(fn_or_name)}"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else getattr(fn_or_name, "__name__", None)
    if name is None:
        raise RuntimeError(f"{fn_or_name!r} has no __name__. Give the name under which the module holds it.")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError(
            f"wrap must be called at the top level of a module; for {name!r} it is called in {frame.f_code.co_name}(). "
            "Move the call there, or pass the function in Tracer(autowrap_functions=...)."
        )
    with _lock:
        if callable(fn_or_name):
            _functions[id(fn_or_name)] = fn_or_name
        if isinstance(fn_or_name, str) or "." not in getattr(fn_or_name, "__qualname__", name):
            _names[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


def recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` as traced programs see it: recorded if an argument is a traced value, else called.

    Made once for each builtin function of a module: they live on, and every trace asks for all of ``math``.
    """
    if type(function) is not BuiltinFunctionType or type(function.__self__) is not ModuleType:
        return _recording(function)
    made = _of_builtins.get(id(function))
    if made is None:
        made = _of_builtins[id(function)] = _recording(function)  # which holds the function
    return made


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        tracer = tracer_in(args) or (tracer_in(kwargs.values()) if kwargs else None)
        if tracer is None:
            return function(*args, **kwargs)
        made = tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


_WRAPPED: Final = _recording(wrap).__code__


def patch_wrapped_names(patches: Patches) -> None:
    """Replace every name given to :func:`wrap` in its module, and every function where it is defined.

    Raises:
        RootError: a name is neither in its module nor a builtin.
    """
    with _lock:
        names = list(_names.items())
        functions = list(_functions.values())
    patch_homes(patches, functions)
    at_home = {function.__name__ for function in functions if _home(function) is not None}
    for (_, path), namespace in names:
        try:
            patches.replace(*_place(namespace, path), _recording_attribute)
        except (KeyError, AttributeError, TypeError):
            if path in at_home:
                continue
            module = namespace.get("__name__")
            raise RootError(
                f"wrap({path!r}) was called in module {module}, which has no such global, nor is it a builtin. "
                "Wrap the name under which the module uses the function."
            ) from None


def patch_homes(patches: Patches, functions: Iterable[Callable[..., Any]]) -> None:
    """Replace functions in the modules and classes that define them, where those can be written."""
    for function in functions:
        home = _home(function)
        if home is not None:
            patches.replace(*home, _recording_attribute)


def _home(function: Callable[..., Any]) -> tuple[dict[str, Any] | type, str] | None:
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    path = getattr(function, "__qualname__", None)
    if module is None or path is None or "<locals>" in path or "<lambda>" in path:
        return None
    try:
        place, name = _place(vars(module), path)
    except (KeyError, AttributeError, TypeError):
        return None
    held = place.__dict__.get(name) if isinstance(place, type) else place.get(name)
    return (place, name) if original(getattr(held, "__func__", held)) is function else None


def original(value: Any) -> Any:
    """What a trace has replaced by ``value``, if one did; else ``value``."""
    if type(value) is FunctionType and value.__code__ is _WRAPPED:
        return value.__wrapped__  # type: ignore[attr-defined]  # set by functools.wraps
    return value


def _place(namespace: dict[str, Any], path: str) -> tuple[dict[str, Any] | type, str]:
    """The module's namespace or the class that holds what ``path`` leads to, and its name there.

    Raises:
        KeyError, AttributeError: there is nothing under that name.
        TypeError: it is held by neither a module nor a class that can be changed.
    """
    first, *rest = path.split(".")
    if not rest:
        return namespace, first
    holder = namespace[first]
    for part in rest[:-1]:
        holder = getattr(holder, part)
    if isinstance(holder, ModuleType):
        vars(holder)[rest[-1]]  # a builtin is not meant here
        return vars(holder), rest[-1]
    if not isinstance(holder, type) or not holder.__flags__ & _HEAP_TYPE:
        raise TypeError(f"{holder!r} is no place to replace a name in")
    return holder, rest[-1]


def _recording_attribute(held: Any) -> Any:
    if isinstance(held, (staticmethod, classmethod)):
        return type(held)(recording(held.__func__))
    return recording(held)


def patch_autowrapped(
    patches: Patches,
    namespace: dict[str, Any],
    functions: Mapping[int, Callable[..., Any]],
) -> None:
    """Replace the names of ``namespace`` that hold one of ``functions`` or a wrapped function, by identity.

    Private names are passed over for ``functions``: they are found by looking, not by having been asked for.
    """
    found = []
    for name, held in namespace.copy().items():
        value = held if type(held) is not FunctionType else original(held)
        if id(value) in _functions or (id(value) in functions and name[0] != "_"):
            found.append(name)
    patches.replace_all(namespace, found, recording)
