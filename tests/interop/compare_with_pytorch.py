"""Exports small models with PyTorch's default exporter and compares what Planloom makes of them with PyTorch.

    python3 -m venv env && env/bin/pip install torch onnx onnxscript transformers
    env/bin/python tests/interop/compare_with_pytorch.py build/bin/planloom-cli [NAME ...]

For each model, as exported and without metadata: the number of parameters, layers, plans of two micro-batches
(pipeline and 3d), and the losses of eight AdamW steps, which must agree to 1e-4. Needs a network to install; not
part of the test suite. Exit status 1 if anything differs that is not listed in KNOWN.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy
import onnx
import torch
import transformers as hf

STEPS = 8
LEARNING_RATE = 0.01
TOLERANCE = 1e-4
# What the files do not say, by name of the model (with "/stripped" for its file without metadata).
KNOWN = {
    "albert/stripped": "one weight is stored once for each layer that reads it",
    "resnet": "batch normalisation is folded into convolutions",
    "resnet/stripped": "batch normalisation is folded into convolutions",
    "roberta": "padding_idx keeps a row of the table from being trained, which ONNX cannot say",
    "roberta/stripped": "padding_idx, as above",
    "swin": "tables of relative positions and masks are one sum in the file, which a note says",
}

TEXT = dict(vocab_size=192, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
            max_position_embeddings=64)
NO_DROPOUT = dict(hidden_dropout_prob=0, attention_probs_dropout_prob=0)
IMAGE = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=32,
             patch_size=8, num_labels=10)
GPT = dict(vocab_size=192, n_positions=64, n_embd=48, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)


class WithLoss(torch.nn.Module):
    """A model with its cross-entropy, as the graph to export: (inputs.., labels) -> (loss, logits)."""

    def __init__(self, model, names, uses_cache):
        super().__init__()
        self.model = model
        self.names = names
        self.fixed = {"use_cache": False} if uses_cache else {}

    def forward(self, *arguments):
        *inputs, labels = arguments
        logits = self.model(**dict(zip(self.names, inputs)), **self.fixed).logits
        return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)), logits


def tokens(length=12):
    return torch.randint(3, 192, (4, length))


def text(model, uses_cache=True):
    return WithLoss(model, ["input_ids"], uses_cache), {"input_ids": tokens(), "labels": tokens()}


def picture(model):
    return (WithLoss(model, ["pixel_values"], False),
            {"pixel_values": torch.randn(4, 3, 32, 32), "labels": torch.randint(0, 10, (4,))})


def pair(model):
    return (WithLoss(model, ["input_ids", "decoder_input_ids"], True),
            {"input_ids": tokens(), "decoder_input_ids": tokens(8), "labels": tokens(8)})


MODELS = {
    "gpt2": lambda: text(hf.GPT2LMHeadModel(hf.GPT2Config(**GPT))),
    "gptj": lambda: text(hf.GPTJForCausalLM(hf.GPTJConfig(**GPT, rotary_dim=4))),
    "gptneox": lambda: text(hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**TEXT))),
    "mistral": lambda: text(hf.MistralForCausalLM(hf.MistralConfig(**TEXT, num_key_value_heads=2, sliding_window=6))),
    "qwen2": lambda: text(hf.Qwen2ForCausalLM(hf.Qwen2Config(**TEXT, num_key_value_heads=2))),
    "qwen3": lambda: text(hf.Qwen3ForCausalLM(hf.Qwen3Config(**TEXT, num_key_value_heads=2, head_dim=12))),
    "phi": lambda: text(hf.PhiForCausalLM(hf.PhiConfig(**TEXT, resid_pdrop=0, embd_pdrop=0))),
    "phi3": lambda: text(hf.Phi3ForCausalLM(hf.Phi3Config(**TEXT, num_key_value_heads=2, pad_token_id=0))),
    "bloom": lambda: text(hf.BloomForCausalLM(hf.BloomConfig(vocab_size=192, hidden_size=48, n_layer=2, n_head=4))),
    "gemma": lambda: text(hf.GemmaForCausalLM(hf.GemmaConfig(**TEXT, num_key_value_heads=2, head_dim=12))),
    "gemma2": lambda: text(hf.Gemma2ForCausalLM(
        hf.Gemma2Config(**TEXT, num_key_value_heads=2, head_dim=12, sliding_window=6))),
    "olmo2": lambda: text(hf.Olmo2ForCausalLM(hf.Olmo2Config(**TEXT))),
    "bert": lambda: text(hf.BertForMaskedLM(hf.BertConfig(**TEXT, **NO_DROPOUT)), False),
    "roberta": lambda: text(hf.RobertaForMaskedLM(hf.RobertaConfig(**TEXT, **NO_DROPOUT)), False),
    "albert": lambda: text(hf.AlbertForMaskedLM(hf.AlbertConfig(**TEXT, **NO_DROPOUT, embedding_size=24)), False),
    "bart": lambda: pair(hf.BartForConditionalGeneration(hf.BartConfig(
        vocab_size=192, d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=64, dropout=0))),
    "vit": lambda: picture(hf.ViTForImageClassification(hf.ViTConfig(**IMAGE, **NO_DROPOUT))),
    "deit": lambda: picture(hf.DeiTForImageClassification(hf.DeiTConfig(**IMAGE, **NO_DROPOUT))),
    "swin": lambda: picture(hf.SwinForImageClassification(hf.SwinConfig(
        image_size=32, patch_size=2, embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=4, num_labels=10,
        drop_path_rate=0.0, attn_implementation="eager"))),
    "convnext": lambda: picture(hf.ConvNextForImageClassification(hf.ConvNextConfig(
        hidden_sizes=[16, 24], depths=[2, 2], num_stages=2, num_labels=10, drop_path_rate=0.0))),
    "resnet": lambda: picture(hf.ResNetForImageClassification(hf.ResNetConfig(
        embedding_size=8, hidden_sizes=[16, 24], depths=[2, 2], layer_type="basic", num_labels=10))),
}


def export(name, folder):
    """Writes NAME.onnx, NAME.stripped.onnx and NAME.npz. Returns the number of parameters and the losses."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model.train()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.eval()  # as the exporter writes it
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))  # fresh biases are equal, and would be merged
    program = torch.onnx.export(model, tuple(inputs.values()), dynamo=True, input_names=list(inputs),
                                output_names=["loss", "logits"], verbose=False)
    program.save(folder / f"{name}.onnx")
    stripped = onnx.load(folder / f"{name}.onnx")
    graph = stripped.graph
    for messages in ([graph], graph.node, graph.value_info, graph.initializer, graph.input, graph.output):
        for message in messages:
            del message.metadata_props[:]
    onnx.save(stripped, folder / f"{name}.stripped.onnx")
    numpy.savez(folder / f"{name}.npz", **{"in." + key: value.numpy() for key, value in inputs.items()})
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(*inputs.values())[0]
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return sum(parameter.numel() for parameter in model.parameters()), losses


