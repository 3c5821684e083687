"""Small models as people write them in PyTorch, exported as they are: torch_models.py FOLDER. For torch_plans.py --exported."""

import os
import sys

import torch
from torch import nn

F = nn.functional


class Transformer(nn.Module):
    """An encoder with a head, learnt positions and a padding mask."""

    def __init__(self):
        super().__init__()
        self.embed, self.positions = nn.Embedding(64, 32), nn.Parameter(torch.randn(12, 32) * 0.02)
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, activation="gelu", norm_first=True)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, norm_first=i > 0) for i in range(2))
        self.layers.append(layer)
        self.head = nn.Linear(32, 64)

    def forward(self, tokens, labels):
        x = self.embed(tokens) + self.positions
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


class Dilated(nn.Module):
    """A tagger by causal convolutions, each twice as wide, with weights tied to the embedding."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(64, 16)
        self.convs = nn.ModuleList(nn.Conv1d(16, 32, 2, dilation=2**i) for i in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(2))

    def forward(self, tokens, tags):
        x = self.embed(tokens)
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            x = norm(x + F.glu(conv(F.pad(x.transpose(1, 2), (2**i, 0))), 1).transpose(1, 2))
        return F.cross_entropy((x @ self.embed.weight.t()).flatten(0, 1), tags.flatten())


class Convolutional(nn.Module):
    """Reflected borders, group norm, a skip by concatenation, bilinear upsampling."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect")
        self.down = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, 16)
        self.last = nn.Conv2d(24, 4, 3, padding=1, padding_mode="circular")

    def forward(self, image, target):
        a = F.silu(self.first(image))
        b = F.relu(self.norm(self.down(a)))
        b = F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)
        return F.mse_loss(self.last(torch.cat((a, b), 1)), target)


class Gated(nn.Module):
    """A mixer with gates: chunks, rolls, RMS norm, halves that change places."""

    def __init__(self):
        super().__init__()
        self.enter, self.norm = nn.Linear(16, 48), nn.RMSNorm(24)
        self.leave = nn.Linear(24, 16)

    def forward(self, x, target):
        a, b = self.enter(x).chunk(2, -1)
        y = self.norm(F.silu(a) * torch.roll(b, 1, 1))
        y = x + self.leave(torch.cat((y[..., 12:], y[..., :12]), -1))
        return F.smooth_l1_loss(y, target)


class Residual(nn.Module):
    """MLPs with skips, and labels that are smoothed."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.LayerNorm(32), nn.ELU(), nn.Linear(32, 32)) for _ in range(3))
        self.last = nn.Linear(32, 8)

    def forward(self, x, labels):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return F.cross_entropy(self.last(x), labels, label_smoothing=0.1)


def models():
    tokens = lambda high: torch.randint(0, high, (8, 12))  # noqa: E731
    return {"transformer": (Transformer(), (tokens(64), tokens(64))), "dilated": (Dilated(), (tokens(64), tokens(64))),
            "convolutional": (Convolutional(), (torch.randn(8, 3, 16, 16), torch.randn(8, 4, 16, 16))),
            "gated": (Gated(), (torch.randn(8, 12, 16), torch.randn(8, 12, 16))),
            "residual": (Residual(), (torch.randn(8, 16), torch.randint(0, 8, (8,))))}


def recurrent(path):
    """What torch.export has no derivative of and ONNX has: LSTM with peepholes, GRU, RNN, borders, scattered extremes."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save

    steps, batch, width, hidden = 6, 4, 5, 8
    dice = np.random.default_rng(3)
    weights, nodes = {}, []

    def weight(name, *shape):
        weights[name] = numpy_helper.from_array((0.4 * dice.standard_normal(shape)).astype(np.float32), name)
        return name

    def constant(name, values):
        weights[name] = numpy_helper.from_array(np.asarray(values, np.int64), name)
        return name

    x, wide = "x", width
    for kind, gates, more, options in (("LSTM", 4, 1, {"direction": "bidirectional"}), ("GRU", 3, 0, {"linear_before_reset": 1}),
                                       ("GRU", 3, 0, {"direction": "reverse"}), ("RNN", 1, 0, {})):
        at, ways = f"{kind}{len(nodes)}", 2 if options.get("direction") == "bidirectional" else 1
        inputs = [x, weight(at + ".w", ways, gates * hidden, wide), weight(at + ".r", ways, gates * hidden, hidden),
                  weight(at + ".b", ways, 2 * gates * hidden)]
        inputs += ["", "", "", weight(at + ".p", ways, 3 * hidden)] if more else []
        nodes.append(helper.make_node(kind, inputs, [at + ".y"], at, hidden_size=hidden, **options))
        nodes.append(helper.make_node("Transpose", [at + ".y"], [at + ".t"], perm=[0, 2, 1, 3]))
        nodes.append(helper.make_node("Reshape", [at + ".t", constant(at + ".shape", [steps, batch, ways * hidden])], [at + ".flat"]))
        x, wide = at + ".flat", ways * hidden
    nodes.append(helper.make_node("Pad", [x, constant("pads", [2, 0, 0, 1, 0, 0])], ["padded"], mode="reflect"))
    nodes.append(helper.make_node("ScatterElements", ["padded", constant("rows", [[[0] * hidden] * batch, [[3] * hidden] * batch]),
                                                      weight("updates", 2, batch, hidden)], ["extreme"], axis=0, reduction="max"))
    nodes.append(helper.make_node("Sub", ["extreme", "target"], ["off"]))
    nodes.append(helper.make_node("Mul", ["off", "off"], ["squares"]))
    nodes.append(helper.make_node("ReduceMean", ["squares"], ["loss"], keepdims=0))
    value = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))  # noqa: E731
    graph = helper.make_graph(nodes, "recurrent", [value("x", steps, batch, width), value("target", steps + 3, batch, hidden)], [value("loss")],
                              list(weights.values()))
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


