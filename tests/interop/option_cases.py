"""Small modules of one operator each, with its options: what operators_with_pytorch.py exports and holds against PyTorch.

Each case is a function that makes (module, inputs). The module's loss depends on every operand of the operator through
a weight, so that the gradient of each weight is the gradient of that operand.
"""

import functools
import math

import torch

from torch import nn
from torch.nn import functional as F
from torch._higher_order_ops.associative_scan import associative_scan as scan_of_torch
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

BATCH = 4
CASES = {}
WHOLE_BATCH = set()  # cases that compute over the batch as a whole: micro-batches are refused, or differ


class OneOperator(nn.Module):
    """The mean over the batch of a weighted sum of squares of what `function` makes of scaled inputs and of weights."""

    def __init__(self, function, scales, weights, buffers, reference=None):
        super().__init__()
        self.function = function
        self.reference = reference  # the same function, where PyTorch's gradient of `function` is not its derivative
        self.scales = nn.ParameterList(scales)
        self.weights = nn.ParameterList(weights)
        for name, value in buffers.items():
            self.register_buffer(name, value)
        self.buffers_by_name = list(buffers)

    def forward(self, *inputs):
        scaled = [x * scale if scale.numel() else x for x, scale in zip(inputs, self.scales)]
        buffers = {name: getattr(self, name) for name in self.buffers_by_name}
        results = self.function(*scaled, *self.weights, **buffers)
        losses = []
        for y in results if isinstance(results, (tuple, list)) else [results]:
            y = torch.view_as_real(y) if y.is_complex() else y
            factor = torch.cos(torch.arange(y[0].numel(), dtype=torch.float32)).reshape(y[0].shape)
            losses.append((y * y * factor + y * (factor * factor + 0.1)).flatten(1).sum(1).mean())
        return sum(losses[1:], losses[0])


def add(name, function, *shapes, weights=(), buffers=None, draw=torch.randn, whole=False, reference=None):
    """`shapes` of the inputs without the batch; a tensor in their place is an input as it is, without a scale."""
    def make():
        torch.manual_seed(3)
        inputs, scales = [], []
        for shape in shapes:
            if torch.is_tensor(shape):
                inputs.append(shape)
                scales.append(nn.Parameter(torch.zeros(0), requires_grad=False))
            else:
                inputs.append(draw(BATCH, *shape))
                scales.append(nn.Parameter(1 + 0.3 * torch.rand(*shape)))
        stored = [nn.Parameter(w if torch.is_tensor(w) else 0.5 * torch.randn(*w)) for w in weights]
        return OneOperator(function, scales, stored, buffers or {}, reference), tuple(inputs)
    CASES[name] = make
    if whole:
        WHOLE_BATCH.add(name)


def indices(high, *shape, seed=5):
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))


# --- unfold and fold ----------------------------------------------------------------------------------------------

for axis, size, step in ((-1, 4, 2), (1, 3, 1), (-1, 3, 3), (2, 5, 4), (-1, 9, 1), (1, 1, 2)):
    add(f"unfold_{axis}_{size}_{step}", lambda x, a=axis, s=size, t=step: x.unfold(a, s, t), (5, 9))
add("unfold_twice", lambda x: x.unfold(2, 3, 2).unfold(3, 3, 2), (2, 7, 9))
add("unfold_patches", lambda x, w: x.unfold(-1, 8, 4) @ w, (3, 24), weights=[(8, 6)])
for number, options in enumerate((dict(kernel_size=3), dict(kernel_size=2, stride=2), dict(kernel_size=(2, 3), padding=1),
                                  dict(kernel_size=3, dilation=2, padding=2), dict(kernel_size=3, stride=(2, 1), padding=(0, 1)))):
    add(f"im2col_{number}", lambda x, o=options: F.unfold(x, **o), (2, 6, 7))
for number, options in enumerate((dict(kernel_size=3), dict(kernel_size=2, stride=2), dict(kernel_size=(2, 3), padding=1),
                                  dict(kernel_size=3, dilation=2, padding=2), dict(kernel_size=3, stride=(2, 1), padding=(0, 1)))):
    def patches(o=options):
        return F.unfold(torch.zeros(1, 2, 6, 8), **o).shape[1:]
    add(f"col2im_{number}", lambda x, o=options: F.fold(x, (6, 8), **o), tuple(patches()))
