"""Exchanges pipeline schedules with torch.distributed.pipelining, both ways.

    python3 -m venv env && env/bin/pip install torch numpy
    env/bin/python tests/interop/pipeline_schedules.py build/bin/planloom-cli

Every schedule that PyTorch has, for 2 to 8 ranks, with and without what it communicates, is written by PyTorch, read by
Planloom, carried out, and written again: the file must come back byte for byte. Every template of Planloom that PyTorch can
express, and schedules that its search finds, are written by Planloom and loaded, completed with communication and carried
out by PyTorch; with communication added by Planloom they must load, too. Needs a network to install; not part of the test
suite. Exit status 1 if anything differs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch.distributed.pipelining.schedules as pp

# By schedule: stages on each rank that it is tried with, and micro-batches for so many ranks.
MULTI = {
    "ScheduleLoopedBFS": ((1, 2, 4), lambda ranks: (ranks, 2 * ranks)),
    "ScheduleInterleaved1F1B": ((1, 2, 4), lambda ranks: (ranks, 2 * ranks)),
    "ScheduleInterleavedZeroBubble": ((2, 3), lambda ranks: (ranks, 2 * ranks)),
    "ScheduleZBVZeroBubble": ((2,), lambda ranks: (2 * ranks, 3 * ranks)),
    "ScheduleDualPipeV": ((2,), lambda ranks: (2 * ranks, 3 * ranks)),
}
SINGLE = ("ScheduleGPipe", "Schedule1F1B")
# PyTorch's own listing of it begins the last stage with micro-batch 1 in some sizes, which its loader refuses as well.
BROKEN_BY_PYTORCH = "Schedule1F1B"


def stages_of(ranks, per_rank):
    return [
        SimpleNamespace(num_stages=ranks * per_rank, group_size=ranks, group_rank=0, stage_index=local * ranks,
                        stage_index_to_group_rank=None, is_first=local == 0, is_last=False, has_backward=True,
                        submod=None)
        for local in range(per_rank)
    ]


def loss(output, target):
    return output


def theirs():
    """(name, schedule, format) of all that PyTorch writes."""
    for name, (per_ranks, counts) in MULTI.items():
        for ranks in (2, 4, 8):
            for per_rank in per_ranks:
                for count in counts(ranks):
                    made = getattr(pp, name)(stages_of(ranks, per_rank), count, loss_fn=loss)
                    made._prepare_schedule_with_comms(made.pipeline_order)
                    for kind in ("compute_only", "compute_comms"):
                        yield f"{name}-{ranks}x{per_rank}-{count}-{kind}", made, kind
    for name in SINGLE:
        for ranks in (2, 4, 8):
            stage = stages_of(ranks, 1)[0]
            yield f"{name}-{ranks}-{2 * ranks}", getattr(pp, name)(stage, 2 * ranks, loss_fn=loss), None


def write(schedule, kind, path):
    if kind is None: # the single ones have no writer of their own
        import csv
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            for rank in schedule.pipeline_order:
                writer.writerow(schedule.pipeline_order[rank])
    else:
        schedule._dump_csv(path, format=kind)


def pipeline(ranks, per_rank, wave, split):
    """A placement: stages round the ranks, or in a wave down and up again."""
    stages = ranks * per_rank
    rank_of = [(s % ranks if not wave or (s // ranks) % 2 == 0 else ranks - 1 - s % ranks) for s in range(stages)]
    blocks, edges = [], []

    def add(kind, stage, time, memory, after):
        blocks.append({"id": len(blocks), "kind": kind, "devices": [rank_of[stage]], "time": time, "memory": memory})
        edges.extend([each, len(blocks) - 1] for each in after)
        return len(blocks) - 1

    last, forwards = None, []
    for s in range(stages):
        last = add("forward", s, 1, 1, [] if last is None else [last])
        forwards.append(last)
    for s in reversed(range(stages)):
        if split:
            last = add("input-gradient", s, 1, 0, sorted({last, forwards[s]}))
            add("weight-gradient", s, 1, -1, [last])
        else:
            last = add("backward", s, 2, -1, sorted({last, forwards[s]}))
    return {"devices": ranks, "blocks": blocks, "edges": edges}


def ours(folder, run):
    """(name, path, ranks, stages, micro-batches) of what Planloom writes."""
    cases = [(t, 1, False, False) for t in ("gpipe", "1f1b", "eager-1f1b")]
    cases += [(t, 2, False, False) for t in ("interleaved", "breadth-first")]
    cases += [(t, 1, False, True) for t in ("zb-h1", "zb-h2")]
    cases += [(t, 2, True, True) for t in ("zb-v", "v-half", "v-min", "dualpipev")]
    cases += [("best", 1, False, False), ("best", 1, False, True), ("best", 2, True, True)]
    for ranks in (2, 4):
        for template, per_rank, wave, split in cases:
            name = f"{template}-{ranks}x{per_rank}{'-split' if split else ''}"
            placement = folder / f"{name}.json"
            placement.write_text(json.dumps(pipeline(ranks, per_rank, wave, split)))
            count = 2 * ranks
            words = ["schedule", placement, "--micro-batches", str(count)]
            if template != "best":
                words += ["--template", template]
            for kind in ("compute_only", "compute_comms"):
                path = folder / f"{name}-{kind}.csv"
                done = run(words + ["--csv", path, "--csv-format", kind])
                if done.returncode:
                    yield name, done.stderr.strip(), 0, 0, 0, kind
                else:
                    yield name, path, ranks, ranks * per_rank, count, kind


def load(path, ranks, stages, count, kind):
    """Loads a file as PyTorch does, and carries it out in its dry run, which knows nothing of FSDP."""
    runtime = pp._PipelineScheduleRuntime(stages_of(ranks, stages // ranks), count, loss_fn=loss)
    runtime._load_csv(path, format=kind)
    unknown = (pp.UNSHARD, pp.RESHARD, pp.REDUCE_GRAD, pp.WAIT_REDUCE_GRAD, pp.WAIT_SEND_F, pp.WAIT_SEND_B)
    runtime.pipeline_order_with_comms = {
        rank: [action for action in actions if action.computation_type not in unknown]
        for rank, actions in runtime.pipeline_order_with_comms.items()
    }
    runtime._simulate()


def main():
    program = sys.argv[1]
    wrong = compared = loaded = 0

    def run(words):
        return subprocess.run([program, *map(str, words)], capture_output=True, text=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, schedule, kind in theirs():
            path, again = folder / f"{case}.csv", folder / f"{case}-again.csv"
            write(schedule, kind, path)
            done = run(["schedule", path, "--csv", again])
            if done.returncode == 0 and again.read_bytes() == path.read_bytes():
                compared += 1
            elif case.startswith(BROKEN_BY_PYTORCH + "-") and "micro-batch" in done.stderr:
                print(f"{case}: refused, as by PyTorch: {done.stderr.strip()}")
            else:
                wrong += 1
                print(f"{case}: {done.stderr.strip() or 'comes back otherwise'}")
        for case, path, ranks, stages, count, kind in ours(folder, run):
            try:
                if not ranks:
                    raise ValueError(path)
                load(path, ranks, stages, count, kind)
                loaded += 1
            except Exception as problem: # whatever PyTorch raises
                wrong += 1
                print(f"{case}, {kind}: {type(problem).__name__}: {problem}")
    print(f"{compared} files of PyTorch come back unchanged, {loaded} of ours load there, {wrong} do not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
