"""Operators with their options, each as a small module with a loss: what operators_with_pytorch.py compares.

A case is (function, inputs): its floating inputs are scaled and shifted by parameters first, so that their gradients
are seen; what the function makes becomes a loss that is different for each element.
"""

import torch

from torch import nn
from torch.nn import functional as F

import fake_ctc  # noqa: F401

BATCH = 4


class Differentiated(nn.Module):
    """`function` of inputs that depend on parameters; the gradients of these say those of the inputs."""

    def __init__(self, function, inputs, constants=()):
        super().__init__()
        self.function = function
        self.constant = set(constants)
        self.scale, self.shift = nn.ParameterDict(), nn.ParameterDict()
        for number, value in enumerate(inputs):
            if self.varies(number, value):
                self.scale[str(number)] = nn.Parameter(torch.rand(value.shape[1:]) + 0.5)
                self.shift[str(number)] = nn.Parameter(0.1 * torch.randn(value.shape[1:]))
        if isinstance(function, nn.Module):
            self.function = function

    def varies(self, number, value):
        return value is not None and value.is_floating_point() and number not in self.constant

    def forward(self, *inputs):
        varied = [value * self.scale[str(number)] + self.shift[str(number)] if self.varies(number, value) else value
                  for number, value in enumerate(inputs)]
        made = self.function(*varied)
        made = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(made) == 1 and made[0].dim() == 0:
            return made[0]
        terms = [(y * torch.cos(y)).mean() if y.is_floating_point() else 0.01 * y.to(torch.float32).mean() for y in made]
        return sum(terms[1:], terms[0])


def real(*shape):
    return torch.randn(shape)


def share(*shape):
    """Of (0, 1), away from both ends."""
    return 0.1 + 0.8 * torch.rand(shape)


def labels(classes, *shape):
    return torch.randint(0, classes, shape)


def ignored(value, classes, *shape):
    result = labels(classes, *shape)
    result.view(-1)[1] = value
    return result


def signs(*shape):
    return torch.randint(0, 2, shape).float() * 2 - 1


CASES = {}


def add(name, function, *inputs, constants=()):
    """`inputs` are made anew, from a seed, where the case is."""
    assert name not in CASES, name
    CASES[name] = (function, inputs, constants)


class Together(nn.Module):
    """Several cases as one module, whose loss is the sum of theirs: parameters say which of them differs."""

    def __init__(self, modules, counts):
        super().__init__()
        self.cases, self.counts = nn.ModuleList(modules), counts

    def forward(self, *inputs):
        losses, first = [], 0
        for case, count in zip(self.cases, self.counts):
            losses.append(case(*inputs[first:first + count]))
            first += count
        return sum(losses[1:], losses[0])


def make(name):
    """@return the module of a case and its inputs"""
    torch.manual_seed(5)
    function, inputs, constants = CASES[name]
    values = tuple(value() for value in inputs)
    module = Differentiated(function() if isinstance(function, type) else function, values, constants)
    module.train()
    return module, values


def make_together(names):
    """The same of several cases."""
    made = [make(name) for name in names]
    values = tuple(value for _, inputs in made for value in inputs)
    return Together([module for module, _ in made], [len(inputs) for _, inputs in made]), values


def of(maker, *arguments):
    return lambda: maker(*arguments)


# ---- indices

def image_features(embeddings, features, mask):
    return embeddings.masked_scatter(mask.unsqueeze(-1).expand_as(embeddings), features)


def image_places():
    mask = torch.zeros(BATCH, 6, dtype=torch.bool)
    mask[:, 1:3] = True
    mask[0, 5] = True
    mask[1, 2] = False
    return mask


add("masked_scatter rows", image_features, of(real, BATCH, 6, 8), of(real, 8, 8), image_places)
add("masked_scatter larger source", image_features, of(real, BATCH, 6, 8), of(real, 11, 8), image_places)
add("masked_scatter patches", image_features, of(real, BATCH, 6, 8), of(real, BATCH, 2, 8), image_places)
add("masked_scatter elements", lambda x, s, k: x.masked_scatter(k > 0, s), of(real, BATCH, 5), of(real, 30),
    of(labels, 2, BATCH, 5))
add("masked_scatter broadcast", lambda x, s, k: x.masked_scatter(k > 0, s), of(real, BATCH, 3, 5), of(real, 60),
    of(labels, 2, 3, 5))
add("masked_scatter flat source", lambda x, s, k: x.masked_scatter((k > 0).unsqueeze(-1), s.flatten()),
    of(real, BATCH, 6, 8), of(real, BATCH, 6, 8), of(labels, 2, BATCH, 6))


class Bag(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.bag = nn.EmbeddingBag(11, 6, **options)

    def forward(self, *inputs):
        return self.bag(*inputs)


def bag(**options):
    class Made(Bag):
        def __init__(self):
            super().__init__(**options)
    return Made


def offsets(*values):
    return lambda: torch.tensor(values)


for mode in ("sum", "mean", "max"):
    add(f"embedding_bag {mode}", bag(mode=mode), of(labels, 11, BATCH, 5))
    add(f"embedding_bag {mode} offsets", bag(mode=mode), of(labels, 11, 13), offsets(0, 3, 3, 9))
    add(f"embedding_bag {mode} last offset", bag(mode=mode, include_last_offset=True), of(labels, 11, 13),
        offsets(0, 3, 3, 9, 13))
    add(f"embedding_bag {mode} padding", bag(mode=mode, padding_idx=2), of(labels, 4, BATCH, 5))
    add(f"embedding_bag {mode} padding offsets", bag(mode=mode, padding_idx=2), of(labels, 4, 13), offsets(0, 3, 3, 9))
add("embedding_bag weights", bag(mode="sum"), of(labels, 11, BATCH, 5), lambda: None, of(real, BATCH, 5))
add("embedding_bag weights offsets", bag(mode="sum"), of(labels, 11, 13), offsets(0, 3, 3, 9), of(real, 13))
add("embedding_bag weights last offset padding", bag(mode="sum", include_last_offset=True, padding_idx=2),
    of(labels, 4, 13), offsets(0, 3, 3, 9, 13), of(real, 13))
add("embedding_bag by frequency", bag(mode="sum", scale_grad_by_freq=True), of(labels, 5, BATCH, 5))
add("embedding_bag constant offsets", lambda i, w: F.embedding_bag(i, w, torch.arange(0, 12, 3), mode="mean"),
    of(labels, 11, 12), of(real, 11, 6))


class Frequency(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 6, scale_grad_by_freq=True, padding_idx=3)

    def forward(self, tokens):
        return self.table(tokens)


add("embedding by frequency", Frequency, of(labels, 7, BATCH, 6))


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 6, max_norm=1.0)

    def forward(self, tokens):
        return self.table(tokens)


