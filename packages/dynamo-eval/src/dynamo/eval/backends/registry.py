"""Backends by name; ``eager`` runs the graph as it is."""

from collections.abc import Callable
from typing import Any, TypeVar

from dynamo.eval.errors import UsageError

Backend = Callable[..., Callable[..., Any]]
_Backend = TypeVar("_Backend", bound=Backend)
_BACKENDS: dict[str, Backend] = {}


def register_backend(name: str) -> Callable[[_Backend], _Backend]:
    """Register the decorated backend under `name`.

    Raises:
        UsageError: the name is taken.
    """

    def register(backend: _Backend) -> _Backend:
        if name in _BACKENDS:
            raise UsageError(f"there is a backend named {name!r} already")
        _BACKENDS[name] = backend
        return backend

    return register


def lookup_backend(backend: "str | Backend") -> Backend:
    """A backend by its name, or the callable itself.

    Raises:
        UsageError: no such name, or not callable.
    """
    if isinstance(backend, str):
        found = _BACKENDS.get(backend)
        if found is None:
            raise UsageError(f"no backend named {backend!r}; there are {', '.join(list_backends())}")
        return found
    if not callable(backend):
        raise UsageError(f"a backend is a name or a callable, not {type(backend).__name__}")
    return backend


def list_backends() -> list[str]:
    """All names, sorted."""
    return sorted(_BACKENDS)


@register_backend("eager")
def eager(gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
    """Run the captured graph as it is."""
    return gm.forward  # type: ignore[no-any-return]  # a GraphModule's forward
