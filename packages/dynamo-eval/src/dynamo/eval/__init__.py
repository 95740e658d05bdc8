"""Frame capture (PEP 523): bytecode to graphs, guards and new bytecode.

Names are loaded when they are first used, so that `dynamo.eval.bytecode` stays free of torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dynamo.eval._version import __version__ as __version__
from dynamo.eval.loading import loading

if TYPE_CHECKING:
    from dynamo.eval.api import OptimizeContext as OptimizeContext
    from dynamo.eval.api import allow_in_graph as allow_in_graph
    from dynamo.eval.api import assume_constant_result as assume_constant_result
    from dynamo.eval.api import compile as compile
    from dynamo.eval.api import disable as disable
    from dynamo.eval.api import explain as explain
    from dynamo.eval.api import optimize as optimize
    from dynamo.eval.api import reset as reset
    from dynamo.eval.api import skip as skip
    from dynamo.eval.backends import list_backends as list_backends
    from dynamo.eval.backends import lookup_backend as lookup_backend
    from dynamo.eval.backends import register_backend as register_backend
    from dynamo.eval.backends.testing import CompileCounter as CompileCounter
    from dynamo.eval.backends.testing import CompileCounterWithBackend as CompileCounterWithBackend
    from dynamo.eval.convert_frame import convert_frame as convert_frame
    from dynamo.eval.convert_frame import convert_frame_assert as convert_frame_assert
    from dynamo.eval.errors import BackendError as BackendError
    from dynamo.eval.errors import BreakReason as BreakReason
    from dynamo.eval.errors import CaptureError as CaptureError
    from dynamo.eval.errors import GraphBreak as GraphBreak
    from dynamo.eval.errors import InternalError as InternalError
    from dynamo.eval.errors import SkipFrame as SkipFrame
    from dynamo.eval.errors import Unsupported as Unsupported
    from dynamo.eval.errors import UsageError as UsageError
    from dynamo.eval.explanation import ExplainOutput as ExplainOutput
    from dynamo.eval.interpret.translator import InstructionTranslator as InstructionTranslator
    from dynamo.eval.landmarks import graph_break as graph_break
    from dynamo.eval.landmarks import is_compiling as is_compiling
    from dynamo.eval.output_graph import OutputGraph as OutputGraph
    from dynamo.eval.reporting import report as report
    from dynamo.eval.settings import config as config
    from dynamo.eval.sizes import mark_dynamic as mark_dynamic
    from dynamo.eval.sizes import mark_static as mark_static
    from dynamo.eval.sizes import maybe_mark_dynamic as maybe_mark_dynamic
    from dynamo.eval.variables.base import VariableTracker as VariableTracker
    from dynamo.eval.variables.wrap import VariableBuilder as VariableBuilder

_HOMES = {
    "api": "OptimizeContext allow_in_graph assume_constant_result compile disable explain optimize "
    "reset skip",
    "backends": "list_backends lookup_backend register_backend",
    "backends.testing": "CompileCounter CompileCounterWithBackend",
    "convert_frame": "convert_frame convert_frame_assert",
    "errors": "BackendError BreakReason CaptureError GraphBreak InternalError SkipFrame Unsupported UsageError",
    "explanation": "ExplainOutput",
    "landmarks": "graph_break is_compiling",
    "interpret.translator": "InstructionTranslator",
    "output_graph": "OutputGraph",
    "reporting": "report",
    "settings": "config",
    "sizes": "mark_dynamic mark_static maybe_mark_dynamic",
    "variables.base": "VariableTracker",
    "variables.wrap": "VariableBuilder",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'dynamo.eval' has no attribute {name!r}")
    with loading():
        module = import_module(f"dynamo.eval.{home}")
    found: object = getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
