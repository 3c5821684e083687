"""An evaluator of ONNX graphs by PyTorch's functions, so that PyTorch differentiates what a file holds.

An exporter's optimizer leaves another network in its file than the module had (batch normalisation worked into
convolutions, tables into sums). This says what PyTorch makes of the network in the file. Written from ONNX's
specification (operator sets 17 to 23) and independent of Planloom, but for the list of the stored tensors that are
parameters, which comes from `planloom-cli info --json` ("stored").
"""

import numpy as np
import onnx
import torch

from onnx import numpy_helper
from torch import nn
from torch.nn import functional as F

TYPES = {onnx.TensorProto.FLOAT: torch.float32, onnx.TensorProto.DOUBLE: torch.float64,
         onnx.TensorProto.INT32: torch.int32, onnx.TensorProto.INT64: torch.int64, onnx.TensorProto.BOOL: torch.bool}


class Unknown(Exception):
    """The graph has what this evaluator does not know."""


def from_proto(tensor, folder=""):
    return torch.from_numpy(np.array(numpy_helper.to_array(tensor, folder)))


class OnnxModule(nn.Module):
    """The graph of a file as a module: its inputs in their order, its first output (the loss).

    @param stored  what Planloom takes the stored tensors as. A parameter whose shape differs from the file's is a view
                   of the same numbers, or has extent 1 where the file repeats it; one that the file does not have is
                   a table whose rows the file holds once for each place that reads them."""

    def __init__(self, path, stored):
        super().__init__()
        graph = onnx.load(path).graph
        self.nodes = list(graph.node)
        unknown = sorted({node.op_type for node in self.nodes} - set(OPERATORS))
        unknown += sorted({node.domain for node in self.nodes} - {"", "ai.onnx"})
        if unknown:
            raise Unknown(", ".join(unknown))
        self.attributes = [attributes_of(node) for node in self.nodes]
        held = {each.name: from_proto(each, str(path.parent)) for each in graph.initializer}
        for node, attributes in zip(self.nodes, self.attributes):
            if node.op_type == "Constant":
                held[node.output[0]] = constant(attributes)
        self.inputs = [each.name for each in graph.input if each.name not in held]
        self.output = graph.output[0].name
        self.names = []  # of parameters, as the tensors that Planloom stores are called
        # The file's tensor -> (number of a parameter, its shape; of a table: shape of what is read, the axis
        # that a row lies along, its shape in the file).
        self.restored = {}
        for each in stored:
            if each["as"] == "parameter":
                self.add_parameter(each["name_in_file"], each["shape"], held, stored)
        self.tie_copies(held, {each["name_in_file"] for each in stored})
        for number, (name, value) in enumerate(held.items()):
            self.register_buffer(f"held_{number}", value)
        self.held = list(held)

    def add_parameter(self, name, shape, held, stored):
        number = len(self.names)
        if name in held:
            value = held.pop(name)
            self.restored[name] = (number, value.shape, None, None)
            if value.numel() == torch.Size(shape).numel():
                value = value.reshape(shape)
            else:
                for axis, extent in enumerate(shape):
                    if extent != value.shape[axis]:
                        first = value.narrow(axis, 0, 1)
                        if extent != 1 or not bool((value == first).all()):
                            raise Unknown(f"'{name}' of {list(value.shape)} as {shape}")
                        value = first
        else:
            index = next(i for i, each in enumerate(stored) if each["name_in_file"] == name)
            places = stored[min(index + 1, len(stored) - 1)]  # "SOURCE.places" of the shape without a row's elements
            source = places["name_in_file"].removesuffix(".places")
            if source not in held:
                raise Unknown(f"'{name}', which the file does not have")
            whole = held.pop(source)
            whole_shape = whole.shape
            if places["shape"] == list(whole.shape):
                whole = whole.unsqueeze(-1)  # rows of one element
            axis = next(axis for axis in range(whole.dim())
                        if places["shape"] == [*whole.shape[:axis], *whole.shape[axis + 1:]])
            rows = whole.movedim(axis, -1)
            value, places = torch.unique(rows.reshape(-1, rows.shape[-1]), dim=0, return_inverse=True)
            self.register_buffer(f"places_{number}", places)
            self.restored[source] = (number, rows.shape, axis, whole_shape)
        self.names.append(name)
        setattr(self, f"parameter_{number}", nn.Parameter(value.clone()))

    def tie_copies(self, held, listed):
        """Makes what the file holds several times, perhaps transposed, and Planloom stores once, the parameter it is."""
        for name in [name for name, value in held.items() if name not in listed and value.dim() > 0]:
            for number in range(len(self.names)):
                value = getattr(self, f"parameter_{number}")
                if torch.equal(value, held[name]):
                    self.restored[name] = (number, held.pop(name).shape, None, None)
                    break
                if held[name].dim() == 2 and not hasattr(self, f"places_{number}") and torch.equal(value, held[name].T):
                    self.restored[name] = (number, value.shape, 0, held.pop(name).shape)
                    self.register_buffer(f"places_{number}", torch.arange(len(value)))
                    break

    def named_gradients(self, gradients):
        """Gradients by `named_parameters`, called as Planloom calls them."""
        return {self.names[int(name.removeprefix("parameter_"))]: value for name, value in gradients.items()}

    def forward(self, *inputs):
        values = dict(zip(self.inputs, inputs))
        values.update((name, getattr(self, f"held_{number}")) for number, name in enumerate(self.held))
        for name, (number, shape, axis, whole) in self.restored.items():
            value = getattr(self, f"parameter_{number}")
            if axis is not None:
                value = value[getattr(self, f"places_{number}")].reshape(shape).movedim(-1, axis).reshape(whole)
            elif value.numel() == shape.numel():
                value = value.reshape(shape)
            else:
                value = value.expand(shape)
            values[name] = value
        types = dict(TYPES)
        if any(each.dtype == torch.float64 for each in self.parameters()):
            types[onnx.TensorProto.FLOAT] = torch.float64  # all of it in double precision
        for node, attributes in zip(self.nodes, self.attributes):
            if node.op_type == "Constant":
                continue
            given = [values[name] if name else None for name in node.input]
            attributes["types"], attributes["results"] = types, len(node.output)
            made = OPERATORS[node.op_type](attributes, *given)
            made = made if isinstance(made, (list, tuple)) else [made]
            values.update(zip(node.output, made))
        return values[self.output]


