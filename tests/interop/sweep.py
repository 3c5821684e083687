#!/usr/bin/env python3
"""Every model of the installed transformers, as torch.export.export writes it, through every verb of the command line.

    tests/interop/sweep.py export --out FOLDER [--only PATTERN] [--count NUMBER] [--again]
    tests/interop/sweep.py check --out FOLDER [--cli build/tests/bin/planloom-cli] [--results FILE.jsonl] [--only PATTERN]
        [--models FOLDER ...] [--stages STAGE ...] [--again]
    tests/interop/sweep.py summary --out FOLDER [--results FILE.jsonl]

`export` writes, for each model of sweep_models.py, FOLDER/NAME/model.pt2 with its inputs (io.npz) and PyTorch's loss and
gradients (reference.npz), or why there is none (state.json): it goes on where it stopped. `check` needs no PyTorch. Its
stages are info; solve and verify on five clusters; run (one step on one device, compared with PyTorch); and parts (the
plans of two and four devices, run and compared with the unpartitioned model). Each call has limits of time and memory.
With --models it takes the files in other folders, which need no reference: .onnx and .pt2, beside NAME.io.npz or inputs.npz.
`summary` prints shares and the reasons of what fails, grouped, the most frequent first. Not part of the test suite.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLUSTERS = ["cpu:4", "rtx4090:6", "dgx-h100:8", "dgx2-v100:32", "mixed-h100-a100:16"]
STAGES = ["info", *(f"solve {cluster}" for cluster in CLUSTERS), "run", "parts cpu:2", "parts cpu:4"]
GIGABYTES = 6
EXPORT_SECONDS, CHECK_SECONDS = 300, 300  # of processor time
TIMES_NOISE = 4  # what PyTorch's own float32 is away from its float64
TOLERANCE = 2e-4  # of a gradient's largest element, or a thousandth of the model's: float32, other orders of sums


def limit(seconds):
    """For a child process: so much time of the processor, and so much memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))


# ---- exporting


def ties_of(module, inputs):
    """How many finite numbers a topk leaves out that equal its last one: which of them it takes is nowhere said."""
    import torch

    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        found = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            made = function(*args, **(kwargs or {}))
            if function is torch.ops.aten.topk.default and args[1] > 0:
                x, dim = args[0], args[2] if len(args) > 2 else -1
                largest = args[3] if len(args) > 3 else True
                last = made[0].amin(dim, keepdim=True) if largest else made[0].amax(dim, keepdim=True)
                some = last.abs() < torch.finfo(x.dtype).max if x.is_floating_point() else torch.ones_like(last, dtype=torch.bool)
                Watch.found += int((((x == last).sum(dim, keepdim=True) > (made[0] == last).sum(dim, keepdim=True)) & some).sum())
            return made

    with torch.no_grad(), Watch():
        module(*inputs)
    return Watch.found


def write(folder, module, inputs):
    """Exports a module with its loss, and writes what PyTorch makes of it."""
    import copy

    import torch

    from model_cases import reference

    state = {"parameters": sum(p.numel() for p in module.parameters())}
    for training in (True, False):  # layers that are left out by chance cannot be exported in training
        try:
            program = torch.export.export(module.train(training), inputs)
            break
        except Exception as failure:
            if not training or "data-dependent" not in str(failure):
                return {**state, "state": "refused", "reason": f"{type(failure).__name__}: {failure}"[:600]}
    torch.export.save(program, folder / "model.pt2")
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    np.savez(folder / "io.npz", **{"in." + name: value.numpy() for name, value in zip(names, inputs)})
    doubled = [value.double() if value.is_floating_point() else value for value in inputs]
    kept = copy.deepcopy(module)
    loss, gradients = reference(module, inputs)
    try:
        exact_loss, exact = reference(kept.double(), doubled)  # says what float32 can be held against
    except Exception:  # numbers of float32 in the module's code
        exact_loss, exact = loss, gradients
    np.savez(folder / "reference.npz", loss=loss, loss_noise=abs(float(loss) - float(exact_loss)), **{"grad." + name: value for name, value in gradients.items()},
             **{"noise." + name: np.nan_to_num(np.abs(value - exact.get(name, value)), nan=0.0, posinf=0.0).max(initial=0)
                for name, value in gradients.items()})
    return {**state, "state": "exported", "ties": ties_of(module, inputs)}