OPERATORS = """planloom-operators 1

operator    my.ops::ScaledSwish
inputs      x, scale
outputs     y
attribute   beta = 1.0
annotation  b h, h -> b h
body
    z = Mul(x, beta)
    g = Sigmoid(z)
    m = Mul(x, g)
    y = Mul(m, scale)
end
torch       "x * torch.sigmoid(beta * x) * scale"

operator    my.ops::Cube
inputs      x
outputs     y
annotation  b h -> b h
body
    s = Mul(x, x)
    y = Mul(s, x)
end
torch       "x ** 3"
derivative  my.ops::CubeGrad(d.y, x) -> d.x

operator    my.ops::CubeGrad
inputs      dy, x
outputs     dx: like x
annotation  b h, b h -> b h
body
    s = Mul(x, x)
    t = Mul(s, 3)
    dx = Mul(t, dy)
end
torch       "3 * x * x * dy"
"""


def custom(folder):
    """Operators of an operator file, which says what they are in PyTorch: one with autograd's derivative, one with its own."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save

    dice = np.random.default_rng(4)
    weights = {name: numpy_helper.from_array((0.4 * dice.standard_normal(shape)).astype(np.float32), name)
               for name, shape in (("first", (16, 32)), ("scale", (32,)), ("last", (32, 16)))}
    nodes = [helper.make_node("MatMul", ["x", "first"], ["a"]),
             helper.make_node("ScaledSwish", ["a", "scale"], ["b"], domain="my.ops", beta=1.5),
             helper.make_node("MatMul", ["b", "last"], ["c"]), helper.make_node("Cube", ["c"], ["d"], domain="my.ops"),
             helper.make_node("Sub", ["d", "target"], ["off"]), helper.make_node("Mul", ["off", "off"], ["squares"]),
             helper.make_node("ReduceMean", ["squares"], ["loss"], keepdims=0)]
    value = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))  # noqa: E731
    graph = helper.make_graph(nodes, "custom", [value("x", 8, 16), value("target", 8, 16)], [value("loss")], list(weights.values()))
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("my.ops", 1)], ir_version=9),
         os.path.join(folder, "custom.onnx"))
    with open(os.path.join(folder, "custom.ops"), "w") as file:
        file.write(OPERATORS)


def main():
    torch.manual_seed(3)
    for name, (module, inputs) in models().items():
        try:
            torch.export.save(torch.export.export(module.train(), inputs), os.path.join(sys.argv[1], name + ".pt2"))
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    try:
        recurrent(os.path.join(sys.argv[1], "recurrent.onnx"))
        custom(sys.argv[1])
    except ImportError:
        print("recurrent.onnx: pip install onnx", file=sys.stderr)


if __name__ == "__main__":
    main()
