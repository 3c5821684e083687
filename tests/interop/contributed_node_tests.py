#!/usr/bin/env python3
"""Compares planloom-cli with ONNX Runtime on single operators of its domain com.microsoft.

    python3 tests/interop/contributed_node_tests.py build/run/bin/planloom-cli [--folder FOLDER]

Needs the packages onnx, onnxruntime and numpy. The exit status is 1 if a case differs or is refused.
"""

import argparse
import pathlib
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

from onnx_node_tests import difference, run_once

RANDOM = numpy.random.default_rng(1)


def floats(*shape):
    return RANDOM.uniform(-1, 1, shape).astype(numpy.float32)


def angles(places, pairs):
    at = numpy.outer(numpy.arange(places), 10.0 ** -numpy.linspace(0, 1, pairs))
    return numpy.cos(at).astype(numpy.float32), numpy.sin(at).astype(numpy.float32)


def cases():
    """Name, operator, inputs (None where absent; those in a tuple are stored in the file), attributes,
    number of outputs."""
    x, skip, scale, shift, bias = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)
    yield "quick_gelu", "QuickGelu", [x], {"alpha": 1.702}, 1
    yield "fast_gelu_bias", "FastGelu", [x, bias], {}, 1
    yield "bias_gelu", "BiasGelu", [x, bias], {}, 1
    yield "fused_matmul", "FusedMatMul", [floats(2, 3, 4), floats(2, 5, 4)], {"alpha": 0.3, "transB": 1}, 1
    yield "fused_matmul_a", "FusedMatMul", [floats(2, 4, 3), floats(2, 4, 5)], {"transA": 1}, 1
    yield "fused_matmul_batch", "FusedMatMul", [floats(3, 2, 4), floats(2, 4, 5)], {"transBatchA": 1}, 1
    yield "skip_layer_norm", "SkipLayerNormalization", [x, skip, scale, shift, bias], {"epsilon": 1e-5}, 1
    yield "skip_layer_norm_sum", "SkipLayerNormalization", [x, skip, scale, shift], {"epsilon": 1e-5}, 4
    yield "skip_rms_norm", "SkipSimplifiedLayerNormalization", [x, skip, scale, bias], {"epsilon": 1e-5}, 4
    cosine, sine = angles(10, 2)
    places = numpy.array([[0, 1, 2], [3, 1, 5]], numpy.int64)
    rotary = {"num_heads": 2}
    yield "rotary", "RotaryEmbedding", [x, places, (cosine,), (sine,)], rotary, 1
    yield "rotary_interleaved", "RotaryEmbedding", [x, places, (cosine,), (sine,)], {"interleaved": 1, **rotary}, 1
    yield "rotary_offset", "RotaryEmbedding", [x, numpy.array([4], numpy.int64), (cosine,), (sine,)], rotary, 1
    yield "rotary_heads", "RotaryEmbedding", [floats(2, 2, 3, 4), places, (cosine,), (sine,)], {}, 1
    q, k, v = floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8)
    yield "attention", "MultiHeadAttention", [q, k, v], {"num_heads": 2}, 1
    yield "attention_bias", "MultiHeadAttention", [q, k, v, floats(24)], {"num_heads": 2}, 1
    padding = numpy.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], numpy.int32)
    yield "attention_padding", "MultiHeadAttention", [q, k, v, None, padding], {"num_heads": 2}, 1
    added = floats(2, 2, 3, 5)
    yield "attention_added", "MultiHeadAttention", [q, k, v, None, None, added], {"num_heads": 2, "scale": 0.7}, 1
    yield "attention_causal", "MultiHeadAttention", [q, k[:, :3], v[:, :3]], {"num_heads": 2, "unidirectional": 1}, 1
    grouped = {"num_heads": 4, "kv_num_heads": 2}
    gq, gk, gv = floats(2, 6, 64), floats(2, 6, 32), floats(2, 6, 32)
    lengths = (numpy.array([5, 5], numpy.int32),)
    total = (numpy.array(6, numpy.int32),)
    yield "grouped", "GroupQueryAttention", [gq, gk, gv, None, None, lengths, total], grouped, 3
    yield "grouped_packed", "GroupQueryAttention", [floats(2, 6, 128), None, None, None, None, lengths, total], grouped, 3
    cosine, sine = angles(10, 8)
    turned = [gq, gk, gv, None, None, lengths, total, (cosine,), (sine,)]
    yield "grouped_rotary", "GroupQueryAttention", turned, {"do_rotary": 1, **grouped}, 3
    yield "grouped_window", "GroupQueryAttention", turned[:7], {"local_window_size": 2, **grouped}, 3
    yield "grouped_softcap", "GroupQueryAttention", turned[:7], {"softcap": 0.5, "scale": 2.0, **grouped}, 3


def model_of(kind, inputs, attributes, outputs):
    names, values, initializers, fed = [], [], [], {}
    for slot, given in enumerate(inputs):
        if given is None:
            names.append("")
            continue
        name = f"x{slot}"
        names.append(name)
        if isinstance(given, tuple):
            initializers.append(onnx.numpy_helper.from_array(given[0], name))
            continue
        fed[name] = given
        values.append(helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(given.dtype), list(given.shape)))
    written = [f"y{i}" if i in (0, outputs - 1) or kind == "GroupQueryAttention" else "" for i in range(outputs)]
    node = helper.make_node(kind, names, written, name="node", domain="com.microsoft", **attributes)
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in written if name]
    graph = helper.make_graph([node], "case", values, made, initializers)
    sets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10), fed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cli")
    parser.add_argument("--folder", type=pathlib.Path)
    arguments = parser.parse_args()
    root = arguments.folder or pathlib.Path(tempfile.mkdtemp())
    failed = 0
    for name, kind, inputs, attributes, outputs in cases():
        model, fed = model_of(kind, inputs, attributes, outputs)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = session.run(None, fed)
        status, words, found = run_once(arguments.cli, root / name, model, fed)
        wrong = words if status != 0 else ""
        for value, wanted in zip(model.graph.output, expected):
            wrong = wrong or difference(wanted, found.get(value.name))
        failed += 1 if wrong else 0
        print(f"{name}: {wrong or 'equal'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
