"""Functions with a cache of `functools`: kept a cache."""

import functools
from typing import Any, final

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, constants, realize
from dynamo.eval.variables.constant import LITERALS, ConstantVariable, from_constant
from dynamo.eval.variables.wrap import wrap_value
from dynamo.guards import AttrSource, Source


@final
class CachedFunctionVariable(VariableTracker):
    """A function with a cache of `functools`, made before the frame began."""

    mutable = True

    def __init__(self, value: Any, source: Source) -> None:
        super().__init__(source)
        self.value = value

    def describe(self) -> str:
        return f"cached function {getattr(self.value, '__name__', self.value)}()"

    def python_type(self) -> type:
        return functools._lru_cache_wrapper

    @property
    def hashed_by_identity(self) -> bool:
        return True

    def truth(self, tx: Translator) -> bool:
        return True

    def as_python_constant(self) -> Any:
        return self.value

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return from_constant(getattr(self.value, name))
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """The cached result where following the function shows that it is the only possible one.

        The function is followed, so that all that it reads is guarded. If it has no effect and gives a literal, then the
        cache is asked for real, which fills it as the call of Python would; both answers must agree.
        """
        known = constants(args, kwargs)
        if known is None:
            raise GraphBreak(f"calling {self.describe()} with values not known at capture")
        output = tx.output
        before = output.effects.count, output.calls
        assert self.source is not None
        function = wrap_value(output, self.value.__wrapped__, AttrSource(self.source, "__wrapped__"))
        followed = realize(function.call(tx, args, kwargs))
        if (output.effects.count, output.calls) != before or type(followed) is not ConstantVariable:
            raise GraphBreak(f"calling {self.describe()}, which does more than to compute a literal")
        if type(followed.value) not in LITERALS:
            raise GraphBreak(f"calling {self.describe()}, which does more than to compute a literal")
        real = self.value(*known[0], **known[1])
        if type(real) is not type(followed.value) or repr(real) != repr(followed.value):
            raise GraphBreak(f"calling {self.describe()}, whose cache holds an older result")
        return ConstantVariable(real)