add("embedding max_norm", Normed, of(labels, 7, BATCH, 6))

# ---- norms of weights

def network(layer, *inputs):
    class Made(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer()

        def forward(self, x):
            return self.layer(x)
    return Made


from torch.nn.utils import parametrizations  # noqa: E402

for name, kind in (("old", nn.utils.weight_norm), ("parametrized", parametrizations.weight_norm)):
    add(f"weight_norm {name} linear", network(lambda k=kind: k(nn.Linear(6, 5))), of(real, BATCH, 6))
    add(f"weight_norm {name} linear dim 1", network(lambda k=kind: k(nn.Linear(6, 5), dim=1)), of(real, BATCH, 6))
    add(f"weight_norm {name} whole", network(lambda k=kind: k(nn.Linear(6, 5), dim=None)), of(real, BATCH, 6))
    add(f"weight_norm {name} conv", network(lambda k=kind: k(nn.Conv1d(6, 5, 3), dim=2)), of(real, BATCH, 6, 9))
    add(f"weight_norm {name} conv2d", network(lambda k=kind: k(nn.Conv2d(2, 5, 3))), of(real, BATCH, 2, 6, 7))
    add(f"weight_norm {name} transposed", network(lambda k=kind: k(nn.ConvTranspose1d(6, 5, 3))), of(real, BATCH, 6, 9))
for name, kind in (("old", nn.utils.spectral_norm), ("parametrized", parametrizations.spectral_norm)):
    add(f"spectral_norm {name} linear", network(lambda k=kind: k(nn.Linear(6, 5))), of(real, BATCH, 6))
    add(f"spectral_norm {name} conv", network(lambda k=kind: k(nn.Conv2d(2, 5, 3))), of(real, BATCH, 2, 6, 7))
    add(f"spectral_norm {name} two steps", network(lambda k=kind: k(nn.Linear(6, 5), n_power_iterations=2)),
        of(real, BATCH, 6))
    add(f"spectral_norm {name} transposed", network(lambda k=kind: k(nn.ConvTranspose2d(2, 5, 3))),
        of(real, BATCH, 2, 6, 7))
add("spectral_norm parametrized evaluated", network(lambda: parametrizations.spectral_norm(nn.Linear(6, 5)).eval()),
    of(real, BATCH, 6))
add("renorm", lambda x: torch.renorm(x, 2, 0, 1.5), of(real, BATCH, 6))
add("renorm p 1 dim 1", lambda x: torch.renorm(x, 1, 1, 1.5), of(real, BATCH, 6, 3))
for p in (0, 0.5, 1, 1.5, 2, 3, 4.5, float("inf"), float("-inf")):
    add(f"vector norm {p}", lambda x, p=p: torch.linalg.vector_norm(x, p, dim=-1), of(real, BATCH, 6))
add("vector norm whole", lambda x: torch.linalg.vector_norm(x, 3), of(real, BATCH, 6))
add("norm", lambda x: torch.norm(x), of(real, BATCH, 6))
add("norm fro", lambda x: torch.norm(x, "fro", dim=(1, 2)), of(real, BATCH, 6, 3))
add("linalg norm", lambda x: torch.linalg.norm(x, dim=-1, keepdim=True), of(real, BATCH, 6))
add("linalg norm 1", lambda x: torch.linalg.norm(x, 1, dim=(1, 2)), of(real, BATCH, 6, 3))
add("linalg norm inf", lambda x: torch.linalg.norm(x, float("inf"), dim=(-2, -1)), of(real, BATCH, 6, 3))
add("matrix norm", lambda x: torch.linalg.matrix_norm(x), of(real, BATCH, 6, 3))
add("normalize", lambda x: F.normalize(x, dim=-1), of(real, BATCH, 6))
add("normalize p 3", lambda x: F.normalize(x, 3, dim=-1), of(real, BATCH, 6))

# ---- quantisation


def fake_tensor(x):
    return torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7)


add("fake_quantize tensor", fake_tensor, of(real, BATCH, 6))
add("fake_quantize tensor parameters", lambda x: torch.fake_quantize_per_tensor_affine(
    x, torch.tensor(0.1), torch.tensor(3, dtype=torch.int32), -8, 7), of(real, BATCH, 6))
add("fake_quantize channel", lambda x: torch.fake_quantize_per_channel_affine(
    x, torch.linspace(0.05, 0.3, 6), torch.arange(6, dtype=torch.int32), 1, -8, 7), of(real, BATCH, 6, 3))
add("fake_quantize learned tensor", lambda x, s: torch._fake_quantize_learnable_per_tensor_affine(
    x, s.abs().mean().reshape(1), torch.tensor([2.0]), -8, 7, 0.25), of(real, BATCH, 6), of(share, 3))
add("fake_quantize learned channel", lambda x, s: torch._fake_quantize_learnable_per_channel_affine(
    x, s.abs().mean(0) + 0.05, torch.arange(6).float(), 1, -8, 7, 0.5), of(real, BATCH, 6, 3), of(share, 3, 6))


