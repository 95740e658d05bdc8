"""Tables from opcode name to handler, merged from the families."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from dynamo.eval.bytecode import Instruction
from dynamo.eval.interpret.frame import SymbolicFrame

Handler = Callable[[SymbolicFrame, Instruction], None]


class OpcodeTable(dict[str, Handler]):
    """The handlers of one family; fill it with ``@table.op("NAME", …)``."""

    def op(self, *names: str) -> Callable[[Handler], Handler]:
        """Register the decorated handler for each of `names`.

        Raises:
            ValueError: a name has a handler already.
        """

        def register(handler: Handler) -> Handler:
            for name in names:
                if name in self:
                    raise ValueError(f"two handlers for {name}")
                self[name] = handler
            return handler

        return register


def merge(*tables: OpcodeTable) -> Mapping[str, Handler]:
    """One read-only table of several families.

    Raises:
        ValueError: two families handle one name.
    """
    merged: dict[str, Handler] = {}
    for table in tables:
        for name, handler in table.items():
            if name in merged:
                raise ValueError(f"two handlers for {name}")
            merged[name] = handler
    return MappingProxyType(merged)