def attributes_of(node):
    return {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}


def constant(attributes):
    if "value" in attributes:
        return from_proto(attributes["value"])
    name, value = next(iter(attributes.items()))
    return torch.tensor(value, dtype=torch.float32 if "float" in name else torch.int64)


def by_axis(function, axis=-1):
    return lambda at, x: function(x, at.get("axis", axis))


def reduced(function):
    """A reduction over `axes`, an attribute before operator set 18 (ReduceSum: 13), an input since."""

    def apply(at, x, axes=None):
        axes = at.get("axes") if axes is None else axes.tolist()
        if not axes:
            if at.get("noop_with_empty_axes", 0):
                raise Unknown("noop_with_empty_axes")
            axes = range(x.dim())
        return function(x, [axis % x.dim() for axis in axes], bool(at.get("keepdims", 1)))

    return apply


def product(x, axes, keep):
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis, keepdim=keep)
    return x


def squeeze(at, x, axes=None):
    axes = at.get("axes") if axes is None else axes.tolist()
    return x.squeeze() if axes is None else x.squeeze([axis % x.dim() for axis in axes])


def unsqueeze(at, x, axes):
    rank = x.dim() + axes.numel()
    for axis in sorted(axis % rank for axis in axes.tolist()):
        x = x.unsqueeze(axis)
    return x


def reshape(at, x, shape):
    shape = shape.tolist()
    if not at.get("allowzero", 0):
        shape = [x.shape[i] if extent == 0 else extent for i, extent in enumerate(shape)]
    return x.reshape(shape)


def slice_(at, x, starts, ends, axes=None, steps=None):
    starts, ends = starts.tolist(), ends.tolist()
    axes = range(len(starts)) if axes is None else axes.tolist()
    steps = [1] * len(starts) if steps is None else steps.tolist()
    for axis, start, end, step in zip(axes, starts, ends, steps):
        places = range(x.shape[axis])[slice(start, None if step < 0 and end < -x.shape[axis] else end, step)]
        x = x.index_select(axis, torch.tensor(list(places), dtype=torch.int64))
    return x


def split(at, x, sizes=None):
    axis, count = at.get("axis", 0), at["results"]
    if sizes is not None:
        return x.split(sizes.tolist(), axis)
    return x.split(-(-x.shape[axis] // count), axis)


def gather(at, x, indices):
    axis = at.get("axis", 0) % x.dim()
    extent = x.shape[axis]
    taken = x.index_select(axis, torch.where(indices < 0, indices + extent, indices).reshape(-1))
    return taken.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1:]))


def gather_nd(at, x, indices):
    if at.get("batch_dims", 0):
        raise Unknown("GatherND with batch_dims")
    return x[tuple(indices.unbind(-1))]


def scatter_nd(at, x, indices, updates):
    if at.get("reduction", b"none") not in (b"none", b"add"):
        raise Unknown("this reduction of ScatterND")
    return x.index_put(tuple(indices.unbind(-1)), updates, accumulate=at.get("reduction") == b"add")


