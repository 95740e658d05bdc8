"""What the assembler does with edited instructions, and what it refuses."""

import random
import subprocess
import sys
import types
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo.eval.bytecode import (
    AssembleError,
    CodeOptions,
    DecodeError,
    Instruction,
    assemble,
    decode,
    transform_code_object,
)
from dynamo.eval.bytecode import create as make
from dynamo.eval.bytecode.exceptions import TableEntry, decode_exception_table, encode_exception_table
from dynamo.eval.bytecode.locations import encode_locations
from dynamo.eval.bytecode.versions.select import FACTS


def victim(data: list[int], limit: int) -> tuple[list[int], str]:
    result, log = [], ""
    for position, item in enumerate(data):
        try:
            if item > limit:
                raise ValueError(f"{item!r:>4}")
            result.append(limit // item)
        except ZeroDivisionError:
            log += "0"
            continue
        except ValueError as error:
            log += str(error)
        finally:
            log += f"<{position}>"
    return [x for x in result if x != 1][1:], log


@given(st.randoms(use_true_random=False), st.lists(st.integers(-3, 9)), st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_code_inserted_anywhere_changes_nothing(rng: random.Random, data: list[int], filler: int) -> None:
    """Whatever is put in, jumps, handlers and operands still fit, also where jumps become long."""

    def insert(instructions: list[Instruction], options: CodeOptions) -> None:
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(1, len(instructions))
            after = instructions[at]
            if after.opname in ("RESUME", "MAKE_CELL", "COPY_FREE_VARS", "END_FOR"):
                continue
            added: list[Instruction] = []
            for _ in range(filler):
                added += [make.load_const(("new", rng.randrange(400))), make.pop_top()]
            instructions[at:at] = [inst.copy_place(after) for inst in added]

    changed = types.FunctionType(transform_code_object(victim.__code__, insert), globals())
    assert changed(data, 4) == victim(data, 4)


@given(st.lists(st.tuples(*[st.integers(0, 1 << 20)] * 3, st.integers(0, 40), st.booleans()), max_size=8))
def test_exception_tables_come_back(numbers: list[tuple[int, int, int, int, bool]]) -> None:
    entries = [TableEntry(a, a + size, target, depth, lasti) for a, size, target, depth, lasti in numbers]
    assert decode_exception_table(encode_exception_table(entries)) == entries


LINES = st.one_of(st.none(), st.integers(1, 5000))
COLUMNS = st.one_of(st.none(), st.integers(0, 300))


@given(
    st.lists(
        st.tuples(st.integers(1, 20), LINES, st.integers(0, 3), COLUMNS, st.integers(0, 200)), min_size=1
    )
)
def test_places_come_back_as_cpython_reads_them(
    runs: list[tuple[int, int | None, int, int | None, int]],
) -> None:
    expected = []
    for units, line, span, column, width in runs:
        if line is None:
            place: tuple[int | None, int | None, int | None, int | None] = (None, None, None, None)
        elif column is None:
            place = (line, line, None, None)
        else:
            place = (line, line + span, column, column + width)
        expected.append((units, place))
    total = sum(units for units, _ in expected)
    table = encode_locations(7, expected)
    body = bytes((FACTS.opmap["NOP"], 0)) * total
    code = victim.__code__.replace(co_code=body, co_linetable=table, co_firstlineno=7, co_exceptiontable=b"")
    assert list(code.co_positions()) == [place for units, place in expected for _ in range(units)]


def test_new_names_and_constants_are_appended_and_shared() -> None:
    def edit(instructions: list[Instruction], options: CodeOptions) -> None:
        instructions[-2:] = [
            make.load_const(item) for item in (1, 1.0, True, 0.0, -0.0, 1, "x", "x", (1,), (1.0,))
        ]
        instructions += [make.build_tuple(10), make.return_value()]

    def short() -> object:
        return sys

    changed = transform_code_object(short.__code__, edit)
    values = types.FunctionType(changed, {})()
    assert [repr(item) for item in values] == [
        "1",
        "1.0",
        "True",
        "0.0",
        "-0.0",
        "1",
        "'x'",
        "'x'",
        "(1,)",
        "(1.0,)",
    ]
    assert len(changed.co_consts) == len(short.__code__.co_consts) + 8


def test_options_can_rename_and_add_locals() -> None:
    def edit(instructions: list[Instruction], options: CodeOptions) -> None:
        options["co_name"] = "resume_in_short_at_7"
        options["co_varnames"] += ("fresh",)
        options["co_filename"] = "elsewhere.py"
        options["co_stacksize"] = 30
        for inst in instructions:
            if inst.opname == "RETURN_VALUE":
                at = instructions.index(inst)
                instructions[at:at] = [make.store_fast("fresh"), make.load_fast("fresh")]
                break

    def short(a: int) -> int:
        return a

    changed = transform_code_object(short.__code__, edit)
    assert types.FunctionType(changed, {})(4) == 4
    assert (changed.co_name, changed.co_filename) == ("resume_in_short_at_7", "elsewhere.py")
    assert changed.co_varnames == ("a", "fresh") and changed.co_stacksize >= 30
    assert short.__code__.co_varnames == ("a",)


def test_cells_and_free_variables_may_change() -> None:
    def source(a: int, b: int) -> Callable[[], int]:
        def inner() -> int:
            return a

        return inner

    def edit(instructions: list[Instruction], options: CodeOptions) -> None:
        options["co_freevars"] = ("outer",)
        options["co_cellvars"] = ("b", "a", "own")
        for inst in instructions:
            if inst.opname == "RETURN_VALUE":
                at = instructions.index(inst)
                new = [
                    make.load_deref("outer"),
                    make.store_deref("own"),
                    make.load_deref("own"),
                    make.load_deref("b"),
                ]
                instructions[at:at] = [*new, make.build_tuple(3)]
                break

    changed = transform_code_object(source.__code__, edit)
    function, own, b = types.FunctionType(changed, {}, closure=(types.CellType("free"),))(1, 2)
    assert (function(), own, b) == (1, "free", 2)


def test_a_cell_that_becomes_free_is_not_mixed_up_with_the_local_that_had_its_place() -> None:
    def source(a: int) -> Callable[[], int]:
        def inner() -> int:
            return a

        return inner

    def edit(instructions: list[Instruction], options: CodeOptions) -> None:
        options["co_freevars"] = ("a",)
        options["co_cellvars"] = ()

    changed = transform_code_object(source.__code__, edit)
    inner = types.FunctionType(changed, {}, closure=(types.CellType("free"),))(1)
    assert inner() == "free"


def test_a_generator_keeps_its_protocol_after_an_edit() -> None:
    def generate(n: int) -> Generator[int, str, list[str]]:
        got: list[str] = []
        while n:
            try:
                got.append((yield n))
            except KeyError:
                got.append("key")
            n -= 1
        return got

    def nops(instructions: list[Instruction], options: CodeOptions) -> None:
        for at in range(len(instructions) - 1, 3, -1):
            if instructions[at].opname not in ("RESUME", "END_FOR"):
                instructions.insert(at, make.nop().copy_place(instructions[at]))

    generator = types.FunctionType(transform_code_object(generate.__code__, nops), {})(3)
    assert (next(generator), generator.send("x"), generator.throw(KeyError)) == (3, 2, 1)
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == ["x", "key", None]


def simple(a: int) -> int:
    return a


def body_with(*instructions: Instruction) -> list[Instruction]:
    return [*make.function_prologue(), *instructions, *make.return_const(None)]


TWICE = make.nop()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (body_with(make.load_fast("b"), make.pop_top()), "no local variable is called 'b'"),
        (body_with(make.load_deref("b"), make.pop_top()), "no cell or free variable is called 'b'"),
        (body_with(TWICE, TWICE), "stands in the list twice"),
        (body_with(make.load_const(1), make.pop_jump_if_none(make.nop())), "not in the list"),
        (body_with(make.load_const(1), Instruction("BINARY_OP", argval="?"), make.pop_top()), "stack|pops"),
        (
            body_with(
                make.load_const(1), make.load_const(1), Instruction("COMPARE_OP", argval="?"), make.pop_top()
            ),
            "know",
        ),
        (
            body_with(make.load_global("x"), Instruction("BUILD_TUPLE", -1), make.pop_top()),
            "out of range|different|reached",
        ),
        (body_with(Instruction("LOAD_GLOBAL", argval=3), make.pop_top()), "a name must be a str"),
    ],
)
def test_wrong_instructions_are_refused_with_a_reason(body: list[Instruction], message: str) -> None:
    with pytest.raises(Exception, match=message) as caught:
        assemble(simple.__code__, body)
    assert type(caught.value).__name__ in ("AssembleError", "StackDepthError")


