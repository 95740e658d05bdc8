# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, no-any-return, var-annotated, attr-defined, arg-type, operator, type-arg, import-untyped"
"""Kinds of values, each captured whole and like eager: containers, classes, library objects."""

import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import operator
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle.whole import assert_whole

Cases = list[tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]]
CASES: Cases = []


def whole(*calls):
    def register(function):
        CASES.append((function, calls))
        return function

    return register


def T(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) * 0.5 + 0.25


x = T(3, 4)


@whole((x,))
def f_partial(x):
    p = functools.partial(torch.add, alpha=2)
    return p(x, x)


GP = functools.partial(lambda a, b, c=1: a * b + c, 2, c=3)


@whole((x,))
def f_gpartial(x):
    return GP(x)


@functools.lru_cache(None)
def cached(n):
    return n * 2


@whole((x,))
def f_lru(x):
    return x * cached(3)


@whole((x,))
def f_deque(x):
    d = deque([1, 2, 3], maxlen=3)
    d.append(x)
    d.appendleft(4)
    d.rotate(1)
    return d[0] * 1, list(d), x + 1


@whole((deque([1, 2]), x))
def f_deque_in(d, x):
    d.append(x * 2)
    d.popleft()
    return x + d[0]


@whole((x,))
def f_ddict(x):
    d = defaultdict(list)
    d["a"].append(x)
    d["b"].append(x * 2)
    return d


@whole((OrderedDict(a=1, b=2), x))
def f_odict(d, x):
    d.move_to_end("a")
    d["c"] = x + 1
    k, v = d.popitem(last=False)
    return k, v, d


@whole((x,))
def f_itertools(x):
    out = []
    for a, b in itertools.product([1, 2], [3, 4]):
        out.append(x * a + b)
    for a in itertools.chain([1], [2]):
        out.append(x + a)
    for a in itertools.islice(itertools.count(5), 2):
        out.append(x + a)
    return (
        out,
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.combinations("abc", 2)),
        list(itertools.permutations([1, 2])),
    )


@whole((x,))
def f_itertools2(x):
    a = (
        list(itertools.zip_longest([1, 2], [3])),
        list(itertools.repeat(1, 2)),
        list(itertools.starmap(operator.add, [(1, 2)])),
    )
    b = [(k, list(g)) for k, g in itertools.groupby([1, 1, 2])]
    c = (
        list(itertools.takewhile(lambda v: v < 3, [1, 2, 3])),
        list(itertools.dropwhile(lambda v: v < 3, [1, 2, 3])),
        list(itertools.pairwise([1, 2, 3])),
        list(itertools.compress("abc", [1, 0, 1])),
        list(itertools.filterfalse(lambda v: v > 1, [1, 2])),
    )
    t1, t2 = itertools.tee([1, 2])
    return x + 1, a, b, c, list(t1), list(t2), list(itertools.chain.from_iterable([[1], [2]]))


@whole((x,))
def f_zip(x):
    return (
        [a * x + b for a, b in zip([1, 2], [3, 4], strict=True)],
        list(map(lambda a, b: a + b, [1], [2])),
        list(enumerate("ab", 1)),
        list(reversed([1, 2])),
        sorted([3, 1, 2], key=lambda v: -v),
        min([3, 1], key=lambda v: -v),
        max(1, 2),
        max([], default=3),
    )


@dataclasses.dataclass
class DC:
    a: object
    b: int = 2
    c: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class DF:
    a: int
    b: int = 2


@dataclasses.dataclass(slots=True)
class DS:
    a: object
    b: int = 2


@dataclasses.dataclass(frozen=True, slots=True)
class DFS:
    a: object
    b: int = 2


@whole((x,))
def f_dc(x):
    d = DC(x + 1)
    d.c.append(3)
    d.b = 5
    return d.a * d.b, d


@whole((x,))
def f_dc_eq(x):
    return x + 1, DF(1) == DF(1), DF(1) != DF(2), hash(DF(1)) == hash(DF(1))


