"""Where a frame may be split so that the rest becomes a function of its own, and what the broken instruction
takes and gives.

Inside loops the rest stays in the frame: the new code jumps into a copy of the original and goes on plainly (a resume
function per turn would nest without end). The same holds inside `try` and `with` blocks, whose handlers belong to the
frame.
"""

from collections.abc import Sequence
from types import CodeType
from typing import Final

from dynamo.eval.bytecode import Instruction, reads_unbound_cell
from dynamo.eval.bytecode.blocks import successors

#: instruction → values taken, values given; None: computed from its operand
_FIXED: Final = {
    "BINARY_OP": (2, 1), "COMPARE_OP": (2, 1), "IS_OP": (2, 1), "CONTAINS_OP": (2, 1), "BINARY_SUBSCR": (2, 1),
    "STORE_SUBSCR": (3, 0), "DELETE_SUBSCR": (2, 0), "UNARY_NEGATIVE": (1, 1), "UNARY_POSITIVE": (1, 1),
    "UNARY_INVERT": (1, 1), "UNARY_NOT": (1, 1), "TO_BOOL": (1, 1), "LOAD_ATTR": (1, 1), "STORE_ATTR": (2, 0),
    "DELETE_ATTR": (1, 0), "STORE_GLOBAL": (1, 0), "LOAD_GLOBAL": (0, 1), "GET_ITER": (1, 1),
    "IMPORT_NAME": (2, 1), "FORMAT_SIMPLE": (1, 1), "FORMAT_WITH_SPEC": (2, 1), "CONVERT_VALUE": (1, 1),
    "LOAD_BUILD_CLASS": (0, 1), "POP_JUMP_IF_TRUE": (1, 0), "POP_JUMP_IF_FALSE": (1, 0),
    "LIST_TO_TUPLE": (1, 1), "STORE_DEREF": (1, 0), "GET_LEN": (1, 2),
}  # fmt: skip
BRANCHES: Final = frozenset({"POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"})


def operand_count(inst: Instruction) -> int | None:
    """How many values the instruction takes, NULLs included; None if it is no instruction to split at."""
    arg = inst.arg or 0
    if inst.opname in ("CALL", "CALL_KW"):
        return arg + 2
    if inst.opname == "CALL_FUNCTION_EX":
        return 3 + (arg & 1)
    if inst.opname in ("BUILD_STRING", "BUILD_SET"):
        return arg
    if inst.opname == "BUILD_MAP":
        return 2 * arg
    if inst.opname == "UNPACK_SEQUENCE":
        return 1
    fixed = _FIXED.get(inst.opname)
    return fixed[0] if fixed is not None else None


def pushes(inst: Instruction) -> int:
    """How many values the instruction gives."""
    if inst.opname == "UNPACK_SEQUENCE":
        return inst.arg or 0
    fixed = _FIXED.get(inst.opname)
    return fixed[1] if fixed is not None else 1


def splits_at(instructions: Sequence[Instruction], index: int, code: CodeType) -> bool:
    """Whether the rest after this instruction may be a resume function: no block, no loop around it, and no cell that
    may be read unbound, which as a free variable of the rest would raise another error.

    Args:
        instructions: those of `code`.
    """
    inst = instructions[index]
    if operand_count(inst) is None or inst.handler is not None:
        return False
    return not _in_loop(instructions, index) and not reads_unbound_cell(instructions, code)


def _in_loop(instructions: Sequence[Instruction], index: int) -> bool:
    """Whether control can come back to an instruction."""
    nexts = successors(instructions)
    waiting = list(nexts[index])
    seen: set[int] = set()
    while waiting:
        place = waiting.pop()
        if place == index:
            return True
        if place not in seen:
            seen.add(place)
            waiting.extend(nexts[place])
    return False
