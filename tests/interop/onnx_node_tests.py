#!/usr/bin/env python3
"""Runs ONNX's own node tests (package `onnx`, backend test data) on planloom-cli.

    python3 tests/interop/onnx_node_tests.py build/run/bin/planloom-cli [--folder FOLDER] [--only TEXT]
        [--table resources/operators.txt] [--jobs N]

Every case of operator sets 7 to 25 is written to FOLDER as an ONNX file and its inputs, run whole on one CPU
device, and its outputs are compared with the case's own. Inputs that say shapes, axes and the like are stored
in the file where the model cannot be imported otherwise: exporters write them as constants.

With --table, operators that the table says can be run must have no wrong case, and at least one that runs;
the exit status is 1 otherwise, and whenever a case has wrong values.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnx.numpy_helper
from onnx.backend.test.case.node import collect_testcases

OLDEST, NEWEST = 7, 25


RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


def draws(case):
    """True if the outputs depend on how random numbers are made, which ONNX leaves open."""
    types = {n.op_type for n in case.model.graph.node}
    dropped = "Dropout" in types and "training" in case.name and "zero_ratio" not in case.name
    return bool(types & RANDOM) or dropped


def known_as(array):
    """The array as an input that .npz can hold; None if it cannot."""
    array = numpy.asarray(array)
    return array if array.dtype.kind in "fiub" and array.dtype.isbuiltin == 1 else None


def cases(only):
    for case in collect_testcases(None):
        versions = [s.version for s in case.model.opset_import if s.domain in ("", "ai.onnx")]
        nodes = case.model.graph.node
        if not versions or not OLDEST <= versions[0] <= NEWEST or not case.data_sets:
            continue
        if draws(case):
            continue
        if case.name.endswith("_expanded") or "_expanded_ver" in case.name:
            continue  # a function's body; its operators have cases of their own
        if only and only not in case.name and only not in {n.op_type for n in nodes}:
            continue
        yield case


def tensors_of(case):
    """Inputs and expected outputs by name; None if some are sequences or optional values."""
    graph = case.model.graph
    given, expected = case.data_sets[0]
    inputs, outputs = {}, {}
    for value, array in zip(graph.input, given):
        if not value.type.HasField("tensor_type") or isinstance(array, (list, dict)):
            return None
        if isinstance(array, onnx.TensorProto):
            array = onnx.numpy_helper.to_array(array)
        inputs[value.name] = known_as(array)
        if inputs[value.name] is None:
            return None
    for value, array in zip(graph.output, expected):
        if not value.type.HasField("tensor_type") or isinstance(array, (list, dict)):
            return None
        if isinstance(array, onnx.TensorProto):
            array = onnx.numpy_helper.to_array(array)
        outputs[value.name] = known_as(array)
        if outputs[value.name] is None:
            return None
    return inputs, outputs


def written(case, inputs, stored):
    """The case's model, with the inputs named in `stored` as initializers and the sizes of all others."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    keep = [value for value in graph.input if value.name not in stored]
    del graph.input[:]
    graph.input.extend(keep)
    for name in stored:
        graph.initializer.append(onnx.numpy_helper.from_array(inputs[name], name))
    for value in graph.input:
        value.type.tensor_type.ClearField("shape")
        for extent in inputs[value.name].shape:
            value.type.tensor_type.shape.dim.add().dim_value = extent
        if not inputs[value.name].shape:
            value.type.tensor_type.shape.SetInParent()
    return model


