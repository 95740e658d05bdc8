"""Torch's state around a call that captured code may change: grad mode and autocast.

Symbolic execution really changes it, so that its fake calls run under it; afterwards it is put back. A graph changes it as
the user's code would; when the graph raises half-way, the ``with`` blocks that would have put it back never ended, so it
is put back here.
"""

from typing import Final, NamedTuple

import torch

#: torch functions that set a part of the state; as calls in a graph they change it for what follows
SETTERS: Final = (
    torch._C._set_grad_enabled,
    torch.set_autocast_enabled,
    torch.set_autocast_dtype,
    torch.set_autocast_cache_enabled,
    torch.autocast_increment_nesting,
    torch.autocast_decrement_nesting,
    torch.clear_autocast_cache,
)
#: torch functions that only read it, answered at capture
READERS: Final = (
    torch.is_grad_enabled,
    torch.is_inference_mode_enabled,
    torch.is_autocast_enabled,
    torch.get_autocast_dtype,
    torch.is_autocast_cache_enabled,
    torch.is_autocast_cpu_enabled,
    torch.get_autocast_cpu_dtype,
    torch.get_autocast_gpu_dtype,
    torch.is_deterministic_algorithms_warn_only_enabled,
    torch.are_deterministic_algorithms_enabled,
    torch.get_default_dtype,
    torch.amp.is_autocast_available,
)
_DEVICES: Final = ("cpu", "cuda")


class AmbientState(NamedTuple):
    """A snapshot of the state."""

    grad: bool
    autocast: tuple[tuple[bool, torch.dtype], ...]
    caches: bool
    nesting: int


def read_ambient() -> AmbientState:
    """The state of this thread."""
    nesting = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    devices = tuple((torch.is_autocast_enabled(each), torch.get_autocast_dtype(each)) for each in _DEVICES)
    return AmbientState(torch.is_grad_enabled(), devices, torch.is_autocast_cache_enabled(), nesting)


def restore_ambient(state: AmbientState) -> None:
    """Put the state back; the cache of casts is emptied where the outermost autocast was left by it."""
    torch._C._set_grad_enabled(state.grad)
    now = read_ambient()
    if now == state:
        return
    for device, (enabled, dtype) in zip(_DEVICES, state.autocast, strict=True):
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)
    torch.set_autocast_cache_enabled(state.caches)
    for _ in range(now.nesting - state.nesting):
        torch.autocast_decrement_nesting()
    for _ in range(state.nesting - now.nesting):
        torch.autocast_increment_nesting()
    if state.nesting == 0:
        torch.clear_autocast_cache()
