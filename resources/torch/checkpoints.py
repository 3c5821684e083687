"""Turns a checkpoint, or weights, into another form, by the ending of the file that is made:

    python checkpoints.py checkpoints --to state_dict.pt             # torch.load gives module.load_state_dict what it takes
    python checkpoints.py checkpoints --optimizer --to optimizer.pt  # what torch.optim keeps of each parameter, by name
    python checkpoints.py checkpoints --to step.safetensors          # for planloom-cli run --resume, and as --weights here
    python checkpoints.py step-00000020.safetensors --to FOLDER      # torch.distributed.checkpoint, in FOLDER
    python checkpoints.py state_dict.pt --to weights.safetensors     # for train.py --weights

A folder of checkpoints stands for its last one. Tensors are whole, and have the model's own names.
"""

import argparse
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)

import torch  # noqa: E402

from runtime import checkpoints  # noqa: E402
from runtime.preflight import Refused, check_values  # noqa: E402
from runtime.safetensors import write  # noqa: E402
from runtime.step import read_plan  # noqa: E402

STATES = {".m": "exp_avg", ".v": "exp_avg_sq", ".momentum": "momentum_buffer"}


def names(plan, role):
    return {tensor["file"]["name"] for tensor in plan["tensors"].values() if tensor["role"] == role}


def read(path, plan):
    """({name: tensor}, steps that were done; None of weights alone)"""
    if not path.endswith(".pt"):
        return checkpoints.load(path)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise Refused(f"{path} cannot be read: {error}") from error
    if not isinstance(state, dict):
        raise Refused(f"{path} is no state_dict")
    state = {name: values.contiguous() for name, values in state.items() if isinstance(values, torch.Tensor)}
    check_values(plan, path, {name: (tuple(values.shape), values.dtype) for name, values in state.items()})
    return {name: state[name] for name in names(plan, "weight")}, None


def per_parameter(plan, state, step):
    """What optimizers of torch.optim keep: {parameter: {"step", "exp_avg", ...}}."""
    made = {}
    for name in names(plan, "state"):
        parameter, dot, which = name.rpartition(".")
        if dot + which in STATES and name in state:
            made.setdefault(parameter, {"step": torch.tensor(float(step))})[STATES[dot + which]] = state[name]
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="what is there")
    parser.add_argument("--to", required=True, help="what is made of it")
    parser.add_argument("--optimizer", action="store_true", help="what the optimizer keeps, not the weights")
    parser.add_argument("--seed", type=int, default=1, help="of the run, for what planloom-cli goes on from")
    chosen = parser.parse_args()
    plan = read_plan(FOLDER)
    state, step = read(chosen.checkpoint, plan)
    if chosen.to.endswith(".safetensors"):
        metadata = {} if step is None else {"planloom.checkpoint": "1", "step": str(step), "seed": str(chosen.seed), "next_batch": "0",
                                            "schedule": "constant", "data": ""}
        write(chosen.to, state, metadata)
    elif step is None:
        raise Refused(f"{chosen.checkpoint} has weights alone: name a file that ends in .safetensors")
    elif chosen.to.endswith(".pt"):
        weights = {name: state[name] for name in names(plan, "weight") if name in state}
        made = per_parameter(plan, state, step) if chosen.optimizer else weights
        torch.save(made, chosen.to + ".part")
        os.replace(chosen.to + ".part", chosen.to)
    else:
        chosen.to = os.path.join(chosen.to, f"step-{step:08d}")
        problem = checkpoints.save(chosen.to, state, step)
        if problem:
            raise Refused(f"{chosen.to} cannot be written: {problem}")
    print(f"{chosen.to}: {len(state)} tensors" + ("" if step is None else f" behind {step} steps"))


if __name__ == "__main__":
    main()
