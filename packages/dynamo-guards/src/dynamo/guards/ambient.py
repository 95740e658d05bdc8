"""The state of torch around a call, each as one number, read through torch and - where it can be - natively.

A native reader is a function of libtorch found by its symbol.  It is used only after it followed torch's own setter
through every value of a trial; a state without one is read through Python.

What has no place in the table: the *contents* of the mode stacks.  Their lengths are numbers here; for a stack that is
not empty at capture the builder adds a test of the identity of each mode.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from dynamo.guards import _check
from dynamo.guards.layout import library_path

_BOOL, _INT8, _INT, _INT64 = range(4)
_CPU, _CUDA = 0, 1


@dataclass(frozen=True, slots=True)
class Symbol:
    """A C++ function of libtorch: library, mangled name, getter of its object, kind of result, argument."""

    library: str
    name: str
    context: str | None = None
    kind: int = _BOOL
    argument: int = 0


@dataclass(frozen=True, slots=True)
class AmbientState:
    """One state: a name, how torch tells it, and how to try other values of it (for the probe)."""

    name: str
    read: Callable[[], int]
    trial: Callable[[], contextlib.AbstractContextManager[object]] | None = None
    symbol: Symbol | None = None


@contextlib.contextmanager
def _restoring(change: Callable[[], object], restore: Callable[[], object]) -> Iterator[None]:
    change()
    try:
        yield
    finally:
        restore()


def _dtype_trial() -> contextlib.AbstractContextManager[object]:
    before = torch.get_default_dtype()
    return _restoring(lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(before))


def _deterministic_trial() -> contextlib.AbstractContextManager[object]:
    before = torch.are_deterministic_algorithms_enabled()
    warn = torch.is_deterministic_algorithms_warn_only_enabled()
    return _restoring(
        lambda: torch._C._set_deterministic_algorithms(not before),
        lambda: torch._C._set_deterministic_algorithms(before, warn_only=warn),
    )


def _autocast_dtype_trial(device: str) -> contextlib.AbstractContextManager[object]:
    before = torch.get_autocast_dtype(device)
    other = torch.float16 if before is torch.bfloat16 else torch.bfloat16
    return _restoring(
        lambda: torch.set_autocast_dtype(device, other), lambda: torch.set_autocast_dtype(device, before)
    )


def _warn_only_trial() -> contextlib.AbstractContextManager[object]:
    before = torch.are_deterministic_algorithms_enabled()
    warn = torch.is_deterministic_algorithms_warn_only_enabled()
    return _restoring(
        lambda: torch._C._set_deterministic_algorithms(True, warn_only=not warn),
        lambda: torch._C._set_deterministic_algorithms(before, warn_only=warn),
    )


class _FunctionMode(TorchFunctionMode):
    """A mode that does nothing: the trial of the stack's length."""


class _DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """The same for the dispatch stack."""


DTYPE_NUMBERS: Final[dict[torch.dtype, int]] = {
    dtype: number
    for number, dtype in enumerate(
        value for _, value in sorted(vars(torch).items()) if isinstance(value, torch.dtype)
    )
}


def _dtype_number(dtype: torch.dtype) -> int:
    return DTYPE_NUMBERS.get(dtype, -1)


_AUTOCAST: Final = "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE"
_AUTOCAST_DTYPE: Final = "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE"
_GLOBAL_CONTEXT: Final = "_ZN2at13globalContextEv"

STATES: Final[tuple[AmbientState, ...]] = (
    AmbientState(
        "grad_mode",
        lambda: int(torch.is_grad_enabled()),
        torch.no_grad,
        Symbol("libc10.so", "_ZN3c108GradMode10is_enabledEv"),
    ),
    AmbientState(
        "inference_mode",
        lambda: int(torch.is_inference_mode_enabled()),
        torch.inference_mode,
        Symbol("libc10.so", "_ZN3c1013InferenceMode10is_enabledEv"),
    ),
    AmbientState(
        "autocast_cpu",
        lambda: int(torch.is_autocast_enabled("cpu")),
        lambda: torch.autocast("cpu"),
        Symbol("libtorch_cpu.so", _AUTOCAST, argument=_CPU),
    ),
    AmbientState(
        "autocast_cuda",
        lambda: int(torch.is_autocast_enabled("cuda")),
        lambda: _restoring(
            lambda: torch.set_autocast_enabled("cuda", True),
            lambda: torch.set_autocast_enabled("cuda", False),
        ),
        Symbol("libtorch_cpu.so", _AUTOCAST, argument=_CUDA),
    ),
    AmbientState(
        "autocast_cpu_dtype",
        lambda: _dtype_number(torch.get_autocast_dtype("cpu")),
        lambda: _autocast_dtype_trial("cpu"),
        Symbol("libtorch_cpu.so", _AUTOCAST_DTYPE, kind=_INT8, argument=_CPU),
    ),
    AmbientState(
        "autocast_cuda_dtype",
        lambda: _dtype_number(torch.get_autocast_dtype("cuda")),
        lambda: _autocast_dtype_trial("cuda"),
        Symbol("libtorch_cpu.so", _AUTOCAST_DTYPE, kind=_INT8, argument=_CUDA),
    ),
    AmbientState(
        "autocast_cache",
        lambda: int(torch.is_autocast_cache_enabled()),
        lambda: _restoring(
            lambda: torch.set_autocast_cache_enabled(False), lambda: torch.set_autocast_cache_enabled(True)
        ),
        Symbol("libtorch_cpu.so", "_ZN2at8autocast25is_autocast_cache_enabledEv"),
    ),
    AmbientState(
        "default_dtype",
        lambda: _dtype_number(torch.get_default_dtype()),
        _dtype_trial,
        Symbol("libc10.so", "_ZN3c1031get_default_dtype_as_scalartypeEv", kind=_INT8),
    ),
    AmbientState(
        "deterministic",
        lambda: int(torch.are_deterministic_algorithms_enabled()),
        _deterministic_trial,
        Symbol("libtorch_cpu.so", "_ZNK2at7Context23deterministicAlgorithmsEv", _GLOBAL_CONTEXT),
    ),
    AmbientState(
        "deterministic_warn_only",
        lambda: int(torch.is_deterministic_algorithms_warn_only_enabled()),
        _warn_only_trial,
        Symbol("libtorch_cpu.so", "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv", _GLOBAL_CONTEXT),
    ),
    AmbientState(
        "function_modes",
        lambda: int(torch._C._len_torch_function_stack()),
        _FunctionMode,
        Symbol("libtorch_cpu.so", "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", kind=_INT64),
    ),
    AmbientState(
        "function_disabled",
        lambda: (
            2 * int(torch._C._is_torch_function_all_disabled())
            + int(not torch._C._is_torch_function_enabled())
        ),
        torch._C.DisableTorchFunctionSubclass,
        Symbol("libtorch_cpu.so", "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv", kind=_INT8),
    ),
    AmbientState(
        "dispatch_modes",
        lambda: int(torch._C._len_torch_dispatch_stack()),
        _DispatchMode,
        Symbol("libc10.so", "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv", kind=_INT64),
    ),
    AmbientState(
        "threads",
        lambda: int(torch.get_num_threads()),
        None,  # changing the pool at import would be worse than trusting an exact symbol
        Symbol("libtorch_cpu.so", "_ZN2at15get_num_threadsEv", kind=_INT),
    ),
)


