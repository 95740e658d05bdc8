# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return, union-attr, var-annotated, misc, arg-type, index"
"""Generators made and run inside captured code, against plain Python.

The programs are untyped as much user code is, so mypy's rules on definitions are off in this file.
PYTEST_DONT_REWRITE: an `assert` here is a statement that may be captured.
"""

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import dynamo.eval as dynamo
from dynamo.eval.backends.testing import CompileCounter
from tests.oracle.eager import assert_like_eager

X = torch.tensor([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


def count(x, log, stop=3):
    for i in range(stop):
        log.append(("make", i))
        yield x + i
    log.append("end")
    return "done"


def loop(x, log):
    total = x
    for item in count(x, log):
        log.append("use")
        total = total * 2 + item
    return total


def consumers(x, log):
    made = [
        list(count(x, log)),
        tuple(count(x, log, 2)),
        sum(count(x, log)),
        [*count(x, log, 1)],
        dict(zip(["a", "b"], count(x, log), strict=False)),
        list(map(torch.sin, count(x, log, 2))),
        list(enumerate(count(x, log, 2))),
    ]
    a, b = count(x, log, 2)
    first, *rest = count(x, log)
    return made, a - b, first, rest


def expressions(x):
    return (
        sum(x * i for i in range(4)),
        any(i > 2 for i in range(5)),
        all(i < 2 for i in range(5)),
        [*(x + i for i in range(3) if i != 1)],
    )


def lazy_any(x, log):
    def values():
        for i in range(5):
            log.append(i)
            yield i > 1

    return x + 1, any(values())


def steps(x, log):
    made = count(x, log)
    first = next(made)
    log.append("between")
    second = next(made)
    third = next(made)
    try:
        next(made)
    except StopIteration as stop:
        log.append(stop.value)
    return first + second + third, next(made, "default")


def echo(log):
    got = None
    while True:
        got = yield got
        log.append(got)
        if got == "stop":
            return 7


def sends(x, log):
    made = echo(log)
    next(made)
    a = made.send(3)
    b = made.send(x)
    try:
        made.send("stop")
    except StopIteration as stop:
        return a + b, stop.value


def guarded(log):
    try:
        yield 1
        yield 2
    except ValueError as error:
        log.append(str(error))
        yield 3
    finally:
        log.append("finally")


def throws(x, log):
    made = guarded(log)
    seen = [next(made)]
    seen.append(made.throw(ValueError("thrown")))
    try:
        made.throw(KeyError("out"))
    except KeyError:
        log.append("came out")
    return x + sum(seen), list(made)


def closes(x, log):
    made = guarded(log)
    next(made)
    made.close()
    made.close()
    return x + 1, next(made, None)


def outer(x, log):
    got = yield from count(x, log, 2)
    log.append(got)
    yield from [x * 10, x * 20]
    return (yield from (i for i in range(2)))


def delegated(x, log):
    return list(outer(x, log))


def raises_inside(x, log):
    def bad():
        yield x
        raise KeyError("inside")

    try:
        for item in bad():
            log.append("got")
            x = x + item
    except KeyError as error:
        log.append(str(error))
    return x


def stop_inside(x, log):
    def bad():
        yield x
        raise StopIteration("no")

    try:
        list(bad())
    except RuntimeError as error:
        log.append(str(error))
        log.append(type(error.__cause__).__name__)
    return x + 1


@contextlib.contextmanager
def scaled(x, log):
    log.append("enter")
    try:
        yield x * 2
    except ValueError as error:
        log.append(f"swallowed {error}")
    finally:
        log.append("exit")


def context_manager(x, log):
    with scaled(x, log) as y:
        y = y + 1
    with scaled(y, log) as z:
        raise ValueError("gone")
    return z


def manager_passes_on(x, log):
    try:
        with scaled(x, log) as y:
            raise KeyError("on")
    except KeyError:
        log.append("seen")
    return y


def library_managers(x, log):
    with contextlib.suppress(KeyError):
        log.append("before")
        x = x + 1
        {}["missing"]
        log.append("never")
    with contextlib.nullcontext(x * 2) as y:
        x = x + y
    return x


def recursive(tree):
    for item in tree:
        if isinstance(item, list):
            yield from recursive(item)
        else:
            yield item


def walks(x, log):
    total = x
    for number in recursive([1, [2, [3, 4]], 5]):
        log.append(number)
        total = total * number
    return total


def interleaved(x, log):
    left, right = count(x, log, 2), count(x * 10, log, 2)
    return [(a, b) for a, b in zip(left, right, strict=False)]


def closure_seen_late(x, log):
    factor = 2
    made = (x * factor for _ in range(2))
    factor = 5
    log.append("late")
    return list(made)


WHOLE: list[Any] = [
    loop, consumers, lazy_any, steps, sends, throws, closes, delegated, raises_inside, stop_inside, context_manager,
    manager_passes_on, library_managers, walks, interleaved, closure_seen_late,
]  # fmt: skip


@pytest.mark.parametrize("function", WHOLE, ids=lambda value: value.__name__)
def test_a_generator_used_up_inside_leaves_one_whole_graph(function: Any) -> None:
    counter = CompileCounter()
    assert_like_eager(dynamo.optimize(counter, nopython=True), function, [(X, []), (X * 2, [])])
    assert counter.frame_count == 1


def test_generator_expressions_are_captured_whole() -> None:
    counter = CompileCounter()
    assert_like_eager(dynamo.optimize(counter, nopython=True), expressions, [(X,), (X * 2,)])
    assert counter.frame_count == 1


def escapes(x, log):
    x = x + 1
    made = count(x, log)
    next(made)
    return x * 2, list(itertools.islice(made, 1)), len(list(made))


def returned(x, log):
    x = x + 1
    return count(x, log), x * 2


def left_open(x, log):
    x = x * 2
    made = guarded(log)
    next(made)
    log.append("dropped")
    del made
    log.append("after")
    return x + 1


def breaks_inside(x, log):
    def printing():
        for i in range(3):
            print("item", i)
            yield x * i

    x = x + 1
    out = []
    for item in printing():
        out.append(item + 1)
    return out


def break_between(x, log):
    made = count(x + 1, log)
    first = next(made) * 2
    print("between")
    return first, [item * 3 for item in made]


def yields_while_handling(x, log):
    def handling():
        try:
            raise KeyError("k")
        except KeyError:
            yield 1
            log.append("resumed")
            yield 2

    x = x + 1
    return [x * i for i in handling()]


def send_too_early(x, log):
    x = x + 1
    try:
        echo(log).send(1)
    except TypeError as error:
        log.append(str(error))
    return x


OTHERS: list[Any] = [
    escapes, left_open, breaks_inside, break_between, yields_while_handling, send_too_early,
]  # fmt: skip


@pytest.mark.parametrize("function", OTHERS, ids=lambda value: value.__name__)
def test_a_generator_that_capture_cannot_run_is_run_by_python(function: Any) -> None:
    assert_like_eager(dynamo.optimize("eager"), function, [(X, []), (X * 2, ["given"])])


def test_a_returned_generator_is_the_real_one() -> None:
    log: list[Any] = []
    made, y = dynamo.optimize("eager")(returned)(X, log)
    assert torch.equal(y, (X + 1) * 2)
    assert log == []
    assert [each.tolist() for each in made] == [(X + 1 + i).tolist() for i in range(3)]
    assert log[-1] == "end"
