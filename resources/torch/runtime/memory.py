"""The bytes that live at once on one of the plan's devices, counted as values are made and deleted: what its arena is held
against. Of threads, whose communication is done at once, as the plan counts it: what is on its way is of no device."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from .queues import wait
from .step import QUEUES


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of all storages that operators make, while they live."""

    def __init__(self):
        super().__init__()
        self.storages = {}
        self.peak = 0
        self.counts = True

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if self.counts:
            for each in made if isinstance(made, (tuple, list)) else (made,):
                if isinstance(each, torch.Tensor):
                    self.note(each)
            self.storages = {key: known for key, known in self.storages.items() if not known[0].expired()}
            self.peak = max(self.peak, sum(size for _, size in self.storages.values()))
        return made

    def note(self, tensor):
        storage = tensor.untyped_storage()
        if getattr(tensor, "on_host", False):
            return
        if storage._cdata not in self.storages or self.storages[storage._cdata][0].expired():
            self.storages[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())

    def aside(self, function):
        """The same function, of which only what it returns is counted."""

        def called(*arguments, **options):
            self.counts = False
            made = function(*arguments, **options)
            self.counts = True
            if made is not None:
                self.note(made)
            return made

        return called


def peak_of_step(run):
    """Runs a step. @return the most bytes that lived at once, and what the plan says"""
    live = LiveBytes()
    for owner, name in [(run, "take"), *((getattr(run, queue), name) for queue in QUEUES for name in ("_meet", "send", "recv", "to_host"))]:
        setattr(owner, name, live.aside(getattr(owner, name)))
    with live:
        for value in vars(run.weights).values():
            for tensor in getattr(value, "kept", [value]):
                live.note(wait(tensor))
        run.step()
    return live.peak, run.plan["peak_bytes"][run.local]
