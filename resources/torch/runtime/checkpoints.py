"""Checkpoints of torch.distributed.checkpoint, with the model's own names: whole tensors, whatever the plan makes of them, so
that any other plan of the model, and the model itself, goes on from them."""

import os

import torch
import torch.distributed.checkpoint as dcp


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
    if run.processes.rank == 0:
        state = {**whole, "planloom.step": torch.tensor(run.step_number)}
        os.makedirs(folder, exist_ok=True)
        dcp.save(state, checkpoint_id=path + ".part", no_dist=True)
        os.replace(path + ".part", path)
    run.processes.gather(None)
    return path


def read(path, plan, beginnings):
    """Lets weights and states begin with those of a checkpoint. @return the steps that were done"""
    from torch.distributed.checkpoint import FileSystemReader

    if not os.path.exists(os.path.join(path, ".metadata")):
        found = sorted(name for name in (os.listdir(path) if os.path.isdir(path) else []) if name.startswith("step-") and "." not in name)
        if not found:
            raise SystemExit(f"{path} is no checkpoint, and holds none")
        path = os.path.join(path, found[-1])
    known = FileSystemReader(path).read_metadata().state_dict_metadata
    state = {"planloom.step": torch.tensor(0)} if "planloom.step" in known else {}
    for name, tensor in plan["tensors"].items():
        file = tensor["file"]
        if tensor["role"] not in ("weight", "state"):
            continue
        if file["name"] not in known:
            if tensor["role"] == "weight":
                raise SystemExit(f"{path} has no tensor '{file['name']}': it is another model's")
            continue
        if tuple(known[file["name"]].size) != tuple(file["shape"]):
            raise SystemExit(f"'{file['name']}' has shape {tuple(known[file['name']].size)} in {path}, expected {tuple(file['shape'])}")
        state[file["name"]] = torch.empty(file["shape"], dtype=getattr(torch, tensor["dtype"]))
    dcp.load(state, checkpoint_id=path, no_dist=True)
    for name, tensor in plan["tensors"].items():
        if tensor["file"]["name"] in state and tensor["role"] in ("weight", "state"):
            beginnings.overwritten[name] = lambda part, tensor=tensor: _box(state[tensor["file"]["name"]], tensor, part)
    return int(state.get("planloom.step", torch.tensor(0)))


def _box(values, tensor, part):
    count, length, first, stride = tensor["file"]["runs"]
    own = torch.as_strided(values.contiguous(), (count, length), (stride, 1), first).reshape(tensor["shape"])
    for d, (begin, end) in enumerate(part.ranges):
        own = own.narrow(d, begin, end - begin)
    return own.clone()
