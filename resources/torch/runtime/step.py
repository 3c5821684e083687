"""A run of a plan on one rank: its values, its micro-batches, and one step after another."""

import importlib
import json
import math
import os
from types import SimpleNamespace

import torch

from .buffers import Parts, Values, Versions
from .groups import place_of
from .preflight import Refused
from .queues import Queue, wait

QUEUES = ("tensor", "data", "pipeline", "pipeline_back", "copy")


def read_plan(folder):
    path = os.path.join(folder, "plan.json")
    try:
        with open(path) as file:
            plan = json.load(file)
    except (OSError, ValueError) as error:
        raise Refused(f"{path} cannot be read: {error}; export the plan again") from error
    plan["cuts"] = plan["micro_batches"] * plan["units"]["count"]
    return plan


class MicroBatch(Values):
    """One of a rank's micro-batches: its inputs, and what one block makes of them for another."""

    def __init__(self, run, index):
        super().__init__()
        count = run.plan["units"]["count"]
        self.number = index * count + run.unit  # among those of all scale units
        self.seed = run.seed
        self.update = index // (run.plan["micro_batches"] // run.plan["updates"])
        shapes = {name: tensor["shape"] for name, tensor in run.plan["tensors"].items()}
        self.inputs = Parts(shapes, lambda part: run.take(part, self.number), lambda name: self._shift(run, name))
        self.parameter = Parts(shapes, lambda part: Updated(part, run, self.update))

    def _shift(self, run, name):
        """How far the micro-batch's samples lie behind those of the first one."""
        tensor = run.plan["tensors"][name]
        dimension = tensor["batch_dimension"]
        if dimension < 0 or run.plan["whole_batches"]:
            return -1, 0
        return dimension, tensor["shape"][dimension] // run.plan["cuts"] * self.number

    def rows(self, begin, size, step):
        """The micro-batch's rows of what is there for all of them."""
        begin += self.number * step
        return slice(begin, begin + size)

    def tag(self, tag):
        """Of a message: one for each micro-batch."""
        return tag * 4096 + self.number % 4096


class Updated:
    """The part of a parameter that a rank updates."""

    def __init__(self, part, run, update):
        self.part = part
        self.run = run
        self.update = run.step_number * run.plan["updates"] + update + 1

    def rate(self, usual):
        return self.run.rate(usual)

    def note(self, gradient):
        if self.run.gradients is not None:
            self.run.gradients.append((self.part, gradient.detach().clone()))


