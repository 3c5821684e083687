"""A torch of shapes and calls alone: enough to run exported programs where there is no torch, and to say what they do wrong.

Every operation knows the shape of what it makes, and refuses shapes that do not fit, and what is still arriving.
"""

import math
import sys
from types import SimpleNamespace


__version__ = "2.6.0"
cuda = SimpleNamespace(is_available=lambda: False, device_count=lambda: 0, set_device=lambda device: None, Stream=None)


class device(SimpleNamespace):
    def __init__(self, kind, index=0):
        super().__init__(type=kind, index=index)


class dtype:
    def __init__(self, name, floating):
        self.name = name
        self.is_floating_point = floating

    def __repr__(self):
        return "torch." + self.name


float32, float16, bfloat16, float64 = (dtype(name, True) for name in ("float32", "float16", "bfloat16", "float64"))
int64, int32, int16, int8, uint8, bool = (dtype(name, False) for name in ("int64", "int32", "int16", "int8", "uint8", "bool"))
float8_e4m3fn, float8_e5m2 = dtype("float8_e4m3fn", True), dtype("float8_e5m2", True)


def broadcast(*shapes):
    made = []
    for d in range(max((len(shape) for shape in shapes), default=0)):
        extents = {shape[len(shape) - 1 - d] for shape in shapes if d < len(shape)} - {1}
        if len(extents) > 1:
            raise ValueError(f"shapes {shapes} do not broadcast")
        made.append(extents.pop() if extents else 1)
    return tuple(reversed(made))


class Tensor:
    def __init__(self, shape, dtype=float32):
        self.shape = tuple(shape)
        self.dtype = dtype

    def __repr__(self):
        return f"{list(self.shape)} {self.dtype.name}"

    def dim(self):
        return len(self.shape)

    def _with(self, other, kind=None):
        shapes = [self.shape] + ([other.shape] if isinstance(other, Tensor) else [])
        return Tensor(broadcast(*shapes), kind or self.dtype)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = _with

    def __neg__(self):
        return Tensor(self.shape, self.dtype)

    def __matmul__(self, other):
        a, b = self.shape, other.shape
        if a[-1] != b[-2]:
            raise ValueError(f"{list(a)} @ {list(b)}")
        return Tensor(broadcast(a[:-2], b[:-2]) + (a[-2], b[-1]), self.dtype)

    def __getitem__(self, box):
        box = box if isinstance(box, tuple) else (box,)
        made = []
        for d, extent in enumerate(self.shape):
            cut = box[d] if d < len(box) else slice(None)
            begin, end = cut.start or 0, extent if cut.stop is None else cut.stop
            if begin < 0 or end > extent or begin > end:
                raise ValueError(f"[{begin}:{end}] of {extent} places along dimension {d}")
            made.append(len(range(begin, end, cut.step or 1)))
        return Tensor(made, self.dtype)

    def t(self):
        return Tensor(self.shape[::-1], self.dtype)

    @property
    def mT(self):
        return Tensor(self.shape[:-2] + (self.shape[-1], self.shape[-2]), self.dtype)

    def reshape(self, *shape):
        shape = shape[0] if shape and isinstance(shape[0], tuple) else shape
        if math.prod(shape) != math.prod(self.shape):
            raise ValueError(f"{list(self.shape)} as {list(shape)}")
        return Tensor(shape, self.dtype)

    def flatten(self, start=0, end=-1):
        start, end = start % len(self.shape), end % len(self.shape)
        return Tensor(self.shape[:start] + (math.prod(self.shape[start:end + 1]),) + self.shape[end + 1:], self.dtype)

    def permute(self, order):
        if sorted(order) != list(range(self.dim())):
            raise ValueError(f"{order} of {list(self.shape)}")
        return Tensor([self.shape[d] for d in order], self.dtype)

    def expand(self, shape):
        if broadcast(self.shape, tuple(shape)) != tuple(shape):
            raise ValueError(f"{list(self.shape)} expanded to {list(shape)}")
        return Tensor(shape, self.dtype)

    def repeat(self, repeats):
        return Tensor([extent * times for extent, times in zip(self.shape, repeats)], self.dtype)

    def narrow(self, dim, begin, length):
        if begin + length > self.shape[dim]:
            raise ValueError(f"{begin}:{begin + length} of {list(self.shape)} along {dim}")
        return Tensor(self.shape[:dim] + (length,) + self.shape[dim + 1:], self.dtype)

    def sum(self, dims=None, keepdim=False, dtype=None):
        return sum(self, dims, keepdim)

    def to(self, kind, copy=False):
        return Tensor(self.shape, kind)

    def clone(self):
        return Tensor(self.shape, self.dtype)

    flip = lambda self, dims: self.clone()  # noqa: E731

    def new_zeros(self, *shape):
        return Tensor(shape[0] if shape and isinstance(shape[0], tuple) else shape, self.dtype)

    def copy_(self, other):
        if other.shape != self.shape:
            raise ValueError(f"{list(other.shape)} into {list(self.shape)}")
        return self

    def add_(self, other):
        return self.copy_(other)


def sum(x, dims=None, keepdim=False, dtype=None):
    dims = range(x.dim()) if dims is None else [dims] if isinstance(dims, int) else dims
    dims = {d % max(1, x.dim()) for d in dims}
    return Tensor([1 if d in dims else extent for d, extent in enumerate(x.shape) if d not in dims or keepdim], x.dtype)


amax = amin = logsumexp = sum


def argmax(x, dim, keepdim=False):
    return sum(x, dim, keepdim).to(int64)


def cat(pieces, dim=0):
    for piece in pieces:
        if len(piece.shape) != len(pieces[0].shape) or any(
                a != b for d, (a, b) in enumerate(zip(piece.shape, pieces[0].shape)) if d != dim):
            raise ValueError(f"{pieces} along {dim}")
    shape = list(pieces[0].shape)
    shape[dim] = 0
    for piece in pieces:
        shape[dim] += piece.shape[dim]
    return Tensor(shape, pieces[0].dtype)


def split(x, sizes, dim):
    begin, made = 0, []
    for size in sizes:
        made.append(x.narrow(dim, begin, size))
        begin += size
    return tuple(made)


def where(condition, a, b):
    return Tensor(broadcast(*(x.shape for x in (condition, a, b) if isinstance(x, Tensor))),
                  a.dtype if isinstance(a, Tensor) else b.dtype)


def full(shape, value, dtype=float32, device=None):
    return Tensor(shape, dtype)


def einsum(equation, *operands):
    inputs, result = equation.replace(" ", "").split("->")
    sizes = {}
    for letters, x in zip(inputs.split(","), operands):
        for letter, extent in zip(letters, x.shape):
            if sizes.setdefault(letter, extent) != extent:
                raise ValueError(f"{equation} of {operands}")
    return Tensor([sizes[letter] for letter in result], operands[0].dtype)


def alike(x, *others, **options):
    return Tensor(broadcast(x.shape, *(other.shape for other in others if isinstance(other, Tensor))), x.dtype)


for _name in ("abs acos acosh asin asinh atan atanh ceil cos cosh erf exp floor isnan isinf log logical_not reciprocal relu round "
              "sigmoid sign sin sinh sqrt tan tanh clamp softmax log_softmax square pow minimum maximum logical_and logical_or "
              "eq gt ge lt le div fmod remainder triu tril scatter scatter_add").split():
    setattr(sys.modules[__name__], _name, alike)


class _Aten:
    def __getattr__(self, name):
        return alike


ops = SimpleNamespace(aten=_Aten())
