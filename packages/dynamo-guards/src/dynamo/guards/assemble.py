"""Clauses to a native program: registers for access paths, shared by all guards that go the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dynamo.guards import _check
from dynamo.guards.errors import GuardBuildError
from dynamo.guards.kinds.clause import Clause, Test
from dynamo.guards.scope import GuardScope
from dynamo.guards.sources import Load, Source

OPCODES: Final = {name: number for number, name in enumerate(_check.OPCODES)}

Instruction = tuple[int, int, int, int, object]
"""Opcode, target register, source register or place, number, operand."""


class Assembler:
    """Collects the instructions of one program."""

    def __init__(self, scope: GuardScope) -> None:
        self._scope = scope
        self._registers: dict[Source, int] = {}
        self._count = 0
        self.instructions: list[Instruction] = []

    def _load_of(self, source: Source) -> Load:
        try:
            return source.native(self._scope)
        except (ValueError, LookupError, AttributeError) as error:
            raise GuardBuildError(source.name(), str(error)) from error

    def _emit_load(self, source: Source) -> int:
        base = source.base
        place = self.register(base) if base is not None else None
        load = self._load_of(source)
        if load.op == "SAME":
            assert place is not None  # only a step is the same as its base
            return place
        target = self._count
        self._count += 1
        position = load.place if place is None else place
        self.instructions.append((OPCODES[load.op], target, position, load.number, load.operand))
        return target

    def register(self, source: Source) -> int:
        """The register of a source, loaded when it is first needed."""
        found = self._registers.get(source)
        if found is None:
            found = self._registers[source] = self._emit_load(source)
        return found

    def add(self, clause: Clause, test: Test) -> None:
        """Append a clause's test, and the loads that it needs."""
        op = OPCODES[test.op]
        if test.op == "TEST_UNBOUND":
            if clause.source.base is not None:
                self.register(clause.source.base)
            self.instructions.append((op, 0, 0, 0, None))
            self._emit_load(clause.source)
            return
        place = test.place if test.place is not None else self.register(clause.source)
        target = self.register(test.other) if test.other is not None else 0
        operand = test.operand
        if test.op == "TEST_RELATION":
            operand = (operand, place, *(self.register(each) for each in test.related))
        self.instructions.append((op, target, place, test.number, operand))

    def finish(self, keep: object) -> _check.GuardProgram:
        """The program; ``keep`` lives as long as it."""
        return _check.GuardProgram(tuple(self.instructions), self._count, len(self._scope.arg_names), keep)


def assemble(
    clauses: Sequence[Clause], tests: Sequence[Test], scope: GuardScope, keep: object
) -> _check.GuardProgram:
    """The native form of a check. Raises: GuardBuildError naming the source that has none."""
    assembler = Assembler(scope)
    for clause, test in zip(clauses, tests, strict=True):
        assembler.add(clause, test)
    return assembler.finish(keep)
