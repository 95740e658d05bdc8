"""One function through every backend that is at hand, one of our own among them.

A backend is a callable ``(GraphModule, example inputs) → callable``. Those of this package have names; so have those
that an installed package announces, openvino's for one, and those registered with torch.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch

import dynamo.eval as dynamo
from fx.codegen import GraphModule

NEEDS = {"inductor": shutil.which("g++"), "onnxruntime": find_spec("onnxscript") and find_spec("onnxruntime")}


@dynamo.register_backend
def counting(gm: GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """Print which operations the graph has, and run it as it is."""
    calls = [node for node in gm.graph.nodes if node.op.startswith("call")]
    counts = Counter(getattr(node.target, "__name__", str(node.target)) for node in calls)
    print("  ", ", ".join(f"{name} × {count}" for name, count in counts.items()))
    return gm.forward


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Plain scaled dot-product attention over `(length, width)`."""
    scores = query @ key.t() / query.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ value


def main() -> None:
    """Compare each backend with eager."""
    torch.manual_seed(0)
    inputs = [torch.randn(6, 4) for _ in range(3)]
    expected = attention(*inputs)
    for name in dynamo.list_backends(exclude_tags=()):
        if not NEEDS.get(name, True):
            print(f"{name}: not at hand")
            continue
        with torch.no_grad():
            result = dynamo.optimize(name, nopython=True)(attention)(*inputs)
        print(f"{name}: differs from eager by at most {(result - expected).abs().max().item():.1e}")
        dynamo.reset()


if __name__ == "__main__":
    main()
