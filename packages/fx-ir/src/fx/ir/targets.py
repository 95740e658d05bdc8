"""Names of callables: qualified name ↔ object, without importing what the name speaks of.

A callable is named by its module and name; an alias (:func:`register_target`) comes first, and a namespace
(:func:`register_namespace`) is searched for callables that do not know their module, as many C functions do not.
Looking a name up again reads ``sys.modules`` only; :class:`OpaqueTarget` stands for what is not there.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, Final, NoReturn

from fx.ir.errors import TargetError

_ALIASES: Final[dict[Callable[..., Any], str]] = {}
_BY_NAME: Final[dict[str, Callable[..., Any]]] = {}
_NAMERS: Final[list[Callable[[Callable[..., Any]], str | None]]] = []
_RESOLVERS: Final[list[Callable[[str], Callable[..., Any] | None]]] = []
_NAMESPACES: Final[list[str]] = ["torch", "torch.nn.functional", "numpy"]


def register_target(name: str, target: Callable[..., Any]) -> None:
    """Print and store ``target`` as ``name``, and find it under that name when a file is loaded.

    Raises:
        TargetError: the name belongs to another callable.
    """
    if _BY_NAME.get(name, target) is not target:
        raise TargetError(f"the target name {name} belongs to {_BY_NAME[name]!r}")
    _BY_NAME[name] = target
    _ALIASES[target] = name


def register_target_namer(namer: Callable[[Callable[..., Any]], str | None]) -> None:
    """Ask ``namer`` for the names of callables that no alias covers; it answers ``None`` for those it knows not."""
    _NAMERS.append(namer)


def register_target_resolver(resolver: Callable[[str], Callable[..., Any] | None]) -> None:
    """Ask ``resolver`` for callables that lie in no loaded module, by qualified name; it answers ``None`` for others.

    It is asked while files are loaded, so it must import nothing and run nothing that the name chooses.
    """
    _RESOLVERS.append(resolver)


def register_namespace(module: str) -> None:
    """Search the module of this name, once something else imported it, for callables that hide their module."""
    if module not in _NAMESPACES:
        _NAMESPACES.append(module)


class OpaqueTarget:
    """A callable known by its name only, because its module is not loaded here.

    It can be printed, compared, hashed, matched and saved.  Calling it is an error; :meth:`resolve` gets the real one.
    """

    __slots__ = ("__weakref__", "qualified_name")

    def __init__(self, qualified_name: str) -> None:
        self.qualified_name: str = qualified_name

    @property
    def __name__(self) -> str:
        return self.qualified_name.rpartition(".")[2]

    def resolve(self) -> Callable[..., Any]:
        """Import the module that the name speaks of, and return the callable.

        This is the one place that imports, and thus may run code, because of a name that came from a file.

        Raises:
            TargetError: there is no such module, or no such callable in it.
        """
        known = _BY_NAME.get(self.qualified_name)
        if known is not None:
            return known
        parts = self.qualified_name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module = ".".join(parts[:cut])
            try:
                found: Any = importlib.import_module(module)
            except ModuleNotFoundError as error:
                if error.name is not None and not f"{module}.".startswith(f"{error.name}."):
                    raise
                continue
            for part in parts[cut:]:
                found = getattr(found, part, None)
            if callable(found):
                return found  # type: ignore[no-any-return]  # callable() of Any stays Any
        raise TargetError(f"there is no callable {self.qualified_name}: install the package that has it")

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise TargetError(f"{self.qualified_name} is known by name only; call resolve() to import it")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTarget) and other.qualified_name == self.qualified_name

    def __hash__(self) -> int:
        return hash((OpaqueTarget, self.qualified_name))

    def __repr__(self) -> str:
        return f"OpaqueTarget({self.qualified_name!r})"

    def __reduce__(self) -> tuple[type[OpaqueTarget], tuple[str]]:
        return OpaqueTarget, (self.qualified_name,)


def find_target(name: str) -> Callable[..., Any] | None:
    """The callable with this qualified name among the modules that are loaded already; imports nothing."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:cut]))
        if found is None:
            continue
        for part in parts[cut:]:
            found = _attribute(found, part)
        if isinstance(found, staticmethod | classmethod):
            found = found.__func__
        if callable(found):
            return found  # type: ignore[no-any-return]  # callable() of Any stays Any
    for resolver in _RESOLVERS:
        resolved = resolver(name)
        if resolved is not None:
            return resolved
    return None


def _attribute(owner: Any, name: str) -> Any:
    """What lies in ``owner`` under ``name``, without asking attribute hooks (PEP 562), which could import."""
    for cls in type.mro(owner) if isinstance(owner, type) else (owner,):
        found = getattr(cls, "__dict__", {}).get(name)
        if found is not None:
            return found
    return None


def qualified_name(target: Callable[..., Any]) -> str:
    """The dotted name of a callable: ``operator.add``, ``builtins.getattr``, ``torch.nn.functional.relu``.

    A callable that has no name of its own is named by its ``repr``.
    """
    if isinstance(target, OpaqueTarget):
        return target.qualified_name
    try:
        alias = _ALIASES.get(target)
    except TypeError:  # unhashable callables have no alias
        alias = None
    if alias is not None:
        return alias
    for namer in _NAMERS:
        alias = namer(target)
        if alias is not None:
            return alias
    name = getattr(target, "__name__", None)
    if not isinstance(name, str):
        return repr(target)
    if name == "<lambda>":
        name = _name_of_lambda(target)
    module = getattr(target, "__module__", None)
    if module == "_operator":
        return f"operator.{name}"
    if isinstance(module, str):
        return f"{module}.{name}"
    return _search(target, name)


def _search(target: Callable[..., Any], name: str) -> str:
    """The name of a callable that hides its module: a method of a built-in class, or found in a namespace."""
    for namespace in _NAMESPACES:
        module = sys.modules.get(namespace)
        if module is not None and vars(module).get(name) is target:
            return f"{namespace}.{name}"
    owner = getattr(target, "__objclass__", None)
    if isinstance(owner, type):
        prefix = (
            owner.__qualname__
            if owner.__module__ == "builtins"
            else f"{owner.__module__}.{owner.__qualname__}"
        )
        return f"{prefix}.{name}"
    return getattr(target, "__qualname__", name)


def _name_of_lambda(target: Callable[..., Any]) -> str:
    """What a lambda is assigned to where it is written, if its source is at hand."""
    import inspect

    try:
        text = inspect.getsource(target)
    except (OSError, TypeError):
        return "<lambda>"
    name = text.split("=")[0].strip()
    return name if name.isidentifier() else "<lambda>"
