"""Relations between several values, such as ``x.size()[0] == y.size()[1]``: what sizes that vary still have to obey."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch

from dynamo.guards.kinds.clause import Clause, Test, short
from dynamo.guards.sources import Bind, Source


@final
@dataclass(slots=True, eq=False)
class Related(Clause):
    """An expression over values holds; ``template`` has ``{0}`` for the clause's own source, ``{1}`` … for the others.

    ``holds`` is the compiled expression: it takes the values in that order.
    """

    others: tuple[Source, ...]
    template: str
    holds: Callable[..., object]

    def text(self, ref: str, bind: Bind) -> str:
        others = ", ".join(other.expression(bind) for other in self.others)
        return f"{bind(self.holds)}({ref}, {others})" if others else f"{bind(self.holds)}({ref})"

    def native(self) -> Test:
        return Test("TEST_RELATION", operand=self.holds, related=self.others)

    def expected(self) -> str:
        return self.template.format(self.source.name(), *(other.name() for other in self.others))

    def met(self, value: object) -> str:
        if isinstance(value, torch.Tensor):
            return f"sizes {tuple(value.shape)}, strides {tuple(value.stride())}"
        return short(value)
