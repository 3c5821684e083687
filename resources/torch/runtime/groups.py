"""The processes of a run, and the groups of them that communicate."""

import datetime
import os

import torch
import torch.distributed as dist


class Processes:
    """Ranks that torchrun, srun or mpirun started: one for each device of the plan."""

    def __init__(self, plan, deadline=600.0):
        self.plan = plan
        self.rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", os.environ.get("OMPI_COMM_WORLD_RANK", 0))))
        self.world = int(os.environ.get("WORLD_SIZE", os.environ.get("SLURM_NTASKS", os.environ.get("OMPI_COMM_WORLD_SIZE", 1))))
        if self.world != plan["world"]:
            raise SystemExit(f"this plan is for {plan['world']} processes, and {self.world} were started: "
                             f"torchrun --nproc-per-node {plan['world']} (or as many on all nodes together)")
        local = int(os.environ.get("LOCAL_RANK", os.environ.get("SLURM_LOCALID", os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", 0))))
        cuda = torch.cuda.is_available() and os.environ.get("PLANLOOM_DEVICE", "cuda") == "cuda"
        if cuda and not dist.is_nccl_available():
            raise SystemExit("there are GPUs, and this PyTorch has no NCCL: install one that has, or set PLANLOOM_DEVICE=cpu")
        self.device = torch.device("cuda", local % max(1, torch.cuda.device_count())) if cuda else torch.device("cpu")
        if cuda:
            torch.cuda.set_device(self.device)
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29500")
        if not dist.is_initialized():
            dist.init_process_group("nccl" if cuda else "gloo", rank=self.rank, world_size=self.world,
                                    timeout=datetime.timedelta(seconds=deadline))
        self.host = dist.new_group(backend="gloo") if cuda else dist.group.WORLD
        self.unit, self.local = place_of(plan, self.rank)
        self.known = {}
        self.message_groups = {}
        self._check_digest()

    def _check_digest(self):
        digests = [None] * self.world
        dist.all_gather_object(digests, self.plan["digest"], self.host)
        for rank, digest in enumerate(digests):
            if digest != digests[0]:
                raise SystemExit(f"rank {rank} has another plan than rank 0: copy one folder to all machines")

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
                made = dist.new_group(members)
                if self.rank in members:
                    self.known[group, queue] = (made, members)
        if self.device.type == "cuda":
            for queue in ("tensor", "data", "pipeline", "pipeline_back"):
                self.message_groups[queue] = dist.new_group()

    def gather(self, value):
        """What every rank has, by rank."""
        values = [None] * self.world
        dist.all_gather_object(values, value, self.host)
        return values

    def total(self, number):
        """The sum over all ranks of a number on the host."""
        dist.all_reduce(number, group=self.host)
        return number.item()

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
