"""The queues of a device: each does what it is given in order, all of them side by side.

On a GPU every queue but compute is a stream, and what one makes for another is an event that is waited for. On CPUs the
compute queue is the program itself, and communication runs beside it until somebody waits for what it makes.
"""

import sys
import time

import torch
import torch.distributed as dist


class Stalled(RuntimeError):
    """A communication that did not end within the deadline, or broke."""


class Arriving:
    """A tensor that another queue makes."""

    def __init__(self, tensor, words, works=(), event=None, finish=None, pending=None, watch=None):
        self.tensor = tensor
        self.words = words
        self.works = works
        self.event = event
        self.finish = finish
        self.pending = pending  # the queue's works that nobody has waited for
        self.watch = watch
        if pending is not None:
            pending[id(self)] = self

    def wait(self):
        if self.watch is not None:
            self.watch.waits = self.words
        for work in self.works:
            try:
                work.wait()
            except RuntimeError as error:
                raise Stalled(f"{self.words}: {error}") from error
        self.works = ()
        if self.watch is not None:
            self.watch.waits = ""
            self.watch = None
        if self.pending is not None:
            self.pending.pop(id(self), None)
            self.pending = None
        if self.event is not None:
            stream = torch.cuda.current_stream()
            stream.wait_event(self.event)
            self.tensor.record_stream(stream)
            self.event = None
        if self.finish is not None:
            self.tensor = self.finish()
            self.finish = None
        return self.tensor


def wait(x):
    """What is arriving, once it is there; all else as it is."""
    return x.wait() if isinstance(x, Arriving) else x


