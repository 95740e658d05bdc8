"""The test on torch's state around the call."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import final

from dynamo.guards import _check, ambient
from dynamo.guards.kinds.clause import Clause, Test, short
from dynamo.guards.sources import Bind


@final
@dataclass(slots=True, eq=False)
class AmbientIs(Clause):
    """One of `ambient.STATES` has the number that it had at capture."""

    state: str
    number: int

    def text(self, ref: str, bind: Bind) -> str:
        return f"___ambient({self.state!r}) == {self.number}"

    def native(self) -> Test:
        index = ambient.NATIVE.get(self.state)
        if index is not None:
            return Test("TEST_AMBIENT", _check.ambient_value(index), place=index)
        return Test("TEST_CALL", operand=self.holds)

    def holds(self, value: object) -> bool:
        """The test through Python, for a state without a native reader; ``value`` is ignored."""
        return ambient.read(self.state) == self.number

    def expected(self) -> str:
        return f"{self.state.replace('_', ' ')} {ambient.in_words(self.state, self.number)}"

    def met(self, value: object) -> str:
        return f"{self.state.replace('_', ' ')} {ambient.in_words(self.state, ambient.read(self.state))}"


@final
@dataclass(slots=True, eq=False)
class ModesAre(Clause):
    """Exactly these modes are on the stacks of torch-function and dispatch modes; the builder watches their lives."""

    ids: tuple[int, ...]
    described: str

    def text(self, ref: str, bind: Bind) -> str:
        return f"___modes_are({self.ids}, {ref})"

    def native(self) -> Test:
        return Test("TEST_CALL", operand=functools.partial(ambient.modes_are, self.ids))

    def expected(self) -> str:
        return f"the modes {self.described} on the stacks"

    def met(self, value: object) -> str:
        return f"the modes {short(ambient.active_modes())}"
