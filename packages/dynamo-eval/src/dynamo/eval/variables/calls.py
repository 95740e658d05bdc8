"""How known callables behave: a registry from the callable to the function that models a call of it.

`dynamo.eval.models` fills it; variables only look it up. A model may raise `GraphBreak`.
"""

from collections.abc import Callable
from typing import Any

from dynamo.eval.variables.base import Translator, VariableTracker

Model = Callable[[Translator, list[VariableTracker], dict[str, VariableTracker]], VariableTracker]

_MODELS: dict[int, tuple[Any, Model]] = {}


def models(*callables: Any) -> Callable[[Model], Model]:
    """Register the decorated function as the model of each of `callables`.

    Raises:
        ValueError: one of them has a model already.
    """

    def register(model: Model) -> Model:
        for each in callables:
            if id(each) in _MODELS:
                raise ValueError(f"two models of {each!r}")
            _MODELS[id(each)] = (each, model)
        return model

    return register


def model_of(value: Any) -> Model | None:
    """The model of a callable, by identity."""
    entry = _MODELS.get(id(value))
    return entry[1] if entry is not None else None