class QuantizedLayer(nn.Module):
    """A linear layer whose weight and input go through the modules of quantization-aware training."""

    def __init__(self, of_weight, of_input):
        super().__init__()
        self.linear = nn.Linear(6, 5)
        self.of_weight, self.of_input = of_weight(), of_input()
        with torch.no_grad():
            self.of_weight(self.linear.weight)
            self.of_input(torch.randn(16, 6))

    def forward(self, x):
        return F.linear(self.of_input(x), self.of_weight(self.linear.weight), self.linear.bias)


def quantized(of_weight, of_input):
    class Made(QuantizedLayer):
        def __init__(self):
            super().__init__(of_weight, of_input)
    return Made


from torch.ao import quantization as ao  # noqa: E402

PLAIN = ao.FakeQuantize.with_args(observer=ao.MovingAverageMinMaxObserver, quant_min=-8, quant_max=7, dtype=torch.qint8,
                                  qscheme=torch.per_tensor_symmetric)
CHANNELS = ao.FakeQuantize.with_args(observer=ao.MovingAveragePerChannelMinMaxObserver, quant_min=-8, quant_max=7,
                                     dtype=torch.qint8, qscheme=torch.per_channel_symmetric, ch_axis=0)


def fixed(kind):
    def made():
        module = kind()
        with torch.no_grad():
            module(torch.randn(5, 6))
        module.disable_observer()
        return module
    return made


add("FakeQuantize", quantized(PLAIN, PLAIN), of(real, BATCH, 6))
add("FakeQuantize channels", quantized(CHANNELS, PLAIN), of(real, BATCH, 6))
add("FakeQuantize fixed", quantized(fixed(CHANNELS), fixed(PLAIN)), of(real, BATCH, 6))
add("FusedMovingAvgObsFakeQuantize", quantized(ao.default_fused_per_channel_wt_fake_quant,
                                               ao.default_fused_act_fake_quant), of(real, BATCH, 6))

# ---- losses of classes

REDUCTIONS = ("mean", "sum", "none")


def class_weights():
    return torch.linspace(0.2, 2.0, 5)


for reduction in REDUCTIONS:
    for title, options in (("", {}), (" smoothing", dict(label_smoothing=0.1)), (" ignore", dict(ignore_index=2)),
                           (" smoothing ignore", dict(label_smoothing=0.2, ignore_index=2))):
        for weighted in (False, True):
            title2 = " weights" if weighted else ""

            def function(x, y, options=options, reduction=reduction, weighted=weighted):
                return F.cross_entropy(x, y, class_weights() if weighted else None, reduction=reduction, **options)
            add(f"cross_entropy{title}{title2} {reduction}", function, of(real, BATCH, 5), of(labels, 5, BATCH))
            add(f"cross_entropy images{title}{title2} {reduction}", function, of(real, BATCH, 5, 3, 2),
                of(ignored, options.get("ignore_index", -100), 5, BATCH, 3, 2))
    for title, options in (("", {}), (" smoothing", dict(label_smoothing=0.1))):
        for weighted in (False, True):
            title2 = " weights" if weighted else ""

            def probable(x, y, options=options, reduction=reduction, weighted=weighted):
                return F.cross_entropy(x, y, class_weights() if weighted else None, reduction=reduction, **options)
            add(f"cross_entropy probabilities{title}{title2} {reduction}", probable, of(real, BATCH, 5), of(share, BATCH, 5))
            add(f"cross_entropy probabilities images{title}{title2} {reduction}", probable, of(real, BATCH, 5, 3),
                of(share, BATCH, 5, 3))
    add(f"nll_loss {reduction}", lambda x, y, r=reduction: F.nll_loss(x.log_softmax(1), y, class_weights(), reduction=r),
        of(real, BATCH, 5), of(labels, 5, BATCH))
    add(f"nll_loss images {reduction}", lambda x, y, r=reduction: F.nll_loss(
        x.log_softmax(1), y, ignore_index=1, reduction=r), of(real, BATCH, 5, 3, 2), of(labels, 5, BATCH, 3, 2))
    add(f"nll_loss volumes {reduction}", lambda x, y, r=reduction: F.nll_loss(
        x.log_softmax(1), y, class_weights(), reduction=r), of(real, BATCH, 5, 3, 2, 2), of(labels, 5, BATCH, 3, 2, 2))
add("cross_entropy one item", lambda x, y: F.cross_entropy(x[0], y[0], label_smoothing=0.1), of(real, BATCH, 5),
    of(labels, 5, BATCH))
add("cross_entropy one item probabilities", lambda x, y: F.cross_entropy(x[0], y[0]), of(real, BATCH, 5), of(share, BATCH, 5))
add("cross_entropy detached weights", lambda x, y, w: F.cross_entropy(x, y, w[0].detach()), of(real, BATCH, 5),
    of(labels, 5, BATCH), of(share, 1, 5), constants=(2,))
add("linear cross_entropy smoothing sequence", lambda x, y: F.cross_entropy(
    x.flatten(0, 1), y.flatten(), label_smoothing=0.1), of(real, BATCH, 6, 5), of(ignored, -100, 5, BATCH, 6))

# ---- distances

for p in (0, 1, 1.5, 2, 3, float("inf")):
    add(f"cdist {p}", lambda x, y, p=p: torch.cdist(x, y, p), of(real, BATCH, 3, 6), of(real, BATCH, 5, 6))
    add(f"pairwise_distance {p}", lambda x, y, p=p: F.pairwise_distance(x, y, p), of(real, BATCH, 6), of(real, BATCH, 6))
add("cdist large", lambda x, y: torch.cdist(x, y), of(real, BATCH, 27, 6), of(real, BATCH, 30, 6))
add("cdist large exact", lambda x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"),
    of(real, BATCH, 27, 6), of(real, BATCH, 30, 6))
