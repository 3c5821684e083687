#!/usr/bin/env python3
"""Operators with all their options, compared with PyTorch: the loss and every gradient of the modules of
operator_cases.py and option_cases.py, as torch.export writes them by default and after run_decompositions.

    tests/interop/operators_with_pytorch.py [--cli build/tests/bin/planloom-cli] [--only TEXT ...] [--exports FOLDER]
        [--once] [--together NUMBER]

Each program runs on one device, as two data-parallel replicas and in two micro-batches; what a replica keeps of the
activations is printed. Several devices and micro-batches may be refused, with a reason; they may not differ. Exports
are kept in FOLDER and not made again. --once leaves out all but the run on one device; --together makes one program of
so many cases of operator_cases.py, which is faster. Not part of the test suite: it needs PyTorch.
"""

import argparse
import functools
import json
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch

import operator_cases
import option_cases

from sweep import ROOT, Call, compared

CASES = {name: functools.partial(operator_cases.make, name) for name in operator_cases.CASES}
CASES.update({"option " + name: case for name, case in option_cases.CASES.items()})


def in_reals(value):
    return (torch.view_as_real(value) if value.is_complex() else value).numpy()


def trained(module, inputs, path):
    for parameter in module.parameters():  # programs share them with the module that they are of
        parameter.grad = None
    loss = module(*inputs)
    loss.backward()
    gradients = {"grad." + key: in_reals(p.grad) for key, p in module.named_parameters() if p.grad is not None}
    np.savez(path, loss=loss.item(), **gradients)


def store(folder, names):
    """Writes default.pt2, core.pt2, io.npz, expected.npz and expected_core.npz. @return why that cannot be, or an empty text"""
    if (folder / "done").exists():
        return (folder / "done").read_text()
    folder.mkdir(parents=True, exist_ok=True)
    failure = ""
    try:
        module, inputs = CASES[names[0]]() if len(names) == 1 else operator_cases.make_together(names)
        with torch.no_grad():
            state = {key: value.clone() for key, value in module.state_dict().items()}
        exported = torch.export.export(module, inputs)
        torch.export.save(exported, folder / "default.pt2")
        names = [spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
        core = None
        try:
            core = exported.run_decompositions()
            torch.export.save(core, folder / "core.pt2")
        except Exception as reason:  # PyTorch's own
            (folder / "core.txt").write_text((str(reason).splitlines() or [""])[0][:200])
        np.savez(folder / "io.npz", **{"in." + key: value.numpy() for key, value in zip(names, inputs) if value is not None})
        module.load_state_dict(state)
        reference = getattr(module, "reference", None)
        module.function = reference or module.function
        trained(module, inputs, folder / "expected.npz")
        if core is not None and reference is None:
            try:  # decompositions have gradients of their own where functions have kinks or no_grad
                module.load_state_dict(state)
                trained(core.module(), inputs, folder / "expected_core.npz")
            except Exception:  # nor can PyTorch train all that it decomposes: buffers are changed in place
                np.savez(folder / "expected_core.npz", loss=np.load(folder / "expected.npz")["loss"])
    except Exception as reason:
        failure = f"not exported: {type(reason).__name__}: " + (str(reason).splitlines() or [""])[0][:200]
    (folder / "done").write_text(failure)
    return failure


class Runner:
    """One program: how it runs, or why it does not."""

    def __init__(self, cli, folder, program):
        self.cli, self.folder, self.program = cli, folder, program

    def run(self, *words, model=None):
        with tempfile.TemporaryDirectory() as dump:
            done = Call(self.cli, "run", model or self.program, "--inputs", self.folder / "io.npz", "--dump", dump, "--json", *words)
            if done.failure:
                return self.refusal(done)
            own = self.folder / f"expected_{self.program.stem}.npz"
            return compared(done.out, pathlib.Path(dump), own if own.exists() else self.folder / "expected.npz") or "equal"

    @staticmethod
    def refusal(call):
        return call.failure if "CRASH" in call.failure or "time or memory" in call.failure else "refused: " + call.failure

    def kept(self, plan):
        content = json.loads(plan.read_text())
        sizes = [sum(int(np.prod([b - a for a, b in x["box"]] or [1])) for x in device["buffers"] if x["memory"] == "activation")
                 for device in content["devices"]]
        return max(sizes)

    def replicas(self):
        plan, single = self.folder / "plan.json", self.folder / "single.json"
        solved = Call(self.cli, "solve", self.program, "--cluster", "cpu:2", "--gallery", "data-parallel", "--out", plan)
        if solved.failure:
            return self.refusal(solved)
        if Call(self.cli, "verify", plan).failure:
            return "DIFFERENT: verify refuses the plan"
        Call(self.cli, "solve", self.program, "--cluster", "cpu:2", "--gallery", "single", "--out", single)
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
    joined = [name for name in chosen if name in operator_cases.CASES]
    groups = [joined[first:first + options.together] for first in range(0, len(joined), options.together)]
    for names in groups + [[name] for name in chosen if name not in operator_cases.CASES]:
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
                lines.append(runner.run("--cluster", "cpu:1"))
                if lines[0] == "equal" and not options.once:
                    lines += ["two replicas " + runner.replicas(), "micro-batches " + runner.micro_batches()]
            worst = next((word for word in ("CRASH", "DIFFERENT", "time or memory", "not exported") if any(word in line for line in lines)),
                         lines[0].split(":")[0])
            counts[worst] = counts.get(worst, 0) + 1
            print(f"{name + ' (' + form + ')':58} {'; '.join(lines)}", flush=True)
    print(counts)
    return 1 if set(counts) - {"equal", "refused", "not exported"} else 0


if __name__ == "__main__":
    sys.exit(main())