add("fold_of_unfold", lambda x: F.fold(F.unfold(x, 3, padding=1, stride=2), (6, 8), 3, padding=1, stride=2), (2, 6, 8))


# --- complex numbers ----------------------------------------------------------------------------------------------

def rotary_table(length, half):
    angles = torch.outer(torch.arange(length).float(), 1.0 / 10000 ** (torch.arange(half).float() / half))
    return torch.polar(torch.ones_like(angles), angles)


def rotary(x, table):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * table.view(1, x.shape[1], 1, -1)).flatten(3).type_as(x)


def as_complex(x):
    return torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))


ROTARY = {"table": rotary_table(16, 4)}
add("rotary_buffer", lambda x, table: rotary(x, table[: x.shape[1]]), (6, 2, 8), buffers=ROTARY)
add("rotary_positions", lambda x, table: rotary(x, table[torch.arange(x.shape[1])]), (6, 2, 8), buffers=ROTARY)
add("rotary_polar", lambda x: rotary(x, rotary_table(6, 4)), (6, 2, 8))
add("rotary_learned_angles", lambda x, a: rotary(x, torch.polar(torch.ones_like(a), a)), (6, 2, 8), weights=[(6, 4)])
add("rotary_llama4", lambda x, a: torch.view_as_real(
    as_complex(x) * torch.polar(torch.ones_like(a), a)[None, :, None, :]).flatten(3).type_as(x), (6, 2, 8), weights=[(6, 4)])
add("complex_of_parts", lambda x, y: torch.complex(x, y), (3, 4), (3, 4))
COMPLEX_UNARY = {
    "real": lambda z: z.real, "imag": lambda z: z.imag, "abs": lambda z: z.abs(), "angle": lambda z: z.angle(),
    "conj": lambda z: z.conj(), "conj_physical": lambda z: z.conj().resolve_conj() * 1.0, "neg": lambda z: -z,
    "exp": lambda z: z.exp(), "square": lambda z: z.square(), "pow2": lambda z: z ** 2, "reciprocal": lambda z: 1 / z,
    "power_of": lambda z: z.real ** 2 + z.imag ** 2, "times_i": lambda z: z * 1j, "plus_number": lambda z: z + (2 - 1j),
    "sum": lambda z: z.sum(1), "mean": lambda z: z.mean(-1), "mean_all": lambda z: z.mean((1, 2)),
    "unsqueeze": lambda z: z.unsqueeze(1), "squeeze": lambda z: z.unsqueeze(2).squeeze(2), "reshape": lambda z: z.reshape(BATCH, -1),
    "flatten": lambda z: z.flatten(1), "transpose": lambda z: z.transpose(1, 2), "permute": lambda z: z.permute(0, 2, 1),
    "slice": lambda z: z[:, 1:], "select": lambda z: z[:, 1], "expand": lambda z: z[:, :, None].expand(-1, -1, 3, -1),
    "flip": lambda z: z.flip(1), "roll": lambda z: z.roll(1, 2), "cat": lambda z: torch.cat([z, z * 2], 1),
    "stack": lambda z: torch.stack([z, z.conj()], 1), "chunk": lambda z: z.chunk(2, -1)[0] * z.chunk(2, -1)[1],
    "pad": lambda z: F.pad(z, (1, 2)), "repeat": lambda z: z.repeat(1, 2, 1), "clone": lambda z: z.clone(),
    "sgn": lambda z: z.sgn(), "real_copy": lambda z: torch.view_as_real(z).clone(), "index": lambda z: z[:, torch.tensor([2, 0])],
    "where": lambda z: torch.where(z.real > 0, z, z * 2), "masked": lambda z: z.masked_fill(z.imag > 0.5, 0),
    "to_real": lambda z: (z * z.conj()).real, "gather": lambda z: z.gather(1, torch.zeros(BATCH, 1, 2, dtype=torch.long)),
    "diag": lambda z: torch.view_as_real(z).sum(-1), "isreal": lambda z: z + z.is_complex(),
    "zeros_like": lambda z: z + torch.zeros_like(z), "ones": lambda z: z * torch.ones(4, dtype=torch.complex64),
}
for name, function in COMPLEX_UNARY.items():
    add("complex_" + name, lambda x, f=function: f(as_complex(x)), (3, 8))
