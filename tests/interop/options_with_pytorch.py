#!/usr/bin/env python3
"""Operators with their options compared with PyTorch: the loss and every gradient, on one device, data-parallel on two,
and in two micro-batches.

    tests/interop/options_with_pytorch.py [--cli build/tests/bin/planloom-cli] [--only NAME ...] [--form default core] [--keep DIR]

Needs PyTorch and numpy (see pt2_models.py). Not part of the test suite. Prints a line for every case and form; exit
status 1 if anything differs.
"""

import argparse
import copy
import fnmatch
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

import option_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 2e-4


def reference(module, inputs):
    module.zero_grad()
    loss = module(*inputs)
    loss.backward()
    gradients = {}
    for name, parameter in module.named_parameters():
        if parameter.grad is not None:
            grad = parameter.grad
            gradients[name] = (torch.view_as_real(grad) if grad.is_complex() else grad).numpy()
    return loss.item(), gradients


def difference(run, dump, loss, gradients):
    """@return an empty text if a run's loss and gradients are those, else what is not"""
    if run.returncode < 0 or run.returncode > 3:
        return f"WRONG: ended with {run.returncode}"
    if run.returncode != 0:
        return "refused: " + " ".join(run.stderr.split())[:260]
    found = json.loads(run.stdout)["losses"][0]
    if not abs(found - loss) <= 1e-4 * max(1.0, abs(loss)):
        return f"WRONG: loss {found}, PyTorch has {loss}"
    least = 1e-3 * max(np.abs(expected).max() for expected in gradients.values())
    for name, expected in gradients.items():
        file = dump / "grad" / (name + ".npy")
        if not file.exists():
            if np.abs(expected).max() > 0:
                return f"WRONG: no gradient of {name}"
            continue
        made = np.load(file)
        scale = max(np.abs(expected).max(), least)
        if made.shape != expected.shape or not np.abs(made - expected).max() <= TOLERANCE * scale:
            worst = np.abs(made - expected).max() / scale if made.shape == expected.shape else made.shape
            return f"WRONG: gradient of {name} differs by {worst}"
    return ""


def compare(folder, cli, name, form, quick):
    """@return by way of running ("one", "two", "parts") an empty text or what is wrong"""
    module, inputs = option_cases.CASES[name]()
    loss, gradients = reference(copy.deepcopy(module), inputs)
    exported = torch.export.export(module, inputs)
    if form == "core":
        exported = exported.run_decompositions()
    path = folder / "model.pt2"
    torch.export.save(exported, path)
    names = [spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    np.savez(folder / "inputs.npz", **{key: value.numpy() for key, value in zip(names, inputs)})
    np.savez(folder / "expected.npz", loss=np.float32(loss), **{"grad." + key: value for key, value in gradients.items()})
    ways = {"one": ["--cluster", "cpu:1"]}
    if not quick:
        ways["two"] = ["--cluster", "cpu:2", "--gallery", "data-parallel"]
        ways["parts"] = ["--cluster", "cpu:1", "--micro-batches", "2"]
    results = {}
    for way, words in ways.items():
        dump = folder / ("dump-" + way)
        run = subprocess.run([cli, "run", path, *words, "--inputs", folder / "inputs.npz", "--dump", dump, "--json"],
                             capture_output=True, text=True)
        results[way] = difference(run, dump, loss, gradients)
        if way == "one" and results[way]:
            break
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", default=ROOT / "build/tests/bin/planloom-cli")
    parser.add_argument("--only", nargs="*", help="names, with * and ?")
    parser.add_argument("--form", nargs="*", default=["default", "core"])
    parser.add_argument("--quick", action="store_true", help="on one device alone")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    counts = {"equal": 0, "refused": 0, "wrong": 0, "not exported": 0}
    for name in option_cases.CASES:
        if options.only and not any(fnmatch.fnmatch(name, pattern) for pattern in options.only):
            continue
        for form in options.form:
            with tempfile.TemporaryDirectory() as temporary:
                folder = options.keep / (name + "." + form) if options.keep else pathlib.Path(temporary)
                folder.mkdir(parents=True, exist_ok=True)
                try:
                    results = compare(folder, options.cli, name, form, options.quick)
                except Exception as failure:  # PyTorch's exporter has its own limits
                    results = {"export": "not exported: " + type(failure).__name__ + " " + " ".join(str(failure).split())[:160]}
            bad = {way: text for way, text in results.items() if text}
            if name in option_cases.WHOLE_BATCH and set(bad) == {"parts"} and bad["parts"].startswith("refused"):
                bad = {}
            text = "; ".join(f"{way} {what}" for way, what in bad.items())
            kind = next((k for k in ("wrong", "not exported", "refused") if k.lower() in text.lower()), "equal")
            counts[kind] += 1
            print(f"{name:28} {form:8} {text or 'equal'}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
