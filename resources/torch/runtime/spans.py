"""What a run tells, as lines of JSON in the form that Planloom reads: steps, checkpoints, and when each instruction of a step ran.
The latter follows from the lines of the program that is running: nothing stands in the programs for it."""

import contextlib
import json
import os
import sys
import time

import torch

from .preflight import Refused


class Events:
    """Lines of JSON: {"v": 1, "t": type, ...}. Rank 0 writes them."""

    def __init__(self, path, rank):
        self.path = path
        self.rank = rank
        self.file = None

    def open(self):
        self.file = open(self.path, "a") if self.path and self.rank == 0 else None

    def send(self, kind, **fields):
        if not self.file:
            return
        try:
            self.file.write(json.dumps({"v": 1, "t": kind, **fields}) + "\n")
            self.file.flush()
        except OSError as error:  # training is worth more than its log
            self.file = None
            print(f"{self.path} cannot be written any more: {error.strerror}", file=sys.stderr, flush=True)

    def fail(self, code, message):
        """What ended the run: any rank tells it."""
        where = f"rank {self.rank}"
        print(f"{where}: {message}", file=sys.stderr, flush=True)
        if self.path and self.file is None:
            try:
                self.file = open(self.path, "a")
            except OSError:
                return
        self.send("error", code=code, message=message, advice="", where=where)


def board(folder, rank):
    """What TensorBoard shows, written by rank 0; None where nothing is asked for."""
    if not folder:
        return None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise Refused(f"--tensorboard needs the package tensorboard: pip install tensorboard ({error})") from error
    return SummaryWriter(folder) if rank == 0 else None


@contextlib.contextmanager
def profiled(folder, run, steps):
    """Traces the steps behind the first one with torch.profiler: a file of each rank, which Planloom opens beside the plan.
    What is made is called at the end of each step."""
    if not folder:
        yield lambda: None
        return
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"rank{run.processes.rank}.json.gz")
    activities = [torch.profiler.ProfilerActivity.CPU]
    if run.device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    skipped = 1 if steps > 1 else 0
    schedule = torch.profiler.schedule(wait=0, warmup=skipped, active=steps - skipped, repeat=1)
    with torch.profiler.profile(activities=activities, schedule=schedule,
                                on_trace_ready=lambda profile: profile.export_chrome_trace(path)) as profile:
        yield profile.step


@contextlib.contextmanager
def recorded(run, events, step):
    """Records the step inside, and tells when each instruction of each rank ran."""
    recorder = Recorder(run)
    sys.settrace(recorder.call)
    try:
        yield
    finally:
        sys.settrace(None)
    for device, spans in enumerate(run.processes.gather(recorder.spans())):
        columns = dict(zip(("segment", "instruction", "micro_batch", "start", "duration"), map(list, zip(*spans))))
        events.send("live", device=device, step=[step] * len(spans), **columns)


class Recorder:
    """Follows the lines of a program's functions."""

    def __init__(self, run):
        self.run = run
        self.file = run.program.__file__
        self.lines = {}  # (function, line) -> (block, instruction)
        for block, (name, segment, begin, lines) in enumerate(run.programs_row["lines"]):
            for i, line in enumerate(lines):
                self.lines[name, line] = (segment, begin + i)
        self.events = []  # (time, or event of the GPU; segment, instruction, micro-batch)
        self.origin = self._now()

    def _now(self):
        if self.run.device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            return event
        return time.perf_counter_ns()

    def call(self, frame, event, argument):
        if frame.f_code.co_filename != self.file or frame.f_code.co_name in ("setup", "step"):
            return None
        name = frame.f_code.co_name
        micro_batch = frame.f_locals["m"].number
        at = None

        def line(frame, event, argument):
            nonlocal at
            found = self.lines.get((name, frame.f_lineno)) if event == "line" else None
            if at is not None and (found is not None or event == "return"):
                self.events.append((at[0], self._now(), *at[1], micro_batch))
                at = None
            if found is not None:
                at = (self._now(), found)
            return line

        return line

    def spans(self):
        """[segment, instruction, micro-batch, start, duration] in nanoseconds from the start of the step."""
        if self.run.device.type == "cuda":
            torch.cuda.synchronize()
            between = lambda a, b: int(a.elapsed_time(b) * 1e6)  # noqa: E731
        else:
            between = lambda a, b: b - a  # noqa: E731
        return [[segment, instruction, micro_batch, between(self.origin, begin), between(begin, end)]
                for begin, end, segment, instruction, micro_batch in self.events]
