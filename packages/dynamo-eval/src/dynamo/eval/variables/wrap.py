"""From a Python value to the variable that stands for it: a registry by type, then by predicate.

`VariableBuilder` is the founding document's name for it: ``VariableBuilder(output, source)(value)``. A value is
wrapped when it is first read; the guard that belongs to its kind is added then and not before.
"""

from collections.abc import Callable
from typing import Any, final

from dynamo.eval.errors import GraphBreak
from dynamo.eval.output_graph import OutputGraph
from dynamo.eval.variables.base import LazyVariable, VariableTracker
from dynamo.eval.variables.constant import LITERALS
from dynamo.guards import Source

Rule = Callable[[OutputGraph, Any, Source], VariableTracker]
Predicate = Callable[[Any], bool]

_BY_TYPE: dict[type, Rule] = {}
_BY_PREDICATE: list[tuple[int, Predicate, Rule]] = []


def wraps(*kinds: type) -> Callable[[Rule], Rule]:
    """Register the rule for values whose exact type is one of `kinds`.

    Raises:
        ValueError: a type has a rule already.
    """

    def register(rule: Rule) -> Rule:
        for kind in kinds:
            if kind in _BY_TYPE:
                raise ValueError(f"two rules for {kind.__name__}")
            _BY_TYPE[kind] = rule
        return rule

    return register


def wraps_where(order: int, predicate: Predicate) -> Callable[[Rule], Rule]:
    """Register the rule for values that no exact type tells; lower `order` is asked first."""

    def register(rule: Rule) -> Rule:
        _BY_PREDICATE.append((order, predicate, rule))
        _BY_PREDICATE.sort(key=lambda entry: entry[0])
        return rule

    return register


def wrap_value(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    """Read `value`, found at `source`: its variable, guarded. One object has one variable.

    Raises:
        GraphBreak: no kind of variable stands for such a value.
    """
    shared = type(value) not in LITERALS
    if shared:
        known = output.wrapped.get(id(value))
        if known is not None:
            var: VariableTracker = known[1]
            if var.source is not None and var.source.name() != source.name():
                output.guard_same(source, var.source)
            return var
    rule = _BY_TYPE.get(type(value))
    if rule is None:
        rule = next((rule for _, holds, rule in _BY_PREDICATE if holds(value)), None)
    if rule is None:
        raise GraphBreak(f"a {type(value).__module__}.{type(value).__qualname__} ({source.name()})")
    var = rule(output, value, source)
    if shared:
        output.wrapped[id(value)] = (value, var)
    return var


@final
class Builder:
    """Wraps lazily: nothing is guarded until the variable is read."""

    __slots__ = ("output",)

    def __init__(self, output: OutputGraph) -> None:
        self.output = output

    def __call__(self, value: object, source: Source) -> LazyVariable:
        return LazyVariable(value, source, self.read)

    def read(self, value: object, source: Source) -> VariableTracker:
        """Wrap at once."""
        return wrap_value(self.output, value, source)


@final
class VariableBuilder:
    """Wraps the value of one source at once.

    Source: founding document, "InstructionTranslator": ``VariableBuilder(self, LocalSource(k))(f_locals[k])``.
    """

    def __init__(self, output: OutputGraph, source: Source) -> None:
        self.output = output
        self.source = source

    def __call__(self, value: object) -> VariableTracker:
        return wrap_value(self.output, value, self.source)
