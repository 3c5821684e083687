"""Runs every rank's program of an exported folder on the fake torch beside this file: run_programs.py FOLDER PLAN

Refused are: Python that does not compile; instructions that are not there, twice there, or in another order than the plan's;
values that are read when they are gone, or not yet there; collectives that members of a group meet in different orders or with
shapes that do not fit; messages that nobody sends or takes.
"""

import glob
import importlib
import json
import os
import sys
from types import SimpleNamespace

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER, PLAN = sys.argv[1], sys.argv[2]
for path in glob.glob(os.path.join(FOLDER, "**", "*.py"), recursive=True):
    with open(path) as file:
        compile(file.read(), path, "exec")
sys.path[:0] = [HERE, FOLDER]

import torch  # noqa: E402
from torch import Tensor, alike, broadcast  # noqa: E402


class Arriving:
    """Nothing can be done with it but waiting for it."""

    def __init__(self, tensor):
        self.tensor = tensor


def wait(x):
    return x.tensor if isinstance(x, Arriving) else x


class Values(SimpleNamespace):
    pass


def accumulate(values, name, x, dtype=None):
    if hasattr(values, name):
        getattr(values, name).add_(x)
    else:
        setattr(values, name, x.to(dtype or x.dtype))


class Operators:
    """What runtime/operators makes, by shape: gradients are as what they are of, all else as its first tensor."""

    def sum_to(self, x, shape):
        return Tensor(shape, x.dtype)

    def spread(self, dy, shape, axes, keepdim):
        return Tensor(shape, dy.dtype)

    def cast(self, values, dtypes):
        return tuple(x if x is None or dtype is None else x.to(dtype) for x, dtype in zip(values, dtypes))

    def derivative(self, function, dy, x):
        if function(x).shape != dy.shape:
            raise ValueError(f"{dy} of {function(x)}")
        return alike(x)

    def linear_parts(self, x, weight, bias=None, transposed=False):
        shape = weight.shape[:2] if transposed else weight.shape[1:]
        if x.shape[-1] != (weight.shape[2] if transposed else weight.shape[0]) or (bias is not None and bias.shape != shape):
            raise ValueError(f"{x} by {weight} and {bias}")
        return Tensor(x.shape[:-1] + shape, x.dtype)

    def embedding(self, indices, table, first=0):
        return Tensor(indices.shape + table.shape[1:], table.dtype)

    def embedding_backward(self, dy, indices, rows, first=0, padding=-1):
        return Tensor((rows, dy.shape[-1]), dy.dtype)

    def attention(self, q, k, v, *masks, keep_probabilities=False, **options):
        if k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1]:
            raise ValueError(f"{q}, {k}, {v}")
        return (Tensor(q.shape[:-1] + v.shape[-1:]), Tensor(q.shape[:-1]),
                Tensor(q.shape[:-1] + (k.shape[-2],)) if keep_probabilities else None)

    def attention_backward(self, dy, q, k, v, y, log_sum, mask=(), **options):
        return tuple(alike(x) if wanted else None for wanted, x in zip(mask, (q, k, k if v is None else v)))

    def layer_norm_backward(self, dy, x, scale, shape, eps, mask):
        return tuple(wanted and each for wanted, each in zip(mask, (alike(dy), Tensor(shape), Tensor(shape))))

    rms_norm_backward = layer_norm_backward

    def rotary(self, x, cosine, sine, interleaved=False):
        broadcast(x.shape, cosine.shape, sine.shape)
        return alike(x)

    rotary_backward = rotary

    def class_statistics(self, logits, labels, axis, first=0):
        return Tensor(labels.shape), Tensor(labels.shape)

    def class_statistics_backward(self, d_sum, d_picked, logits, *more, **options):
        return alike(logits)

    def class_loss(self, log_sum, picked, labels, reduction="sum", **options):
        return Tensor(() if reduction == "sum" else broadcast(log_sum.shape, picked.shape, labels.shape))

    def class_loss_backward(self, dy, labels, **options):
        return Tensor(labels.shape)

    def count_valid(self, labels, **options):
        return Tensor(())

    def adamw(self, part, weight, gradient, m, v, clip=None, **options):
        for each in (gradient, m, v):
            weight.copy_(each)
        if part.shape != weight.shape:
            raise ValueError(f"{part.shape} of the parameter is updated, and {weight} is kept")
        return weight, m, v

    def sgd(self, part, weight, gradient, *buffer, **options):
        weight.copy_(gradient)
        return weight

    def square_sum(self, gradient, **options):
        return Tensor(())

    def clip_factor(self, squares, most):
        return Tensor(())

    def range_of(self, run, first, count, start, delta, dtype):
        return Tensor((count,), dtype)

    def value_part(self, x, part):
        return alike(x)

    def assembled(self, shape, *pieces):
        return Tensor(shape)

    def combined(self, parts, op="sum"):
        return alike(*parts)

    def weigh(self, part, own, total):
        return alike(part)

    def merge(self, a, a_sum, b, b_sum):
        return alike(a), alike(a_sum)

    def dropout(self, x, *more):
        return alike(x)