add("cdist small by product", lambda x, y: torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist"),
    of(real, BATCH, 3, 6), of(real, BATCH, 5, 6))
add("cdist broadcast", lambda x, y: torch.cdist(x, y.unsqueeze(1)), of(real, 2, 4, 3, 6), of(real, 2, 5, 6))
add("cdist matrices", lambda x, y: torch.cdist(x, y), of(real, BATCH, 6), of(real, 7, 6))
add("cdist with itself", lambda x: torch.cdist(x, x), of(real, BATCH, 3, 6))
add("cdist 1 with itself", lambda x: torch.cdist(x, x, 1), of(real, BATCH, 3, 6))
add("cdist large with itself", lambda x: torch.cdist(x, x).clamp(min=0.01), of(real, 2, 27, 6))
add("pdist", lambda x: F.pdist(x), of(real, BATCH, 6))
add("pdist 1", lambda x: F.pdist(x, 1), of(real, BATCH, 6))
add("pairwise_distance keepdim", lambda x, y: F.pairwise_distance(x, y, keepdim=True, eps=1e-3), of(real, BATCH, 3, 6),
    of(real, BATCH, 3, 6))
add("pairwise_distance broadcast", lambda x, y: F.pairwise_distance(x, y[0]), of(real, BATCH, 6), of(real, 1, 6))
add("dist", lambda x, y: torch.dist(x, y), of(real, BATCH, 6), of(real, BATCH, 6))
add("dist 3", lambda x, y: torch.dist(x, y, 3), of(real, BATCH, 6), of(real, BATCH, 6))
add("cosine_similarity", lambda x, y: F.cosine_similarity(x, y), of(real, BATCH, 6), of(real, BATCH, 6))
add("cosine_similarity eps", lambda x, y: F.cosine_similarity(x, y, dim=-1, eps=2.0), of(real, BATCH, 3, 6),
    of(real, BATCH, 3, 6))
add("cosine_similarity pairs", lambda x, y: F.cosine_similarity(x.unsqueeze(1), y.unsqueeze(0), dim=-1),
    of(real, BATCH, 6), of(real, BATCH, 6))

# ---- losses of numbers

for reduction in REDUCTIONS:
    r = dict(reduction=reduction)

    def loss(name, function, *inputs, constants=(), r=r, reduction=reduction):
        add(f"{name} {reduction}", lambda *values, f=function, r=r: f(*values, **r), *inputs, constants=constants)

    loss("cosine_embedding_loss", lambda x, y, t, **r: F.cosine_embedding_loss(x, y, t, margin=0.1, **r), of(real, BATCH, 6),
         of(real, BATCH, 6), of(signs, BATCH), constants=(2,))
    loss("triplet_margin_loss", lambda a, p, n, **r: F.triplet_margin_loss(a, p, n, **r), of(real, BATCH, 6),
         of(real, BATCH, 6), of(real, BATCH, 6))
    loss("triplet_margin_loss swap p 1", lambda a, p, n, **r: F.triplet_margin_loss(
        a, p, n, margin=0.5, p=1, swap=True, **r), of(real, BATCH, 6), of(real, BATCH, 6), of(real, BATCH, 6))
    loss("triplet_margin_with_distance_loss", lambda a, p, n, **r: F.triplet_margin_with_distance_loss(
        a, p, n, distance_function=lambda x, y: 1 - F.cosine_similarity(x, y), **r), of(real, BATCH, 6), of(real, BATCH, 6),
        of(real, BATCH, 6))
    loss("margin_ranking_loss", lambda x, y, t, **r: F.margin_ranking_loss(x, y, t, margin=0.3, **r), of(real, BATCH),
         of(real, BATCH), of(signs, BATCH), constants=(2,))
    loss("hinge_embedding_loss", lambda x, t, **r: F.hinge_embedding_loss(x, t, margin=0.8, **r), of(real, BATCH, 3),
         of(signs, BATCH, 3), constants=(1,))
    loss("multi_margin_loss", lambda x, y, **r: F.multi_margin_loss(x, y, **r), of(real, BATCH, 5), of(labels, 5, BATCH))
    loss("multi_margin_loss p 2 weights", lambda x, y, **r: F.multi_margin_loss(
        x, y, p=2, margin=0.7, weight=class_weights(), **r), of(real, BATCH, 5), of(labels, 5, BATCH))
    loss("multilabel_margin_loss", lambda x, y, **r: F.multilabel_margin_loss(x, y, **r), of(real, BATCH, 4),
         lambda: torch.tensor([[3, 0, -1, 1], [-1, 0, 1, 2], [0, 1, 2, 3], [2, -1, -1, -1]]))
    loss("soft_margin_loss", lambda x, t, **r: F.soft_margin_loss(x, t, **r), of(real, BATCH, 3), of(signs, BATCH, 3),
         constants=(1,))
    loss("multilabel_soft_margin_loss", lambda x, t, **r: F.multilabel_soft_margin_loss(x, t, class_weights(), **r),
         of(real, BATCH, 5), of(share, BATCH, 5))
    loss("huber_loss", lambda x, y, **r: F.huber_loss(x, y, delta=0.4, **r), of(real, BATCH, 3), of(real, BATCH, 3))
    loss("smooth_l1_loss", lambda x, y, **r: F.smooth_l1_loss(x, y, beta=0.4, **r), of(real, BATCH, 3), of(real, BATCH, 3))
    loss("smooth_l1_loss beta 0", lambda x, y, **r: F.smooth_l1_loss(x, y, beta=0.0, **r), of(real, BATCH, 3), of(real, BATCH, 3))
    loss("mse_loss weights", lambda x, y, w, **r: F.mse_loss(x, y, weight=w, **r), of(real, BATCH, 3), of(real, BATCH, 3),
         of(share, BATCH, 3), constants=(2,))
    loss("l1_loss", lambda x, y, **r: F.l1_loss(x, y, **r), of(real, BATCH, 3), of(real, BATCH, 3))
    loss("poisson_nll_loss", lambda x, t, **r: F.poisson_nll_loss(x, t, **r), of(real, BATCH, 3), of(share, BATCH, 3))
    loss("poisson_nll_loss full", lambda x, t, **r: F.poisson_nll_loss(
        x.exp(), t * 9, log_input=False, full=True, **r), of(real, BATCH, 3), of(share, BATCH, 3), constants=(1,))
    loss("gaussian_nll_loss", lambda x, t, v, **r: F.gaussian_nll_loss(x, t, v.exp(), full=True, **r), of(real, BATCH, 3),
         of(real, BATCH, 3), of(real, BATCH, 1))
    loss("kl_div", lambda x, t, **r: F.kl_div(x.log_softmax(-1), t.softmax(-1), **r), of(real, BATCH, 5), of(real, BATCH, 5))
    loss("kl_div log_target", lambda x, t, **r: F.kl_div(x.log_softmax(-1), t.log_softmax(-1), log_target=True, **r),
         of(real, BATCH, 5), of(real, BATCH, 5))
    loss("kl_div zeros", lambda x, t, **r: F.kl_div(x.log_softmax(-1), t.float(), **r), of(real, BATCH, 5), of(labels, 2, BATCH, 5))
    loss("binary_cross_entropy", lambda x, t, **r: F.binary_cross_entropy(x.sigmoid(), t, **r), of(real, BATCH, 5),
         of(share, BATCH, 5), constants=(1,))
    loss("binary_cross_entropy weights", lambda x, t, **r: F.binary_cross_entropy(x.sigmoid(), t, class_weights(), **r),
         of(real, BATCH, 5), of(share, BATCH, 5), constants=(1,))
    loss("binary_cross_entropy_with_logits", lambda x, t, **r: F.binary_cross_entropy_with_logits(x, t, **r),
         of(real, BATCH, 5), of(share, BATCH, 5))
    loss("binary_cross_entropy_with_logits weights", lambda x, t, **r: F.binary_cross_entropy_with_logits(
        x, t, class_weights(), pos_weight=class_weights(), **r), of(real, BATCH, 5), of(share, BATCH, 5))
    loss("ctc_loss", lambda x, y, **r: F.ctc_loss(
        x.log_softmax(-1).transpose(0, 1), y, torch.tensor((9, 8, 7, 9)), torch.tensor((3, 2, 1, 4)), **r), of(real, BATCH, 9, 5),
        lambda: 1 + labels(4, BATCH, 4))
    loss("ctc_loss lengths", lambda x, y, n, m, **r: F.ctc_loss(
        x.log_softmax(-1).transpose(0, 1), y, n, m, blank=2, **r), of(real, BATCH, 9, 5),
        lambda: torch.tensor([[0, 1, 3, 4], [0, 0, 1, 1], [3, 3, 3, 3], [4, 0, 0, 0]]),
        lambda: torch.tensor([9, 8, 5, 4]), lambda: torch.tensor([4, 4, 3, 0]))
    loss("ctc_loss concatenated", lambda x, y, n, m, **r: F.ctc_loss(
        x.log_softmax(-1).transpose(0, 1), y, n, m, zero_infinity=True, **r), of(real, BATCH, 9, 5),
        lambda: torch.tensor([1, 2, 2, 4, 1, 1, 3, 4, 1, 2, 3]), lambda: torch.tensor([9, 8, 3, 4]),
        lambda: torch.tensor([4, 4, 3, 0]))
