"""Starts the train.py of an exported folder of two devices wrongly, in every way, on the fake torch beside this file: each has
to be refused by name before training begins, and nothing written. bad_starts.py FOLDER SCRATCH
"""

import contextlib
import importlib
import io
import json
import os
import resource
import shutil
import signal
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER, SCRATCH = sys.argv[1], sys.argv[2]
sys.path[:0] = [FOLDER, HERE]
sys.dont_write_bytecode = True

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

PLAN = json.load(open(os.path.join(FOLDER, "plan.json")))
NAMES = {"float32": ("F32", 4), "float16": ("F16", 2), "int32": ("I32", 4), "int64": ("I64", 8)}


def refusal(*options, **environment):
    """What train.py says to these options, in this environment; and that it left nothing behind."""
    os.environ.update({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"})
    os.environ.update(environment)
    for name in [name for name in sys.modules if name.split(".")[0] in ("runtime", "train", "dataset", "programs")]:
        del sys.modules[name]
    before = files()
    said = io.StringIO()
    sys.argv = ["train.py", *options]
    with contextlib.redirect_stderr(said):
        try:
            importlib.import_module("train").main()
            raise AssertionError(f"{options}, {environment}: it began")
        except SystemExit as error:
            if error.code == 0:
                raise AssertionError(f"{options}: status 0") from error
            text = said.getvalue() + (error.code if isinstance(error.code, str) else "")
    if files() != before:
        raise AssertionError(f"{options}: it left {files() - before}")
    return text


def files():
    return {os.path.join(root, name) for root, folders, names in os.walk(SCRATCH) for name in names + folders}


def expect(text, *words):
    for word in words:
        if word not in text:
            raise AssertionError(f"expected '{word}' in: {text}")


def weights(name, change=lambda tensors: tensors):
    """A safetensors file that the model's weights have, but for what `change` does to {name: [dtype, shape]}."""
    tensors = change({each["file"]["name"]: [each["dtype"], each["file"]["shape"]] for each in PLAN["tensors"].values()
                      if each["role"] == "weight"})
    header, offset = {}, 0
    for each, (dtype, shape) in tensors.items():
        count = NAMES[dtype][1]
        for extent in shape:
            count *= extent
        header[each] = {"dtype": NAMES[dtype][0], "shape": shape, "data_offsets": [offset, offset + count]}
        offset += count
    text = json.dumps(header).encode()
    path = os.path.join(SCRATCH, name)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + bytes(offset))
    return path


def without(name):
    return lambda tensors: {each: of for each, of in tensors.items() if each != name}


def with_one(name, dtype=None, shape=None):
    return lambda tensors: {each: [dtype or of[0], shape or of[1]] if each == name else of for each, of in tensors.items()}


def processes():
    expect(refusal("--random-weights", "1", WORLD_SIZE="1"), "for 2 processes, and 1 were started", "--nproc-per-node 2")
    expect(refusal("--random-weights", "1", WORLD_SIZE="8"), "for 2 processes, and 8 were started")
    dist.others["absent"] = "nobody answers"
    expect(refusal("--random-weights", "1", "--deadline", "3"), "rank 0 did not meet the others within 3 s", "nobody answers")
    del dist.others["absent"]
    dist.others["objects"] = ["another digest"]
    expect(refusal("--random-weights", "1"), "rank 1 has another plan than rank 0")
    del dist.others["objects"]


def machines():
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 2
    expect(refusal("--random-weights", "1"), "no NCCL", "PLANLOOM_DEVICE=cpu")
    dist.others["nccl"] = True
    expect(refusal("--random-weights", "1", LOCAL_WORLD_SIZE="4"), "4 processes were started on this machine, which has 2 GPUs")
    torch.cuda.is_available = lambda: False
    expect(refusal("--random-weights", "1", "--tensorboard", os.path.join(SCRATCH, "board")), "pip install tensorboard")
    torch.__version__ = "2.5.1+cpu"
    expect(refusal("--random-weights", "1"), "this is PyTorch 2.5.1", "2.6 or newer")
    torch.__version__ = "2.6.0"


def values():
    first = next(each["file"]["name"] for each in PLAN["tensors"].values() if each["role"] == "weight")
    text = refusal("--weights", weights("missing", without(first)))
    expect(text, "missing does not fit", f"there is no '{first}'")
    expect(refusal("--weights", weights("shape", with_one(first, shape=[3, 5]))), f"'{first}' has shape [3, 5], expected")
    expect(refusal("--weights", weights("type", with_one(first, dtype="int64"))), f"'{first}' is torch.int64, expected torch.float32")
    expect(refusal("--weights", weights("other", lambda tensors: {"layers.0.q": ["float32", [4]]})), "none of the tensors", "another model's")
    expect(refusal("--weights", os.path.join(SCRATCH, "nowhere")), "nowhere cannot be read: No such file")
    whole = weights("whole.safetensors")
    with open(os.path.join(SCRATCH, "half"), "wb") as file:
        file.write(open(whole, "rb").read()[:-4])
    expect(refusal("--weights", os.path.join(SCRATCH, "half")), "not all of one")
    with open(os.path.join(SCRATCH, "text"), "w") as file:
        file.write("these are no weights")
    expect(refusal("--weights", os.path.join(SCRATCH, "text")), "no safetensors file")
    expect(refusal("--resume", whole), "weights alone: --weights reads them")
    expect(refusal("--resume", SCRATCH), "is no checkpoint, and holds none")
    expect(refusal("--data", "dataset", "--random-weights", "1"), "dataset.py has no Dataset yet")


def places():
    thesis = os.path.join(SCRATCH, "mine")
    os.makedirs(thesis)
    open(os.path.join(thesis, "thesis.tex"), "w").close()
    for option in ("--checkpoint", "--profile"):
        expect(refusal("--random-weights", "1", option, thesis), option, "files of others, such as thesis.tex")
        expect(refusal("--random-weights", "1", option, os.path.join(thesis, "thesis.tex")), "is a file: name a folder")
    expect(refusal("--random-weights", "1", "--dump", thesis), "is a folder: name a file")
    expect(refusal("--random-weights", "1", "--log-file", os.path.join(thesis, "no", "log")), "no folder to put it in")
    free = shutil.disk_usage
    shutil.disk_usage = lambda place: free(place)._replace(free=1000)
    expect(refusal("--random-weights", "1", "--checkpoint", os.path.join(SCRATCH, "checkpoints")), "bytes, and its disk has 1000 left")
    shutil.disk_usage = free
    os.makedirs(os.path.join(SCRATCH, "plan"))
    kept = os.path.join(SCRATCH, "plan", "plan.json")
    shutil.move(os.path.join(FOLDER, "plan.json"), kept)
    with open(os.path.join(FOLDER, "plan.json"), "w") as file:
        file.write(open(kept).read()[:100])
    expect(refusal("--random-weights", "1"), "plan.json cannot be read", "export the plan again")
    shutil.move(kept, os.path.join(FOLDER, "plan.json"))


def disks():
    """A file that cannot be written to its end is not there, and the one that was is."""
    from runtime import safetensors

    class Flat:
        dtype, shape = torch.uint8, (1 << 16,)
        numel = lambda self: 1 << 16  # noqa: E731
        element_size = lambda self: 1  # noqa: E731
        data_ptr = lambda self: Flat.address  # noqa: E731
        detach = cpu = contiguous = lambda self: self  # noqa: E731

    import ctypes
    bytes_of = ctypes.create_string_buffer(1 << 16)
    Flat.address = ctypes.addressof(bytes_of)
    path = os.path.join(SCRATCH, "made.safetensors")
    safetensors.write(path, {"x": Flat()})
    before = open(path, "rb").read()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))
    try:
        safetensors.write(path, {"x": Flat(), "y": Flat()})
        raise AssertionError("a file was written to a disk that is full")
    except SystemExit as error:
        expect(str(error), "made.safetensors cannot be written")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    if open(path, "rb").read() != before or os.path.exists(path + ".part"):
        raise AssertionError("half a file is left")


def stalls():
    """What does not end tells which instruction it is, and of which ranks."""
    from runtime.queues import Arriving, Stalled

    class Work:
        def wait(self):
            raise RuntimeError("timed out")

    try:
        Arriving(None, "all-reduce of ranks 0, 1 (forward_stage1, line 33 of stage1.py)", [Work()]).wait()
        raise AssertionError("it ended")
    except Stalled as error:
        expect(str(error), "all-reduce of ranks 0, 1", "line 33 of stage1.py", "timed out")
    dist.others["fails"] = "connection closed by peer"
    from runtime.groups import Processes
    try:
        Processes(PLAN, 3)
        raise AssertionError("it began")
    except Stalled as error:
        expect(str(error), "what each rank has of all ranks", "connection closed by peer")
    finally:
        del dist.others["fails"]


for case in (processes, machines, values, places, disks, stalls):
    case()
    print(case.__name__, "refused")