def run_once(cli, folder, model, inputs):
    """@return (exit status, what it said, outputs by name)"""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    numpy.savez(folder / "inputs.npz", **{v.name: inputs[v.name] for v in model.graph.input})
    dump = folder / "dump"
    command = [cli, "run", str(folder / "model.onnx"), "--cluster", "cpu:1", "--inference", "--dump", str(dump)]
    if model.graph.input:
        command += ["--inputs", str(folder / "inputs.npz")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    outputs = {}
    for file in dump.rglob("*.npy"):
        name = str(file.relative_to(dump))[: -len(".npy")]
        if name.startswith("out/"):
            outputs[name[len("out/"):]] = numpy.load(file)
    said = [line for line in (done.stderr + done.stdout).strip().splitlines() if line]
    return done.returncode, said[0] if said else "", outputs


def difference(expected, found):
    """What is wrong with an output; empty if nothing is."""
    if found is None:
        return "is missing"
    if tuple(found.shape) != tuple(expected.shape):
        return f"has the shape {list(found.shape)}, expected {list(expected.shape)}"
    if expected.size == 0:
        return ""
    wanted, got = expected.astype(numpy.float64), found.astype(numpy.float64)
    coarse = expected.dtype == numpy.float16
    close = numpy.isclose(got, wanted, rtol=1e-2 if coarse else 1e-3, atol=1e-3 if coarse else 1e-5, equal_nan=True)
    if close.all():
        return ""
    at = tuple(int(i) for i in numpy.argwhere(~close)[0])
    return f"is {got[at]} at {list(at)}, expected {wanted[at]}"


def try_case(cli, root, case):
    """@return (name, operator, outcome, words); outcome is "equal", "wrong", "refused" or "skipped" """
    types = {n.op_type for n in case.model.graph.node}
    name = case.name
    kind = max(types, key=lambda t: t.lower().replace("_", "") in name.replace("_", "")) if types else ""
    for t in sorted(types, key=len, reverse=True):
        if t.lower() in name.replace("_", ""):
            kind = t
            break
    tensors = tensors_of(case)
    if tensors is None:
        return name, kind, "skipped", "it has sequences, texts, or types that .npz files do not have"
    inputs, expected = tensors
    names = [v.name for v in case.model.graph.input]
    integral = [n for n in names if inputs[n].dtype.kind in "iub" or inputs[n].size == 0]
    attempts = [[], integral, names[1:]]
    said = ""
    for number, stored in enumerate(attempts):
        if stored in attempts[:number]:
            continue
        if any(inputs[n].size == 0 for n in names if n not in stored):
            continue
        try:
            model = written(case, inputs, stored)
            status, words, outputs = run_once(cli, root / name / str(number), model, inputs)
        except subprocess.TimeoutExpired:
            return name, kind, "wrong", "it does not end"
        said = words
        if status == 0:
            for output, values in expected.items():
                wrong = difference(values, outputs.get(output))
                if wrong:
                    return name, kind, "wrong", f"output {output} {wrong}"
            return name, kind, "equal", ""
        if status < 0 or status > 3:
            return name, kind, "wrong", f"it ended with status {status}: {words}"
    return name, kind, "refused", said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cli")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--only", help="cases or operators with this text in their name")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=pathlib.Path, help="where to write all outcomes")
    arguments = parser.parse_args()
    root = arguments.folder or pathlib.Path(tempfile.mkdtemp())
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        jobs = [pool.submit(try_case, arguments.cli, root, case) for case in cases(arguments.only)]
        for job in concurrent.futures.as_completed(jobs):
            outcomes.append(job.result())
    outcomes.sort()
    by_kind = collections.defaultdict(collections.Counter)
    for name, kind, outcome, words in outcomes:
        by_kind[kind][outcome] += 1
        if outcome in ("wrong", "refused"):
            print(f"{outcome:8} {name}: {words}")
    total = collections.Counter(outcome for _, _, outcome, _ in outcomes)
    print(", ".join(f"{total[o]} {o}" for o in ("equal", "wrong", "refused", "skipped")))
    if arguments.json:
        arguments.json.write_text(json.dumps(outcomes, indent=1))
    failed = total["wrong"] > 0
    if arguments.table:
        for line in arguments.table.read_text().splitlines():
            words = line.split()
            if line.startswith(("#", " ")) or "run" not in words[1:]:
                continue
            counts = by_kind.get(words[0])
            if counts and not counts["equal"] and counts["refused"]:
                print(f"{words[0]} claims to run, but none of its cases does")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
