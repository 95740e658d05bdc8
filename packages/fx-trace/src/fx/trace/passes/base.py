"""What a pass is, and how passes are run one after the other.

A pass takes a graph module and gives one, with a report of what it changed. It may edit the module it is given and return it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, final

from fx.codegen import GraphModule

__all__ = ["Check", "Pass", "PassError", "PassManager", "PassResult", "lints"]


@final
@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass gives.

    Attributes:
        graph_module: the module after the pass; the one it was given, or a new one.
        changes: one sentence for each change; empty when nothing was changed.
    """

    graph_module: GraphModule
    changes: tuple[str, ...] = ()

    @property
    def modified(self) -> bool:
        """Whether anything was changed."""
        return bool(self.changes)


class Pass(Protocol):
    """Graph module in, graph module and report out."""

    def __call__(self, gm: GraphModule, /) -> PassResult:
        """Run on ``gm``."""
        ...


Check: TypeAlias = Callable[[GraphModule], None]


class PassError(RuntimeError):
    """A pass, or the check after it, failed; the cause is chained.

    Attributes:
        pass_name: which pass.
    """

    def __init__(self, message: str, pass_name: str) -> None:
        self.pass_name = pass_name
        super().__init__(message)


def lints(gm: GraphModule) -> None:
    """The check that is made by default: every invariant of the graph holds."""
    gm.graph.lint()


def _name(step: Pass) -> str:
    return getattr(step, "__name__", type(step).__name__)


@final
class PassManager:
    """Runs passes in order, and checks the graph after each.

    Args:
        passes: run in this order.
        checks: called after each pass; raise to say that the pass broke the graph.
        rounds: repeat the whole sequence until nothing changes, at most so often.

    Source: torch.fx ``passes.infra.pass_manager``.
    """

    def __init__(self, passes: Sequence[Pass], checks: Sequence[Check] = (lints,), rounds: int = 1) -> None:
        self.passes = list(passes)
        self.checks = list(checks)
        self.rounds = rounds

    def __call__(self, gm: GraphModule) -> PassResult:
        """Run all passes.

        Raises:
            PassError: a pass or a check failed; names the pass.
        """
        changes: list[str] = []
        for _ in range(self.rounds):
            found: list[str] = []
            for step in self.passes:
                result = self._run(step, gm)
                gm = result.graph_module
                found.extend(f"{_name(step)}: {change}" for change in result.changes)
            changes.extend(found)
            if not found:
                break
        return PassResult(gm, tuple(changes))

    def _run(self, step: Pass, gm: GraphModule) -> PassResult:
        doing = "failed"
        try:
            result = step(gm)
            doing = "left a graph that does not pass the checks"
            for check in self.checks:
                check(result.graph_module)
        except Exception as error:
            raise PassError(f"pass {_name(step)} {doing}: {error}", _name(step)) from error
        return result