@whole((x,))
def f_dc_frozen(x):
    d = DF(1)
    e = dataclasses.replace(d, b=7)
    return x * e.b, e


@whole((x,))
def f_dc_slots(x):
    d = DS(x)
    d.b += 1
    return d.a * d.b, d.b


@whole((x,))
def f_dc_fslots(x):
    d = DFS(x)
    return d.a * d.b


@whole((DS(1), x))
def f_dc_slots_in(d, x):
    d.a = x + 1
    return x * d.b


class Col(enum.Enum):
    R = 1
    G = 2

    def twice(self):
        return self.value * 2


class IE(enum.IntEnum):
    A = 1
    B = 2


class FL(enum.Flag):
    A = 1
    B = 2


@whole((x, Col.R))
def f_enum(x, c):
    if c is Col.R:
        x = x + 1
    if c == Col.G:
        x = x * 3
    return x * c.value * c.twice(), c.name, Col["R"], Col(2), [m.name for m in Col], len(Col)


@whole((x, IE.A))
def f_ienum(x, c):
    return x * c + IE.B, c < IE.B, FL.A | FL.B


class Desc:
    def __get__(self, obj, kind=None):
        return 3 if obj is None else obj._v * 2

    def __set__(self, obj, v):
        obj._v = v


class NDesc:
    def __get__(self, obj, kind):
        return obj._v + 1


class HasDesc:
    d = Desc()
    n = NDesc()

    def __init__(self, v):
        self.d = v


@whole((x,))
def f_desc(x):
    h = HasDesc(4)
    h.d = 5
    return x * h.d, h.n, HasDesc.d


class Meta(type):
    def __call__(cls, *a):
        o = super().__call__(*a)
        o.tag = 1
        return o

    @property
    def mp(cls):
        return 7

    def __len__(cls):
        return 3

    def __getitem__(cls, k):
        return k


class WithMeta(metaclass=Meta):
    def __init__(self, v):
        self.v = v


@whole((x,))
def f_meta(x):
    o = WithMeta(3)
    return x * o.v + o.tag + WithMeta.mp, len(WithMeta), WithMeta[3]


class GA:
    def __init__(self):
        self.store = {"q": 3}

    def __getattr__(self, name):
        if name in self.__dict__.get("store", {}):
            return self.store[name]
        raise AttributeError(name)


@whole((GA(), x))
def f_getattr(g, x):
    return x * g.q, getattr(g, "zz", 4), hasattr(g, "yy")


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@whole((x,))
def f_slots(x):
    s = Slots(x)
    s.b = 2
    return s.a * s.b, hasattr(s, "b")


class Cont:
    def __init__(self):
        self.d = {}

    def __getitem__(self, k):
        return self.d[k]

    def __setitem__(self, k, v):
        self.d[k] = v

    def __delitem__(self, k):
        del self.d[k]

    def __len__(self):
        return len(self.d)

    def __contains__(self, k):
        return k in self.d

    def __iter__(self):
        return iter(self.d)

    def __bool__(self):
        return True


@whole((x,), (Cont(),))
def f_cont(x):
    c = Cont()
    c["a"] = torch.ones(2)
    c["b"] = 2
    del c["b"]
    return c["a"] + 1, len(c), "a" in c, list(c), bool(c)


class Key:
    def __init__(self, v):
        self.v = v

    def __hash__(self):
        return hash(self.v)

    def __eq__(self, o):
        return isinstance(o, Key) and self.v == o.v


@whole((x,))
def f_key(x):
    d = {Key(1): x, Key(2): x + 1}
    d[Key(1)] = x * 5
    return d[Key(2)], len(d), Key(1) in d


class Obj:
    pass


@whole((x,))
def f_objkey(x):
    a, b = Obj(), Obj()
    d = {a: x, b: x + 1}
    s = {a}
    return d[b] * 2, a in s, b in s


@whole((x,))
def f_modkey(x):
    d = {torch.relu: 1, "a": 2, Obj: 3, (1, "a"): 4, torch.float32: 5}
    return x * d[torch.relu] * d[Obj] * d[(1, "a")] * d[torch.float32]


