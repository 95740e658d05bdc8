"""Context managers that capture knows: the grad modes."""

from typing import final

import torch

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.sequence import BoundMethodVariable


@final
class GradModeVariable(VariableTracker):
    """``torch.no_grad()``, ``torch.enable_grad()`` or ``torch.set_grad_enabled(…)``, made inside."""

    mutable = True

    def __init__(self, mode: bool, *, sets_at_once: bool = False) -> None:
        super().__init__()
        self.mode = mode
        self.sets_at_once = sets_at_once
        self.before: bool | None = None

    def describe(self) -> str:
        return "torch.enable_grad()" if self.mode else "torch.no_grad()"

    def python_type(self) -> type:
        return torch.enable_grad if self.mode else torch.no_grad

    def begin(self, tx: Translator) -> None:
        """Set the mode, and keep what it was."""
        self.before = torch.is_grad_enabled()
        set_grad_mode(tx, self.mode)

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name in ("__enter__", "__exit__", "clone"):
            return BoundMethodVariable(self, name)
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if len(args) != 1 or kwargs or self.before is not None:
            raise GraphBreak(f"calling {self.describe()}")
        return GradDecoratedVariable(self.mode, realize(args[0]))

    def call_special(self, tx: Translator, name: str, args: list[VariableTracker]) -> VariableTracker:
        return self.call_method(tx, name, args, {})

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name == "__enter__" and (self.sets_at_once or self.before is None):
            if self.before is None:
                self.begin(tx)
            else:
                set_grad_mode(tx, self.mode)
            return ConstantVariable(None)
        if name == "__exit__" and self.before is not None:
            set_grad_mode(tx, self.before)
            if not self.sets_at_once:
                self.before = None
            return ConstantVariable(None)
        if name == "clone" and not args and not self.sets_at_once:
            return GradModeVariable(self.mode)
        raise GraphBreak(f"{self.describe()}.{name}()")


@final
class GradDecoratedVariable(VariableTracker):
    """A function that ``torch.no_grad()`` or ``torch.enable_grad()`` decorated, inside."""

    mutable = True

    def __init__(self, mode: bool, function: VariableTracker) -> None:
        super().__init__()
        self.mode = mode
        self.function = function

    def truth(self, tx: Translator) -> bool:
        return True

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        context = GradModeVariable(self.mode)
        context.call_method(tx, "__enter__", [], {})
        try:
            return realize(self.function.call(tx, args, kwargs))
        finally:
            context.call_method(tx, "__exit__", [], {})


def set_grad_mode(tx: Translator, mode: bool) -> None:
    """Change grad mode in the graph and, until the capture ends, for the fake calls."""
    append, _ = tx.output.call("call_function", torch._C._set_grad_enabled, (mode,), {}, (mode,), {})
    append()
