"""Single nodes of ai.onnx, as attribute_cases.py has them: reductions, norms, losses, recurrences, attention, and the
arithmetic of every element type."""

import itertools

import numpy
from onnx import TensorProto, helper

from attribute_cases import Case, Stored, floats, integers, ints, options, whole

FLOATING = (numpy.float32, numpy.float64, numpy.float16)
WHOLE = (numpy.int64, numpy.int32, numpy.int16, numpy.int8, numpy.uint8)


def drawn(dtype, *shape, low=-9, high=9):
    if dtype in FLOATING:
        return floats(*shape, dtype=dtype)
    if dtype == numpy.bool_:
        return integers(*shape, low=0, high=2).astype(numpy.bool_)
    return integers(*shape, low=max(low, 0) if dtype == numpy.uint8 else low, high=high, dtype=dtype)


# --- reductions ------------------------------------------------------------------------------------------------------

REDUCTIONS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]


def reductions():
    for name in REDUCTIONS:
        kind = "Reduce" + name
        x = floats(2, 3, 4, low=0.2)
        moved = 13 if name == "Sum" else 18
        for opset in (7, 13, 18):
            for axes, attributes in itertools.product((None, [1], [0, 2], [-1]), list(options(keepdims=[None, 0, 1]))):
                if axes == [-1] and opset < 11:
                    continue
                if opset < moved:
                    yield Case(kind, opset, [x], {**attributes, **({"axes": axes} if axes else {})})
                    continue
                for noop in (None, 0, 1):
                    more = {} if noop is None else {"noop_with_empty_axes": noop}
                    yield Case(kind, opset, [x] if axes is None else [x, ints(*axes)], {**attributes, **more})
            if opset >= moved:
                for noop in (0, 1):
                    yield Case(kind, opset, [x, ints()], {"noop_with_empty_axes": noop})
        for dtype in (numpy.int32, numpy.int64, numpy.float64):
            for stored in (False, True):
                values = drawn(dtype, 2, 3, 4, low=1, high=5) if dtype != numpy.float64 else floats(2, 3, 4, low=0.2, dtype=dtype)
                yield Case(kind, 13, [Stored(values) if stored else values], {} if name == "Sum" else {"axes": [1]})
        if name in ("Max", "Min"):
            for dtype in (numpy.uint8, numpy.int8, numpy.bool_):
                if dtype != numpy.bool_:
                    yield Case(kind, 13, [drawn(dtype, 2, 3, 4)], {"axes": [1]})
                yield Case(kind, 20, [drawn(dtype, 2, 3, 4), ints(1)], {})
    for kind in ("ReduceLogSumExp",):
        yield Case(kind, 18, [floats(2, 3) + 200, ints(1)])
    yield Case("ReduceMean", 18, [numpy.array([[7, -8, 2], [-1, -1, 0]], numpy.int32), ints(1)])
    yield Case("ReduceMean", 18, [Stored(numpy.array([[7, -8, 2], [-1, -1, 0]], numpy.int32)), ints(1)])
    yield Case("ReduceSum", 13, [numpy.array([2 ** 31 - 1, 5], numpy.int32), ints(0)])
    yield Case("ReduceSum", 13, [numpy.array([2 ** 53 + 1, 2], numpy.int64), ints(0)])
    yield Case("ReduceProd", 13, [numpy.array([2 ** 31, 2 ** 29 + 1], numpy.int64)], {"axes": [0]})
    for opset, kind in itertools.product((7, 11, 13), ("Softmax", "LogSoftmax", "Hardmax")):
        for axis in (None, 0, 1, 2, -1, -2):
            if axis is None or axis >= 0 or opset >= 11:
                yield Case(kind, opset, [floats(2, 3, 4)], {} if axis is None else {"axis": axis})
    yield Case("Hardmax", 13, [integers(3, 5, low=0, high=3).astype(numpy.float32)], {})


# --- norms -----------------------------------------------------------------------------------------------------------

