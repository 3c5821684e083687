"""Where the values of a run come from: batches of samples, and what weights begin with."""

import os

import torch

from . import draw
from .preflight import Refused, check_values
from .safetensors import File


def number_of_batch(plan, step, micro_batch):
    """Each step has a batch, or each of its micro-batches."""
    return step * plan["cuts"] + micro_batch if plan["whole_batches"] else step


def boxed(values, ranges):
    for d, (begin, end) in enumerate(ranges):
        values = values.narrow(d, begin, end - begin)
    return values.clone()


class Drawn:
    """Batches that are drawn by seed: each step the same, or each anew."""

    def __init__(self, plan, seed, anew=False):
        self.plan = plan
        self.seed = seed
        self.anew = anew

    def take(self, part, step, micro_batch):
        seed = self.seed
        if self.anew:
            seed = draw.seed_of_batch(seed, number_of_batch(self.plan, step, micro_batch))
        return draw.drawn(self.plan["tensors"][part.name], seed, part.ranges)


class Stored:
    """Whole batches in safetensors files, by the names of the model's inputs: one for each step, by the order of their names, and
    behind the last one the first again. Inputs that a file has not are drawn."""

    def __init__(self, plan, folder, drawn):
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        self.files = [File(os.path.join(folder, name)) for name in names if name.endswith(".safetensors")]
        if not self.files:
            raise Refused(f"--batches {folder} has no safetensors files: name a folder that has one for each step")
        self.plan = plan
        self.drawn = drawn
        for file in self.files:
            for name, (shape, dtype) in file.described().items():
                wanted = plan["tensors"].get(name, {"shape": shape, "dtype": str(dtype)[6:]})
                if (tuple(wanted["shape"]), f"torch.{wanted['dtype']}") != (shape, str(dtype)):
                    raise Refused(f"{file.path}: '{name}' is {dtype} {list(shape)}, expected {wanted['dtype']} {wanted['shape']}")

    def take(self, part, step, micro_batch):
        file = self.files[number_of_batch(self.plan, step, micro_batch) % len(self.files)]
        return boxed(file.whole(part.name), part.ranges) if part.name in file else self.drawn.take(part, step, micro_batch)


class Samples:
    """Batches of a Dataset of the user's, whose samples are tensors by the names of the model's inputs. Of each batch a rank
    takes the samples, and of each sample the part, that its layout has. Inputs without samples (positions) are those of the
    first one."""

    def __init__(self, plan, dataset):
        self.plan = plan
        self.dataset = dataset
        self.kept = {}
        sample = dataset[0]
        for name in plan["inputs"]:
            if name not in sample:
                raise Refused(f"the dataset's samples have no '{name}': the model's inputs are {', '.join(plan['inputs'])}")

    def sample(self, index):
        index %= len(self.dataset)
        if index not in self.kept:
            if len(self.kept) >= 4 * max(1, self.plan["batch"]):
                self.kept.pop(next(iter(self.kept)))
            self.kept[index] = self.dataset[index]
        return self.kept[index]

    def take(self, part, step, micro_batch):
        tensor = self.plan["tensors"][part.name]
        dimension = tensor["batch_dimension"]
        batch = number_of_batch(self.plan, step, micro_batch)
        dtype = getattr(torch, tensor["dtype"])
        if dimension < 0:
            values = torch.as_tensor(self.sample(0)[part.name])
            return self._box(part, values, part.ranges).to(dtype)
        begin, end = part.ranges[dimension]
        per_sample = max(1, tensor["shape"][dimension] // self.plan["batch"])
        rest = [each for d, each in enumerate(part.ranges) if d != dimension]
        rows = []
        for row in range(begin, end):
            values = torch.as_tensor(self.sample(batch * self.plan["batch"] + row // per_sample)[part.name])
            rows.append(self._box(part, values if per_sample == 1 else values[row % per_sample], rest))
        return torch.stack(rows, dimension).to(dtype)

    def _box(self, part, values, ranges):
        if values.dim() != len(ranges):
            raise Refused(f"a sample's '{part.name}' has {values.dim()} dimensions, expected {len(ranges)}")
        for d, (begin, end) in enumerate(ranges):
            if end > values.shape[d]:
                raise Refused(f"a sample's '{part.name}' has {values.shape[d]} places along dimension {d}, expected {end}")
            values = values.narrow(d, begin, end - begin)
        return values


class Beginnings:
    """What weights, optimizer states and constants are at the start."""

    def __init__(self, plan, constants=None, weights=None, seed=None):
        self.plan = plan
        self.constants = File(constants) if constants else {}
        self.weights = weights
        self.file = File(weights) if isinstance(weights, str) else None
        if self.file is not None:
            check_values(plan, weights, self.file.described())
        elif weights is not None:
            check_values(plan, "the state_dict", {name: (tuple(values.shape), values.dtype) for name, values in weights.items()})
        self.seed = seed
        self.overwritten = {}

    def take(self, part):
        tensor = self.plan["tensors"][part.name]
        dtype = getattr(torch, tensor["dtype"])
        if part.name in self.overwritten:
            return self.overwritten[part.name](part)
        if part.name in self.constants:
            return boxed(self.constants.whole(part.name), part.ranges)
        if tensor["role"] == "state":
            return torch.zeros(part.shape, dtype=dtype)
        values = self._given(tensor["file"]["name"])
        if values is not None:
            count, length, first, stride = tensor["file"]["runs"]
            if count == 1:
                flat = values.reshape(-1)[first:first + length]
            else:
                flat = torch.as_strided(values.contiguous(), (count, length), (stride, 1), first)
            return boxed(flat.reshape(tensor["shape"]).to(dtype), part.ranges)
        if self.seed is None:
            raise Refused(f"there are no values for '{tensor['file']['name']}': give --weights FILE, or --random-weights SEED")
        return draw.drawn(tensor, self.seed, part.ranges)

    def _given(self, name):
        if self.file is not None:
            return self.file.whole(name)
        return None if self.weights is None else self.weights[name]
