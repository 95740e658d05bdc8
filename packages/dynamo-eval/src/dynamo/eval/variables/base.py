"""`VariableTracker`, the base of every kind, and the small protocol of the translator that drives it.

A variable answers for the value it stands for: its type, its attributes, what a call gives. Whatever it
cannot answer exactly is a `GraphBreak`, and Python answers instead. Values that came from the frame carry a
`Source`; reading them adds guards to the output graph.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from dynamo.eval.errors import GraphBreak
from dynamo.eval.output_graph import OutputGraph
from dynamo.guards import Source


class Translator(Protocol):
    """What variables need of the interpreter that drives them."""

    @property
    def output(self) -> OutputGraph:
        """The graph being written."""

    def inline(
        self, function: "VariableTracker", args: "list[VariableTracker]", kwargs: "dict[str, VariableTracker]"
    ) -> "VariableTracker":
        """Follow a call into a user function."""


class NotConstant(GraphBreak):
    """The variable's value is not known at capture."""

    def __init__(self) -> None:
        super().__init__("a value that is not known at capture")


class VariableTracker:
    """A Python value met in capture.

    Attributes:
        source: how to reach the value at a later call, or None if the frame made it.
        mutable: whether its identity matters, so that rebuilding it twice would be wrong.
        key: what stands for it in hash tables, where `dynamo.eval.variables.keys` found that out.
    """

    mutable: ClassVar[bool] = False

    def __init__(self, source: Source | None = None) -> None:
        self.source = source
        self.key: object | None = None

    @property
    def hashed_by_identity(self) -> bool:
        """Whether a dict tells the value from others by its identity alone."""
        return False

    def python_type(self) -> type:
        """The exact type of the value."""
        raise GraphBreak(f"the type of a {type(self).__name__} is not known")

    def describe(self) -> str:
        """The value in a few words, for reasons."""
        try:
            return f"a {self.python_type().__name__}"
        except GraphBreak:
            return type(self).__name__

    def as_python_constant(self) -> Any:
        """The value itself.

        Raises:
            NotConstant: it is only known when the graph runs, or may be changed meanwhile.
        """
        raise NotConstant

    def as_graph_arg(self) -> Any:
        """The value as an argument of a node."""
        raise GraphBreak(f"{self.describe()} cannot be an argument of a graph call")

    def as_fake(self) -> Any:
        """The value as an argument of the same call on fake tensors."""
        return self.as_graph_arg()

    def get_attr(self, tx: Translator, name: str) -> "VariableTracker":
        """``value.name``."""
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")

    def set_attr(self, tx: Translator, name: str, value: "VariableTracker | None") -> None:
        """``value.name = …``, or ``del value.name`` for None."""
        raise GraphBreak(f"storing attribute {name!r} of {self.describe()}")

    def set_own(self, tx: Translator, name: str, value: "VariableTracker | None") -> None:
        """``value.__dict__[name] = …``, or ``del value.__dict__[name]`` for None."""
        raise GraphBreak(f"storing attribute {name!r} of {self.describe()}")

    def builtin_content(self) -> "VariableTracker | None":
        """What methods made in C work on: the value itself, or what an object of a subclass holds; None for neither."""
        return None

    def call(
        self, tx: Translator, args: "list[VariableTracker]", kwargs: "dict[str, VariableTracker]"
    ) -> "VariableTracker":
        """``value(*args, **kwargs)``."""
        raise GraphBreak(f"calling {self.describe()}")

    def call_special(self, tx: Translator, name: str, args: "list[VariableTracker]") -> "VariableTracker":
        """``type(value).name(value, *args)``: a dunder method, looked up on the class."""
        raise GraphBreak(f"{name} of {self.describe()}")

    def call_method(
        self, tx: Translator, name: str, args: "list[VariableTracker]", kwargs: "dict[str, VariableTracker]"
    ) -> "VariableTracker":
        """``value.name(*args, **kwargs)``."""
        return self.get_attr(tx, name).call(tx, args, kwargs)

    def truth(self, tx: Translator) -> bool:
        """``bool(value)``.

        Raises:
            GraphBreak: only the values in a tensor tell.
        """
        raise GraphBreak(f"the truth of {self.describe()}")

    def unpack(self, tx: Translator) -> "list[VariableTracker]":
        """All items, as ``[*value]`` gives them."""
        raise GraphBreak(f"iterating over {self.describe()}")

    def iterate(self, tx: Translator) -> "VariableTracker":
        """``iter(value)``."""
        raise GraphBreak(f"iterating over {self.describe()}")

    def __repr__(self) -> str:
        origin = f" from {self.source.name()}" if self.source is not None else ""
        return f"<{type(self).__name__}{origin}>"


class LazyVariable(VariableTracker):
    """A value that nobody has read yet: it has a source and no guard."""

    def __init__(
        self, value: object, source: Source, build: "Callable[[object, Source], VariableTracker]"
    ) -> None:
        super().__init__(source)
        self.value = value
        self._build = build
        self._built: VariableTracker | None = None

    @property
    def is_read(self) -> bool:
        """Whether the value was looked at, so that its variable may differ from its source."""
        return self._built is not None

    def realize(self) -> VariableTracker:
        """The variable, built and guarded on first use."""
        if self._built is None:
            assert self.source is not None
            self._built = self._build(self.value, self.source)
        return self._built


def realize(var: VariableTracker) -> VariableTracker:
    """The variable behind a lazy one, or the variable itself."""
    return var.realize() if isinstance(var, LazyVariable) else var


def realized(variables: Sequence[VariableTracker]) -> list[VariableTracker]:
    """All of `variables`, read."""
    return [realize(var) for var in variables]


def is_constant(var: VariableTracker) -> bool:
    """Whether the value is known and cannot change during the call."""
    try:
        var.as_python_constant()
    except NotConstant:
        return False
    return True


def constants(
    args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> tuple[list[Any], dict[str, Any]] | None:
    """The Python values of all arguments, or None if one of them is not known."""
    try:
        return (
            [realize(arg).as_python_constant() for arg in args],
            {name: realize(arg).as_python_constant() for name, arg in kwargs.items()},
        )
    except NotConstant:
        return None
