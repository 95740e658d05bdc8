"""Whether checks run natively on this torch, and what does not, with the reason."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

import torch

from dynamo.guards import _check, ambient
from dynamo.guards._unbound import UNBOUND
from dynamo.guards.kinds.tensors import check_facts
from dynamo.guards.layout import install_layout

_T = TypeVar("_T")
LOG: Final = logging.getLogger("dynamo.guards")


@dataclass(frozen=True, slots=True)
class NativeStatus:
    """How checks run here.

    Attributes:
        tensors: how tensors are read: "raw" in their memory, "shim" through libtorch's stable C interface, "python"
            through torch's public answers.
        tensors_refused: the better ways that are not used, with the reason.
        remembers: whether a check skips what cannot have changed since an earlier one (no, when the interpreter has
            no dict watcher left).
        ambient_native: ambient states read in C.
        ambient_refused: ambient states read through Python, with the reason.
        torch_version: the torch that was probed.
    """

    tensors: str
    tensors_refused: dict[str, str]
    remembers: bool
    ambient_native: tuple[str, ...]
    ambient_refused: dict[str, str]
    torch_version: str

    def __str__(self) -> str:
        lines = [f"torch {self.torch_version}: tensors checked {self.tensors}"]
        lines += [f"  not {tier}: {reason}" for tier, reason in self.tensors_refused.items()]
        if not self.remembers:
            lines.append("  every guard is walked on each check: the interpreter has no dict watcher left")
        lines.append(f"  ambient state in C: {', '.join(self.ambient_native) or 'none'}")
        lines += [f"  {name} through Python: {reason}" for name, reason in self.ambient_refused.items()]
        return "\n".join(lines)


def report_error(error: BaseException) -> bool:
    """Tell the log of an exception in a check; the check is a miss."""
    LOG.warning("a guard check raised and counts as a miss: %r", error, exc_info=error)
    return False


def _install() -> tuple[str, dict[str, str]]:
    _check.tensor_type(torch.Tensor)
    _check.tensor_fallback(check_facts)
    _check.set_report(report_error)
    _check.set_unbound(UNBOUND)
    return _in_quiet(_probe)


def _probe() -> tuple[str, dict[str, str]]:
    ambient.install_ambient()
    return install_layout()


def _in_quiet(probe: Callable[[], _T]) -> _T:
    """What `probe` returns in a thread of its own: inference mode, autocast, function and dispatch modes and transforms
    belong to a thread, so whoever imports us under one must neither see our trials nor spoil them."""
    with ThreadPoolExecutor(1) as quiet:
        return quiet.submit(probe).result()


_TENSORS: Final = _install()


def native_status() -> NativeStatus:
    """What the probes at import found."""
    tier, refused = _TENSORS
    return NativeStatus(
        tensors=tier,
        tensors_refused=dict(refused),
        remembers=_check.MARKS,
        ambient_native=tuple(ambient.NATIVE),
        ambient_refused=dict(ambient.REFUSED),
        torch_version=torch.__version__,
    )
