"""Products over windows, and by weights in parts."""

import torch
import torch.nn.functional as F

_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def linear_parts(x, weight, bias=None, transposed=False):
    """A product by several weights at once: [.. k] by [p n k], or [k p n], makes [.. p n]."""
    shape = weight.shape[:2] if transposed else weight.shape[1:]
    flat = weight.flatten(0, 1) if transposed else weight.flatten(1).t()
    made = F.linear(x, flat).unflatten(-1, tuple(shape))
    return made if bias is None else made + bias


def _ones(stride):
    return (1,) * len(stride)


def conv(x, weight, pads, stride, dilation=None, groups=1, bias=None):
    """Of a part: `pads` is what stands around its elements, less than 0 where they are more than its windows see."""
    x = F.pad(x, pads) if any(pads) else x
    return _CONV[len(stride)](x, weight, bias, stride, 0, dilation or _ones(stride), groups)


def _backward(dy, x, weight, pads, stride, dilation, groups, mask):
    zeros = [0] * len(stride)
    return torch.ops.aten.convolution_backward(dy, x, weight, None, list(stride), zeros, list(dilation or _ones(stride)),
                                               False, zeros, groups, mask)


def conv_input(dy, weight, shape, pads, stride, dilation=None, groups=1, bias=None):
    """The gradient of a convolution's input, of `shape`; and so what a transposed convolution makes."""
    rank = len(stride)
    padded = list(shape)
    for d in range(rank):
        padded[2 + d] += pads[2 * (rank - 1 - d)] + pads[2 * (rank - 1 - d) + 1]
    like = dy.new_empty(()).expand(padded)
    made = _backward(dy, like, weight, pads, stride, dilation, groups, [True, False, False])[0]
    made = F.pad(made, [-pad for pad in pads]) if any(pads) else made
    return made if bias is None else made + bias.reshape(1, -1, *(1,) * rank)


def conv_weight(x, dy, shape, pads, stride, dilation=None, groups=1):
    x = F.pad(x, pads) if any(pads) else x
    like = dy.new_empty(()).expand(shape)
    return _backward(dy, x, like, pads, stride, dilation, groups, [False, True, False])[1]


def max_pool(x, pads, kernel, stride, dilation=None):
    x = F.pad(x, pads, value=float("-inf")) if any(pads) else x
    pool = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[len(kernel)]
    return pool(x, kernel, stride, 0, dilation or _ones(stride))


def average_pool(x, pads, kernel, stride, count_padding=False):
    pool = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[len(kernel)]
    if not any(pads):
        return pool(x, kernel, stride)
    made = pool(F.pad(x, pads), kernel, stride)
    if count_padding:
        return made
    return made / pool(F.pad(torch.ones_like(x[:1, :1]), pads), kernel, stride)


def lp_pool(x, pads, kernel, stride, p=2.0):
    size = torch.Size(kernel).numel()
    return (average_pool(x.abs() ** p, pads, kernel, stride, True) * size) ** (1 / p)
