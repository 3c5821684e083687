"""What is wrong with a start, by name: said before training begins, and before anything is written."""

import os
import shutil

import torch

OLDEST = (2, 6)


class Refused(SystemExit):
    """What a run cannot be started with, in words for people."""


def check_version(version):
    try:
        found = tuple(int(number) for number in version.split("+")[0].split(".")[:2])
    except ValueError:
        return  # of somebody's own making
    if found < OLDEST:
        raise Refused(f"this is PyTorch {version}, and the plan's programs need {OLDEST[0]}.{OLDEST[1]} or newer: "
                      "pip install --upgrade torch")


check_version(torch.__version__)


def check_values(plan, origin, found, roles=("weight",)):
    """That `found` has the model's tensors: {name: (shape, dtype)}. All that is wrong is said at once."""
    wrong, missing, known = [], [], set()
    for tensor in plan["tensors"].values():
        name, expected = tensor["file"]["name"], tuple(tensor["file"]["shape"])
        if tensor["role"] not in roles or name in known:
            continue
        known.add(name)
        if name not in found:
            missing.append(name)
            continue
        shape, dtype = found[name]
        wanted = getattr(torch, tensor["dtype"])
        if tuple(shape) != expected:
            wrong.append(f"'{name}' has shape {list(shape)}, expected {list(expected)}")
        elif dtype != wanted and not (dtype.is_floating_point and wanted.is_floating_point):
            wrong.append(f"'{name}' is {dtype}, expected {wanted}")
    if missing and len(missing) == len(known):
        raise Refused(f"{origin} has none of the tensors of {plan['model']}: it is another model's")
    if missing:
        wrong.insert(0, f"there is no {_few([repr(name) for name in missing])}")
    if wrong:
        raise Refused(f"{origin} does not fit {plan['model']}: {_few(wrong, '; ')}")


def _few(words, between=", "):
    return between.join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "")


def checkpoint_bytes(plan):
    """Of a checkpoint: weights and optimizer states, whole."""
    total = 0
    for tensor in plan["tensors"].values():
        if tensor["role"] in ("weight", "state"):
            count = 1
            for extent in tensor["shape"]:
                count *= extent
            total += count * _SIZES.get(tensor["dtype"], 4)
    return total


_SIZES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "bfloat16": 2, "float16": 2, "int16": 2, "int8": 1, "uint8": 1, "bool": 1}


def check_folder(option, folder, holds, bytes_needed=0):
    """That a folder can take what a run writes: it is not there yet, or has nothing but what `holds` says is ours."""
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise Refused(f"{option} {folder} is a file: name a folder")
    foreign = [name for name in sorted(os.listdir(folder)) if not holds(name)] if os.path.isdir(folder) else []
    if foreign:
        raise Refused(f"{option} {folder} has files of others, such as {foreign[0]}: name an empty folder, or one that is not there yet")
    _check_place(option, folder, bytes_needed)


def check_file(option, path, bytes_needed=0):
    """That a file can be written: it is none yet, or one; devices and pipes are."""
    if os.path.isdir(path):
        raise Refused(f"{option} {path} is a folder: name a file")
    if not os.path.exists(path) or os.path.isfile(path):
        if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise Refused(f"{option} {path}: there is no folder to put it in")
        _check_place(option, path, bytes_needed)


def _check_place(option, path, bytes_needed):
    place = os.path.abspath(path)
    while not os.path.exists(place):
        place = os.path.dirname(place)
    if not os.access(place, os.W_OK):
        raise Refused(f"{option} {path} cannot be written: {place} is not ours to write")
    free = shutil.disk_usage(place).free
    if free < bytes_needed:
        raise Refused(f"{option} {path} needs {bytes_needed} bytes, and its disk has {free} left")