def norms():
    x = floats(4, 4, 2, 5)
    four = [floats(4), floats(4), floats(4), floats(4, low=0.3)]
    stored = [Stored(values) for values in four]
    for opset in (7, 9, 14, 15):
        for attributes in options(epsilon=[None, 0.1], momentum=[None, 0.3], spatial=[None, 1] if opset == 7 else [None]):
            yield Case("BatchNormalization", opset, [x, *four], attributes)
            yield Case("BatchNormalization", opset, [floats(3, 4), *four], attributes)
            if opset >= 14:
                for outputs in (1, 3):
                    yield Case("BatchNormalization", opset, [x, *four], {"training_mode": 1, **attributes}, outputs)
                yield Case("BatchNormalization", opset, [x, *stored], {"training_mode": 0, **attributes})
    yield Case("BatchNormalization", 7, [floats(2, 3, 2), *[floats(3, 2) for _ in range(3)], floats(3, 2, low=0.3)], {"spatial": 0})
    for opset in (7, 22):
        for epsilon in (None, 0.1):
            yield Case("InstanceNormalization", opset, [x, *four[:2]], {} if epsilon is None else {"epsilon": epsilon})
    for attributes in options(axis=[None, 0, 1, 2, -1, -2], epsilon=[None, 0.1], stash_type=[None, 1]):
        shape = x.shape[attributes.get("axis", -1):]
        for outputs, bias in ((1, True), (1, False), (3, True)):
            yield Case("LayerNormalization", 17, [x, floats(*shape), *([floats(*shape)] if bias else [])], attributes, outputs)
        yield Case("RMSNormalization", 23, [x, floats(*shape)], attributes)
    yield Case("LayerNormalization", 17, [floats(2, 3, 4), floats(1, 4)], {})
    for dtype, stash in itertools.product((numpy.float16, numpy.float64), (None, 1, 10, 11, 16)):
        attributes = {} if stash is None else {"stash_type": stash}
        for kind, opset in (("LayerNormalization", 17), ("RMSNormalization", 23)):
            yield Case(kind, opset, [floats(3, 5, dtype=dtype), floats(5, dtype=dtype)], attributes)
        yield Case("LayerNormalization", 17, [floats(3, 5, dtype=dtype), floats(5, dtype=dtype), floats(5, dtype=dtype)], attributes, 3)
    for attributes in options(num_groups=[1, 2, 4], epsilon=[None, 0.1]):
        groups = attributes["num_groups"]
        yield Case("GroupNormalization", 18, [x, floats(groups), floats(groups)], attributes)
        for stash in (None, 1):
            more = {} if stash is None else {"stash_type": stash}
            yield Case("GroupNormalization", 21, [x, floats(4), floats(4)], {**attributes, **more})
    for attributes in options(size=[1, 2, 3, 4, 9], alpha=[None, 0.5], beta=[None, 0.3], bias=[None, 2.0]):
        yield Case("LRN", 13, [x], attributes)
    for attributes in options(axis=[None, 0, -2], p=[None, 1, 2]):
        yield Case("LpNormalization", 7, [x], attributes)
        yield Case("LpNormalization", 22, [x], attributes)
    yield Case("LpNormalization", 22, [numpy.array([[0, 0], [3, 4]], numpy.float32)], {})
    for opset, axes in itertools.product((9, 13), (None, [0, 1, 2, 3], [1], [-1, 0])):
        yield Case("MeanVarianceNormalization", opset, [x], {"axes": axes} if axes else {})


# --- losses ----------------------------------------------------------------------------------------------------------

def losses():
    for kind, opset in itertools.product(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), (13,)):
        for attributes in options(reduction=[None, "none", "sum", "mean"], ignore_index=[None, 0, 2, -1]):
            for weighted, shape, dtype in itertools.product((False, True), ((), (2, 3)), (numpy.int64, numpy.int32)):
                target = integers(3, *shape, low=0, high=4, dtype=dtype)
                if attributes.get("ignore_index") == -1:
                    target.flat[0] = -1
                inputs = [floats(3, 4, *shape), target] + ([floats(4, low=0.2)] if weighted else [])
                yield Case(kind, opset, inputs, attributes)
                if kind.startswith("Softmax") and dtype == numpy.int64:
                    yield Case(kind, opset, inputs, attributes, 2)
    for kind in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        yield Case(kind, 13, [floats(3, 4), numpy.array([1, 1, 1], numpy.int64)], {"ignore_index": 1, "reduction": "sum"})


# --- recurrences -----------------------------------------------------------------------------------------------------

RECURRENT = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}  # gates, activations
ACTIVATIONS = ["Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
               "Softsign", "Softplus"]