COMPLEX_BINARY = {
    "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
    "add_alpha": lambda a, b: torch.add(a, b, alpha=2), "mul_real": lambda a, b: a * b.real, "add_real": lambda a, b: b.real - a,
    "div_real": lambda a, b: a / (b.real ** 2 + 1), "mul_broadcast": lambda a, b: a[:, :, None] * b[:, None],
    "einsum": lambda a, b: torch.einsum("bij,bkj->bik", a, b), "matmul": lambda a, b: a @ b.transpose(1, 2),
    "rsub": lambda a, b: 1.0 - a * b,
}
for name, function in COMPLEX_BINARY.items():
    add("complex_" + name, lambda x, y, f=function: f(as_complex(x), as_complex(y)), (3, 8), (3, 8))
add("complex_weight", lambda x, w: torch.einsum("bix,iox->box", as_complex(x), w), (3, 8),
    weights=[torch.randn(3, 5, 4, dtype=torch.cfloat) * 0.3])
add("complex_weight_pairs", lambda x, w: as_complex(x) * torch.view_as_complex(w), (3, 8), weights=[(3, 4, 2)])
add("complex_matmul_weight", lambda x, w: as_complex(x) @ w, (3, 8), weights=[torch.randn(4, 5, dtype=torch.cfloat) * 0.3])
add("complex_to", lambda x: x.to(torch.complex64) * (1 + 2j), (3, 8))
add("complex_in_place", lambda x: as_complex(x).mul_(2 + 1j).add_(1), (3, 8))
add("complex_write_slice", lambda x, w: _write_slice(x, w), (3, 8), weights=[torch.randn(3, 2, dtype=torch.cfloat)])
add("complex_double", lambda x: torch.view_as_real(as_complex(x.double()) * (1 + 2j)).float(), (3, 8))
add("atan2", lambda x, y: torch.atan2(x, y), (3, 8), (3, 8))


def _write_slice(x, w):
    out = torch.zeros(x.shape[0], 3, 6, dtype=torch.cfloat)
    out[:, :, :2] = as_complex(x)[:, :, :2] * w
    return out


# --- Fourier transforms -------------------------------------------------------------------------------------------

for norm in ("backward", "ortho", "forward"):
    add(f"rfft_{norm}", lambda x, n=norm: torch.fft.rfft(x, norm=n), (3, 8))
    add(f"irfft_{norm}", lambda x, n=norm: torch.fft.irfft(as_complex(x), norm=n), (3, 10))
    add(f"fft_{norm}", lambda x, n=norm: torch.fft.fft(as_complex(x), norm=n), (3, 14))
    add(f"ifft_{norm}", lambda x, n=norm: torch.fft.ifft(as_complex(x), norm=n), (3, 12))
    add(f"rfft2_{norm}", lambda x, n=norm: torch.fft.rfft2(x, norm=n), (5, 6))
    add(f"irfft2_{norm}", lambda x, n=norm: torch.fft.irfft2(as_complex(x), s=(5, 7), norm=n), (5, 8))
add("rfft_odd", lambda x: torch.fft.rfft(x), (3, 9))
add("rfft_dim", lambda x: torch.fft.rfft(x, dim=1), (6, 5))
add("rfft_longer", lambda x: torch.fft.rfft(x, n=12), (3, 8))
add("rfft_shorter", lambda x: torch.fft.rfft(x, n=6), (3, 8))
add("irfft_longer", lambda x: torch.fft.irfft(as_complex(x), n=14), (3, 10))
add("irfft_odd", lambda x: torch.fft.irfft(as_complex(x), n=9, dim=1), (5, 6))
add("fft_real", lambda x: torch.fft.fft(x).real, (3, 8))
add("fnet", lambda x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real, (6, 8))
add("fnet_fft2", lambda x: torch.fft.fft2(x).real, (6, 8))
add("fftn", lambda x: torch.fft.fftn(x, dim=(1, 2)).real, (6, 8))
add("ifft2", lambda x: torch.fft.ifft2(as_complex(x)), (5, 6))
add("ifftn", lambda x: torch.fft.ifftn(as_complex(x), dim=(1, 2)), (5, 6))
add("rfftn", lambda x: torch.fft.rfftn(x, dim=(1, 2, 3), norm="ortho"), (2, 3, 4))
add("irfftn", lambda x: torch.fft.irfftn(as_complex(x), s=(2, 3, 5), dim=(1, 2, 3)), (2, 3, 6))
add("hfft", lambda x: torch.fft.hfft(as_complex(x)), (3, 10))
add("ihfft", lambda x: torch.fft.ihfft(x), (3, 8))
add("fftshift", lambda x: torch.fft.fftshift(torch.fft.fft2(x), dim=(1, 2)), (5, 6))
add("rfft_long", lambda x: torch.fft.rfft(x), (720,))
add("rfft_prime", lambda x: torch.fft.rfft(x), (251,))
add("irfft_long", lambda x: torch.fft.irfft(torch.fft.rfft(x)[:, :100], n=1024), (1024,))
add("gfnet", lambda x, w: torch.fft.irfft2(torch.fft.rfft2(x, dim=(1, 2), norm="ortho") * torch.view_as_complex(w),
                                           s=(6, 6), dim=(1, 2), norm="ortho"), (6, 6, 3), weights=[(6, 4, 3, 2)])


