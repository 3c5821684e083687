"""Holds losses and gradients of some steps against the module on one process:

    torchrun --nproc-per-node {{WORLD}} check.py --module package.module:make_model

Each rank trains the whole module as well, and compares what it has with it: for modules that fit one process.
"""

import argparse
import sys

import train  # first: it says what this PyTorch is too old for

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

import dataset
import parallelize
#if PACKED
from styles import unpacked
#end


def reference(module, device, batches, rate):
    """Loss and gradients of each step of plain training."""
    module.to(device)
    optimizer = torch.optim.SGD(module.parameters(), lr=rate)
    for batch in batches:
        optimizer.zero_grad()
        with parallelize.precision(device):
            loss = parallelize.loss_of(module(**{name: value.to(device) for name, value in batch.items()}))
        loss.backward()
        yield loss.item(), {name: each.grad for name, each in module.named_parameters(remove_duplicate=False) if each.grad is not None}
        optimizer.step()


def own_gradients(training):
    """Whole gradients of the parameters that this rank has a part of."""
    for part in training.parts:
#if OUTER
        part = part.module
#end
        for name, parameter in part.named_parameters(remove_duplicate=False):
            if parameter.grad is None:
                continue
            grad = parameter.grad.full_tensor() if isinstance(parameter.grad, DTensor) else parameter.grad
#if PACKED
            if hasattr(parameter, "packing"):
                grad = unpacked(grad, *parameter.packing)
#end
            yield name.replace("_checkpoint_wrapped_module.", ""), grad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default={{MODULE}}, metavar="PACKAGE.MODULE:FUNCTION")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of the largest element of each gradient")
    chosen = parser.parse_args()
    device, mesh = train.start()
    batches = [dataset.batch(step) for step in range(chosen.steps)]
    whole = train.make_module(chosen.module, 1)
    training = train.Training(train.make_module(chosen.module, 1), device, mesh, torch.optim.SGD, lr=0.05)
    worst, lost, compared = 0.0, "", 0
    for step, (loss, gradients) in enumerate(reference(whole, device, batches, 0.05)):
        own = training.step(batches[step])
        error = abs(own - loss) / max(abs(loss), 1e-6)
        if not error <= worst:
            worst, lost = error, f"the loss of step {step + 1}: {own} in place of {loss}"
        for name, grad in own_gradients(training):
            if name not in gradients:
                sys.exit(f"check.py: the module has no gradient of {name}")
            compared += 1
            error = ((grad - gradients[name]).abs().max() / gradients[name].abs().max().clamp_min(1e-6)).item()
            if not error <= worst:
                worst, lost = error, f"the gradient of {name} in step {step + 1}"
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, (worst, lost, compared))
    worst, lost, _ = max(found, key=lambda each: each[0] if each[0] == each[0] else float("inf"))
    ok = worst <= chosen.tolerance and all(each[2] for each in found)
    if dist.get_rank() == 0:
        compared = sum(each[2] for each in found)
        print(f"check.py: {chosen.steps} losses and {compared} gradients {'agree' if ok else 'DIFFER'}: within {worst:.2g}" + ("" if ok else f", at {lost}"))
    dist.destroy_process_group()
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
