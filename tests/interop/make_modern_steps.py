#!/usr/bin/env python3
"""Writes what eight AdamW steps make of the models in ../shared/models-modern/with_metadata, by PyTorch, for the tests.

    tests/interop/make_modern_steps.py ../shared/models-modern [FOLDER]

The modules are made again by transformers, with the weights of the files; their loss and gradients must be those stored beside
the files. For each file: NAME.npz with the losses and, of every parameter after the last step, up to 16 elements evenly spread
in the order of the file (`after.TENSOR OF THE FILE`; NaN where the gradient is but rounding, of which AdamW makes whole steps).
Written to tests/engine/runtime/modern. Needs PyTorch, transformers and onnx.
"""

import ast
import pathlib
import re
import sys

import numpy as np
import onnx
import torch
import transformers as hf
from onnx import numpy_helper
from torch import nn
from torch.nn import functional as F

STEPS = 8
LEARNING_RATE = 0.01
MOST_ELEMENTS = 16
FOLDER = pathlib.Path(__file__).resolve().parents[1] / "engine/runtime/modern"

TEXT = dict(vocab_size=192, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
            max_position_embeddings=64)
MODELS = {
    "gpt2_dynamo": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(
        vocab_size=192, n_positions=192, n_embd=48, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)),
    "llama_dynamo": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**TEXT, num_key_value_heads=2)),
    "gemma3_dynamo": lambda: hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(
        **TEXT, num_key_value_heads=2, head_dim=16, sliding_window=8, query_pre_attn_scalar=16)),
    "qwen3_moe_dynamo": lambda: hf.Qwen3MoeForCausalLM(hf.Qwen3MoeConfig(
        **TEXT, num_key_value_heads=2, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)),
    "vit_dynamo": lambda: hf.ViTForImageClassification(hf.ViTConfig(
        hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=32, patch_size=8,
        num_labels=10, hidden_dropout_prob=0, attention_probs_dropout_prob=0)),
}
MODELS["llama_dynamo_unoptimized"] = MODELS["llama_dynamo"]


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, inputs, labels):
        return self.model(inputs, labels=labels).loss


def metadata(values, ending):
    return {value.name: each.value for value in values for each in value.metadata_props if each.key.endswith(ending)}


def stored_parameters(path):
    """(initializer, parameter, how the file has it) for each; how: "same", "turned" or "shifted"."""
    graph = onnx.load(path).graph
    signature = next(each.value for each in graph.metadata_props if each.key.endswith("graph_signature"))
    parameters = set(re.findall(r"PARAMETER target='([^']+)'", signature))
    values = [*graph.value_info, *graph.input]
    kinds = metadata(values, "InputSpec.kind")
    folded = {name: ast.literal_eval(text) for name, text in metadata(values, "folded_from").items()}
    for initializer in graph.initializer:
        name, array = initializer.name, numpy_helper.to_array(initializer)
        if "PARAMETER" in kinds.get(name, ""):
            yield name, array, name, "same"
        source = [each for each in folded.get(name, []) if each in parameters]
        if len(source) == 1 and array.dtype == np.float32:
            added = re.match(r"add(_\d+)?$", name)
            turned = re.match(r"val_\d+$", name) and array.ndim == 2
            yield name, array, source[0], "shifted" if added else "turned" if turned else "same"


def as_module(array, how, shape):
    array = array.T if how == "turned" else array - np.float32(1) if how == "shifted" else array
    return np.ascontiguousarray(array[:1] if array.shape[1:] == shape[1:] and shape[0] == 1 else array)


def as_file(array, how):
    return array.T if how == "turned" else array + np.float32(1) if how == "shifted" else array


def spread(array):
    flat = array.reshape(-1)
    return flat[::-(-len(flat) // MOST_ELEMENTS)]


def check(name, loss, stored, own, models):
    """The module is that of the file if its loss and gradients are those beside it."""
    expected = np.load(models / f"{name}.grads.npz")
    io = np.load(models / f"{name}.io.npz")
    assert abs(loss - float(io["out.loss"])) < 1e-5, f"{name}: loss {loss}, the file has {float(io['out.loss'])}"
    least = 1e-4 * max(np.abs(expected[each]).max() for each in expected.files)
    for initializer, _, parameter, how in stored:
        if "grad." + initializer in expected.files:
            there = expected["grad." + initializer]
            here = as_file(own[parameter].grad.numpy(), "turned" if how == "turned" else "same")
            error = np.abs(here - there).max() / max(np.abs(there).max(), least)
            assert error < 1e-3, f"{name}: gradient of {initializer} differs by {error}"


def write(models, name, folder):
    torch.manual_seed(0)
    module = WithLoss(MODELS[name]())
    if hasattr(module.model, "set_experts_implementation"):
        module.model.set_experts_implementation("batched_mm")
    module.train()
    stored = list(stored_parameters(models / "with_metadata" / f"{name}.onnx"))
    own = dict(module.named_parameters(remove_duplicate=False))
    given = set()
    with torch.no_grad():
        for _, array, parameter, how in stored:
            own[parameter].copy_(torch.from_numpy(as_module(array, how, own[parameter].shape).copy()))
            given.add(own[parameter].data_ptr())
    assert all(value.data_ptr() in given for value in own.values()), f"{name}: the file lacks parameters"
    io = np.load(models / f"{name}.io.npz")
    labels = torch.from_numpy(io["in.labels"])
    inputs = next(torch.from_numpy(io[each]) for each in io.files if each.startswith("in.") and each != "in.labels")
    optimizer = torch.optim.AdamW(module.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    losses = []
    smallest = {}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = module(inputs, labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            check(name, losses[0], stored, own, models)
        for parameter, value in own.items():
            size = value.grad.abs()
            smallest[parameter] = size if step == 0 else torch.minimum(smallest[parameter], size)
        optimizer.step()
    rounding = 1e-5 * max(value.max().item() for value in smallest.values())
    after = {}
    for initializer, _, parameter, how in stored:
        value = torch.where(smallest[parameter] > rounding, own[parameter], torch.nan).detach().numpy()
        after["after." + initializer] = spread(as_file(value, how))
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{name}.npz", losses=np.array(losses, np.float32), **after)
    print(name, *("%.5f" % loss for loss in losses))


def main():
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else FOLDER
    for name in sorted(MODELS):
        write(pathlib.Path(sys.argv[1]), name, folder)


if __name__ == "__main__":
    main()
