"""Leaf functions: functions that a trace keeps as one call instead of running them with traced values.

``wrap`` only takes note; the names are replaced in their namespaces while a trace runs. The replacement looks for a traced
value among the arguments: if there is one, the call is recorded by that value's tracer, else the function runs as always.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, overload

from fx.trace.errors import RootError
from fx.trace.patching import Patches
from fx.trace.proxy import tracer_in

__all__ = ["patch_autowrapped", "patch_wrapped_names", "recording", "wrap"]

F = TypeVar("F", bound=Callable[..., Any])

_lock: Final = threading.Lock()
_names: Final[dict[tuple[int, str], dict[str, Any]]] = {}
_functions: Final[dict[int, Callable[..., Any]]] = {}


@overload
def wrap(fn_or_name: str) -> str: ...
@overload
def wrap(fn_or_name: F) -> F: ...
def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Make a function a leaf: a trace records its call when a traced value is among the arguments.

    Call it at module scope, with a function, with the name of a global or built-in function that the module uses (``"len"``,
    ``"sqrt"``), or as a decorator. A wrapped function object is also found under the names by which other traced modules
    imported it.

    Args:
        fn_or_name: the function, or its name in the calling module.

    Returns:
        The argument, unchanged.

    Raises:
        RuntimeError: the argument is neither a function nor a name.
        NotImplementedError: called inside a function, where the name cannot be replaced.

    Source: seed 003, ``torch.fx.wrap``.
    """
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
        _names[(id(frame.f_globals), name)] = frame.f_globals
        if callable(fn_or_name):
            _functions[id(fn_or_name)] = fn_or_name
    return fn_or_name


def recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` as traced programs see it: recorded if an argument is a traced value, else called."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        tracer = tracer_in(args) or (tracer_in(kwargs.values()) if kwargs else None)
        if tracer is None:
            return function(*args, **kwargs)
        made = tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def patch_wrapped_names(patches: Patches) -> None:
    """Replace every name given to :func:`wrap` in its module.

    Raises:
        RootError: a name is neither in its module nor a builtin.
    """
    with _lock:
        names = list(_names.items())
    for (_, name), namespace in names:
        try:
            patches.replace(namespace, name, recording)
        except KeyError:
            module = namespace.get("__name__")
            raise RootError(
                f"wrap({name!r}) was called in module {module}, which has no such global, nor is it a builtin. "
                "Wrap the name under which the module uses the function."
            ) from None


def patch_autowrapped(
    patches: Patches,
    namespace: dict[str, Any],
    functions: Mapping[int, Callable[..., Any]],
) -> None:
    """Replace the names of ``namespace`` that hold one of ``functions`` or a wrapped function, by identity.

    Private names are passed over for ``functions``: they are found by looking, not by having been asked for.
    """
    found = [
        name
        for name, value in list(namespace.items())
        if (id(value) in functions and name[0] != "_") or id(value) in _functions
    ]
    for name in found:
        patches.replace(namespace, name, recording)