def recurrent(kind, opset, attributes, *, bias=True, lengths=False, initial=False, peepholes=False):
    gates = RECURRENT[kind][0]
    steps, batch, width, hidden = 4, 3, 2, 3
    ways = 2 if attributes.get("direction") == "bidirectional" else 1
    first = attributes.get("layout") == 1
    x = floats(batch, steps, width) if first else floats(steps, batch, width)
    state = (batch, ways, hidden) if first else (ways, batch, hidden)
    # Small, so that nothing grows until it overflows.
    inputs = [x, floats(ways, gates * hidden, width, low=-0.5, high=0.5),
              floats(ways, gates * hidden, hidden, low=-0.5, high=0.5),
              floats(ways, 2 * gates * hidden) if bias else None,
              numpy.array([4, 2, 3], numpy.int32) if lengths else None, floats(*state) if initial else None]
    if kind == "LSTM":
        inputs += [floats(*state) if initial else None, floats(ways, 3 * hidden) if peepholes else None]
    while inputs[-1] is None:
        inputs.pop()
    return Case(kind, opset, inputs, {"hidden_size": hidden, **attributes}, 3 if kind == "LSTM" else 2)


def recurrences():
    for kind, (gates, functions) in RECURRENT.items():
        directions = [None, "forward", "reverse", "bidirectional"]
        own = {"GRU": {"linear_before_reset": [None, 1]}, "LSTM": {"input_forget": [None, 1]}}.get(kind, {})
        for opset in (7, 22):
            for attributes in options(direction=directions, clip=[None, 0.4], layout=[None, 1] if opset >= 14 else [None],
                                      **own):
                for lengths, initial in ((False, False), (True, True)):
                    yield recurrent(kind, opset, attributes, lengths=lengths, initial=initial)
        yield recurrent(kind, 22, {}, bias=False)
        yield recurrent(kind, 22, {"direction": "bidirectional"}, bias=False, lengths=True)
        for name, direction in itertools.product(ACTIVATIONS, (None, "bidirectional")):
            ways = 2 if direction else 1
            attributes = {"activations": [name] * functions * ways, **({"direction": direction} if direction else {})}
            yield recurrent(kind, 22, attributes)
            alpha, beta = [0.3] * functions * ways, [0.6] * functions * ways
            yield recurrent(kind, 22, {**attributes, "activation_alpha": alpha, "activation_beta": beta})
        yield recurrent(kind, 22, {"activations": ["tanh", "sigmoid", "TANH"][:functions]})
        yield recurrent(kind, 22, {"activations": ["LeakyRelu", "Tanh", "Affine"][:functions], "activation_alpha": [0.2, 0.5][:functions],
                                   "activation_beta": [0.1]})
    for attributes in options(direction=[None, "bidirectional"], input_forget=[None, 1]):
        yield recurrent("LSTM", 22, attributes, peepholes=True, initial=True)


# --- arithmetic ------------------------------------------------------------------------------------------------------

def activations():
    x = floats(3, 5, low=-4, high=4)
    odd = numpy.array([numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0, 1e-30, 88.0, -100.0], numpy.float32)
    for kind, opset, lists in (
            ("Elu", 22, {"alpha": [None, 0.3]}), ("Celu", 12, {"alpha": [None, 0.3]}), ("LeakyRelu", 16, {"alpha": [None, 0.3]}),
            ("ThresholdedRelu", 22, {"alpha": [None, 0.3]}), ("Selu", 22, {"alpha": [None, 0.3], "gamma": [None, 2.0]}),
            ("HardSigmoid", 22, {"alpha": [None, 0.3], "beta": [None, 0.1]}),
            ("Gelu", 20, {"approximate": [None, "none", "tanh"]}), ("Swish", 24, {"alpha": [None, 1.5]}),
            ("Shrink", 9, {"bias": [None, 0.3], "lambd": [None, 1.2]}),
            ("IsInf", 20, {"detect_negative": [None, 0, 1], "detect_positive": [None, 0, 1]})):
        for attributes in options(**lists):
            yield Case(kind, opset, [x], attributes)
            yield Case(kind, opset, [Stored(x)], attributes)
            yield Case(kind, opset, [odd if kind in ("IsInf", "LeakyRelu", "Elu") else x * 10], attributes)
    for kind, opset in (("Abs", 13), ("Ceil", 13), ("Floor", 13), ("Exp", 13), ("Log", 13), ("Neg", 13), ("Reciprocal", 13),
                        ("Relu", 14), ("Round", 22), ("Sigmoid", 13), ("Sign", 13), ("Sqrt", 13), ("Tanh", 13), ("Erf", 13),
                        ("Softplus", 22), ("Softsign", 22), ("HardSwish", 22), ("Mish", 22), ("IsNaN", 13), ("Sin", 22),
                        ("Atan", 22), ("Asinh", 22), ("Acosh", 22), ("Atanh", 22), ("Asin", 22), ("Acos", 22), ("Tan", 22),
                        ("Sinh", 22), ("Cosh", 22), ("Cos", 22)):
        halves = numpy.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4999999], numpy.float32)
        for values in (x, odd, halves, Stored(odd), Stored(halves), x.astype(numpy.float64)):
            yield Case(kind, opset, [values])
        yield Case(kind, opset, [x.astype(numpy.float16)])
    for kind, dtype in itertools.product(("Abs", "Neg", "Sign", "Relu"), WHOLE):
        limits = numpy.array([numpy.iinfo(dtype).min, numpy.iinfo(dtype).max, 0, 1], dtype)
        if (kind in ("Neg", "Relu") and dtype == numpy.uint8) or (kind in ("Abs", "Neg")):
            limits = limits[1:]  # the smallest number has no opposite
        for values in (limits, Stored(limits)):
            yield Case(kind, 14, [values])
    yield Case("BitwiseNot", 18, [drawn(numpy.int32, 5)])
    yield Case("BitwiseNot", 18, [drawn(numpy.uint8, 5)])
    yield Case("PRelu", 16, [x, floats(5)])
    yield Case("PRelu", 16, [floats(2, 3, 4), floats(3, 1)])
    for dtype in (numpy.int32, numpy.int64):
        yield Case("PRelu", 16, [drawn(dtype, 2, 3), drawn(dtype, 3)])


