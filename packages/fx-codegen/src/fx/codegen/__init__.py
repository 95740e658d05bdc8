"""Graph to exact, readable Python source; GraphModule.

Importing this package tells :mod:`fx.ir` about torch's values and operators (:mod:`fx.codegen.torch_types`) and makes
:class:`CodeGen` the code generator of graphs that have none of their own.
"""

from fx.codegen import torch_types as _torch_types
from fx.codegen._version import __version__ as __version__
from fx.codegen.calling import BoxedCodeGen as BoxedCodeGen
from fx.codegen.calling import PyTreeCodeGen as PyTreeCodeGen
from fx.codegen.calling import PyTreeInfo as PyTreeInfo
from fx.codegen.codegen import CodeGen as CodeGen
from fx.codegen.errors import CodegenError as CodegenError
from fx.codegen.errors import InteropError as InteropError
from fx.codegen.errors import MissingAttributeError as MissingAttributeError
from fx.codegen.errors import SignatureError as SignatureError
from fx.codegen.literals import register_literal as register_literal
from fx.codegen.module import GraphModule as GraphModule
from fx.codegen.source import PythonCode as PythonCode
from fx.ir import set_default_codegen as _set_default_codegen

_torch_types.register()
_set_default_codegen(CodeGen)