@whole((x,))
def f_set(x):
    s = {1, 2, 3}
    t = {2, 5}
    s |= {9}
    return (
        x + 1,
        s | t,
        s & t,
        s - t,
        s ^ t,
        s.union(t),
        s.issubset(t),
        s <= t,
        s == {1},
        s.isdisjoint(t),
        s.intersection(t),
        s.difference(t),
        s.copy(),
        len(s),
        frozenset(s),
    )


@whole((x,))
def f_setiter(x):
    s = {1, 2, 3}
    for i in sorted(s):
        x = x + i
    t = 0
    for i in s:
        t += i
    return x * t, sum(s), max(s)


@whole((x,))
def f_math(x):
    return (
        x * math.sqrt(2) + math.pi,
        math.floor(2.5),
        math.prod([1, 2, 3]),
        math.isclose(1, 1),
        operator.itemgetter(1)([1, 2]),
        operator.attrgetter("shape")(x),
        operator.methodcaller("sum")(x),
        operator.mul(2, 3),
    )


@whole((x,))
def f_setgrad(x):
    with torch.set_grad_enabled(False):
        y = x * 2
    return y


@whole((x,))
def f_no_grad_deco(x):
    return ng(x)


@torch.no_grad()
def ng(x):
    return x * 2


@whole((x,))
def f_defdtype(x):
    d = torch.get_default_dtype()
    return x.to(d)


@contextlib.contextmanager
def cm(v):
    yield v + 1


class CM:
    def __enter__(self):
        return 3

    def __exit__(self, *a):
        return False


@whole((x,))
def f_ucm(x):
    with CM() as n:
        x = x * n
    return x


@whole((x,))
def f_nullctx(x):
    with contextlib.nullcontext(3) as n:
        x = x * n
    return x


NT = namedtuple("NT", "a b")


@whole((x,))
def f_nt(x):
    n = NT(x, 2)
    n2 = n._replace(b=3)
    a, b = n2
    return a * b, n2, n2._asdict(), NT._fields, NT._make([1, 2])


class MyList(list):
    def double(self):
        return [v * 2 for v in self]


class MyDict(dict):
    def get2(self, k):
        return self[k] * 2


@whole((x,))
def f_sublist(x):
    items = MyList([1, 2])
    items.append(3)
    d = MyDict(a=x)
    d["b"] = 3
    return items.double(), d.get2("a"), len(items), items


@whole((MyList([1, 2]), MyDict(a=1), x))
def f_sublist_in(items, d, x):
    items.append(4)
    d["c"] = x + 1
    return items.double(), x * d.get2("a"), items, d


@whole((x,))
def f_types(x):
    return (
        x + 1,
        type(x) is torch.Tensor,
        isinstance(x, torch.Tensor),
        issubclass(bool, int),
        isinstance(3, (int, str)),
        int,
        type([]),
        isinstance([], collections.abc.Sequence),
        callable(len),
        isinstance(3, int | str),
    )


@whole((x,))
def f_getattr_d(x):
    return x + getattr(x, "nope", 1), hasattr(x, "shape"), x.ndim, torch.relu(x)


@whole((x,))
def f_intmeth(x):
    return (
        x * (5).bit_length(),
        (2.5).is_integer(),
        int("3"),
        float("2"),
        divmod(7, 2),
        round(2.567, 1),
        abs(-3),
        pow(2, 3),
        bin(3),
        chr(65),
        ord("a"),
        hash(3),
        str(3),
        repr("a"),
    )


@whole((x,))
def f_star(x):
    _, *b = [1, 2, 3]

    def g(p, /, q, *, r=1, **k):
        return p + q + r + sum(k.values())

    return x * g(1, 2, r=3, z=4), b, [*b, *b], {**{"a": 1}}, (lambda *a: a)(*b)


class It:
    def __init__(self, n):
        self.n = n
        self.i = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.i >= self.n:
            raise StopIteration
        self.i += 1
        return self.i


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_is_one_graph_and_like_eager(case):
    function, calls = case
    assert_whole(function, *calls)