def _caller():
    """The line of the program that communicates."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{frame.f_code.co_name}, line {frame.f_lineno} of {frame.f_code.co_filename.rpartition('/')[2]}"


_HERE = __file__.rpartition("/")[0]


def combined(parts, op="sum"):
    """Summands of one value, put together."""
    if op == "sum":
        total = parts[0] + parts[1] if len(parts) > 1 else parts[0].clone()
        for part in parts[2:]:
            total += part
        return total
    together = torch.stack(tuple(parts))
    return torch.amax(together, 0) if op == "max" else torch.logsumexp(together, 0)


def by_rank(members):
    """The members' places in the order of their ranks, which is that of a process group, whatever the plan's is."""
    return sorted(range(len(members)), key=members.__getitem__)


def as_members(parts, members):
    """By member, what a process group has by rank."""
    return [part for _, part in sorted(zip(by_rank(members), parts), key=lambda each: each[0])]


class Queue:
    """A queue whose work meets that of other devices. What `group` and `peer` are, the plan says."""

    def __init__(self, name, groups, device):
        self.name = name
        self.groups = groups
        self.device = device
        self.pending = {}
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    # --- collectives, by which members' tensors become others

    def all_reduce(self, x, group, op="sum", into=None):
        if into is not None:
            into.copy_(wait(x))
            return self.all_reduce_(into, group, op)
        return self.all_reduce_(wait(x).clone(memory_format=torch.contiguous_format), group, op)

    def all_reduce_(self, x, group, op="sum"):
        x = wait(x).contiguous()
        if op == "log-sum-exp":  # of a few numbers
            return self._gathered(x.unsqueeze(0), group, 0, None, lambda whole: torch.logsumexp(whole, 0))
        process_group, members = self.groups.of(group, self.name)
        reduce_op = dist.ReduceOp.MAX if op == "max" else dist.ReduceOp.SUM
        return self._launch("all-reduce", members, x,
                            lambda: [dist.all_reduce(x, reduce_op, process_group, async_op=True)])

    def all_gather(self, x, group, dim, sizes=None, into=None):
        finish = None if into is None else into.copy_
        return self._gathered(wait(x), group, dim, sizes, finish)

    def _gathered(self, x, group, dim, sizes, finish):
        process_group, members = self.groups.of(group, self.name)
        rows = x.movedim(dim, 0)
        own, most = rows.shape[0], max(sizes) if sizes else rows.shape[0]
        if own < most:
            rows = torch.cat((rows, rows.new_zeros((most - own, *rows.shape[1:]))))
        rows = rows.contiguous()
        whole = rows.new_empty((most * len(members), *rows.shape[1:]))

        def end():
            made = whole
            if sizes or members != sorted(members):
                parts = as_members(whole.split(most), members)
                made = torch.cat([part[:size] for part, size in zip(parts, sizes or [most] * len(parts))])
            made = made.movedim(0, dim)
            return made if finish is None else finish(made)

        return self._launch("all-gather", members, whole,
                            lambda: [dist.all_gather_into_tensor(whole, rows, process_group, async_op=True)], end,
                            rows)

    def reduce_scatter(self, x, group, dim, sizes=None, op="sum", into=None):
        process_group, members = self.groups.of(group, self.name)
        rows = wait(x).movedim(dim, 0).contiguous()
        me = members.index(self.groups.rank)
        own = sizes[me] if sizes else rows.shape[0] // len(members)
        if members != sorted(members):
            parts = rows.split(list(sizes or [own] * len(members)))
            rows = torch.cat([parts[i] for i in by_rank(members)])
            sizes = sizes and [sizes[i] for i in by_rank(members)]
        place = (lambda made: made) if into is None else into.copy_
        if op == "sum" and not sizes and self.stream is not None:
            part = rows.new_empty((own, *rows.shape[1:]))
            return self._launch("reduce-scatter", members, part,
                                lambda: [dist.reduce_scatter_tensor(part, rows, group=process_group, async_op=True)],
                                lambda: place(part.movedim(0, dim)), rows)
        # Each member gets its chunk of all others and adds them up: gloo has no reduce-scatter, and none adds logarithms.
        chunks = rows.new_empty((own * len(members), *rows.shape[1:]))
        return self._launch("reduce-scatter", members, chunks,
                            lambda: [dist.all_to_all_single(chunks, rows, [own] * len(members), sizes, process_group,
                                                            async_op=True)],
                            lambda: place(combined(chunks.split(own), op).movedim(0, dim)), rows)

    def all_to_all(self, x, group, cut, join, sizes=None, into=None):
        """x is cut along one dimension, and what comes from the others is put together along another."""
        process_group, members = self.groups.of(group, self.name)
        x = wait(x)
        me, count = members.index(self.groups.rank), len(members)
        cuts, joins = sizes or ((x.shape[cut] // count,) * count, (x.shape[join],) * count)
        order = by_rank(members)
        pieces = x.split(list(cuts), cut)
        pieces = [pieces[i].contiguous() for i in order]
        shapes = []
        for i in order:
            shape = list(x.shape)
            shape[cut], shape[join] = cuts[me], joins[i]
            shapes.append(shape)
        counts = [torch.Size(shape).numel() for shape in shapes]
        sent = torch.cat([piece.flatten() for piece in pieces])
        got = x.new_empty(sum(counts))

        def end():
            made = torch.cat(as_members([part.view(shape) for part, shape in zip(got.split(counts), shapes)], members), join)
            return made if into is None else into.copy_(made)

        return self._launch("all-to-all", members, got,
                            lambda: [dist.all_to_all_single(got, sent, counts, [piece.numel() for piece in pieces],
                                                            process_group, async_op=True)], end, sent)

    def broadcast(self, x, group, shape=None, dtype=None, into=None):
        process_group, members = self.groups.of(group, self.name)
        x = into if x is None and into is not None else wait(x)
        if x is None:
            x = torch.empty(shape, dtype=dtype, device=self.device)
        x = x.contiguous()
        return self._launch("broadcast", members, x,
                            lambda: [dist.broadcast(x, members[0], process_group, async_op=True)])

    def shift(self, x, group, into=None):
        """Member i's to member i + 1, the last one's to the first."""
        _, members = self.groups.of(group, self.name)
        x = wait(x).contiguous()
        me = members.index(self.groups.rank)
        got = torch.empty_like(x) if into is None else into
        after, before = members[(me + 1) % len(members)], members[me - 1]
        messages = self.groups.messages(self.name)
        tag = 1 << 20 | (group if isinstance(group, int) else 0)
        return self._launch("shift", members, got, lambda: dist.batch_isend_irecv([
            dist.P2POp(dist.isend, x, after, messages, tag), dist.P2POp(dist.irecv, got, before, messages, tag)]), None, x)

    # --- messages

    def send(self, x, peer, tag, m):
        rank = self.groups.rank_of(peer)
        x = wait(x).contiguous()
        for sent in [each for each in self.pending.values() if all(work.is_completed() for work in each.works)]:
            sent.wait()
        self._launch(f"send to rank {rank}", [], x, lambda: [dist.isend(x, rank, self.groups.messages(self.name), m.tag(tag))])

    def recv(self, shape, dtype, peer, tag, m):
        rank = self.groups.rank_of(peer)
        x = torch.empty(shape, dtype=dtype, device=self.device)
        return self._launch(f"receive from rank {rank}", [], x, lambda: [
            dist.irecv(x, rank, self.groups.messages(self.name), m.tag(tag))])

    # --- the host's memory

    def to_host(self, x, into=None):
        x = wait(x)
        host = torch.empty(x.shape, dtype=x.dtype, pin_memory=self.stream is not None) if into is None else into
        return self._launch("copy", [], host, lambda: [host.copy_(x, non_blocking=True)][:0], None, x)

    def to_device(self, x, into=None):
        x = wait(x)
        made = torch.empty(x.shape, dtype=x.dtype, device=self.device) if into is None else into
        return self._launch("copy", [], made, lambda: [made.copy_(x, non_blocking=True)][:0])

    def kept_on_host(self, x):
        return x.pin_memory() if self.stream is not None else x.cpu()

    # ---

    def _launch(self, kind, ranks, made, start, finish=None, *used):
        """Starts work once what it reads is there. On a GPU, behind all that the compute stream was given before."""
        among = f" of ranks {', '.join(map(str, ranks[:8]))}{', ...' if len(ranks) > 8 else ''}" if ranks else ""
        words = f"{kind}{among} ({_caller()})"
        if self.stream is None:
            try:
                return Arriving(made, words, start(), None, finish, self.pending, self.groups.watch)
            except RuntimeError as error:
                raise Stalled(f"{words}: {error}") from error
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for work in start():
                work.wait()
            made.record_stream(self.stream)
            for tensor in used:
                tensor.record_stream(self.stream)
            if finish is not None:
                made = finish()
            event = self.stream.record_event()
        if self.groups.watch is not None:
            self.groups.watch.launched.append((event, words, time.monotonic()))
        return Arriving(made, words, (), event)

    def end_step(self):
        for each in list(self.pending.values()):
            each.wait()
