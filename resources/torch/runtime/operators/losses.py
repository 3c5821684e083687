"""Losses over classes, and what they are made of where classes are cut."""

import torch
import torch.nn.functional as F


def _wide(x):
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _classes_second(x, axis):
    """torch has the classes second, or alone."""
    return x if x.dim() == 1 or axis == 1 else x.movedim(axis, 1)


def _item_weights(labels, weights, ignore):
    """What each item counts, and its class: 0 for those to be ignored."""
    valid = torch.ones_like(labels, dtype=torch.bool) if ignore is None else labels != ignore
    safe = torch.where(valid, labels, 0).long()
    counts = valid.float() if weights is None else torch.where(valid, weights[safe], 0)
    return counts, safe


def cross_entropy(logits, labels, axis, weights=None, ignore=None, reduction="sum"):
    return F.cross_entropy(_wide(_classes_second(logits, axis)), labels.long(), weights,
                           ignore_index=-100 if ignore is None else ignore, reduction=reduction)


def cross_entropy_backward(dy, logits, labels, axis, weights=None, ignore=None):
    counts, safe = _item_weights(labels, weights, ignore)
    factor = (dy * counts).unsqueeze(axis if logits.dim() > 1 else 0)
    made = torch.softmax(_wide(logits), axis).mul_(factor)
    made.scatter_add_(axis, safe.unsqueeze(axis), -factor.expand_as(safe.unsqueeze(axis)).to(made.dtype))
    return made.to(logits.dtype)


def nll(log_probabilities, labels, axis, weights=None, ignore=None, reduction="sum"):
    return F.nll_loss(_wide(_classes_second(log_probabilities, axis)), labels.long(), weights,
                      ignore_index=-100 if ignore is None else ignore, reduction=reduction)


def nll_backward(dy, shape, labels, axis, weights=None, ignore=None):
    counts, safe = _item_weights(labels, weights, ignore)
    made = torch.zeros(shape, dtype=dy.dtype, device=dy.device)
    return made.scatter_add_(axis, safe.unsqueeze(axis), -(dy * counts).expand(labels.shape).unsqueeze(axis).to(dy.dtype))


def _here(labels, first, classes):
    own = labels.long() - first
    inside = (own >= 0) & (own < classes)
    return torch.where(inside, own, 0), inside


def class_statistics(logits, labels, axis, first=0):
    """Of the classes from `first` on: their log-sum-exp, and the logit of each label that is among them, else 0."""
    own, inside = _here(labels, first, logits.shape[axis])
    picked = logits.gather(axis, own.unsqueeze(axis)).squeeze(axis)
    return torch.logsumexp(_wide(logits), axis), torch.where(inside, picked, 0)


def class_statistics_backward(d_sum, d_picked, logits, labels, log_sum, axis, first=0):
    like = d_picked if d_sum is None else d_sum
    extent = logits.shape[axis] if logits is not None else None
    if d_sum is not None:
        made = torch.sub(_wide(logits), log_sum.unsqueeze(axis)).exp_().mul_(d_sum.unsqueeze(axis))  # large: in one piece of memory
    else:
        made = torch.zeros_like(_wide(logits))
    if d_picked is not None:
        own, inside = _here(labels, first, extent)
        made.scatter_add_(axis, own.unsqueeze(axis), torch.where(inside, d_picked, 0).unsqueeze(axis).to(made.dtype))
    return made.to(like.dtype if logits is None else logits.dtype)


def class_loss(log_sum, picked, labels, weights=None, ignore=None, reduction="sum"):
    counts, _ = _item_weights(labels, weights, ignore)
    made = counts * (log_sum - picked)
    return made.sum() if reduction == "sum" else made


def class_loss_backward(dy, labels, weights=None, ignore=None):
    """The gradient of the log-sum-exp; that of the label's logit is its opposite."""
    return dy * _item_weights(labels, weights, ignore)[0]


def count_valid(labels, weights=None, ignore=None):
    if weights is None and ignore is not None:
        return torch.count_nonzero(labels != ignore).float()
    return _item_weights(labels, weights, ignore)[0].sum()
