"""How each variable comes back as a Python value: bytecode, by kind of variable."""

from dynamo.eval.rebuild import kinds as _kinds
from dynamo.eval.rebuild.emitter import Emitter as Emitter
from dynamo.eval.rebuild.emitter import Unrebuildable as Unrebuildable
from dynamo.eval.rebuild.replay import replay_effects as replay_effects

__all__ = ["Emitter", "Unrebuildable", "_kinds", "replay_effects"]
