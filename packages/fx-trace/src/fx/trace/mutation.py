"""Does an operation change one of its arguments? The question behind ``check_mutable_operations``.

The answer comes from the registry of effects in ``fx.ir``, which upper layers fill with what torch's operators do.
"""

from __future__ import annotations

from collections.abc import Mapping

from fx.ir import Argument, Op, Target
from fx.ir.effects import effects_of_call, effects_of_method

__all__ = ["mutates_arguments"]


def mutates_arguments(
    kind: Op, target: Target, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]
) -> bool:
    """Whether the call of a function or method changes an argument in place."""
    if kwargs.get("out") is not None or kwargs.get("inplace") is True:
        return True
    if isinstance(target, str):
        return kind == "call_method" and bool(effects_of_method(target).mutates)
    return bool(effects_of_call(target, args, kwargs).mutates)
