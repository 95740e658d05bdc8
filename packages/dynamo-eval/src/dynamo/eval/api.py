"""What users call: `optimize`, `compile`, `disable`, `reset`, `explain` and their kin."""

import builtins
import copy
import functools
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final, TypeVar, final, overload

import torch

from dynamo.eval import _frame
from dynamo.eval._frame import set_eval_frame
from dynamo.eval.backends import lookup_backend
from dynamo.eval.backends.registry import Backend
from dynamo.eval.convert_frame import convert_frame, convert_frame_assert
from dynamo.eval.demands import Observer
from dynamo.eval.disabled import is_disabled, mark_disabled
from dynamo.eval.dispatch import CaptureCallback, EntryPoint, entry_point, is_wrappable, uncaptured
from dynamo.eval.errors import UsageError
from dynamo.eval.loading import loading
from dynamo.eval.resets import forget_all
from dynamo.eval.statistics import counters

if TYPE_CHECKING:
    from dynamo.eval.explanation import ExplainOutput

_F = TypeVar("_F", bound=Callable[..., Any])


@final
class OptimizeContext:
    """What `optimize` returns: decorates a callable, or captures inside a ``with`` block."""

    def __init__(
        self,
        callback: CaptureCallback | None,
        backend: str | Backend = "eager",
        nopython: bool = False,
        dynamic: bool | None = None,
    ) -> None:
        self.callback = callback
        self.backend = backend
        self.nopython = nopython
        self.dynamic = dynamic
        self._before: list[CaptureCallback | None] = []

    def __call__(self, fn: _F) -> _F:
        """`fn`, captured when it is called: a function, method, class instance or module.

        Class methods, static methods and properties stay what they are, over captured functions.

        Raises:
            UsageError: not a callable.
        """
        if isinstance(fn, OptimizedModule):
            return OptimizedModule(fn._orig_mod, self)  # type: ignore[return-value]  # behaves as the module
        if isinstance(fn, torch.nn.Module):
            return OptimizedModule(fn, self)  # type: ignore[return-value]  # behaves as the module
        if not is_wrappable(fn):
            raise UsageError(f"cannot capture a {type(fn).__name__}, which is not callable")
        return _wrapped(fn, self.callback)  # type: ignore[no-any-return]  # behaves as the function

    def __enter__(self) -> None:
        self._before.append(set_eval_frame(self.callback))

    def __exit__(self, *exc: object) -> None:
        set_eval_frame(self._before.pop())


def _wrapped(function: Any, callback: CaptureCallback | None) -> Any:
    """An entry point with a callback, or the callable with capture off."""
    return uncaptured(function) if callback is None else entry_point(function, callback)


