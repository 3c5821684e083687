"""Runs exported plans one after another in one start of torchrun, or each on threads of this process: what torch_plans.py asks
of a Python that has torch. Standard input: JSON lines {"folder", "steps", "seed", "out"}; standard output, of rank 0: JSON lines.
"""

import importlib
import json
import os
import sys
import time
import traceback

import torch


def modules_of(folder):
    """The runtime and the programs of a folder: each has its own."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("runtime", "programs", "train", "dataset", "check")]:
        del sys.modules[name]
    sys.path[:] = [folder] + [path for path in sys.path if path != folder]
    importlib.invalidate_caches()
    return importlib.import_module("train")


def run_on(train, folder, plan, processes, job):
    from runtime.data import Beginnings, Drawn
    from runtime.step import Run

    constants = os.path.join(folder, "constants.safetensors")
    weights = os.path.join(folder, "weights.safetensors")
    beginnings = Beginnings(plan, constants if os.path.exists(constants) else None, weights if os.path.exists(weights) else None, job["seed"])
    run = Run(folder, processes, beginnings, Drawn(plan, job["seed"]), job["seed"])
    if job.get("compile"):
        from runtime.compiled import compile_blocks
        compile_blocks(run, job["compile"])
    losses = []
    for number in range(job["steps"]):
        run.gradients = [] if number + 1 == job["steps"] else None
        losses.append(run.step())
    return losses, train.dump(run, losses[-1])


def one(job, threads, kept):
    folder = job["folder"]
    train = modules_of(folder)
    from runtime.groups import Processes
    from runtime.local import on_threads
    from runtime.safetensors import write
    from runtime.step import read_plan

    plan = read_plan(folder)
    begin = time.time()
    if threads:
        losses, made = on_threads(plan, lambda thread: run_on(train, folder, plan, thread, job))[0]
        rank = 0
    else:
        processes = Processes(plan, 120)
        kept.append(processes)
        losses, made = run_on(train, folder, plan, processes, job)
        rank = processes.rank
    if rank == 0:
        write(job["out"], made)
        return {"losses": losses, "seconds": time.time() - begin}
    return None


def main():
    threads = "RANK" not in os.environ
    torch.set_num_threads(1)
    jobs = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
    kept = []
    for job in jobs:
        try:
            answer = one(job, threads, kept)
        except BaseException as error:  # the next plan is another matter
            answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
            if not threads:
                print(json.dumps({"folder": job["folder"], **answer}), flush=True)
                os._exit(1)
        if answer is not None:
            print(json.dumps({"folder": job["folder"], **answer}), flush=True)


if __name__ == "__main__":
    main()
