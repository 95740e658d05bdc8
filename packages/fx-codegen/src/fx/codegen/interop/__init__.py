"""To and from ``torch.fx``: the one place of this package that imports it."""

from fx.codegen.interop.torch_fx import TorchCodeGen as TorchCodeGen
from fx.codegen.interop.torch_fx import from_torch as from_torch
from fx.codegen.interop.torch_fx import to_torch as to_torch
