"""Single nodes of ai.onnx over all combinations of their attributes, for attribute_tests.py.

Every generator yields `Case`s: a node, its inputs, and the operator set it is of. An input that is `Stored` is an
initializer of the file, as exporters write shapes, axes and the like; the others are fed.
"""

import itertools
from dataclasses import dataclass, field

import numpy
import onnx
from onnx import TensorProto, helper

RANDOM = numpy.random.default_rng(7)


@dataclass
class Stored:
    """An input that the file holds."""
    values: numpy.ndarray


@dataclass
class Case:
    kind: str
    opset: int
    inputs: list  # arrays, Stored, or None where an input is absent
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    then: tuple = ()  # further nodes on the first output: (type, attributes)
    wanted: tuple = ()  # outputs that are looked at; all of them if empty

    def title(self):
        shown = {k: v if not isinstance(v, (onnx.GraphProto, onnx.TensorProto)) else "..."
                 for k, v in self.attributes.items()}
        types = [("-" if i is None else str(numpy.asarray(getattr(i, "values", i)).dtype)
                  + str(list(numpy.asarray(getattr(i, "values", i)).shape))) for i in self.inputs]
        return f"{self.kind}-{self.opset} {shown} {' '.join(types)}"


def options(**lists):
    """All combinations; None stands for an attribute that is not written."""
    for values in itertools.product(*lists.values()):
        yield {name: value for name, value in zip(lists, values) if value is not None}


def floats(*shape, low=-2.0, high=2.0, dtype=numpy.float32):
    return RANDOM.uniform(low, high, shape).astype(dtype)


def integers(*shape, low=-9, high=9, dtype=numpy.int64):
    return RANDOM.integers(low, high, shape).astype(dtype)


def ints(*values):
    return Stored(numpy.array(values, numpy.int64))


def whole(value):
    return Stored(numpy.array(value, numpy.int64))


# --- images ----------------------------------------------------------------------------------------------------------

COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
               "tf_crop_and_resize", "tf_half_pixel_for_nn"]
COORDINATES_OF = {13: COORDINATES[:1] + COORDINATES[2:], 19: COORDINATES[:6]}
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


FILTERS = [*options(mode=[None], nearest_mode=NEAREST), *options(mode=["linear"], exclude_outside=[None, 1]),
           *options(mode=["cubic"], exclude_outside=[None, 1], cubic_coeff_a=[None, -0.5])]


def resize_extents(opset, x):
    """Inputs behind x and roi, and attributes: scales, or sizes under each policy; for some axes or all."""
    rank = x.ndim
    named = [None] if opset < 18 else [None, [-1, 2]]
    for axes in named:
        count = rank if axes is None else 2
        for pair in ([2.0, 1.0], [0.5, 0.6], [1.7, 2.0]):
            scales = numpy.array([1.0] * (count - 2) + pair, numpy.float32)
            yield [Stored(scales)], {} if axes is None else {"axes": axes}
        policies = [None] if opset < 18 else [None, "not_larger", "not_smaller"]
        for policy, pair in itertools.product(policies, ([8, 10], [3, 7])):
            if policy and axes is None:
                continue
            sizes = numpy.array([*x.shape[:count - 2], *pair], numpy.int64)
            attributes = {} if axes is None else {"axes": axes}
            if policy:
                attributes["keep_aspect_ratio_policy"] = policy
            yield [None, Stored(sizes)], attributes


def regions(coordinates, axes, rank):
    if coordinates != "tf_crop_and_resize":
        return [(None, {})]
    count = rank if axes is None else 2
    inside = [0.0] * (count - 2) + [0.2, 0.1] + [1.0] * (count - 2) + [0.8, 0.9]
    outside = [0.0] * (count - 2) + [-0.3, 0.2] + [1.0] * (count - 2) + [0.7, 1.4]
    return [(Stored(numpy.array(inside, numpy.float32)), {}),
            (Stored(numpy.array(outside, numpy.float32)), {"extrapolation_value": 10.0})]


