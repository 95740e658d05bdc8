"""Which modules stay one call in a graph."""

from __future__ import annotations

from typing import Final

import torch

__all__ = ["is_library_module"]

_LIBRARY: Final = ("torch.nn", "torch.ao.nn")


def is_library_module(module: torch.nn.Module) -> bool:
    """Whether ``module`` is one of torch's own, other than ``Sequential``: the default leaf policy.

    Source: seed 003, "Leaf modules".
    """
    return type(module).__module__.startswith(_LIBRARY) and not isinstance(module, torch.nn.Sequential)
