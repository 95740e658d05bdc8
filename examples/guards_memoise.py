"""Memoise an ordinary function with guards: reuse a result only while all that it was made from is unchanged.

No capture, no graph: the guards name the argument's fields and a global, and say in words why a result was not reused.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass

from dynamo.guards import (
    AttrSource,
    CheckFunctionManager,
    GlobalSource,
    GuardBuilder,
    GuardScope,
    LocalSource,
)

RATE = 0.2


@dataclass
class Order:
    """What is sold: a list of prices, and a note that does not matter."""

    prices: list[float]
    note: str = ""


def total(order: Order) -> float:
    """Prices and tax."""
    return sum(order.prices) * (1 + RATE)


class Memo:
    """Results of `total`, each with the check that says whether it is still right."""

    def __init__(self) -> None:
        self.entries: list[tuple[CheckFunctionManager, float]] = []

    def __call__(self, order: Order) -> tuple[float, str]:
        """The result, and how it was come by."""
        for manager, result in self.entries:
            if manager.check([order]):
                return result, "reused"
        why = self.entries[-1][0].explain_failure([order]) if self.entries else "nothing was known"
        scope = GuardScope(("order",), (), (order,), None, globals(), vars(builtins))
        guards = [
            AttrSource(LocalSource("order"), "prices").make_guard(GuardBuilder.EQUALS_MATCH),
            GlobalSource("RATE").make_guard(GuardBuilder.EQUALS_MATCH),
        ]
        result = total(order)
        self.entries.append((CheckFunctionManager(guards, scope), result))
        return result, f"computed: {why}"


def main() -> None:
    """Compute, reuse, and compute again when a price or the rate changes."""
    global RATE
    memo = Memo()
    order = Order([1.0, 2.0])
    print(memo(order))
    order.note = "gift"
    print(memo(order))
    order.prices.append(3.0)
    print(memo(order))
    RATE = 0.25
    print(memo(order))
    print(memo.entries[0][0].source)


if __name__ == "__main__":
    main()
