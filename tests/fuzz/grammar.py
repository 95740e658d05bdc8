"""A whole program: helpers, a function `program`, and what it is called with."""

import random
from typing import Any, Final

import torch

import tests.fuzz.bodies  # noqa: F401 – fills the registry of statements
from tests.fuzz.prelude import Base, Derived, Pair, Slotted
from tests.fuzz.writer import BOOL, INT, INTS, OBJECT, PAIR, STR, TABLE, TENSOR, TENSORS, Writer

_HEADER: Final = """\
import collections
import contextlib
import copy
import functools
import itertools
import operator

import torch

import dynamo.eval as dynamo
from tests.fuzz.prelude import *
from tests.fuzz.prelude import logging

LOG = []
STATE = {"count": 0}
COUNT = 4
NET = Net()


def helper_int_one(a):
    return a + 1
"""

#: name and parameters of each helper, the kinds of its parameters, and what it gives
_HELPERS: Final = (
    ("helper_int", "a, b=2", {"a": INT, "b": INT}, INT, False),
    ("helper_tensor", "x, k", {"x": TENSOR, "k": INT}, TENSOR, False),
    ("helper_str", "s, k", {"s": STR, "k": INT}, STR, False),
    ("helper_effects", "items, log", {"items": INTS}, INT, False),
    ("helper_generator", "k, items", {"k": INT, "items": INTS}, INT, True),
    ("helper_tensors", "parts", {"parts": TENSORS}, TENSOR, True),
)
_PARAMETERS: Final = {
    "x": TENSOR,
    "n": INT,
    "flag": BOOL,
    "items": INTS,
    "parts": TENSORS,
    "table": TABLE,
    "box": OBJECT,
    "pair": PAIR,
}
_NAMES: Final = {INT: "int", TENSOR: "tensor", STR: "str"}


def program(seed: int) -> str:
    """The source of the random program of that number."""
    writer = Writer(random.Random(seed))
    writer.lines.append(_HEADER)
    for name, parameters, kinds, result, yields in _HELPERS:
        writer.line("")
        with writer.function(f"def {name}({parameters}):", kinds, result):
            writer.functions += 1
            writer.forbidden = "helper_"
            writer.budget = writer.random.randint(1, 4)
            writer.yields = result if yields else None
            writer.body(3)
            writer.line(writer.fill(f"{'yield' if yields else 'return'} {{{_NAMES[result]}}}", 1))
            writer.functions -= 1
    writer.forbidden = "\0"
    writer.line("")
    with writer.function(f"def program({', '.join(_PARAMETERS)}):", _PARAMETERS, PAIR):
        writer.functions = 0
        writer.line("global COUNT")
        writer.bind("COUNT", INT)
        writer.budget = writer.random.choice((6, 10, 16, 25))
        for _ in range(writer.random.randint(2, 7)):
            writer.nesting = 0
            if writer.chance(0.4):
                writer.body(3)
                continue
            with writer.block("try:"):
                writer.body(3)
            with writer.block("except Exception as error:"):
                writer.line("LOG.append(type(error).__name__)")
        seen = [name for name in writer.scope if writer.chance(0.6)]
        writer.line(f"return {', '.join([*seen, writer.fill('{pair}, {tensor}', 1)])}")
    return "\n".join(writer.lines) + "\n"


def calls(seed: int) -> list[tuple[Any, ...]]:
    """What the program of that number is called with, call by call; some arguments share objects."""
    source = random.Random(seed + 1)
    torch.manual_seed(seed)
    made: list[tuple[Any, ...]] = []
    for _ in range(source.randint(2, 5)):
        if made and source.random() < 0.3:
            made.append(source.choice(made))
            continue
        x = torch.randn(3).round(decimals=2)
        if source.random() < 0.2:
            x.requires_grad_()
        parts = [torch.randn(3).round(decimals=2), torch.ones(3) * source.randint(-2, 2)]
        if source.random() < 0.2:
            parts.append(x)
        items = [source.randint(-2, 4) for _ in range(source.randint(0, 4))]
        table = {
            key: source.randint(-2, 4)
            for key in source.sample(("a", "bc", "x y", "Ä", ""), source.randint(0, 3))
        }
        box = source.choice((Base, Derived, Slotted))(source.choice((x, parts[0])), source.randint(-1, 4))
        pair = Pair(source.choice((x, 1, None)), source.choice((items, 2)))
        n: Any = source.choice((0, 1, 2, 3, -1, source.randint(5, 20), source.choice((True, 2.5, None))))
        made.append((x, n, source.random() < 0.5, items, parts, table, box, pair))
    return made
