"""To torch's own compiler stack: the one place of this package that imports it."""

from dynamo.eval.interop.torch_backends import aot_eager as aot_eager
from dynamo.eval.interop.torch_backends import for_torch_graph as for_torch_graph
from dynamo.eval.interop.torch_backends import inductor as inductor
from dynamo.eval.interop.torch_backends import torch_registered as torch_registered
