"""Stages of a pipeline, cut from a module as it is: the module's own forward runs on each stage, and modules of other stages
are not there. What stands in their place hands on what the stage received, or ends the stage."""

import copy

import torch
from torch import nn


class Leave(Exception):
    """Ends a stage's forward pass with what the next stage is given."""

    def __init__(self, value):
        super().__init__()
        self.value = value


def first_tensor(args, kwargs):
    """Where among arguments the first tensor is: a key, or an index."""
    for key, value in [*enumerate(args), *kwargs.items()]:
        if isinstance(value, torch.Tensor):
            return key
    raise RuntimeError("a module at which a stage begins has to be given a tensor")


class Elsewhere(nn.Module):
    """In place of a module of another stage."""

    def __init__(self, original, stage, ends):
        super().__init__()
        for name, value in vars(original).items():  # what code around it may ask for
            if not name.startswith("_") and not hasattr(self, name):
                setattr(self, name, value)
        self.__dict__["stage"], self.ends = stage, ends

    def forward(self, *args, **kwargs):
        if self.ends:
            key = first_tensor(args, kwargs)
            raise Leave(args[key] if isinstance(key, int) else kwargs[key])
        return self.stage.received


class Stage(nn.Module):
    """The modules of one stage. `forward(received, input_NAME=...)` returns what the next stage receives, or the loss."""

    def __init__(self, module, stages, firsts, index, loss_of):
        super().__init__()
        own = self.names = stages[index]
        self.first, self.loss_of = firsts[index], loss_of
        self.received, self.enter, self.leave = None, lambda value: value, lambda value: value
        memo = {id(module.get_submodule(name)): module.get_submodule(name) for name in own}
        for other, names in enumerate(stages):
            for name in names if other != index else ():
                original = module.get_submodule(name)
                memo[id(original)] = Elsewhere(original, self, ends=other == index + 1 and name == firsts[other])
        self.module = copy.deepcopy(module, memo)

    def begin(self):
        """Once its modules are what they will be: what is received goes into the first of them."""
        if self.first:
            self.module.get_submodule(self.first).register_forward_pre_hook(self._replace, with_kwargs=True)

    def _replace(self, _, args, kwargs):
        key = first_tensor(args, kwargs)
        if isinstance(key, int):
            return (*args[:key], self.received, *args[key + 1:]), kwargs
        return args, {**kwargs, key: self.received}

    def forward(self, received=None, **inputs):
        self.received = None if received is None else self.enter(received)
        try:
            outputs = self.module(**{name.removeprefix("input_"): value for name, value in inputs.items()})
            return self.loss_of(outputs).reshape(1)  # schedules join what the last stage returns
        except Leave as left:
            return self.leave(left.value)
        finally:
            self.received = None
