"""The callbacks that turn frames into captures, for the frame hook and for entry points.

`convert_frame` never lets a fault of capture reach the user: the function runs plainly and the reason is logged with
file and line. `convert_frame_assert` is what ``nopython=True`` installs: it raises the reason instead. What they do
(`dynamo.eval.conversion`) is loaded with the first frame.

Source: founding document, "PEP 523 …": ``_convert_frame_assert(frame, cache_size)``.
"""

from collections.abc import Callable
from functools import cache
from types import NotImplementedType
from typing import Final, NamedTuple, Self, final
from weakref import WeakKeyDictionary

import dynamo.guards as _guards  # noqa: F401  # probes states of the whole process: not while threads of the user run
from dynamo.eval._frame import FrameView, GuardedCode, KeyedCallback
from dynamo.eval.backends.registry import Backend
from dynamo.eval.demands import Demands, Observer
from dynamo.eval.dispatch import CaptureCallback
from dynamo.eval.loading import loading


class _Key:
    """In whose name captures are made: equal demands on the same backend."""

    __slots__ = ("__weakref__",)


_KEYS: Final[WeakKeyDictionary[Backend, dict[tuple[object, ...], _Key]]] = WeakKeyDictionary()


def _key(backend: Backend, demands: tuple[object, ...]) -> _Key:
    """The key of a backend and of what else decides what a capture is; it lives as long as the backend."""
    try:
        return _KEYS.setdefault(backend, {}).setdefault(demands, _Key())
    except TypeError:
        # A backend without hash or weak references: what it captures is for this callback alone.
        return _Key()


_Answer = GuardedCode | NotImplementedType | None
_Conversion = Callable[[FrameView, int, Demands], _Answer]


class _Conversions(NamedTuple):
    """The two ways of `dynamo.eval.conversion`."""

    run_plainly_else: _Conversion
    raise_else: _Conversion


@cache
def _conversions() -> _Conversions:
    """Loads all that capture needs."""
    with loading():
        from dynamo.eval.conversion import convert_or_raise, convert_or_run_plainly
    return _Conversions(convert_or_run_plainly, convert_or_raise)


class _Converter(KeyedCallback):
    """A frame callback with its demands; subclasses say what becomes of a frame that is not captured."""

    __slots__ = ("demands",)
    demands: Demands

    def __new__(cls, demands: Demands) -> Self:
        # An observer that came later must still be told: captures that another one saw are not for it.
        observer = demands.observer and id(demands.observer)
        self = super().__new__(
            cls, _key(demands.backend, (cls, demands.dynamic, demands.one_graph, observer))
        )
        self.demands = demands
        return self


@final
class _PlainlyElse(_Converter):
    """Frames that cannot be captured run plainly."""

    def __call__(self, frame: FrameView, cache_size: int) -> _Answer:
        try:
            convert = _conversions().run_plainly_else
        except RecursionError:  # this deep there is no room to load it; the next call may come from less deep
            return NotImplemented  # type: ignore[no-any-return]  # typeshed makes it an Any
        return convert(frame, cache_size, self.demands)


@final
class _RaisingElse(_Converter):
    """Frames that cannot be captured whole raise the reason."""

    def __call__(self, frame: FrameView, cache_size: int) -> _Answer:
        try:
            convert = _conversions().raise_else
        except RecursionError:  # this deep there is no room to load it; the next call may come from less deep
            return NotImplemented  # type: ignore[no-any-return]  # typeshed makes it an Any
        return convert(frame, cache_size, self.demands)


def convert_frame(
    compiler_fn: Backend, observer: Observer | None = None, dynamic: bool | None = None
) -> CaptureCallback:
    """The frame callback that captures what it can and lets the rest run plainly.

    Args:
        compiler_fn: the backend: ``(GraphModule, example inputs) → callable``.
        observer: told about each capture and each skipped frame.
        dynamic: whether sizes and integers are symbols: all, none, or (None) those that vary.
    """
    return _PlainlyElse(Demands(compiler_fn, observer, dynamic, one_graph=False))


def convert_frame_assert(
    compiler_fn: Backend,
    one_graph: bool = True,
    observer: Observer | None = None,
    dynamic: bool | None = None,
) -> CaptureCallback:
    """The frame callback of ``nopython=True``: a frame is one graph, or the reason is raised.

    Raises (from the callback):
        Unsupported: a break, with the user's file and line.
        BackendError, GuardBuildError: as they say.
    """
    return _RaisingElse(Demands(compiler_fn, observer, dynamic, one_graph=one_graph))