runtime = SimpleNamespace(accumulate=accumulate, accumulate_=accumulate, wait=wait, operators=Operators())
sys.modules["runtime"] = runtime
with open(os.path.join(FOLDER, "plan.json")) as file:
    EXPORTED = json.load(file)
with open(PLAN) as file:
    WRITTEN = json.load(file)


class Queue:
    """Notes what a rank communicates, for the others to be held against."""

    def __init__(self, run, name):
        self.run, self.name = run, name

    def _meet(self, kind, group, *more):
        members = tuple(EXPORTED["groups"][group])
        if self.run.device not in members:
            raise ValueError(f"device {self.run.device} is not in group {members}")
        self.run.met.setdefault((members, self.name), []).append((kind, *more))
        return len(members)

    def all_reduce(self, x, group, op="sum", into=None):
        self._meet("all-reduce", group, wait(x).shape, op)
        return Arriving(alike(wait(x)))

    all_reduce_ = all_reduce

    def all_gather(self, x, group, dim, sizes=None, into=None):
        count = self._meet("all-gather", group, dim, sizes or wait(x).shape)
        shape = list(wait(x).shape)
        shape[dim] = sum(sizes) if sizes else shape[dim] * count
        return Arriving(Tensor(shape, wait(x).dtype))

    def reduce_scatter(self, x, group, dim, sizes=None, op="sum", into=None):
        count = self._meet("reduce-scatter", group, dim, wait(x).shape, op)
        shape = list(wait(x).shape)
        if not sizes and shape[dim] % count:
            raise ValueError(f"{shape} in {count} parts along {dim}")
        shape[dim] = sizes[EXPORTED["groups"][group].index(self.run.device)] if sizes else shape[dim] // count
        return Arriving(Tensor(shape, wait(x).dtype))

    def all_to_all(self, x, group, cut, join, sizes=None, into=None):
        count = self._meet("all-to-all", group, cut, join, sizes or wait(x).shape)
        shape = list(wait(x).shape)
        shape[cut] = sizes[0][EXPORTED["groups"][group].index(self.run.device)] if sizes else shape[cut] // count
        shape[join] = sum(sizes[1]) if sizes else shape[join] * count
        return Arriving(Tensor(shape, wait(x).dtype))

    def broadcast(self, x, group, shape=None, dtype=None, into=None):
        self._meet("broadcast", group, tuple(shape or wait(x).shape))
        return Arriving(Tensor(shape or wait(x).shape))

    def shift(self, x, group, into=None):
        self._meet("shift", group, wait(x).shape)
        return Arriving(alike(wait(x)))

    def send(self, x, peer, tag, m):
        self.run.messages.append(("send", self.run.device, peer, self.name, tag, m.number, wait(x).shape))

    def recv(self, shape, dtype, peer, tag, m):
        self.run.messages.append(("recv", peer, self.run.device, self.name, tag, m.number, tuple(shape)))
        return Arriving(Tensor(shape, dtype))

    def to_host(self, x, into=None):
        return Arriving(alike(wait(x)))

    to_device = to_host

    def kept_on_host(self, x):
        return x


