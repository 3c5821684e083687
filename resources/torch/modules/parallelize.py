"""How the plan shares {{MODEL}} out. Rows of the plan:

{{ROWS}}"""

#if AUTOCAST
#else
import contextlib
#end
#if CSV
import os
#end

#if TORCH
import torch
#end
#if SUMS
import torch.distributed as dist
#end
#if LOCAL_TENSORS
from torch.distributed.tensor import DTensor
#end
from torch.utils._pytree import tree_leaves
#if STYLES_FILE

from styles import {{STYLES}}
#end
#if STAGES

from stages import Stage
#end

MESH = {{MESH}}
MICRO_BATCHES = {{MICRO_BATCHES}}
INPUTS = {{INPUTS}}
CUTS = {{CUTS}}  # by axis: inputs, and along which dimension they are cut
LOSS = {{LOSS}}  # of what forward returns
#if ACCUMULATE
BATCH = {{BATCH}}  # the dimension of samples; inputs without one are the same in all micro-batches
#end
#if STAGES

# What each stage has, the module that it begins with, and its place along the axis of stages.
STAGE_MODULES = [
{{STAGE_MODULES}}]
STAGE_BEGINS = {{STAGE_BEGINS}}
STAGE_RANKS = {{STAGE_RANKS}}
#end
#if TIED
# Parameters that stages share, by name, and the places of these stages.
TIED = {{TIED}}
#end
#if RECOMPUTE
# Computed again before their backward pass.
RECOMPUTED = {{RECOMPUTED}}
#end
#if FSDP
# Whose weights are gathered together.
WRAPPED = {{WRAPPED}}
#end
#if LOCAL_SIZES
# Sizes that forward takes from attributes: whole, and of one device.
LOCAL_SIZES = {{LOCAL_SIZES}}
#end
#if MADE_INSIDE
MADE_INSIDE = {{MADE_INSIDE}}
#end


def loss_of(outputs):
#if LOSS_PARALLEL
    loss = tree_leaves(outputs)[LOSS]
    return loss.full_tensor() if isinstance(loss, DTensor) else loss
#else
    return tree_leaves(outputs)[LOSS]
#end


def precision(device):
    """What forward passes run in."""
#if AUTOCAST
    return torch.autocast(device.type, torch.{{AUTOCAST}})
#else
    return contextlib.nullcontext()
#end
#if PATTERNS


def matching(module, patterns):
    """Names of modules that are here and that patterns name, a `*` for any one part of a name."""
    def is_one(parts, pattern):
        return len(parts) == len(pattern) and all(b in ("*", a) for a, b in zip(parts, pattern))

    patterns = [each.split(".") for each in patterns]
    here = [name for name, each in module.named_modules() if type(each).__name__ != "Elsewhere"]
    return [name for name in here if any(is_one(name.split("."), each) for each in patterns)]
#end
#if TENSOR


def styles():
    """How modules share their weights and what they compute, and what comes and goes."""
    from torch.distributed.tensor import {{PLACEMENTS}}
#if PARALLEL_STYLES
    from torch.distributed.tensor.parallel import {{PARALLEL_STYLES}}
#end
    return {
{{STYLE_LINES}}    }
#if OUTPUTS


def outputs():
    """What modules hand on is laid out anew, once for all who read it."""
    from torch.distributed.tensor import {{OUTPUT_PLACEMENTS}}
    from torch.distributed.tensor.parallel import PrepareModuleOutput
    return {
{{OUTPUT_LINES}}    }
#end


def tensor_parallel(module, mesh):
    from torch.distributed.tensor.parallel import parallelize_module
    names = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
#if OUTPUTS
    for plan in (styles(), outputs()):
#else
    for plan in (styles(),):
#end
        parallelize_module(module, mesh, {name: style for pattern, style in plan.items() for name in matching(module, [pattern])})
    for first, *others in names.values():  # tied parameters stay so
        for other in others:
            owner, _, own = other.rpartition(".")
            setattr(module.get_submodule(owner), own, module.get_parameter(first))
