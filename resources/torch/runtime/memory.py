"""The bytes that live at once, counted as values are made and deleted: what the plan's arena is held against."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from .queues import wait


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of all storages that operators make, while they live."""

    def __init__(self):
        super().__init__()
        self.storages = {}
        self.peak = 0
        self.counts = True

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for each in made if isinstance(made, (tuple, list)) else (made,):
            if self.counts and isinstance(each, torch.Tensor):
                self.note(each)
        if self.counts:
            self.storages = {key: known for key, known in self.storages.items() if not known[0].expired()}
            self.peak = max(self.peak, sum(size for _, size in self.storages.values()))
        return made

    def note(self, tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in self.storages or self.storages[storage._cdata][0].expired():
            self.storages[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())


def peak_of_step(run):
    """Runs a step. @return the most bytes that lived at once on this rank, and what the plan says"""
    take = run.take

    def taken(*which):
        """What a batch is drawn or read with is none of the plan's."""
        live.counts = False
        values = take(*which)
        live.counts = True
        live.note(values)
        return values

    run.take = taken
    with LiveBytes() as live:
        for value in vars(run.weights).values():
            for tensor in getattr(value, "kept", [value]):
                live.note(wait(tensor))
        run.step()
    run.take = take
    return live.peak, run.plan["peak_bytes"][run.local]
