"""Context managers that capture knows: the grad modes."""

from typing import final

import torch

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker
from dynamo.eval.variables.constant import ConstantVariable


@final
class GradModeVariable(VariableTracker):
    """``torch.no_grad()`` or ``torch.enable_grad()``, made inside."""

    mutable = True

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = mode
        self.before: bool | None = None

    def describe(self) -> str:
        return "torch.enable_grad()" if self.mode else "torch.no_grad()"

    def python_type(self) -> type:
        return torch.enable_grad if self.mode else torch.no_grad

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name == "__enter__" and self.before is None:
            self.before = torch.is_grad_enabled()
            set_grad_mode(tx, self.mode)
            return ConstantVariable(None)
        if name == "__exit__" and self.before is not None:
            set_grad_mode(tx, self.before)
            self.before = None
            return ConstantVariable(None)
        raise GraphBreak(f"{self.describe()}.{name}()")


def set_grad_mode(tx: Translator, mode: bool) -> None:
    """Change grad mode in the graph and, until the capture ends, for the fake calls."""
    append, _ = tx.output.call("call_function", torch._C._set_grad_enabled, (mode,), {}, (mode,), {})
    append()
