#!/usr/bin/env python3
"""Writes the programs that tests read as tests/engine/frontend/pt2, with PyTorch's gradients, and the losses of eight AdamW
steps.

    tests/interop/make_pt2_files.py [FOLDER] [--only operators]

Needs PyTorch 2.8 or newer. The files are committed: run this after changing what they should hold.
"""

import argparse
import copy
import pathlib
import re
import zipfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import option_cases
import operator_cases

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "engine/frontend/pt2"

# Cases of option_cases.py by the program that holds them.
OPERATORS = {
    "windows": ["unfold_-1_4_2", "unfold_twice", "im2col_3", "im2col_4", "col2im_2", "col2im_3"],
    "complex": ["rotary_buffer", "rotary_learned_angles", "complex_weight", "complex_div", "complex_abs", "complex_angle",
                "complex_exp", "complex_pow2", "complex_cat", "complex_masked", "complex_times_i", "complex_in_place"],
    "fourier": ["rfft_ortho", "irfft_odd", "fft_forward", "fnet", "irfft2_backward", "autocorrelation", "fno_spectral",
                "stft_0", "istft_1", "hfft", "fftshift"],
    "sampling": ["grid_bilinear_zeros_0", "grid_bilinear_reflection_1", "grid_nearest_border_0", "grid_bicubic_zeros_1",
                 "grid_volume"],
    "indices": ["index_put_second_1", "index_put_second_0", "index_put_column_1", "index_put_last_0", "index_put_mask_1",
                "index_put_row_mask_0", "index_add_-1_alpha", "index_copy_1", "index_fill_-1", "scatter_reduce_1_mean_0",
                "scatter_reduce_-1_amax_1", "index_reduce_1_prod_0", "index_reduce_-1_amin_1", "segment_mean", "segment_max",
                "segment_offsets", "write_every_second"],
    "control": ["scan", "scan_nested", "associative_pointwise_1", "while", "cond", "cond_not_finite", "cond_known"],
    "chosen": ["last_marked", "last_marked_uneven"],
}


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x, mask):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3 * self.heads, -1)).transpose(1, 2).chunk(3, 1)
        y = F.scaled_dot_product_attention(q, k, v, mask)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(x)))


class Transformer(nn.Module):
    """Two layers, a table that is the head's weight as well, a row of padding, and a mask as a buffer."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8, padding_idx=0)
        self.layers = nn.ModuleList(Layer(8, 2) for _ in range(2))
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("mask", torch.ones(6, 6).tril())

    def forward(self, tokens, labels):
        x = self.table(tokens)
        for layer in self.layers:
            x = layer(x, self.mask.bool())
        return F.cross_entropy(self.head(x).reshape(-1, 11), labels.reshape(-1))


class Convolutions(nn.Module):
    """Batch normalisation in training, and activations and sums in place."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.deep = nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False)
        self.head = nn.Linear(4, 3)

    def forward(self, image, labels):
        x = self.relu(self.norm(self.conv(image)))
        y = self.deep(x)
        y += x
        y = F.max_pool2d(self.relu(y), 2)
        return F.cross_entropy(self.head(F.adaptive_avg_pool2d(y, 1).flatten(1)), labels)


class Writes(nn.Module):
    """Parts of tensors written in place, gradients stopped, weights that are frozen or lie turned in memory."""

    def __init__(self):
        super().__init__()
        self.turned = nn.Parameter(torch.randn(5, 3).t())
        self.frozen = nn.Parameter(torch.randn(5), requires_grad=False)
        self.factor = torch.tensor([0.5, 2.0, -1.0, 3.0, 0.25])

    def forward(self, x):
        y = (x @ self.turned) * self.factor + self.frozen
        z = y.clone()
        z[:, 1:3] = z[:, 1:3] * 2 - 1
        z[0].add_(1.5)
        z[..., -1] = 0.0
        with torch.no_grad():
            scale = y.abs().max()
        w = z / scale + y.detach() * y
        return w.square().mean(), w


class Patches(nn.Module):
    """Windows of an image as columns, and blocks of it as channels."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)
        self.columns = nn.Linear(3 * 6, 4)
        self.blocks = nn.Conv2d(12, 4, 1)

    def forward(self, image):
        x = torch.tanh(self.conv(image))
        y = self.columns(F.unfold(x, (3, 2), dilation=(1, 2), padding=1, stride=2).transpose(1, 2))
        return y.square().mean() + self.blocks(F.pixel_unshuffle(x, 2)).square().mean()


class Grouped(nn.Module):
    """Attention whose heads share keys and values, as `spread` hands these to the heads."""

    def __init__(self, heads, key_heads, size, spread):
        super().__init__()
        self.heads, self.key_heads, self.size, self.spread = heads, key_heads, size, spread
        self.q = nn.Linear(heads * size, heads * size)
        self.k = nn.Linear(heads * size, key_heads * size)
        self.v = nn.Linear(heads * size, key_heads * size, bias=False)
        self.o = nn.Linear(heads * size, heads * size)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (made.view(batch, length, -1, self.size).transpose(1, 2) for made in (self.q(x), self.k(x), self.v(x)))
        y = self.spread(q, k, v, self.heads // self.key_heads)
        return x + self.o(y.transpose(1, 2).reshape(batch, length, -1))


def spread_by_option(q, k, v, times):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def spread_by_repeat(q, k, v, times):
    k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
    return F.scaled_dot_product_attention(q, k, v)


def spread_by_expand(q, k, v, times):
    k, v = (y[:, :, None].expand(-1, -1, times, -1, -1).reshape(q.shape) for y in (k, v))
    return (q @ k.transpose(2, 3) / q.shape[-1] ** 0.5).softmax(-1) @ v


def spread_by_broadcast(q, k, v, times):
    return (q @ k.transpose(2, 3) / q.shape[-1] ** 0.5).softmax(-1) @ v


class GroupedHeads(nn.Module):
    """One attention of each way to share keys and values; all but the last of eight heads over two of keys."""

    def __init__(self):
        super().__init__()
        self.option = Grouped(8, 2, 4, spread_by_option)
        self.repeat = Grouped(8, 2, 4, spread_by_repeat)
        self.expand = Grouped(8, 2, 4, spread_by_expand)
        self.single = Grouped(8, 1, 4, spread_by_expand)
        self.broadcast = Grouped(8, 1, 4, spread_by_broadcast)

    def forward(self, x, target):
        return F.mse_loss(self.broadcast(self.single(self.expand(self.repeat(self.option(x))))), target)


class Several(nn.Module):
    """The sum of several modules' losses, each of its own inputs."""

    def __init__(self, modules, counts):
        super().__init__()
        self.parts = nn.ModuleList(modules)
        self.counts = counts

    def forward(self, *inputs):
        losses = []
        for part, count in zip(self.parts, self.counts):
            losses.append(part(*inputs[:count]))
            inputs = inputs[count:]
        return torch.stack(losses).sum()


