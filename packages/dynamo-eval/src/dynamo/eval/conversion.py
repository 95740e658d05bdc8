"""From a frame that is about to start to a `GuardedCode`, or to the decision to run it plainly.

Loaded with the first frame that needs it (`dynamo.eval.convert_frame` has the callbacks).

Source: founding document, "PEP 523 …": ``_convert_frame_assert(frame, cache_size)``.
"""

import inspect
import logging
import os
from dataclasses import dataclass
from types import CodeType, NotImplementedType
from typing import Any, Final

from torch.utils._device import DeviceContext

import dynamo.guards
import fx.codegen
import fx.ir
import fx.trace
from dynamo.eval import _frame
from dynamo.eval._frame import FrameView, GuardedCode
from dynamo.eval.cache import CacheLimits, limit_reached, note_recompile, release_when_invalid, why_missed
from dynamo.eval.capture import Captured, FrameInput, capture_frame
from dynamo.eval.demands import Demands, Observer
from dynamo.eval.disabled import is_disabled
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
from dynamo.eval.settings import config
from dynamo.eval.sizes import SizePolicy, history_of
from dynamo.eval.statistics import counters
from dynamo.guards import CheckFunctionManager, GuardBuildError, GuardScope
from dynamo.guards.ambient import active_modes

log: Final = logging.getLogger("dynamo.eval")
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


def convert_or_run_plainly(
    frame: FrameView, cache_size: int, demands: Demands
) -> GuardedCode | NotImplementedType | None:
    """The capture of a frame; None, with the reason in the log, where there is none; NotImplemented for not now.

    Raises:
        UsageError: the user asked for the impossible.
        InternalError: a fault of ours, where the settings say that faults are not suppressed.
    """
    try:
        return _convert(frame, cache_size, demands)
    except SkipFrame as error:
        log.debug("%s runs plainly: %s", _place(frame.f_code), error)
        _tell_skipped(demands.observer, frame.f_code, str(error))
    except UsageError:
        raise
    except (GuardBuildError, BackendError) as error:
        log.warning("%s runs plainly: %s", _place(frame.f_code), error)
        _tell_skipped(demands.observer, frame.f_code, str(error))
    except Exception as error:
        log.warning("%s runs plainly, for capture failed", _place(frame.f_code), exc_info=True)
        _tell_skipped(demands.observer, frame.f_code, f"{type(error).__name__}: {error}")
        if not config.suppress_errors:
            raise InternalError(f"{_place(frame.f_code)}: {type(error).__name__}: {error}") from error
    return None


def convert_or_raise(
    frame: FrameView, cache_size: int, demands: Demands
) -> GuardedCode | NotImplementedType | None:
    """The capture of a frame; None only for a frame that is never captured; NotImplemented for not now.

    Raises:
        Unsupported: a break, with the user's file and line.
        BackendError, GuardBuildError: as they say.
    """
    try:
        return _convert(frame, cache_size, demands)
    except SkipFrame as error:
        _tell_skipped(demands.observer, frame.f_code, str(error))
        return None


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


def _convert(frame: FrameView, cache_size: int, demands: Demands) -> GuardedCode | NotImplementedType | None:
    """The capture of a frame, or the reason why there is none as an exception."""
    code = frame.f_code
    reason = skip_reason(code)
    if reason is not None:
        raise SkipFrame(reason)
    if _is_watched():
        return NotImplemented  # type: ignore[no-any-return]  # typeshed makes it an Any
    miss = _recompile_reason(frame) if cache_size else None
    limit = limit_reached(code, CacheLimits(config.cache_size_limit, config.accumulated_cache_size_limit))
    if limit is not None:
        log.warning("%s: %s; last miss: %s", _place(code), limit, miss)
        raise SkipFrame(f"{limit}; last miss: {miss}")
    arguments = frame.f_locals
    captured = capture_frame(
        FrameInput(code, arguments, frame.closure, frame.f_globals, frame.f_builtins),
        demands.backend,
        config,
        one_graph=_unsupported if demands.one_graph else None,
        is_disabled=is_disabled,
        is_foreign=is_foreign,
        sizes=_size_policy(code, demands.dynamic),
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
    if demands.observer is not None:
        demands.observer.captured(Capture(code, captured, manager, miss))
    manager.detach()
    guarded = GuardedCode(captured.code, manager, needs_hook=captured.needs_hook, reason=miss)
    release_when_invalid(guarded)
    return guarded


def _is_watched() -> bool:
    """Whether a mode of the user would see, and count or change, the operators that capture runs on its own account.

    The default device is such a mode too, and means no more than an argument of factory functions.
    """
    return any(not isinstance(mode, DeviceContext) for mode in active_modes())


def _size_policy(code: CodeType, dynamic: bool | None) -> SizePolicy:
    return SizePolicy(history_of(code), dynamic if config.automatic_dynamic_shapes else dynamic or False)


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