def pairs(dtype):
    """Operands of a division and the like: all signs; no zero below, no overflow."""
    if dtype in FLOATING:
        return (numpy.array([7, -7, 7, -7, 0.5, -0.5, 6, 0], dtype), numpy.array([3, 3, -3, -3, 2, 2, 3, 5], dtype))
    if dtype == numpy.uint8:
        return numpy.array([7, 200, 255, 0, 6], dtype), numpy.array([3, 7, 255, 3, 4], dtype)
    return numpy.array([7, -7, 7, -7, 6, 0, -100], dtype), numpy.array([3, 3, -3, -3, 3, 5, 7], dtype)


def arithmetic():
    for dtype in FLOATING + WHOLE:
        a, b = pairs(dtype)
        ways = [(a, b), (Stored(a), Stored(b)), (a, Stored(b))]
        for first, second in ways:
            for kind in ("Add", "Sub", "Mul", "Div"):
                yield Case(kind, 14, [first, second])
            for kind in ("Min", "Max"):
                yield Case(kind, 13, [first, second])
            if dtype in WHOLE:
                yield Case("Mod", 13, [first, second])
                yield Case("Mod", 13, [first, second], {"fmod": 0})
            yield Case("Mod", 13, [first, second], {"fmod": 1})
            for kind in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
                yield Case(kind, 16 if kind.endswith("OrEqual") else 13, [first, second])
    for dtype in WHOLE:
        edge = numpy.array([numpy.iinfo(dtype).max, numpy.iinfo(dtype).min, numpy.iinfo(dtype).max], dtype)
        one = numpy.array([1, 1, 2], dtype)
        for kind in ("Add", "Sub", "Mul"):
            yield Case(kind, 14, [edge, one])
            yield Case(kind, 14, [Stored(edge), Stored(one)])
        yield Case("Greater", 13, [edge, one])
    yield Case("Equal", 13, [numpy.array([2 ** 53, 2 ** 53 + 1], numpy.int64), numpy.array([2 ** 53 + 1] * 2, numpy.int64)])
    odd, two = numpy.array([numpy.nan, 1, numpy.inf, -0.0], numpy.float32), numpy.array([1, numpy.nan, -1, 0.0], numpy.float32)
    for kind, opset in (("Min", 13), ("Max", 13), ("Add", 14), ("Div", 14), ("Less", 13), ("Equal", 13)):
        yield Case(kind, opset, [odd, two])
        yield Case(kind, opset, [Stored(odd), Stored(two)])
    yield Case("Mod", 13, [odd[1:], numpy.array([0.0, 2, 3], numpy.float32)], {"fmod": 1})
    for dtype, direction in itertools.product((numpy.uint8,), ("LEFT", "RIGHT")):
        a, by = numpy.array([1, 255, 130, 7], dtype), numpy.array([1, 3, 7, 0], dtype)
        yield Case("BitShift", 11, [a, by], {"direction": direction})
        yield Case("BitShift", 11, [Stored(a), Stored(by)], {"direction": direction})
    for kind, dtype in itertools.product(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), WHOLE):
        yield Case(kind, 18, [drawn(dtype, 6), drawn(dtype, 6)])
    for kind in ("And", "Or", "Xor"):
        yield Case(kind, 7, [drawn(numpy.bool_, 4, 3), drawn(numpy.bool_, 3)])
    yield Case("Not", 1 + 6, [drawn(numpy.bool_, 4)])
    for kind, count in itertools.product(("Sum", "Mean", "Min", "Max"), (1, 2, 3)):
        yield Case(kind, 13, [floats(2, 3) for _ in range(count)])
    for dtype in WHOLE[:2]:
        yield Case("Max", 13, [drawn(dtype, 4), drawn(dtype, 4), drawn(dtype, 1)])
    for dtype in (numpy.bool_, numpy.int64, numpy.uint8, numpy.float64):
        yield Case("Where", 16, [drawn(numpy.bool_, 2, 3), drawn(dtype, 3), drawn(dtype, 2, 1)])