add("kl_div batchmean", lambda x, t: F.kl_div(x.log_softmax(-1), t, reduction="batchmean"), of(real, BATCH, 5), of(share, BATCH, 5),
    constants=(1,))
add("ctc_loss one item", lambda x, y: F.ctc_loss(x[:, 0].log_softmax(-1), y, torch.tensor(9), torch.tensor(4)),
    of(real, 9, BATCH, 5), lambda: torch.tensor([1, 2, 2, 4]))
add("multi_margin_loss one item", lambda x, y: F.multi_margin_loss(x[0], y[0]), of(real, BATCH, 5), of(labels, 5, BATCH))

# ---- order

add("median", lambda x: torch.median(x), of(real, BATCH, 5))
add("median dim", lambda x: torch.median(x, 1), of(real, BATCH, 6))
add("median dim keep", lambda x: torch.median(x, 1, keepdim=True), of(real, BATCH, 5, 3))
add("median equal", lambda x: torch.median(x.clamp(-0.1, 0.1)), of(real, BATCH, 5))
add("nanmedian", lambda x: torch.nanmedian(torch.where(x > 1, float("nan"), x)), of(real, BATCH, 5))
add("nanmedian dim", lambda x: torch.nanmedian(torch.where(x > 1, float("nan"), x), 1), of(real, BATCH, 5))
add("kthvalue", lambda x: torch.kthvalue(x, 2, 1), of(real, BATCH, 5))
add("kthvalue keep", lambda x: torch.kthvalue(x, 3, -1, keepdim=True), of(real, BATCH, 5, 6))
add("mode", lambda x, k: torch.mode(x.gather(1, k), 1).values, of(real, BATCH, 5), of(labels, 5, BATCH, 5), constants=(0,))
add("quantile", lambda x: torch.quantile(x, 0.3, dim=1), of(real, BATCH, 5))
add("quantile several", lambda x: torch.quantile(x, torch.tensor([0.25, 0.5]), dim=1), of(real, BATCH, 6))
add("nanquantile", lambda x: torch.nanquantile(x, 0.3, dim=1), of(real, BATCH, 5))
add("msort", lambda x: torch.msort(x), of(real, BATCH, 5))
add("sort stable", lambda x: torch.sort(x, dim=1, stable=True), of(real, BATCH, 5))
add("cummax", lambda x: torch.cummax(x, 1), of(real, BATCH, 7))
add("cummin", lambda x: torch.cummin(x, 1), of(real, BATCH, 7))
add("aminmax", lambda x: torch.aminmax(x, dim=1), of(real, BATCH, 7))
add("aminmax whole", lambda x: torch.aminmax(x), of(real, BATCH, 7))
add("logsumexp", lambda x: torch.logsumexp(x, (1, 2)), of(real, BATCH, 5, 3))
add("logsumexp keep", lambda x: torch.logsumexp(x, 1, keepdim=True), of(real, BATCH, 5, 3))
add("logcumsumexp", lambda x: torch.logcumsumexp(9 * x, 1), of(real, BATCH, 7))
add("cumprod", lambda x: torch.cumprod(x, 1), of(real, BATCH, 7))
add("cumulative_trapezoid", lambda x: torch.cumulative_trapezoid(x, dim=1), of(real, BATCH, 7))
add("trapezoid", lambda x: torch.trapezoid(x, dim=1), of(real, BATCH, 7))
add("nansum", lambda x: torch.nansum(torch.where(x > 1, float("nan"), x), 1), of(real, BATCH, 5))
add("nanmean", lambda x: torch.nanmean(torch.where(x > 1, float("nan"), x), 1), of(real, BATCH, 5))
add("count_nonzero", lambda x: torch.count_nonzero(x > 0, 1).float() * x[:, 0], of(real, BATCH, 5))

