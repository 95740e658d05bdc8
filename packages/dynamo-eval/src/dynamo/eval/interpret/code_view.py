"""Decoded code objects, kept while they are in use."""

from collections import OrderedDict
from types import CodeType
from typing import final

from dynamo.eval.bytecode import Instruction, decode


@final
class DecodedCode:
    """A code object in the normal form. The instructions are shared: nobody may change them."""

    __slots__ = ("code", "index", "instructions")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.instructions: list[Instruction] = decode(code)
        self.index = {inst: i for i, inst in enumerate(self.instructions)}


_CAPACITY = 512
_DECODED: OrderedDict[int, DecodedCode] = OrderedDict()


def decoded(code: CodeType) -> DecodedCode:
    """The decoded form of `code`, from a bounded cache by identity."""
    view = _DECODED.get(id(code))
    if view is None or view.code is not code:
        view = DecodedCode(code)
        _DECODED[id(code)] = view
        if len(_DECODED) > _CAPACITY:
            _DECODED.popitem(last=False)
    return view


def forget_decoded() -> None:
    """Empty the cache."""
    _DECODED.clear()
