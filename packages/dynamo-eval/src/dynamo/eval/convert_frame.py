"""From a frame that is about to start to a `GuardedCode`, or to the decision to run it plainly.

`convert_frame` never lets a fault of capture reach the user: the function runs plainly and the reason is logged with
file and line. `convert_frame_assert` is what ``nopython=True`` installs: it raises the reason instead.

Source: founding document, "PEP 523 …": ``_convert_frame_assert(frame, cache_size)``.
"""

import inspect
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final, Protocol, Self, final
from weakref import WeakKeyDictionary

import dynamo.guards
import fx.codegen
import fx.ir
import fx.trace
from dynamo.eval import _frame
from dynamo.eval._frame import FrameView, GuardedCode, KeyedCallback
from dynamo.eval.cache import CacheLimits, limit_reached, note_recompile, release_when_invalid, why_missed
from dynamo.eval.capture import Captured, FrameInput, capture_frame
from dynamo.eval.errors import (
    BackendError,
    BreakReason,
    CaptureError,
    InternalError,
    SkipFrame,
    Unsupported,
    UsageError,
)
from dynamo.eval.interpret.translator import is_torch_internal
from dynamo.eval.output_graph import Backend
from dynamo.eval.settings import config
from dynamo.eval.sizes import SizePolicy, history_of
from dynamo.eval.statistics import counters
from dynamo.guards import CheckFunctionManager, GuardBuildError, GuardScope

log: Final = logging.getLogger("dynamo.eval")
Callback = Callable[[FrameView, int], GuardedCode | None]
_SUSPENDABLE: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_OWN: Final = tuple(
    os.path.join(os.path.dirname(module.__file__ or ""), "")
    for module in (_frame, fx.ir, fx.codegen, fx.trace, dynamo.guards)
)
_STDLIB: Final = os.path.join(os.path.dirname(os.__file__), "")


@dataclass(frozen=True, slots=True)
class Capture:
    """One finished capture, as observers see it."""

    code: CodeType
    captured: Captured
    manager: CheckFunctionManager
    recompile_reason: str | None


class Observer(Protocol):
    """Who wants to know what capture does."""

    def captured(self, capture: Capture) -> None:
        """A frame was captured."""

    def skipped(self, code: CodeType, reason: str) -> None:
        """A frame runs plainly from now on."""


#: code objects that `disable` and `skip` marked; kept alive by the table
DISABLED: Final[dict[int, CodeType]] = {}


def is_disabled(code: CodeType) -> bool:
    """Whether the user asked that this code runs plainly."""
    return DISABLED.get(id(code)) is code


class _Key:
    """In whose name captures are made: equal demands on the same backend."""

    __slots__ = ("__weakref__",)


_KEYS: Final[WeakKeyDictionary[Backend, dict[tuple[object, ...], _Key]]] = WeakKeyDictionary()


def _key(compiler_fn: Backend, demands: tuple[object, ...]) -> _Key:
    """The key of a backend and of what else decides what a capture is; it lives as long as the backend."""
    try:
        return _KEYS.setdefault(compiler_fn, {}).setdefault(demands, _Key())
    except (
        TypeError
    ):  # a backend without hash or weak references: what it captures is for this callback alone
        return _Key()


class _Converter(KeyedCallback):
    """A frame callback over one backend; subclasses say what becomes of a frame that is not captured."""

    __slots__ = ("compiler_fn", "dynamic", "observer", "one_graph")

    def __new__(
        cls, compiler_fn: Backend, observer: Observer | None, dynamic: bool | None, one_graph: bool
    ) -> Self:
        # An observer that came later must still be told: captures that another one saw are not for it.
        return super().__new__(cls, _key(compiler_fn, (cls, dynamic, one_graph, observer and id(observer))))

    def __init__(
        self, compiler_fn: Backend, observer: Observer | None, dynamic: bool | None, one_graph: bool
    ) -> None:
        self.compiler_fn = compiler_fn
        self.observer = observer
        self.dynamic = dynamic
        self.one_graph = one_graph

    def convert(self, frame: FrameView, cache_size: int) -> GuardedCode | None:
        """The capture of a frame, or the reason why there is none as an exception."""
        return _convert(
            frame,
            cache_size,
            self.compiler_fn,
            self.observer,
            one_graph=self.one_graph,
            dynamic=self.dynamic,
        )


@final
class _PlainlyElse(_Converter):
    """Frames that cannot be captured run plainly."""

    def __call__(self, frame: FrameView, cache_size: int) -> GuardedCode | None:
        observer = self.observer
        try:
            return self.convert(frame, cache_size)
        except SkipFrame as error:
            log.debug("%s runs plainly: %s", _place(frame.f_code), error)
            _tell_skipped(observer, frame.f_code, str(error))
        except UsageError:
            raise
        except (GuardBuildError, BackendError) as error:
            log.warning("%s runs plainly: %s", _place(frame.f_code), error)
            _tell_skipped(observer, frame.f_code, str(error))
        except Exception as error:
            log.warning("%s runs plainly, for capture failed", _place(frame.f_code), exc_info=True)
            _tell_skipped(observer, frame.f_code, f"{type(error).__name__}: {error}")
            if not config.suppress_errors:
                raise InternalError(f"{_place(frame.f_code)}: {type(error).__name__}: {error}") from error
        return None


