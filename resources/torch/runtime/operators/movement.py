"""Picking elements by indices, and writing them back; places that data choose; moves along one axis."""

import math

import torch

NO_PLACE = -(1 << 40)  # stands for no place, whatever sizes it is added to or multiplied with


def wrapped(indices, extent):
    """Indices from the end as ones from the begin."""
    return torch.where(indices < 0, indices + extent, indices).long()


def embedding(indices, table, first=0):
    """Of rows of a table that begin with row `first` of the whole: zeros for all others."""
    own = indices.long() - first
    inside = (own >= 0) & (own < table.shape[0])
    return table[torch.where(inside, own, 0)] * inside.unsqueeze(-1)


def embedding_backward(dy, indices, rows, first=0, padding=-1):
    own = indices.long() - first
    inside = (own >= 0) & (own < rows)
    if padding >= 0:
        inside = inside & (indices != padding)
    made = dy.new_zeros(rows, dy.shape[-1])
    return made.index_add_(0, torch.where(inside, own, 0).flatten(), (dy * inside.unsqueeze(-1)).flatten(0, -2))


def _own(indices, extent, places, first):
    """Positions in a part whose first is `first` of the whole, and which of them are some."""
    none = indices < -(1 << 31)
    if not places:
        return wrapped(indices, extent), None
    return torch.where(none, 0, indices - first).long(), ~none


def gather(x, indices, axis, places=False, first=0):
    at, there = _own(indices, x.shape[axis], places, first)
    made = x.index_select(axis, at.flatten()).reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])
    if there is None:
        return made
    there = there.reshape(*there.shape, *(1,) * (x.dim() - axis - 1))
    return torch.where(there, made, torch.full((), 1 if x.is_floating_point() else 0, dtype=x.dtype, device=x.device))


def gather_backward(dy, indices, shape, axis, places=False, first=0):
    at, there = _own(indices, shape[axis], places, first)
    if there is not None:
        dy = dy * there.reshape(*there.shape, *(1,) * (len(shape) - axis - 1))
    flat = dy.reshape(*shape[:axis], -1, *shape[axis + 1:])
    return dy.new_zeros(shape).index_add_(axis, at.flatten(), flat)


def _cut(shape, axis, like):
    """The first places of all dimensions but `axis`, as many as indices have."""
    return tuple(slice(None) if d == axis else slice(0, extent) for d, extent in enumerate(like))


def gather_elements(x, axis, indices):
    return x[_cut(x.shape, axis, indices.shape)].gather(axis, indices)


def gather_elements_backward(dy, shape, axis, indices):
    made = dy.new_zeros(shape)
    made[_cut(shape, axis, indices.shape)].scatter_add_(axis, indices, dy)
    return made


def _tuples(indices, shape, batch_dims, places, first):
    """What an index of several dimensions names, as an index for each; and which name something."""
    at, there = [], None
    for d in range(batch_dims):
        view = [1] * (indices.dim() - 1)
        view[d] = -1
        at.append(torch.arange(shape[d], device=indices.device).view(view))
    for q in range(indices.shape[-1]):
        own, some = _own(indices[..., q], shape[batch_dims + q], places, first if q == 0 else 0)
        at.append(own)
        if some is not None:
            there = some if there is None else there & some
    return tuple(torch.where(there, each, 0) if there is not None else each for each in at), there


def gather_nd(x, indices, batch_dims, fill=1, places=False, first=0):
    at, there = _tuples(indices, x.shape, batch_dims, places, first)
    made = x[at]
    if there is None:
        return made
    there = there.reshape(*there.shape, *(1,) * (made.dim() - there.dim()))
    return torch.where(there, made, torch.full((), fill if x.is_floating_point() else 0, dtype=x.dtype, device=x.device))


def gather_nd_backward(dy, indices, shape, batch_dims, places=False, first=0):
    at, there = _tuples(indices, shape, batch_dims, places, first)
    if there is not None:
        dy = dy * there.reshape(*there.shape, *(1,) * (dy.dim() - there.dim()))
    return dy.new_zeros(shape).index_put_(at, dy, accumulate=True)


def scatter_nd(x, indices, updates, add=False, places=False, first=0, reduce=None):
    at, there = _tuples(indices, x.shape, 0, places, first)
    if reduce is not None:
        return _reduced(x, at, there, updates, reduce)
    if there is None:
        return x.index_put(at, updates, accumulate=add)
    if not add:
        return x.index_put(tuple(each[there] for each in at), updates[there])
    return x.index_put(at, updates * there.reshape(*there.shape, *(1,) * (updates.dim() - there.dim())), accumulate=True)