#if LOCAL_SIZES
    for pattern, sizes in LOCAL_SIZES.items():
        for name in matching(module, [pattern]):
            local_sizes(module.get_submodule(name), sizes)
#end
#end


def parallelize(module, mesh):
    """What this rank trains: the module, or its stages. Changes the module."""
#if TF32
    torch.set_float32_matmul_precision("high")
#end
#if STAGES
    here = mesh.get_local_rank("{{STAGES}}")
    parts = [Stage(module, STAGE_MODULES, STAGE_BEGINS, i, loss_of) for i, rank in enumerate(STAGE_RANKS) if rank == here]
#if TIED
    for part in parts:  # each stage has a copy
        for names, _ in TIED:
            own = [name for name in names if has(part.module, name)]
            copied = torch.nn.Parameter(part.module.get_parameter(own[0]).detach().clone()) if own else None
            for name in own:
                owner, _, leaf = name.rpartition(".")
                setattr(part.module.get_submodule(owner), leaf, copied)
#end
#if ENTERS
    from torch.distributed.tensor import {{ENTER_PLACEMENTS}}
    entering = {{ENTERS}}
#end
    for part in parts:
#if TENSOR
        tensor_parallel(part.module, mesh["{{TENSOR}}"])
#end
#if RECOMPUTE
        recompute(part.module)
#end
#if ENTERS
        index = STAGE_MODULES.index(part.names)
        if entering[index] is not None:
            part.enter = lambda value, at=entering[index]: DTensor.from_local(value, mesh["{{TENSOR}}"], [at], run_check=False)
        part.leave = lambda value: value.to_local() if isinstance(value, DTensor) else value
#end
        part.begin()
#if AUTOCAST
        in_precision(part)
#end
#if FSDP
        shard(part, part.module, mesh)
#end
    return parts
#else
#if TENSOR
    tensor_parallel(module, mesh["{{TENSOR}}"])
#end
#if RECOMPUTE
    recompute(module)
#end
#if AUTOCAST
    in_precision(module)
#end
#if FSDP
    shard(module, module, mesh)
#end
#if DDP
    return [torch.nn.parallel.DistributedDataParallel(module, process_group=mesh["{{DATA}}"].get_group())]
#else
    return [module]
#end
#end
#if AUTOCAST


def in_precision(module):
    plain = module.forward

    def forward(*args, **kwargs):
        with precision(next(module.parameters()).device):
            return plain(*args, **kwargs)

    module.forward = forward
#end
#if RECOMPUTE


def recompute(module):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    for name in matching(module, RECOMPUTED):
        owner, _, own = name.rpartition(".")
        setattr(module.get_submodule(owner), own, checkpoint_wrapper(module.get_submodule(name)))
#end
#if FSDP


def shard(root, module, mesh):
    from torch.distributed.fsdp import fully_shard
    names = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    for name in matching(module, WRAPPED):
        own = module.get_submodule(name).parameters()
        if not all(each.startswith(name + ".") for parameter in own for each in names[parameter]):
            continue  # tied to another module's: with the root's
        fully_shard(module.get_submodule(name), mesh=mesh["{{DATA}}"], reshard_after_forward={{RESHARD}})
    fully_shard(root, mesh=mesh["{{DATA}}"], reshard_after_forward={{RESHARD}})
#end
#if ACCUMULATE


def micro_batches(batch):
    """Parts of a batch, one after another."""
    for i in range(MICRO_BATCHES):
        yield {name: value if BATCH[name] is None else value.chunk(MICRO_BATCHES, BATCH[name])[i] for name, value in batch.items()}
#end
#if CONTEXT


