"""Liveness, stack depth and control flow against a machine that follows paths step by step."""

import types
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo.eval.bytecode import (
    ExceptionHandler,
    Instruction,
    StackDepthError,
    assemble,
    bound_before,
    check_unbound_reads,
    copy_instructions,
    decode,
    live_before,
    livevars_analysis,
    remove_unreachable,
    stack_depths,
)
from dynamo.eval.bytecode import create as make
from dynamo.eval.bytecode.blocks import basic_blocks, reachable, successors

NAMES = ("a", "b", "c")


@st.composite
def programs(draw: st.DrawFn) -> list[Instruction]:
    """Straight code with jumps to anywhere and a handler over some of it; the stack is always empty between steps."""
    count = draw(st.integers(1, 12))
    heads = [make.nop() for _ in range(count)]
    handler = ExceptionHandler(heads[draw(st.integers(0, count - 1))], 0)
    result: list[Instruction] = []
    for head in heads:
        name = draw(st.sampled_from(NAMES))
        body: list[Instruction] = [head]
        kind = draw(st.sampled_from(["load", "store", "delete", "jump", "branch", "nothing"]))
        target = draw(st.sampled_from(heads))
        if kind == "load":
            body += [make.load_fast(name), make.pop_top()]
        elif kind == "store":
            body += [make.load_const(1), make.store_fast(name)]
        elif kind == "delete":
            body += [make.delete_fast(name)]
        elif kind == "jump":
            body += [make.jump(target)]
        elif kind == "branch":
            body += [make.load_const(1), make.pop_jump_if_none(target)]
        if draw(st.booleans()):
            for inst in body:
                inst.handler = handler
        result += body
    return [*result, make.load_const(None), make.return_value()]


def read_first(instructions: Sequence[Instruction], start: int, name: str) -> bool:
    """Whether some path from `start` reads `name` before it writes it: the definition, by search."""
    nexts = successors(instructions)
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        index = waiting.pop()
        if index in seen:
            continue
        seen.add(index)
        inst = instructions[index]
        if inst.argval == name and inst.opname in ("LOAD_FAST", "DELETE_FAST"):
            return True
        after = list(nexts[index])
        if inst.argval == name and inst.opname == "STORE_FAST":
            # Only raising, before the store happens, leads on with the old value.
            after = after[-1:] if inst.handler is not None else []
        waiting += after
    return False


@given(programs())
@settings(max_examples=150, deadline=None)
def test_live_variables_are_those_that_some_path_reads_first(instructions: list[Instruction]) -> None:
    live = live_before(instructions)
    for index in range(len(instructions)):
        assert live[index] == {name for name in NAMES if read_first(instructions, index, name)}


@given(programs())
@settings(max_examples=100, deadline=None)
def test_blocks_are_entered_at_the_top_and_cover_everything(instructions: list[Instruction]) -> None:
    blocks = basic_blocks(instructions)
    assert [index for block in blocks for index in block] == list(range(len(instructions)))
    starts = {block.start for block in blocks}
    for index, nexts in enumerate(successors(instructions)):
        for following in nexts:
            assert following == index + 1 or following in starts


@given(programs())
@settings(max_examples=100, deadline=None)
def test_dropping_what_is_not_reached_keeps_all_paths(instructions: list[Instruction]) -> None:
    kept = [inst for index, inst in enumerate(instructions) if index in reachable(instructions)]
    remove_unreachable(instructions)
    assert instructions == kept
    assert len(reachable(instructions)) == len(instructions)


@given(programs())
@settings(max_examples=50, deadline=None)
def test_copies_refer_to_copies_only(instructions: list[Instruction]) -> None:
    copies = copy_instructions(instructions)
    assert not set(copies) & set(instructions)
    for old, new in zip(instructions, copies, strict=True):
        assert (old.opname, old.arg, old.argval, old.positions) == (
            new.opname,
            new.arg,
            new.argval,
            new.positions,
        )
        for before, after in ((old.target, new.target), (old.handler, new.handler)):
            assert (before is None) == (after is None)
        if old.target is not None:
            assert new.target is copies[instructions.index(old.target)]
        if old.handler is not None and new.handler is not None:
            assert new.handler.target is copies[instructions.index(old.handler.target)]


def loop(items: list[int], unused: int) -> int:
    total = 0
    for item in items:
        if item:
            total += item
    return total


def closure(x: int, unused: int) -> Callable[[], int]:
    def inner() -> int:
        return x

    return inner


def handled(x: int) -> int:
    kept = x
    value = 0
    try:
        value = 1 // x
    except ZeroDivisionError:
        return kept
    return value


