# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return, union-attr, var-annotated, misc, arg-type"
"""Graph breaks inside loops, ``try`` and ``with`` blocks, against plain Python.

The programs are untyped as much user code is, so mypy's rules on definitions are off in this file.
PYTEST_DONT_REWRITE: an `assert` here is a statement that may be captured.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import dynamo.eval as dynamo
from dynamo.eval.backends.testing import CompileCounter
from tests.oracle.eager import assert_like_eager

X = torch.tensor([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


class Gate:
    def __init__(self, log, suppresses):
        self.log = log
        self.suppresses = suppresses

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, value, trace):
        self.log.append("out" if kind is None else kind.__name__)
        return self.suppresses


def prints_each_turn(x):
    for i in range(4):
        x = x + 1
        print("turn", i)
        x = x * 2
    return x - 1


def loop_with_else(x):
    for i in range(3):
        x = x + i
        print(i)
        if i == 5:
            break
        x = x * 2
    else:
        x = x - 7
    return x


def while_on_values(x):
    out = []
    while x.sum() < 40:
        x = x + 1
        if x[0] > 4:
            x = x + 2
            continue
        out.append(x * 2)
        if len(out) > 5:
            break
    return x, out


def nested_loops(x):
    total = 0
    for i in range(3):
        for j in range(2):
            y = x * i
            print(i, j)
            total = total + (y + j).sum()
        total = total * 2
    return total + 1


def returns_from_loop(x):
    for i in range(5):
        y = x + i
        print(i)
        if i == 2:
            return y * 2
        y = y * 3
    return y


def unpacks_in_loop(x):
    total = x
    for name, (low, high) in {"a": (1, 2), "b": (3, 4)}.items():
        total = total * low
        print(name)
        total = total + high
    return total


def bound_only_in_loop(x):
    for i in range(2):
        if i == 1:
            late = x * 3
        print(i)
        x = x + 1
    return late + x


def never_bound(x):
    for i in range(2):
        print(i)
        x = x + 1
        if i > 5:
            late = x
    return x + late


def in_try(x):
    try:
        y = x + 1
        print("in try")
        z = y * 2
        z = z + 3
    except ValueError:
        z = x
    return z * y


def caught_after_break(x):
    try:
        y = x + 1
        print("in try")
        y = y * 2
        if y.sum() > -100:
            raise KeyError("k")
        y = y * 100
    except KeyError as error:
        print("caught", error)
        y = y + 5
    return y * 2


def handler_sees_locals(x):
    seen = "nothing"
    try:
        print("begin")
        seen = "one"
        y = x + 1
        seen = "two"
        y.view(17)
        seen = "three"
    except RuntimeError:
        y = x * 4
    return y, seen


def try_in_loop(x):
    out = []
    for i in range(4):
        try:
            y = x + i
            print("turn", i)
            y = y * 2
            if i == 1:
                raise KeyError(i)
            if i == 2:
                continue
            out.append(y)
        except KeyError as error:
            print("caught", error)
            out.append(x * 100)
        finally:
            print("finally")
            x = x + 1
    return out, x, y


def handler_leaves_loop(x):
    for i in range(4):
        try:
            print(i)
            x = x * 2
            if i == 2:
                raise IndexError
        except IndexError:
            break
        x = x + 1
    return x


def break_in_handler(x):
    try:
        x = x + 1
        [][1]
    except IndexError as error:
        y = x * 2
        print("handling", error)
        y = y + 1
    return y * x


def break_in_finally(x):
    try:
        x = x + 1
    finally:
        x = x * 2
        print("finally")
        x = x * 3
    return x + 1


def bare_raise_after_break(x):
    try:
        try:
            x = x + 1
            raise KeyError("again")
        except KeyError:
            print("first")
            x = x * 2
            raise
    except KeyError as error:
        return x, str(error)


def exception_leaves_loop(x, log):
    for i in range(3):
        x = x + 1
        print(i)
        log.append(x * 2)
        if i == 1:
            raise ValueError("leave")
    return x


def in_no_grad(x):
    with torch.no_grad():
        y = x + 1
        print("grad", torch.is_grad_enabled())
        y = y * 2
        z = y + 1
    return z * y, torch.is_grad_enabled()


def in_user_manager(x, log):
    with Gate(log, False) as gate:
        y = x * 2
        print("inside")
        gate.log.append("body")
        y = y + 1
    return y * 2


def suppressed(x, log):
    z = x
    with Gate(log, True):
        y = x * 2
        print("inside")
        z = y + 1
        if z.sum() > -100:
            raise ValueError("gone")
        z = z * 5
    return z * 2


def two_managers(x, log):
    with Gate(log, False), Gate(log, True):
        y = x * 2
        print("inside")
        y = y + 1
        if y.sum() > -100:
            raise ValueError("gone")
    return y * 2


def returns_from_with(x, log):
    with Gate(log, False):
        y = x * 2
        print("inside")
        return y + 1


def manager_in_loop(x, log):
    for i in range(3):
        with Gate(log, True):
            x = x + 1
            print(i)
            if i == 1:
                continue
            if i == 2:
                break
            x = x * 2
    return x + 1


def unsuppressed_maybe_unbound(x, log):
    with Gate(log, True):
        print("inside")
        if x.sum() > -100:
            raise ValueError("gone")
        late = x
    return x + late


def closures_in_loop(x):
    makers = []
    count = 0

    def bump():
        nonlocal count
        count += 1
        return count

    for i in range(3):

        def add(value, i=i):
            return x + i + value  # noqa: B023

        print(bump())
        makers.append(add)
        x = x + count
    return [make(1) for make in makers], count


def comprehension_breaks(x):
    return [print(i) or x * i for i in range(3)], x + 1


def operands_on_the_stack(x):
    out = []
    for i in range(3):
        out.append((x + i, print(i), x * i))
    return out


def deletes(x):
    for i in range(2):
        y = x + i
        print(i)
        del y
        x = x * 2
    try:
        return y  # noqa: F821
    except UnboundLocalError:
        return x


def helper(x, i):
    y = x + i
    print("helper", i)
    return y * 2


def callee_breaks(x):
    for i in range(3):
        x = helper(x, i) + 1
    with torch.no_grad():
        x = helper(x, 9)
    return x - 1


def callee_breaks_in_loop(x):
    def inner(value):
        for i in range(2):
            value = value + i
            print("inner", i)
            value = value * 2
        return value

    for _ in range(2):
        x = inner(x) + 1
    return x


def stateful(x, items):
    for item in items:
        x = x + item
        print(len(items))
        items.append(item * 2)
        if len(items) > 5:
            break
    return x


PROGRAMS: list[Any] = [
    prints_each_turn, loop_with_else, while_on_values, nested_loops, returns_from_loop, unpacks_in_loop,
    bound_only_in_loop, never_bound, in_try, caught_after_break, handler_sees_locals, try_in_loop,
    handler_leaves_loop, break_in_handler, break_in_finally, bare_raise_after_break, in_no_grad, closures_in_loop,
    comprehension_breaks, operands_on_the_stack, deletes, callee_breaks, callee_breaks_in_loop,
]  # fmt: skip
LOGGING: list[Any] = [
    exception_leaves_loop, in_user_manager, suppressed, two_managers, returns_from_with, manager_in_loop,
    unsuppressed_maybe_unbound,
]  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda value: value.__name__)
def test_a_break_in_a_block_goes_on_as_python_does(function: Any) -> None:
    assert_like_eager(dynamo.optimize("eager"), function, [(X,), (X * -3,), (X,)])


@pytest.mark.parametrize("function", LOGGING, ids=lambda value: value.__name__)
def test_a_break_under_a_manager_runs_its_exit_once(function: Any) -> None:
    assert_like_eager(dynamo.optimize("eager"), function, [(X, []), (X * -3, ["given"]), (X, [])])


def test_a_list_that_grows_while_a_loop_breaks() -> None:
    assert_like_eager(dynamo.optimize("eager"), stateful, [(X, [1, 2]), (X, [X, X]), (X, [1, 2])])


def many_turns(x, turns):
    for i in range(turns):
        x = x + 1
        print(end="")
        x = x * 0.5
        if i == -1:
            break
    return x - 1


def test_a_loop_that_breaks_each_turn_is_captured_a_few_times() -> None:
    counter = CompileCounter()
    captured = dynamo.optimize(counter)(many_turns)
    assert torch.equal(captured(X, 300), many_turns(X, 300))
    few = counter.frame_count
    assert few <= 6
    assert torch.equal(
        captured(X, 1500), many_turns(X, 1500)
    )  # nothing nests: deeper than the recursion limit
    assert counter.frame_count <= few + 3


def accumulates(x):
    total = 0.0
    for _ in range(6):
        y = x * 2
        total += float(y.sum())
    return total


def test_a_number_that_is_only_added_up_costs_no_recompile() -> None:
    counter = CompileCounter()
    captured = dynamo.optimize(counter)(accumulates)
    assert captured(X) == accumulates(X)
    assert counter.frame_count <= 2


def test_both_sides_of_the_break_are_graphs() -> None:
    for function, graphs in ((in_try, 3), (in_no_grad, 3), (break_in_finally, 2)):
        dynamo.reset()
        counter = CompileCounter()
        with contextlib.redirect_stdout(None):
            dynamo.optimize(counter)(function)(X)
        assert counter.frame_count == graphs, (function.__name__, counter.frame_count)
