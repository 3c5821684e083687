"""Numbers drawn by seed, name and index alone, so that every plan of a model draws the same."""

import torch

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _signed(value):
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _shifted(x, by):
    """x >> by of 64 bits without a sign."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def _mixed(x):
    """The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), of a number or a tensor of int64."""
    if isinstance(x, torch.Tensor):
        x = (x ^ _shifted(x, 30)) * _signed(0xBF58476D1CE4E5B9)
        x = (x ^ _shifted(x, 27)) * _signed(0x94D049BB133111EB)
        return x ^ _shifted(x, 31)
    x &= _MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & _MASK
    return x ^ x >> 31


def _stepped(x):
    """`_mixed` of the number that follows in the sequence."""
    return _mixed(x + (_signed(_GOLDEN) if isinstance(x, torch.Tensor) else _GOLDEN))


def indices(ranges, strides, first=0, device="cpu"):
    """first + the sum of index x stride over all dimensions, for every element of a box."""
    at = torch.full((), first, dtype=torch.int64, device=device)
    for dimension, (begin, end) in enumerate(ranges):
        line = torch.arange(begin, end, device=device) * strides[dimension]
        at = at.unsqueeze(-1) + line
    return at


def dense_strides(shape):
    strides = [1] * len(shape)
    for dimension in range(len(shape) - 2, -1, -1):
        strides[dimension] = strides[dimension + 1] * shape[dimension + 1]
    return strides


def kept(seed, own_seed, ratio, at):
    """Which elements a dropout keeps, by their indices in the whole tensor."""
    key = _stepped(seed ^ _stepped(own_seed & _MASK))
    bound = int(min(ratio, 1.0) * 2.0**53)
    return _shifted(_stepped(_stepped(at) ^ _signed(key)), 11) >= bound


def seed_of_batch(seed, batch):
    return seed if batch == 0 else _mixed(_mixed(seed) + batch)


def drawn(tensor, seed, ranges):
    """The box `ranges` of a tensor of plan.json, as its rule has it."""
    name_hash = 0xCBF29CE484222325  # FNV-1a
    for byte in tensor["file"]["name"].encode():
        name_hash = ((name_hash ^ byte) * 0x100000001B3) & _MASK
    stream = _mixed(name_hash ^ _mixed((seed + _GOLDEN) & _MASK))
    at = indices(ranges, dense_strides(tensor["shape"]))
    count, length, first, stride = tensor["file"]["runs"]
    at = at + first if count == 1 else first + at // length * stride + at % length
    bits = _mixed(_signed(stream) + (at + 1) * _signed(_GOLDEN))
    rule = tensor["draw"]
    dtype = getattr(torch, tensor["dtype"])
    if dtype.is_floating_point:
        low, high = rule["low"], rule["high"]
        return (low + (high - low) * (_shifted(bits, 40).double() * 2.0**-24)).to(dtype)
    half = _shifted(bits, 1) % rule["count"]  # the remainder of a number without a sign
    return (rule["first"] + (half * 2 + (bits & 1)) % rule["count"]).to(dtype)
