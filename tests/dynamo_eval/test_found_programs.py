# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return, operator, attr-defined, misc, index, call-arg, var-annotated"
"""Programs that random programs (``python -m tests.fuzz``) came down to where capture once differed from Python.

The programs are untyped as much user code is, so mypy's rules on definitions are off in this file.
PYTEST_DONT_REWRITE: an `assert` here is a statement that may be captured.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import dynamo.eval as dynamo
from tests.oracle.eager import assert_like_eager

X = torch.tensor([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


def cell_arguments_after_a_handler(x, n, items):
    try:

        def inner(_):
            items()
            return x

        inner(n)
    except Exception as error:
        assert str(error)
    return x(2)


def cell_arguments_read_after_two_breaks(x, n, items):
    def inner():
        return x * n, items

    try:
        x[items]
    except Exception:
        pass
    y, seen = inner()
    seen.append(float(y.sum()))
    return [x, n, items, inner()]


def slice_by_no_integer(x, n, items):
    return items[x.dim : n]


def slice_by_a_string(x, n, items):
    kept = [1, 2, 3]
    try:
        kept["a":n]
    except TypeError as error:
        items.append(str(error))
    return kept[:n], items


def slice_of_step_zero(x, n, items):
    kept = (1, 2, 3)
    try:
        return kept[:: n - n]
    except ValueError as error:
        return str(error)


def assign_to_a_slice_of_step_zero(x, n, items):
    try:
        items[:: n - n] = [n]
    except ValueError as error:
        return str(error)


def cell_that_no_turn_of_a_loop_bound(x, n, items):
    items.append(x)
    print(len(items))
    for last in []:
        items.append(last)
    try:

        def inner():
            return last

        print(n)
        items.append(last)
    except NameError as error:
        items.append((type(error), str(error)))
    try:
        return inner()
    except NameError as error:
        return type(error), str(error)


def cell_deleted_by_an_inner_function(x, n, items):
    kept = x * n

    def forget():
        nonlocal kept
        del kept

    print(n)
    y = kept + 1
    print(n)
    forget()
    try:
        return kept
    except NameError as error:
        return y, type(error), str(error)


def comprehension_after_a_handler(x, n, items):
    try:
        torch(items)
        match n:
            case torch.Tensor(count=k):
                items.append(k)
    except Exception as error:
        items.append(str(error))
    return [k for k in items if k == 1]


def comprehensions_of_one_variable(x, n, items):
    first = [t for t in (x, -x) if bool(t.sum() > 0)]
    match items:
        case str():
            return [t + n for t in first]
    return first


def comprehension_variable_bound_before(x, n, items):
    t = n
    first = [t for t in (x, -x) if bool(t.sum() > 0)]
    print(t)
    return [t + x for t in items], first, t


class Slotted:
    __slots__ = ("count",)
    count: torch.Tensor


class Hooked:
    count: torch.Tensor

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class Box:
    count: torch.Tensor


BOX, SLOTTED, HOOKED = Box(), Slotted(), Hooked()
NEW: torch.Tensor


def attributes_stored_and_deleted(x, n, items):
    for owner in (BOX, SLOTTED, HOOKED, Hooked):
        owner.count = x + n
        del owner.count
    return [hasattr(owner, "count") for owner in (BOX, SLOTTED, HOOKED, Hooked)], x * 2


def global_stored_and_deleted(x, n, items):
    global NEW
    NEW = x + n
    y = NEW * 2
    del NEW
    try:
        return NEW
    except NameError as error:
        return y, str(error), "NEW" in globals()


def tuples_of_other_lengths_compare_their_items(x, n, items):
    y, one = torch.ones(2) * n, tuple(items[:1])
    lists = [y, n] == [y], [y] != [y, n]
    try:
        return (y, n) == one, lists
    except RuntimeError as error:
        return str(error), lists


def types_that_operators_refuse(x, n, items):
    told = []
    for tensor in (x, x.long(), x > 0):
        for number in (True, 1, 1.5, 2j):
            for operation in (
                lambda a, b: b - a,
                lambda a, b: a.add(a, alpha=b),
                lambda a, b: torch.sub(a, b),
                lambda a, b: a.clone().sub_(b),
                lambda a, b: a.clone().mul_(b),
            ):
                try:
                    told.append(operation(tensor, number))
                except Exception as error:
                    told.append((type(error), str(error)))
    return told


def comprehension_over_the_name_of_a_cell(x, n, items):
    def inner(a, b=2):
        if Hooked.__name__ and print(n) is None:
            pass
        made = [a * b for a in [3, 1, 5].copy() for b in range(4)]

        def reader():
            return a

        return made, reader() + b

    return list(map(inner, items, items)), x * n


PROGRAMS = (
    comprehension_over_the_name_of_a_cell,
    types_that_operators_refuse,
    tuples_of_other_lengths_compare_their_items,
    attributes_stored_and_deleted,
    global_stored_and_deleted,
    comprehension_after_a_handler,
    comprehensions_of_one_variable,
    comprehension_variable_bound_before,
    cell_that_no_turn_of_a_loop_bound,
    cell_deleted_by_an_inner_function,
    cell_arguments_after_a_handler,
    cell_arguments_read_after_two_breaks,
    slice_by_no_integer,
    slice_by_a_string,
    slice_of_step_zero,
    assign_to_a_slice_of_step_zero,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python_runs_it(program: Callable[..., Any]) -> None:
    calls = [(X.clone(), n, [1, 2]) for n in (2, 2, 1)]
    assert_like_eager(dynamo.optimize("eager"), program, calls)