def spectral(x, w):
    spectrum = torch.fft.rfft(x)
    out = torch.zeros(x.shape[0], w.shape[1], spectrum.shape[-1], dtype=torch.cfloat, device=x.device)
    out[:, :, : w.shape[-1]] = torch.einsum("bix,iox->box", spectrum[:, :, : w.shape[-1]], w)
    return torch.fft.irfft(out, n=x.shape[-1])


add("fno_spectral", spectral, (3, 16), weights=[torch.randn(3, 4, 5, dtype=torch.cfloat) * 0.3])
add("autocorrelation", lambda q, k: torch.fft.irfft(torch.fft.rfft(q) * torch.conj(torch.fft.rfft(k)), dim=-1), (3, 12), (3, 12))
add("fft_convolution", lambda x, w: torch.fft.irfft(torch.fft.rfft(x, n=24) * torch.fft.rfft(w, n=24), n=24)[..., :12],
    (3, 12), weights=[(3, 12)])
WINDOW = {"window": torch.hann_window(8)}
for number, options in enumerate((dict(n_fft=8, hop_length=4), dict(n_fft=8, hop_length=2, center=False),
                                  dict(n_fft=8, hop_length=4, normalized=True), dict(n_fft=8, hop_length=4, pad_mode="constant"),
                                  dict(n_fft=8, hop_length=4, onesided=False), dict(n_fft=12, hop_length=3, win_length=8))):
    add(f"stft_{number}", lambda x, window, o=options: torch.stft(x, **o, window=window, return_complex=True), (32,), buffers=WINDOW)
add("stft_power", lambda x, window: torch.stft(x, 8, 4, window=window, return_complex=True).abs() ** 2, (32,), buffers=WINDOW)
add("stft_no_window", lambda x: torch.stft(x, 8, 4, return_complex=True), (32,))
for number, options in enumerate((dict(n_fft=8, hop_length=4), dict(n_fft=8, hop_length=2, length=30),
                                  dict(n_fft=8, hop_length=4, normalized=True))):
    add(f"istft_{number}", lambda x, window, o=options: torch.istft(torch.stft(x, 8, o["hop_length"], window=window, return_complex=True),
                                                                   **o, window=window), (32,), buffers=WINDOW)


# --- sampling, writing at indices, segments -----------------------------------------------------------------------

for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        for aligned in (False, True):
            add(f"grid_{mode}_{padding}_{int(aligned)}", lambda x, g, m=mode, p=padding, a=aligned: F.grid_sample(
                x, g, mode=m, padding_mode=p, align_corners=a), (2, 4, 5), (3, 3, 2))
add("grid_volume", lambda x, g: F.grid_sample(x, g, align_corners=False), (2, 3, 4, 5), (2, 3, 3, 3))
add("affine_grid", lambda x, t: F.grid_sample(x, F.affine_grid(t, x.shape, align_corners=False), align_corners=False),
    (2, 4, 5), (2, 3))

