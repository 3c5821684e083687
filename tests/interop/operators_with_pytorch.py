#!/usr/bin/env python3
"""Operators with all their options, compared with PyTorch: the loss and every gradient of the modules of
operator_cases.py, as torch.export writes them by default and after run_decompositions.

    tests/interop/operators_with_pytorch.py [--cli build/tests/bin/planloom-cli] [--only TEXT ...] [--exports DIR] [--once] [--together N]

Each program runs on one device, as two data-parallel replicas and in two micro-batches; what a replica keeps of the
activations is printed. Several devices and micro-batches may be refused, with a reason; they may not differ. Exports
are kept in DIR and not made again. --once leaves out all but the run on one device; --together makes one program of N
cases that follow each other, which is faster. Not part of the test suite: it
needs PyTorch.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

from operator_cases import CASES, make, make_together

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 2e-4  # of a gradient's largest element, or a thousandth of the model's
SECONDS = 120


def store(folder, names):
    """Writes default.pt2, core.pt2, io.npz and expected.npz. @return why that cannot be, or an empty text"""
    if (folder / "done").exists():
        return (folder / "done").read_text()
    folder.mkdir(parents=True, exist_ok=True)
    failure = ""
    try:
        module, inputs = make(names[0]) if len(names) == 1 else make_together(names)
        with torch.no_grad():
            state = {key: value.clone() for key, value in module.state_dict().items()}
        exported = torch.export.export(module, inputs)
        torch.export.save(exported, folder / "default.pt2")
        names = [spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
        try:
            torch.export.save(exported.run_decompositions(), folder / "core.pt2")
        except Exception as reason:  # PyTorch's own
            (folder / "core.txt").write_text((str(reason).splitlines() or [""])[0][:200])
        np.savez(folder / "io.npz", **{"in." + key: value.numpy() for key, value in zip(names, inputs) if value is not None})
        module.load_state_dict(state)
        loss = module(*inputs)
        loss.backward()
        gradients = {"grad." + key: p.grad.numpy() for key, p in module.named_parameters() if p.grad is not None}
        np.savez(folder / "expected.npz", loss=loss.item(), **gradients)
    except Exception as reason:
        failure = f"not exported: {type(reason).__name__}: " + (str(reason).splitlines() or [""])[0][:200]
    (folder / "done").write_text(failure)
    return failure


def difference(loss, dump, expected):
    """@return what is not PyTorch's, or an empty text"""
    right = float(expected["loss"])
    if loss is None:
        return f"loss is no number, PyTorch has {right:.6g}"
    if not abs(loss - right) <= 1e-4 * max(1.0, abs(right)):
        return f"loss {loss:.6g}, PyTorch has {right:.6g}"
    gradients = {key.removeprefix("grad."): expected[key] for key in expected.files if key.startswith("grad.")}
    least = 1e-3 * max([np.abs(value).max() for value in gradients.values()] + [1e-6])
    for name, value in gradients.items():
        file = dump / "grad" / (name + ".npy")
        if not file.exists():
            if np.abs(value).max() > 0:
                return f"no gradient of {name}"
            continue
        made = np.load(file)
        scale = max(np.abs(value).max(), least)
        if made.shape != value.shape or not np.abs(made - value).max() <= TOLERANCE * scale:
            return f"gradient of {name} differs by {np.abs(made - value).max() / scale if made.shape == value.shape else made.shape}"
    return ""


class Runner:
    def __init__(self, cli, folder, program):
        self.cli, self.folder, self.program = cli, folder, program
        self.expected = np.load(folder / "expected.npz")

    def call(self, *words):
        return subprocess.run([self.cli, *map(str, words)], capture_output=True, text=True, timeout=SECONDS, check=False)

    def run(self, *words, model=None):
        with tempfile.TemporaryDirectory() as dump:
            done = self.call("run", model or self.program, "--inputs", self.folder / "io.npz", "--dump", dump, "--json", *words)
            if done.returncode < 0 or done.returncode > 3:
                return f"CRASH {done.returncode}"
            if done.returncode != 0:
                return "refused: " + done.stderr.strip().replace("\n", " ")[:300]
            wrong = difference(json.loads(done.stdout)["losses"][0], pathlib.Path(dump), self.expected)
            return "WRONG: " + wrong if wrong else "equal"

    def kept(self, plan):
        content = json.loads(plan.read_text())
        sizes = [sum(int(np.prod([b - a for a, b in x["box"]] or [1])) for x in device["buffers"] if x["memory"] == "activation")
                 for device in content["devices"]]
        return max(sizes)

    def replicas(self):
        plan, single = self.folder / "plan.json", self.folder / "single.json"
        solved = self.call("solve", self.program, "--cluster", "cpu:2", "--gallery", "data-parallel", "--out", plan)
        if solved.returncode < 0 or solved.returncode > 3:
            return f"CRASH {solved.returncode}"
        if solved.returncode != 0:
            return "refused: " + solved.stderr.strip().replace("\n", " ")[:300]
        if self.call("verify", plan).returncode != 0:
            return "WRONG: verify refuses the plan"
        self.call("solve", self.program, "--cluster", "cpu:2", "--gallery", "single", "--out", single)
        share = self.kept(plan) / max(1, self.kept(single))
        return self.run(model=plan) + f" ({share:.2f} kept)"

    def micro_batches(self):
        return self.run("--cluster", "cpu:1", "--gallery", "single", "--micro-batches", 2)


def main():
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--cli", type=pathlib.Path, default=ROOT / "build/tests/bin/planloom-cli")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--exports", type=pathlib.Path)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--together", type=int, default=1)
    options = parser.parse_args()
    exports = options.exports or pathlib.Path(tempfile.mkdtemp())
    counts = {}
    chosen = [name for name in CASES if not options.only or any(text in name for text in options.only)]
    for first in range(0, len(chosen), options.together):
        names = chosen[first:first + options.together]
        name = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        folder = exports / name.replace(" ", "_")
        failure = store(folder, names)
        for form in ("default", "core"):
            program = folder / (form + ".pt2")
            lines = []
            if failure or not program.exists():
                lines = [failure or "not exported: " + (folder / "core.txt").read_text()]
            else:
                runner = Runner(options.cli, folder, program)
                try:
                    lines.append(runner.run("--cluster", "cpu:1"))
                    if lines[0] == "equal" and not options.once:
                        lines += ["two replicas " + runner.replicas(), "micro-batches " + runner.micro_batches()]
                except subprocess.TimeoutExpired:
                    lines.append("CRASH: too slow")
            worst = next((word for word in ("CRASH", "WRONG", "not exported") if any(word in line for line in lines)),
                         lines[0].split(":")[0])
            counts[worst] = counts.get(worst, 0) + 1
            print(f"{name + ' (' + form + ')':58} {'; '.join(lines)}", flush=True)
    print(counts)
    return 1 if set(counts) - {"equal", "refused", "not exported"} else 0


if __name__ == "__main__":
    sys.exit(main())
