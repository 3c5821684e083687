#!/usr/bin/env python3
"""Compares planloom-cli with ONNX Runtime and ONNX's reference implementation on single nodes of ai.onnx, over all
combinations of their attributes and element types (attribute_cases.py, number_cases.py).

    python3 tests/interop/attribute_tests.py build/run/bin/planloom-cli [--only TEXT] [--table resources/operators.txt]
        [--folder FOLDER] [--cache FILE] [--json FILE] [--verbose]

Needs the packages onnx, onnxruntime and numpy. Each combination is one of

    equal      to ONNX Runtime, or to the reference where that does not compute it
    disputed   equal to the reference, from which ONNX Runtime differs
    refused    with the attribute's or input's name in the message
    unnamed    refused with another message
    unchecked  computed by neither of the two
    DIFFERENT  from both

The exit status is 1 if one is different or unnamed. With --table, the table must name every attribute that ONNX has.
"""

import argparse
import collections
import dataclasses
import hashlib
import inspect
import json
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import attribute_cases
import number_cases
from attribute_cases import Stored

NODES = 40  # in a model: starting a process takes longer than a small node
OLDEST, NEWEST = 7, 25


def all_cases(only):
    for module in (attribute_cases, number_cases):
        for name, generate in list(vars(module).items()):
            if not inspect.isgeneratorfunction(generate) or generate.__module__ != module.__name__:
                continue
            if inspect.signature(generate).parameters:
                continue
            # Each family draws the same numbers, whatever is drawn before it.
            attribute_cases.RANDOM.bit_generator.state = numpy.random.default_rng(7).bit_generator.state
            for case in generate():
                if only is None or case.kind == only or only == name:
                    yield case


def parts_of(case, number):
    """Nodes, fed inputs, initializers and outputs of a case, whose names begin with its number."""
    names, fed, stored = [], {}, []
    for slot, given in enumerate(case.inputs):
        name = "" if given is None else f"c{number}_x{slot}"
        names.append(name)
        if isinstance(given, Stored):
            stored.append(numpy_helper.from_array(numpy.asarray(given.values), name))
        elif given is not None:
            fed[name] = numpy.asarray(given)
    outputs = [f"c{number}_y{i}" if not case.wanted or i in case.wanted else "" for i in range(case.outputs)]
    node = helper.make_node(case.kind, names, outputs, name=f"c{number}")
    for name, value in case.attributes.items():
        integral = isinstance(value, list) and not value
        node.attribute.append(helper.make_attribute(name, value, attr_type=onnx.AttributeProto.INTS if integral else None))
    nodes = [node]
    for step, (kind, attributes) in enumerate(case.then):
        made = [f"c{number}_z{step}"]
        nodes.append(helper.make_node(kind, outputs[:1], made, name=f"c{number}", **attributes))
        outputs = made
    return nodes, fed, stored, [name for name in outputs if name]


def model_of(numbered, opset):
    nodes, values, stored, outputs, fed = [], [], [], [], {}
    for number, case in numbered:
        more, inputs, initializers, made = parts_of(case, number)
        nodes += more
        stored += initializers
        outputs += made
        fed.update(inputs)
    values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape))
              for name, array in fed.items()]
    made = [onnx.ValueInfoProto(name=name) for name in outputs]
    # A file that holds a parameter: all that is fed is an input.
    stored.append(numpy_helper.from_array(numpy.ones((8, 8), numpy.float32), "layer.weight"))
    graph = helper.make_graph(nodes, "cases", values, made, stored)
    # ONNX Runtime takes no newer version of the format than this one.
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), fed, outputs


def samples_last(case):
    """The same recurrence with layout 0, which alone ONNX Runtime has, and how its outputs are turned back."""
    inputs = [i if slot not in (0, 5, 6) or i is None else i.transpose(1, 0, 2) for slot, i in enumerate(case.inputs)]
    attributes = {**case.attributes, "layout": 0}
    return (dataclasses.replace(case, inputs=inputs, attributes=attributes),
            lambda made: made.transpose(2, 0, 1, 3) if made.ndim == 4 else made.transpose(1, 0, 2))


