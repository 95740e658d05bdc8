"""The founding example: capture a function with a data-dependent branch, and look at all that was made.

Run it with ``hatch run demo``.  The backend below only prints the graph that it is given and hands
back the graph's own ``forward``; a real backend would compile it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

import dynamo.eval as dynamo
from fx.codegen import GraphModule

CALLS = 100


def my_compiler(gm: GraphModule, example_inputs: Sequence[torch.Tensor]) -> Callable[..., object]:
    """Print the captured graph and run it as it is."""
    print("my_compiler() called with FX graph:")
    gm.graph.print_tabular()
    print()
    return gm.forward


def toy_example(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Divide, branch on the data, multiply; a, b: (10,)."""
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def main() -> None:
    """Call the captured function with random inputs, compare each result with eager, and report."""
    captured = dynamo.optimize(my_compiler)(toy_example)
    for _ in range(CALLS):
        a, b = torch.randn(10), torch.randn(10)
        assert torch.equal(captured(a, b), toy_example(a, b))
    print(dynamo.report())


if __name__ == "__main__":
    main()