def powers():
    bases = {numpy.float32: [2.5, -2, 0, 1, -1.5], numpy.float64: [2.5, -2, 0, 1, -1.5], numpy.float16: [2.5, -2, 0, 1, -1.5],
             numpy.int64: [3, -2, 0, 1, -1], numpy.int32: [3, -2, 0, 1, -1]}
    exponents = {numpy.float32: [[2], [3], [0.5], [0], [2.7], [1, 2, 3, 0, 1]], numpy.float64: [[2], [2.9], [0.5]],
                 numpy.int64: [[2], [3], [0], [5], [1, 2, 3, 0, 4]], numpy.int32: [[2], [3], [-1]], numpy.uint8: [[3]],
                 numpy.int8: [[2], [-2]], numpy.int16: [[2]]}
    for base, kind in itertools.product(bases, exponents):
        for exponent in exponents[kind]:
            a, b = numpy.array(bases[base], base), numpy.array(exponent, kind)
            if base in WHOLE and min(exponent) < 0:
                a = a[[0, 1, 3, 4]]  # nothing divides by 0
            if len(exponent) > 1 or kind in FLOATING and exponent[0] % 1:
                a = numpy.abs(a)
            for opset in (7, 15):
                if opset < 12 and (base != kind or base not in FLOATING):
                    continue
                yield Case("Pow", opset, [a, b])
                if opset == 15:
                    yield Case("Pow", opset, [Stored(a), Stored(b)])
                    yield Case("Pow", opset, [a, Stored(b)])
    big = numpy.array([3, 2 ** 31 + 1, -3], numpy.int64)
    for exponent in ([39, 2, 39], [33, 1, 5]):
        yield Case("Pow", 15, [big, numpy.array(exponent, numpy.int64)])
        yield Case("Pow", 15, [Stored(big), Stored(numpy.array(exponent, numpy.int64))])


CODES = {numpy.float32: 1, numpy.uint8: 2, numpy.int8: 3, numpy.int16: 5, numpy.int32: 6, numpy.int64: 7, numpy.bool_: 9,
         numpy.float16: 10, numpy.float64: 11}


