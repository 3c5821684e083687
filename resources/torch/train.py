"""Trains under the plan of this folder: torchrun --nproc-per-node N train.py --steps 10 --weights model.safetensors"""

import argparse
import contextlib
import os
import sys
import time
import traceback

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)

import torch  # noqa: E402

import dataset as user  # noqa: E402
from runtime import checkpoints, preflight, spans  # noqa: E402
from runtime.compiled import compile_blocks  # noqa: E402
from runtime.data import Beginnings, Drawn, Samples, Stored  # noqa: E402
from runtime.graphs import Graphs  # noqa: E402
from runtime.groups import Processes, rank_of_environment  # noqa: E402
from runtime.queues import Stalled  # noqa: E402
from runtime.safetensors import write  # noqa: E402
from runtime.step import Run, read_plan, schedule_of  # noqa: E402
from runtime.watch import Watch  # noqa: E402


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--weights", help="safetensors file with the model's own names")
    parser.add_argument("--random-weights", type=int, metavar="SEED", help="draw weights that have no values, and all else, from SEED")
    parser.add_argument("--seed", type=int, default=1, help="of dropout and drawn batches")
    parser.add_argument("--data", choices=("dataset", "synthetic", "same"),
                        help="the Dataset of dataset.py, batches drawn anew for each step, or the same one in all of them "
                             "(default: dataset if there is one, else same)")
    parser.add_argument("--batches", metavar="FOLDER", help="safetensors files of whole batches by the inputs' names, one for each step")
    parser.add_argument("--learning-rate", type=float, help="in place of the plan's")
    parser.add_argument("--rate-schedule", help="constant:warmup=10, cosine:warmup=10,total=100,floor=0.1")
    parser.add_argument("--checkpoint", metavar="FOLDER", help="write checkpoints (torch.distributed.checkpoint) there")
    parser.add_argument("--checkpoint-every", type=int, default=0, metavar="STEPS")
    parser.add_argument("--resume", metavar="CHECKPOINT", help="go on from a checkpoint, of this plan or another one of the model")
    parser.add_argument("--log-file", metavar="FILE", help="JSON lines, as Planloom reads them: steps with loss, seconds and learning rate")
    parser.add_argument("--tensorboard", metavar="FOLDER", help="loss, seconds and learning rate of each step, where tensorboard is installed")
    parser.add_argument("--spans", action="store_true", help="tell there when each instruction of the last step ran")
    parser.add_argument("--profile", metavar="FOLDER", help="trace the steps behind the first with torch.profiler, a file of each rank")
    parser.add_argument("--compile", nargs="?", const="inductor", metavar="BACKEND",
                        help="each block of the schedule under torch.compile (default: inductor)")
    parser.add_argument("--cuda-graphs", action="store_true", help="capture what stands between updates of weights, and replay it")
    parser.add_argument("--dump", metavar="FILE", help="loss, gradients of the last step and weights behind it, as safetensors")
    parser.add_argument("--deadline", type=float, default=600.0, metavar="SECONDS", help="that any communication may take")
    chosen = parser.parse_args()
    if (chosen.compile or chosen.cuda_graphs) and chosen.spans:
        parser.error("--spans follows the lines of programs, which compiled and captured ones have none of: --profile traces them")
    return chosen


def main():
    chosen = options()
    events = spans.Events(None, rank_of_environment())
    try:
        train(chosen, events)
    except Stalled as error:
        events.fail("internal", str(error))
        sys.stdout.flush()
        os._exit(1)  # what waits for ranks that are gone would not end
    except preflight.Refused as error:
        events.fail("invalid-input", str(error))
        sys.exit(1)
    except Exception as error:
        traceback.print_exc()
        events.fail("internal", f"{type(error).__name__}: {error}")
        os._exit(1)


def check_places(chosen, plan):
    """That there is room for what the run will write, and nothing of others' is in its way."""
    if chosen.checkpoint:
        preflight.check_folder("--checkpoint", chosen.checkpoint, checkpoints.is_ours, preflight.checkpoint_bytes(plan))
    if chosen.profile:
        preflight.check_folder("--profile", chosen.profile, lambda name: name.startswith("rank"))
    for option, path in (("--log-file", chosen.log_file), ("--dump", chosen.dump)):
        if path:
            preflight.check_file(option, path)


