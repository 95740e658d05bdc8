"""The state of a program that is being written: lines, scopes, and the registries of what may be written."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

#: kinds of values that a variable may hold
TENSOR: Final = "tensor"
INT: Final = "int"
BOOL: Final = "bool"
STR: Final = "str"
INTS: Final = "list of int"
TENSORS: Final = "list of tensor"
TABLE: Final = "dict of int"
OBJECT: Final = "object"
FUNCTION: Final = "function of int"
SET: Final = "set of int"
PAIR: Final = "pair"

KINDS: Final = (TENSOR, INT, BOOL, STR, INTS, TENSORS, TABLE, OBJECT, FUNCTION, SET, PAIR)
MAX_DEPTH: Final = 3

Expression = Callable[["Writer", int], str]
Statement = Callable[["Writer"], None]

EXPRESSIONS: Final[dict[str, list[tuple[int, Expression]]]] = {kind: [] for kind in KINDS}
STATEMENTS: Final[list[tuple[int, Statement]]] = []


def expression(kind: str, weight: int = 2) -> Callable[[Expression], Expression]:
    """Register a way to write a value of `kind`."""

    def register(function: Expression) -> Expression:
        EXPRESSIONS[kind].append((weight, function))
        return function

    return register


def template(kind: str, *texts: str, weight: int = 1) -> None:
    """Register texts with holes such as ``{int}``, each filled with a random expression of that kind."""
    for text in texts:
        EXPRESSIONS[kind].append((weight, _filled(text)))


def statement(weight: int = 2) -> Callable[[Statement], Statement]:
    """Register a way to write a statement."""

    def register(function: Statement) -> Statement:
        STATEMENTS.append((weight, function))
        return function

    return register


def statements(*texts: str, weight: int = 1) -> None:
    """Register statements of one line with holes."""
    for text in texts:
        STATEMENTS.append((weight, _line(text)))


def _filled(text: str) -> Expression:
    return lambda writer, depth: writer.fill(text, depth)


def _line(text: str) -> Statement:
    def write(writer: Writer) -> None:
        filled = writer.fill(text, 1)
        writer.line(filled if writer.forbidden not in filled else "pass")

    return write


#: names of holes and the kinds that fill them
HOLES: Final = {
    "tensor": TENSOR,
    "int": INT,
    "bool": BOOL,
    "str": STR,
    "ints": INTS,
    "tensors": TENSORS,
    "table": TABLE,
    "object": OBJECT,
    "function": FUNCTION,
    "set": SET,
    "pair": PAIR,
}


class _Holes(dict[str, str]):
    """A mapping for `str.format_map` that writes a new expression for each hole it is asked for."""

    def __init__(self, writer: Writer, depth: int) -> None:
        super().__init__()
        self.writer = writer
        self.depth = depth

    def __missing__(self, hole: str) -> str:
        writer = self.writer
        if hole == "new":
            return writer.fresh()
        if hole == "log":
            return "LOG"
        if hole.startswith("small"):
            return str(writer.random.randint(0, 4))
        if hole.startswith("var_"):
            return writer.variable(HOLES[hole[4:]]) or writer.value(HOLES[hole[4:]], MAX_DEPTH)
        return writer.value(HOLES[hole], self.depth)


class Writer:
    """Writes one function's body; nested functions share its lines and see its variables."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        self.lines: list[str] = []
        self.indent = 0
        self.scope: dict[str, str] = {}
        self.assignable: set[str] = set()
        self.names = 0
        self.loops = 0
        self.nesting = 0
        self.functions = 0
        self.yields: str | None = None
        self.returns = PAIR
        self.budget = 0
        self.forbidden = "\0"

    # -- text ------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Write one line at the present indentation."""
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """An indented block; variables that are new in it may be unbound after it, so they are seldom used there."""
        self.line(header)
        self.indent += 1
        before = dict(self.scope)
        yield
        self.indent -= 1
        if self.random.random() < 0.93:
            self.scope = {name: kind for name, kind in self.scope.items() if name in before}

    def fresh(self, prefix: str = "v") -> str:
        """A name that is not used yet."""
        self.names += 1
        return f"{prefix}{self.names}"

    def fill(self, text: str, depth: int) -> str:
        """`text` with its holes filled."""
        return text.format_map(_Holes(self, depth))

    # -- choices ---------------------------------------------------------------------------------------------

    def chance(self, likelihood: float) -> bool:
        """True with that likelihood."""
        return self.random.random() < likelihood

    def variable(self, kind: str) -> str | None:
        """A variable in scope that holds a value of `kind`."""
        names = [name for name, held in self.scope.items() if held == kind]
        return self.random.choice(names) if names else None

    def value(self, kind: str, depth: int = 0) -> str:
        """An expression of `kind`."""
        name = self.variable(kind)
        if name is not None and (depth >= MAX_DEPTH or self.chance(0.35)):
            return name
        choices = EXPRESSIONS[kind]
        if depth >= MAX_DEPTH:
            return _LEAVES[kind](self)
        weights = [weight for weight, _ in choices]
        text = self.random.choices([write for _, write in choices], weights)[0](self, depth + 1)
        return text if self.forbidden not in text else _LEAVES[kind](self)

    def target(self, kind: str) -> str:
        """A variable to assign a value of `kind` to: a new one, or one of this function."""
        known = self.variable(kind)
        return known if known in self.assignable and self.chance(0.4) else self.fresh()

    def bind(self, name: str, kind: str) -> None:
        """Note that `name`, a variable of this function, now holds a value of `kind`."""
        self.scope[name] = kind
        self.assignable.add(name)

    @contextmanager
    def function(self, header: str, parameters: dict[str, str], returns: str) -> Iterator[None]:
        """A nested function: it reads the variables around it, and assigns its own."""
        outer = self.scope, self.assignable, self.loops, self.returns, self.yields
        with self.block(header):
            self.scope, self.assignable = self.scope | parameters, set(parameters)
            self.loops, self.returns, self.yields = 0, returns, None
            self.functions += 1
            yield
            self.functions -= 1
        self.scope, self.assignable, self.loops, self.returns, self.yields = outer

    def body(self, most: int) -> None:
        """Write at least one statement, at most `most`, and no more than the budget allows."""
        self.nesting += 1
        if self.budget <= 0 or self.nesting > 5:
            self.line(self.fill("{log}.append({int})", 2))
        else:
            for _ in range(self.random.randint(1, most)):
                self.budget -= 1
                weights = [weight for weight, _ in STATEMENTS]
                self.random.choices([write for _, write in STATEMENTS], weights)[0](self)
        self.nesting -= 1


_LEAVES: Final[dict[str, Callable[[Writer], str]]] = {
    TENSOR: lambda writer: f"torch.full((3,), {writer.random.choice(('1.5', '-2.0', '0.25'))})",
    INT: lambda writer: str(writer.random.randint(-3, 6)),
    BOOL: lambda writer: writer.random.choice(("True", "False")),
    STR: lambda writer: repr(writer.random.choice(("a", "bc", "", "x y", "Ä"))),
    INTS: lambda writer: f"[{writer.random.randint(0, 3)}, {writer.random.randint(0, 3)}, 5]",
    TENSORS: lambda writer: "[torch.ones(3), torch.zeros(3)]",
    TABLE: lambda writer: "{'a': 1, 'bc': 2}",
    OBJECT: lambda writer: f"{writer.random.choice(('Base', 'Derived', 'Slotted'))}(torch.ones(3), 2)",
    FUNCTION: lambda writer: "(lambda k: k + 1)",
    SET: lambda writer: "{1, 2, 4}",
    PAIR: lambda writer: "Pair(1, 2)",
}
