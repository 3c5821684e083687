#!/usr/bin/env python3
"""Programs of torch.export.save compared with PyTorch: the loss and every gradient of small architectures.

    tests/interop/pt2_models.py [--cli build/tests/bin/planloom-cli] [--only NAME ...] [--keep DIR] [--decomposed]

Makes an environment of its own (build/interop/environment, with PyTorch and transformers) unless both can be
imported already. Not part of the test suite: it takes minutes and gigabytes.
"""

import argparse
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ["torch", "transformers", "numpy"]


def enter_environment():
    """Starts again inside of the environment where PyTorch is missing."""
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
        return
    except ImportError:
        pass
    folder = ROOT / "build/interop/environment"
    python = folder / "bin/python"
    if pathlib.Path(sys.prefix) == folder:
        sys.exit("the environment lacks PyTorch or transformers: remove " + str(folder) + " and try again")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/pip", "install", "-q", *PACKAGES], check=True)
    os.execv(python, [str(python), *sys.argv])


enter_environment()

import numpy as np  # noqa: E402
import torch  # noqa: E402

from model_cases import CASES, STOPS_GRADIENTS, reference  # noqa: E402

TOLERANCE = 2e-4  # of a gradient's largest element, or a thousandth of the model's: float32, other orders of sums


def compare(folder, cli, module, inputs, decomposed):
    """@return an empty text if all is equal, else what is not"""
    exported = torch.export.export(module, inputs)
    if decomposed:
        exported = exported.run_decompositions()
    path = folder / "model.pt2"
    torch.export.save(exported, path)
    loss, gradients = reference(module, inputs)
    doubled = [value.double() if value.is_floating_point() else value for value in inputs]
    try:
        _, exact = reference(copy.deepcopy(module).double(), doubled)  # says what float32 can be held against
    except RuntimeError:  # numbers of float32 in the module's code
        exact = gradients
    names = [spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    np.savez(folder / "io.npz", **{"in." + name: value.numpy() for name, value in zip(names, inputs)})
    dump = folder / "dump"
    run = subprocess.run([cli, "run", path, "--cluster", "cpu:1", "--inputs", folder / "io.npz", "--dump", dump,
                          "--json"], capture_output=True, text=True)
    if run.returncode != 0:
        return "refused: " + run.stderr.strip()[-400:]
    found = json.loads(run.stdout)["loss"]
    found = found[0] if isinstance(found, list) else found
    if not abs(found - loss) <= 1e-4 * max(1.0, abs(loss)):
        return f"WRONG: loss {found}, PyTorch has {loss}"
    missing = []
    least = 1e-3 * max(np.abs(expected).max() for expected in gradients.values())
    for name, expected in gradients.items():
        file = dump / "grad" / (name + ".npy")
        if not file.exists():
            if np.abs(expected).max() > 0:
                missing.append(name)
            continue
        made = np.load(file)
        noise = np.abs(expected - exact[name]).max()
        scale = max(np.abs(expected).max(), least)
        if made.shape != expected.shape or not (
                np.abs(made - expected).max() <= TOLERANCE * scale + 2 * noise):
            worst = np.abs(made - expected).max() / scale if made.shape == expected.shape else made.shape
            return f"WRONG: gradient of {name} differs by {worst}"
    return f"WRONG: no gradient of {', '.join(missing[:4])}" if missing else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", default=ROOT / "build/tests/bin/planloom-cli")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--decomposed", action="store_true", help="core ATen instead of the training IR")
    options = parser.parse_args()
    results = {}
    for name, make in CASES.items():
        if options.only and name not in options.only:
            continue
        if options.decomposed and name in STOPS_GRADIENTS:
            continue
        torch.manual_seed(1)
        try:
            module, inputs = make()
            module.train()
            with torch.no_grad():
                module(*inputs)  # lazy layers
        except Exception as failure:
            results[name] = "not made: " + str(failure).splitlines()[0][:200]
            print(f"{name:16} {results[name]}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.keep / name if options.keep else pathlib.Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                results[name] = compare(folder, options.cli, module, inputs, options.decomposed)
            except Exception as failure:
                results[name] = "not exported: " + (str(failure).splitlines() or [""])[0][:200]
        print(f"{name:16} {results[name] or 'equal'}", flush=True)
    made = {name: text for name, text in results.items() if not text.startswith("not ")}
    equal = sum(text == "" for text in made.values())
    wrong = sum(text.startswith("WRONG") for text in made.values())
    print(f"{equal} of {len(made)} equal PyTorch, {wrong} wrong, {len(made) - equal - wrong} refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
