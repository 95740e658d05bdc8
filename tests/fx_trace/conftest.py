"""One torch thread: the tensors here are tiny, and idle threads that spin slow everything down."""

import torch

torch.set_num_threads(1)