def several(names):
    made = [option_cases.CASES[name]() for name in names]
    return Several([module for module, _ in made], [len(inputs) for _, inputs in made]), sum((inputs for _, inputs in made), ())


def losses_of(module, inputs, steps=8):
    """Of steps of AdamW without weight decay, at a rate of 0.01."""
    module = copy.deepcopy(module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01, weight_decay=0.0)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        result = module(*inputs)
        loss = result if torch.is_tensor(result) else result[0]
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return np.array(losses, dtype=np.float32)


def save_small(exported, path):
    """As torch.export.save writes it, without what only people read: small, and without paths of a machine."""
    whole = path.with_suffix(".whole.pt2")
    torch.export.save(exported, whole)
    with zipfile.ZipFile(whole) as archive, zipfile.ZipFile(path, "w") as small:
        for entry in archive.infolist():
            if "/sample_inputs/" in entry.filename:
                continue
            content = archive.read(entry)
            if entry.filename.endswith("/models/model.json"):
                content = re.sub(rb'"stack_trace": "(\\.|[^"\\])*", ', b"", content)
            inside = re.sub("^[^/]*/", "model/", entry.filename)
            small.writestr(inside, content, zipfile.ZIP_DEFLATED if len(content) > 20_000 else zipfile.ZIP_STORED)
    whole.unlink()


def save(folder, name, module, inputs, shapes=None, core=False):
    exported = torch.export.export(module, inputs, dynamic_shapes=shapes)
    if core:
        exported = exported.run_decompositions()
    save_small(exported, folder / (name + ".pt2"))
    losses = losses_of(module, inputs)
    module.zero_grad()
    result = module(*inputs)
    loss = result if torch.is_tensor(result) else result[0]
    loss.backward()
    names = [spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    arrays = {"in." + key: value.numpy() for key, value in zip(names, inputs)}
    arrays["loss"] = loss.detach().float().numpy()
    arrays["losses"] = losses
    for key, parameter in module.named_parameters():
        if parameter.grad is not None:
            grad = torch.view_as_real(parameter.grad) if parameter.is_complex() else parameter.grad
            arrays["grad." + key] = grad.contiguous().float().numpy()
    np.savez(folder / (name + ".npz"), **arrays)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=FOLDER)
    parser.add_argument("--only", choices=["operators"])
    options = parser.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, cases in OPERATORS.items():
        module, inputs = several(cases)
        for core in (False, True):
            save(folder, f"operators_{name}" + ("_core" if core else ""), module, inputs, core=core)
        (folder / f"operators_{name}_core.npz").unlink()  # the same values
    if options.only:
        return
    torch.manual_seed(3)
    tokens = torch.tensor([[1, 5, 0, 3, 9, 2], [4, 4, 7, 0, 0, 10], [8, 1, 1, 6, 2, 3]])
    labels = torch.tensor([[5, 0, 3, 9, 2, -100], [4, 7, 1, 2, -100, -100], [1, 1, 6, 2, 3, 10]])
    batch = torch.export.Dim("batch", min=2, max=64)
    transformer = Transformer()
    for core in (False, True):
        save(folder, "transformer_core" if core else "transformer", transformer, (tokens, labels),
             ({0: batch}, {0: batch}), core)
    save(folder, "convolutions", Convolutions().train(), (torch.randn(2, 2, 6, 6), torch.tensor([2, 0])))
    save(folder, "writes", Writes(), (torch.randn(4, 3),))
    save(folder, "grouped_heads", GroupedHeads(), (torch.randn(4, 8, 32), torch.randn(4, 8, 32)))
    save(folder, "patches", Patches(), (torch.randn(2, 2, 6, 8),))
    for name, cases in operator_cases.STORED.items():
        save(folder, name, *operator_cases.make_together(cases))
        if name in operator_cases.STORED_CORE:
            save(folder, name + "_core", *operator_cases.make_together(cases), core=True)
            (folder / (name + "_core.npz")).unlink()  # the same values
    half = Transformer()
    save(folder, "transformer_bf16", half.to(torch.bfloat16), (tokens, labels))
    save(folder, "transformer_fp16", half.to(torch.float16), (tokens, labels))


if __name__ == "__main__":
    main()
