# mypy: disable-error-code="no-untyped-def, no-untyped-call, no-any-return, union-attr, arg-type, misc, index, attr-defined"
"""Exceptions raised and handled inside captured code, against plain Python.

The programs are untyped as much user code is, so mypy's rules on definitions are off in this file.
PYTEST_DONT_REWRITE: an `assert` here is the statement that is captured.
"""

import traceback
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import dynamo.eval as dynamo
from dynamo.eval.backends.testing import CompileCounter
from tests.oracle.eager import assert_like_eager


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


class TooBig(ValueError):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code

    def doubled(self):
        return self.code * 2


class Plain(Exception):
    pass


class Box:
    def __init__(self):
        self.log = []

    @property
    def broken(self):
        raise AttributeError("no such luck")


class Gate:
    def __init__(self, suppresses):
        self.suppresses = suppresses
        self.log = []

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, value, trace):
        self.log.append("out" if kind is None else f"{kind.__name__}: {value}")
        return self.suppresses


def checked(x, limit):
    if limit > 2:
        raise TooBig(limit, "too big")
    return x + limit


def callee_raises(x):
    try:
        y = checked(x, 5)
    except TooBig as error:
        y = x * error.code + error.doubled()
        text = str(error)
    else:
        y = y + 100
    finally:
        x = x + 1
    return y + x, text, f"{text}!"


def else_branch(x):
    try:
        y = checked(x, 1)
    except (TypeError, TooBig):
        y = x
    else:
        y = y + 100
    return y


def operations_raise(x):
    seen = []
    try:
        {"a": 1}["b"]
    except KeyError as error:
        seen.append(error.args)
    try:
        [1, 2][7]
    except LookupError as error:
        seen.append(str(error))
    try:
        1 // 0  # noqa: B018
    except ZeroDivisionError as error:
        seen.append(str(error))
    try:
        Box().missing  # noqa: B018
    except AttributeError as error:
        seen.append(str(error))
    try:
        int("x")
    except ValueError as error:
        seen.append(str(error))
    try:
        a, b = [1, 2, 3]  # noqa: F841
    except ValueError as error:
        seen.append(str(error))
    try:
        [].pop()
    except IndexError as error:
        seen.append(str(error))
    try:
        del seen[99]
    except IndexError as error:
        seen.append(str(error))
    try:
        next(iter([]))
    except StopIteration:
        seen.append("stop")
    return x + len(seen), seen


def properties_raise(x):
    box = Box()
    return x + 1, getattr(box, "broken", "default"), hasattr(box, "broken"), hasattr(box, "log")


def chained(x):
    try:
        try:
            raise Plain("a")
        except Plain as error:
            raise KeyError("b") from error
        finally:
            x = x * 2
    except KeyError as error:
        cause, context = error.__cause__, error.__context__
        return x + 1, cause is context, type(cause).__name__, error.__suppress_context__


def implicit_context(x):
    try:
        try:
            raise Plain
        except Plain:
            [][1]
    except IndexError as error:
        return x + 1, type(error.__context__).__name__, error.__cause__


def bare_raise(x):
    try:
        try:
            raise Plain("once")
        except Plain:
            x = x + 1
            raise
    except Exception as error:
        return x, error.args


def finally_everywhere(x):
    log = []
    for i in range(5):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            x = x + i
        finally:
            log.append(i)
            x = x * 2
    return x, log


def finally_returns(x, log):
    try:
        return x + 1
    finally:
        log.append("done")


def with_blocks(x):
    gate = Gate(True)
    with gate as inner:
        x = x + 1
        raise ValueError("inside")
    with Gate(False) as other:
        x = x * 2
    return x, gate.log, inner is gate, other.log


def with_passes_on(x):
    gate = Gate(False)
    try:
        with gate:
            x = x + 1
            checked(x, 9)
    except TooBig:
        x = x - 1
    return x, gate.log


def asserts(x):
    try:
        assert x.shape[0] == 99, "bad shape"
    except AssertionError as error:
        return x + 1, str(error)


def nested_functions(x):
    def inner(value):
        try:
            return checked(value, 4)
        finally:
            log.append("left")

    log = []
    try:
        inner(x)
    except ValueError:
        log.append("caught")
    return x + len(log), log


def exception_made_not_raised(x):
    return x + 1, TooBig(3, "kept"), Plain("a", 1)


def handler_chosen_in_order(x, which):
    try:
        if which == 0:
            raise KeyError("k")
        if which == 1:
            raise IndexError("i")
        raise Plain
    except KeyError:
        return x + 1
    except (IndexError, Plain) as error:
        return x + 2, type(error) is Plain


X = torch.tensor([1.0, -2.0, 3.0])