def context(batch, mesh):
    """Cuts sequences, here the inputs', over ranks, and lets attentions see all of them."""
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import _cp_options, set_rotate_method
    _cp_options.enable_load_balance = False  # parts as the plan has them, one after another
    set_rotate_method("{{ROTATE}}")
    cut = {{SEQUENCES}}
    buffers = [batch[name] for name in cut]
    return context_parallel(mesh["{{CONTEXT}}"], buffers=buffers, buffer_seq_dims=list(cut.values()), no_restore_buffers=set(buffers))
#end
#if AVERAGE


def average_gradients(parts, mesh):
    """Of replicas, each of which has seen a part of the batch."""
    for axis in {{AVERAGED}}:
        for part in parts:
            for parameter in part.parameters():
                if parameter.grad is not None:
#if TENSOR
                    grad = parameter.grad.to_local() if isinstance(parameter.grad, DTensor) else parameter.grad
#else
                    grad = parameter.grad
#end
                    dist.all_reduce(grad, group=mesh[axis].get_group())
                    grad /= MESH[axis]
#end
#if STAGES


def schedule(parts, device, mesh):
    """The order in which stages run, PyTorch's own where it has a name."""
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import {{SCHEDULE_CLASS}}
    group = mesh["{{STAGES}}"].get_group()
    here = mesh.get_local_rank("{{STAGES}}")
    own = [i for i, rank in enumerate(STAGE_RANKS) if rank == here]
    stages = [PipelineStage(part, i, len(STAGE_RANKS), device, group=group) for i, part in zip(own, parts)]
#if CHUNKS
    from torch.distributed.pipelining.microbatch import TensorChunkSpec, _Replicate
    chunks = {{CHUNKS}}
    chunks = {"input_" + name: _Replicate if dimension is None else TensorChunkSpec(dimension) for name, dimension in chunks.items()}
#else
    chunks = None  # along the first dimension
#end

    def mean(loss, _):
        return loss.squeeze() / MICRO_BATCHES

    settings = dict(n_microbatches=MICRO_BATCHES, loss_fn=mean, kwargs_chunk_spec=chunks, scale_grads=False)
#if CSV
    made = {{SCHEDULE_CLASS}}(stages, **settings)
    made._load_csv(os.path.join(os.path.dirname(os.path.abspath(__file__)), "schedule.csv"), format="compute_only")
    return made
#else
#if SINGLE
    return {{SCHEDULE_CLASS}}(stages[0], **settings)
#else
    return {{SCHEDULE_CLASS}}(stages, **settings)
#end
#end
#end
#if TIED


def has(module, name):
    """False for parameters of other stages."""
    owner, _, leaf = name.rpartition(".")
    try:
        return leaf in module.get_submodule(owner)._parameters
    except AttributeError:
        return False


class Tied:
    """Parameters that stages share: each has a copy, and their gradients are added up."""

    def __init__(self, parts, mesh):
        dimension = mesh.mesh_dim_names.index("{{STAGES}}")
        lines = mesh.mesh.movedim(dimension, -1).reshape(-1, mesh.mesh.size(dimension)).tolist()
        self.groups = []
        for names, places in TIED:
            own = [part.module.get_parameter(name) for part in parts for name in names if has(part.module, name)]
            for line in lines:
                ranks = sorted({line[place] for place in places})
                group = dist.new_group(ranks) if len(ranks) > 1 else None
                if dist.get_rank() in ranks:
                    self.groups.append((list(dict.fromkeys(own)), group))

    def add_up(self):
        for parameters, group in self.groups:
#if LOCAL_TENSORS
            for each in parameters:
                if isinstance(each.grad, DTensor):  # which may lie otherwise than its parameter
                    each.grad = each.grad.redistribute(placements=each.placements)
            grads = [each.grad.to_local() if isinstance(each.grad, DTensor) else each.grad for each in parameters]
#else
            grads = [each.grad for each in parameters]
#end
            total = sum(grads[1:], grads[0].clone())
            if group is not None:
                dist.all_reduce(total, group=group)
            for grad in grads:
                grad.copy_(total)
#end
