"""Runs a program's steps as CUDA graphs on a torch that notes what is asked of it: capture_steps.py FOLDER SCRATCH

The first step runs as it is, the second is captured, and those behind it are replayed: blocks are not called any more, updates are,
inputs are filled before each step, and what updates read is there again.
"""

import contextlib
import importlib
import os
import sys
from types import SimpleNamespace

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER, SCRATCH = sys.argv[1], sys.argv[2]
sys.path[:0] = [HERE, FOLDER, SCRATCH]

import torch  # noqa: E402

NOTES = []


class Stream:
    def __init__(self, name="side"):
        self.name = name

    def wait_stream(self, other):
        NOTES.append(f"{self.name} waits for {other.name}")

    def record_event(self):
        return "event"


class Graph:
    def replay(self):
        NOTES.append("replay")


@contextlib.contextmanager
def graph(captured, pool, stream, capture_error_mode):
    assert isinstance(captured, Graph) and pool == "pool" and stream.name == "side" and capture_error_mode == "thread_local"
    NOTES.append("begin")
    yield
    NOTES.append("end")


torch.cuda = SimpleNamespace(CUDAGraph=Graph, graph=graph, Stream=Stream, graph_pool_handle=lambda: "pool",
                             current_stream=lambda: Stream("main"), stream=lambda stream: contextlib.nullcontext())

from runtime.graphs import Graphs  # noqa: E402
from runtime.preflight import Refused  # noqa: E402

PROGRAM = """
NOTES = None


def forward_stage0(run, m):
    NOTES.append("forward")
    m.x = run.take(PART, 0)
    run.store("loss", m.x)


def backward_stage0(run, m):
    NOTES.append("backward")
    run.sums.d_w = ("gradient of", m.x)
    del m.x


def update_weights_stage0(run, m):
    NOTES.append(("update", run.sums.d_w))
    del run.sums.d_w


def step(run):
    m = run.micro_batches
    forward_stage0(run, m[0])
    backward_stage0(run, m[0])
    update_weights_stage0(run, m[0])
"""


class Buffer:
    def copy_(self, other):
        NOTES.append("fill")


class Run(SimpleNamespace):
    def take(self, part, micro_batch):
        return Buffer()

    def store(self, name, value):
        NOTES.append("store")

    def queues(self):
        return [SimpleNamespace(stream=Stream("data"))]

    def end_blocks(self):
        pass

    def step(self):
        self.sums = SimpleNamespace()
        self.program.step(self)
        self.end_blocks()


def run_of(program, **options):
    return Run(**{"device": torch.device("cuda"), "plan": {"updates": 1}, "program": program, "weights": SimpleNamespace(),
                  "sums": SimpleNamespace(), "micro_batches": [SimpleNamespace()], "processes": SimpleNamespace(watch=None),
                  "programs_row": {"lines": [[name] for name in ("forward_stage0", "backward_stage0", "update_weights_stage0")]}, **options})


def main():
    with open(os.path.join(SCRATCH, "captured_program.py"), "w") as file:
        file.write(PROGRAM)
    program = importlib.import_module("captured_program")
    program.NOTES, program.PART = NOTES, SimpleNamespace(name="x", ranges=((0, 4),))
    for other in ({"device": torch.device("cpu")}, {"plan": {"updates": 2}}):
        try:
            Graphs(run_of(program, **other))
        except Refused:
            continue
        raise SystemExit(f"a step is captured with {other}")
    run = run_of(program)
    Graphs(run)
    steps = []
    for _ in range(4):
        NOTES.clear()
        run.step()
        steps.append(list(NOTES))
    frame = lambda *notes: ["side waits for main", *notes, "main waits for side"]  # noqa: E731
    buffer = steps[0][4][1]
    expected = [frame("forward", "store", "backward", ("update", buffer)),
                ["fill", *frame("begin", "forward", "backward", "side waits for data", "end", "replay", "store", ("update", buffer))]]
    expected += 2 * [["fill", *frame("replay", "store", ("update", buffer))]]
    for number, (found, wanted) in enumerate(zip(steps, expected)):
        if found != wanted:
            raise SystemExit(f"step {number + 1} did {found}, expected {wanted}")
    print("4 steps, 1 graph")


if __name__ == "__main__":
    main()
