"""Checkpoints of torch.distributed.checkpoint, with the model's own names: whole tensors, whatever the plan makes of them, so
that any other plan of the model, and the model itself, goes on from them."""

import os
import shutil

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemReader

from .preflight import Refused, check_values
from .safetensors import File


def pieces(run, roles=("weight", "state")):
    """[(part, values)] of what this rank keeps; several ranks may keep the same."""
    found = []
    settled = run.settled()
    for name, part in run.parts.items():
        if run.plan["tensors"][part.name]["role"] in roles:
            found.append((part, settled[name]))
    return found


def write(folder, run):
    """step-00000020, whole or not at all. @return its path"""
    whole = run.whole(pieces(run))
    path = os.path.join(folder, f"step-{run.step_number:08d}")
    problem = save(path, whole, run.step_number) if run.processes.rank == 0 else None
    problem = run.processes.gather(problem)[0]  # all ranks end, or none
    if problem:
        raise Refused(f"the checkpoint {path} cannot be written: {problem}")
    return path


def save(path, whole, step):
    """Writes whole tensors by their names in files. @return what went wrong"""
    fresh = path + ".part"
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        shutil.rmtree(fresh, ignore_errors=True)
        dcp.save({**whole, "planloom.step": torch.tensor(step)}, checkpoint_id=fresh, no_dist=True)
        shutil.rmtree(path, ignore_errors=True)  # of an earlier run
        os.replace(fresh, path)
    except BaseException as error:
        shutil.rmtree(fresh, ignore_errors=True)
        inner = [each[0] for each in getattr(error, "failures", {}).values()]  # torch's CheckpointException is no Exception
        if not inner and not isinstance(error, Exception):
            raise
        return str(inner[0] if inner else error).strip().splitlines()[0]
    return None


def is_one(path):
    return os.path.exists(os.path.join(path, ".metadata"))


def is_ours(name):
    """Of a folder of checkpoints."""
    return name.startswith("step-")


def read(path, plan, beginnings):
    """Lets weights and states begin with those of a checkpoint. @return the steps that were done"""
    wanted = {tensor["file"]["name"] for tensor in plan["tensors"].values() if tensor["role"] in ("weight", "state")}
    state, step = load(path, wanted, lambda origin, found: check_values(plan, origin, found, ("weight", "state")))
    for name, tensor in plan["tensors"].items():
        if tensor["role"] in ("weight", "state"):
            beginnings.overwritten[name] = lambda part, tensor=tensor: _box(state[tensor["file"]["name"]], tensor, part)
    return step


def load(path, wanted=None, check=None):
    """What a checkpoint has: this runtime's, or a file of planloom-cli's and planloom-exec's (`--checkpoint` there).
    @return ({name: whole tensor}, steps that were done)"""
    path = _last_in(path)
    if path.endswith(".safetensors"):
        file = File(path)
        if "step" not in file.metadata:
            raise Refused(f"{path} is no checkpoint, but weights alone: --weights reads them")
        if check:
            check(path, file.described())
        return {name: file.whole(name) for name in (wanted or file.header)}, int(file.metadata["step"])
    known = FileSystemReader(path).read_metadata().state_dict_metadata
    described = {name: (tuple(of.size), of.properties.dtype) for name, of in known.items() if hasattr(of, "size")}
    if check:
        check(path, described)
    state = {name: torch.empty(shape, dtype=dtype) for name, (shape, dtype) in described.items() if wanted is None or name in wanted}
    state["planloom.step"] = torch.tensor(0)
    if "planloom.step" not in known:
        raise Refused(f"{path} does not say how many steps were done: it is no checkpoint of a plan's")
    dcp.load(state, checkpoint_id=path, no_dist=True)
    return state, int(state.pop("planloom.step"))


def _last_in(path):
    """A checkpoint, or the last one of a folder."""
    if is_one(path) or (os.path.isfile(path) and path.endswith(".safetensors")):
        return path
    found = [os.path.join(path, name) for name in (sorted(os.listdir(path)) if os.path.isdir(path) else [])
             if is_ours(name) and not name.endswith(".part")]
    found = [each for each in found if is_one(each) or each.endswith(".safetensors")]
    if not found:
        raise Refused(f"{path} is no checkpoint, and holds none")
    return found[-1]


def _box(values, tensor, part):
    count, length, first, stride = tensor["file"]["runs"]
    own = torch.as_strided(values.contiguous(), (count, length), (stride, 1), first).reshape(tensor["shape"])
    for d, (begin, end) in enumerate(part.ranges):
        own = own.narrow(d, begin, end - begin)
    return own.clone()