WHOLE: list[Any] = [
    (callee_raises, (X,)),
    (else_branch, (X,)),
    (operations_raise, (X,)),
    (properties_raise, (X,)),
    (chained, (X,)),
    (implicit_context, (X,)),
    (bare_raise, (X,)),
    (finally_everywhere, (X,)),
    (finally_returns, (X, [])),
    (with_blocks, (X,)),
    (with_passes_on, (X,)),
    (asserts, (X,)),
    (nested_functions, (X,)),
    (exception_made_not_raised, (X,)),
    (handler_chosen_in_order, (X, 0)),
    (handler_chosen_in_order, (X, 1)),
    (handler_chosen_in_order, (X, 2)),
]


@pytest.mark.parametrize(("function", "arguments"), WHOLE, ids=lambda value: getattr(value, "__name__", None))
def test_a_caught_exception_leaves_one_whole_graph(function: Any, arguments: Any) -> None:
    counter = CompileCounter()
    assert_like_eager(dynamo.optimize(counter, nopython=True), function, [arguments, arguments])
    assert counter.frame_count == 1


def leaves(x, log):
    log.append("before")
    x = x + 1
    raise TooBig(3, "leave")


def leaves_from_callee(x, log):
    log.append("before")
    try:
        return checked(x + 1, 7)
    finally:
        log.append("after")


def leaves_while_handling(x, log):
    x = x + 1
    try:
        {}[1]
    except KeyError as error:
        log.append("handling")
        raise Plain("second") from error


def wrong_index_leaves(x, log):
    x = x + 1
    log.append(1)
    return [x][3]


def unbound_leaves(x, log):
    x = x + 1
    if len(log) > 5:
        value = 1
    return x + value


LEAVING = [leaves, leaves_from_callee, leaves_while_handling, wrong_index_leaves, unbound_leaves]


@pytest.mark.parametrize("function", LEAVING, ids=lambda value: value.__name__)
def test_an_exception_that_leaves_comes_after_the_effects(function: Any) -> None:
    assert_like_eager(dynamo.optimize("eager"), function, [(X, []), (X, ["given"])])


def lines(error: BaseException) -> list[str]:
    """The user's lines in a traceback, without the frames that only capture adds."""
    found = traceback.extract_tb(error.__traceback__)
    texts = [
        each.line or ""
        for each in found
        if each.filename == __file__ and "captured(" not in (each.line or "")
    ]
    return [text for place, text in enumerate(texts) if place == 0 or texts[place - 1] != text]


@pytest.mark.parametrize("function", LEAVING, ids=lambda value: value.__name__)
def test_a_traceback_names_the_lines_of_the_user(function: Any) -> None:
    def run(captured: Any) -> BaseException:
        try:
            captured(X, [])
        except Exception as error:
            return error
        raise AssertionError("nothing was raised")

    theirs = run(function)
    ours = run(dynamo.optimize("eager")(function))
    assert lines(ours)[-1] == lines(theirs)[-1]
    assert type(ours.__cause__) is type(theirs.__cause__)
    assert type(ours.__context__) is type(theirs.__context__)


def kept_exception(x):
    x = x + 1
    try:
        raise Plain("kept")
    except Plain as error:
        kept = error
    return x * 2, kept, kept.__traceback__ is not None


def printed_in_handler(x, log):
    log.append(1)
    x = x + 1
    try:
        log.pop()
        log.pop()
    except IndexError as error:
        print("caught", error)
        x = x * 3
    return x - 1


def groups(x):
    seen = []
    x = x + 1
    try:
        raise ExceptionGroup("all", [ValueError("v"), KeyError("k")])
    except* ValueError as group:
        seen.append(len(group.exceptions))
    except* KeyError:
        seen.append("key")
    return x * 2, seen


@pytest.mark.parametrize("function", [kept_exception, groups], ids=lambda value: value.__name__)
def test_what_capture_cannot_raise_is_raised_by_python(function: Any) -> None:
    assert_like_eager(dynamo.optimize("eager"), function, [(X,), (X,)])


def test_a_break_in_a_handler_raises_for_real() -> None:
    assert_like_eager(dynamo.optimize("eager"), printed_in_handler, [(X, []), (X, [])])


class Lazy:
    def __init__(self, log):
        self.log = log
        self.count = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.count += 1
        self.log.append(self.count)
        if self.count > 4:
            raise StopIteration
        return self.count


def partly_consumed(x, log):
    out = []
    try:
        a, b = Lazy(log)
    except ValueError as error:
        out.append(str(error))
    out.append(max(Lazy(log)))
    out.append(sum(Lazy(log)))
    first, *rest = Lazy(log)
    try:
        sum(map(str, Lazy(log)))
    except TypeError:
        out.append("no sum")
    return x + first, rest, out


def stops_through_map(x, log):
    def stop(value):
        log.append(value)
        if value == 3:
            raise StopIteration
        return value

    return x + 1, list(map(stop, [1, 2, 3, 4]))


@pytest.mark.parametrize("function", [partly_consumed, stops_through_map], ids=lambda value: value.__name__)
def test_iterators_are_consumed_as_far_as_python_does(function: Any) -> None:
    assert_like_eager(dynamo.optimize("eager"), function, [(X, []), (X, [])])
