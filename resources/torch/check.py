"""Holds the plan's programs against the unpartitioned model: python check.py, or torchrun --nproc-per-node N check.py

In one process the plan's devices are threads. The unpartitioned model is the program of the same model's plan for one device,
in the folder `reference`.
"""

import argparse
import json
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROUNDING = 2.0**-53  # of a double
sys.path.insert(0, FOLDER)

import torch  # noqa: E402

__import__("dataset")  # it may register operators
from runtime import checkpoints  # noqa: E402
from runtime.data import Beginnings, Drawn  # noqa: E402
from runtime.groups import Processes  # noqa: E402
from runtime.local import on_threads  # noqa: E402
from runtime.memory import peak_of_step  # noqa: E402
from runtime.step import Run, read_plan  # noqa: E402


def started(folder, plan, processes, seed, moves=0.0):
    constants = os.path.join(folder, "constants.safetensors")
    beginnings = Beginnings(plan, constants if os.path.exists(constants) else None, None, seed)
    beginnings.moves = moves
    sys.path.insert(0, folder)
    run = Run(folder, processes, beginnings, Drawn(plan, seed), seed)
    sys.path.remove(folder)
    return run


def outcome(run, steps):
    """Loss, gradients and weights after some steps."""
    for number in range(steps):
        run.gradients = [] if number + 1 == steps else None
        loss = run.step()
    return loss, run.whole(run.gradients), run.whole(checkpoints.pieces(run, ("weight",)))


def worst(ours, theirs):
    """The largest difference relative to the largest value of each tensor, and which it is of."""
    largest = max((float(each.abs().max()) for each in theirs.values() if each.numel()), default=0.0)
    found = (0.0, "")
    for name, expected in theirs.items():
        if name not in ours:
            return float("inf"), name
        scale = max(float(expected.abs().max()) if expected.numel() else 0.0, 1e-3 * largest, 1e-30)
        found = max(found, (float((ours[name].double() - expected.double()).abs().max()) / scale if expected.numel() else 0.0, name))
    return found


def in_double():
    """What programs and files call float32 is double precision from here on; files are read as they are."""
    torch.float32 = torch.float64
    take = Beginnings.take

    def wide(self, part):
        values = take(self, part)
        if not values.is_floating_point():
            return values
        return values.double() * (1 + self.moves * torch.randn(values.shape, dtype=torch.float64))

    Beginnings.take, Beginnings.moves = wide, 0.0


def apart(made, expected):
    """Of two outcomes: how far apart are losses, gradients and weights; and the most of it."""
    loss = abs(made[0] - expected[0]) / max(abs(expected[0]), 1e-30)
    gradient, weight = worst(made[1], expected[1]), worst(made[2], expected[2])
    return loss, gradient, weight, max(loss, gradient[0], weight[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--out", metavar="FILE", help="write the differences there, too, as JSON")
    parser.add_argument("--double", action="store_true", help="all of it in double precision, where rounding is none of the difference")
    chosen = parser.parse_args()
    if chosen.tolerance is None:
        chosen.tolerance = 1e-9 if chosen.double else 1e-4
    if chosen.double:
        in_double()
    torch.set_num_threads(1)
    plan = read_plan(FOLDER)
    under_torchrun = int(os.environ.get("WORLD_SIZE", 1)) > 1

    def work(processes):
        return outcome(started(FOLDER, plan, processes, chosen.seed), chosen.steps)

    rank = 0
    if under_torchrun or plan["world"] == 1:
        processes = Processes(plan)
        made = work(processes)
        rank = processes.rank
    else:
        made = on_threads(plan, work)[0]
    if rank == 0 and not chosen.double:
        for peak, planned in on_threads(plan, lambda thread: peak_of_step(started(FOLDER, plan, thread, chosen.seed)))[:8]:
            print(f"bytes that live at once: {peak}, planned {planned} ({100 * (peak / max(planned, 1) - 1):+.1f}%)")
    reference = os.path.join(FOLDER, "reference")
    ok = True
    if rank == 0 and os.path.isdir(reference):
        for name in [name for name in sys.modules if name.startswith("programs")]:
            del sys.modules[name]
        single = read_plan(reference)

        def alone(moves=0.0):
            return on_threads(single, lambda thread: outcome(started(reference, single, thread, chosen.seed, moves), chosen.steps))[0]

        expected = alone()
        loss, gradient, weight, most = apart(made, expected)
        tolerance = chosen.tolerance
        if chosen.double and most > tolerance:  # a model that carries rounding that far is equal to itself no better
            torch.manual_seed(chosen.seed)
            rounding = apart(alone(ROUNDING), expected)[3]
            tolerance = max(tolerance, 10 * rounding)
            print(f"the unpartitioned model from weights that are rounded otherwise: {rounding:.2g} apart from itself")
        ok = most <= tolerance
        if chosen.out:
            with open(chosen.out, "w") as file:
                json.dump({"ok": ok, "loss": loss, "gradient": gradient, "weight": weight}, file)
        print(f"loss {made[0]:.7g}, of the unpartitioned model {expected[0]:.7g}; worst gradient {gradient[1]} {gradient[0]:.2g}, "
              f"worst weight {weight[1]} {weight[0]:.2g}: {'equal' if ok else 'DIFFERENT'}")
    if under_torchrun or plan["world"] == 1:
        processes.close()
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