# ---- pools

SIZES = {1: ((7,), 3), 2: ((7, 5), (3, 2)), 3: ((7, 5, 4), (3, 2, 3))}
for count, (size, to) in SIZES.items():
    average, largest = (getattr(F, f"adaptive_{kind}_pool{count}d") for kind in ("avg", "max"))
    pool, unpool = getattr(F, f"max_pool{count}d"), getattr(F, f"max_unpool{count}d")
    image = of(real, BATCH, 3, *size)
    add(f"adaptive_avg_pool{count}d", lambda x, f=average, to=to: f(x, to), image)
    add(f"adaptive_avg_pool{count}d larger", lambda x, f=average: f(x, 9), image)
    add(f"adaptive_avg_pool{count}d whole", lambda x, f=average: f(x, 1), image)
    add(f"adaptive_avg_pool{count}d no batch", lambda x, f=average, to=to: f(x[0], to), image)
    add(f"adaptive_max_pool{count}d", lambda x, f=largest, to=to: f(F.relu(x), to), image)
    add(f"adaptive_max_pool{count}d indices", lambda x, f=largest, to=to: f(F.relu(x), to, return_indices=True), image)
    add(f"adaptive_max_pool{count}d no batch", lambda x, f=largest, to=to: f(x[0], to), image)
    add(f"max_pool{count}d indices", lambda x, f=pool: f(F.relu(x), 2, return_indices=True), image)
    add(f"max_pool{count}d indices padding", lambda x, f=pool: f(x, 3, 2, 1, return_indices=True), image)
    add(f"max_pool{count}d indices ceil", lambda x, f=pool: f(x, 2, 3, 1, 1, True, return_indices=True), image)
    add(f"max_pool{count}d dilation", lambda x, f=pool: f(x, 2, 1, 1, 2, return_indices=True), image)
    add(f"max_pool{count}d no batch", lambda x, f=pool: f(x[0], 2), image)
    add(f"max_unpool{count}d", lambda x, f=pool, u=unpool: u(*f(x, 2, return_indices=True), 2),
        of(real, BATCH, 3, *(2 * (extent // 2) for extent in size)))
    add(f"max_unpool{count}d size", lambda x, f=pool, u=unpool: u(*f(x, 2, return_indices=True), 2, output_size=x.shape),
        image)
    average = getattr(F, f"avg_pool{count}d")
    add(f"avg_pool{count}d ceil", lambda x, f=average: f(x, 3, 2, 1, ceil_mode=True), image)
    add(f"avg_pool{count}d no padding", lambda x, f=average: f(x, 3, 2, 1, count_include_pad=False), image)
    add(f"avg_pool{count}d no batch", lambda x, f=average: f(x[0], 2), image)
    add(f"lp_pool{count}d", lambda x, f=getattr(F, f"lp_pool{count}d"): f(x.exp(), 3.0, 2), image)
add("adaptive_avg_pool2d one side", lambda x: F.adaptive_avg_pool2d(x, (None, 2)), of(real, BATCH, 3, 7, 5))
add("adaptive_avg_pool2d pyramid", lambda x: torch.cat([F.adaptive_avg_pool2d(x, k).flatten(1) for k in (1, 2, 3, 6)], 1),
    of(real, BATCH, 3, 10, 10))
for count in (2, 3):
    add(f"avg_pool{count}d divisor", lambda x, f=getattr(F, f"avg_pool{count}d"): f(x, 3, 2, 1, divisor_override=5),
        of(real, BATCH, 3, *SIZES[count][0]))

# ---- element by element, and products

add("lerp", lambda x, y: torch.lerp(x, y, 0.3), of(real, BATCH, 5), of(real, BATCH, 5))
add("lerp tensor", lambda x, y, w: torch.lerp(x, y, w), of(real, BATCH, 5), of(real, BATCH, 5), of(real, BATCH, 1))
add("addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.3), of(real, BATCH, 5), of(real, BATCH, 5), of(real, BATCH, 5))
add("addcdiv", lambda x, y, z: torch.addcdiv(x, y, z.exp(), value=0.3), of(real, BATCH, 5), of(real, BATCH, 5), of(real, BATCH, 5))
add("addbmm", lambda x, y, z: torch.addbmm(x, y, z, beta=0.5, alpha=2), of(real, 3, 5), of(real, BATCH, 3, 4), of(real, BATCH, 4, 5))
add("baddbmm", lambda x, y, z: torch.baddbmm(x, y, z, beta=0.5, alpha=2), of(real, BATCH, 3, 5), of(real, BATCH, 3, 4), of(real, BATCH, 4, 5))
add("addr", lambda x, y, z: torch.addr(x, y, z, beta=0.5, alpha=2), of(real, BATCH, 5), of(real, BATCH), of(real, 5))
add("addmv", lambda x, y, z: torch.addmv(x, y, z, beta=0.5, alpha=2), of(real, BATCH), of(real, BATCH, 5), of(real, 5))
add("bilinear", lambda x, y, w: F.bilinear(x, y, w), of(real, BATCH, 5), of(real, BATCH, 4), of(real, 3, 5, 4))
add("inner", lambda x, y: torch.inner(x, y), of(real, BATCH, 5), of(real, 3, 5))
add("tensordot", lambda x, y: torch.tensordot(x, y, dims=([1, 2], [1, 0])), of(real, BATCH, 5, 3), of(real, 3, 5, 2))
add("kron", lambda x, y: torch.kron(x, y), of(real, BATCH, 2), of(real, 3, 2))
add("chain_matmul", lambda x, y, z: torch.linalg.multi_dot([x, y, z]), of(real, BATCH, 5), of(real, 5, 3), of(real, 3, 2))
add("vecdot", lambda x, y: torch.linalg.vecdot(x, y), of(real, BATCH, 5), of(real, BATCH, 5))
add("cross", lambda x, y: torch.linalg.cross(x, y), of(real, BATCH, 3), of(real, BATCH, 3))
add("trace", lambda x: torch.trace(x) * x.mean(), of(real, BATCH, 5))
add("diagonal", lambda x: torch.diagonal(x, 1, -2, -1), of(real, BATCH, 5, 4))
add("diag_embed", lambda x: torch.diag_embed(x, 1), of(real, BATCH, 5))
add("diag", lambda x: torch.diag(x), of(real, 5, 4))
add("diag of a vector", lambda x: torch.diag(x[0], -1), of(real, 5, 4))
add("root behind bounds", lambda x: torch.sqrt(torch.clamp(x, 0)).clamp(min=0.01), of(real, BATCH, 6))
add("logaddexp", lambda x, y: torch.logaddexp(x, y), of(real, BATCH, 5), of(real, BATCH, 5))
add("logaddexp2", lambda x, y: torch.logaddexp2(x, y), of(real, BATCH, 5), of(real, BATCH, 5))
add("xlogy", lambda x, y: torch.xlogy(x, y.exp()), of(real, BATCH, 5), of(real, BATCH, 5))
add("xlog1py", lambda x, y: torch.special.xlog1py(x, y.exp()), of(real, BATCH, 5), of(real, BATCH, 5))
add("entr", lambda x: torch.special.entr(x.sigmoid()), of(real, BATCH, 5))
add("hypot", lambda x, y: torch.hypot(x, y), of(real, BATCH, 5), of(real, BATCH, 5))
add("atan2", lambda x, y: torch.atan2(x, y), of(real, BATCH, 5), of(real, BATCH, 5))
add("copysign", lambda x, y: torch.copysign(x, y), of(real, BATCH, 5), of(real, BATCH, 5))
add("float_power", lambda x: torch.float_power(x.exp(), 1.5).float(), of(real, BATCH, 5))
add("ldexp", lambda x, y: torch.ldexp(x, y), of(real, BATCH, 5), of(labels, 4, BATCH, 5))
add("nan_to_num", lambda x: torch.nan_to_num(torch.where(x > 0.8, float("inf"), torch.where(
    x < -0.8, float("-inf"), torch.where(x.abs() < 0.1, float("nan"), x))), 0.3, 2.0, -3.0), of(real, BATCH, 5))
for name, function in (("logit", lambda x: torch.logit(x.sigmoid())), ("logit eps", lambda x: torch.logit(x.sigmoid(), 0.3)),
                       ("erfc", torch.erfc), ("erfinv", lambda x: torch.erfinv(x.tanh() * 0.9)),
                       ("lgamma", lambda x: torch.lgamma(x.exp())), ("digamma", lambda x: torch.digamma(x.exp())),
                       ("sinc", torch.sinc), ("exp2", torch.exp2), ("expm1", torch.expm1), ("log1p", lambda x: torch.log1p(x.exp())),
                       ("log2", lambda x: torch.log2(x.exp())), ("log10", lambda x: torch.log10(x.exp())),
                       ("rsqrt", lambda x: torch.rsqrt(x.exp())), ("frac", torch.frac), ("trunc", lambda x: torch.trunc(3 * x) * x),
                       ("round decimals", lambda x: torch.round(x, decimals=1) * x), ("deg2rad", torch.deg2rad),
                       ("rad2deg", torch.rad2deg), ("heaviside", lambda x: torch.heaviside(x, torch.tensor(0.5)) * x),
                       ("i0", torch.special.i0), ("ndtr", torch.special.ndtr), ("log_ndtr", torch.special.log_ndtr),
                       ("hardshrink", F.hardshrink), ("softshrink", lambda x: F.softshrink(x, 0.3)), ("tanhshrink", F.tanhshrink),
                       ("threshold", lambda x: F.threshold(x, 0.2, -1.5)), ("softmin", lambda x: F.softmin(x, -1)),
                       ("rrelu evaluated", lambda x: F.rrelu(x, training=False)), ("glu", lambda x: F.glu(x[:, :4], -1)),
                       ("celu", lambda x: F.celu(x, 0.7)), ("elu", lambda x: F.elu(x, 0.7)), ("selu", F.selu),
                       ("softplus", lambda x: F.softplus(x, 3.0, 1.0)), ("logsigmoid", F.logsigmoid), ("mish", F.mish),
                       ("hardswish", F.hardswish), ("hardsigmoid", F.hardsigmoid), ("relu6", lambda x: F.relu6(6 * x)),
                       ("clamp tensors", lambda x: torch.clamp(x, torch.tensor(-0.5), torch.tensor(0.6))),
                       ("clip", lambda x: torch.clip(x, -0.3, 0.6)), ("square", torch.square), ("absolute", torch.absolute),
                       ("signbit", lambda x: x * torch.signbit(x).float()), ("std", lambda x: torch.std(x, 1)),
                       ("var correction", lambda x: torch.var(x, 1, correction=2)), ("cov", lambda x: torch.cov(x)),
                       ("corrcoef", lambda x: torch.corrcoef(x)), ("diff", lambda x: torch.diff(x, 2, 1)),
                       ("roll", lambda x: torch.roll(x, (1, 2), (0, 1))), ("rot90", lambda x: torch.rot90(x)),
                       ("take_along_dim", lambda x: torch.take_along_dim(x, x.argsort(1), 1)),
                       ("take", lambda x: torch.take(x, torch.tensor([0, 7, 3]))),
                       ("index_fill", lambda x: x.index_fill(1, torch.tensor([0, 2]), 0.5)),
                       ("index_copy", lambda x: x.index_copy(1, torch.tensor([0, 2]), 2 * x[:, 1:3])),
                       ("index_reduce", lambda x: x.index_reduce(1, torch.tensor([0, 2]), 2 * x[:, 1:3], "amax")),
                       ("scatter_reduce amax", lambda x: x.scatter_reduce(1, (x > 0).long(), 2 * x, "amax")),
                       ("scatter_reduce mean", lambda x: x.scatter_reduce(1, (x > 0).long(), 2 * x, "mean")),
                       ("scatter_reduce sum alone", lambda x: x.scatter_reduce(1, (x > 0).long(), 2 * x, "sum", include_self=False)),
                       ("repeat_interleave", lambda x: x.repeat_interleave(2, 1)), ("unfold rows", lambda x: x.flip(1).tile(1, 2)),
                       ("channel_shuffle", lambda x: F.channel_shuffle(x.reshape(BATCH, 6, 1, 1), 3)),
                       ("local_response_norm", lambda x: F.local_response_norm(x.unsqueeze(-1), 3)),
                       ("bucketize", lambda x: x * torch.bucketize(x, torch.tensor([-0.5, 0.1, 0.7])).float()),
                       ("searchsorted", lambda x: x * torch.searchsorted(torch.tensor([-0.5, 0.1, 0.7]), x, right=True).float()),
                       ("polygamma", lambda x: torch.polygamma(1, x.exp())),
                       ("dropout2d of none", lambda x: F.dropout2d(x.reshape(BATCH, 3, 2, 1), 0.0, True)),
                       ("dropout3d evaluated", lambda x: F.dropout3d(x.reshape(BATCH, 3, 2, 1, 1), 0.5, False)),
                       ("alpha_dropout of none", lambda x: F.alpha_dropout(x, 0.0, True)),
                       ("feature_alpha_dropout evaluated", lambda x: F.feature_alpha_dropout(x, 0.5, False)),
                       ("histc one range", lambda x: x.sum() * torch.histc(x, 1)[0]),
                       ("histc", lambda x: (x * torch.histc(x, 6, -1, 1))),
                       ("block_diag", lambda x: torch.block_diag(x, x)), ("vander", lambda x: torch.vander(x[0], 3)),
                       ("cartesian_prod", lambda x: torch.cartesian_prod(x[0], x[1])),
                       ("combinations", lambda x: torch.combinations(x[0]))):
    add(name, function, of(real, BATCH, 6))

# What tests/engine/frontend/pt2 holds of them (make_pt2_files.py), by file; STORED_CORE as core ATen, too.
STORED_CORE = {"operators_bags", "operators_pools", "operators_ctc"}
STORED = {
    "operators_bags": ["masked_scatter rows", "masked_scatter elements", "embedding_bag mean padding",
                       "embedding_bag max offsets", "embedding_bag weights last offset padding", "embedding_bag by frequency",
                       "embedding by frequency"],
    "operators_norms": ["weight_norm parametrized conv", "weight_norm parametrized linear dim 1", "renorm", "vector norm 0.5",
                        "vector norm 3", "linalg norm inf", "cdist 1.5", "cdist small by product", "pdist",
                        "pairwise_distance inf", "cosine_similarity eps", "cosine_embedding_loss sum",
                        "triplet_margin_loss swap p 1 mean"],
    "operators_buffers": ["embedding max_norm", "spectral_norm parametrized two steps", "FusedMovingAvgObsFakeQuantize"],
    "operators_quantized": ["fake_quantize tensor", "fake_quantize channel", "fake_quantize learned channel"],
    "operators_losses": ["cross_entropy images smoothing ignore weights mean", "cross_entropy probabilities smoothing weights mean",
                         "cross_entropy probabilities images smoothing weights none", "margin_ranking_loss mean",
                         "hinge_embedding_loss sum", "multi_margin_loss p 2 weights none", "multilabel_margin_loss mean",
                         "soft_margin_loss sum", "poisson_nll_loss full mean"],
    "operators_ctc": ["ctc_loss mean", "ctc_loss lengths none", "ctc_loss concatenated sum"],
    "operators_order": ["median equal", "median dim keep", "nanmedian dim", "kthvalue", "quantile several", "cummax",
                        "logcumsumexp", "cumprod"],
    "operators_pools": ["adaptive_avg_pool2d", "adaptive_max_pool3d indices", "max_pool2d indices ceil", "max_unpool2d size",
                        "avg_pool3d divisor"],
    "operators_special": ["diagonal", "diag_embed", "logaddexp", "xlogy", "atan2", "nan_to_num", "logit eps", "softshrink",
                          "bucketize", "cross", "bilinear"],
    "operators_elements": ["softplus", "root behind bounds", "absolute", "inner", "diag", "diag of a vector", "channel_shuffle",
                           "block_diag", "cumulative_trapezoid", "trapezoid"],
}