@final
class _RaisingElse(_Converter):
    """Frames that cannot be captured whole raise the reason."""

    def __call__(self, frame: FrameView, cache_size: int) -> GuardedCode | None:
        try:
            return self.convert(frame, cache_size)
        except SkipFrame as error:
            _tell_skipped(self.observer, frame.f_code, str(error))
            return None


def convert_frame(
    compiler_fn: Backend, observer: Observer | None = None, dynamic: bool | None = None
) -> Callback:
    """The frame callback that captures what it can and lets the rest run plainly.

    Args:
        compiler_fn: the backend: ``(GraphModule, example inputs) → callable``.
        observer: told about each capture and each skipped frame.
        dynamic: whether sizes and integers are symbols: all, none, or (None) those that vary.
    """
    return _PlainlyElse(compiler_fn, observer, dynamic, one_graph=False)


def convert_frame_assert(
    compiler_fn: Backend,
    one_graph: bool = True,
    observer: Observer | None = None,
    dynamic: bool | None = None,
) -> Callback:
    """The frame callback of ``nopython=True``: a frame is one graph, or the reason is raised.

    Raises (from the callback):
        Unsupported: a break, with the user's file and line.
        BackendError, GuardBuildError: as they say.
    """
    return _RaisingElse(compiler_fn, observer, dynamic, one_graph=one_graph)


def _place(code: CodeType) -> str:
    return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


def _tell_skipped(observer: Observer | None, code: CodeType, reason: str) -> None:
    counters.skips += 1
    if observer is not None:
        observer.skipped(code, reason)


def is_foreign(code: CodeType) -> bool:
    """Whether code is part of the standard library, of torch or of capture itself."""
    return _foreign_reason(code) is not None


def _foreign_reason(code: CodeType) -> str | None:
    filename = code.co_filename
    if filename.startswith("<frozen") or filename.startswith(_STDLIB) and "site-packages" not in filename:
        return "part of the standard library"
    if is_torch_internal(code):
        return "part of torch"
    if filename.startswith(_OWN):
        return "part of capture itself"
    return None


def skip_reason(code: CodeType) -> str | None:
    """Why a code object is never captured, or None."""
    if code.co_flags & _SUSPENDABLE:
        return "a generator or coroutine"
    if is_disabled(code):
        return "marked to run plainly"
    foreign = _foreign_reason(code)
    if foreign is not None:
        return foreign
    if code.co_name == "<module>" or not code.co_flags & inspect.CO_NEWLOCALS:
        return "a module or class body"
    return None


def _convert(
    frame: FrameView,
    cache_size: int,
    backend: Backend,
    observer: Observer | None,
    *,
    one_graph: bool,
    dynamic: bool | None,
) -> GuardedCode | None:
    code = frame.f_code
    reason = skip_reason(code)
    if reason is not None:
        raise SkipFrame(reason)
    miss = _recompile_reason(frame) if cache_size else None
    limit = limit_reached(code, CacheLimits(config.cache_size_limit, config.accumulated_cache_size_limit))
    if limit is not None:
        log.warning("%s: %s; last miss: %s", _place(code), limit, miss)
        raise SkipFrame(f"{limit}; last miss: {miss}")
    arguments = frame.f_locals
    captured = capture_frame(
        FrameInput(code, arguments, frame.closure, frame.f_globals, frame.f_builtins),
        backend,
        config,
        one_graph=_unsupported if one_graph else None,
        is_disabled=is_disabled,
        is_foreign=is_foreign,
        sizes=SizePolicy(history_of(code), dynamic if config.automatic_dynamic_shapes else dynamic or False),
    )
    counters.frames += 1
    counters.graphs += captured.graph is not None
    counters.breaks += captured.reason is not None
    manager = CheckFunctionManager(captured.guards, _scope(frame))
    if miss is not None:
        log.info("%s is captured again (recompile %d): %s", _place(code), cache_size, miss)
        note_recompile(code, miss)
    if captured.reason is not None:
        log.info("graph break in %s: %s", code.co_qualname, captured.reason)
    if observer is not None:
        observer.captured(Capture(code, captured, manager, miss))
    manager.detach()
    guarded = GuardedCode(captured.code, manager, needs_hook=captured.needs_hook, reason=miss)
    release_when_invalid(guarded)
    return guarded


def _unsupported(reason: BreakReason) -> CaptureError:
    return Unsupported(reason)


def _scope(frame: FrameView) -> GuardScope:
    code = frame.f_code
    args: list[Any] = frame.args
    return GuardScope(
        code.co_varnames[: len(args)],
        code.co_freevars,
        args,
        frame.closure,
        frame.f_globals,
        frame.f_builtins,
    )


def _recompile_reason(frame: FrameView) -> str:
    """Which guard of the latest capture failed, in words."""
    try:
        missed = why_missed(frame)
    except Exception as error:  # an explanation must not cost the user the capture
        return f"a guard failed ({type(error).__name__} while it was explained)"
    return missed[0] if missed else "no capture is valid any more"