def train(chosen, events):
    plan = read_plan(FOLDER)
    events.path = chosen.log_file
    check_places(chosen, plan)
    seed = chosen.seed if chosen.random_weights is None else chosen.random_weights
    samples = user.dataset() if chosen.data in (None, "dataset") else None
    if chosen.data == "dataset" and samples is None:
        raise preflight.Refused("dataset.py has no Dataset yet: its function returns None")
    batches = Drawn(plan, seed, chosen.data == "synthetic") if samples is None else Samples(plan, samples)
    if chosen.batches:
        batches = Stored(plan, chosen.batches, Drawn(plan, seed, chosen.data == "synthetic"))
    constants = os.path.join(FOLDER, "constants.safetensors")
    weights = chosen.weights or (os.path.join(FOLDER, "weights.safetensors")
                                 if os.path.exists(os.path.join(FOLDER, "weights.safetensors")) else None)
    beginnings = Beginnings(plan, constants if os.path.exists(constants) else None, weights, chosen.random_weights)
    start = 0
    if chosen.resume:
        start = checkpoints.read(chosen.resume, plan, beginnings)
    board = spans.board(chosen.tensorboard, rank_of_environment())
    processes = Processes(plan, chosen.deadline)
    schedule = schedule_of(chosen.rate_schedule, start + chosen.steps) if chosen.rate_schedule else None
    run = Run(FOLDER, processes, beginnings, batches, seed, chosen.learning_rate, schedule)
    run.step_number = start
    if chosen.compile:
        compile_blocks(run, chosen.compile)
    if chosen.cuda_graphs:
        Graphs(run)
    processes.watch = Watch(lambda words: events.fail("cancelled", words), chosen.deadline)
    processes.watch.program = run.program.__file__
    events.open()
    events.send("hello", devices=plan["world"], steps=chosen.steps)
    events.send("ready", peak_bytes=run.peak_bytes())
    if chosen.resume:
        events.send("resumed", step=start, path=chosen.resume)
    losses, step_seconds, path = [], [], ""
    with spans.profiled(chosen.profile, run, chosen.steps) as end_of_step:
        for number in range(chosen.steps):
            last = number + 1 == chosen.steps
            run.gradients = [] if chosen.dump and last else None
            begin = time.perf_counter()
            rate = run.rate(plan["learning_rate"])
            with spans.recorded(run, events, number) if chosen.spans and last else contextlib.nullcontext():
                loss = run.step()
            losses.append(loss)
            step_seconds.append(time.perf_counter() - begin)
            end_of_step()
            events.send("step", n=number, loss=loss, seconds=step_seconds[-1], learning_rate=rate)
            for name, value in (("loss", loss), ("seconds", step_seconds[-1]), ("learning_rate", rate)) if board else ():
                board.add_scalar(name, value, run.step_number)
            if processes.rank == 0 and chosen.log_file != "/dev/stdout":
                print(f"step {run.step_number}: loss {loss:.7g}, {step_seconds[-1] * 1e3:.1f} ms", flush=True)
            if chosen.checkpoint and (last or (chosen.checkpoint_every and (number + 1) % chosen.checkpoint_every == 0)):
                begin = time.perf_counter()
                path = checkpoints.write(chosen.checkpoint, run)
                events.send("checkpoint", step=run.step_number, path=path, seconds=time.perf_counter() - begin)
    if chosen.dump:
        made = dump(run, loss)
        if processes.rank == 0:
            write(chosen.dump, made)
    events.send("done", ok=True, steps=len(losses), losses=losses, step_seconds=step_seconds, first_step=start, checkpoint=path,
                peak_bytes=run.peak_bytes())
    if board:
        board.close()
    processes.close()


def dump(run, loss):
    """What another run is compared with."""
    gradients = run.whole(run.gradients)
    weights = run.whole(checkpoints.pieces(run, ("weight",)))
    made = {"loss": torch.tensor(loss, dtype=torch.float64)}
    made.update({"grad/" + name: values for name, values in gradients.items()})
    made.update({"weight/" + name: values for name, values in weights.items()})
    return made


if __name__ == "__main__":
    main()