_OWN_HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@final
class OptimizedModule(torch.nn.Module):
    """A module whose calls are captured; everything else is the original's, `state_dict` but for a prefix.

    The keys of `state_dict` begin with ``_orig_mod.``, as those of what ``torch.compile`` returns. Hooks of the
    original and hooks of this module run as in eager.
    """

    def __init__(self, module: torch.nn.Module, context: OptimizeContext) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_context"] = context
        self.__dict__["_entry"] = _wrapped(MethodType(_trampoline(type(module)), module), context.callback)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if any(own[hooks] for hooks in _OWN_HOOKS):
            return super().__call__(*args, **kwargs)
        return own["_entry"](*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """A call of the original, captured; its hooks run."""
        return self.__dict__["_entry"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self.__dict__["_modules"][name]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_orig_mod", "training") or "_orig_mod" not in self.__dict__.get("_modules", {}):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    @property
    def training(self) -> bool:
        """The original's mode."""
        return bool(self._orig_mod.training)

    @training.setter
    def training(self, mode: bool) -> None:
        module = self.__dict__.get("_modules", {}).get("_orig_mod")
        if module is not None:
            module.training = mode

    def __deepcopy__(self, memo: dict[int, object]) -> "OptimizedModule":
        copied = OptimizedModule(copy.deepcopy(self._orig_mod, memo), self.__dict__["_context"])
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        context: OptimizeContext = self.__dict__["_context"]
        return _again, (self._orig_mod, context.backend, context.nopython, context.dynamic)


def _again(
    module: torch.nn.Module, backend: str | Backend, nopython: bool, dynamic: bool | None
) -> torch.nn.Module:
    """What a pickled captured module comes back as."""
    return optimize(backend, nopython=nopython, dynamic=dynamic)(module)


def _call(module: Any, *args: Any, **kwargs: Any) -> Any:
    """The frame that is captured when a module is called: from here the call of the module is followed."""
    return module(*args, **kwargs)


def _trampoline(kind: type[torch.nn.Module]) -> FunctionType:
    """A `_call` with a code object of its own, named after the class and placed at its ``forward``.

    Captures are kept with the code object: were it shared, all modules of a process would share one limit.
    """
    forward = getattr(kind.forward, "__code__", None)
    code = _call.__code__
    if isinstance(forward, CodeType):
        place, line = forward.co_filename, forward.co_firstlineno
    else:
        place, line = f"<{kind.__module__}>", 1
    code = code.replace(
        co_name=kind.__name__, co_qualname=kind.__qualname__, co_filename=place, co_firstlineno=line
    )
    return FunctionType(code, {"__builtins__": builtins, "__name__": kind.__module__}, kind.__name__)


def optimize(
    backend: str | Backend = "eager",
    *,
    nopython: bool = False,
    dynamic: bool | None = None,
    observer: Observer | None = None,
) -> OptimizeContext:
    """Capture the frames of a function and of what it calls, and run their graphs with `backend`.

    >>> @optimize("eager")
    ... def double(x):
    ...     return x * 2
    >>> import torch; double(torch.ones(1))
    tensor([2.])

    Args:
        backend: a name (see `list_backends`) or ``(GraphModule, example inputs) → callable``.
        nopython: raise the reason instead of breaking the graph.
        dynamic: True makes all sizes and integers symbols, False none; None those that were seen to vary.
        observer: told about captures and skips.

    Raises:
        UsageError: no such backend.

    Source: founding document, "概述" (overview).
    """
    compiler_fn = lookup_backend(backend)
    if nopython:
        callback = convert_frame_assert(compiler_fn, observer=observer, dynamic=dynamic)
    else:
        callback = convert_frame(compiler_fn, observer, dynamic)
    return OptimizeContext(callback, backend, nopython, dynamic)


@overload
def compile(
    model: _F,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | Backend = ...,
    mode: str | None = ...,
    options: Mapping[str, Any] | None = ...,
    disable: bool = ...,
) -> _F: ...
@overload
def compile(
    model: None = None,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | Backend = ...,
    mode: str | None = ...,
    options: Mapping[str, Any] | None = ...,
    disable: bool = ...,
) -> Callable[[_F], _F]: ...
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Backend = "inductor",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """`optimize` with the call forms of ``torch.compile``: direct, ``@compile`` and ``@compile(backend=…)``.

    Args:
        model: function, method or module; None to get a decorator.
        fullgraph: as ``nopython``.
        dynamic: as in `optimize`.
        backend: a name or a callable.
        mode: handed to the backend, which must take it; ``"default"`` is none.
        options: handed to the backend, which must take them.
        disable: give `model` back unchanged.

    Raises:
        UsageError: no such backend, or both `mode` and `options`.
    """
    if mode is not None and options is not None:
        raise UsageError("either mode or options can be given, not both")
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if disable:
        return model
    extra: dict[str, Any] = {} if mode in (None, "default") else {"mode": mode}
    if options is not None:
        extra["options"] = options
    chosen = functools.partial(lookup_backend(backend), **extra) if extra else backend
    return optimize(chosen, nopython=fullgraph, dynamic=dynamic)(model)


@overload
def disable(fn: _F, recursive: bool = ..., *, reason: str | None = ...) -> _F: ...
@overload
def disable(fn: None = None, recursive: bool = ..., *, reason: str | None = ...) -> Callable[[_F], _F]: ...
def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A callable like `fn` that runs plainly, and so does what it calls; captured code breaks its graph at a call of it.

    `fn` itself is not marked: called by another name it is captured as before.

    Args:
        fn: function, method or module; None to get a decorator.
        recursive: with False only `fn` itself runs plainly, as with `skip`.
        reason: why, for the reader of the code.

    Raises:
        UsageError: not a callable.
    """
    if fn is None:
        return lambda given: disable(given, recursive, reason=reason)
    if not recursive:
        return skip(fn)
    if isinstance(fn, OptimizedModule):
        fn = fn._orig_mod
    if isinstance(fn, torch.nn.Module):
        return OptimizedModule(fn, OptimizeContext(None))
    if not is_wrappable(fn):
        raise UsageError(f"cannot disable capture of a {type(fn).__name__}, which is not callable")
    return uncaptured(fn)


def skip(fn: _F) -> _F:
    """`fn` itself runs plainly; what it calls may be captured.

    The very function object is marked, by a code object of its own: other functions of the same ``def`` are not.

    Raises:
        UsageError: no function, method, property or module.
    """
    functions = [fn.fget, fn.fset, fn.fdel] if isinstance(fn, property) else [fn]
    for function in map(_function_behind, functions):
        if isinstance(function, FunctionType):
            _skip_function(function)
        elif function is not None:
            raise UsageError(f"cannot skip a {type(fn).__name__}, which has no Python code")
    return fn


def _skip_function(function: FunctionType) -> None:
    code = function.__code__
    if not is_disabled(code):
        function.__code__ = code = code.replace()
        mark_disabled(code)
    _frame.skip_code(code)


def _function_behind(fn: Any) -> Any:
    """The function that is called in the end."""
    while isinstance(fn, EntryPoint):
        fn = fn.__wrapped__
    if isinstance(fn, torch.nn.Module):
        return type(fn).forward
    return getattr(fn, "__func__", fn)


def reset() -> None:
    """Forget all captures, counters, skip marks of capture and resume functions."""
    _frame.reset()
    forget_all()
    counters.clear()


def explain(fn: Callable[..., Any]) -> "Callable[..., ExplainOutput]":
    """Call ``explain(fn)(*args)`` to run `fn` captured from scratch and learn graphs, breaks and guards."""
    with loading():
        from dynamo.eval.explanation import Record, summarize

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> "ExplainOutput":
        record = Record()
        reset()
        try:
            optimize("eager", observer=record)(fn)(*args, **kwargs)
        finally:
            reset()
        return summarize(record)

    return run


def allow_in_graph(fn: _F) -> _F:
    """Calls of `fn` become one node of the graph; it must be a pure function of tensors and literals."""
    with loading():
        from dynamo.eval.variables.torch_function import graph_functions
    graph_functions()[id(fn)] = fn
    return fn


def assume_constant_result(fn: _F) -> _F:
    """Calls of `fn` with literals are made once, at capture, and their literal result is taken ever after."""
    with loading():
        from dynamo.eval.models.pure import pure_model
        from dynamo.eval.variables.calls import models
    models(fn)(pure_model(fn))
    return fn