def resizes():
    x = floats(1, 2, 4, 5)
    for opset, coordinates in COORDINATES_OF.items():
        for mode, filters, (extents, named) in itertools.product(
                coordinates, FILTERS, list(resize_extents(opset, x))):
            if mode == "tf_crop_and_resize" and filters.get("mode") == "linear" and "exclude_outside" in filters:
                continue  # ONNX Runtime refuses it, and the reference crops by extents before they are rounded
            antialiased = [None, 1] if opset >= 18 and filters.get("mode") in ("linear", "cubic") else [None]
            for antialias, (region, more) in itertools.product(
                    antialiased, regions(mode, named.get("axes"), x.ndim)):
                attributes = {"coordinate_transformation_mode": mode, **filters, **named, **more}
                if antialias:
                    attributes["antialias"] = antialias
                yield Case("Resize", opset, [x, region, *extents], attributes)
    line, volume = floats(2, 3, 7), floats(1, 1, 3, 4, 3)
    for mode in ("nearest", "linear", "cubic"):
        yield Case("Resize", 19, [line, None, Stored(numpy.array([1, 1, 1.5], numpy.float32))], {"mode": mode})
        yield Case("Resize", 19, [volume, None, Stored(numpy.array([1, 1, 2, 0.5, 2], numpy.float32))], {"mode": mode})
    for mode in (None, "nearest", "linear"):
        for pair in ([2.0, 2.0], [1.5, 2.5], [0.5, 0.6], [0.5, 2.0]):
            attributes = {"mode": mode} if mode else {}
            scales = Stored(numpy.array([1, 1, *pair], numpy.float32))
            yield Case("Resize", 10, [x, scales], attributes)
            if min(pair) >= 1:
                yield Case("Upsample", 9, [x, scales], attributes)
                yield Case("Upsample", 7, [x], {"scales": [1.0, 1.0, *pair], **attributes})
    for dtype in (numpy.uint8, numpy.int8, numpy.int32):
        whole_numbers = integers(1, 2, 4, 5, low=0, dtype=dtype)
        for attributes in options(mode=["nearest", "linear", "cubic"]):
            yield Case("Resize", 13, [whole_numbers, None, Stored(numpy.array([1, 1, 2, 2], numpy.float32))], attributes)


def samplings():
    modes = {16: ["bilinear", "nearest", "bicubic"], 20: ["linear", "nearest", "cubic"], 22: ["linear", "nearest", "cubic"]}
    for opset, names in modes.items():
        for attributes in options(mode=[None, *names], padding_mode=[None, "zeros", "border", "reflection"],
                                  align_corners=[None, 0, 1]):
            yield Case("GridSample", opset, [floats(2, 2, 4, 5), floats(2, 3, 4, 2, low=-1.6, high=1.6)], attributes)
            if opset >= 20 and attributes.get("mode") != "cubic":
                yield Case("GridSample", opset, [floats(1, 2, 3, 4, 3), floats(1, 2, 3, 2, 3, low=-1.6, high=1.6)],
                           attributes)
    for attributes in options(align_corners=[None, 0, 1]):
        yield Case("AffineGrid", 20, [floats(2, 2, 3), ints(2, 3, 4, 5)], attributes)
        yield Case("AffineGrid", 20, [floats(2, 3, 4), ints(2, 3, 4, 5, 2)], attributes)
    for axes, shape in ((None, (3, 6, 4)), ([1, 2], (6, 4)), ([-1, 0], (7, 3)), ([1], (3,))):
        yield Case("CenterCropPad", 18, [floats(5, 5, 5), ints(*shape)], {"axes": axes} if axes else {})
    for attributes in options(strides=[None, [2, 1]], pads=[None, [1, 0, 1, 2]], dilations=[None, [1, 2]]):
        height = (6 + sum(attributes.get("pads", [0] * 4)[::2]) - 2) // attributes.get("strides", [1, 1])[0] + 1
        reach = attributes.get("dilations", [1, 1])[1] * 2 + 1
        width = (7 + sum(attributes.get("pads", [0] * 4)[1::2]) - reach) // attributes.get("strides", [1, 1])[1] + 1
        yield Case("Col2Im", 18, [floats(1, 2 * 2 * 3, height * width), ints(6, 7), ints(2, 3)], attributes)
    for opset, mode in ((7, None), (11, None), (11, "DCR"), (11, "CRD"), (13, "CRD")):
        yield Case("DepthToSpace", opset, [floats(2, 12, 2, 3)], {"blocksize": 2, **({"mode": mode} if mode else {})})
    for opset in (7, 13):
        yield Case("SpaceToDepth", opset, [floats(2, 3, 4, 6)], {"blocksize": 2})


# --- windows ---------------------------------------------------------------------------------------------------------

AUTO = [None, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]


