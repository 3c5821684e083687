"""Mini-batches of the plan's size. Put your data here; what is exported again leaves this file as it is."""

import torch

# Shape, type, and of whole numbers the least that is too large.
INPUTS = {
{{INPUT_TYPES}}}


def batch(step, seed=1):
    """The whole mini-batch of a step by the names that forward takes, the same on all ranks."""
    dice = torch.Generator().manual_seed(seed * 1_000_003 + step)
    return {
        name: torch.randn(shape, generator=dice, dtype=kind) if kind.is_floating_point else torch.randint(0, high, shape, generator=dice, dtype=kind)
        for name, (shape, kind, high) in INPUTS.items()
    }