def _reduced(x, at, there, updates, reduce):
    """Elements of x, each put together with all updates that go there."""
    q = len(at)
    row = torch.zeros_like(at[0])
    for each, extent in zip(at, x.shape):
        row = row * extent + each
    rows, run = math.prod(x.shape[:q]), math.prod(x.shape[q:])
    row, updates = row.reshape(-1), updates.reshape(-1, run)
    if there is not None:
        row, updates = row[there.reshape(-1)], updates[there.reshape(-1)]
    return torch.scatter_reduce(x.reshape(rows, run), 0, row.unsqueeze(1).expand(-1, run), updates, reduce).reshape(x.shape)


def padded(x, pads, mode):
    """By what x has itself: "edge", "reflect" or "wrap". Begins of all dimensions, then their ends; negative ones cut off."""
    rank = x.dim()
    for d in range(rank):
        before, after, extent = pads[d], pads[d + rank], x.shape[d]
        if before == 0 and after == 0:
            continue
        at = torch.arange(-before, extent + after, device=x.device)
        if mode == "edge":
            at = at.clamp(0, extent - 1)
        elif mode == "wrap":
            at = at % extent
        elif extent > 1:
            at = at % (2 * extent - 2)
            at = torch.minimum(at, 2 * extent - 2 - at)
        else:
            at = torch.zeros_like(at)
        x = x.index_select(d, at)
    return x


def scatter_nd_cleared(dy, indices, places=False, first=0):
    """The gradient of what was written over: none where something was."""
    at, there = _tuples(indices, dy.shape, 0, places, first)
    at = at if there is None else tuple(each[there] for each in at)
    return dy.index_put(at, dy.new_zeros(()))


def places(x, kept, axis, in_group, room, columns, first):
    """Where x is not zero, of each of its first `kept` dimensions by itself: so many columns in all, in groups along `axis`
    with so much room each."""
    sets = x.reshape(-1, *x.shape[kept:]) if kept else x.unsqueeze(0)
    rank = x.dim() - kept
    made = torch.full((sets.shape[0], rank, columns), NO_PLACE, dtype=torch.int64, device=x.device)
    for number, each in enumerate(sets):
        at = each.nonzero()
        group = at[:, axis - kept] // in_group
        for g in range(columns // max(room, 1)):
            found = at[group == g][:room]
            made[number, :, g * room:g * room + found.shape[0]] = (found + torch.tensor(first, device=x.device)).t()
    return made.reshape(*x.shape[:kept], rank, columns)


def one_hot(indices, axis, depth, first, columns, on, off, dtype):
    own = indices.long().unsqueeze(axis)
    own = torch.where(own < 0, own + depth, own) - first
    view = [1] * own.dim()
    view[axis] = columns
    is_on = own == torch.arange(columns, device=indices.device).view(view)
    return torch.where(is_on, torch.tensor(on, dtype=dtype, device=indices.device),
                       torch.tensor(off, dtype=dtype, device=indices.device))


def top_k(x, k, axis, largest):
    """Equal elements in their order, as ONNX has them."""
    values, indices = torch.sort(x, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, k).contiguous(), indices.narrow(axis, 0, k).contiguous()


def running_sum(x, axis, from_back=False, exclusive=False):
    made = x.flip(axis) if from_back else x
    made = torch.cumsum(made, axis, dtype=x.dtype)
    if exclusive:
        made = torch.cat((torch.zeros_like(made.narrow(axis, 0, 1)), made.narrow(axis, 0, made.shape[axis] - 1)), axis)
    return made.flip(axis) if from_back else made


def range_of(run, first, count, start, delta, dtype):
    return (start + (first + torch.arange(count, device=run.device)) * delta).to(dtype)


def extreme_backward(dy, x, y, axes, keepdim):
    """Equal extremes share the gradient."""
    if not keepdim:
        for axis in sorted(axes):
            dy, y = dy.unsqueeze(axis), y.unsqueeze(axis)
    hits = x == y
    return torch.where(hits, dy / hits.sum(axes, keepdim=True), 0)


def depth_to_space(x, size, channels_first=False):
    n, c, h, w = x.shape
    if channels_first:
        x = x.view(n, c // size**2, size, size, h, w).permute(0, 1, 4, 2, 5, 3)
    else:
        x = x.reshape(n, size, size, c // size**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return x.reshape(n, c // size**2, h * size, w * size)


def space_to_depth(x, size, channels_first=False):
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // size, size, w // size, size)
    order = (0, 1, 3, 5, 2, 4) if channels_first else (0, 3, 5, 1, 2, 4)
    return x.permute(order).reshape(n, c * size**2, h // size, w // size)
