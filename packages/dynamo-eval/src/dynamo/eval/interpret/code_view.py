"""Decoded code objects, kept as long as the code lives and among the latest."""

import weakref
from collections import OrderedDict
from types import CodeType
from typing import final

from dynamo.eval.bytecode import Instruction, decode
from dynamo.eval.resets import on_reset


@final
class DecodedCode:
    """A code object in the normal form. The instructions are shared: nobody may change them."""

    __slots__ = ("code", "index", "instructions")

    def __init__(
        self, code: CodeType, instructions: list[Instruction], index: dict[Instruction, int]
    ) -> None:
        self.code = code
        self.instructions = instructions
        self.index = index


_CAPACITY = 512
#: by id; only a weak reference to the code, for its captures, and so their graphs, live as long as it does
_DECODED: OrderedDict[int, tuple[weakref.ref[CodeType], list[Instruction], dict[Instruction, int]]] = (
    OrderedDict()
)


def decoded(code: CodeType) -> DecodedCode:
    """The decoded form of `code`, from a bounded cache by identity."""
    kept = _DECODED.get(id(code))
    if kept is not None and kept[0]() is code:
        return DecodedCode(code, kept[1], kept[2])
    instructions = decode(code)
    view = DecodedCode(code, instructions, {inst: i for i, inst in enumerate(instructions)})
    _DECODED[id(code)] = weakref.ref(code), instructions, view.index
    if len(_DECODED) > _CAPACITY:
        _DECODED.popitem(last=False)
    return view


@on_reset
def forget_decoded() -> None:
    """Empty the cache."""
    _DECODED.clear()