def test_a_loop_that_does_not_end_at_end_for_is_refused_where_python_needs_it() -> None:
    end = make.load_const(None)
    loop = make.for_iter(end)
    body = [
        make.load_fast("a"),
        make.get_iter(),
        loop,
        make.pop_top(),
        make.jump(loop),
        end,
        make.return_value(),
    ]
    if FACTS.for_iter_needs_end_for:
        with pytest.raises(AssembleError, match="FOR_ITER must go to END_FOR"):
            assemble(simple.__code__, [*make.function_prologue(), *body])
    else:
        assert (
            types.FunctionType(assemble(simple.__code__, [*make.function_prologue(), *body]), {})([1]) is None
        )


def test_bytes_that_no_compiler_writes_are_refused() -> None:
    with pytest.raises(DecodeError, match="opcode 0 is not"):
        decode(simple.__code__.replace(co_code=bytes(2), co_linetable=b"", co_exceptiontable=b""))


@pytest.mark.parametrize("options", [[], ["--stir"]], ids=["same", "rewritten"])
def test_rewritten_modules_pass_cpythons_own_tests(options: list[str]) -> None:
    tool = Path(__file__).parents[2] / "tools/run_cpython_tests.py"
    command = [sys.executable, str(tool), *options, "test_grammar", "test_contextlib", "test_generators"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if " tests, 0 failed" in line]
    assert len(lines) == 3 and all(int(line.split()[1]) > 20 for line in lines), done.stdout
