"""Where values are kept: weights across steps, sums for a step, a micro-batch's values from one block to another."""

from types import SimpleNamespace


class Values(SimpleNamespace):
    """Tensors by name. A program deletes each where the plan says that nobody needs it any more."""


def accumulate(values, name, x, dtype=None):
    """values.name += x, the first time in a step values.name = x, in memory of its own."""
    if hasattr(values, name):
        getattr(values, name).add_(x)
    else:
        setattr(values, name, x.to(dtype or x.dtype, copy=True))


def accumulate_(values, name, x):
    """As `accumulate`, but the first x stays where it is: nobody else needs it."""
    if hasattr(values, name):
        getattr(values, name).add_(x)
    else:
        setattr(values, name, x)


class Versions:
    """A weight as it was before each of the last updates: of pipelines whose passes read the one that they began with. Each update
    is written over the oldest, which is the newest from then on."""

    def __init__(self, run, count):
        self.run = run
        self.kept = [None] * count

    def _at(self, update, age):
        return self.kept[(age - update) % len(self.kept)]

    def of(self, m, age):
        """As the micro-batch's update finds it, by so many updates older than the newest."""
        return self._at(self.run.step_number * self.run.plan["updates"] + m.update, age)

    def newest(self):
        return self._at(self.run.step_number * self.run.plan["updates"], 0)


class Part:
    """A box of one of the model's tensors: first and last-but-one index along every dimension."""

    def __init__(self, name, ranges):
        self.name = name
        self.ranges = tuple(ranges)

    @property
    def shape(self):
        return tuple(end - begin for begin, end in self.ranges)

    def __repr__(self):
        return f"{self.name}[{', '.join(f'{begin}:{end}' for begin, end in self.ranges)}]"


class Parts:
    """The model's tensors by name: `parts["wte.weight"][0:64, :]` is what `take` makes of that box."""

    def __init__(self, shapes, take, shift=None):
        self.shapes = shapes
        self.take = take
        self.shift = shift

    def __getitem__(self, name):
        return _Boxes(self, name)


class _Boxes:
    def __init__(self, parts, name):
        self.parts = parts
        self.name = name

    def __getitem__(self, box):
        shape = self.parts.shapes[self.name]
        box = box if isinstance(box, tuple) else (box,)
        ranges = []
        for dimension, extent in enumerate(shape):
            cut = box[dimension] if dimension < len(box) else slice(None)
            ranges.append((0 if cut.start is None else cut.start, extent if cut.stop is None else cut.stop))
        if self.parts.shift:
            dimension, by = self.parts.shift(self.name)
            if dimension >= 0:
                begin, end = ranges[dimension]
                ranges[dimension] = (begin + by, end + by)
        return self.parts.take(Part(self.name, ranges))
