"""Why a check failed, in words: the source, what was expected, what was met, and the user's line behind the guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dynamo.guards.kinds.clause import Clause, short
from dynamo.guards.kinds.values import IsUnbound
from dynamo.guards.python import MISSING, CheckText, generate_single
from dynamo.guards.scope import GuardScope
from dynamo.guards.sources import AmbientSource
from dynamo.guards.status import report_error


@dataclass(frozen=True, slots=True)
class Failure:
    """One guard that does not hold.

    Attributes:
        source: expression of the value.
        kind: the guard kind, e.g. ``TENSOR_MATCH``.
        expected: what had to hold.
        met: what is there.
        user_line: file and line of the user's code that made the guard, if known.
    """

    source: str
    kind: str
    expected: str
    met: str
    user_line: tuple[str, int] | None

    def __str__(self) -> str:
        where = f", for {self.user_line[0]}:{self.user_line[1]}" if self.user_line is not None else ""
        return f"{self.source}: expected {self.expected}, met {self.met} ({self.kind}{where})"


class _Always:
    """Stands for the guarded code while one clause is looked at."""

    valid = True


def one_by_one(clauses: Sequence[Clause], arg_names: Sequence[str]) -> CheckText:
    """What `failures` asks: the clauses as functions, compiled together."""
    return generate_single(clauses, arg_names)


def _questions(text: CheckText, scope: GuardScope) -> Sequence[Callable[[], object]]:
    cells = dict(zip(scope.free_names, scope.closure or (), strict=True))
    ask = text.function("clauses", _Always, report_error, cells, scope.globals, scope.builtins)
    questions: Sequence[Callable[[], object]] = ask(*scope.args)
    return questions


def _holds(question: Callable[[], object]) -> bool:
    try:
        return bool(question())
    except MISSING:
        return False
    except Exception as error:  # the guarded values and predicates are the user's and may raise anything
        return report_error(error)


def _met(clause: Clause, scope: GuardScope) -> str:
    try:
        value = clause.source.load(scope)
    except (*MISSING, TypeError):
        return "no such value"
    except Exception as error:  # reading it runs code that was not there at capture
        return f"a value that raises {short(error)}"
    if isinstance(clause, IsUnbound):
        return short(value)
    try:
        return clause.met(value)
    except Exception as error:  # the value is the user's and may do anything
        return f"a value that raises {short(error)}"


def _name(clause: Clause) -> str:
    return "torch" if isinstance(clause.source, AmbientSource) else clause.source.name()


def in_words(clauses: Sequence[Clause]) -> tuple[str, ...]:
    """One sentence a source, in the order of checking: the source and all that must hold of it."""
    expected: dict[str, list[str]] = {}
    for clause in clauses:
        line = clause.guard.user_line
        where = f" (for {line[0]}:{line[1]})" if line is not None else ""
        expected.setdefault(_name(clause), []).append(clause.expected() + where)
    return tuple(f"{name}: {', '.join(words)}" for name, words in expected.items())


def failures(
    clauses: Sequence[Clause], text: CheckText, scope: GuardScope, limit: int | None = None
) -> list[Failure]:
    """The guards that do not hold in a scope, in the order of checking; at most ``limit``.

    Args:
        clauses: the guards' clauses.
        text: what `one_by_one` made of them.
        scope: the values.
        limit: stop after so many; None for all.
    """
    found: list[Failure] = []
    for clause, question in zip(clauses, _questions(text, scope), strict=True):
        if not _holds(question):
            guard = clause.guard
            found.append(
                Failure(_name(clause), guard.kind, clause.expected(), _met(clause, scope), guard.user_line)
            )
            if limit is not None and len(found) >= limit:
                break
    return found