def casts():
    for source, (target, code) in itertools.product(CODES, CODES.items()):
        if source in FLOATING:
            inside = numpy.array([0, 1.7, -1.7, 2.5, 100, -0.0, 0.4], source)
            outside = numpy.array([300, -1, -200, 7e4, -4e4, 3e9, -3e9, 1e10, 2 ** 63, -1e19, numpy.inf, -numpy.inf, numpy.nan], source)
        elif source == numpy.bool_:
            inside, outside = numpy.array([True, False]), numpy.array([True])
        else:
            limits = numpy.iinfo(source)
            inside = numpy.array([0, 1, 100], source)
            outside = numpy.array([limits.max, limits.min, max(limits.min, -1), limits.max // 2 + 7], source)
        for values in (inside, outside):
            for wrap in (lambda v: v, Stored):
                yield Case("Cast", 13, [wrap(values)], {"to": code})
                yield Case("CastLike", 15, [wrap(values), numpy.zeros(1, target)])
            yield Case("Cast", 19, [values], {"to": code, "saturate": 0})
    for to, saturate in itertools.product((16, 17, 18, 19, 20, 22, 21, 4, 12, 13, 8), (None, 0, 1)):
        yield Case("Cast", 21, [floats(3)], {"to": to, **({} if saturate is None else {"saturate": saturate})}, 1,
                   (("Cast", {"to": 1}),))
    for mode in ("up", "down", "nearest"):
        yield Case("Cast", 24, [floats(3)], {"to": 24, "round_mode": mode}, 1, (("Cast", {"to": 1}),))
        yield Case("Cast", 24, [floats(3)], {"to": 10, "round_mode": mode})


def clips():
    x = floats(3, 5, low=-4, high=4)
    for attributes in options(min=[None, -1.5, -3.4028234663852886e38], max=[None, 2.0, 3.4028234663852886e38]):
        yield Case("Clip", 7, [x], attributes)
    infinite = numpy.array([numpy.inf, -numpy.inf, numpy.nan, 1], numpy.float32)
    yield Case("Clip", 7, [infinite], {})
    for wrap, low, high in itertools.product((Stored, lambda v: v), (None, -1.5, 3.0), (None, 2.0, -numpy.inf)):
        bounds = [None if v is None else wrap(numpy.array(v, numpy.float32)) for v in (low, high)]
        while bounds and bounds[-1] is None:
            bounds.pop()
        for opset in (11, 13):
            yield Case("Clip", opset, [x, *bounds])
            yield Case("Clip", opset, [infinite, *bounds])
    for dtype in WHOLE + FLOATING[1:]:
        values = numpy.arange(10).astype(dtype)
        for wrap in (Stored, lambda v: v):
            yield Case("Clip", 13, [values, wrap(numpy.array(3, dtype)), wrap(numpy.array(6, dtype))])
    big = numpy.array([2 ** 53 + 3, 5], numpy.int64)
    yield Case("Clip", 13, [big, Stored(numpy.array(7, numpy.int64)), Stored(numpy.array(2 ** 53 + 1, numpy.int64))])


def dropouts():
    x = floats(3, 4)
    for opset in (7, 10):
        for ratio in (None, 0.3):
            yield Case("Dropout", opset, [x], {} if ratio is None else {"ratio": ratio})
    yield Case("Dropout", 10, [x], {}, 2)
    for ratio, training, seed in itertools.product((None, 0.0, 0.3), (None, False, True), (None, 3)):
        if training and ratio != 0.0:
            continue  # how numbers are drawn is left open
        inputs = [x, None if ratio is None else Stored(numpy.array(ratio, numpy.float32)),
                  None if training is None else Stored(numpy.array(training))]
        while inputs[-1] is None:
            inputs.pop()
        for outputs in (1, 2):
            yield Case("Dropout", 13, inputs, {} if seed is None else {"seed": seed}, outputs)


# --- quantisation ----------------------------------------------------------------------------------------------------

def quantisations():
    x = floats(3, 4, 6, low=-80, high=80)
    for opset, dtype in itertools.product((10, 13, 19, 21, 23, 25), (numpy.uint8, numpy.int8, numpy.int16)):
        if dtype == numpy.int16 and opset < 21:
            continue
        single = numpy.array(0.37, numpy.float32)
        point = numpy.array(3, dtype)
        whole_numbers = integers(3, 4, 6, low=0, high=100, dtype=dtype)
        yield Case("QuantizeLinear", opset, [x, single, point])
        yield Case("DequantizeLinear", opset, [whole_numbers, single, point])
        if dtype == numpy.uint8:
            yield Case("QuantizeLinear", opset, [x, single])
            yield Case("DequantizeLinear", opset, [whole_numbers, single])
        if opset < 13:
            continue
        for axis in (None, 0, 1, 2, -1, -3):
            extent = x.shape[1 if axis is None else axis]
            attributes = {} if axis is None else {"axis": axis}
            scales, points = floats(extent, low=0.1), integers(extent, low=0, high=5, dtype=dtype)
            yield Case("QuantizeLinear", opset, [x, scales, points], attributes)
            yield Case("DequantizeLinear", opset, [whole_numbers, scales, points], attributes)
            if opset >= 19:
                yield Case("QuantizeLinear", opset, [x, scales, points], {"saturate": 0, **attributes})
        if opset >= 21:
            for axis, block in ((1, 2), (2, 3), (-1, 4), (0, 3)):
                shape = list(x.shape)
                shape[axis] = -(-shape[axis] // block)
                attributes = {"axis": axis, "block_size": block}
                scales, points = floats(*shape, low=0.1), integers(*shape, low=0, high=5, dtype=dtype)
                yield Case("QuantizeLinear", opset, [x, scales, points], attributes)
                yield Case("DequantizeLinear", opset, [whole_numbers, scales, points], attributes)
            yield Case("QuantizeLinear", opset, [x, single], {"output_dtype": CODES[dtype]})
        if opset >= 23:
            for precision, code in itertools.product((None, 0, 1, 10), (None, 1, 10)):
                yield Case("QuantizeLinear", opset, [x, single, point], {} if precision is None else {"precision": precision})
                yield Case("DequantizeLinear", opset, [whole_numbers, single, point], {} if code is None else {"output_dtype": code})
    for dtype, precision in itertools.product((numpy.int32,), (None, 1)):
        yield Case("DequantizeLinear", 21, [integers(3, 4, dtype=dtype), numpy.array(0.5, numpy.float32)])
        yield Case("QuantizeLinear", 21, [integers(3, 4, low=-300, high=300, dtype=dtype), numpy.array(0.5, numpy.float32)])
    yield Case("QuantizeLinear", 13, [numpy.array([0.5, 1.5, 2.5, -0.5, 1e10, -1e10], numpy.float32), numpy.array(1, numpy.float32),
                                      numpy.array(0, numpy.int8)])
    yield Case("DynamicQuantizeLinear", 11, [floats(3, 4)], {}, 3)
    yield Case("DynamicQuantizeLinear", 11, [floats(3, 4, low=1)], {}, 3)
    for left, right in itertools.product((numpy.uint8, numpy.int8), (numpy.uint8, numpy.int8)):
        a, b = integers(3, 4, low=0, high=100, dtype=left), integers(4, 5, low=0, high=100, dtype=right)
        yield Case("MatMulInteger", 10, [a, b])
        yield Case("MatMulInteger", 10, [a, b, numpy.array(3, left), numpy.array(2, right)])
        if right == numpy.int8:
            yield Case("MatMulInteger", 10, [a, b, numpy.array(3, left), integers(5, low=0, dtype=right)])
        scale = numpy.array(0.1, numpy.float32)
        yield Case("QLinearMatMul", 10, [a, scale, numpy.array(3, left), b, scale, numpy.array(2, right), scale * 20, numpy.array(1, left)])


# --- products and attention ------------------------------------------------------------------------------------------

def products():
    for attributes in options(alpha=[None, 0.3], beta=[None, 0.7, 0.0], transA=[None, 1], transB=[None, 1]):
        a = floats(4, 3) if attributes.get("transA") else floats(3, 4)
        b = floats(5, 4) if attributes.get("transB") else floats(4, 5)
        for bias in ((5,), (3, 1), (), (3, 5), None):
            for opset in (7, 13):
                if bias is None and opset < 11:
                    continue
                yield Case("Gemm", opset, [a, b] + ([] if bias is None else [floats(*bias)]), attributes)
    for dtype in (numpy.int32, numpy.int64):
        yield Case("MatMul", 13, [drawn(dtype, 3, 4), drawn(dtype, 4, 5)])
        yield Case("Gemm", 13, [drawn(dtype, 3, 4), drawn(dtype, 4, 5), drawn(dtype, 5)])
    for left, right in (((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2))):
        yield Case("MatMul", 13, [floats(*left), floats(*right)])
    for equation, shapes in (
            ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ii->i", [(3, 3)]), ("ii", [(3, 3)]), ("ij->", [(2, 3)]),
            ("ij->ji", [(2, 3)]), ("ji", [(2, 3)]), ("...ij,...jk->...ik", [(2, 1, 2, 3), (5, 3, 4)]), ("i,j->ij", [(2,), (3,)]),
            ("b...,b->...", [(3, 2, 4), (3,)]), ("bij, bjk -> bik", [(2, 2, 3), (2, 3, 4)]), ("ij,ij->i", [(2, 3), (2, 3)]),
            ("i,i", [(3,), (3,)]), ("Ab,bc->Ac", [(2, 3), (3, 4)]), ("bA,bc", [(2, 3), (2, 4)]), ("...,...", [(2, 3), (3,)]),
            ("ijk,jil->kl", [(2, 3, 4), (3, 2, 5)]), ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 2)]), ("iij->ij", [(3, 3, 2)]),
            ("i...->...", [(3, 4)]), ("...ii->...i", [(2, 3, 3)]), ("ij,j->ij", [(2, 3), (3,)])):
        yield Case("Einsum", 12, [floats(*shape) for shape in shapes], {"equation": equation})


