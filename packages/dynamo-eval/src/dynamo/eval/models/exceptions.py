"""How exceptions are made: classes that derive from the built-in ones, and their ``__init__``."""

from dynamo.eval.errors import PLAIN_EXCEPTIONS, GraphBreak
from dynamo.eval.models.builtin_calls import Args, Kwargs
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.binding import bound_attribute
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.exception import ExceptionVariable, check_exception_class
from dynamo.eval.variables.lookup import static_lookup
from dynamo.guards import ClassAttrSource


def make_exception(tx: Translator, kind: ClassVariable, args: Args, kwargs: Kwargs) -> ExceptionVariable:
    """``kind(*args, **kwargs)`` for an exception class.

    Raises:
        GraphBreak: the exception has state that capture does not follow.
    """
    check_exception_class(kind.value)
    made = ExceptionVariable(kind, args)
    init = static_lookup(kind.value, "__init__")
    source = ClassAttrSource(kind.own_source(), "__init__")
    bound_attribute(tx, "__init__", init, source, made, kind).call(tx, args, kwargs)
    return made


@models(*{static_lookup(kind, "__init__") for kind in PLAIN_EXCEPTIONS})
def call_exception_init(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    owner = realize(args[0]) if args else None
    if not isinstance(owner, ExceptionVariable) or kwargs:
        raise GraphBreak("the __init__ of an exception with these arguments")
    owner.arguments = list(args[1:])
    return ConstantVariable(None)