def compare(cli, file, inputs, losses):
    """What differs from PyTorch, as sentences, and the number of parameters and layers."""
    problems = []

    def run(*arguments):
        return subprocess.run([cli, *map(str, arguments)], capture_output=True, text=True, check=False)

    info = run("info", file, "--json")
    if info.returncode != 0:
        return ["info: " + info.stderr.strip()], 0, 0
    facts = json.loads(info.stdout)
    for gallery, devices in (("pipeline", 2), ("3d:dp=2,pp=2,tp=2", 8)):
        solved = run("solve", file, "--cluster", f"cpu:{devices}", "--gallery", gallery, "--micro-batches", 2)
        if solved.returncode != 0:
            problems.append(f"{gallery}: {solved.stderr.strip()}")
    done = run("run", file, "--cluster", "cpu:1", "--steps", STEPS, "--learning-rate", LEARNING_RATE, "--inputs", inputs)
    lines = (done.stdout + done.stderr).splitlines()
    own = [float(line.split("loss ")[1].split(",")[0]) for line in lines if line.startswith("step ")]
    if len(own) != STEPS:
        problems.append("run: " + done.stderr.strip())
    else:
        worst = max(abs(a - b) / abs(b) for a, b in zip(own, losses))
        if worst > TOLERANCE:
            problems.append(f"losses differ by {worst:.1e}")
    return problems, facts["parameters"], facts["layers"]


def main():
    warnings.filterwarnings("ignore")
    cli, names = sys.argv[1], sys.argv[2:] or list(MODELS)
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for name in names:
            parameters, losses = export(name, folder)
            for label, file in ((name, f"{name}.onnx"), (name + "/stripped", f"{name}.stripped.onnx")):
                problems, own, layers = compare(cli, folder / file, folder / f"{name}.npz", losses)
                known = KNOWN.get(label) if problems else None
                failed += 1 if problems and not known else 0
                print(f"{label:20s} {own} of {parameters} parameters, {layers} layers: "
                      + ("; ".join(problems) + (f" (known: {known})" if known else "") if problems else "equal"),
                      flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
