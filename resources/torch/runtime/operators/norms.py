"""Gradients of norms, and batch normalisation from statistics that devices may share."""

import torch


def layer_norm_backward(dy, x, scale, shape, eps, mask):
    if x is None:  # of the bias alone
        return tuple(dy.flatten(0, -len(shape) - 1).sum(0) if wanted else None for wanted in mask)
    x = x.contiguous()
    _, mean, rstd = torch.native_layer_norm(x, shape, None, None, eps)
    if scale is None and len(mask) > 1 and mask[1]:  # it is not needed for its own gradient
        scale = dy.new_ones(shape)
    bias = None if len(mask) < 3 or not mask[2] else (scale if scale is not None else dy.new_zeros(shape))
    made = torch.ops.aten.native_layer_norm_backward(dy.contiguous(), x, shape, mean, rstd, scale, bias,
                                                     [bool(wanted) for wanted in mask] + [False] * (3 - len(mask)))
    return made[:len(mask)]


def rms_norm_backward(dy, x, scale, shape, eps, mask):
    wide, slope = (each.float() if each.dtype in (torch.float16, torch.bfloat16) else each for each in (x, dy))
    dims = tuple(range(-len(shape), 0))
    rstd = torch.rsqrt(wide.square().mean(dims, keepdim=True) + eps)
    normal = wide * rstd
    d_scale = (slope * normal).flatten(0, -len(shape) - 1).sum(0).to(dy.dtype) if len(mask) > 1 and mask[1] else None
    if not mask[0]:
        return (None, d_scale)[:len(mask)]
    slope = slope if scale is None else slope * scale
    d_x = rstd * (slope - normal * (slope * normal).mean(dims, keepdim=True))
    return (d_x.to(x.dtype), d_scale)[:len(mask)]


def instance_norm_backward(dy, x, scale, eps, mask):
    dims = tuple(range(2, dy.dim()))
    per_channel = (1, -1) + (1,) * len(dims)
    d_bias = dy.sum((0,) + dims) if mask[2] else None
    if x is None:
        return None, None, d_bias
    centred = x - x.mean(dims, keepdim=True)
    rstd = torch.rsqrt(centred.square().mean(dims, keepdim=True) + eps)
    normal = centred * rstd
    d_scale = (dy * normal).sum((0,) + dims) if mask[1] else None
    d_x = None
    if mask[0]:
        slope = dy * scale.view(per_channel)
        d_x = rstd * (slope - slope.mean(dims, keepdim=True) - normal * (slope * normal).mean(dims, keepdim=True))
    return d_x, d_scale, d_bias


# Statistics are of channels, over all samples; with `groups` of groups of channels of each sample. They are divided by the
# number of elements in the whole tensor, so that parts add up. What is as large as x is made in place.


def _joined(sums, groups):
    """Of sums over each channel of each sample."""
    return sums.unflatten(1, (groups, -1)).sum(-1) if groups else sums.sum(0)


def _per_channel(statistic, shape, groups):
    """As it is for each channel, of one sample or of all."""
    return statistic.repeat_interleave(shape[1] // groups, 1) if groups else statistic.unsqueeze(0)


def _spread(vector, shape):
    return vector.reshape(*vector.shape, *(1,) * (len(shape) - 2))


def _places(x):
    return x.flatten(2).sum(-1)


def batch_mean(x, count, groups):
    return _joined(_places(x), groups) / count


def batch_mean_backward(dy, shape, count, groups):
    return _spread(_per_channel(dy / count, shape, groups), shape).expand(shape)


def _centred(x, mean, groups):
    return x - _spread(_per_channel(mean, x.shape, groups), x.shape)


def batch_variance(x, mean, count, groups):
    return _joined(_places(_centred(x, mean, groups).square_()), groups) / count


def batch_variance_backward(dy, x, mean, count, groups, mask):
    slope = _centred(x, mean, groups).mul_(_spread(_per_channel(dy * (2 / count), x.shape, groups), x.shape))
    return slope if mask[0] else None, -_joined(_places(slope), groups) if mask[1] else None


def batch_normalize(x, mean, variance, scale, bias, eps, groups):
    factor = _per_channel(torch.rsqrt(variance + eps), x.shape, groups)
    made = _centred(x, mean, groups).mul_(_spread(factor if scale is None else factor * scale, x.shape))
    return made if bias is None else made.add_(_spread(bias, x.shape))


def batch_normalize_backward(dy, x, mean, variance, scale, eps, groups, mask):
    sums = _places(dy) if mask[1] or mask[4] else None
    d_bias = sums.sum(0) if mask[4] else None
    if variance is None:
        return None, None, None, None, d_bias
    root = torch.rsqrt(variance + eps)
    rstd = _per_channel(root, dy.shape, groups)
    factor = rstd if scale is None else rstd * scale
    d_mean = -_joined(sums * factor, groups) if mask[1] else None
    d_variance = d_scale = None
    if mask[2] or mask[3]:
        slopes = _places(_centred(x, mean, groups).mul_(dy))
        d_variance = -0.5 * _joined(slopes if scale is None else slopes * scale, groups) * root**3 if mask[2] else None
        d_scale = (slopes * rstd).sum(0) if mask[3] else None
    return dy * _spread(factor, dy.shape) if mask[0] else None, d_mean, d_variance, d_scale, d_bias