def convolutions():
    for opset in (7, 22):
        for attributes in options(auto_pad=AUTO, pads=[None, [1, 0, 2, 1]], strides=[None, [2, 3]],
                                  dilations=[None, [2, 1]], group=[None, 2], kernel_shape=[None, [3, 2]]):
            if attributes.get("auto_pad", "NOTSET") != "NOTSET" and "pads" in attributes:
                continue
            groups = attributes.get("group", 1)
            yield Case("Conv", opset, [floats(2, 4, 7, 8), floats(6, 4 // groups, 3, 2), floats(6)], attributes)
    for attributes in options(auto_pad=AUTO, pads=[None, [1, 2]], strides=[None, [2]], dilations=[None, [3]]):
        if attributes.get("auto_pad", "NOTSET") == "NOTSET" or "pads" not in attributes:
            yield Case("Conv", 22, [floats(2, 3, 11), floats(4, 3, 3)], attributes)
    yield Case("Conv", 22, [floats(1, 2, 4, 5, 4), floats(3, 2, 2, 3, 2)], {"pads": [1, 0, 1, 0, 1, 0], "strides": [1, 2, 1]})


def transposed_convolutions():
    for opset in (11,):
        for attributes in options(auto_pad=AUTO, pads=[None, [1, 0, 2, 1]], strides=[None, [2, 3]],
                                  dilations=[None, [2, 1]], group=[None, 2], output_padding=[None, [1, 0]],
                                  output_shape=[None, [9, 12], [6, 7]]):
            if attributes.get("auto_pad", "NOTSET") != "NOTSET" and "pads" in attributes:
                continue
            if "output_padding" in attributes and "strides" not in attributes:
                continue
            groups = attributes.get("group", 1)
            yield Case("ConvTranspose", opset, [floats(1, 4, 4, 4), floats(4, 6 // groups, 3, 2)], attributes)


def pools():
    for kind, opsets in (("MaxPool", (7, 12, 22)), ("AveragePool", (7, 10, 22)), ("LpPool", (7, 22))):
        for opset in opsets:
            ceil = {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[kind]
            dilated = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[kind]
            more = {}
            if kind == "AveragePool":
                more["count_include_pad"] = [None, 1]
            if kind == "LpPool":
                more["p"] = [None, 1, 3]
            for attributes in options(auto_pad=AUTO, pads=[None, [1, 0, 1, 1]], strides=[None, [2, 3]],
                                      ceil_mode=[None, 1] if opset >= ceil else [None],
                                      dilations=[None, [2, 1]] if opset >= dilated else [None], **more):
                if attributes.get("auto_pad", "NOTSET") != "NOTSET" and "pads" in attributes:
                    continue
                yield Case(kind, opset, [floats(1, 2, 7, 8)], {"kernel_shape": [3, 2], **attributes})
    for attributes in options(storage_order=[None, 0, 1], pads=[None, [1, 1, 1, 1]], ceil_mode=[None, 1]):
        yield Case("MaxPool", 12, [floats(1, 2, 6, 5)], {"kernel_shape": [2, 2], "strides": [2, 2], **attributes}, 2)
        yield Case("MaxPool", 12, [floats(1, 2, 6, 5)], {"kernel_shape": [2, 2], "strides": [2, 2], **attributes})
    for dtype in (numpy.uint8, numpy.int8):
        yield Case("MaxPool", 12, [integers(1, 2, 6, 5, low=0, dtype=dtype)], {"kernel_shape": [2, 2]})
    for kind in ("MaxPool", "AveragePool"):
        for attributes in options(pads=[None, [1, 2]], strides=[None, [3]], ceil_mode=[None, 1]):
            yield Case(kind, 12, [floats(1, 2, 9)], {"kernel_shape": [4], **attributes})
    for p in (None, 1, 2, 3):
        yield Case("GlobalLpPool", 7, [floats(2, 3, 4, 3)], {"p": p} if p else {})
    for kind in ("GlobalAveragePool", "GlobalMaxPool"):
        yield Case(kind, 22, [floats(2, 3, 4, 3)])


# --- moving ----------------------------------------------------------------------------------------------------------

def paddings():
    x = floats(3, 4, 5)
    lists = ([0, 1, 2, 1, 0, 2], [1, 0, -1, 0, 2, 0], [-1, 0, 0, -1, 1, -2], [2, 3, 4, 2, 3, 4])
    for opset in (7, 11, 13, 18, 19, 25):
        modes = ["constant", "reflect", "edge"] + (["wrap"] if opset >= 19 else [])
        for mode, pads in itertools.product([None, *modes], lists):
            attributes = {"mode": mode} if mode else {}
            for value in (None, 1.5):
                if opset < 11:
                    yield Case("Pad", opset, [x], {"pads": pads, **attributes, **({"value": value} if value else {})})
                else:
                    constant = [Stored(numpy.array(value, numpy.float32))] if value else []
                    yield Case("Pad", opset, [x, ints(*pads), *constant], attributes)
            if opset >= 18:
                yield Case("Pad", opset, [x, ints(1, 2, 0, 1), None, ints(-1, 0)], attributes)
    for dtype in (numpy.int32, numpy.int64, numpy.uint8, numpy.bool_, numpy.float64):
        constant = Stored(numpy.array(1, dtype))
        yield Case("Pad", 13, [integers(3, 4, low=0, dtype=dtype), ints(0, 1, 1, 0), constant], {})
    big = numpy.array([2 ** 53 + 1, 7], numpy.int64)
    yield Case("Pad", 13, [big, ints(1, 1), Stored(numpy.array(2 ** 53 + 1, numpy.int64))], {})


def slices():
    x = floats(5, 6, 7)
    for starts, ends, axes, steps in (
            ([1, 0], [4, 6], [0, 1], [1, 2]), ([-1], [-10], [2], [-1]), ([-2, 5], [100, 0], [-3, -1], [1, -2]),
            ([4], [-2 ** 63], [0], [-3]), ([0], [2 ** 63 - 1], [1], [4])):
        for opset in (10, 13):
            yield Case("Slice", opset, [x, ints(*starts), ints(*ends), ints(*axes), ints(*steps)])
    for attributes in options(axes=[None, [0, 2], [-1, 0]], starts=[[1, -3]], ends=[[-1, 100]]):
        yield Case("Slice", 7, [x], attributes)


def indexings():
    x = floats(3, 4, 5)
    for axis in (None, 0, 1, -1):
        attributes = {} if axis is None else {"axis": axis}
        for stored in (False, True):
            for dtype in (numpy.int64, numpy.int32):
                wrap = Stored if stored else (lambda values: values)
                index = numpy.array([[0, -1], [2, -3]], dtype)
                yield Case("Gather", 13, [x, wrap(index)], attributes)
                elements = integers(2, 3, 2, low=-3, high=3, dtype=dtype)
                yield Case("GatherElements", 13, [x, wrap(elements)], attributes)
    for batch, index in ((None, [[0, 1], [-1, 2]]), (0, [[[0], [-2]]]), (1, [[1], [0], [-1]]), (1, [[[1, 0]], [[0, -1]], [[2, 2]]])):
        attributes = {} if batch is None else {"batch_dims": batch}
        for wrap in (Stored, lambda values: values):
            yield Case("GatherND", 12, [x, wrap(numpy.array(index, numpy.int64))], attributes)
    for opset, reductions in ((11, [None]), (16, [None, "none", "add", "mul"]), (18, ["none", "add", "mul", "max", "min"])):
        for reduction, axis, dtype in itertools.product(reductions, (None, 1, -1), (numpy.float32, numpy.int64)):
            attributes = options(axis=[axis], reduction=[reduction])
            # Without a reduction, no element may be named twice.
            single = reduction in (None, "none")
            index = numpy.array([[[0, 2], [1, -1]]]) if single else integers(2, 3, 2, low=-3, high=3)
            for named in attributes:
                updates = floats(*index.shape).astype(dtype) if dtype == numpy.float32 else integers(*index.shape)
                data = x if dtype == numpy.float32 else integers(3, 4, 5)
                if single:
                    index = distinct(data.shape, named.get("axis", 0))
                    updates = updates.flat[:1].repeat(index.size).reshape(index.shape) + numpy.arange(
                        index.size).reshape(index.shape).astype(dtype)
                yield Case("ScatterElements", opset, [data, index.astype(numpy.int64), updates], named)
        for reduction in reductions:
            index = numpy.array([[0, 1], [2, -1]] if reduction in (None, "none") else [[0, 1], [0, 1], [-1, -4]], numpy.int64)
            yield Case("ScatterND", opset, [x, index, floats(len(index), 5)], {"reduction": reduction} if reduction else {})
            yield Case("ScatterND", opset, [integers(3, 4, 5), index, integers(len(index), 5)],
                       {"reduction": reduction} if reduction else {})
    yield Case("Scatter", 9, [x, distinct(x.shape, 1), floats(3, 2, 5)], {"axis": 1})


def distinct(shape, axis):
    """Indices along `axis` of which two never name the same element, some from the end."""
    taken = list(shape)
    taken[axis] = 2
    index = numpy.zeros(taken, numpy.int64)
    line = [1] * len(shape)
    line[axis] = 2
    return index + numpy.array([1, -1]).reshape(line)


def choices():
    for axis, wrap, dtype in itertools.product((None, 0, 1, -1, -2), (Stored, lambda v: v),
                                               (numpy.int64, numpy.int32, numpy.float32, numpy.uint8)):
        index = numpy.array([[0, 3, 1], [2, 4, 7]], dtype)
        if dtype != numpy.uint8:
            index = index - numpy.array([[0, 0, 2], [0, 0, 0]], dtype)
        attributes = {} if axis is None else {"axis": axis}
        yield Case("OneHot", 11, [wrap(index), whole(4), Stored(numpy.array([-1, 5], numpy.float32))], attributes)
    yield Case("OneHot", 11, [integers(3, low=0, high=3), Stored(numpy.array([3.0], numpy.float32)), ints(2 ** 53 + 1, 3)], {})
    x = integers(3, 4, low=0, high=4).astype(numpy.float32)
    for opset in (7, 10, 11, 24):
        for attributes in options(axis=[None, 0, 1, -2], largest=[None, 0, 1] if opset >= 11 else [None],
                                  sorted=[None, 1] if opset >= 11 else [None]):
            if opset < 10:
                yield Case("TopK", opset, [x], {"k": 2, **attributes}, 2)
            else:
                yield Case("TopK", opset, [x, ints(2)], attributes, 2)
    for dtype in (numpy.int64, numpy.int32, numpy.float64):
        yield Case("TopK", 11, [(x * 3).astype(dtype), ints(2)], {}, 2)
    odd = numpy.array([[1, numpy.nan, 3, -numpy.inf], [numpy.inf, 0, 2, 2]], numpy.float32)
    yield Case("TopK", 11, [odd[1:], ints(3)], {}, 2)
    for kind, opset in itertools.product(("ArgMax", "ArgMin"), (7, 11, 12, 13)):
        for attributes in options(axis=[None, 1, -1], keepdims=[None, 0, 1],
                                  select_last_index=[None, 0, 1] if opset >= 12 else [None]):
            for dtype in (numpy.float32, numpy.int32):
                yield Case(kind, opset, [x.astype(dtype)], attributes)
    for axis in (None, 0, 1, -1):
        attributes = {} if axis is None else {"axis": axis}
        for condition in ([True, False, True], [False, True]):
            yield Case("Compress", 11, [x, Stored(numpy.array(condition))], attributes)
    yield Case("NonZero", 13, [Stored(numpy.array([[1, 0, -2.5], [0, 3, 0]], numpy.float32))])
    yield Case("NonZero", 13, [Stored(numpy.array([[True, False], [False, True]]))])


def running():
    for axis, attributes in itertools.product((0, 1, -1), list(options(exclusive=[None, 0, 1], reverse=[None, 0, 1]))):
        for dtype in (numpy.float32, numpy.int32, numpy.int64, numpy.float64):
            x = floats(3, 4).astype(dtype) if dtype in (numpy.float32, numpy.float64) else integers(3, 4, dtype=dtype)
            yield Case("CumSum", 14, [x, whole(axis)], attributes)
            yield Case("CumSum", 14, [Stored(x), whole(axis)], attributes)
    for upper, k in itertools.product((None, 0, 1), (None, 0, 1, -2, 7, -7)):
        attributes = {} if upper is None else {"upper": upper}
        for dtype in (numpy.float32, numpy.int64):
            x = floats(2, 3, 4) if dtype == numpy.float32 else integers(2, 3, 4)
            yield Case("Trilu", 14, [x] if k is None else [x, whole(k)], attributes)
            yield Case("Trilu", 14, [Stored(x)] if k is None else [Stored(x), whole(k)], attributes)
    for batch, time in ((1, 0), (0, 1), (None, None)):
        attributes = next(options(batch_axis=[batch], time_axis=[time]))
        yield Case("ReverseSequence", 10, [floats(4, 4, 2), numpy.array([1, 2, 3, 4], numpy.int64)], attributes)
        yield Case("ReverseSequence", 10, [floats(4, 4, 2), Stored(numpy.array([1, 2, 3, 4], numpy.int64))], attributes)


def shapes():
    x = floats(2, 3, 4)
    for shape, zero in (([0, -1], None), ([4, 0, -1], None), ([-1], 0), ([2, 12], 1), ([3, 8, 1], None)):
        yield Case("Reshape", 14, [x, ints(*shape)], {} if zero is None else {"allowzero": zero})
    for axis in (None, 0, 1, 2, 3, -1, -2, -3):
        for opset in (9, 11, 13):
            if axis is None or axis >= 0 or opset >= 11:
                yield Case("Flatten", opset, [x], {} if axis is None else {"axis": axis})
    for perm in (None, [1, 0, 2], [2, 1, 0], [1, 2, 0]):
        yield Case("Transpose", 13, [x], {"perm": perm} if perm else {})
    ones = floats(1, 3, 1, 4)
    yield Case("Squeeze", 13, [ones])
    for axes in ([0], [-2], [0, 2], [-4, -2]):
        yield Case("Squeeze", 13, [ones, ints(*axes)])
        if min(axes) >= 0:
            yield Case("Squeeze", 7, [ones], {"axes": axes})
        yield Case("Squeeze", 11, [ones], {"axes": axes})
        yield Case("Unsqueeze", 13, [x, ints(*axes)])
        yield Case("Unsqueeze", 11, [x], {"axes": axes})
    yield Case("Unsqueeze", 13, [x, ints(3, 0)])
    for shape in ([3, 1], [2, 1, 4], [5, 2, 3, 4], [1]):
        yield Case("Expand", 13, [floats(3, 1) if len(shape) < 4 else x, ints(*shape)])
    yield Case("Tile", 13, [x, ints(2, 1, 3)])
    for axis in (0, 1, -1):
        for opset in (7, 11, 13):
            if axis >= 0 or opset >= 11:
                yield Case("Concat", opset, [x, x + 1, x * 2], {"axis": axis})
    for axis in (None, 0, 1, -1):
        attributes = {} if axis is None else {"axis": axis}
        extent = x.shape[axis or 0]
        if axis is None or axis >= 0:
            yield Case("Split", 7, [x], {"split": [1, extent - 1], **attributes}, 2)
        yield Case("Split", 11, [x], {"split": [1, extent - 1], **attributes}, 2)
        yield Case("Split", 13, [x, ints(1, extent - 1)], attributes, 2)
        yield Case("Split", 18, [x, ints(1, extent - 1)], attributes, 2)
        if extent % 2 == 0:
            yield Case("Split", 13, [x], attributes, 2)
        yield Case("Split", 18, [x], {"num_outputs": 2, **attributes}, 2)
    yield Case("Split", 18, [floats(7)], {"num_outputs": 3}, 3)
    for attributes in options(start=[None, 0, 1, -2, -9], end=[None, 2, -1, 9]):
        yield Case("Shape", 15, [x], attributes)
    yield Case("Size", 13, [x])
    for attributes in options(k=[None, 1, -1, 9], dtype=[None, 1, 6, 7, 9, 11]):
        yield Case("EyeLike", 9, [floats(3, 4)], attributes)
        yield Case("EyeLike", 9, [integers(3, 4, dtype=numpy.int32)], attributes)
    for values, dtype in (((1, 7, 2), numpy.int64), ((5, -4, -3), numpy.int32), ((0.5, 3, 0.7), numpy.float32),
                          ((3, -1, -0.3), numpy.float64), ((2 ** 53, 2 ** 53 + 3, 1), numpy.int64)):
        yield Case("Range", 11, [Stored(numpy.array(v, dtype)) for v in values])
    for value in (None, numpy.array([2.5], numpy.float32), numpy.array([2 ** 53 + 1], numpy.int64), numpy.array([True])):
        attributes = {} if value is None else {"value": onnx.numpy_helper.from_array(value)}
        yield Case("ConstantOfShape", 9, [ints(2, 3)], attributes)
    for attributes in ({"value_int": 2 ** 53 + 1}, {"value_ints": [1, -2]}, {"value_float": 0.1},
                       {"value_floats": [1.5, float("inf")]}, {"value": onnx.numpy_helper.from_array(x)}):
        yield Case("Constant", 13, [], attributes)
    for kind in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for attributes in options(periodic=[None, 0, 1], output_datatype=[None, 1, 11]):
            yield Case(kind, 17, [whole(10)], attributes)
    for attributes in options(axis=[None, 0, 1, -1], keepdims=[None, 0, 1]):
        for new in (0, 1):
            yield Case("SplitToSequence", 11, [x], attributes, 1, (("ConcatFromSequence", {"axis": 1, "new_axis": new}),))
        yield Case("SplitToSequence", 11, [x, whole(2)], attributes, 1,
                   (("ConcatFromSequence", {"axis": attributes.get("axis", 0), "new_axis": 0}),))