def by_runtime(case):
    if case.attributes.get("layout") == 1:
        turned, back = samples_last(case)
        return [back(made) for made in by_runtime(turned)]
    model, fed, _ = model_of([(0, case)], case.opset)
    model.ir_version = 8 if case.opset < 21 else 10
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    return session.run(None, fed)


def by_reference(case):
    model, fed, _ = model_of([(0, case)], case.opset)
    return ReferenceEvaluator(model).run(None, fed)


def with_counted_axes(case):
    """The same Resize with axes counted from the first: neither oracle counts all of them from the last."""
    axes, rank = case.attributes["axes"], case.inputs[0].ndim
    return dataclasses.replace(case, attributes={**case.attributes, "axes": [axis % rank for axis in axes]})


def computed(case, compute, cache):
    """What an oracle makes of a case; None if it does not compute it."""
    if case.kind == "Resize" and "axes" in case.attributes:
        case = with_counted_axes(case)
    model, fed, _ = model_of([(0, case)], case.opset)
    told = compute.__name__.encode() + model.SerializeToString() + b"".join(fed[name].tobytes() for name in sorted(fed))
    key = hashlib.sha256(told).hexdigest()
    if key not in cache:
        try:
            cache[key] = [numpy.asarray(array) for array in compute(case)]
        except Exception:  # of many kinds, all of which say that it computes no such node
            cache[key] = None
    return cache[key]


def difference(wanted, found):
    """What is wrong with an output; empty if nothing is."""
    if found is None:
        return "is missing"
    if tuple(found.shape) != tuple(wanted.shape):
        return f"has the shape {list(found.shape)}, expected {list(wanted.shape)}"
    if found.dtype != wanted.dtype:
        return f"is {found.dtype}, expected {wanted.dtype}"
    if wanted.dtype.kind in "iub":
        close = found == wanted
    else:
        coarse = wanted.dtype == numpy.float16
        got, expected = found.astype(numpy.float64), wanted.astype(numpy.float64)
        close = numpy.isclose(got, expected, rtol=4e-3 if coarse else 1e-4, atol=2e-3 if coarse else 1e-5, equal_nan=True)
    if close.all():
        return ""
    at = tuple(int(i) for i in numpy.argwhere(~close)[0])
    return f"is {found[at]} at {list(at)}, expected {wanted[at]} ({int((~close).sum())} of {close.size})"


class Planloom:
    """Runs cases, many to a model; those that are refused leave the model one by one."""

    def __init__(self, cli, folder):
        self.cli, self.folder, self.starts = cli, folder, 0
        self.refused, self.made = {}, {}

    def once(self, numbered, opset):
        folder = self.folder / str(self.starts)
        self.starts += 1
        folder.mkdir(parents=True, exist_ok=True)
        model, fed, outputs = model_of(numbered, opset)
        onnx.save(model, folder / "model.onnx")
        numpy.savez(folder / "inputs.npz", **fed)
        command = [self.cli, "run", str(folder / "model.onnx"), "--cluster", "cpu:1", "--inference",
                   "--dump", str(folder / "dump"), "--json"] + (["--inputs", str(folder / "inputs.npz")] if fed else [])
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        said = (done.stderr + done.stdout).strip()
        files = {name: folder / "dump" / "out" / f"{name}.npy" for name in outputs}
        found = {name: numpy.load(path) for name, path in files.items() if path.exists()}
        return done.returncode, said, found

    def run(self, numbered, opset):
        numbered = list(numbered)
        while numbered:
            status, said, found = self.once(numbered, opset)
            if status == 0:
                for number, case in numbered:
                    self.made[number] = [found.get(name) for name in parts_of(case, number)[3]]
                return
            named = re.search(r"\bc(\d+)(?!\d)", said)
            guilty = [n for n, _ in numbered if named and n == int(named[1])]
            if len(numbered) == 1 or guilty:
                number = guilty[0] if guilty else numbered[0][0]
                self.refused[number] = f"status {status}: {said}" if status not in (1, 2) else said
                numbered = [(n, case) for n, case in numbered if n != number]
                continue
            middle = len(numbered) // 2
            self.run(numbered[:middle], opset)
            self.run(numbered[middle:], opset)
            return