PLACES = indices(5, 7)
for accumulate in (False, True):
    unique = torch.tensor([4, 0, 2])
    place = PLACES if accumulate else unique
    count = len(place)
    add(f"index_put_first_{int(accumulate)}", lambda x, v, w, a=accumulate, p=place: torch.index_put(
        w * 1.0, (p,), v.sum(0), accumulate=a)[None] * x.sum((1, 2))[:, None, None], (2, 3), (count, 3), weights=[(5, 3)], whole=True)
    add(f"index_put_second_{int(accumulate)}", lambda x, v, a=accumulate, p=place: torch.index_put(
        x, (torch.arange(BATCH)[:, None], p[None]), v, accumulate=a), (5, 3), (count, 3))
    add(f"index_put_column_{int(accumulate)}", lambda x, v, a=accumulate, p=place: _put_column(x, v, p, a), (5, 3), (count, 3))
    add(f"index_put_scalar_{int(accumulate)}", lambda x, a=accumulate, p=place: _put_column(x, torch.tensor(0.5), p, a), (5, 3))
    add(f"index_put_mask_{int(accumulate)}", lambda x, a=accumulate: torch.index_put(
        x, (x > 0.3,), torch.tensor(2.0), accumulate=a), (5, 3))
    add(f"index_put_pair_{int(accumulate)}", lambda x, v, a=accumulate, p=place: torch.ops.aten.index_put(
        x, [None, p, torch.zeros_like(p)], v, a), (5, 3), (count,))
    add(f"index_put_last_{int(accumulate)}", lambda x, v, a=accumulate, p=place: torch.ops.aten.index_put(
        x, [None, None, p], v, a), (3, 5), (3, count))
    add(f"index_put_row_mask_{int(accumulate)}", lambda x, a=accumulate: torch.ops.aten.index_put(
        x, [x[:, :, 0] > 0], torch.tensor([1.0, -2.0, 0.5]), a), (5, 3))
add("index_assign", lambda x, v: _assign(x, v), (5, 3), (2, 3))
add("index_add_assign", lambda x, v: _add_assign(x, v), (5, 3), (7, 3))
add("write_every_second", lambda x, v: _every_second(x, v), (5, 3), (3, 3))
add("mask_assign", lambda x: _mask_assign(x), (5, 3))


def _put_column(x, v, places, accumulate):
    return torch.ops.aten.index_put(x, [None, places], v, accumulate)


def _assign(x, v):
    y = x.clone()
    y[:, torch.tensor([3, 1])] = v
    return y


def _every_second(x, v):
    y = x.clone()
    y[:, 0::2] = v
    return y


def _add_assign(x, v):
    y = x.clone()
    return y.index_put_((torch.arange(BATCH)[:, None], PLACES[None]), v, accumulate=True)


def _mask_assign(x):
    y = x.clone()
    y[x > 0.5] = 0.25
    y[:, 1][x[:, 1] < 0] *= 2
    return y


for axis in (1, -1):
    count = 7
    shape = (7, 3) if axis == 1 else (3, 7)
    own = (5, 3) if axis == 1 else (3, 5)
    add(f"index_add_{axis}", lambda x, v, d=axis: x.index_add(d, PLACES, v), own, shape)
    add(f"index_add_{axis}_alpha", lambda x, v, d=axis: x.index_add(d, PLACES, v, alpha=-0.5), own, shape)
    add(f"index_copy_{axis}", lambda x, v, d=axis: x.index_copy(d, torch.tensor([4, 0, 2]), v.narrow(d, 0, 3)), own, shape)
    add(f"index_fill_{axis}", lambda x, d=axis: x.index_fill(d, torch.tensor([4, 0]), 0.5), own)
    for reduce in ("prod", "mean", "amax", "amin"):
        for include in (True, False):
            add(f"index_reduce_{axis}_{reduce}_{int(include)}", lambda x, v, d=axis, r=reduce, i=include: x.index_reduce(
                d, PLACES, v, r, include_self=i), own, shape)
            add(f"scatter_reduce_{axis}_{reduce}_{int(include)}", lambda x, v, d=axis, r=reduce, i=include: x.scatter_reduce(
                d, PLACES.view((1, 7, 1) if d == 1 else (1, 1, 7)).expand_as(v), v, r, include_self=i), own, shape)
    for include in (True, False):
        add(f"scatter_reduce_{axis}_sum_{int(include)}", lambda x, v, d=axis, i=include: x.scatter_reduce(
            d, PLACES.view((1, 7, 1) if d == 1 else (1, 1, 7)).expand_as(v), v, "sum", include_self=i), own, shape)
    add(f"scatter_add_{axis}", lambda x, v, d=axis: x.scatter_add(
        d, PLACES.view((1, 7, 1) if d == 1 else (1, 1, 7)).expand_as(v), v), own, shape)
    add(f"scatter_{axis}", lambda x, v, d=axis: x.scatter(
        d, torch.tensor([4, 0, 2]).view((1, 3, 1) if d == 1 else (1, 1, 3)).expand_as(v.narrow(d, 0, 3)), v.narrow(d, 0, 3)), own, shape)
    add(f"scatter_value_{axis}", lambda x, d=axis: x.scatter(d, torch.zeros(BATCH, 1, 1, dtype=torch.long), 0.5), own)
