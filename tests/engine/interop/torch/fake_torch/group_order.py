"""What queues make of collectives whose groups have another order than their ranks: python3 group_order.py FOLDER/runtime/queues.py

Tensors are lists of numbers here, and ranks are threads that a process group of torch's hands parts of them by rank.
"""

import importlib.util
import itertools
import random
import sys
import threading
import types

THREAD = threading.local()


class Tensor:
    def __init__(self, values):
        self.values = list(values)

    shape = property(lambda self: [len(self.values)])

    def new_empty(self, shape):
        return Tensor([None] * (shape if isinstance(shape, int) else shape[0]))

    def new_zeros(self, shape):
        return Tensor([0] * shape[0])

    def split(self, sizes, dim=0):
        sizes = [sizes] * (len(self.values) // sizes) if isinstance(sizes, int) else sizes
        ends = list(itertools.accumulate(sizes))
        return [Tensor(self.values[end - size:end]) for size, end in zip(sizes, ends)]

    def same(self, *arguments):
        return self

    movedim = contiguous = flatten = view = same

    def numel(self):
        return len(self.values)

    def __getitem__(self, part):
        return Tensor(self.values[part])

    def __add__(self, other):
        return Tensor(a + b for a, b in zip(self.values, other.values))


class Size(list):
    def numel(self):
        return self[0]


class Done:
    def wait(self):
        pass


class Exchange:
    """Of one collective: each rank gives, and once all have, takes."""

    def __init__(self, count):
        self.given = {}
        self.barrier = threading.Barrier(count)

    def meet(self, value):
        self.given[THREAD.rank] = value
        self.barrier.wait(10)
        return [self.given[rank] for rank in sorted(self.given)]


def all_gather_into_tensor(whole, own, exchange, async_op):
    whole.values[:] = [value for given in exchange.meet(own) for value in given.values]
    return Done()


def all_to_all_single(made, own, counts, parts, exchange, async_op):
    me = sorted(exchange.members).index(THREAD.rank)
    parts = parts or [len(own.values) // len(exchange.members)] * len(exchange.members)
    made.values[:] = [value for given, of in exchange.meet((own, parts)) for value in given.split(of)[me].values]
    return Done()


def fake_torch():
    torch, dist = types.ModuleType("torch"), types.ModuleType("torch.distributed")
    torch.Size, torch.distributed = Size, dist
    torch.cat = lambda parts, dim=0: Tensor([value for part in parts for value in part.values])
    dist.all_gather_into_tensor, dist.all_to_all_single = all_gather_into_tensor, all_to_all_single
    sys.modules.update({"torch": torch, "torch.distributed": dist})


def on_ranks(queues, members, work):
    """What work(queue, place among members) makes, by member."""
    exchange = Exchange(len(members))
    exchange.members = members
    made, errors = [None] * len(members), []

    def run(place):
        THREAD.rank = members[place]
        groups = types.SimpleNamespace(rank=members[place], watch=None, of=lambda group, name: (exchange, members))
        queue = queues.Queue("data", groups, types.SimpleNamespace(type="cpu"))
        try:
            made[place] = queues.wait(work(queue, place)).values
        except Exception as error:
            errors.append(error)
            exchange.barrier.abort()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(members))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return made


def check(queues, members, sizes):
    """Against what collectives mean: places are those among members, whatever the ranks are."""
    count = len(members)
    even = sizes or [2] * count
    own = [[100 * place + i for i in range(even[place])] for place in range(count)]
    gathered = on_ranks(queues, members, lambda queue, me: queue.all_gather(Tensor(own[me]), 0, 0, sizes))
    assert gathered == [[value for each in own for value in each]] * count, ("all-gather", members, sizes, gathered)

    whole = [[1000 * place + i for i in range(sum(even))] for place in range(count)]
    ends = list(itertools.accumulate(even))
    scattered = on_ranks(queues, members, lambda queue, me: queue.reduce_scatter(Tensor(whole[me]), 0, 0, sizes))
    expected = [[sum(each[i] for each in whole) for i in range(end - size, end)] for size, end in zip(even, ends)]
    assert scattered == expected, ("reduce-scatter", members, sizes, scattered)

    # Along one dimension alone: what comes of each member is as long as this one's part.
    exchanged = on_ranks(queues, members, lambda queue, me: queue.all_to_all(Tensor(whole[me]), 0, 0, 0, (even, [even[me]] * count)))
    expected = [[value for each in whole for value in each[end - size:end]] for size, end in zip(even, ends)]
    assert exchanged == expected, ("all-to-all", members, sizes, exchanged)


def main():
    fake_torch()
    described = importlib.util.spec_from_file_location("queues", sys.argv[1])
    queues = importlib.util.module_from_spec(described)
    described.loader.exec_module(queues)
    random.seed(1)
    for members in ([0, 1], [1, 0], [0, 3, 1, 2], [5, 2, 7], [0, 2, 4, 6, 7, 5, 3, 1]):
        check(queues, members, None)
        check(queues, members, [random.randint(1, 4) for _ in members])


if __name__ == "__main__":
    main()
