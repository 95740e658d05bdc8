"""What turns a graph into a callable, by name."""

from dynamo.eval.backends import compilers as compilers
from dynamo.eval.backends import plain as plain
from dynamo.eval.backends.registry import list_backends as list_backends
from dynamo.eval.backends.registry import lookup_backend as lookup_backend
from dynamo.eval.backends.registry import register_backend as register_backend