class Parts:
    """Boxes of the model's tensors."""

    def __getitem__(self, name):
        tensor = EXPORTED["tensors"][name]
        return Tensor(tensor["shape"], getattr(torch, tensor["dtype"]))


class MicroBatch(Values):
    def __init__(self, number):
        super().__init__(number=number, seed=1, inputs=Parts(), parameter=Parts())

    def rows(self, begin, size, step):
        return slice(begin + self.number * step, begin + self.number * step + size)


def run_device(device):
    name, program = next((name, each) for name, each in EXPORTED["programs"].items() if device in each["devices"])
    rank = SimpleNamespace(**dict(zip(program["names"], program["numbers"][program["devices"].index(device)])))
    module = importlib.import_module("programs." + name)
    run = SimpleNamespace(device=device, weights=Values(), sums=Values(), rank=rank, met={}, messages=[], stored=Parts(), inputs=Parts(),
                          micro_batches=[MicroBatch(i) for i in range(EXPORTED["micro_batches"])], store=lambda name, value: value.shape)
    for queue in ("tensor", "data", "pipeline", "pipeline_back", "copy"):
        setattr(run, queue, Queue(run, queue))
    lines = {(block, line): (segment, begin + i) for block, segment, begin, of in program["lines"] for i, line in enumerate(of)}
    done = []

    def call(frame, event, argument):
        block = frame.f_code.co_name
        if frame.f_code.co_filename != module.__file__ or block in ("setup", "step", "<lambda>"):
            return None
        number = frame.f_locals["m"].number

        def line(frame, event, argument):
            if event == "line" and (block, frame.f_lineno) in lines:
                if not done or done[-1] != (*lines[block, frame.f_lineno], number):  # a line may come again for what it calls
                    done.append((*lines[block, frame.f_lineno], number))
            return line

        return line

    module.setup(run)
    sys.settrace(call)
    try:
        module.step(run)
    finally:
        sys.settrace(None)
    expected = []
    written = WRITTEN["devices"][device]
    for entry in written["schedule"]:
        segment, number, begin, end = (*entry, *(0, -1)[len(entry) - 2:])[:4]
        count = len(written["segments"][segment]["instructions"])
        expected += [(segment, i, number) for i in range(begin, count if end < 0 else end)]
    if done != expected:
        at = next((i for i, (a, b) in enumerate(zip(done, expected)) if a != b), min(len(done), len(expected)))
        raise SystemExit(f"device {device}: instruction {at} of the step is {done[at:at + 1]}, expected {expected[at:at + 1]}")
    return run, len(done)


def main():
    runs, instructions = [], 0
    for device in range(len(WRITTEN["devices"])):
        run, count = run_device(device)
        runs.append(run)
        instructions += count
    met = {}
    for run in runs:
        for key, collectives in run.met.items():
            met.setdefault(key, []).append(collectives)
    for (members, queue), of in met.items():
        if len(of) != len(members) or any(each != of[0] for each in of):
            raise SystemExit(f"the members of {members} do not meet alike on the {queue} queue")
    sent = sorted(each[1:] for run in runs for each in run.messages if each[0] == "send")
    taken = sorted(each[1:] for run in runs for each in run.messages if each[0] == "recv")
    if sent != taken:
        raise SystemExit(f"messages are sent {[each for each in sent if each not in taken][:1]}, and taken "
                         f"{[each for each in taken if each not in sent][:1]}")
    print(f"{len(runs)} devices, {instructions} instructions, {len(sent)} messages")


if __name__ == "__main__":
    main()