BY_NAME: Final = {state.name: state for state in STATES}

NATIVE: Final[dict[str, int]] = {}
"""Names of the states that `_check` reads itself, with their number there."""

REFUSED: Final[dict[str, str]] = {}
"""Names of the states that are read through Python, with the reason."""


_WHEN_ON: Final = {
    "autocast_cpu_dtype": "autocast_cpu",
    "autocast_cuda_dtype": "autocast_cuda",
    "deterministic_warn_only": "deterministic",
}
"""States that mean something only while another one is on."""


def relevant() -> list[str]:
    """Names of all states that mean something now; one left out is told by the state that turns it on."""
    cast = BY_NAME["autocast_cpu"].read() or BY_NAME["autocast_cuda"].read()
    off = {name for name, switch in _WHEN_ON.items() if not BY_NAME[switch].read()}
    off |= set() if cast else {"autocast_cache"}
    return [name for name in BY_NAME if name not in off]


def read(name: str) -> int:
    """The present number of a state. Raises: KeyError when there is none of that name."""
    return BY_NAME[name].read()


def _dtype_words(number: int) -> str:
    return next(
        (str(dtype) for dtype, code in DTYPE_NUMBERS.items() if code == number), "a dtype unknown here"
    )


def _disabled_words(number: int) -> str:
    return {0: "off", 1: "for subclasses", 3: "for all"}.get(number, str(number))


_WORDS: Final[dict[str, Callable[[int], str]]] = {
    "autocast_cpu_dtype": _dtype_words,
    "autocast_cuda_dtype": _dtype_words,
    "default_dtype": _dtype_words,
    "function_modes": str,
    "function_disabled": _disabled_words,
    "dispatch_modes": str,
    "threads": str,
}


def in_words(name: str, number: int) -> str:
    """What a number of a state means: ``on``, ``torch.float32`` …"""
    words = _WORDS.get(name)
    return words(number) if words is not None else ("on" if number else "off")


def active_modes() -> list[object]:
    """The torch-function modes, then the dispatch modes, outermost first."""
    functions = [torch._C._get_function_stack_at(i) for i in range(torch._C._len_torch_function_stack())]
    dispatch = [torch._C._get_dispatch_stack_at(i) for i in range(torch._C._len_torch_dispatch_stack())]
    return [*functions, *dispatch]


def modes_are(ids: tuple[int, ...], value: object) -> bool:
    """Whether the active modes are exactly the objects with these ids; ``value`` is ignored."""
    return tuple(id(mode) for mode in active_modes()) == ids


def _probe(state: AmbientState, symbol: Symbol) -> str:
    """Register the native reader when it follows torch; returns why not, else an empty string."""
    index = _check.ambient_register(
        library_path(symbol.library), symbol.name, symbol.context, symbol.kind, symbol.argument
    )
    if index is None:
        return f"{symbol.library} has no {symbol.name}"
    before = state.read(), _check.ambient_value(index)
    if state.trial is None:
        if before[0] != before[1]:
            return f"{symbol.name} gives another number than torch: {before}"
        NATIVE[state.name] = index
        return ""
    with state.trial():
        during = state.read(), _check.ambient_value(index)
    after = state.read(), _check.ambient_value(index)
    if before[0] == during[0]:
        return "the trial does not change it"
    if before != after or before[1] == during[1]:
        return f"{symbol.name} does not follow torch: {before}, {during}, {after}"
    if symbol.kind != _INT8 and any(told != met for told, met in (before, during)):
        return f"{symbol.name} gives other numbers than torch: {before}, {during}"
    NATIVE[state.name] = index
    return ""


def install_ambient() -> None:
    """Try every native reader once; afterwards `NATIVE` and `REFUSED` say which are used."""
    for state in STATES:
        reason = "no symbol is known" if state.symbol is None else _probe(state, state.symbol)
        if reason:
            REFUSED[state.name] = reason
