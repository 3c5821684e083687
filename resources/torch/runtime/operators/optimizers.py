"""What updates weights, in place. `part` is the parameter, the box of it that this rank updates, and the step it is in."""

import torch


def _gradient(part, gradient, clip, gradient_factor):
    if gradient_factor != 1.0:
        gradient = gradient * gradient_factor
    part.note(gradient)
    return gradient if clip is None else gradient * clip


def adamw(part, weight, gradient, m, v, lr, betas, eps, weight_decay, clip=None, gradient_factor=1.0):
    """Loshchilov and Hutter, arXiv:1711.05101, as torch.optim.AdamW has it."""
    gradient = _gradient(part, gradient, clip, gradient_factor).to(weight.dtype)
    lr = part.rate(lr)
    m.mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    v.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    denominator = v.sqrt().mul_((1 - betas[1] ** part.update) ** -0.5).add_(eps)
    weight.mul_(1 - lr * weight_decay).addcdiv_(m, denominator, value=-lr / (1 - betas[0] ** part.update))
    return weight, m, v


def sgd(part, weight, gradient, momentum_buffer=None, lr=1e-3, momentum=0.0, weight_decay=0.0, clip=None,
        gradient_factor=1.0):
    """As torch.optim.SGD has it."""
    direction = _gradient(part, gradient, clip, gradient_factor).to(weight.dtype)
    if weight_decay:
        direction = direction.add(weight, alpha=weight_decay)
    if momentum_buffer is not None:
        momentum_buffer.mul_(momentum).add_(direction)
        direction = momentum_buffer
    weight.add_(direction, alpha=-part.rate(lr))
    return (weight, momentum_buffer) if momentum_buffer is not None else weight


def square_sum(gradient, gradient_factor=1.0):
    return (gradient.double() * gradient_factor).square().sum().float()


def clip_factor(squares, most):
    """As torch.nn.utils.clip_grad_norm_ has it: a norm that is no number stays none."""
    return torch.clamp(most / (squares.sqrt() + 1e-6), max=1.0)
