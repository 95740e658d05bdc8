"""How known callables behave when captured code calls them; importing this package fills the registry."""

from dynamo.eval.models import builtin_calls as _builtin_calls
from dynamo.eval.models import containers as _containers
from dynamo.eval.models import instances as _instances
from dynamo.eval.models import iteration as _iteration
from dynamo.eval.models import pure as _pure
from dynamo.eval.models import torch_calls as _torch_calls

__all__ = ["_builtin_calls", "_containers", "_instances", "_iteration", "_pure", "_torch_calls"]
