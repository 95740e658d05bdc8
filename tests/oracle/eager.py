"""Eager Python as the oracle: run a function plainly and captured on equal inputs, and compare all that can be seen.

Compared are the result, what became of the arguments, which objects are the same object (within result and
arguments), the exception, and what was printed, over several calls, so that cached code is compared too.
"""

from __future__ import annotations

import contextlib
import copy
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch


def outcome(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[str, Any, tuple[Any, ...], str]:
    """What a call did: how it ended, with what value, the arguments afterwards, and the printed text."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            return "returned", function(*arguments), arguments, printed.getvalue()
        except Exception as error:
            return "raised", error, arguments, printed.getvalue()


def without_addresses(text: str) -> str:
    """Text in which each address, as the default ``repr`` of an object shows it, is the same."""
    return re.sub(r"\b0x[0-9a-f]{6,}\b", "0x", text)


def assert_same(ours: Any, theirs: Any, pairs: dict[int, Any] | None = None, place: str = "value") -> None:
    """Fail where two object graphs differ in type, value or sharing.

    `pairs` maps objects of ours that were met to their counterparts, so that aliasing must agree both ways.
    """
    pairs = {} if pairs is None else pairs
    # classes of the program itself are made once for each run of it
    assert type(ours).__qualname__ == type(theirs).__qualname__, (
        f"{place}: {type(ours)} is not {type(theirs)}"
    )
    shared = isinstance(ours, torch.Tensor | list | dict | set) or hasattr(ours, "__dict__")
    shared = shared or hasattr(type(ours), "__slots__") and not isinstance(ours, int | str | tuple)
    if shared and not isinstance(ours, type) and not callable(ours):
        known = pairs.get(id(ours))
        if known is not None:
            assert known[1] is theirs, f"{place}: shared with another object than in eager"
            return
        assert id(theirs) not in pairs.get(-1, (None, {}))[1], (
            f"{place}: eager shares this object, capture does not"
        )
        pairs[id(ours)] = (ours, theirs)
        pairs.setdefault(-1, (None, {}))[1][id(theirs)] = theirs
    _assert_same_content(ours, theirs, pairs, place)


def _attributes(value: object) -> dict[str, Any]:
    """What an object holds in its ``__dict__`` and in its slots."""
    slots = [slot for cls in type(value).__mro__ for slot in vars(cls).get("__slots__", ())]
    return getattr(value, "__dict__", {}) | {
        slot: getattr(value, slot) for slot in slots if hasattr(value, slot)
    }


def _assert_same_content(ours: Any, theirs: Any, pairs: dict[int, Any], place: str) -> None:
    if isinstance(ours, torch.Tensor):
        assert ours.shape == theirs.shape, f"{place}: {ours.shape} is not {theirs.shape}"
        assert ours.dtype == theirs.dtype, f"{place}: {ours.dtype} is not {theirs.dtype}"
        assert ours.stride() == theirs.stride(), f"{place}: strides {ours.stride()} are not {theirs.stride()}"
        assert ours.requires_grad == theirs.requires_grad, f"{place}: requires_grad differs"
        assert torch.equal(torch.nan_to_num(ours.detach()), torch.nan_to_num(theirs.detach())), (
            f"{place}: values differ"
        )
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs), f"{place}: length {len(ours)} is not {len(theirs)}"
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(one, other, pairs, f"{place}[{index}]")
    elif isinstance(ours, dict):
        assert list(ours) == list(theirs), f"{place}: keys {list(ours)} are not {list(theirs)}"
        for key in ours:
            assert_same(ours[key], theirs[key], pairs, f"{place}[{key!r}]")
    elif isinstance(ours, BaseException):
        assert without_addresses(str(ours)) == without_addresses(str(theirs)), (
            f"{place}: {ours} is not {theirs}"
        )
        assert_same(ours.args, theirs.args, pairs, f"{place}.args")
    elif isinstance(ours, int | float | complex | str | bytes | bool | None):
        assert without_addresses(repr(ours)) == without_addresses(repr(theirs)), (
            f"{place}: {ours!r} is not {theirs!r}"
        )
    elif isinstance(ours, type) or callable(ours):
        return
    elif hasattr(ours, "__dict__") or hasattr(ours, "__slots__"):
        assert_same(_attributes(ours), _attributes(theirs), pairs, f"vars({place})")
    else:
        assert repr(ours) == repr(theirs), f"{place}: {ours!r} is not {theirs!r}"


def assert_like_eager(
    capture: Callable[[Callable[..., Any]], Callable[..., Any]],
    function: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    *,
    before_each: Callable[[], None] = lambda: None,
) -> None:
    """Each call of ``capture(function)`` must look as the same call of `function`.

    `calls` are made in order, each on deep copies that keep the sharing inside one call's arguments.
    """
    captured = capture(function)
    for number, arguments in enumerate(calls):
        ours_in, theirs_in = copy.deepcopy(arguments), copy.deepcopy(arguments)
        before_each()
        torch.manual_seed(number)
        theirs = outcome(function, theirs_in)
        before_each()
        torch.manual_seed(number)
        ours = outcome(captured, ours_in)
        place = f"call {number} of {function.__name__}"
        assert ours[0] == theirs[0], f"{place}: {ours[:2]} is not {theirs[:2]}"
        assert ours[3] == theirs[3], f"{place}: printed {ours[3]!r}, eager printed {theirs[3]!r}"
        assert_same(ours[1:3], theirs[1:3], place=place)