@pytest.mark.parametrize(
    ("function", "line", "live"),
    [
        (loop, 1, {"items"}),
        (loop, 4, {"total", "item"}),
        (loop, 5, {"total"}),
        (closure, 1, {"x"}),
        (handled, 1, {"x"}),
        (handled, 4, {"x", "kept"}),
        (handled, 7, {"value"}),
    ],
)
def test_live_variables_of_python_functions(function: types.FunctionType, line: int, live: set[str]) -> None:
    code = function.__code__
    instructions = decode(code)
    at = next(inst for inst in instructions if inst.starts_line == code.co_firstlineno + line)
    assert livevars_analysis(instructions, at) == live
    with pytest.raises(ValueError, match="not in the list"):
        livevars_analysis(instructions, make.nop())


def test_depth_before_each_instruction() -> None:
    loads = [make.load_const(1), make.load_const(2), make.binary_op("+"), make.return_value()]
    depths = stack_depths(loads)
    assert [depths.before(inst) for inst in loads] == [0, 1, 2, 1]
    assert depths.maximum == 2


def test_depth_of_code_reached_by_backward_jumps_only() -> None:
    late = make.nop()
    early = [make.load_const(1), make.return_value()]
    body = [make.jump(late), *early, late, make.jump(early[0])]
    assert stack_depths(body).before(early[1]) == 1


def test_unreached_code_has_no_depth() -> None:
    dead = make.nop()
    assert stack_depths([make.load_const(1), make.return_value(), dead, make.jump(dead)]).before(dead) is None


def test_a_handler_sees_the_stack_cut_and_the_exception_on_it() -> None:
    catch = Instruction("PUSH_EXC_INFO")
    guarded = make.guard_with(
        catch, [make.load_const(1), make.load_const(2), make.binary_op("/")], lasti=True
    )
    body = [make.load_const("kept"), *guarded, make.return_value(), catch, make.reraise()]
    depths = stack_depths(body)
    handler = guarded[0].handler
    assert handler is not None and depths.handler_depth(handler) == 1
    assert depths.before(catch) == 1 + 1 + 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([make.pop_top(), make.return_value()], "pops more than the stack holds"),
        ([make.load_const(1)], "past the end"),
        ([make.jump(make.nop())], "not in the list"),
        ([Instruction("BOGUS"), make.return_value()], "not known"),
    ],
)
def test_a_wrong_stack_is_reported(body: list[Instruction], message: str) -> None:
    with pytest.raises(StackDepthError, match=message):
        stack_depths(body)


def test_paths_that_meet_at_different_depths_are_reported() -> None:
    meet = make.load_const(3)
    meet.positions = (12, 12, 0, 1)
    body = [make.load_const(None), make.pop_jump_if_none(meet), make.load_const(1), meet, make.return_value()]
    with pytest.raises(StackDepthError, match=r"line 12\) is reached with 0 and with 1 values"):
        stack_depths(body)


@given(programs(), st.sets(st.sampled_from(NAMES)))
@settings(max_examples=150, deadline=None)
def test_bound_variables_are_bound_on_every_path(
    instructions: list[Instruction], arguments: set[str]
) -> None:
    """By search: is there a way to the instruction on which the variable is unbound?"""
    nexts = successors(instructions)
    bound = bound_before(instructions, arguments)
    assert {index for index, names in enumerate(bound) if names is not None} == reachable(instructions)
    for name in NAMES:
        unbound: set[int] = set()
        seen: set[tuple[int, bool]] = set()
        waiting = [(0, name in arguments)]
        while waiting:
            index, is_bound = waiting.pop()
            if (index, is_bound) in seen:
                continue
            seen.add((index, is_bound))
            if not is_bound:
                unbound.add(index)
            inst = instructions[index]
            mine = inst.argval == name
            # What a read goes on to, it has found bound.
            after = True if mine and inst.opname in ("STORE_FAST", "LOAD_FAST") else is_bound
            after = False if mine and inst.opname == "DELETE_FAST" else after
            for place, following in enumerate(nexts[index]):
                raising = inst.handler is not None and place == len(nexts[index]) - 1
                waiting.append((following, after if not raising or after is False else is_bound))
        for index in reachable(instructions):
            assert (name in (bound[index] or ())) == (index not in unbound)


def test_the_compilers_own_reads_are_all_safe() -> None:
    for function in (loop, closure, handled, test_live_variables_of_python_functions, read_first):
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        assert check_unbound_reads(decode(code), code.co_varnames[:count]) == 0


def test_a_dropped_store_gives_an_error_and_no_crash() -> None:
    instructions = decode(loop.__code__)
    at = next(index for index, inst in enumerate(instructions) if inst.opname == "STORE_FAST")
    del instructions[at]
    instructions.insert(at, make.pop_top())
    check_unbound_reads(instructions, ("items", "unused"))
    function = types.FunctionType(assemble(loop.__code__, instructions), {})
    with pytest.raises(UnboundLocalError, match="total"):
        function([1], 0)
