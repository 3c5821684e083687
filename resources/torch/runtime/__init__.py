"""What the programs of this plan run on: queues, process groups, buffers, data, checkpoints."""

from . import preflight  # first: an older PyTorch is told by name
from .buffers import accumulate, accumulate_
from .queues import wait

__all__ = ["accumulate", "accumulate_", "preflight", "wait"]
