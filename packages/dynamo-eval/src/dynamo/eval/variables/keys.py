"""Keys of dicts and elements of sets: what stands for a value inside Python's own hash tables at capture.

A known value is its own key. An object compared by identity is a key by identity. An object whose class has a
``__hash__`` or ``__eq__`` in Python is a `FollowedKey`: its hash is followed once, its equality whenever two hashes meet.
"""

from typing import Any, final

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import NotConstant, Translator, VariableTracker, realize
from dynamo.eval.variables.lookup import MISSING, static_lookup


@final
class IdentityKey:
    """An object that only equals itself."""

    __slots__ = ("var",)

    def __init__(self, var: VariableTracker) -> None:
        self.var = var

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.var is self.var

    def __hash__(self) -> int:
        return id(self.var)


@final
class FollowedKey:
    """An object whose hash and equality are Python code."""

    __slots__ = ("hash", "tx", "var")

    def __init__(self, tx: Translator, var: VariableTracker, value: int) -> None:
        self.tx = tx
        self.var = var
        self.hash = value

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if self is other or isinstance(other, FollowedKey) and other.var is self.var:
            return True
        if not isinstance(other, FollowedKey):
            raise GraphBreak(f"{self.var.describe()} as a key among others")
        effects = self.tx.output.effects.count
        answer = realize(self.var.call_special(self.tx, "__eq__", [other.var]))
        if self.tx.output.effects.count != effects:
            raise GraphBreak(f"the __eq__ of {self.var.describe()}, which has an effect")
        known = answer.as_python_constant()
        if known is NotImplemented:
            raise GraphBreak(f"the __eq__ of {self.var.describe()} refused")
        return bool(known)


def prepare_key(tx: Translator, var: VariableTracker) -> None:
    """Follow the ``__hash__`` of an object that is about to be a key, where it has one in Python.

    Raises:
        GraphBreak: the hash has an effect, or is not known at capture.
    """
    var = realize(var)
    if not var.hashed_by_identity and _is_object(var):
        effects = tx.output.effects.count
        value = realize(var.call_special(tx, "__hash__", [])).as_python_constant()
        if tx.output.effects.count != effects or not isinstance(value, int):
            raise GraphBreak(f"the __hash__ of {var.describe()}, which has an effect")
        var.key = FollowedKey(tx, var, hash(value))


def _is_object(var: VariableTracker) -> bool:
    return getattr(var, "fresh_attributes", None) is not None


def key_of(var: VariableTracker) -> Any:
    """What stands for a key in a dict of Python: the value itself, or a stand-in.

    Raises:
        GraphBreak: hash or equality of the key is not known at capture.
    """
    var = realize(var)
    if var.hashed_by_identity:
        return IdentityKey(var)
    if var.key is not None:
        return var.key
    try:
        value = var.as_python_constant()
        hash(value)
    except (NotConstant, TypeError) as error:
        raise GraphBreak(f"{var.describe()} as a key") from error
    return value


def has_default_hash(kind: type) -> bool:
    """Whether objects of a class are hashed and compared by identity."""
    hasher = static_lookup(kind, "__hash__")
    return (
        hasher is not MISSING
        and hasher is static_lookup(object, "__hash__")
        and static_lookup(kind, "__eq__") is static_lookup(object, "__eq__")
    )
