#!/usr/bin/env python3
"""Writes the mixtures of experts that tests/engine/frontend/mixtures_test.cpp reads, with PyTorch's losses and
gradients.

    tests/interop/make_mixture_files.py [FOLDER]

Needs PyTorch 2.8 or newer, onnx and onnxscript. The files are committed: run this after changing what they should
hold.
"""

import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional as F

from make_pt2_files import save_small

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "engine/frontend/mixtures"
WIDTH, INNER, EXPERTS, CHOICES, TOKENS = 8, 12, 4, 2, 11


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, INNER)
        self.down = nn.Linear(INNER, WIDTH)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Loop(nn.Module):
    """A loop over experts, as transformers 4 wrote Mixtral: torch.where of a one-hot mask, index_add."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(Expert() for _ in range(EXPERTS))

    def choose(self, x):
        weights, choice = torch.topk(torch.softmax(self.gate(x), -1), CHOICES, dim=-1)
        return weights / weights.sum(-1, keepdim=True), choice

    def forward(self, x):
        weights, choice = self.choose(x)
        mask = F.one_hot(choice, EXPERTS).permute(2, 1, 0)
        y = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            slot, token = torch.where(mask[e])
            rows = expert(x[None, token].reshape(-1, WIDTH)) * weights[token, slot, None]
            y = y.index_add(0, token, rows)
        return y


class Masks(Loop):
    """Rows picked by masks of truth values."""

    def forward(self, x):
        weights, choice = self.choose(x)
        y = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            hit = choice == e
            rows = hit.any(-1)
            weight = (weights * hit).sum(-1)
            y = y.index_put((rows.nonzero().squeeze(1),), expert(x[rows]) * weight[rows, None], accumulate=True)
        return y


class Assigned(Loop):
    """One expert a token, written where it belongs (NLLB-MoE, Switch)."""

    def forward(self, x):
        weight, choice = torch.softmax(self.gate(x), -1).max(-1)
        y = x.clone()
        for e, expert in enumerate(self.experts):
            y[choice == e] = expert(x[choice == e])
        return y * weight[:, None]


class Picked(nn.Module):
    """Each row picks its expert's weights, as transformers 5 exports its mixtures."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.empty(EXPERTS, 2 * INNER, WIDTH))
        self.bias = nn.Parameter(torch.empty(EXPERTS, 2 * INNER))
        self.down = nn.Parameter(torch.empty(EXPERTS, WIDTH, INNER))

    def forward(self, x):
        weights, choice = torch.topk(torch.softmax(self.gate(x), -1), CHOICES, dim=-1)
        expert = choice.reshape(-1)
        rows = x.repeat_interleave(CHOICES, dim=0)
        rows = torch.bmm(self.up[expert], rows.unsqueeze(-1)).squeeze(-1) + self.bias[expert]
        gate, value = rows.chunk(2, dim=-1)
        rows = torch.bmm(self.down[expert], (F.silu(gate) * value).unsqueeze(-1)).squeeze(-1)
        rows = rows * weights.reshape(-1).unsqueeze(-1)
        return rows.view(x.size(0), CHOICES, WIDTH).sum(dim=1)


class Sorted(Picked):
    """Tokens sorted by expert for a grouped product, as transformers 5 has it where it runs on a GPU."""

    def forward(self, x):
        weights, choice = torch.topk(torch.softmax(self.gate(x), -1), CHOICES, dim=-1)
        expert, order = torch.sort(choice.reshape(-1))
        counts = torch.histc(expert.float(), bins=EXPERTS, min=0, max=EXPERTS - 1)
        ends = torch.cumsum(counts, dim=0, dtype=torch.int32)
        rows = torch._grouped_mm(x[order // CHOICES], self.up.transpose(-2, -1), ends) + self.bias[expert]
        gate, value = rows.chunk(2, dim=-1)
        rows = torch._grouped_mm(F.silu(gate) * value, self.down.transpose(-2, -1), ends)
        rows = rows * weights.reshape(-1)[order].unsqueeze(-1)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.size(0))
        return rows[back].view(x.size(0), CHOICES, WIDTH).sum(dim=1)


class Model(nn.Module):
    def __init__(self, mixture):
        super().__init__()
        self.table = nn.Embedding(TOKENS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.mixture = mixture()
        self.head = nn.Linear(WIDTH, TOKENS)

    def features(self, ids):
        x = self.table(ids)
        return x + self.mixture(self.norm(x).reshape(-1, WIDTH)).reshape(x.shape)

    def forward(self, ids, labels):
        return F.cross_entropy(self.head(self.features(ids)).reshape(-1, TOKENS), labels.reshape(-1))


class Masked(Model):
    """A loss of some tokens alone, and a mean over some rows: sums over rows that data choose."""

    def __init__(self):
        super().__init__(Picked)

    def forward(self, ids, labels):
        x = self.features(ids)
        counted = labels != 3
        loss = F.cross_entropy(self.head(x[counted]), labels[counted])
        return loss + x[ids > 4].square().mean()


def fill(model):
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.5, generator=generator)


def save(folder, name, model, kinds):
    fill(model)
    generator = torch.Generator().manual_seed(6)
    ids, labels = (torch.randint(0, TOKENS, (4, 6), generator=generator) for _ in range(2))
    loss = model(ids, labels)
    loss.backward()
    arrays = {"in.ids": ids, "in.labels": labels, "out.loss": loss.detach()}
    arrays |= {"grad." + key: value.grad for key, value in model.named_parameters()}
    np.savez(folder / (name + ".npz"), **{key: value.numpy() for key, value in arrays.items()})
    for parameter in model.parameters():
        parameter.grad = None
    for kind in kinds:
        if kind == "pt2":
            save_small(torch.export.export(model, (ids, labels)), folder / (name + ".pt2"))
            continue
        path = folder / f"{name}_{kind}.onnx"
        options = {"dynamo": True, "external_data": False} if kind == "dynamo" else {"dynamo": False, "opset_version": 17}
        torch.onnx.export(
            model, (ids, labels), path, input_names=["ids", "labels"], output_names=["loss"], **options)
        file = onnx.load(path)
        for node in file.graph.node: # where in the script it was met is of no use, and large
            for entry in [entry for entry in node.metadata_props if entry.key == "pkg.torch.onnx.stack_trace"]:
                node.metadata_props.remove(entry)
            node.doc_string = ""
        del file.graph.value_info[:]
        onnx.save(file, path)


def main():
    warnings.filterwarnings("ignore")
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    save(folder, "loop", Model(Loop), ["torchscript", "dynamo", "pt2"])
    save(folder, "masks", Model(Masks), ["dynamo"])
    save(folder, "assigned", Model(Assigned), ["pt2"])
    save(folder, "picked", Model(Picked), ["dynamo", "pt2"])
    save(folder, "sorted", Model(Sorted), ["pt2"])
    save(folder, "masked_loss", Masked(), ["torchscript", "pt2"])


if __name__ == "__main__":
    main()
