#!/usr/bin/env python3
"""Times training steps of Planloom's CPU devices beside PyTorch's, alternately, on the same cores.

    tests/bench/beside_pytorch.py build/bench/bin/planloom-cli --cores 0 --model gpt2
    tests/bench/beside_pytorch.py build/bench/bin/planloom-cli --cores 0,1 --devices 4 --gallery zero1

The models are GPT-2 with 124 million parameters (gpt2), one of 4 layers and width 256 (tiny), and ResNet-50
(resnet50); float32, AdamW, drawn inputs and weights. Of every round each side's fastest step counts, and the
processor time of a step behind the first: on a machine that others use, that one is the fairer figure. Needs
torch in the Python that runs this file.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import time

MODELS = {
    "gpt2": "zoo:gpt?layers=12&hidden=768&heads=12&seq=64&batch=4&vocab=50257",
    "tiny": "zoo:gpt?layers=4&hidden=256&heads=8&seq=64&batch=4&vocab=8192",
    "resnet50": "zoo:resnet?depth=50&batch=8&image=224&classes=1000",
}


def gpt(torch, layers, width, heads, vocabulary, length):
    nn = torch.nn
    functional = nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.LayerNorm(width)
            self.second = nn.LayerNorm(width)
            self.project = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.widen = nn.Linear(width, 4 * width)
            self.narrow = nn.Linear(4 * width, width)

        def forward(self, x):
            batch, count, _ = x.shape
            qkv = self.project(self.first(x)).view(batch, count, 3, heads, width // heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, count, width))
            return x + self.narrow(functional.gelu(self.widen(self.second(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.places = nn.Embedding(length, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            for weight in self.parameters():
                if weight.dim() > 1:  # as GPT-2 is: larger ones make logits whose gradients vanish
                    nn.init.normal_(weight, std=0.02)

        def forward(self, tokens):
            x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return functional.linear(self.norm(x), self.tokens.weight).flatten(0, 1)

    tokens = torch.randint(0, vocabulary, (4, length))
    labels = torch.randint(0, vocabulary, (4 * length,))
    return Gpt(), tokens, labels


def resnet(torch):
    nn = torch.nn

    def unit(inputs, outputs, kernel, stride=1):
        return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs)]

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.body = nn.Sequential(
                *unit(inputs, width, 1), nn.ReLU(), *unit(width, width, 3, stride), nn.ReLU(),
                *unit(width, 4 * width, 1))
            same = stride == 1 and inputs == 4 * width
            self.way = nn.Identity() if same else nn.Sequential(*unit(inputs, 4 * width, 1, stride))

        def forward(self, x):
            return torch.relu(self.body(x) + self.way(x))

    layers = [*unit(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, 64 << stage, 2 if block == 0 and stage > 0 else 1))
            inputs = 4 * (64 << stage)
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)]
    return nn.Sequential(*layers), torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))


def pytorch_steps(name, cores, steps):
    """Runs in a process of its own; prints seconds and processor seconds of the steps behind the first."""
    import torch

    torch.set_num_threads(cores)
    if name == "resnet50":
        model, inputs, labels = resnet(torch)
    elif name == "tiny":
        model, inputs, labels = gpt(torch, 4, 256, 8, 8192, 64)
    else:
        model, inputs, labels = gpt(torch, 12, 768, 12, 50257, 64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for step in range(steps):
        start, work = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        if step > 0:
            print(time.perf_counter() - start, time.process_time() - work)


def of_pytorch(arguments, cores):
    text = subprocess.run(
        ["taskset", "-c", arguments.cores, sys.executable, __file__, arguments.cli, "--pytorch", str(cores),
         "--model", arguments.model, "--steps", str(arguments.steps)],
        check=True, capture_output=True, text=True).stdout
    times = [[float(word) for word in line.split()] for line in text.splitlines()]
    return min(step[0] for step in times), min(step[1] for step in times)


def of_planloom(arguments):
    """The fastest step; and, from runs of two lengths, the processor time of a step.

    The first run of a plan measures its kernels, to predict its steps: one more goes before.
    """
    fastest, work = [], []
    for steps in (1, 2, 2 + arguments.steps):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run(
            ["taskset", "-c", arguments.cores, arguments.cli, "run", MODELS[arguments.model], "--cluster", "cpu",
             "--devices", str(arguments.devices), "--gallery", arguments.gallery, "--steps", str(steps),
             "--random-weights", "1"],
            check=True, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        work.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        fastest += [float(found) / 1e3 for found in re.findall(r"step \d+: .*?([\d.]+) ms", ran.stderr)[1:]]
    return min(fastest), (work[2] - work[1]) / arguments.steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cli", help="planloom-cli, of an optimised build")
    parser.add_argument("--model", choices=sorted(MODELS), default="gpt2")
    parser.add_argument("--cores", default="0", help="as taskset takes them: 0, or 0,1")
    parser.add_argument("--devices", type=int, default=1, help="of Planloom's plan")
    parser.add_argument("--gallery", default="single", help="of Planloom's plan")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="without PyTorch: one device in its place")
    parser.add_argument("--pytorch", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.pytorch:
        pytorch_steps(arguments.model, arguments.pytorch, arguments.steps)
        return
    cores = len(arguments.cores.split(","))
    best = {"planloom": [float("inf")] * 2, "other": [float("inf")] * 2}
    name = "one device" if arguments.alone else "PyTorch"
    for turn in range(arguments.rounds):
        if arguments.alone:
            one = argparse.Namespace(**{**vars(arguments), "devices": 1, "gallery": "single"})
            times = {"planloom": of_planloom(arguments), "other": of_planloom(one)}
        else:
            times = {"planloom": of_planloom(arguments), "other": of_pytorch(arguments, cores)}
        for side, (elapsed, work) in times.items():
            best[side] = [min(best[side][0], elapsed), min(best[side][1], work)]
        print(f"round {turn + 1}: Planloom {times['planloom'][0]:.3f} s ({times['planloom'][1]:.3f} s of cores), "
              f"{name} {times['other'][0]:.3f} s ({times['other'][1]:.3f} s of cores), "
              f"load {os.getloadavg()[0]:.1f}", flush=True)
    mine, other = best["planloom"], best["other"]
    print(f"{arguments.model} on cores {arguments.cores}, {arguments.gallery} on {arguments.devices}: "
          f"{other[0] / mine[0]:.2f} x the speed of {name} by the fastest step, {other[1] / mine[1]:.2f} x by "
          "processor time")


main()
