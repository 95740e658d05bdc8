"""Instructions that are made, not decoded, do on every Python what their names say."""

import dis
import types
from collections.abc import Callable, Sequence

import pytest

from dynamo.eval.bytecode import AssembleError, Instruction, assemble, decode, stack_effect
from dynamo.eval.bytecode import create as make
from dynamo.eval.bytecode.versions.select import FACTS


def template(a: object, b: object) -> None:
    c = d = None
    del c, d


def run(
    body: Sequence[Instruction], *args: object, cellvars: Sequence[str] = (), freevars: Sequence[str] = ()
) -> object:
    head = make.function_prologue(cellvars, freevars)
    code = assemble(template.__code__, [*head, *body], cellvars=cellvars, freevars=freevars)
    cells = tuple(types.CellType(name) for name in code.co_freevars)
    return types.FunctionType(code, {"__builtins__": __builtins__, "g": 5}, closure=cells)(*args)


def binary(instruction: Instruction) -> list[Instruction]:
    return [make.load_fast("a"), make.load_fast("b"), instruction, make.return_value()]


OPERATORS: dict[str, Callable[[int, int], object]] = {
    **{"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b},
    **{
        "//": lambda a, b: a // b,
        "%": lambda a, b: a % b,
        "**": lambda a, b: a**b,
        "<<": lambda a, b: a << b,
    },
    **{">>": lambda a, b: a >> b, "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b},
}


@pytest.mark.parametrize("symbol", OPERATORS)
def test_binary_operators_compute(symbol: str) -> None:
    assert run(binary(make.binary_op(symbol)), 13, 3) == OPERATORS[symbol](13, 3)
    assert run(binary(make.binary_op(symbol + "=")), 13, 3) == OPERATORS[symbol](13, 3)


@pytest.mark.parametrize("symbol", ["<", "<=", "==", "!=", ">", ">="])
@pytest.mark.parametrize("pair", [(1, 2), (2, 2), (2, 1), (1.0, float("nan")), ("b", "a")])
def test_comparisons_compare(symbol: str, pair: tuple[object, object]) -> None:
    assert run(binary(make.compare_op(symbol)), *pair) is eval(f"a {symbol} b", {"a": pair[0], "b": pair[1]})


def test_identity_and_membership_can_be_negated() -> None:
    item = object()
    assert run(binary(make.is_op()), item, item) is True
    assert run(binary(make.is_op(negated=True)), item, item) is False
    assert run(binary(make.contains_op()), 1, [1, 2]) is True
    assert run(binary(make.contains_op(negated=True)), 1, [1, 2]) is False


@pytest.mark.parametrize(("symbol", "value"), [("-", -7), ("+", 7), ("~", -8), ("not", False)])
def test_unary_operators_compute(symbol: str, value: object) -> None:
    result = run([make.load_fast("a"), *make.unary_op(symbol), make.return_value()], 7, 0)
    assert result == value and type(result) is type(value)


@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("keywords", [(), ("x",), ("x", "y")])
def test_both_ways_to_call_pass_all_arguments(count: int, keywords: tuple[str, ...]) -> None:
    def collect(*args: object, **kwargs: object) -> tuple[object, object]:
        return args, kwargs

    total = count + len(keywords)
    arguments = [make.load_const(n) for n in range(total)]
    expected = (tuple(range(count)), dict(zip(keywords, range(count, total), strict=True)))
    slow = [make.load_fast("a"), *arguments, *make.call_function(total, keywords), make.return_value()]
    assert run(slow, collect, 0) == expected
    arguments = [make.load_const(n) for n in range(total)]
    loading = make.load_callable([make.load_fast("a")])
    assert (
        run([*loading, *arguments, make.call(total, keywords), make.return_value()], collect, 0) == expected
    )


def test_methods_globals_and_unpacked_calls() -> None:
    upper = [
        make.load_fast("a"),
        make.load_method("join"),
        make.load_fast("b"),
        make.call_method(1),
        make.return_value(),
    ]
    assert run(upper, "-", "xyz") == "x-y-z"
    function = [*make.load_callable([make.load_global("sorted")]), make.load_fast("a"), make.load_fast("b")]
    assert run(
        [*function, make.call_function_ex(keywords=True), make.return_value()], ([3, 1],), {"reverse": True}
    ) == [3, 1]
    assert run([make.load_global("g"), make.return_value()], 0, 0) == 5


def test_method_call_on_an_instance_attribute_that_is_no_method() -> None:
    class Holder:
        def __init__(self) -> None:
            self.call = lambda x: ("plain", x)

    body = [
        make.load_fast("a"),
        make.load_method("call"),
        make.load_fast("b"),
        make.call_method(1),
        make.return_value(),
    ]
    assert run(body, Holder(), 3) == ("plain", 3)


def test_containers_are_built_and_taken_apart() -> None:
    pair = [make.load_fast("a"), make.load_fast("b")]
    assert run([*pair, make.build_tuple(2), make.return_value()], 1, 2) == (1, 2)
    pair = [make.load_fast("a"), make.load_fast("b")]
    assert run([*pair, make.build_list(2), make.return_value()], 1, 2) == [1, 2]
    pair = [make.load_fast("a"), make.load_fast("b")]
    assert run([*pair, make.build_set(2), make.return_value()], 1, 2) == {1, 2}
    pair = [make.load_fast("a"), make.load_fast("b")]
    assert run([*pair, make.build_map(1), make.return_value()], 1, 2) == {1: 2}
    pair = [make.load_fast("a"), make.load_fast("b")]
    assert run([*pair, *make.build_const_key_map(["x", "y"]), make.return_value()], 1, 2) == {"x": 1, "y": 2}
    pair = [make.load_fast("a"), make.load_fast("b")]
    assert run([*pair, make.build_slice(2), make.return_value()], 1, 2) == slice(1, 2)
    pair = [make.load_fast("a"), make.load_fast("b")]
    assert run([*pair, make.build_string(2), make.return_value()], "x", "y") == "xy"
    apart = [make.load_fast("a"), make.unpack_sequence(3), make.build_tuple(3), make.return_value()]
    assert run(apart, "xyz", 0) == ("z", "y", "x")
    apart = [make.load_fast("a"), make.unpack_ex(1, 1), make.build_tuple(3), make.return_value()]
    assert run(apart, "vwxyz", 0) == ("z", ["w", "x", "y"], "v")


def test_subscripts_and_attributes_are_stored_and_deleted() -> None:
    place = types.SimpleNamespace(old=1)
    items = {"old": 1}
    body = [
        make.load_const(7),
        make.load_fast("a"),
        make.store_attr("new"),
        make.load_fast("a"),
        make.delete_attr("old"),
    ]
    body += [make.load_const(7), make.load_fast("b"), make.load_const("new"), make.store_subscr()]
    body += [make.load_fast("b"), make.load_const("old"), make.delete_subscr()]
    body += [make.load_fast("b"), make.load_const("new"), make.binary_subscr(), make.return_value()]
    assert run(body, place, items) == 7
    assert vars(place) == {"new": 7} and items == {"new": 7}


@pytest.mark.parametrize("depth", range(1, 6))
def test_rotate_moves_the_top_under_the_others(depth: int) -> None:
    loads = [make.load_const(n) for n in range(depth)]
    result = run([*loads, *make.rotate(depth), make.build_tuple(depth), make.return_value()], 0, 0)
    assert result == (depth - 1, *range(depth - 1))


def test_loops_go_over_all_items_and_conditional_jumps_go_both_ways() -> None:
    end = make.end_for()
    loop = make.for_iter(end)
    add = [make.load_fast("c"), make.binary_op("+"), make.store_fast("c")]
    body = [
        make.load_const(0),
        make.store_fast("c"),
        make.load_fast("a"),
        make.get_iter(),
        loop,
        *add,
        make.jump(loop),
        end,
    ]
    top = make.nop()
    body += [
        top,
        make.load_fast("b"),
        make.load_const(1),
        make.binary_op("-"),
        make.copy_top(),
        make.store_fast("b"),
    ]
    body += [
        *make.pop_jump_if_true(top),
        make.load_fast("c"),
        make.load_fast("b"),
        make.build_tuple(2),
        make.return_value(),
    ]
    assert run(body, range(10), 4) == (45, 0)
    assert run(body, [], 1) == (0, 0)


@pytest.mark.parametrize("value", [None, 0, 1, [], [0]])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("kind", ["true", "false", "none", "not_none"])
def test_conditional_jumps_choose(kind: str, backward: bool, value: object) -> None:
    taken = [make.load_const("taken"), make.return_value()]
    jumps: dict[str, Callable[[Instruction], list[Instruction]]] = {
        "true": make.pop_jump_if_true,
        "false": make.pop_jump_if_false,
        "none": lambda target: [make.pop_jump_if_none(target)],
        "not_none": lambda target: [make.pop_jump_if_not_none(target)],
    }
    test = [make.load_fast("a"), *jumps[kind](taken[0]), *make.return_const("not taken")]
    body = [make.jump(test[0]), *taken, *test] if backward else [*test, *taken]
    truth = {"true": bool(value), "false": not value, "none": value is None, "not_none": value is not None}[
        kind
    ]
    assert run(body, value, 0) == ("taken" if truth else "not taken")


def test_functions_are_made_with_defaults_and_closure() -> None:
    def outer() -> types.CodeType:
        captured = 0

        def inner(x: object, y: object, *, z: object) -> tuple[object, ...]:
            return x, y, z, captured

        return inner.__code__

    body = make.make_function(
        outer(),
        defaults=[make.load_const((10, 20))],
        kwdefaults=[make.load_const("z"), make.load_const(30), make.build_map(1)],
        annotations=[make.load_const(("x", "int"))],
        closure=["a"],
    )
    function = run([*body, make.return_value()], "from the cell", 0, cellvars=("a",))
    assert isinstance(function, types.FunctionType)
    assert function() == (10, 20, 30, "from the cell")
    assert function.__annotations__ == {"x": "int"}
    with pytest.raises(AssembleError, match="1 free variables, not 0"):
        make.make_function(outer())


def test_free_variables_are_read_written_and_emptied() -> None:
    body = [
        make.load_deref("f"),
        make.load_const("!"),
        make.binary_op("+"),
        make.store_deref("f"),
        make.load_deref("f"),
    ]
    body += [
        make.load_closure("f"),
        make.load_attr("cell_contents"),
        make.build_tuple(2),
        make.delete_deref("f"),
    ]
    assert run([*body, make.return_value()], 0, 0, freevars=("f",)) == ("f!", "f!")


def test_an_exception_goes_to_its_handler_with_the_stack_as_it_was() -> None:
    catch = Instruction("PUSH_EXC_INFO")
    guarded = make.guard_with(
        catch, [make.load_const(1), make.load_const(2), make.load_fast("a"), make.binary_op("/")]
    )
    body = [make.load_const("kept"), *guarded, make.build_tuple(3), make.return_value()]
    body += [
        catch,
        make.load_attr("args"),
        make.swap(),
        Instruction("POP_EXCEPT"),
        make.build_tuple(2),
        make.return_value(),
    ]
    assert run(body, 4, 0) == ("kept", 1, 0.5)
    assert run(body, 0, 0) == ("kept", ("division by zero",))


def test_an_unbound_local_is_reported() -> None:
    with pytest.raises(UnboundLocalError, match="'c'"):
        run([make.load_fast_check("c"), make.return_value()], 0, 0)


def test_raising_names_the_place_of_the_instruction() -> None:
    place = (77, 77, 3, 9)
    body = make.place_at(place, [make.load_global("ValueError"), make.raise_varargs(1)])
    with pytest.raises(ValueError) as caught:
        run(body, 0, 0)
    assert caught.traceback[-1].lineno == 76  # pytest counts from 0
    frame = caught.traceback[-1]
    assert list(frame.frame.code.raw.co_positions())[-1] == place


def test_imports_and_assertion_error() -> None:
    level = [make.load_const(0), make.load_const(("path",))]
    body = [
        *level,
        make.import_name("os"),
        make.import_from("path"),
        make.swap(),
        make.pop_top(),
        make.return_value(),
    ]
    import os.path

    assert run(body, 0, 0) is os.path
    assert run([make.load_assertion_error(), make.return_value()], 0, 0) is AssertionError


@pytest.mark.parametrize(
    ("making", "message"),
    [
        (lambda: make.create_instruction("NOT_AN_OPCODE"), "normal form"),
        (lambda: make.create_instruction("CACHE"), "normal form"),
        (lambda: make.create_instruction("JUMP"), "needs a target"),
        (lambda: make.create_instruction("NOP", target=make.nop()), "takes no target"),
        (lambda: make.create_instruction("LOAD_FAST", 3), "needs a name"),
        (lambda: make.binary_op("<"), "no binary operator"),
        (lambda: make.unary_op("!"), "no unary operator"),
        (lambda: make.compare_op("in"), "no comparison"),
        (lambda: make.call(1, ["x", "y"]), "2 keywords for 1 arguments"),
    ],
)
def test_a_wrong_instruction_is_refused(making: Callable[[], object], message: str) -> None:
    with pytest.raises(AssembleError, match=message):
        making()


def test_create_instruction_accepts_all_that_decoding_yields() -> None:
    for inst in decode(test_functions_are_made_with_defaults_and_closure.__code__):
        target = None if inst.target is None else make.nop()
        made = make.create_instruction(
            inst.opname, inst.arg, inst.argval, target=target, positions=inst.positions
        )
        assert (made.opname, made.arg, made.argval, made.opcode) == (
            inst.opname,
            inst.arg,
            inst.argval,
            inst.opcode,
        )


@pytest.mark.parametrize("name", sorted(FACTS.opmap))
def test_stack_effects_agree_with_dis(name: str) -> None:
    """The oracle knows the physical instruction; where the normal form has the same one, the effects are the same."""
    normal = {
        "RETURN_GENERATOR",
        "FOR_ITER",
        "CALL",
        "CALL_KW",
        "LOAD_ATTR",
        "END_FOR",
        "FORMAT_VALUE",
        "CACHE",
    }
    normal |= {
        "PRECALL",
        "EXTENDED_ARG",
        "RETURN_CONST",
        "LOAD_SUPER_ATTR",
        "BINARY_SLICE",
        "STORE_SLICE",
        "KW_NAMES",
    }
    normal |= {"LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "LOAD_GLOBAL"}
    physical = {physical for pair in FACTS.jump_names.values() for physical in pair}
    if name in normal or name in physical - set(FACTS.jump_names):
        pytest.skip("split, renamed or folded in the normal form")
    opcode = FACTS.opmap[name]
    for arg in (0, 1, 2, 3) if FACTS.has_arg[opcode] else (None,):
        if arg == 0 and name in ("BUILD_SLICE", "COPY", "SWAP") or name == "BUILD_SLICE" and arg != 2:
            continue
        inst = Instruction(name, arg)
        assert stack_effect(inst) == dis.stack_effect(opcode, arg, jump=False)
        assert stack_effect(inst, jump=True) == dis.stack_effect(opcode, arg, jump=True)