def scatter_elements(at, x, indices, updates):
    axis, way = at.get("axis", 0), at.get("reduction", b"none")
    indices = torch.where(indices < 0, indices + x.shape[axis], indices)
    if way not in (b"none", b"add"):
        raise Unknown("this reduction of ScatterElements")
    return x.scatter(axis, indices, updates) if way == b"none" else x.scatter_add(axis, indices, updates)


def padding(at, rank):
    """`pads` of a window as F.pad takes them: of the last axis first."""
    if at.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        raise Unknown("auto_pad")
    pads = at.get("pads", [0] * (2 * rank))
    return [pads[axis + side * rank] for axis in reversed(range(rank)) for side in (0, 1)]


def pad(at, x, pads, value=None, axes=None):
    pads = pads.tolist()
    axes = list(range(x.dim())) if axes is None else axes.tolist()
    if at.get("mode", b"constant") != b"constant":
        raise Unknown("Pad in this mode")
    sides = [0] * (2 * x.dim())
    for number, axis in enumerate(axes):
        place = 2 * (x.dim() - 1 - axis % x.dim())
        sides[place:place + 2] = pads[number], pads[number + len(axes)]
    return F.pad(x, sides, value=0 if value is None else value.item())


def conv(at, x, weight, bias=None):
    rank = x.dim() - 2
    function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[rank]
    return function(F.pad(x, padding(at, rank)), weight, bias, at.get("strides", [1] * rank), 0,
                    at.get("dilations", [1] * rank), at.get("group", 1))


def max_pool(at, x):
    rank = x.dim() - 2
    if at["results"] > 1:
        raise Unknown("MaxPool with indices")
    function = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[rank]
    return function(F.pad(x, padding(at, rank), value=-torch.inf), at["kernel_shape"], at.get("strides", [1] * rank), 0,
                    at.get("dilations", [1] * rank), bool(at.get("ceil_mode", 0)))


def average_pool(at, x):
    rank = x.dim() - 2
    sides = padding(at, rank)
    if at.get("ceil_mode", 0) or set(at.get("dilations", [1])) != {1}:
        raise Unknown("AveragePool with dilations or ceil_mode")
    function = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[rank]
    size, strides = at["kernel_shape"], at.get("strides", [1] * rank)
    y = function(F.pad(x, sides), size, strides)
    return y if at.get("count_include_pad", 0) else y / function(F.pad(torch.ones_like(x), sides), size, strides)


def batch_norm(at, x, scale, bias, mean, variance):
    if at.get("training_mode", 0):
        mean, variance = mean.clone(), variance.clone()
    y = F.batch_norm(x, mean, variance, scale, bias, bool(at.get("training_mode", 0)), 1 - at.get("momentum", 0.9),
                     at.get("epsilon", 1e-5))
    return y, mean, variance


def layer_norm(at, x, scale, bias=None):
    axis = at.get("axis", -1) % x.dim()
    y = F.layer_norm(x, x.shape[axis:], eps=at.get("epsilon", 1e-5)) * scale
    return y if bias is None else y + bias


def gemm(at, a, b, c=None):
    y = at.get("alpha", 1.0) * ((a.T if at.get("transA", 0) else a) @ (b.T if at.get("transB", 0) else b))
    return y if c is None else y + at.get("beta", 1.0) * c


def class_loss(at, logarithms, target, weight=None):
    return F.nll_loss(logarithms, target, weight, ignore_index=at.get("ignore_index", -100),
                      reduction=at.get("reduction", b"mean").decode())


def cross_entropy(at, scores, target, weight=None):
    logarithms = F.log_softmax(scores, 1)
    return class_loss(at, logarithms, target, weight), logarithms


def clip(at, x, least=None, most=None):
    return x.clamp(None if least is None else least.item(), None if most is None else most.item())


def quotient(at, a, b):
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def remainder(at, a, b):
    return torch.fmod(a, b) if at.get("fmod", 0) else torch.remainder(a, b)


def cumulated(at, x, axis):
    if at.get("exclusive", 0) or at.get("reverse", 0):
        raise Unknown("CumSum, exclusive or reverse")
    return x.cumsum(int(axis))


def triangle(at, x, diagonal=None):
    diagonal = 0 if diagonal is None else int(diagonal)
    return x.triu(diagonal) if at.get("upper", 1) else x.tril(diagonal)


def arg_max(at, x):
    if at.get("select_last_index", 0):
        raise Unknown("ArgMax with select_last_index")
    return x.argmax(at.get("axis", 0), bool(at.get("keepdims", 1)))


