"""When each instruction of a step ran, by the lines of the program that is running: nothing stands in the programs for it."""

import contextlib
import json
import sys
import time

import torch


@contextlib.contextmanager
def recorded(run, path):
    """Records the step inside, and writes it to `path` (one file for all ranks); nothing without a path."""
    if not path:
        yield
        return
    recorder = Recorder(run)
    sys.settrace(recorder.call)
    try:
        yield
    finally:
        sys.settrace(None)
    gathered = run.processes.gather(recorder.spans())
    if run.processes.rank == 0:
        with open(path, "w") as file:
            for device, spans in enumerate(gathered):
                file.write(json.dumps({"type": "spans", "device": device, "spans": spans}) + "\n")


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
