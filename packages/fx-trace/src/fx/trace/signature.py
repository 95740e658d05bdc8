"""Parameters of a traced function, of every kind, as placeholders.

A traced function is called with one traced value for each parameter, ``*args`` and ``**kwargs`` included: these become one
value each, which the program may index. Python would unpack them, so the function is called through a copy whose code takes
all parameters by position. Placeholders stand in the order in which Python writes parameters (``a, *args, k, **kwargs``),
so that generated code binds arguments as the original does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, Final

from fx.trace.errors import RootError

__all__ = [
    "Parameters",
    "parameters_of",
    "plain_function",
    "positional_call",
    "taking_all_by_position",
    "undecorated",
]

_STARS: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@dataclass(frozen=True, slots=True)
class Parameters:
    """Names of a function's parameters, by kind, with defaults and annotations."""

    positional: tuple[str, ...]
    positional_only: int
    keyword_only: tuple[str, ...]
    var_positional: str | None
    var_keyword: str | None
    defaults: dict[str, Any]
    annotations: dict[str, Any]

    @property
    def in_call_order(self) -> tuple[str, ...]:
        """Names as the code object lists them; ``*`` and ``**`` mark the variadic ones."""
        return (*self.positional, *self.keyword_only, *self._stars(self.var_positional, "*"), *self._double())

    @property
    def in_signature_order(self) -> tuple[str, ...]:
        """Names as a ``def`` lists them."""
        return (*self.positional, *self._stars(self.var_positional, "*"), *self.keyword_only, *self._double())

    @property
    def is_plain(self) -> bool:
        """Whether all parameters can be given by position."""
        return not (self.keyword_only or self.var_positional or self.var_keyword)

    def kind_of(self, name: str) -> str | None:
        """``inspect``'s name of the kind of a parameter, where its name and place do not show it."""
        if name in self.positional[: self.positional_only]:
            return "POSITIONAL_ONLY"
        return "KEYWORD_ONLY" if name in self.keyword_only else None

    def _double(self) -> tuple[str, ...]:
        return self._stars(self.var_keyword, "**")

    @staticmethod
    def _stars(name: str | None, stars: str) -> tuple[str, ...]:
        return () if name is None else (stars + name,)


def parameters_of(function: FunctionType) -> Parameters:
    """Read the parameters from the function's code, defaults and annotations."""
    code = function.__code__
    names = code.co_varnames
    positional = names[: code.co_argcount]
    last = code.co_argcount + code.co_kwonlyargcount
    keyword_only = names[code.co_argcount : last]
    var_positional = names[last] if code.co_flags & inspect.CO_VARARGS else None
    last += var_positional is not None
    var_keyword = names[last] if code.co_flags & inspect.CO_VARKEYWORDS else None
    defaults = function.__defaults__ or ()
    return Parameters(
        positional,
        code.co_posonlyargcount,
        keyword_only,
        var_positional,
        var_keyword,
        {
            **dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True)),
            **(function.__kwdefaults__ or {}),
        },
        _annotations(function),
    )


def _annotations(function: FunctionType) -> dict[str, Any]:
    """The annotations; those kept as text are evaluated, and stay text where that fails."""
    return {
        name: _evaluated(value, function) if isinstance(value, str) else value
        for name, value in function.__annotations__.items()
    }


def _evaluated(text: str, function: FunctionType) -> Any:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    try:
        closed_over = {name: cell.cell_contents for name, cell in cells}
        return eval(text, function.__globals__, closed_over)
    except (NameError, AttributeError, TypeError, ValueError, SyntaxError):
        return text


def taking_all_by_position(function: FunctionType) -> FunctionType:
    """A copy of ``function`` that takes all its parameters by position, the variadic ones as single values."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    count += bool(code.co_flags & inspect.CO_VARKEYWORDS)
    flat = code.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~_STARS
    )
    copy = FunctionType(flat, function.__globals__, function.__name__, None, function.__closure__)
    copy.__qualname__ = function.__qualname__
    return copy


def positional_call(
    root_fn: Callable[..., Any], analysed: FunctionType, parameters: Parameters
) -> Callable[..., Any]:
    """Something that calls ``root_fn`` with one positional argument for each parameter of ``analysed``.

    Raises:
        RootError: a decorator hides a function with variadic parameters, which have to be passed on unpacked.
    """
    if parameters.is_plain:
        return root_fn
    if root_fn is analysed:
        return taking_all_by_position(analysed)
    if parameters.var_positional or parameters.var_keyword:
        raise RootError(
            f"{analysed.__qualname__} is decorated and takes *args or **kwargs, which a decorator cannot pass on while tracing. "
            "Trace the undecorated function (its __wrapped__), or give it fixed parameters."
        )
    count, names = len(parameters.positional), parameters.keyword_only

    def call(*args: Any) -> Any:
        return root_fn(*args[:count], **dict(zip(names, args[count:], strict=True)))

    return call


def plain_function(root: Callable[..., Any]) -> tuple[FunctionType, tuple[Any, ...], dict[str, Any]]:
    """The Python function behind a callable, with the arguments that are bound already.

    Bound methods, ``functools.partial`` objects and objects with ``__call__`` are taken apart.

    Raises:
        RootError: there is no Python function behind it.
    """
    bound: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    function: Any = root
    while not isinstance(function, FunctionType):
        if isinstance(function, MethodType):
            bound = (function.__self__, *bound)
            function = function.__func__
        elif hasattr(function, "func") and hasattr(function, "keywords"):
            bound = (*function.args, *bound)
            keywords = {**function.keywords, **keywords}
            function = function.func
        elif not isinstance(function, type) and isinstance(
            inspect.getattr_static(type(function), "__call__", None), FunctionType
        ):
            bound = (function, *bound)
            function = type(function).__call__
        else:
            raise RootError(
                f"Expected a Python function, a method or a module to trace, got {root!r} of {type(root)}. "
                "Call it from a Python function, and trace that one."
            )
    return function, bound, keywords


def undecorated(function: Callable[..., Any]) -> FunctionType:
    """The function that ``functools.wraps`` decorators wrap: the one whose parameters count.

    Raises:
        RootError: it is not a Python function.
    """
    found = inspect.unwrap(function)
    if not isinstance(found, FunctionType):
        raise RootError(
            f"{function!r} wraps {found!r}, which is not a Python function and has no parameters to read."
        )
    return found
