"""Scaled dot-product attention with the log-sum-exp of its scores, and rotary embeddings."""

import torch

from .. import draw
from .common import sum_to


def _visible(q, k, causal, window, first_query, first_key):
    """Which keys a query sees; None for all."""
    if not causal and window == 0:
        return None
    query = torch.arange(q.shape[-2], device=q.device).unsqueeze(-1) + first_query
    key = torch.arange(k.shape[-2], device=q.device) + first_key
    seen = torch.ones((), dtype=torch.bool, device=q.device)
    if causal:
        seen = key <= query
    if window:
        seen = seen & ((query - key).abs() < window)
    return seen


def _grouped(k, heads):
    """Keys or values for every query head."""
    return k if k.shape[-3] == heads else k.repeat_interleave(heads // k.shape[-3], -3)


def _ungrouped(gradient, heads):
    if gradient is None or gradient.shape[-3] == heads:
        return gradient
    return gradient.unflatten(-3, (heads, -1)).sum(-3)


def _scores(q, k, masks, scale, causal, window, first_query, first_key, softcap, masked_score):
    """(scores, and what they were before masks where a derivative needs them)"""
    scores = (q @ k.mT).mul_(scale)  # large: all that follows is done in its place
    capped = None
    if softcap:
        capped = scores.div_(softcap).tanh_().mul_(softcap).clone()
    for mask in masks:
        if mask.dtype == torch.bool:
            scores.masked_fill_(~mask, float("-inf") if masked_score is None else masked_score)
        else:
            scores.add_(mask)
    visible = _visible(q, k, causal, window, first_query, first_key)
    if visible is not None:
        scores.masked_fill_(~visible, float("-inf"))
    return scores, capped


def _probabilities(scores, log_sum):
    """In the place of the scores. Of a row that sees nothing they are all zero."""
    total = torch.where(torch.isinf(log_sum), torch.zeros_like(log_sum), log_sum)
    return scores.sub_(total.unsqueeze(-1)).exp_()


def _kept(q, keys, dropout):
    if dropout is None:
        return None
    ratio, seed, m, first, strides = dropout
    shape = (*q.shape[:-1], keys)
    at = draw.indices([(0, extent) for extent in shape], strides, first, q.device)
    return draw.kept(m.seed, seed, ratio, at) / (1 - ratio)


def _is_flash(q, k, v, masks, window, softcap, dropout, causal, first_query, first_key):
    """Whether torch's own kernel does it: a square below the diagonal, or all of it."""
    if q.device.type != "cpu" or masks or window or softcap or dropout or q.dim() != 4 or q.shape[-1] != v.shape[-1]:
        return False
    return not causal or (first_query == first_key and q.shape[-2] == k.shape[-2])


def attention(q, k, v, masks=(), scale=1.0, causal=False, window=0, first_query=0, first_key=0, softcap=0.0,
              masked_score=None, dropout=None, keep_probabilities=False):
    """(y, log-sum-exp of each row of scores, probabilities if they are kept)"""
    heads = q.shape[-3]
    k, v = _grouped(k, heads), _grouped(v, heads)
    if not keep_probabilities and _is_flash(q, k, v, masks, window, softcap, dropout, causal, first_query, first_key):
        y, log_sum = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, scale=scale)[:2]
        return y, log_sum, None
    wide = [x.float() if x.dtype in (torch.float16, torch.bfloat16) else x for x in (q, k, v)]
    scores, _ = _scores(wide[0], wide[1], masks, scale, causal, window, first_query, first_key, softcap, masked_score)
    log_sum = torch.logsumexp(scores, -1)
    probabilities = _probabilities(scores, log_sum)
    del scores
    kept = _kept(q, k.shape[-2], dropout)
    y = (probabilities if kept is None else probabilities * kept) @ wide[2]
    return y.to(q.dtype), log_sum, probabilities.to(q.dtype) if keep_probabilities else None


def attention_backward(dy, q, k, v, y, log_sum, masks=(), scale=1.0, causal=False, window=0, first_query=0, first_key=0,
                       softcap=0.0, masked_score=None, dropout=None, mask=()):
    """Gradients of q, k, v and the masks, as far as they are wanted; probabilities are made anew from log_sum."""
    heads, key_heads = q.shape[-3], (k if v is None else v).shape[-3]
    k, v = _grouped(k, heads), None if v is None else _grouped(v, heads)
    if v is not None and y is not None and len(mask) == 3 and _is_flash(q, k, v, masks, window, softcap, dropout, causal,
                                                                       first_query, first_key):
        dq, dk, dv = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            dy, q, k, v, y, log_sum, 0.0, causal, scale=scale)
        return dq, _ungrouped(dk, key_heads), _ungrouped(dv, key_heads)
    dtype = q.dtype
    dy, q, k, v, y = (x.float() if x is not None and x.dtype in (torch.float16, torch.bfloat16) else x
                      for x in (dy, q, k, v, y))
    scores, capped = _scores(q, k, masks, scale, causal, window, first_query, first_key, softcap, masked_score)
    probabilities = _probabilities(scores, log_sum)
    del scores
    kept = _kept(q, k.shape[-2], dropout)
    dv = (probabilities if kept is None else probabilities * kept).mT @ dy if mask[2] else None
    made = [None, None, None if dv is None else _ungrouped(dv, key_heads).to(dtype)]
    if v is not None:
        slope = dy @ v.mT
        if kept is not None:
            slope.mul_(kept)
        slope.sub_((dy * y).sum(-1, keepdim=True)).mul_(probabilities)
        del probabilities, kept
        for wanted, each in zip(mask[3:], masks):
            made.append(sum_to(slope, each.shape).to(each.dtype) if wanted else None)
        for each in masks:
            if each.dtype == torch.bool:
                slope = slope * each
        if softcap:
            slope = slope * (1 - (capped / softcap) ** 2)
        made[0] = (slope @ k).mul_(scale).to(dtype) if mask[0] else None
        made[1] = _ungrouped(slope.mT @ q, key_heads).mul_(scale).to(dtype) if mask[1] else None
    return tuple(made)


def _turned(x, interleaved):
    if interleaved:
        pairs = x.unflatten(-1, (-1, 2))
        return torch.stack((-pairs[..., 1], pairs[..., 0]), -1).flatten(-2)
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def rotary(x, cosine, sine, interleaved=False):
    """Pairs of elements of the last dimension, turned into one another (RoFormer, arXiv:2104.09864)."""
    return x * cosine + _turned(x, interleaved) * sine


def rotary_backward(dy, cosine, sine, interleaved=False):
    return dy * cosine - _turned(dy * sine, interleaved)
