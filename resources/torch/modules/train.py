"""Trains {{MODEL}} under the plan of this folder, with PyTorch's own parallelism:

    torchrun --nproc-per-node {{WORLD}} train.py --module package.module:make_model --steps 10
"""

import argparse
import contextlib
import importlib
import inspect
import os
import sys
import time
from datetime import timedelta

import torch

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [FOLDER, os.getcwd()]

# What the plan needs of PyTorch: where it is, and since when.
NEEDS = [
{{NEEDS}}]


def too_old():
    """What this PyTorch has not got."""
    lacking = []
    for module, name, version in NEEDS:
        try:
            found = hasattr(importlib.import_module(module), name)
        except ImportError:
            found = False
        if not found:
            lacking.append(f"{module}.{name} (PyTorch {version} and newer)")
    return lacking


if too_old():
    sys.exit(f"train.py: PyTorch {torch.__version__} is too old for this plan: it has no " + ", no ".join(too_old()))

import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402

import dataset  # noqa: E402
import parallelize  # noqa: E402


def start(deadline=600.0):
    """Processes, their device, and the mesh of the plan."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world != {{WORLD}}:
        sys.exit(f"train.py: the plan is for {{WORLD}} processes, and {world} were started: torchrun --nproc-per-node {{WORLD}} train.py")
    here = int(os.environ.get("LOCAL_RANK", "0"))
    kind = "cuda" if torch.cuda.is_available() and torch.cuda.device_count() > here else "cpu"
    device = torch.device(kind, here) if kind == "cuda" else torch.device("cpu")
    if kind == "cuda":
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if kind == "cuda" else "gloo", timeout=timedelta(seconds=deadline))
    return device, init_device_mesh(kind, tuple(parallelize.MESH.values()), mesh_dim_names=tuple(parallelize.MESH))


def make_module(name, seed):
    """The user's module, whole, the same on all ranks; its forward returns the loss."""
    if ":" not in name:
        sys.exit("train.py: --module package.module:make_model names a function that makes the module")
    file, _, function = name.partition(":")
    torch.manual_seed(seed)
    module = getattr(importlib.import_module(file), function)().train()
    taken = inspect.signature(module.forward).parameters
    lacking = [each for each in parallelize.INPUTS if each not in taken]
    if lacking and not any(each.kind == inspect.Parameter.VAR_KEYWORD for each in taken.values()):
        sys.exit(f"train.py: forward of {name} takes {', '.join(taken)}, and the plan's model also {', '.join(lacking)}")
    return module


def part_of(batch, axes, mesh):
    """This rank's part of a mini-batch: {input: (dimension, size)} of each axis is in parallelize.CUTS."""
    own = dict(batch)
    for axis in axes:
        for name, dimension in parallelize.CUTS.get(axis, {}).items():
            size = parallelize.MESH[axis]
            own[name] = own[name].chunk(size, dimension)[mesh.get_local_rank(axis)]
    return own


class Training:
    """The module of this rank, its optimizer, and what a step is."""

    def __init__(self, module, device, mesh, optimizer=torch.optim.AdamW, **settings):
        self.device, self.mesh = device, mesh
        self.parts = parallelize.parallelize(module.to(device), mesh)
        parameters = [each for part in self.parts for each in part.parameters()]
#if TENSOR
        settings["foreach"] = False  # some parameters are DTensors, others are not
#end
#if ZERO1
        from torch.distributed.optim import ZeroRedundancyOptimizer
        self.optimizer = ZeroRedundancyOptimizer(
            parameters, optimizer_class=optimizer, process_group=mesh["{{DATA}}"].get_group(), **settings)
#else
        self.optimizer = optimizer(parameters, **settings)
#end
#if STAGES
        self.schedule = parallelize.schedule(self.parts, device, mesh)
#end
#if TIED
        self.tied = parallelize.Tied(self.parts, mesh)
#end

    def step(self, batch):
        """Trains on a mini-batch, of which every rank has the whole. Returns its loss."""
        batch = {name: value.to(self.device) for name, value in batch.items()}
        self.optimizer.zero_grad()
        loss = self.gradients(part_of(batch, {{CUT_AXES}}, self.mesh))
        self.optimizer.step()
        return loss

    def gradients(self, batch):
#if STAGES
        losses = []
        with self.surroundings(batch):
            # Every stage is given the inputs; the loss is made by the last one.
            inputs = {"input_" + name: value for name, value in batch.items()}  # no words of the schedule's own
            self.schedule.step(**inputs, target=torch.zeros(parallelize.MICRO_BATCHES, device=self.device), losses=losses)
        loss = sum((each.detach() for each in losses), torch.zeros((), device=self.device))
        dist.all_reduce(loss, group=self.mesh["{{STAGES}}"].get_group())
#else
        module, loss = self.parts[0], torch.zeros((), device=self.device)
#if ACCUMULATE
        for i, micro in enumerate(parallelize.micro_batches(batch)):
            is_last = i + 1 == parallelize.MICRO_BATCHES
#if ZERO2
            module.set_reshard_after_backward(is_last)  # weights stay whole until the last one
#end
#if DDP
            with self.surroundings(micro), contextlib.nullcontext() if is_last else module.no_sync():
#else
            with self.surroundings(micro):
#end
                each = parallelize.loss_of(module(**micro)) / parallelize.MICRO_BATCHES
                each.backward()
            loss += each.detach()
#else
        with self.surroundings(batch):
            each = parallelize.loss_of(module(**batch))
            each.backward()
        loss += each.detach()
#end
#end
#if TIED
        self.tied.add_up()
#end
#if AVERAGE
        parallelize.average_gradients(self.parts, self.mesh)
#end
#if MEAN_AXES
        for axis in {{MEAN_AXES}}:  # of equal parts of the batch
            dist.all_reduce(loss, group=self.mesh[axis].get_group())
            loss /= parallelize.MESH[axis]
#end
        return loss.item()

    @contextlib.contextmanager
    def surroundings(self, batch):
        """What forward and backward pass run in."""
#if SURROUNDED
        with contextlib.ExitStack() as stack:
#if LOSS_PARALLEL
            from torch.distributed.tensor.parallel import loss_parallel
            stack.enter_context(loss_parallel())
#end
#if CONTEXT
            stack.enter_context(parallelize.context(batch, self.mesh))
#end
            yield
#else
        yield
#end


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default={{MODULE}}, metavar="PACKAGE.MODULE:FUNCTION", help="makes the module; its forward returns the loss")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1, help="of weights and drawn batches")
    chosen = parser.parse_args()
    device, mesh = start()
#if MADE_INSIDE
    if dist.get_rank() == 0:
        print("train.py: note: " + parallelize.MADE_INSIDE, file=sys.stderr)
#end
    training = Training(make_module(chosen.module, chosen.seed), device, mesh, lr=chosen.learning_rate)
    for step in range(chosen.steps):
        begin = time.perf_counter()
        loss = training.step(dataset.batch(step, chosen.seed))
        if dist.get_rank() == 0:
            print(f"step {step + 1}: loss {loss:.6f}, {time.perf_counter() - begin:.3f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
