"""Ranks that are this one: what tests say of the others is in `others`."""

others = {}  # "objects": what other ranks have; "fails": what a communication ends with; "nccl": whether there is NCCL


class group:
    WORLD = None


def is_available():
    return True


def is_nccl_available():
    return others.get("nccl", False)


def is_initialized():
    return others.get("met", False)


def init_process_group(backend, rank=0, world_size=1, timeout=None):
    if "absent" in others:
        raise RuntimeError(others["absent"])
    others["met"] = True


def new_group(members=None, backend=None):
    return None


def all_gather_object(values, value, group=None):
    if "fails" in others:
        raise RuntimeError(others["fails"])
    values[:] = [value] + others.get("objects", [value] * (len(values) - 1))
