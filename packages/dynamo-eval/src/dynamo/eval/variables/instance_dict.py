"""``object.__dict__``: the attributes of an object seen as a dict."""

from collections.abc import Iterable
from typing import Any, Final, Protocol, final

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.sequence import BoundMethodVariable
from dynamo.guards import InstanceDictSource, Source


class AttributeOwner(Protocol):
    """What the dict needs of its object."""

    source: Source | None
    fresh_attributes: dict[str, VariableTracker]

    def own_attributes(self) -> dict[str, Any]: ...
    def instance_attribute(self, tx: Translator, name: str) -> VariableTracker | None: ...
    def guard_absent(self, tx: Translator, name: str) -> None: ...
    def set_own(self, tx: Translator, name: str, value: VariableTracker | None) -> None: ...
    def describe(self) -> str: ...


_READS: Final = frozenset("__getitem__ get __contains__ keys values items __len__ __iter__ copy".split())


@final
class InstanceDictVariable(VariableTracker):
    """The dict itself: reads and stores go to the attributes of its object.

    Attributes:
        owner: the object, a `UserObjectVariable`.
    """

    mutable = True

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self.owner: AttributeOwner = owner

    def describe(self) -> str:
        return f"the __dict__ of {self.owner.describe()}"

    def python_type(self) -> type:
        return dict

    def names(self, tx: Translator) -> Iterable[str]:
        """All attribute names, in order; asks that they stay the same."""
        owner = self.owner
        if owner.source is None:
            return list(owner.fresh_attributes)
        tx.output.guard(InstanceDictSource(owner.source), "DICT_KEYS")
        names = list(owner.own_attributes())
        names += [name for name in tx.output.effects.attributes_of(owner) if name not in names]
        return [name for name in names if owner.instance_attribute(tx, name) is not None]

    def snapshot(self, tx: Translator) -> DictVariable:
        """A copy of the present attributes."""
        found = ((name, self.owner.instance_attribute(tx, name)) for name in self.names(tx))
        return DictVariable((ConstantVariable(name), value) for name, value in found if value is not None)

    def item(self, tx: Translator, key: VariableTracker) -> VariableTracker:
        """``value[key]``."""
        found = self._find(tx, key)
        if found is None:
            raise GraphBreak(f"KeyError: {key.describe()}")
        return found

    def _find(self, tx: Translator, key: VariableTracker) -> VariableTracker | None:
        name = realize(key).as_python_constant()
        if not isinstance(name, str):
            raise GraphBreak(f"{key.describe()} as a key of {self.describe()}")
        found = self.owner.instance_attribute(tx, name)
        if found is None:
            self.owner.guard_absent(tx, name)
        return found

    def contains(self, tx: Translator, key: VariableTracker) -> bool:
        """``key in value``."""
        return self._find(tx, key) is not None

    def set_item(self, tx: Translator, key: VariableTracker, value: VariableTracker | None) -> None:
        """``value[key] = …``, or ``del value[key]`` for None."""
        if value is None:
            self.item(tx, key)
        self.owner.set_own(tx, str(realize(key).as_python_constant()), value)

    def truth(self, tx: Translator) -> bool:
        return bool(list(self.names(tx)))

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        return self.snapshot(tx).unpack(tx)

    def iterate(self, tx: Translator) -> VariableTracker:
        return self.snapshot(tx).iterate(tx)

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        return BoundMethodVariable(self, name)

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name in ("get", "__getitem__", "__contains__", "pop", "setdefault") and args and not kwargs:
            found = self._find(tx, args[0])
            if name == "__contains__":
                return ConstantVariable(found is not None)
            if name == "pop" and found is not None:
                self.set_item(tx, args[0], None)
            if found is None and name == "setdefault":
                found = args[1] if len(args) > 1 else ConstantVariable(None)
                self.set_item(tx, args[0], found)
            if found is None and len(args) > 1:
                found = args[1]
            if found is None and name == "get":
                found = ConstantVariable(None)
            if found is None:
                raise GraphBreak(f"KeyError: {args[0].describe()}")
            return realize(found)
        if name == "__setitem__" and len(args) == 2:
            self.set_item(tx, args[0], args[1])
            return ConstantVariable(None)
        if name == "update":
            given = DictVariable([])
            given.call_method(tx, "update", args, kwargs)
            for key, value in given.entries.values():
                self.set_item(tx, key, value)
            return ConstantVariable(None)
        if name in _READS:
            return self.snapshot(tx).call_method(tx, name, args, kwargs)
        raise GraphBreak(f"{name}() of {self.describe()}")