add("scatter_drawn", lambda x, v, i: x.scatter_add(1, i, v), (5, 3), (7, 3), indices(5, BATCH, 7, 3))
add("index_drawn", lambda x, v, i: torch.index_put(x, (torch.arange(BATCH)[:, None], i), v, accumulate=True), (5, 3), (7, 3),
    indices(5, BATCH, 7))
LENGTHS = torch.tensor([2, 0, 3, 2])
for reduce in ("sum", "mean", "max", "min", "prod"):
    add(f"segment_{reduce}", lambda x, r=reduce: torch.segment_reduce(
        x.transpose(0, 1).contiguous(), r, lengths=LENGTHS, unsafe=True, initial=0.5 if r in ("max", "min", "prod") else None
    )[[0, 2, 3]].transpose(0, 1), (7, 3))
add("segment_offsets", lambda x: torch.segment_reduce(
    x.transpose(0, 1).contiguous(), "sum", offsets=torch.tensor([0, 2, 5, 7]), unsafe=True).transpose(0, 1), (7, 3))


# --- control flow -------------------------------------------------------------------------------------------------

def scanned(x, w, reverse=False, dim=1):
    def step(state, row):
        new = torch.tanh(state @ w + row)
        return new, new * 2
    last, rows = scan(step, x.select(dim, 0) * 0.5, x, dim=dim, reverse=reverse)
    return rows.movedim(dim, 1), last


def scanned_pairs(x, w):
    def step(state, rows):
        a, b = state
        u, v = rows
        a, b = a * torch.sigmoid(u @ w) + b, b + v
        return (a, b), (a * b, {"own": a + 0.5})
    (a, b), (rows, more) = scan(step, (x[:, 0] * 0.1, x[:, 0] * 0.2), (x, x * 2), dim=1)
    return rows.movedim(0, 1) if rows.shape[0] != x.shape[0] else rows, more["own"], a, b


def scanned_nested(x, w):
    def outer(state, row):
        def inner(s, r):
            s = s * 0.5 + r
            return s, s * 1.0
        last, rows = scan(inner, row[:, 0] * 0.5, row, dim=1)
        new = torch.tanh(state @ w + last)
        return new, rows.sum(1)
    last, rows = scan(outer, x[:, 0, 0] * 1.0, x, dim=1)
    return last, rows


def scanned_state_only(x, w):
    last, _ = scan(lambda s, r: (torch.tanh(s @ w) + r, r.sum()), x[:, 0] * 1.0, x, dim=1)
    return last


add("scan", scanned, (6, 4), weights=[(4, 4)])
add("scan_reverse", functools.partial(scanned, reverse=True), (6, 4), weights=[(4, 4)])
add("scan_pairs", scanned_pairs, (6, 4), weights=[(4, 4)])
add("scan_nested", scanned_nested, (3, 5, 4), weights=[(4, 4)])
add("scan_state_only", scanned_state_only, (6, 4), weights=[(4, 4)])
add("scan_one_step", scanned, (1, 4), weights=[(4, 4)])


def associative_scan(combine, rows, combine_mode, **options):
    """Gradients of the pointwise mode are wrong in PyTorch itself, outside of a compiler: 2.15's differ from a loop's."""
    mode = combine_mode if torch.compiler.is_exporting() else "generic"
    return scan_of_torch(combine, rows, combine_mode=mode, **options)


def combined(a, b):
    return a[0] * b[0], a[1] * b[0] + b[1]


