"""The processes of a run, and the groups of them that communicate."""

import datetime
import os

import torch
import torch.distributed as dist

from .preflight import Refused
from .queues import Stalled


def rank_of_environment():
    return _number("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", 0)


def _number(*names_and_default):
    *names, default = names_and_default
    return int(next((os.environ[name] for name in names if os.environ.get(name, "")), default))


class Processes:
    """Ranks that torchrun, srun or mpirun started: one for each device of the plan."""

    def __init__(self, plan, deadline=600.0):
        self.plan = plan
        self.timeout = datetime.timedelta(seconds=deadline)  # of every group: one that is made without has another
        self.watch = None
        self.rank = rank_of_environment()
        self.world = _number("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", 1)
        if self.world != plan["world"]:
            raise Refused(f"this plan is for {plan['world']} processes, and {self.world} were started: "
                          f"torchrun --nproc-per-node {plan['world']} (or as many on all nodes together)")
        if not dist.is_available():
            raise Refused("this PyTorch was built without torch.distributed: install another one")
        local = _number("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", 0)
        cuda = torch.cuda.is_available() and os.environ.get("PLANLOOM_DEVICE", "cuda") == "cuda"
        if cuda and not dist.is_nccl_available():
            raise Refused("there are GPUs, and this PyTorch has no NCCL: install one that has, or set PLANLOOM_DEVICE=cpu")
        here, gpus = _number("LOCAL_WORLD_SIZE", 1), torch.cuda.device_count() if cuda else 0
        if cuda and here > gpus:
            raise Refused(f"{here} processes were started on this machine, which has {gpus} GPUs, and each needs one: start fewer "
                          "here and more elsewhere, or set PLANLOOM_DEVICE=cpu")
        self.device = torch.device("cuda", local % max(1, torch.cuda.device_count())) if cuda else torch.device("cpu")
        if cuda:
            torch.cuda.set_device(self.device)
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29500" if self.world > 1 else "0")  # 0: any that is free
        if not dist.is_initialized():
            try:
                dist.init_process_group("nccl" if cuda else "gloo", rank=self.rank, world_size=self.world,
                                        timeout=self.timeout)
            except RuntimeError as error:
                raise Refused(f"rank {self.rank} did not meet the others within {deadline:g} s: {error}") from error
        self.host = dist.new_group(backend="gloo", timeout=self.timeout) if cuda else dist.group.WORLD
        self.unit, self.local = place_of(plan, self.rank)
        self.known = {}
        self.message_groups = {}
        self._check_digest()

    def _check_digest(self):
        digests = self.gather(self.plan["digest"])
        for rank, digest in enumerate(digests):
            if digest != digests[0]:
                raise Refused(f"rank {rank} has another plan than rank 0: copy one folder to all machines")

    def rank_of(self, local):
        """The rank of a device of this scale unit."""
        return rank_of(self.plan, self.unit, local)

    def of(self, group, queue):
        """The process group of a group of the plan, and its ranks."""
        return self.known[group, queue]

    def messages(self, queue):
        """What messages of a queue go through: on GPUs each direction of a pipeline has a communicator of its own."""
        return self.message_groups.get(queue) or dist.group.WORLD

    def prepare(self):
        """Makes all groups of the plan, which every rank does in one order, whether it is a member or not. Every queue has groups of
        its own, as there is no order among what queues do."""
        for queue, group, local in uses_of(self.plan):
            for unit in range(1 if group == "units" else self.plan["units"]["count"]):
                members = members_of(self.plan, group, unit, local)
                made = dist.new_group(members, timeout=self.timeout)
                if self.rank in members:
                    self.known[group, queue] = (made, members)
        if self.device.type == "cuda":
            for queue in ("tensor", "data", "pipeline", "pipeline_back"):
                self.message_groups[queue] = dist.new_group(timeout=self.timeout)

    def gather(self, value):
        """What every rank has, by rank."""
        values = [None] * self.world
        self._meet("what each rank has", lambda: dist.all_gather_object(values, value, self.host))
        return values

    def at_first(self, value):
        """The same, on rank 0 alone."""
        values = [None] * self.world if self.rank == 0 else None
        self._meet("what each rank keeps", lambda: dist.gather_object(value, values, 0, self.host))
        return values

    def total(self, number):
        """The sum over all ranks of a number on the host."""
        self._meet("the loss", lambda: dist.all_reduce(number, group=self.host))
        return number.item()

    @staticmethod
    def _meet(what, work):
        try:
            work()
        except RuntimeError as error:
            raise Stalled(f"putting together {what} of all ranks: {error}") from error

    def close(self):
        dist.barrier(self.host)
        dist.destroy_process_group()


def uses_of(plan):
    """(queue, group, device) of all that the programs of a scale unit use; the device is of groups across units."""
    uses = set()
    for program in plan["programs"].values():
        for numbers in program["numbers"]:
            for name, number in zip(program["names"], numbers):
                queue, found, _ = name.partition("_group")
                if found:
                    uses.add((queue, number, -1))
        for queue in program["unit_queues"]:
            uses.update((queue, "units", device) for device in program["devices"])
    return sorted(uses, key=lambda each: (each[0], str(each[1]), each[2]))


def place_of(plan, rank):
    """The scale unit of a rank, and which of the unit's devices it is."""
    count, inner = plan["units"]["count"], plan["units"]["inner"]
    block, rest = divmod(rank, inner * count)
    unit, within = divmod(rest, inner)
    return unit, block * inner + within


def rank_of(plan, unit, local):
    count, inner = plan["units"]["count"], plan["units"]["inner"]
    return local // inner * inner * count + unit * inner + local % inner


def members_of(plan, group, unit, local):
    """The ranks of a group in its order; "units": this device of every scale unit."""
    if group == "units":
        return [rank_of(plan, each, local) for each in range(plan["units"]["count"])]
    return [rank_of(plan, unit, each) for each in plan["groups"][group]]
