"""Blocks under torch.compile. What blocks do with other queues, other ranks and the run itself stays as it is, between the
graphs that are compiled: everything else of a block is in one of them."""

import torch


def compile_blocks(run, backend):
    """Each function of the rank's program that is a block of its schedule."""
    from . import buffers, operators, queues

    never = torch.compiler.disable
    for name, method in vars(queues.Queue).items():
        if callable(method) and not name.startswith("__"):
            setattr(queues.Queue, name, never(method))
    buffers._Boxes.__getitem__ = never(buffers._Boxes.__getitem__)
    for name in ("adamw", "sgd"):  # of steps and rates, which are other numbers each time
        if hasattr(operators, name):
            setattr(operators, name, never(getattr(operators, name)))
    run.program.wait = never(queues.wait)
    run.store = never(run.store)
    torch._dynamo.config.allow_unspec_int_on_nn_module = True
    torch._dynamo.config.recompile_limit = max(8, 2 * len(run.micro_batches) + 2)  # micro-batches have numbers of their own
    for name in {each[0] for each in run.programs_row["lines"]}:
        setattr(run.program, name, torch.compile(getattr(run.program, name), backend=backend, dynamic=False))
