"""`torch.nn.Module`: parameters and submodules are found where the module keeps them, calls are followed.

A call of a module is a call of its ``forward``, as long as no hook is set; that there is none is guarded. With hooks
torch's own ``_call_impl`` is followed.
"""

from typing import Any, Final, final

import torch

from dynamo.eval.effects import AttributeWrite
from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.lookup import MISSING, NoSuchAttribute, static_lookup
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.tensor import TensorVariable
from dynamo.eval.variables.wrap import wrap_value
from dynamo.guards import AttrSource, ConstantSource, ItemSource

#: where `torch.nn.Module.__getattr__` looks, in its order
STORES: Final = ("_parameters", "_buffers", "_modules")
HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
#: the same for all modules, in `torch.nn.modules.module`
GLOBAL_HOOKS: Final = tuple(f"_global{name}" for name in HOOKS)


@final
class NNModuleVariable(UserObjectVariable):
    """A module, one that existed before the frame began or one that it made."""

    def describe(self) -> str:
        return f"module {self.kind.__name__}"

    def missing_attribute(self, tx: Translator, name: str) -> VariableTracker:
        if static_lookup(self.kind, "__getattr__") is not torch.nn.Module.__getattr__:
            return super().missing_attribute(tx, name)
        found = self.stored(tx, name)
        if found is None:
            raise NoSuchAttribute(f"AttributeError: {self.kind.__name__!r} object has no attribute {name!r}")
        return found

    def stored(self, tx: Translator, name: str) -> VariableTracker | None:
        """What `torch.nn.Module.__getattr__` finds among parameters, buffers and submodules."""
        for store in STORES:
            entries = self._store(tx, store)
            if isinstance(entries, DictVariable):
                entry = entries.entries.get(name)
                if entry is not None:
                    return realize(entry[1])
            elif entries is not None and name in entries:
                assert self.source is not None
                self.guard_absent(tx, name)
                source = ItemSource(self._own_source(store), name)
                return wrap_value(tx.output, entries[name], source)
        return None

    def _store(self, tx: Translator, store: str) -> Any:
        """The variable of a dict of members where capture may have changed it, else the dict itself."""
        written = tx.output.effects.find(AttributeWrite(self, store, None))
        if self.is_fresh or written is not None:
            found = self.instance_attribute(tx, store)
            if found is not None and not isinstance(found, DictVariable):
                raise GraphBreak(f"a module whose {store} was replaced")
            return found
        entries = self.own_attributes().get(store)
        known = tx.output.wrapped.get(id(entries))
        return entries if known is None else known[1]

    def set_attr(self, tx: Translator, name: str, value: VariableTracker | None) -> None:
        """A plain value goes to the instance's dict at once; anything else is a call of ``Module.__setattr__``."""
        plain = (
            static_lookup(self.kind, "__setattr__") is torch.nn.Module.__setattr__
            and value is not None
            and not self.is_fresh
            and not any(name in self.own_attributes().get(store, ()) for store in STORES)
            and static_lookup(self.kind, name) is MISSING
            and value.python_type() is not torch.nn.Parameter
            and not issubclass(value.python_type(), torch.nn.Module)
            and not isinstance(value, TensorVariable)
        )
        if plain:
            tx.output.effects.note(AttributeWrite(self, name, value))
        else:
            super().set_attr(tx, name, value)

    def truth(self, tx: Translator) -> bool:
        if static_lookup(self.kind, "__len__") is MISSING:
            return True
        return super().truth(tx)

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if static_lookup(self.kind, "__call__") is not static_lookup(torch.nn.Module, "__call__"):
            return super().call(tx, args, kwargs)
        return self.call_module(tx, args, kwargs)

    def call_module(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """``torch.nn.Module.__call__(value, …)``: the forward, or where there are hooks, what torch does around it."""
        if not self.is_fresh and self.own_attributes().get("_compiled_call_impl") is not None:
            raise GraphBreak(f"{self.describe()} that was compiled on its own")
        if self._has_hooks(tx):
            return self.get_attr(tx, "_call_impl").call(tx, args, kwargs)
        return self.get_attr(tx, "forward").call(tx, args, kwargs)

    def _has_hooks(self, tx: Translator) -> bool:
        if self.is_fresh:
            stores = [self.instance_attribute(tx, hooks) for hooks in HOOKS]
            return any(store is not None and store.truth(tx) for store in stores)
        assert self.source is not None
        attributes = self.own_attributes()
        found = _has_global_hooks(tx)
        for hooks in HOOKS:
            if attributes.get(hooks):
                found = True
            else:
                tx.output.guard(AttrSource(self.source, hooks), "SEQUENCE_LENGTH")
        return found


def _has_global_hooks(tx: Translator) -> bool:
    """Whether a hook for all modules is set, guarded; torch makes these dicts once and only fills them."""
    module = torch.nn.modules.module
    found = False
    for name in GLOBAL_HOOKS:
        hooks = getattr(module, name)
        found = found or bool(hooks)
        tx.output.guard(ConstantSource(hooks, f"torch.nn.modules.module.{name}"), "SEQUENCE_LENGTH")
    return found
