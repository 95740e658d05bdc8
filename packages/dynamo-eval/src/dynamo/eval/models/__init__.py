"""How known callables behave when captured code calls them; importing this package fills the registry."""

from dynamo.eval.models import builtin_calls as _builtin_calls
from dynamo.eval.models import containers as _containers
from dynamo.eval.models import copying as _copying
from dynamo.eval.models import functools_calls as _functools_calls
from dynamo.eval.models import inspection as _inspection
from dynamo.eval.models import instances as _instances
from dynamo.eval.models import iteration as _iteration
from dynamo.eval.models import itertools_calls as _itertools_calls
from dynamo.eval.models import landmarks as _landmarks
from dynamo.eval.models import pure as _pure
from dynamo.eval.models import torch_calls as _torch_calls

__all__ = [
    "_builtin_calls",
    "_containers",
    "_copying",
    "_functools_calls",
    "_inspection",
    "_instances",
    "_iteration",
    "_itertools_calls",
    "_landmarks",
    "_pure",
    "_torch_calls",
]
