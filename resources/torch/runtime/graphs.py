"""A step as CUDA graphs: what stands between two updates of weights is captured once and replayed from then on, so that no kernel
is launched from Python. Updates stay as they are: their rates and counts are other numbers each time. So does what a batch is read
with: blocks find it in buffers that are filled before each step."""

import time

import torch

from .preflight import Refused
from .queues import Arriving

MODES = ("warm", "capture", "replay")  # of the first step, the second, and all behind it


def why_not(run):
    """What of a plan can't be captured; None if all can."""
    if run.device.type != "cuda":
        return "graphs are of GPUs, and this run is on CPUs"
    if run.plan["updates"] != 1:
        return "the plan updates weights several times a step, each time in other versions of them"
    if any("kept_on_host" in line or "run.copy." in line for line in open(run.program.__file__)):
        return "the plan moves values to the host's memory and back"
    return None


class Graphs:
    """Takes the place of the blocks of a rank's program."""

    def __init__(self, run):
        reason = why_not(run)
        if reason:
            raise Refused(f"--cuda-graphs: {reason}")
        self.run = run
        self.steps = 0
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream()  # nothing is captured on the default one
        self.graphs = []  # (graph, what stands in sums and micro-batches behind it, outputs)
        self.open = None  # the capture that goes on, or the number of the graph that was replayed
        self.inputs = {}  # (tensor, box, micro-batch) -> (buffer, part)
        self.outputs = []
        self.read, self.store, self.step = run.take, run.store, run.step
        run.take, run.store, run.step, run.end_blocks = self.take, self.keep, self.whole_step, self.end
        for name in {each[0] for each in run.programs_row["lines"]}:
            wrapped = self.update if name.startswith("update_") else self.block
            setattr(run.program, name, wrapped(getattr(run.program, name)))

    @property
    def mode(self):
        return MODES[min(self.steps, 2)]

    def whole_step(self):
        for (_, _, micro_batch), (buffer, part) in self.inputs.items():
            buffer.copy_(self.read(part, micro_batch))
        self.next = 0
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            loss = self.step()
        torch.cuda.current_stream().wait_stream(self.stream)
        self.steps += 1
        return loss

    def take(self, part, micro_batch):
        key = (part.name, part.ranges, micro_batch)
        if key not in self.inputs:
            if self.mode != "warm":
                raise Refused(f"--cuda-graphs: {part} is read in some steps and not in others")
            self.inputs[key] = (self.read(part, micro_batch), part)
        return self.inputs[key][0]

    def keep(self, name, value):
        """Outputs are told once the graph has run."""
        if self.mode == "warm":
            self.store(name, value)
        else:
            self.outputs.append((name, value))

    def holders(self):
        return [self.run.weights, self.run.sums, *self.run.micro_batches]

    def block(self, function):
        def called(run, m):
            if self.mode != "replay":
                if self.mode == "capture" and self.open is None:
                    self.begin()
                function(run, m)
            elif self.open is None:
                self.open = self.next
                self.replay()

        return called

    def update(self, function):
        def called(run, m):
            self.end()
            function(run, m)

        return called

    def settle(self):
        """What is arriving is waited for: its events are of this capture, or of none."""
        for holder in self.holders():
            for name, value in list(vars(holder).items()):
                if isinstance(value, Arriving):
                    setattr(holder, name, value.wait())

    def begin(self):
        self.settle()
        self.watch, self.run.processes.watch = self.run.processes.watch, None  # events of a capture can't be asked
        graph = torch.cuda.CUDAGraph()
        self.open = torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local")
        self.open.__enter__()
        self.graph = graph

    def end(self):
        """Also at the end of a step. What is captured has not run: it does now."""
        if self.mode == "capture" and self.open is not None:
            self.settle()
            for queue in self.run.queues():
                self.stream.wait_stream(queue.stream)
            self.open.__exit__(None, None, None)
            self.run.processes.watch = self.watch
            self.graphs.append((self.graph, [dict(vars(each)) for each in self.holders()[1:]], self.outputs))
            self.outputs = []
            self.replay()
        self.open = None

    def replay(self):
        graph, values, outputs = self.graphs[self.next]
        self.settle()
        graph.replay()
        for holder, kept in zip(self.holders()[1:], values):
            vars(holder).update(kept)
        for name, value in outputs:
            self.store(name, value)
        watch = self.run.processes.watch
        if watch is not None:
            watch.launched.append((self.stream.record_event(), f"graph {self.next + 1} of {len(self.graphs)}", time.monotonic()))
        self.next += 1
