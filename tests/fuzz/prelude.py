# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, attr-defined"
"""What random programs may use: classes, context managers and decorators of all the usual kinds."""

import contextlib
import dataclasses
import enum
import functools
from typing import Any, NamedTuple

import torch


class Pair(NamedTuple):
    first: Any
    second: Any


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = 2
    __match_args__ = ("x", "y")


class Base:
    shared = 3

    def __init__(self, value: Any, count: int = 0) -> None:
        self.value = value
        self.count = count

    def step(self, by: int = 1) -> int:
        self.count += by
        return self.count

    def scaled(self, other: Any) -> Any:
        return self.value * other + self.count

    @property
    def doubled(self) -> Any:
        return self.value + self.value

    @doubled.setter
    def doubled(self, value: Any) -> None:
        self.value = value / 2

    @classmethod
    def made(cls, value: Any) -> "Base":
        return cls(value, cls.shared)

    @staticmethod
    def plus(a: int, b: int = 4) -> int:
        return a + b

    def __len__(self) -> int:
        return self.count % 3

    def __call__(self, other: Any) -> Any:
        return other - self.value

    def __contains__(self, item: object) -> bool:
        return item == self.count

    def __getitem__(self, key: int) -> int:
        if key >= 3:
            raise IndexError(key)
        return self.count + key

    def __iadd__(self, other: int) -> "Base":
        self.count += other
        return self

    def __add__(self, other: int) -> int:
        return self.count + other

    def __lt__(self, other: "Base") -> bool:
        return self.count < other.count


class Derived(Base):
    shared = 5

    def step(self, by: int = 2) -> int:
        return super().step(by) * 2

    def __getattr__(self, name: str) -> Any:
        if name.startswith("made_up"):
            return len(name)
        raise AttributeError(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Base) and self.count == other.count

    def __hash__(self) -> int:
        return 7


class Slotted:
    __slots__ = ("count", "value")

    def __init__(self, value: Any, count: int = 0) -> None:
        self.value = value
        self.count = count


class Logged:
    """A context manager that says what happens to it, and swallows ``ValueError`` where asked."""

    def __init__(self, log: list[Any], name: str, swallow: bool = False) -> None:
        self.log = log
        self.name = name
        self.swallow = swallow

    def __enter__(self) -> "Logged":
        self.log.append("enter " + self.name)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        self.log.append(("exit " + self.name, None if kind is None else kind.__name__))
        return self.swallow and kind is not None and issubclass(kind, ValueError)


@contextlib.contextmanager
def logging(log: list[Any], name: str):
    log.append("begin " + name)
    try:
        yield name
    finally:
        log.append("end " + name)


def doubling(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return wrapper


def counting(function):
    def wrapper(*args):
        wrapper.calls += 1
        return function(*args)

    wrapper.calls = 0
    return wrapper


class Custom(Exception):
    def __init__(self, message: str, code: int = 3) -> None:
        super().__init__(message)
        self.code = code


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.5, -1.0, 2.0]))
        self.register_buffer("seen", torch.zeros(3))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.training:
            self.seen += x.detach()
        return x * self.weight + self.calls