# What messages call that which an input or attribute is.
CALLED = {"Resize": ["scales", "sizes", "roi"], "MaxPool": ["indices"]}


def names_culprit(case, said):
    names = list(case.attributes) + CALLED.get(case.kind, [])
    names += [str(numpy.asarray(getattr(i, "values", i)).dtype) for i in case.inputs if i is not None]
    return any(name in said for name in names)


def outcome_of(case, number, planloom, cache):
    """@return (outcome, words)"""
    if number in planloom.refused:
        said = planloom.refused[number].splitlines()[0]
        if planloom.refused[number].startswith("status"):
            return "DIFFERENT", said
        return ("refused" if names_culprit(case, said) else "unnamed"), said
    found = planloom.made[number]
    words = {}
    for name, compute in (("runtime", by_runtime), ("reference", by_reference)):
        expected = computed(case, compute, cache)
        if expected is None:
            continue
        wrong = [f"output {slot} {text}" for slot, (wanted, got) in enumerate(zip(expected, found))
                 if (text := difference(wanted, got))]
        if not wrong:
            return ("disputed" if words else "equal"), "; ".join(words.values())
        words[name] = f"{name}: {wrong[0]}"
    return ("DIFFERENT" if words else "unchecked"), "; ".join(words.values())


def missing_in_table(table):
    """Attributes of ONNX's operators that the table does not name, as "Operator.attribute"."""
    known = collections.defaultdict(set)
    kind = None
    for line in table.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            kind = line.split()[0] if " imported " in line else None
        elif kind:
            known[kind].add(line.split()[0])
    versions = collections.defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            versions[schema.name][schema.since_version] = schema
    missing = []
    for name, schemas in versions.items():
        first = max((v for v in schemas if v <= OLDEST), default=OLDEST)
        named = {a for version, schema in schemas.items() if version >= first for a in schema.attributes}
        if name in known or any(line.startswith(name + " ") and " imported " in line for line in table.read_text().splitlines()):
            missing += [f"{name}.{a}" for a in sorted(named - known[name])]
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cli")
    parser.add_argument("--only", help="an operator, or a family of cases such as resizes")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--cache", type=pathlib.Path, help="where to keep what the oracles computed")
    parser.add_argument("--json", type=pathlib.Path, help="where to write all outcomes")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true", help="every combination that is not equal")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    onnxruntime.set_default_logger_severity(4)
    cache = pickle.loads(arguments.cache.read_bytes()) if arguments.cache and arguments.cache.exists() else {}
    planloom = Planloom(arguments.cli, arguments.folder or pathlib.Path(tempfile.mkdtemp()))
    cases = list(enumerate(all_cases(arguments.only)))
    by_model = collections.defaultdict(list)
    for number, case in cases:
        by_model[case.kind, case.opset].append((number, case))
    for (_, opset), numbered in by_model.items():
        for first in range(0, len(numbered), NODES):
            planloom.run(numbered[first:first + NODES], opset)
    totals, by_kind, everything = collections.Counter(), collections.defaultdict(collections.Counter), []
    for number, case in cases:
        outcome, words = outcome_of(case, number, planloom, cache)
        totals[outcome] += 1
        by_kind[case.kind][outcome] += 1
        everything.append((case.kind, case.title(), outcome, words))
        if outcome in ("DIFFERENT", "unnamed") or (arguments.verbose and outcome != "equal"):
            print(f"{outcome:9} {case.title()}: {words}")
    for kind in sorted(by_kind):
        print(f"{kind:28}" + ", ".join(f"{count} {outcome}" for outcome, count in sorted(by_kind[kind].items())))
    print(f"{len(cases)} combinations: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(totals.items())))
    missing = missing_in_table(arguments.table) if arguments.table else []
    for name in missing:
        print(f"the table does not name {name}")
    if arguments.cache:
        arguments.cache.write_bytes(pickle.dumps(cache))
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=1))
    return 1 if missing or totals["DIFFERENT"] or totals["unnamed"] else 0


if __name__ == "__main__":
    sys.exit(main())
