"""Products over windows, and by weights in parts."""

import torch
import torch.nn.functional as F

_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def linear_parts(x, weight, bias=None, transposed=False):
    """A product by several weights at once: [.. k] by [p n k], or [k p n], makes [.. p n]."""
    shape = weight.shape[:2] if transposed else weight.shape[1:]
    flat = weight.flatten(0, 1) if transposed else weight.flatten(1).t()
    return F.linear(x, flat, None if bias is None else bias.flatten()).unflatten(-1, tuple(shape))


def _ones(stride):
    return (1,) * len(stride)


def _around(pads, stride, kernel=None):
    """(what torch pads with by itself, what has to be padded before): pads are F.pad's, less than 0 where a part has more elements
    than its windows see. What torch pads behind and no window reaches is no matter."""
    own, more = [], []
    for d, (begin, end) in enumerate(zip(pads[-2::-2], pads[-1::-2])):
        most = begin if kernel is None else kernel[d] // 2  # torch pads by half a window at most
        whole = 0 <= begin <= most and 0 <= begin - end < stride[d]
        both = begin if whole else max(0, min(begin, end, most))
        own.append(both)
        more[:0] = (0, 0) if whole else (begin - both, end - both)
    return own, more if any(more) else None


def conv(x, weight, pads, stride, dilation=None, groups=1, bias=None):
    """Of a part: `pads` is what stands around its elements."""
    padding, more = _around(pads, stride)
    x = x if more is None else F.pad(x, more)
    return _CONV[len(stride)](x, weight, bias, stride, padding, dilation or _ones(stride), groups)


def _backward(dy, x, weight, padding, stride, dilation, groups, mask):
    return torch.ops.aten.convolution_backward(dy, x, weight, None, list(stride), padding, list(dilation or _ones(stride)),
                                               False, [0] * len(stride), groups, mask)


def conv_input(dy, weight, shape, pads, stride, dilation=None, groups=1, bias=None):
    """The gradient of a convolution's input, of `shape`; and so what a transposed convolution makes."""
    rank = len(stride)
    padding, more = _around(pads, stride)
    padded = list(shape)
    for d in range(rank) if more else ():
        padded[2 + d] += more[2 * (rank - 1 - d)] + more[2 * (rank - 1 - d) + 1]
    like = dy.new_empty(()).expand(padded)
    made = _backward(dy, like, weight, padding, stride, dilation, groups, [True, False, False])[0]
    made = made if more is None else F.pad(made, [-pad for pad in more])
    return made if bias is None else made.add_(bias.reshape(1, -1, *(1,) * rank))


def conv_weight(x, dy, shape, pads, stride, dilation=None, groups=1):
    padding, more = _around(pads, stride)
    x = x if more is None else F.pad(x, more)
    like = dy.new_empty(()).expand(shape)
    return _backward(dy, x, like, padding, stride, dilation, groups, [False, True, False])[1]


def max_pool(x, pads, kernel, stride, dilation=None):
    padding, more = _around(pads, stride, kernel)
    x = x if more is None else F.pad(x, more, value=float("-inf"))
    pool = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[len(kernel)]
    return pool(x, kernel, stride, padding, dilation or _ones(stride))


def average_pool(x, pads, kernel, stride, count_padding=False):
    pool = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[len(kernel)]
    padding, more = _around(pads, stride, kernel)
    if more is None:
        return pool(x, kernel, stride, padding, count_include_pad=count_padding)
    made = pool(F.pad(x, pads), kernel, stride)
    if count_padding:
        return made
    return made / pool(F.pad(torch.ones_like(x[:1, :1]), pads), kernel, stride)


def lp_pool(x, pads, kernel, stride, p=2.0):
    size = torch.Size(kernel).numel()
    return (average_pool(x.abs() ** p, pads, kernel, stride, True) * size) ** (1 / p)
