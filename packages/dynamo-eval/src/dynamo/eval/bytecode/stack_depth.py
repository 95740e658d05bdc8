"""How deep the value stack is before each instruction.

`stack_effect` is the net effect of one normal-form instruction; `stack_depths` follows all paths, exception handlers
included. Two paths that meet at different depths are an error here, since CPython crashes on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, final

from .errors import StackDepthError
from .instruction import ExceptionHandler, Instruction
from .versions.select import FACTS

__all__ = ["ENDS_PATH", "DepthMap", "stack_depths", "stack_effect"]

_GROUPS: Final = {
    -3: "STORE_SUBSCR",
    -2: "STORE_ATTR DELETE_SUBSCR END_ASYNC_FOR MAP_ADD MATCH_CLASS",
    -1: """POP_TOP BINARY_SUBSCR BINARY_OP COMPARE_OP IS_OP CONTAINS_OP STORE_FAST STORE_NAME STORE_GLOBAL STORE_DEREF
        DELETE_ATTR RETURN_VALUE IMPORT_STAR IMPORT_NAME PRINT_EXPR LIST_APPEND LIST_EXTEND SET_ADD SET_UPDATE
        DICT_MERGE DICT_UPDATE POP_EXCEPT POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
        JUMP_IF_TRUE_OR_POP JUMP_IF_FALSE_OR_POP PREP_RERAISE_STAR RERAISE CALL_INTRINSIC_2 CLEANUP_THROW END_SEND
        FORMAT_WITH_SPEC SET_FUNCTION_ATTRIBUTE INTERPRETER_EXIT EXIT_INIT_CHECK""",
    0: """NOP RESUME MAKE_CELL COPY_FREE_VARS UNARY_NEGATIVE UNARY_NOT UNARY_INVERT UNARY_POSITIVE TO_BOOL LIST_TO_TUPLE
        ASYNC_GEN_WRAP CALL_INTRINSIC_1 CONVERT_VALUE FORMAT_SIMPLE GET_AITER GET_AWAITABLE GET_ITER
        GET_YIELD_FROM_ITER CHECK_EXC_MATCH CHECK_EG_MATCH DELETE_FAST DELETE_NAME DELETE_GLOBAL DELETE_DEREF LOAD_ATTR
        JUMP JUMP_NO_INTERRUPT SWAP SETUP_ANNOTATIONS YIELD_VALUE END_FOR SEND LOAD_FROM_DICT_OR_DEREF
        LOAD_FROM_DICT_OR_GLOBALS""",
    1: """PUSH_NULL LOAD_CONST LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_NAME LOAD_GLOBAL LOAD_DEREF
        LOAD_CLOSURE LOAD_CLASSDEREF LOAD_LOCALS LOAD_METHOD LOAD_BUILD_CLASS LOAD_ASSERTION_ERROR IMPORT_FROM GET_LEN
        GET_ANEXT MATCH_MAPPING MATCH_SEQUENCE MATCH_KEYS PUSH_EXC_INFO WITH_EXCEPT_START BEFORE_WITH BEFORE_ASYNC_WITH
        COPY FOR_ITER RETURN_GENERATOR""",
}
# LOAD_SUPER_ATTR takes super, class and self; the method form leaves two values.
_FIXED: Final[dict[str, int]] = {
    **{name: effect for effect, names in _GROUPS.items() for name in names.split()},
    **{
        "LOAD_SUPER_ATTR": -2,
        "LOAD_ZERO_SUPER_ATTR": -2,
        "LOAD_SUPER_METHOD": -1,
        "LOAD_ZERO_SUPER_METHOD": -1,
    },
}
_COUNTED: Final[dict[str, Callable[[int], int]]] = {
    "CALL": lambda arg: -1 - arg,
    "CALL_KW": lambda arg: -1 - arg,
    "CALL_FUNCTION_EX": lambda arg: -2 - (arg & 1),
    "BUILD_TUPLE": lambda arg: 1 - arg,
    "BUILD_LIST": lambda arg: 1 - arg,
    "BUILD_SET": lambda arg: 1 - arg,
    "BUILD_STRING": lambda arg: 1 - arg,
    "BUILD_MAP": lambda arg: 1 - 2 * arg,
    "BUILD_CONST_KEY_MAP": lambda arg: -arg,
    "BUILD_SLICE": lambda arg: 1 - arg,
    "UNPACK_SEQUENCE": lambda arg: arg - 1,
    "UNPACK_EX": lambda arg: (arg & 255) + (arg >> 8),
    "RAISE_VARARGS": lambda arg: -arg,
    "MAKE_FUNCTION": lambda arg: -(arg & 15).bit_count(),
    "FORMAT_VALUE": lambda arg: -1 if arg & 4 else 0,
}
# When the jump is taken. SEND leaves only the result on 3.11, receiver and result later (END_SEND drops it).
_JUMPING: Final[dict[str, int]] = {
    "FOR_ITER": -1,
    "SEND": 0 if FACTS.for_iter_needs_end_for else -1,
    "JUMP_IF_TRUE_OR_POP": 0,
    "JUMP_IF_FALSE_OR_POP": 0,
}

ENDS_PATH: Final = frozenset(("JUMP", "JUMP_NO_INTERRUPT", "RETURN_VALUE", "RAISE_VARARGS", "RERAISE"))
"""Instructions after which control never goes on to the next one."""


def stack_effect(inst: Instruction, *, jump: bool = False) -> int:
    """Values pushed less values popped, when `inst` goes on or (`jump`) when it jumps.

    Raises:
        StackDepthError: the instruction is not known.
    """
    name = inst.opname
    if jump and name in _JUMPING:
        return _JUMPING[name]
    effect = _FIXED.get(name)
    if effect is not None:
        return effect
    counted = _COUNTED.get(name)
    if counted is None:
        raise StackDepthError(f"the stack effect of {name} is not known")
    return counted(inst.arg or 0)


@final
class DepthMap:
    """Stack depths of one list of instructions.

    Attributes:
        maximum: deepest stack anywhere, handlers included; what `co_stacksize` must hold.
    """

    __slots__ = ("_before", "_first", "_index", "maximum")

    def __init__(self, instructions: Sequence[Instruction], entry_depth: int) -> None:
        self._index = {inst: index for index, inst in enumerate(instructions)}
        self._first: dict[ExceptionHandler, Instruction] = {}
        for inst in instructions:
            if inst.handler is not None:
                self._first.setdefault(inst.handler, inst)
        self._before: list[int | None] = [None] * len(instructions)
        self.maximum = entry_depth
        if instructions:
            self._before[0] = entry_depth
        while self._pass(instructions):
            pass

    def _pass(self, instructions: Sequence[Instruction]) -> bool:
        """Follow the list once in order; says whether a place already passed was reached anew."""
        before, first = self._before, self._first
        again = False
        maximum = self.maximum
        previous: int | None = None
        seen_handlers: set[ExceptionHandler] = set()
        for index, inst in enumerate(instructions):
            depth = before[index]
            if previous is not None:
                if depth is None:
                    depth = before[index] = previous
                elif depth != previous:
                    raise self._mismatch(inst, depth, previous)
            if depth is None:
                continue
            handler = inst.handler
            if handler is not None and handler not in seen_handlers:
                known = handler.depth
                if known is None and first[handler] is inst:
                    known = depth
                if known is not None:
                    seen_handlers.add(handler)
                    again |= self._reach(handler.target, known + handler.lasti + 1, index)
            name = inst.opname
            effect = _FIXED.get(name)
            after = depth + (stack_effect(inst) if effect is None else effect)
            if after < 0:
                raise StackDepthError(f"{inst} (line {inst.lineno}) pops more than the stack holds ({depth})")
            if after > maximum:
                maximum = after
            if inst.target is not None:
                jumped = _JUMPING.get(name)
                again |= self._reach(inst.target, after if jumped is None else depth + jumped, index)
            previous = None if name in ENDS_PATH else after
        if previous is not None:
            raise StackDepthError("the last instruction goes on past the end")
        self.maximum = max(maximum, self.maximum)
        return again

    def _reach(self, target: Instruction, depth: int, origin: int) -> bool:
        index = self._index.get(target)
        if index is None:
            raise StackDepthError(f"a jump or handler goes to {target} which is not in the list")
        known = self._before[index]
        if known is None:
            self._before[index] = depth
            self.maximum = max(self.maximum, depth)
            return index <= origin
        if known != depth:
            raise self._mismatch(target, known, depth)
        return False

    def _mismatch(self, inst: Instruction, one: int, other: int) -> StackDepthError:
        where = self._index[inst]
        return StackDepthError(
            f"{inst} (number {where}, line {inst.lineno}) is reached with {one} and with {other} values on the stack"
        )

    def before(self, inst: Instruction) -> int | None:
        """Depth before `inst`, None when nothing leads there."""
        return self._before[self._index[inst]]

    def handler_depth(self, handler: ExceptionHandler) -> int:
        """Depth to which the stack is cut for `handler`: its own, or that before the first guarded instruction.

        Raises:
            StackDepthError: nothing leads to what it guards.
        """
        if handler.depth is not None:
            return handler.depth
        first = self._first.get(handler)
        depth = None if first is None else self.before(first)
        if depth is None:
            raise StackDepthError(f"the handler at {handler.target} guards nothing that is reached")
        return depth


def stack_depths(instructions: Iterable[Instruction], entry_depth: int = 0) -> DepthMap:
    """Depths before each instruction, following jumps and handlers from the first one.

    Complexity: linear; one more pass for each level of blocks reached by backward jumps only.

    Raises:
        StackDepthError: paths meet at different depths, a pop from an empty stack, or running past the end.
    """
    return DepthMap(list(instructions), entry_depth)