def in_a_child(work, seconds):
    """What `work` returns, of a forked process with limits; its end, where it has no answer."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        limit(seconds)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # torch's exporter prints whole programs
        os.dup2(2, 1)
        try:
            answer = work()
        except BaseException as failure:  # whatever it is, it is the answer
            answer = {"state": "not made", "reason": f"{type(failure).__name__}: {failure}"[:600]}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else {"state": "refused", "reason": f"the process ended with {status} (time or memory)"}


def export(options):
    import warnings

    import torch

    import sweep_models

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.export.export(torch.nn.Linear(2, 2), (torch.randn(1, 2),))  # imports what all of them need, once
    made = 0
    for name, model_class, kind in sweep_models.catalogue():
        folder = options.out / name
        if options.only and not re.search(options.only, name):
            continue
        if (folder / "state.json").exists() and not options.again:
            made += json.loads((folder / "state.json").read_text())["state"] == "exported"
            continue
        if made >= options.count:
            break
        folder.mkdir(parents=True, exist_ok=True)

        def work():
            torch.manual_seed(1)
            module, inputs = sweep_models.make(name, model_class, kind)
            return write(folder, module, inputs)

        begin = time.time()
        state = {**in_a_child(work, EXPORT_SECONDS), "class": model_class, "seconds": round(time.time() - begin, 1)}
        (folder / "state.json").write_text(json.dumps(state))
        made += state["state"] == "exported"
        print(f"{name:36} {state['state']:10} {state['seconds']:6} s  {state.get('reason', '')[:200]}", flush=True)


# ---- checking


class Call:
    """One call of the command line: its status, what it printed, how it ended."""

    def __init__(self, cli, *words):
        self.words = [str(word) for word in words]
        process = subprocess.Popen([cli, *self.words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   errors="replace", preexec_fn=lambda: limit(CHECK_SECONDS))
        try:
            self.out, self.err = process.communicate(timeout=20 * CHECK_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            self.out, self.err = process.communicate()
        self.code = process.returncode
        self.failure = self.why()

    def why(self):
        """Empty if it was done."""
        if self.code == 0:
            return ""
        verb = self.words[0]
        if self.code in (-signal.SIGKILL, -signal.SIGXCPU):
            return f"{verb}: time or memory is over"
        if self.code < 0 or self.code > 3:
            return f"{verb}: CRASH, ended with {self.code} {self.err.strip()[-200:]}"
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return f"{verb}: {(lines or ['no word'])[0][:400]}"


def compared(out, dump, reference):
    """What differs of a loss and the dumped gradients; empty if nothing does."""
    stored = np.load(reference)
    loss, found = float(stored["loss"]), json.loads(out)["losses"][0]
    noise = float(stored["loss_noise"]) if "loss_noise" in stored.files else 0
    if not abs(found - loss) <= 2e-5 * max(1.0, abs(loss)) + TIMES_NOISE * noise:
        return f"DIFFERENT: loss {found:.6g}, PyTorch has {loss:.6g}"
    gradients = {name[5:]: stored[name] for name in stored.files if name.startswith("grad.")}
    least = 1e-3 * max((np.abs(value).max(initial=0) for value in gradients.values()), default=0)
    for name, value in gradients.items():
        file = dump / "grad" / (name + ".npy")
        largest = np.abs(value).max(initial=0)
        if not file.exists():
            if largest > 1e-3 * least:
                return f"DIFFERENT: no gradient of {name}"
            continue
        mine, scale = np.load(file), max(largest, least)
        if mine.size != value.size:
            return f"DIFFERENT: gradient of {name} has the shape {mine.shape}, not {value.shape}"
        error = np.abs(mine.reshape(-1) - value.reshape(-1)).max(initial=0)
        noise = float(stored["noise." + name]) if "noise." + name in stored.files else 0
        if not error <= TOLERANCE * scale + TIMES_NOISE * noise:
            return f"DIFFERENT: gradient of {name} by {error / max(scale, 1e-30):.1e}"
    return ""


class Case:
    """A file, what goes into it, and what PyTorch makes of it, where that is known."""

    def __init__(self, name, path, inputs=None, reference=None):
        self.name, self.path, self.inputs, self.reference = name, path, inputs, reference

    def open_sizes(self, cli):
        """The sizes that the file leaves open, as the arrays given have them; 4 where there are none."""
        told = Call(cli, "info", self.path).err
        if " open: " not in told:
            return []
        arrays = {key.removeprefix("in."): value for key, value in np.load(self.inputs).items()} if self.inputs else {}
        words = []
        for size, tensor, axis in re.findall(r"'([^']+)' \((\S+)\.(\d+),", told):
            words += ["--dim", f"{size}={arrays[tensor].shape[int(axis)] if tensor in arrays else 4}"]
        return words

    def as_inputs(self, cli):
        """What the file stores and arrays are given for: inputs, as `run --inputs` takes them."""
        if not self.inputs or self.path.suffix != ".onnx":
            return []
        stored = {each["name"] for each in json.loads(Call(cli, "info", self.path, "--json", *self.open_sizes(cli)).out)["stored"]}
        given = {key.removeprefix("in.") for key in np.load(self.inputs).files}
        return [word for name in sorted(stored & given) for word in ("--as-input", name)]

    def stage(self, cli, stage, scratch):
        """@return the failure of a stage; empty if it holds"""
        verb, _, cluster = stage.partition(" ")
        drawn = ["--inputs", self.inputs] if self.inputs else ["--random-weights", "1"]
        if verb == "info":
            return Call(cli, "info", self.path, "--json", *self.open_sizes(cli)).failure
        if verb == "run":
            words = ["--dump", scratch / "dump"] if self.reference else []
            call = Call(cli, "run", self.path, "--cluster", "cpu:1", *drawn, *words, "--json")
            return call.failure or (compared(call.out, scratch / "dump", self.reference) if self.reference else "")
        plan = scratch / "plan.json"
        solved = Call(cli, "solve", self.path, "--cluster", cluster, "--out", plan, "--json", *self.open_sizes(cli),
                      *self.as_inputs(cli))
        if solved.failure or not plan.exists():
            return solved.failure or "solve: status 0 and no plan"
        verified = Call(cli, "verify", plan)
        if verb == "solve" or verified.failure:
            return verified.failure
        return Call(cli, "run", plan, "--check", *drawn).failure


def cases_of(options):
    if not options.models:
        for folder in sorted(options.out.iterdir()):
            if (folder / "reference.npz").exists():
                yield Case(folder.name, folder / "model.pt2", folder / "io.npz", folder / "reference.npz")
    for given in options.models or []:
        for path in sorted(p for p in given.rglob("*") if p.suffix in (".onnx", ".pt2")):
            near = [path.with_suffix("").with_suffix(".io.npz"), path.with_name(path.stem + ".io.npz"), path.with_name("inputs.npz")]
            yield Case(str(path.relative_to(given.parent)), path, next((p for p in near if p.exists()), None))


def results_of(options):
    """The newest result of each case and stage."""
    path, found = options.results or options.out / "results.jsonl", {}
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            found[row["name"], row["stage"]] = row
    return path, found


def check(options):
    path, known = results_of(options)
    with open(path, "a") as table:
        for case in cases_of(options):
            if options.only and not re.search(options.only, case.name):
                continue
            opened = known.get((case.name, "info"))
            if opened and opened["failure"] and not options.again and not options.failed:
                continue
            for stage in options.stages or STAGES:
                before = known.get((case.name, stage))
                if before and not options.again and not (options.failed and before["failure"]):
                    continue
                begin = time.time()
                with tempfile.TemporaryDirectory() as scratch:
                    failure = case.stage(options.cli, stage, pathlib.Path(scratch))
                row = {"name": case.name, "stage": stage, "failure": failure, "seconds": round(time.time() - begin, 2)}
                table.write(json.dumps(row) + "\n")
                table.flush()
                print(f"{case.name:36} {stage:24} {failure or 'done'}", flush=True)
                if stage == "info" and failure:
                    break  # what does not open has one reason, not nine


# ---- telling


def kind_of(reason):
    """A reason without the names, shapes and numbers of one model."""
    reason = re.sub(r"/\S+?\.(pt2|onnx)(@\d+)?", "FILE", reason)
    reason = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", reason)
    reason = re.sub(r"\[[^\]]*\]", "[...]", reason)
    reason = re.sub(r"\b[a-z_]+(_\d+)+\b", "...", reason)
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", reason)[:160]


def summary(options):
    _, found = results_of(options)
    states = {f.parent.name: json.loads(f.read_text()) for f in options.out.glob("*/state.json")}
    counts = collections.Counter(state["state"] for state in states.values())
    print(f"{len(states)} models tried: " + ", ".join(f"{n} {word}" for word, n in counts.most_common()))
    for word in ("refused", "not made"):
        print(f"\n{word} by PyTorch:")
        groups(((name, state.get("reason", "")) for name, state in states.items() if state["state"] == word))
    names = sorted({name for name, _ in found})
    broken = {name: [r for (n, _), r in found.items() if n == name and r["failure"]] for name in names}
    whole = [name for name in names if not broken[name]]
    print(f"\n{len(whole)} of {len(names)} open, plan and train as PyTorch does ({len(whole) / max(len(names), 1):.1%})")
    for stage in STAGES:
        rows = [r for (_, s), r in found.items() if s == stage]
        if rows:
            print(f"  {stage:26} {sum(not r['failure'] for r in rows)} of {len(rows)}")
    tied = [name for name in names if broken[name] and states.get(name, {}).get("ties")]
    if tied:
        print(f"of the others {len(tied)} choose among equal numbers, which PyTorch leaves open: {', '.join(tied)}")
    print("\nWhat fails, by reason (a model counts once, at its first stage that fails):")
    groups(((name, rows[0]["failure"]) for name, rows in broken.items() if rows))


def groups(pairs):
    by_kind = collections.defaultdict(list)
    for name, reason in pairs:
        by_kind[kind_of(reason)].append((name, reason))
    for kind, members in sorted(by_kind.items(), key=lambda item: -len(item[1])):
        print(f"- {len(members)} x {members[0][1][:260]}\n    {', '.join(name for name, _ in members[:12])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["export", "check", "summary"])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--cli", default=ROOT / "build/tests/bin/planloom-cli")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path, nargs="*")
    parser.add_argument("--only", help="a regular expression that is found in the name")
    parser.add_argument("--stages", nargs="*", choices=STAGES)
    parser.add_argument("--count", type=int, default=10**6, help="how many are to be exported in all")
    parser.add_argument("--again", action="store_true", help="also what was done before")
    parser.add_argument("--failed", action="store_true", help="also what failed before")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    {"export": export, "check": check, "summary": summary}[options.step](options)


if __name__ == "__main__":
    main()
