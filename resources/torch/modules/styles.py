"""What PyTorch's styles of tensor parallelism have no word for."""

import ast
import inspect
import textwrap

import torch
from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ParallelStyle


def order_of(size, groups, parts):
    """A dimension that is joined of `groups` equal parts (queries, keys and values), so that each device has its share of each."""
    return torch.arange(size).view(groups, parts, -1).transpose(0, 1).flatten()


def unpacked(tensor, dimension, groups, parts):
    """A whole parameter, or its gradient, as the module has it."""
    return tensor.index_select(dimension, order_of(tensor.size(dimension), groups, parts).argsort().to(tensor.device))


class Cut(ParallelStyle):
    """ColwiseParallel and RowwiseParallel for modules that are neither nn.Linear nor nn.Embedding: `parameters` says of each
    that is cut its dimension, and of how many equal parts it is joined along that; the others are whole."""

    def __init__(self, parameters, input_layouts, desired_input_layouts, output_layouts, use_local_output=True):
        super().__init__()
        self.parameters, self.use_local_output = parameters, use_local_output
        self.input, self.desired, self.output = input_layouts, desired_input_layouts, output_layouts

    def _partition(self, _, module, mesh):
        for name, parameter in list(module.named_parameters(recurse=False)):
            dimension, groups = self.parameters.get(name, (None, 1))
            whole = parameter.detach()
            if groups > 1:
                whole = whole.index_select(dimension, order_of(whole.size(dimension), groups, mesh.size()).to(whole.device))
            placement = Replicate() if dimension is None else Shard(dimension)
            own = nn.Parameter(distribute_tensor(whole, mesh, [placement]), requires_grad=parameter.requires_grad)
            if groups > 1:
                own.packing = (dimension, groups, mesh.size())
            module.register_parameter(name, own)

    def _enter(self, module, inputs, mesh):
        first, *others = inputs
        if not isinstance(first, DTensor):
            first = DTensor.from_local(first, mesh, [self.input], run_check=False)
        return (first.redistribute(placements=[self.desired]), *others)

    def _leave(self, module, output, mesh):
        output = output.redistribute(placements=[self.output])
        return output.to_local() if self.use_local_output else output

    def _apply(self, module, mesh):
        return distribute_module(module, mesh, self._partition, self._enter, self._leave)


SHAPING = {"view", "reshape", "split", "split_with_sizes", "chunk", "tensor_split", "unflatten", "expand", "repeat"}


def local_sizes(module, sizes):
    """Attributes that forward shapes tensors by (`x.view(..., self.num_heads, ...)`), and that are one of `sizes`, become those of
    one device."""
    try:
        code = ast.parse(textwrap.dedent(inspect.getsource(type(module).forward)))
    except (OSError, TypeError, SyntaxError):
        return  # no source to look at
    for call in ast.walk(code):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in SHAPING):
            continue
        for node in ast.walk(ast.Tuple([*call.args, *(each.value for each in call.keywords)])):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                value = getattr(module, node.attr, None)
                if type(value) is int and value in sizes and node.attr not in vars(module).setdefault("_local_sizes", []):
                    setattr(module, node.attr, sizes[value])
                    module._local_sizes.append(node.attr)