for mode in ("pointwise", "generic"):
    for reverse in (False, True):
        add(f"associative_{mode}_{int(reverse)}", lambda x, w, m=mode, r=reverse: associative_scan(
            combined, (torch.sigmoid(x @ w), x), dim=1, reverse=r, combine_mode=m), (6, 4), weights=[(4, 4)])
add("associative_seven", lambda x, w: associative_scan(
    combined, (torch.sigmoid(x @ w), x), dim=1, combine_mode="pointwise")[1], (7, 4), weights=[(4, 4)])
add("associative_sum", lambda x: associative_scan(torch.add, x, dim=1, combine_mode="pointwise"), (5, 4))
add("associative_matrices", lambda x: associative_scan(
    lambda a, b: a @ b, x, dim=1, combine_mode="generic"), (5, 3, 3))


def chosen(x, w):
    return torch.cond(x.sum() > 0, lambda x: torch.log(x.abs() + 1) @ w, lambda x: x + w.sum(0), (x,))


def chosen_unsafe(x, w, sign):
    return torch.cond((x * sign).abs().sum() > 0 if sign > 0 else x.abs().sum() < 0, lambda x: torch.sqrt(x - x) + 1 / (x - x) + w.sum(0),
                      lambda x: x @ w, (x,))


add("cond", chosen, (5, 4), weights=[(4, 4)], whole=True)
add("cond_false", lambda x, w: chosen(-x.abs(), w), (5, 4), weights=[(4, 4)], whole=True)
add("cond_not_finite", lambda x, w: chosen_unsafe(x, w, -1), (5, 4), weights=[(4, 4)], whole=True)
add("cond_known", lambda x, w: torch.cond(x.shape[1] > 3, lambda x: x @ w, lambda x: x + 1, (x,)), (5, 4), weights=[(4, 4)])
add("cond_buffer", lambda x, w, on: torch.cond(on, lambda x: x @ w, lambda x: x - w.sum(), (x,)), (5, 4), weights=[(4, 4)],
    buffers={"on": torch.tensor(True)})
add("cond_input", lambda x, on, w: torch.cond(on.any(), lambda x: (x @ w, x * 2), lambda x: (x - w.sum(), x + 1.5), (x,)), (5, 4),
    torch.tensor([False]), weights=[(4, 4)])
add("cond_nested", lambda x, w: torch.cond(
    x.sum() > 0, lambda x: torch.cond(x[0, 0, 0] > 0, lambda x: x @ w, lambda x: x.sin(), (x,)), lambda x: x.cos(), (x,)), (5, 4),
    weights=[(4, 4)], whole=True)
add("while", lambda x, w: while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, torch.tanh(y @ w)), (torch.tensor(0), x))[1], (5, 4),
    weights=[(4, 4)])
add("while_not_once", lambda x, w: while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, torch.tanh(y @ w)), (torch.tensor(0), x @ w))[1],
    (5, 4), weights=[(4, 4)], reference=lambda x, w: x @ w)


# --- rows that a mask chooses, in parts ----------------------------------------------------------------------------

def last_marked(x, marks, w):
    """The last marked row of each sample, as classifiers of encoders and decoders take it: if all have as many."""
    return torch.tanh((x @ w)[marks.eq(1)]).view(BATCH, -1, w.shape[1])[:, -1, :]


EVEN = torch.tensor([[0, 1, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1], [1, 0, 0, 1, 0, 0]])
UNEVEN = torch.tensor([[0, 1, 0, 0, 0, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1], [1, 0, 0, 1, 0, 0]])
add("last_marked", last_marked, (6, 4), EVEN, weights=[(4, 3)], whole=True)
add("last_marked_uneven", last_marked, (6, 4), UNEVEN, weights=[(4, 3)], whole=True)
add("last_marked_one", last_marked, (6, 4), EVEN * EVEN.flip(1).cumsum(1).flip(1).eq(1), weights=[(4, 3)], whole=True)


def mapped(x, w):
    from torch._higher_order_ops.map import map as each
    return each(lambda row, w: torch.tanh(row @ w), x.transpose(0, 1).contiguous(), w).transpose(0, 1)


add("map", mapped, (5, 4), weights=[(4, 4)])


def again(x, w):
    return torch.utils.checkpoint.checkpoint(lambda x: torch.tanh(x @ w), x, use_reentrant=False)


add("checkpoint", again, (5, 4), weights=[(4, 4)])
