"""Tells where a rank is when its starter ends it because another one failed: a thread waits for that, as the program itself may
be waiting for ranks that are gone. On GPUs, whose queues no program waits for, it keeps the deadline too."""

import collections
import os
import signal
import sys
import threading
import time


class Watch:
    """@param tell  called with what is to be said, before the process ends"""

    def __init__(self, tell, deadline=600.0):
        self.tell = tell
        self.deadline = deadline
        self.program = None  # the file that is running
        self.waits = ""  # for what the program waits
        self.launched = collections.deque()  # on GPUs: (event, words, when)
        self.starter = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
        self.main = threading.main_thread().ident
        self.reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=_forget)
        for work in (self._terminated, self._late):
            threading.Thread(target=work, daemon=True).start()

    def place(self):
        """The line of the plan that is running, and for what it waits."""
        frame = sys._current_frames().get(self.main)
        while frame is not None and frame.f_code.co_filename != self.program:
            frame = frame.f_back
        if frame is None:
            return self.waits
        return self.waits or f"{frame.f_code.co_name}, line {frame.f_lineno} of {os.path.basename(self.program)}"

    def _terminated(self):
        while signal.SIGTERM not in os.read(self.reader, 64):
            pass
        place = self.place()
        self._end("ended by its starter" + (f" in {place}" if place else ""), 128 + signal.SIGTERM)

    def _late(self):
        while True:
            time.sleep(1)
            if self.starter not in (None, os.getppid()):
                self._end("torchrun, which started it, is gone", 1)
            while self.launched and self.launched[0][0].query():
                self.launched.popleft()
            if self.launched and time.monotonic() - self.launched[0][2] > self.deadline:
                self._end(f"{self.launched[0][1]}: not done within {self.deadline:g} s", 1)

    def _end(self, words, status):
        self.tell(words)
        sys.stdout.flush()
        os._exit(status)


def _forget():
    """A worker of somebody's Dataset is no rank."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
