#!/usr/bin/env python3
"""Networks with fifty and more batch normalisations, as torch.export writes them, under `run --check`: rounding grows from
each to the next, and must not be called a difference.

    tests/interop/deep_norms.py --out FOLDER [--cli build/tests/bin/planloom-cli] [--only NAME ...] [--seeds NUMBER]

Each network runs with drawn weights under four plans for each seed; a plan that is called different is printed, and makes
the exit status 1. Exports are kept in FOLDER. Needs PyTorch, torchvision and transformers; not part of the test suite.
"""

import argparse
import pathlib
import sys
import time

import torch
import torchvision

from torch import nn

from named_models import Classified
from sweep import ROOT, Call

NETWORKS = {"resnet101": 64, "densenet121": 64, "googlenet": 64, "inception_v3": 96, "resnext50_32x4d": 64, "mobilenet_v3_large": 64,
            "regnet_y_400mf": 64, "efficientnet_b0": 64}
PLANS = [("cpu:2", "data-parallel", 1), ("cpu:2", "tensor-parallel", 1), ("cpu:2", "pipeline:stages=2", 2), ("cpu:4", "zero3", 1)]
BATCH = 8


def exported(folder, name):
    path = folder / (name + ".pt2")
    if not path.exists():
        torch.manual_seed(1)
        more = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
        model = getattr(torchvision.models, name)(num_classes=10, **more)
        for module in model.modules():
            if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
                module.p = 0.0
        inputs = torch.randn(BATCH, 3, NETWORKS[name], NETWORKS[name]), torch.randint(0, 10, (BATCH,))
        torch.export.save(torch.export.export(Classified(model).train(), inputs), path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--cli", default=ROOT / "build/tests/bin/planloom-cli")
    parser.add_argument("--only", nargs="*", choices=list(NETWORKS))
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    counts = {"equal": 0, "different": 0}
    for name in options.only or NETWORKS:
        model = exported(options.out, name)
        for seed in range(1, options.seeds + 1):
            for cluster, gallery, micro in PLANS:
                begin = time.time()
                words = ["--cluster", cluster, "--gallery", gallery, "--micro-batches", micro, "--check", "--random-weights", seed]
                run = Call(options.cli, "run", model, *words)
                counts["different" if run.failure else "equal"] += 1
                print(f"{name:20} seed {seed}  {gallery:20} {time.time() - begin:6.1f} s  {run.failure or 'equal'}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
