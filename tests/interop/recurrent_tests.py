#!/usr/bin/env python3
"""Trains small LSTM, GRU and RNN models, as PyTorch's exporters write them, and compares losses and gradients.

    python3 tests/interop/recurrent_tests.py build/run/bin/planloom-cli [--folder FOLDER]

Needs the packages torch, onnx, onnxscript and numpy. The exit status is 1 if a case differs or is refused.
"""

import argparse
import json
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch

EXPORTERS = {
    "torchscript": {"dynamo": False, "opset_version": 17},
    "default": {"dynamo": True, "opset_version": 20, "external_data": False},
}


class Model(torch.nn.Module):
    """Embedding, recurrent layers, and a loss of all states and of the last ones."""

    def __init__(self, kind, **options):
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 6)
        self.layers = kind(6, 5, **options)
        self.out = torch.nn.Linear(10 if options["bidirectional"] else 5, 3)

    def forward(self, tokens):
        states, last = self.layers(self.embedding(tokens))
        last = last[0] if isinstance(last, tuple) else last
        return self.out(states).pow(2).mean() + last.sin().mean()


def models():
    for kind, more in ((torch.nn.LSTM, {}), (torch.nn.GRU, {}), (torch.nn.RNN, {}),
                       (torch.nn.RNN, {"nonlinearity": "relu"})):
        for bidirectional in (False, True):
            for batch_first in (False, True):
                for layers in (1, 2):
                    options = {"bidirectional": bidirectional, "batch_first": batch_first,
                               "num_layers": layers, **more}
                    yield Model(kind, **options).eval(), f"{kind.__name__} {options}"


def wrong_gradients(model, loss, folder):
    """What is wrong with the gradients that exporters keep in PyTorch's shape; empty if nothing is."""
    wanted = dict(zip((n for n, _ in model.named_parameters()), torch.autograd.grad(loss, list(model.parameters()))))
    found = [numpy.load(file) for file in (folder / "grad").rglob("*.npy")]
    for name in ("embedding.weight", "out.bias"):
        one = wanted[name].numpy()
        errors = [abs(other - one).max() for other in found if other.shape == one.shape]
        if not errors or min(errors) > 1e-4 * abs(one).max():
            return f"the gradient of {name} differs by {min(errors, default=None)}"
    return ""


def run(cli, root, number, model, exporter):
    tokens = torch.randint(0, 11, (4, 7) if model.layers.batch_first else (7, 4))
    loss = model(tokens)
    folder = root / f"{number}_{exporter}"
    folder.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(model, (tokens,), str(folder / "model.onnx"), input_names=["tokens"],
                      output_names=["loss"], verbose=False, **EXPORTERS[exporter])
    numpy.savez(folder / "inputs.npz", tokens=tokens.numpy())
    # Samples come first there; only then are they the mini-batch.
    plan = ["--cluster", "cpu:2", "--gallery", "data-parallel"] if model.layers.batch_first else ["--cluster", "cpu:1"]
    done = subprocess.run(
        [cli, "run", str(folder / "model.onnx"), *plan, "--inputs", str(folder / "inputs.npz"), "--check", "--json",
         "--dump", str(folder / "dump")],
        capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        return (done.stdout + done.stderr).strip()
    found = json.loads(done.stdout)["loss"]
    if abs(found - loss.item()) > 1e-5 * abs(loss.item()):
        return f"its loss is {found}, expected {loss.item()}"
    return wrong_gradients(model, loss, folder / "dump")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cli")
    parser.add_argument("--folder", type=pathlib.Path)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.manual_seed(1)
    root = arguments.folder or pathlib.Path(tempfile.mkdtemp())
    failed = 0
    for number, (model, words) in enumerate(models()):
        for exporter in EXPORTERS:
            wrong = run(arguments.cli, root, number, model, exporter)
            failed += 1 if wrong else 0
            print(f"{words}, {exporter}: {wrong or 'equal'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