class Run:
    """What a program is run with."""

    def __init__(self, folder, processes, beginnings, batches, seed=1, rate=None, schedule=None):
        self.plan = processes.plan
        self.processes = processes
        self.device = processes.device
        self.beginnings = beginnings
        self.batches = batches
        self.seed = seed
        self.fixed_rate = rate
        self.schedule = schedule
        self.unit, self.local = place_of(self.plan, processes.rank)
        self.step_number = 0
        self.weights, self.sums = Values(), Values()
        self.parts = {}  # of weights and states, by name: which part of which tensor
        self.gradients = None  # a list: those of the step are kept
        self.outputs = {}
        self.program, self.rank, self.programs_row = self._program(folder)
        for name in QUEUES:
            setattr(self, name, processes.queue(name) if hasattr(processes, "queue") else Queue(name, processes, self.device))
        if hasattr(processes, "prepare"):
            processes.prepare()
        shapes = {name: tensor["shape"] for name, tensor in self.plan["tensors"].items()}
        self.inputs = Parts(shapes, lambda part: self.take(part, 0))
        self.stored = Parts(shapes, self._load)
        self.micro_batches = [MicroBatch(self, i) for i in range(self.plan["micro_batches"])]
        with torch.no_grad():
            self.program.setup(self)
        self.parts = {name: value.part for name, value in self.settled().items() if hasattr(value, "part")}

    def _program(self, folder):
        for name, program in self.plan["programs"].items():
            if self.local in program["devices"]:
                row = program["devices"].index(self.local)
                module = importlib.import_module("programs." + name)
                return module, SimpleNamespace(**dict(zip(program["names"], program["numbers"][row]))), program
        raise Refused(f"the plan has no program for device {self.local}")

    def _load(self, part):
        values = self.beginnings.take(part).to(self.device)
        values.part = part
        return values

    def keep_version(self, name, age, count, values):
        """One of the versions that a weight is kept in, which are all the same at the start."""
        if not hasattr(self.weights, name):
            setattr(self.weights, name, Versions(self, count))
        getattr(self.weights, name).kept[age] = values

    def take(self, part, micro_batch):
        return self.batches.take(part, self.step_number, micro_batch).to(self.device)

    def shard(self, begin, size, end):
        """What of [begin, end) is this scale unit's: `size` places each, the last one what is left."""
        first = min(begin + self.unit * size, end)
        return slice(first, min(first + size, end))

    def shard_sizes(self, size, extent):
        return tuple(max(0, min(size, extent - unit * size)) for unit in range(self.plan["units"]["count"]))

    def rate(self, usual):
        share = self.schedule(self.step_number) if self.schedule else 1.0
        return (usual if self.fixed_rate is None else self.fixed_rate) * share

    def store(self, name, value):
        """An output of the model, or this rank's share of it: summed over micro-batches where it is the loss."""
        if name == self.plan["loss"]:
            self.loss = self.loss + value.detach().double().cpu()
        else:
            self.outputs[name] = value.detach()

    def queues(self):
        return [getattr(self, name) for name in QUEUES]

    def end_blocks(self):
        """Behind the last block of a step, where something is open (graphs.py)."""

    def step(self):
        """One training step. @return the loss, of all ranks"""
        self.loss = torch.zeros((), dtype=torch.float64)
        self.sums = Values()
        with torch.no_grad():
            self.program.step(self)
            for queue in self.queues():
                queue.end_step()
            self.end_blocks()
        self.step_number += 1
        total = self.processes.total(self.loss)
        return total / self.plan["cuts"] if self.plan["whole_batches"] else total

    def peak_bytes(self):
        """Of each rank: on GPUs what was allocated at most, on CPUs, which nobody counts, what is planned."""
        if self.device.type == "cuda":
            return self.processes.gather(torch.cuda.max_memory_allocated(self.device))
        return [self.plan["peak_bytes"][place_of(self.plan, rank)[1]] for rank in range(self.plan["world"])]

    def settled(self):
        """The weights and states by name, once all of them are there."""
        return {name: value.newest() if isinstance(value, Versions) else wait(value) for name, value in vars(self.weights).items()}

    def whole(self, pieces):
        """Whole tensors by their names in files, on rank 0, of [(part, values)] that ranks have."""
        gathered = self.processes.at_first([(part.name, part.ranges, values.cpu()) for part, values in pieces])
        if self.processes.rank != 0:
            return {}
        return assembled(self.plan, [each for own in gathered for each in own])


def assembled(plan, pieces):
    made = {}
    for name, ranges, values in pieces:
        tensor = plan["tensors"][name]
        file = tensor["file"]
        flat = made.setdefault(file["name"], torch.zeros(file["shape"], dtype=values.dtype))
        count, length, first, stride = file["runs"]
        own = torch.as_strided(flat, (count, length), (stride, 1), first)
        box = own.reshape(tensor["shape"]) if count == 1 else None
        if box is not None:
            for d, (begin, end) in enumerate(ranges):
                box = box.narrow(d, begin, end - begin)
            box.copy_(values)
            continue
        whole = own.clone().reshape(tensor["shape"])
        box = whole
        for d, (begin, end) in enumerate(ranges):
            box = box.narrow(d, begin, end - begin)
        box.copy_(values)
        own.copy_(whole.reshape(count, length))
    return made


def schedule_of(text, total):
    """"constant", "constant:warmup=10", "cosine:warmup=10,total=100,floor=0.1": a share of the rate by step."""
    shape, _, options = text.partition(":")
    if shape not in ("constant", "cosine"):
        raise Refused(f"'{shape}' is no schedule of the learning rate: constant or cosine")
    known = {"warmup": 0.0, "total": 0.0, "floor": 0.0}
    for option in filter(None, options.split(",")):
        name, _, value = option.partition("=")
        if name not in known:
            raise Refused(f"a schedule has no '{name}': {', '.join(known)}")
        known[name] = float(value)
    warmup, last, floor = known["warmup"], known["total"] or total, known["floor"]

    def share(step):
        if step < warmup:
            return (step + 1) / warmup
        if shape == "constant":
            return 1.0
        if step >= last:
            return floor
        return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (last - warmup)))

    return share
