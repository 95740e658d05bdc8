"""What `graph_break` and `is_compiling` do in captured code."""

from dynamo.eval.errors import GraphBreak
from dynamo.eval.landmarks import graph_break, is_compiling
from dynamo.eval.models.builtin_calls import Args, Kwargs
from dynamo.eval.variables.base import Translator, VariableTracker
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.constant import ConstantVariable


@models(is_compiling)
def call_is_compiling(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    return ConstantVariable(True)


@models(graph_break)
def call_graph_break(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    raise GraphBreak("graph_break()", "asked for by the user")
