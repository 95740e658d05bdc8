"""`functools`, `operator` and `collections`: partial functions, getters, deques, counting."""

import collections
import functools
import operator
from collections import deque

from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.models import operators
from dynamo.eval.models.builtin_calls import Args, Kwargs, call_getattr, expect
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.deques import DequeVariable
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.iterator import unpacked_whole
from dynamo.eval.variables.lookup import MISSING, static_lookup
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.partial import GETTERS, GetterVariable, PartialVariable
from dynamo.eval.variables.sequence import TupleVariable


@models(functools.partial)
def call_partial(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if not args:
        raise GraphBreak("TypeError: partial() without a function")
    function = realize(args[0])
    if isinstance(function, PartialVariable):
        inner = realize(function.function)
        return PartialVariable(inner, [*function.args, *args[1:]], {**function.kwargs, **kwargs})
    return PartialVariable(function, args[1:], kwargs)


def _getter(kind: type) -> None:
    @models(kind)
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        known = [realize(arg).as_python_constant() for arg in args]
        named = {name: realize(arg).as_python_constant() for name, arg in kwargs.items()}
        try:
            return GetterVariable(kind(*known, **named))
        except TypeError as error:
            raise GraphBreak(f"TypeError: {error}") from error


for _kind in GETTERS:
    _getter(_kind)


@models(operator.itemgetter.__call__)
def call_itemgetter(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    getter, value = expect("itemgetter", args, kwargs, 2)
    found = [operators.get_item(tx, value, ConstantVariable(key)) for key in _parts(getter)]
    return realize(found[0]) if len(found) == 1 else TupleVariable(found)


@models(operator.attrgetter.__call__)
def call_attrgetter(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    getter, value = expect("attrgetter", args, kwargs, 2)
    found = []
    for path in _parts(getter):
        step = value
        for name in path.split("."):
            step = realize(call_getattr(tx, [step, ConstantVariable(name)], {}))
        found.append(step)
    return found[0] if len(found) == 1 else TupleVariable(found)


@models(operator.methodcaller.__call__)
def call_methodcaller(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    getter, value = expect("methodcaller", args, kwargs, 2)
    if not isinstance(getter, GetterVariable) or getter.value.__reduce__()[0] is not operator.methodcaller:
        raise GraphBreak("a methodcaller with keywords")
    name, *rest = getter.parts()
    return value.call_method(tx, name, [ConstantVariable(each) for each in rest], {})


def _parts(getter: VariableTracker) -> tuple[str, ...]:
    if not isinstance(getter, GetterVariable):
        raise GraphBreak(f"calling {getter.describe()}")
    return getter.parts()


@models(deque)
def call_deque(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if len(args) > 2 or not set(kwargs) <= {"iterable", "maxlen"}:
        raise GraphBreak("deque() with these arguments")
    items = args[0] if args else kwargs.get("iterable")
    limit = args[1] if len(args) > 1 else kwargs.get("maxlen")
    maxlen = realize(limit).as_python_constant() if limit is not None else None
    if maxlen is not None and (type(maxlen) is not int or maxlen < 0):
        raise PythonRaise(ValueError, ("maxlen must be non-negative",))
    made = DequeVariable([], maxlen)
    if items is not None:
        made.call_method(tx, "extend", [items], {})
    return made


@models(collections._count_elements)  # type: ignore[attr-defined]  # C's half of `Counter.update`
def count_elements(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    """``mapping[each] = mapping.get(each, 0) + 1`` for all items."""
    mapping, items = expect("_count_elements", args, kwargs, 2)
    content = mapping.builtin_content()
    plain = all(
        static_lookup(mapping.python_type(), name) is static_lookup(dict, name)
        for name in ("get", "__setitem__")
    )
    if not plain or not isinstance(content, DictVariable):
        raise GraphBreak(f"counting into {mapping.describe()}")
    for item in unpacked_whole(tx, items):
        count = content.call_method(tx, "get", [item, ConstantVariable(0)], {})
        content.set_item(tx, item, operators.binary(tx, "+", count, ConstantVariable(1)))
    return ConstantVariable(None)


@models(dict.__dict__["__getitem__"])
def dict_getitem(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    """The item of a dict; a subclass is asked by ``__missing__`` for a key that it lacks."""
    owner, key = expect("dict.__getitem__", args, kwargs, 2)
    content = owner.builtin_content()
    if not isinstance(content, DictVariable):
        raise GraphBreak(f"dict.__getitem__() of {owner.describe()}")
    if isinstance(owner, UserObjectVariable) and static_lookup(owner.kind, "__missing__") is not MISSING:
        if not realize(content.call_method(tx, "__contains__", [key], {})).truth(tx):
            return owner.call_special(tx, "__missing__", [key])
    return content.item(tx, key)
