"""A torch of modules without numbers, which takes down what torch.distributed is asked for: `asked`."""

import sys
from types import ModuleType, SimpleNamespace

__version__ = "2.6.0"
asked = []  # of this rank, in order


def ask(what, *given):
    asked.append([what, *map(str, given)])


class Tensor:
    def __init__(self, trace=()):
        self.trace = tuple(trace)  # modules that it went through

    def reshape(self, *shape):
        return self


class Parameter(Tensor):
    def detach(self):
        return self

    def clone(self):
        return Parameter()


class Module:
    def __init__(self):
        self.__dict__.update(_modules={}, _parameters={}, _hooks=[], training=True)

    def __setattr__(self, name, value):
        for kind, where in ((Module, self._modules), (Parameter, self._parameters)):
            if isinstance(value, kind) or name in where:
                where[name] = value
                return
        self.__dict__[name] = value

    def __getattr__(self, name):
        for where in ("_modules", "_parameters"):
            if name in self.__dict__.get(where, ()):
                return self.__dict__[where][name]
        raise AttributeError(name)

    def get_submodule(self, name):
        found = self
        for part in name.split(".") if name else ():
            found = getattr(found, part)
        return found

    def get_parameter(self, name):
        owner, _, leaf = name.rpartition(".")
        return self.get_submodule(owner)._parameters[leaf]

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self._modules.items():
            yield from child.named_modules(prefix + ("." if prefix else "") + name)

    def named_parameters(self, remove_duplicate=True):
        for name, module in self.named_modules():
            for leaf, parameter in module._parameters.items():
                yield (name + "." if name else "") + leaf, parameter

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def register_forward_pre_hook(self, hook, with_kwargs=False):
        self._hooks.append(hook)

    def __call__(self, *args, **kwargs):
        for hook in self._hooks:
            args, kwargs = hook(self, args, kwargs)
        return self.forward(*args, **kwargs)


def module(name, **members):
    made = ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    owner, _, leaf = name.rpartition(".")
    if owner:
        setattr(sys.modules[owner], leaf, made)
    return made


def asks(name):
    """A function that is taken down by its name."""
    return lambda *args, **kwargs: ask(name, *args, *(f"{key}={value}" for key, value in kwargs.items()))


def word(name):
    """A class whose instances are printed as they are made."""

    class Word:
        def __init__(self, *args, **kwargs):
            self.text = f"{name}({', '.join([*map(str, args), *(f'{key}={value}' for key, value in kwargs.items())])})"

        def __str__(self):
            return self.text

        __repr__ = __str__

    Word.__name__ = name
    return Word


class Schedule:
    def __init__(self, stages, **settings):
        stages = stages if isinstance(stages, list) else [stages]
        ask("schedule", type(self).__name__, [each.index for each in stages], settings["n_microbatches"], settings["kwargs_chunk_spec"])

    def _load_csv(self, path, format):
        with open(path) as file:
            ask("csv", format, len(file.read().splitlines()))


class PipelineStage:
    def __init__(self, part, index, count, device, group=None):
        self.index = index
        ask("stage", index, count)


def parallelize_module(_, mesh, plan):
    for pattern, style in plan.items():
        ask("style", mesh, pattern, style)


def fully_shard(each, mesh, reshard_after_forward):
    ask("fully_shard", mesh, getattr(each, "path", "?"), reshard_after_forward)


nn = module("torch.nn", Module=Module, Parameter=Parameter)
module("torch.nn.parallel", DistributedDataParallel=lambda each, process_group: ask("DDP", process_group) or each)
module("torch.utils")
module("torch.utils._pytree", tree_leaves=lambda value: [value])
module("torch.distributed", new_group=asks("new_group"), get_rank=lambda: 0, all_reduce=asks("all_reduce"))
placements = {name: word(name) for name in ("Shard", "Replicate", "Partial")}
module("torch.distributed.tensor", DTensor=type("DTensor", (), {}), distribute_module=None, distribute_tensor=None, **placements)
styles = {name: word(name) for name in ("ColwiseParallel", "RowwiseParallel", "SequenceParallel", "PrepareModuleOutput")}
module("torch.distributed.tensor.parallel", ParallelStyle=type("ParallelStyle", (), {}), parallelize_module=parallelize_module, **styles)
module("torch.distributed.tensor.experimental", context_parallel=asks("context_parallel"))
module("torch.distributed.tensor.experimental._attention", _cp_options=SimpleNamespace(), set_rotate_method=asks("rotate"))
module("torch.distributed.fsdp", fully_shard=fully_shard)
module("torch.distributed.pipelining", PipelineStage=PipelineStage)
schedules = ("Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleZBVZeroBubble", "ScheduleDualPipeV", "_PipelineScheduleRuntime")
module("torch.distributed.pipelining.schedules", **{name: type(name, (Schedule,), {}) for name in schedules})
module("torch.distributed.pipelining.microbatch", TensorChunkSpec=word("TensorChunkSpec"), _Replicate="whole")
module("torch.distributed.algorithms")
module("torch.distributed.algorithms._checkpoint")
module("torch.distributed.algorithms._checkpoint.checkpoint_wrapper",
       checkpoint_wrapper=lambda each: ask("checkpoint", getattr(each, "path", "?")) or each)
