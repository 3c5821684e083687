"""What operators of all kinds share."""

import torch

from .. import draw
from ..queues import combined as _combined


def derivative(function, dy, x):
    """The gradient of one operator's input from that of its output."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad(function(x), x, dy)[0]


def derivatives(function, dy, inputs, mask):
    """The same of several inputs, where `mask` wants them; None for the others."""
    with torch.enable_grad():
        inputs = [x.detach().requires_grad_(wanted) if x is not None and x.is_floating_point() else x
                  for x, wanted in zip(inputs, mask)]
        made = function(*inputs)
        if isinstance(made, tuple):
            pairs = [(y, gradient) for y, gradient in zip(made, dy) if gradient is not None]
            made, dy = [y for y, _ in pairs], [gradient for _, gradient in pairs]
        found = iter(torch.autograd.grad(made, [x for x, wanted in zip(inputs, mask) if wanted], dy, allow_unused=True))
    gradients = [next(found) if wanted else None for wanted in mask]
    return tuple(torch.zeros_like(x) if wanted and gradient is None else gradient
                 for x, wanted, gradient in zip(inputs, mask, gradients))


def sum_to(x, shape):
    """Summed over the dimensions along which something of `shape` was broadcast."""
    lead = x.dim() - len(shape)
    dims = list(range(lead)) + [lead + d for d, extent in enumerate(shape) if extent == 1 and x.shape[lead + d] != 1]
    return (x.sum(dims) if dims else x).reshape(shape)


def spread(dy, shape, axes, keepdim):
    """The gradient of a sum over `axes`: the same for every element that was added."""
    if not keepdim:
        for axis in sorted(axes):
            dy = dy.unsqueeze(axis)
    return dy.expand(shape)


def product(x, axes, keepdim):
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis, keepdim)
    return x


def cast(values, dtypes):
    return tuple(x if x is None or dtype is None else x.to(dtype) for x, dtype in zip(values, dtypes))


def value_part(x, part):
    """Summand `part` of a value of which the first one is all."""
    return x.clone() if part == 0 else torch.zeros_like(x)


def assembled(shape, *pieces):
    """Pieces at their places: (piece, where it begins along each dimension)."""
    whole = pieces[0][0].new_empty(shape)
    for piece, begins in pieces:
        whole[tuple(slice(begin, begin + extent) for begin, extent in zip(begins, piece.shape))] = piece
    return whole


def placed(piece, shape, where):
    """Zeros of `shape`, with `piece` where `where` cuts it out."""
    whole = piece.new_zeros(shape)
    where(whole).copy_(piece)
    return whole


def combined(parts, op="sum"):
    return _combined(parts, op)


def _rows(x, like):
    return x.reshape(*x.shape, *(1,) * (like.dim() - x.dim()))


def _weight(own, total):
    return torch.where(torch.isneginf(own), torch.zeros_like(own), torch.exp(own - total))


def weigh(part, own, total):
    """A mean under a softmax over some of its elements, as a summand of that over all: both with their log-sum-exps."""
    return (part * _rows(_weight(own, total), part)).to(part.dtype)


def merge(a, a_sum, b, b_sum):
    """Means under a softmax over two sets of elements: that over both, and its log-sum-exp."""
    total = torch.logaddexp(a_sum, b_sum)
    made = a * _rows(_weight(a_sum, total), a) + b * _rows(_weight(b_sum, total), b)
    return made.to(a.dtype), total


def dropout(x, ratio, seed, m, first, strides):
    """Keeps the elements that `seed` draws by their index in the whole tensor, whichever part of it this is."""
    at = draw.indices([(0, extent) for extent in x.shape], strides, first, x.device)
    kept = draw.kept(m.seed, seed, ratio, at)
    return torch.where(kept, x * (0.0 if ratio >= 1 else 1 / (1 - ratio)), torch.zeros((), dtype=x.dtype, device=x.device))


def prelu(x, slope):
    return torch.where(x < 0, slope * x, x)
