"""`torch.nn.Module`: parameters and submodules are found where the module keeps them, calls are followed.

A call of a module is a call of its ``forward``, as long as no hook is set; that there is none is guarded.
"""

import types
from typing import Final, final

import torch

from dynamo.eval.effects import AttributeWrite
from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker
from dynamo.eval.variables.objects import MISSING, NoSuchAttribute, UserObjectVariable, static_lookup
from dynamo.eval.variables.wrap import wrap_value
from dynamo.guards import AttrSource, ConstantSource, ItemSource

#: where `torch.nn.Module.__getattr__` looks, in its order
STORES: Final = ("_parameters", "_buffers", "_modules")
HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
#: the same for all modules, in `torch.nn.modules.module`
GLOBAL_HOOKS: Final = tuple(f"_global{name}" for name in HOOKS)


@final
class NNModuleVariable(UserObjectVariable):
    """A module that existed before the frame began."""

    def describe(self) -> str:
        return f"module {self.kind.__name__}"

    def instance_attribute(self, tx: Translator, name: str) -> VariableTracker | None:
        if name in STORES:
            written = tx.output.effects.find(AttributeWrite(self, name, None))
            if written is not None:
                raise GraphBreak(f"a module whose {name} was replaced")
        return super().instance_attribute(tx, name)

    def missing_attribute(self, tx: Translator, name: str) -> VariableTracker:
        if static_lookup(self.kind, "__getattr__") is not torch.nn.Module.__getattr__:
            return super().missing_attribute(tx, name)
        assert self.source is not None
        attributes = self.value.__dict__
        for store in STORES:
            entries = attributes.get(store, {})
            if name in entries:
                source = ItemSource(AttrSource(self.source, store), name)
                self.guard_absent(tx, name)
                return wrap_value(tx.output, entries[name], source)
        raise NoSuchAttribute(f"AttributeError: {self.kind.__name__!r} object has no attribute {name!r}")

    def set_attr(self, tx: Translator, name: str, value: VariableTracker | None) -> None:
        """Plain values only: parameters, buffers and submodules go through ``Module.__setattr__``."""
        attributes = self.value.__dict__
        plain = (
            static_lookup(self.kind, "__setattr__") is torch.nn.Module.__setattr__
            and value is not None
            and not any(name in attributes.get(store, {}) for store in STORES)
            and static_lookup(self.kind, name) is MISSING
            and value.python_type() is not torch.nn.Parameter
            and not issubclass(value.python_type(), torch.nn.Module)
        )
        if not plain:
            raise GraphBreak(f"storing attribute {name!r} of {self.describe()}")
        tx.output.effects.note(AttributeWrite(self, name, value))

    def truth(self, tx: Translator) -> bool:
        if static_lookup(self.kind, "__len__") is MISSING:
            return True
        return super().truth(tx)

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if static_lookup(self.kind, "__call__") is not static_lookup(torch.nn.Module, "__call__"):
            return super().call(tx, args, kwargs)
        assert self.source is not None
        attributes = self.value.__dict__
        for hooks in HOOKS:
            if attributes.get(hooks):
                raise GraphBreak(f"{self.describe()} with hooks", "hooks run between graphs")
            tx.output.guard(AttrSource(self.source, hooks), "SEQUENCE_LENGTH")
        if attributes.get("_compiled_call_impl") is not None:
            raise GraphBreak(f"{self.describe()} that was compiled on its own")
        _guard_no_global_hooks(tx)
        return self.get_attr(tx, "forward").call(tx, args, kwargs)


def _guard_no_global_hooks(tx: Translator) -> None:
    """Ask that no hook for all modules is set; torch makes these dicts once and only fills them.

    Raises:
        GraphBreak: there is one.
    """
    module = torch.nn.modules.module
    for name in GLOBAL_HOOKS:
        hooks = getattr(module, name)
        if hooks:
            raise GraphBreak("global module hooks", "hooks run between graphs")
        tx.output.guard(ConstantSource(hooks, f"torch.nn.modules.module.{name}"), "SEQUENCE_LENGTH")


def is_module_method(function: types.FunctionType) -> bool:
    """Whether a function is part of torch's own module classes, which capture follows like user code."""
    return function.__module__.startswith("torch.nn.modules.")
