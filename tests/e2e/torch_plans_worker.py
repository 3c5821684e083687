"""Runs exported plans one after another in one start of torchrun, or each on threads of this process: what torch_plans.py asks
of a Python that has torch. Its argument is a file of JSON lines {"folder", "steps", "seed", "dump"}; standard output, of rank 0,
has JSON lines of how far loss, gradients and weights are from those in "dump", and how many bytes lived at once.
"""

import gc
import importlib
import json
import os
import sys
import time
import traceback

import numpy as np
import torch
import torch.distributed as dist


def modules_of(folder):
    """The runtime and the programs of a folder: each has its own."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("runtime", "programs", "train", "dataset", "check")]:
        del sys.modules[name]
    sys.path[:] = [folder] + [path for path in sys.path if path != folder]
    importlib.invalidate_caches()
    return importlib.import_module("train")


def started(folder, plan, processes, job):
    from runtime.data import Beginnings, Drawn
    from runtime.step import Run

    constants = os.path.join(folder, "constants.safetensors")
    weights = os.path.join(folder, "weights.safetensors")
    beginnings = Beginnings(plan, constants if os.path.exists(constants) else None, weights if os.path.exists(weights) else None, job["seed"])
    return Run(folder, processes, beginnings, Drawn(plan, job["seed"]), job["seed"])


def run_on(train, folder, plan, processes, job):
    """What is compared."""
    run = started(folder, plan, processes, job)
    if job.get("compile"):
        from runtime.compiled import compile_blocks
        compile_blocks(run, job["compile"])
    for number in range(job["steps"]):
        run.gradients = [] if number + 1 == job["steps"] else None
        loss = run.step()
    return train.dump(run, loss)


def live_bytes(folder, plan, job):
    """Of each device: how much more lives at once in a step than is planned, of 1."""
    from runtime.local import on_threads
    from runtime.memory import peak_of_step

    peaks = on_threads(plan, lambda thread: peak_of_step(started(folder, plan, thread, job)))
    return [peak / max(planned, 1) - 1 for peak, planned in peaks]


def differences(made, dump):
    """{"loss": d, "grad": [d, tensor], "weight": [d, tensor]}: the largest of each, relative to the largest value."""
    expected = {}
    for root, _, names in os.walk(dump):
        for name in names:
            if name.endswith(".npy"):
                path = os.path.join(root, name)
                expected[os.path.relpath(path, dump)[:-4]] = np.load(path).astype(np.float64)
    found = {"grad": (0.0, ""), "weight": (0.0, "")}
    largest = {kind: max([np.abs(v).max() for n, v in expected.items() if n.startswith(kind + "/") and v.size] or [0]) for kind in found}
    for name, value in expected.items():
        kind = name.split("/")[0]
        if kind not in found or not value.size:
            continue
        if name not in made:
            found[kind] = (float("inf"), "no " + name)
            continue
        error = np.abs(made[name].double().numpy() - value).max() / max(np.abs(value).max(), 1e-3 * largest[kind], 1e-30)
        found[kind] = max(found[kind], (float(error) if error == error else float("inf"), name))
    theirs = float(expected["loss"].reshape(-1)[-1])
    return {**found, "loss": abs(float(made["loss"]) - theirs) / max(abs(theirs), 1e-30)}


def one(job, threads):
    folder = job["folder"]
    train = modules_of(folder)
    from runtime.groups import Processes
    from runtime.local import on_threads
    from runtime.step import read_plan

    plan = read_plan(folder)
    begin = time.time()
    rank = 0
    if threads:
        made = on_threads(plan, lambda thread: run_on(train, folder, plan, thread, job))[0]
    else:
        processes = Processes(plan, 120)
        made = run_on(train, folder, plan, processes, job)
        rank = processes.rank
        for group, _ in processes.known.values():
            dist.destroy_process_group(group)
    if rank:
        return None
    answer = {**differences(made, job["dump"]), "seconds": time.time() - begin}
    return answer if job.get("compile") else {**answer, "memory": live_bytes(folder, plan, job)}


def main():
    threads = "RANK" not in os.environ
    torch.set_num_threads(1)
    jobs = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
    for job in jobs:
        try:
            answer = one(job, threads)
        except BaseException as error:  # the next plan is another matter
            answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
            if not threads:
                print(json.dumps({"folder": job["folder"], **answer}), flush=True)
                os._exit(1)
        gc.collect()
        if answer is not None:
            print(json.dumps({"folder": job["folder"], **answer}), flush=True)


if __name__ == "__main__":
    main()
