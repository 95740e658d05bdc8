"""Exceptions that the captured code makes, raises and handles."""

import types
from collections.abc import Sequence
from typing import Any, Final, final

from dynamo.eval.errors import PLAIN_EXCEPTIONS, GraphBreak, PythonRaise
from dynamo.eval.variables.base import Translator, VariableTracker, constants, realize
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantVariable, fold, from_constant
from dynamo.eval.variables.lookup import is_python_class, static_lookup
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.sequence import TupleVariable

_STATE: Final = frozenset(
    "args __cause__ __context__ __traceback__ __suppress_context__ __notes__ with_traceback add_note "
    "__reduce__ __setstate__ __dict__ name obj".split()
)


@final
class ExceptionVariable(UserObjectVariable):
    """An exception made inside.

    Attributes:
        arguments: its ``args``; None where capture does not know them exactly.
        cause: what ``raise … from`` set.
        context: the exception that was handled when this one was raised; None if none was, as far as capture knows.
        raised_at: number of the root's step that raised it into a handler; such an exception has a traceback, and
            cannot outlive the capture.
    """

    def __init__(self, class_var: ClassVariable, arguments: Sequence[VariableTracker] | None) -> None:
        super().__init__(None, class_var.value, None, class_var)
        self.arguments = None if arguments is None else list(arguments)
        self.cause: VariableTracker | None = None
        self.suppresses_context = False
        self.context: ExceptionVariable | None = None
        self.raised_at: int | None = None

    def describe(self) -> str:
        return f"a {self.kind.__name__}"

    def truth(self, tx: Translator) -> bool:
        return True if not is_python_class(self.kind) else super().truth(tx)

    def known_arguments(self) -> list[VariableTracker]:
        """``args``.

        Raises:
            GraphBreak: only Python knows the words.
        """
        if self.arguments is None:
            raise GraphBreak(f"the text of {self.describe()}")
        return self.arguments

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name == "args":
            return TupleVariable(self.known_arguments())
        if name == "__cause__":
            return self.cause or ConstantVariable(None)
        if name == "__suppress_context__":
            return ConstantVariable(self.suppresses_context)
        if name == "__context__" and self.context is not None:
            return self.context
        if name == "value" and issubclass(self.kind, StopIteration):
            given = self.known_arguments()
            return realize(given[0]) if given else ConstantVariable(None)
        if name in _STATE:
            raise GraphBreak(f"attribute {name!r} of {self.describe()}")
        return self.generic_get_attr(tx, name)

    def set_attr(self, tx: Translator, name: str, value: VariableTracker | None) -> None:
        if name == "__traceback__" and self.raised_at is not None and value is not None:
            return  # reading it breaks, and this exception does not outlive the capture
        if name in _STATE or (name == "value" and issubclass(self.kind, StopIteration)):
            raise GraphBreak(f"storing attribute {name!r} of {self.describe()}")
        self.generic_set_attr(tx, name, value)

    def text(self, tx: Translator) -> VariableTracker:
        """``str(value)``."""
        if not isinstance(static_lookup(self.kind, "__str__"), types.WrapperDescriptorType):
            return realize(self.call_special(tx, "__str__", []))
        known = constants(self.known_arguments(), {})
        if known is None or not all(isinstance(each, int | float | str | bytes | None) for each in known[0]):
            raise GraphBreak(f"the text of {self.describe()}")
        builtin = next(base for base in self.kind.__mro__ if not is_python_class(base))
        return fold(lambda: str(builtin(*known[0])))


@final
class TracebackVariable(VariableTracker):
    """The traceback of an exception that capture raised: nothing can be read from it."""

    mutable = True

    def describe(self) -> str:
        return "a traceback"

    def truth(self, tx: Translator) -> bool:
        return True


def check_exception_class(kind: type) -> None:
    """Refuse a class whose exceptions capture cannot make.

    Raises:
        GraphBreak: state in C beside the arguments, or a ``__new__``, ``__del__`` or metaclass of its own.
    """
    builtin = next(base for base in kind.__mro__ if not is_python_class(base))
    own = [base for base in kind.__mro__ if is_python_class(base)]
    overridden = (
        "__new__",
        "__del__",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__getattr__",
        "__slots__",
    )
    if (
        builtin not in PLAIN_EXCEPTIONS
        or type(kind) is not type
        or any(
            not is_python_class(base) and base not in PLAIN_EXCEPTIONS and base is not object
            for base in kind.__mro__
        )
        or any(name in base.__dict__ for base in own for name in overridden)
    ):
        raise GraphBreak(f"making a {kind.__qualname__}", "make it outside of the captured function")


def exception_of(tx: Translator, error: PythonRaise) -> ExceptionVariable:
    """The variable of an exception that an operation raises, made on first use."""
    if isinstance(error.exception, ExceptionVariable):
        return error.exception
    arguments: list[VariableTracker] | None = None
    if error.arguments is not None:
        try:
            arguments = [
                each if isinstance(each, VariableTracker) else from_constant(each) for each in error.arguments
            ]
        except GraphBreak:
            arguments = None
    made = ExceptionVariable(ClassVariable(error.kind), arguments)
    error.exception = made
    return made


def classes_of(var: VariableTracker) -> tuple[Any, ...]:
    """The exception classes of an ``except`` clause.

    Raises:
        GraphBreak: not known at capture, or not exceptions.
    """
    known = constants([var], {})
    if known is None:
        raise GraphBreak(f"except {var.describe()}")
    found = known[0][0]
    flat = found if isinstance(found, tuple) else (found,)
    for each in flat:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise GraphBreak(f"except {each!r}, which is no exception class")
    return flat
