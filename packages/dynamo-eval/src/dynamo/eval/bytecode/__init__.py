"""Bytecode of CPython 3.11-3.13 as instructions that can be edited, and back; imports no torch.

`decode` reads a code object into a list of `Instruction` in the *normal form*, `assemble` writes it: unchanged
instructions give the same bytes, line table and exception table. `dynamo.eval.bytecode.create` makes new instructions,
written once for all versions.

The normal form
===============

*Not in it*: CACHE, EXTENDED_ARG, PRECALL, KW_NAMES, instrumented and specialised instructions.

*Operands*: `argval` holds the name (names, locals, cells), the constant, or the symbol ("<", "+", "+=", name of the
intrinsic); `arg` the number where the operand is one (BUILD_TUPLE, CALL, SWAP, IS_OP, RESUME, UNPACK_EX, ...).

*Jumps* have `target`, an Instruction, and neither arg nor argval:

- JUMP (either direction), JUMP_NO_INTERRUPT (backward), POP_JUMP_IF_TRUE / _FALSE / _NONE / _NOT_NONE (either
  direction), FOR_ITER and SEND (forward). Only on 3.11: JUMP_IF_TRUE_OR_POP, JUMP_IF_FALSE_OR_POP.
- 3.13 has TO_BOOL before a conditional jump or UNARY_NOT where the value need not be a bool.
- FOR_ITER that finds no more items has popped the iterator when it jumps. On 3.12 and 3.13 it jumps to END_FOR, which
  then does nothing (the POP_TOP that follows it on 3.13 is part of it).
- SEND that finds the end leaves the result, on 3.12 and later on top of the receiver, which END_SEND drops.

*Flag bits become instructions or names*, marked `fuse` so that they are written as one again:

- LOAD_GLOBAL with NULL: PUSH_NULL, LOAD_GLOBAL (3.11, 3.12); LOAD_GLOBAL, PUSH_NULL (3.13).
- LOAD_ATTR with method bit: LOAD_METHOD. [a] → [method, a] or, if it is no plain method, [NULL, attribute] (3.11, 3.12),
  [attribute, NULL] (3.13).
- LOAD_SUPER_ATTR: LOAD_SUPER_ATTR, LOAD_SUPER_METHOD, or LOAD_ZERO_SUPER_... for super() without arguments.
- COMPARE_OP loses its mask; with the bool bit of 3.13: COMPARE_OP, TO_BOOL.
- FORMAT_VALUE: CONVERT_VALUE (arg 1 str, 2 repr, 3 ascii), FORMAT_SIMPLE, FORMAT_WITH_SPEC; conversion and spec
  together are SWAP 2, CONVERT_VALUE, SWAP 2, FORMAT_WITH_SPEC. 3.13 has them so anyway.

*Superinstructions are split* in the same way: LOAD_FAST_LOAD_FAST, STORE_FAST_LOAD_FAST, STORE_FAST_STORE_FAST (3.13);
RETURN_CONST: LOAD_CONST, RETURN_VALUE; BINARY_SLICE: BUILD_SLICE 2, BINARY_SUBSCR; STORE_SLICE: BUILD_SLICE 2,
STORE_SUBSCR.

*One name for one thing*: UNARY_POSITIVE, LIST_TO_TUPLE, ASYNC_GEN_WRAP, PREP_RERAISE_STAR are so called on every
version; other intrinsics are CALL_INTRINSIC_1 / _2 with their name as argval. LOAD_CLOSURE is the cell itself also on 3.13
(there of every slot that is a cell by kind; within an inlined comprehension that shadows it, the slot holds a value:
push what the slot holds).

*Calls*: CALL with arg = number of arguments; CALL_KW with arg = number of arguments, those with keywords included, and
argval = tuple of keyword names (not on the stack, on any version). Below the arguments lie two values: NULL and the
callable (3.11, 3.12) or the callable and NULL (3.13); or, on all, a function and its self from LOAD_METHOD. A handler that
takes whichever of the two is not NULL fits every version. CALL_FUNCTION_EX: the same two, arg bit 0 = with a dict.

*Functions*: MAKE_FUNCTION with flags in arg (3.11, 3.12), or arg None and SET_FUNCTION_ATTRIBUTE after it (3.13).

*Exceptions*: `handler` is the `ExceptionHandler` (target, depth, lasti) that guards the instruction, None if there is
none; one object for one entry of the table.

*Places*: `positions` as from `code.co_positions()`, `starts_line` the number where a line begins, `offset` in bytes of
the first unit that made the instruction (an EXTENDED_ARG, PRECALL or KW_NAMES before it included).

*Only on one version*: LOAD_FAST_CHECK, LOAD_FAST_AND_CLEAR, LOAD_LOCALS, LOAD_FROM_DICT_OR_..., END_SEND, CLEANUP_THROW
(3.12, 3.13), LOAD_CLASSDEREF, IMPORT_STAR, PRINT_EXPR (3.11), EXIT_INIT_CHECK (3.13).
"""

from .assemble import assemble as assemble
from .binding import bound_before as bound_before
from .binding import check_unbound_reads as check_unbound_reads
from .binding import reads_unbound_cell as reads_unbound_cell
from .blocks import remove_unreachable as remove_unreachable
from .create import create_instruction as create_instruction
from .decode import decode as decode
from .errors import AssembleError as AssembleError
from .errors import BytecodeError as BytecodeError
from .errors import DecodeError as DecodeError
from .errors import StackDepthError as StackDepthError
from .instruction import ExceptionHandler as ExceptionHandler
from .instruction import Instruction as Instruction
from .instruction import Positions as Positions
from .instruction import copy_instructions as copy_instructions
from .liveness import live_before as live_before
from .liveness import livevars_analysis as livevars_analysis
from .stack_depth import stack_depths as stack_depths
from .stack_depth import stack_effect as stack_effect
from .transform import CodeOptions as CodeOptions
from .transform import code_options as code_options
from .transform import transform_code_object as transform_code_object
