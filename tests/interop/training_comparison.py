"""What training makes of a network, by PyTorch and by Planloom, and how the two differ.

Compared are the loss, every gradient and the losses of eight AdamW steps.
"""

import copy
import dataclasses
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import torch

from model_cases import reference

STEPS = 8
LEARNING_RATE = 0.003
TOLERANCE = 4e-4  # of a gradient's largest element, or a thousandth of the model's
LOSSES = 2e-4
SECONDS = 300


def losses_of(module, inputs):
    module = copy.deepcopy(module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = module(*inputs)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


def nearby_losses(module, inputs, count=2):
    """Of models whose weights differ by rounding: where AdamW makes whole steps of it, nothing else can be compared."""
    several = []
    for seed in range(count):
        near = copy.deepcopy(module)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in near.parameters():
                if parameter.is_floating_point():
                    parameter.mul_(1 + 3e-7 * torch.randn(parameter.shape, generator=generator))
        several.append(losses_of(near, inputs))
    return several


def in_double(module, inputs):
    return (copy.deepcopy(module).double(),
            [value.double() if value.is_floating_point() else value for value in inputs])


def found_gradients(dumped, expected):
    """The dumped gradients by PyTorch's names: by name, else (the exporter folds and renames) by shape and nearness."""
    dumped = dict(dumped)
    found = {}
    for name in expected:
        for own in (name, name.removeprefix("model."), "model." + name):
            if own in dumped and dumped[own].shape == expected[name].shape:
                one = dumped.pop(own)
                found[name] = min(readings(one, expected[name]), key=lambda each: np.abs(each - expected[name]).max())
                break
    pairs = []
    for name, value in expected.items():
        if name not in found:
            pairs += [(np.abs(one - value).max() / max(np.abs(value).max(), 1e-30), name, own, one)
                      for own, array in dumped.items() for one in readings(array, value)]
    for _, name, own, one in sorted(pairs, key=lambda pair: pair[:3]):  # the nearest first
        if name not in found and own in dumped:
            found[name] = one
            del dumped[own]
    return found


def readings(array, value):
    """What an array may be, seen as a gradient of the shape of `value`."""
    if array.size == value.size:
        yield array.reshape(value.shape)
        if array.ndim == 2 and array.shape == value.shape[::-1]:
            yield array.T
    if value.ndim == 2 and value.any() and array.size % value.shape[1] == 0:
        # A table that is read in part, where the exporter folded the reading: its rows are in their order, or in that of
        # the places that read them.
        rows = array.reshape(-1, value.shape[1])
        used = np.flatnonzero(value.any(1))
        if len(rows) == len(used):
            nearest = [int(np.abs(value[used] - row).max(1).argmin()) for row in rows]
            for order in (range(len(used)), nearest):
                if len(set(order)) == len(used):
                    whole = np.zeros_like(value)
                    whole[used[list(order)]] = rows
                    yield whole


@dataclasses.dataclass
class Expected:
    """What PyTorch makes of a network."""

    loss: float
    losses: list  # of STEPS steps
    nearby: list  # the same in float64, and of models that differ by rounding
    gradients: dict
    exact: dict  # the same in float64

    @staticmethod
    def of(module, inputs):
        loss, gradients = reference(module, inputs)
        losses = losses_of(module, inputs)
        try:
            wide, doubled = in_double(module, inputs)
            _, exact = reference(wide, doubled)
            exact_losses = losses_of(wide, doubled)
        except RuntimeError:  # numbers of float32 in the module's code
            exact, exact_losses = gradients, losses
        return Expected(loss, losses, [exact_losses, *nearby_losses(module, inputs)], gradients, exact)

    def store(self, path):
        np.savez(path, loss=self.loss, losses=self.losses, nearby=self.nearby,
                 **{"grad." + name: value for name, value in self.gradients.items()},
                 **{"exact." + name: value for name, value in self.exact.items()})

    @staticmethod
    def stored(path):
        stored = np.load(path)
        gradients, exact = ({name.removeprefix(kind): stored[name] for name in stored.files if name.startswith(kind)}
                            for kind in ("grad.", "exact."))
        return Expected(float(stored["loss"]), list(stored["losses"]), stored["nearby"], gradients, exact)


@dataclasses.dataclass
class Found:
    """What Planloom makes of a file."""

    failure: str = ""  # why it does not run; empty if it does
    loss: float = 0.0
    gradients: dict = dataclasses.field(default_factory=dict)  # by tensor
    losses: list = dataclasses.field(default_factory=list)  # of STEPS steps
    steps_failure: str = ""

    @staticmethod
    def by(cli, path, folder, constants=()):
        def run(*words):
            return subprocess.run([cli, *map(str, words)], capture_output=True, text=True, timeout=SECONDS, check=False)

        by_hand = [word for name in constants for word in ("--constant", name)]
        common = ("run", path, *by_hand, "--cluster", "cpu:1", "--inputs", folder / "io.npz", "--json")
        with tempfile.TemporaryDirectory() as dump:
            try:
                once = run(*common, "--dump", dump)
                several = run(*common, "--steps", STEPS, "--learning-rate", LEARNING_RATE)
            except subprocess.TimeoutExpired:
                return Found(f"not done after {SECONDS} s")
            if once.returncode != 0:
                return Found(once.stderr.strip().replace("\n", " ")[:400])
            dumped = pathlib.Path(dump) / "grad"
            gradients = {str(file.relative_to(dumped))[:-4]: np.load(file) for file in sorted(dumped.rglob("*.npy"))}
        losses = json.loads(several.stdout)["losses"] if several.returncode == 0 else []
        return Found("", json.loads(once.stdout)["losses"][0], gradients, losses, several.stderr.strip()[:200])


def loss_difference(found, expected):
    if abs(found.loss - expected.loss) <= 1e-4 * max(1.0, abs(expected.loss)):
        return ""
    return f"loss {found.loss:.6g}, PyTorch has {expected.loss:.6g}"


def gradient_difference(found, expected, lost=()):
    """@param lost  parameters that are not compared"""
    made = found_gradients(found.gradients, expected.gradients)
    least = 1e-3 * max(np.abs(value).max() for value in expected.gradients.values())
    for name, value in expected.gradients.items():
        if name in lost:
            continue
        if name not in made:
            if np.abs(value).max() > least:
                return f"no gradient of {name}"
            continue
        noise = np.abs(value - expected.exact[name]).max()
        scale = max(np.abs(value).max(), least)
        error = np.abs(made[name] - value).max()
        if not error <= TOLERANCE * scale + 2 * noise:
            return f"gradient of {name} differs by {error / scale:.1e}"
    return ""


def step_difference(found, expected):
    if len(found.losses) != STEPS:
        return "several steps: " + found.steps_failure
    for step, (mine, theirs) in enumerate(zip(found.losses, expected.losses)):
        allowed = LOSSES * max(1.0, abs(theirs)) * (1 + step)
        # A few times as far as float64, and models that differ by rounding, have come by this step.
        spread = max(abs(expected.losses[s] - other[s]) for other in expected.nearby for s in range(step + 1))
        if not abs(mine - theirs) <= allowed + 4 * spread:
            return f"loss of step {step + 1} is {mine:.6g}, PyTorch has {theirs:.6g}"
    return ""
