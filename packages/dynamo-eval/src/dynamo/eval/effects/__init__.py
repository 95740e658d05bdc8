"""What the captured code did to the world outside the graph, in order."""

from dynamo.eval.effects.log import AttributeWrite as AttributeWrite
from dynamo.eval.effects.log import CellWrite as CellWrite
from dynamo.eval.effects.log import ContentChange as ContentChange
from dynamo.eval.effects.log import Effect as Effect
from dynamo.eval.effects.log import EffectLog as EffectLog
from dynamo.eval.effects.log import GlobalWrite as GlobalWrite