def attentions():
    for attributes in options(is_causal=[None, 0, 1], scale=[None, 0.3], softcap=[None, 0.7],
                              qk_matmul_output_mode=[None, 0, 1, 2, 3], softmax_precision=[None, 1]):
        for heads, keys in ((2, 2), (4, 2)):
            q, k, v = floats(2, heads, 3, 4), floats(2, keys, 5, 4), floats(2, keys, 5, 6)
            wanted = 4 if "qk_matmul_output_mode" in attributes else 1
            for mask in (None, floats(2, 1, 3, 5), RANDOM_MASK):
                for opset in (23,) if mask is None else (24,):
                    yield Case("Attention", opset, [q, k, v] + ([] if mask is None else [mask]), attributes, wanted,
                               wanted=(0, 3) if wanted == 4 else ())
        flat = {"q_num_heads": 4, "kv_num_heads": 2, **attributes}
        if "qk_matmul_output_mode" not in attributes:
            yield Case("Attention", 23, [floats(2, 3, 16), floats(2, 5, 8), floats(2, 5, 12)], flat)
            past = [floats(2, 2, 2, 4), floats(2, 2, 2, 4)]
            yield Case("Attention", 23, [floats(2, 2, 3, 4), floats(2, 2, 3, 4), floats(2, 2, 3, 4), None, *past], attributes, 3)
            yield Case("Attention", 24, [floats(2, 2, 3, 4), floats(2, 2, 5, 4), floats(2, 2, 5, 4), None, None, None,
                                         numpy.array([5, 4], numpy.int64)], attributes)
    for precision in (10, 11, 16):
        yield Case("Attention", 23, [floats(2, 2, 3, 4), floats(2, 2, 5, 4), floats(2, 2, 5, 4)], {"softmax_precision": precision})
    angles = floats(8, 2)
    for attributes in options(interleaved=[None, 0, 1], rotary_embedding_dim=[None, 0, 4]):
        part = attributes.get("rotary_embedding_dim") == 4
        width = 6 if part else 4
        cosine, sine, places = numpy.cos(angles), numpy.sin(angles), integers(2, 3, low=0, high=8)
        yield Case("RotaryEmbedding", 23, [floats(2, 3, 3, width), cosine, sine, places], attributes)
        yield Case("RotaryEmbedding", 23, [floats(2, 3, 3, width), floats(2, 3, 2), floats(2, 3, 2)], attributes)
        yield Case("RotaryEmbedding", 23, [floats(2, 3, 2 * width), cosine, sine, places], {"num_heads": 2, **attributes})
    for attributes in options(mode=[None, "linear", "circular"], axis=[None, -2, 1, 2]):
        axis = attributes.get("axis", -2)
        update = [2, 3, 6, 4]
        update[axis] = 2
        yield Case("TensorScatter", 24, [floats(2, 3, 6, 4), floats(*update), numpy.array([0, 1], numpy.int64)], attributes)
        yield Case("TensorScatter", 24, [floats(2, 3, 6, 4), floats(*update)], attributes)
    yield Case("TensorScatter", 24, [floats(2, 3, 6, 4), floats(2, 3, 2, 4), numpy.array([5, 1], numpy.int64)], {"mode": "circular"})


RANDOM_MASK = numpy.array([[1, 1, 0, 1, 1], [1, 0, 1, 1, 0], [1, 1, 1, 1, 1]], numpy.bool_)


# --- graphs in nodes -------------------------------------------------------------------------------------------------

def scans():
    def value(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    body = helper.make_graph(
        [helper.make_node("Mul", ["s", "a"], ["m"]), helper.make_node("Add", ["m", "b"], ["t"]), helper.make_node("Identity", ["t"], ["o"])],
        "body", [value("s", [3]), value("a", [3]), value("b", [3])], [value("t", [3]), value("o", [3])])
    for opset in (9, 11, 16, 25):
        for attributes in options(scan_input_axes=[None, [0, 1], [0, -1]], scan_input_directions=[None, [0, 1], [1, 1]],
                                  scan_output_axes=[None, [1], [-1]], scan_output_directions=[None, [1]]):
            axes = attributes.get("scan_input_axes", [0, 0])
            if opset < 11 and min(axes + attributes.get("scan_output_axes", [0])) < 0:
                continue
            second = floats(4, 3) if axes[1] == 0 else floats(3, 4)
            yield Case("Scan", opset, [floats(3), floats(4, 3), second], {"body": body, "num_scan_inputs": 2, **attributes}, 2)