def filled(at, shape):
    value = from_proto(at["value"]) if "value" in at else torch.zeros(1)
    return torch.full(shape.tolist(), value.item(), dtype=at["types"][onnx.helper.np_dtype_to_tensor_dtype(
        value.numpy().dtype)])


def flatten(at, x):
    axis = at.get("axis", 1)
    return x.reshape(x.shape[:axis].numel(), -1)


def dropout(at, x, ratio=None, training=None):
    if training is not None and bool(training) and (ratio is None or float(ratio) != 0):
        raise Unknown("Dropout that draws")
    return x


def folded(function):
    """Of as many inputs as there are."""

    def apply(at, first, *others):
        for other in others:
            first = function(first, other)
        return first

    return apply


def of(function):
    return lambda at, *values: function(*values)


OPERATORS = {
    "Abs": of(torch.abs), "Add": of(torch.add), "And": of(torch.logical_and), "ArgMax": arg_max,
    "AveragePool": average_pool, "BatchNormalization": batch_norm,
    "Cast": lambda at, x: x.to(at["types"][at["to"]]), "CastLike": lambda at, x, other: x.to(other.dtype),
    "Clip": clip, "Concat": lambda at, *values: torch.cat(values, at["axis"]), "Constant": None,
    "ConstantOfShape": filled, "Conv": conv, "Cos": of(torch.cos), "CumSum": cumulated, "Div": quotient,
    "Dropout": dropout, "Einsum": lambda at, *values: torch.einsum(at["equation"].decode(), *values),
    "Equal": of(torch.eq), "Erf": of(torch.erf), "Exp": of(torch.exp),
    "Expand": lambda at, x, shape: x.expand(torch.broadcast_shapes(x.shape, shape.tolist())), "Flatten": flatten,
    "Gather": gather, "GatherND": gather_nd,
    "Gelu": lambda at, x: F.gelu(x, approximate=at.get("approximate", b"none").decode()), "Gemm": gemm,
    "GlobalAveragePool": lambda at, x: x.mean(list(range(2, x.dim())), keepdim=True), "Greater": of(torch.gt),
    "GreaterOrEqual": of(torch.ge),
    "HardSigmoid": lambda at, x: (at.get("alpha", 0.2) * x + at.get("beta", 0.5)).clamp(0, 1),
    "HardSwish": of(F.hardswish), "Identity": lambda at, x: x, "IsNaN": of(torch.isnan),
    "LayerNormalization": layer_norm, "Less": of(torch.lt), "LessOrEqual": of(torch.le), "Log": of(torch.log),
    "LogSoftmax": by_axis(F.log_softmax), "MatMul": of(torch.matmul), "Max": folded(torch.maximum), "MaxPool": max_pool,
    "Min": folded(torch.minimum), "Mod": remainder, "Mul": of(torch.mul), "Neg": of(torch.neg),
    "NegativeLogLikelihoodLoss": class_loss, "Not": of(torch.logical_not), "Or": of(torch.logical_or), "Pad": pad,
    "Pow": lambda at, x, power: x.pow(power).to(x.dtype),
    "Range": lambda at, start, limit, step: torch.arange(start.item(), limit.item(), step.item(), dtype=start.dtype),
    "Reciprocal": of(torch.reciprocal),
    "ReduceL2": reduced(lambda x, axes, keep: torch.linalg.vector_norm(x, dim=axes, keepdim=keep)),
    "ReduceLogSumExp": reduced(torch.logsumexp), "ReduceMax": reduced(torch.amax), "ReduceMean": reduced(torch.mean),
    "ReduceProd": reduced(product), "ReduceSum": reduced(torch.sum), "Relu": of(F.relu), "Reshape": reshape,
    "ScatterElements": scatter_elements, "ScatterND": scatter_nd,
    "Shape": lambda at, x: torch.tensor(x.shape[at.get("start", 0):at.get("end", None)], dtype=torch.int64),
    "Sigmoid": of(torch.sigmoid), "Sin": of(torch.sin), "Slice": slice_, "Softmax": by_axis(F.softmax),
    "SoftmaxCrossEntropyLoss": cross_entropy, "Softplus": of(F.softplus), "Split": split, "Sqrt": of(torch.sqrt),
    "Squeeze": squeeze, "Sub": of(torch.sub), "Tanh": of(torch.tanh),
    "Tile": lambda at, x, repeats: x.repeat(repeats.tolist()),
    "Transpose": lambda at, x: x.permute(at.get("perm", list(reversed(range(x.dim()))))), "Trilu": triangle,
    "Unsqueeze": unsqueeze, "Where": of(torch.where),
}
