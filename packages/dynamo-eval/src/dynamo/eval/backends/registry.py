"""Backends by name: those of this package, of installed packages, and of torch."""

import difflib
from collections.abc import Callable, Collection
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, TypeVar, overload

from dynamo.eval.errors import UsageError

Backend = Callable[..., Callable[..., Any]]
_Backend = TypeVar("_Backend", bound=Backend)

#: installed packages announce backends that take our `GraphModule` here …
ENTRY_POINTS: Final = "dynamo_eval_backends"
#: … and those that take a ``torch.fx.GraphModule`` here, as for ``torch.compile``
TORCH_ENTRY_POINTS: Final = "torch_dynamo_backends"

_BACKENDS: Final[dict[str, Backend]] = {}
_TAGS: Final[dict[str, frozenset[str]]] = {}


@overload
def register_backend(
    compiler_fn: _Backend, name: str | None = None, tags: Collection[str] = ()
) -> _Backend: ...
@overload
def register_backend(
    compiler_fn: None = None, name: str | None = None, tags: Collection[str] = ()
) -> Callable[[_Backend], _Backend]: ...
def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Collection[str] = ()) -> Any:
    """Register a backend, directly or as a decorator, so that `optimize` and `compile` take its name.

    >>> @register_backend(name="as_it_is")
    ... def as_it_is(gm, example_inputs):
    ...     return gm.forward

    Args:
        compiler_fn: ``(GraphModule, example inputs) → callable``; None to get a decorator.
        name: the name; that of the function if not given.
        tags: words by which `list_backends` leaves it out, such as ``"debug"``.

    Raises:
        UsageError: the name is taken by another backend, or `compiler_fn` is not callable.
    """
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name, tags)
    if not callable(compiler_fn):
        raise UsageError(f"a backend is a callable, not {type(compiler_fn).__name__}; give a name as name=")
    chosen = name or getattr(compiler_fn, "__name__", None)
    if chosen is None:
        raise UsageError(f"{compiler_fn!r} has no __name__: register it with name=")
    if _BACKENDS.get(chosen, compiler_fn) is not compiler_fn:
        raise UsageError(f"there is a backend named {chosen!r} already")
    _BACKENDS[chosen] = compiler_fn
    _TAGS[chosen] = frozenset(tags)
    return compiler_fn


def lookup_backend(backend: "str | Backend") -> Backend:
    """A backend by its name, or the callable itself.

    A name is looked for among those registered here, then among the entry points of installed packages
    (groups ``dynamo_eval_backends`` and ``torch_dynamo_backends``), then among those registered with torch.

    Raises:
        UsageError: no such name, or not callable.
    """
    if isinstance(backend, str):
        return (
            _BACKENDS.get(backend) or _announced(backend) or _torch_registered(backend) or _unknown(backend)
        )
    if not callable(backend):
        raise UsageError(f"a backend is a name or a callable, not {type(backend).__name__}")
    return backend


def list_backends(exclude_tags: Collection[str] = ("debug", "experimental")) -> list[str]:
    """The names that are registered here or announced by an installed package, sorted.

    Args:
        exclude_tags: backends with one of these tags are left out.
    """
    hidden = frozenset(exclude_tags)
    names = {name for name, tags in _TAGS.items() if not tags & hidden}
    for group in (ENTRY_POINTS, TORCH_ENTRY_POINTS):
        names.update(entry_points(group=group).names)
    return sorted(names)


def _announced(name: str) -> Backend | None:
    """The backend that an installed package announces under `name`; kept, so that it is loaded once."""
    for group, adapt in ((ENTRY_POINTS, _as_it_is), (TORCH_ENTRY_POINTS, _for_torch)):
        for entry in entry_points(group=group, name=name):
            backend = adapt(_loaded(entry))
            return register_backend(backend, name)
    return None


def _loaded(entry: EntryPoint) -> Backend:
    try:
        backend: Backend = entry.load()
    except Exception as error:
        raise UsageError(
            f"backend {entry.name!r} is announced as {entry.value!r}, which cannot be loaded: {error}"
        ) from error
    return backend


def _as_it_is(backend: Backend) -> Backend:
    return backend


def _for_torch(backend: Backend) -> Backend:
    from dynamo.eval.interop import for_torch_graph

    return for_torch_graph(backend)


def _torch_registered(name: str) -> Backend | None:
    from dynamo.eval.interop import torch_registered

    backend = torch_registered(name)
    return None if backend is None else register_backend(backend, name)


def _unknown(name: str) -> Backend:
    known = list_backends(exclude_tags=())
    near = difflib.get_close_matches(name, known, n=3)
    meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise UsageError(f"no backend named {name!r}.{meant} There are {', '.join(known)}")
