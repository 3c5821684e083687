"""All devices of a plan in one process, a thread each: for checks, where no torchrun is to be had."""

import threading

import torch

from .groups import members_of, place_of, rank_of
from .queues import combined, wait


class Meetings:
    """Where threads exchange tensors: each waits until all members are there, and until all have made theirs."""

    def __init__(self):
        self.condition = threading.Condition()
        self.open = {}
        self.messages = {}
        self.failed = None

    def fail(self, error):
        with self.condition:
            self.failed = self.failed or error
            self.condition.notify_all()

    def _until(self, ready):
        while not ready():
            if self.failed is not None:
                raise RuntimeError("another device failed")
            if not self.condition.wait(60):
                raise RuntimeError("nobody came for a minute")

    def meet(self, key, member, count, value, make):
        with self.condition:
            meeting = self.open.setdefault(key, {"values": {}, "done": 0})
            meeting["values"][member] = value
            self.condition.notify_all()
            self._until(lambda: len(meeting["values"]) == count)
        made = make([meeting["values"][i] for i in range(count)])
        with self.condition:
            meeting["done"] += 1
            self.condition.notify_all()
            self._until(lambda: meeting["done"] == count)
            if self.open.pop(key, None):
                meeting["values"] = {}  # whoever is late to look keeps nothing alive
        return made

    def put(self, key, value):
        with self.condition:
            self.messages.setdefault(key, []).append(value)
            self.condition.notify_all()

    def take(self, key):
        with self.condition:
            self._until(lambda: self.messages.get(key))
            return self.messages[key].pop(0)


class Thread:
    """What `groups.Processes` is to a process."""

    def __init__(self, plan, rank, meetings):
        self.plan = plan
        self.rank = rank
        self.device = torch.device("cpu")
        self.meetings = meetings
        self.unit, self.local = place_of(plan, rank)
        self.turns = {}

    def queue(self, name):
        return ThreadQueue(name, self)

    def gather(self, value):
        return self._meet("world", "gather", list(range(self.plan["world"])), value, list)

    at_first = gather

    def total(self, number):
        return sum(self.gather(number.item()))

    def _meet(self, group, queue, members, value, make):
        key = (queue, tuple(members))
        turn = self.turns[key] = self.turns.get(key, 0) + 1
        return self.meetings.meet((*key, turn), members.index(self.rank), len(members), value, make)


class ThreadQueue:
    """What `queues.Queue` is to a process; everything is there at once."""

    def __init__(self, name, thread):
        self.name = name
        self.thread = thread

    def _meet(self, group, value, make, into=None):
        members = members_of(self.thread.plan, group, self.thread.unit, self.thread.local)
        me = members.index(self.thread.rank)
        made = self.thread._meet(group, self.name, members, wait(value), lambda values: make(values, me))
        return made if into is None else into.copy_(made)

    def all_reduce(self, x, group, op="sum", into=None):
        return self._meet(group, x, lambda values, me: combined(values, op), into)

    all_reduce_ = all_reduce

    def all_gather(self, x, group, dim, sizes=None, into=None):
        return self._meet(group, x, lambda values, me: torch.cat(values, dim), into)

    def reduce_scatter(self, x, group, dim, sizes=None, op="sum", into=None):
        def make(values, me):
            lengths = sizes or [values[0].shape[dim] // len(values)] * len(values)
            return combined([value.split(list(lengths), dim)[me] for value in values], op)

        return self._meet(group, x, make, into)

    def all_to_all(self, x, group, cut, join, sizes=None, into=None):
        def make(values, me):
            lengths = sizes[0] if sizes else [values[0].shape[cut] // len(values)] * len(values)
            return torch.cat([value.split(list(lengths), cut)[me] for value in values], join)

        return self._meet(group, x, make, into)

    def broadcast(self, x, group, shape=None, dtype=None, into=None):
        return self._meet(group, x, lambda values, me: values[0].clone(), into)

    def shift(self, x, group, into=None):
        return self._meet(group, x, lambda values, me: values[me - 1].clone(), into)

    def send(self, x, peer, tag, m):
        key = (self.thread.rank, rank_of(self.thread.plan, self.thread.unit, peer), self.name, m.tag(tag))
        self.thread.meetings.put(key, wait(x).clone())

    def recv(self, shape, dtype, peer, tag, m):
        return self.thread.meetings.take((rank_of(self.thread.plan, self.thread.unit, peer), self.thread.rank, self.name, m.tag(tag)))

    def to_host(self, x, into=None):
        return self.kept_on_host(self.to_device(x, into))

    def to_device(self, x, into=None):
        return wait(x).clone() if into is None else into.copy_(wait(x))

    def kept_on_host(self, x):
        x.on_host = True  # where it is counted
        return x

    def end_step(self):
        pass


def on_threads(plan, work):
    """What `work(thread)` returns of every device of the plan, by rank."""
    meetings, results, errors = Meetings(), [None] * plan["world"], []

    def run(rank):
        try:
            results[rank] = work(Thread(plan, rank, meetings))
        except BaseException as error:
            errors.append((rank, error))
            meetings.fail(error)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(plan["world"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        rank, error = errors[0]
        raise RuntimeError(f"rank {rank}: {error}") from error
    return results
