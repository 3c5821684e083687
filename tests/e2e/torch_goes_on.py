"""Training that goes on: some steps under one exported plan, some under another on another number of processes, some in plain
PyTorch with the user's own module. Losses have to be those of a run in plain PyTorch that nothing interrupted.

    python3 tests/e2e/torch_goes_on.py --cli build/tests/bin/planloom-cli --python VENV/bin/python

And the same between exported plans and Planloom's own runner, by the runner's checkpoints. Needs a Python with torch.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

MODULE = '''
import sys, json, torch
from torch import nn

class Model(nn.Module):
    """A small language model, as somebody would write it."""
    def __init__(self, vocabulary=64, width=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 64, 0.0, batch_first=True, norm_first=True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, labels):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return nn.functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())

def sample(index):
    generator = torch.Generator().manual_seed(index)
    tokens = torch.randint(0, 64, (13,), generator=generator)
    return {"tokens": tokens[:-1], "labels": tokens[1:]}

def make():
    torch.manual_seed(5)
    return Model()

def optimizer_of(name, module):
    if name == "sgd":
        return torch.optim.SGD(module.parameters(), 0.1)
    return torch.optim.AdamW(module.parameters(), 0.01, weight_decay=0)

def train(name, module, optimizer, first, steps):
    losses = []
    for step in range(first, first + steps):
        samples = [sample(8 * step + i) for i in range(8)]
        optimizer.zero_grad()
        loss = module(*(torch.stack([each[k] for each in samples]) for k in ("tokens", "labels")))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

if __name__ == "__main__":
    what, name = sys.argv[1:3]
    module = make()
    if what == "export":
        inputs = tuple(torch.zeros(8, 12, dtype=torch.int64) for _ in range(2))
        torch.export.save(torch.export.export(module, inputs), name)
    elif what == "whole":
        print(json.dumps(train(name, module, optimizer_of(name, module), 0, int(sys.argv[3]))))
    else:  # from state_dict.pt and optimizer.pt, as the exported README has it
        module.load_state_dict(torch.load("state_dict.pt"))
        optimizer = optimizer_of(name, module)
        kept = torch.load("optimizer.pt")
        for each, parameter in module.named_parameters():
            optimizer.state[parameter] = kept.get(each, {})
        print(json.dumps(train(name, module, optimizer, int(sys.argv[3]), int(sys.argv[4]))))
'''

DATASET = """
import sys
sys.path.insert(0, {work!r})
import mine

class Samples:
    def __len__(self):
        return 1 << 20
    def __getitem__(self, index):
        return mine.sample(index)

def dataset():
    return Samples()
"""


class Work:
    def __init__(self, chosen):
        self.chosen = chosen
        self.folder = tempfile.mkdtemp(prefix="torch_goes_on")
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def path(self, name):
        return os.path.join(self.folder, name)

    def do(self, *command):
        made = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=self.environment)
        if made.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {made.stdout[-2000:]}{made.stderr[-3000:]}")
        return made.stdout

    def plan(self, name, model, devices, options, optimizer, weights=False, dataset=""):
        rate = ["--optimizer", "sgd", "--learning-rate", "0.1"] if optimizer == "sgd" else ["--optimizer", "adamw", "--learning-rate", "0.01"]
        plan = self.path(name + ".plan.json")
        self.do(self.chosen.cli, "solve", model, "--devices", str(devices), "--allow-copies", *options, *rate, "--out", plan)
        self.do(self.chosen.cli, "export", plan, "--format", "torch", "--out", self.path(name), *(["--weights"] if weights else []))
        if dataset:
            with open(self.path(name + "/dataset.py"), "w") as file:
                file.write(dataset)
        return plan

    def train(self, name, devices, *options):
        log = self.path("log")
        if os.path.exists(log):
            os.remove(log)
        self.do(self.chosen.python, "-m", "torch.distributed.run", "--nproc-per-node", str(devices), self.path(name + "/train.py"),
                "--log-file", log, *options)
        return [line["loss"] for line in map(json.loads, open(log)) if line["t"] == "step"]

    def run(self, plan, *options):
        return json.loads(self.do(self.chosen.cli, "run", plan, "--json", *options))["losses"]


def worst(made, expected):
    if len(made) != len(expected):
        return float("inf")
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(made, expected))


def with_pytorch(work, optimizer, steps):
    """Two exported plans, then the user's module."""
    with open(work.path("mine.py"), "w") as file:
        file.write(MODULE)
    work.do(work.chosen.python, "mine.py", "export", "model.pt2")
    data = DATASET.format(work=work.folder)
    work.plan("first", "model.pt2", 2, ["--gallery", "3d:dp=1,tp=2,pp=1"], optimizer, True, data)
    work.plan("second", "model.pt2", 4, ["--gallery", "3d:dp=2,tp=1,pp=2", "--micro-batches", "2"], optimizer, False, data)
    losses = work.train("first", 2, "--steps", str(steps), "--checkpoint", "one")
    losses += work.train("second", 4, "--steps", str(steps), "--resume", "one", "--checkpoint", "two")
    work.do(work.chosen.python, "second/checkpoints.py", "two", "--to", "state_dict.pt")
    work.do(work.chosen.python, "second/checkpoints.py", "two", "--optimizer", "--to", "optimizer.pt")
    losses += json.loads(work.do(work.chosen.python, "mine.py", "go-on", optimizer, str(2 * steps), str(steps)))
    return losses, json.loads(work.do(work.chosen.python, "mine.py", "whole", optimizer, str(3 * steps)))


def with_runner(work, optimizer, steps):
    """An exported plan, Planloom's runner, another exported plan."""
    model = "zoo:gpt?layers=2&hidden=32&heads=4&vocab=96&seq=16&batch=8"
    first = work.plan("first", model, 2, ["--gallery", "zero3"], optimizer)
    second = work.plan("second", model, 4, ["--gallery", "3d:dp=1,tp=2,pp=2", "--micro-batches", "2"], optimizer)
    losses = work.train("first", 2, "--steps", str(steps), "--random-weights", "7", "--checkpoint", "one")
    work.do(work.chosen.python, "first/checkpoints.py", "one", "--seed", "7", "--to", "step.safetensors")
    losses += work.run(second, "--steps", str(steps), "--resume", work.path("step.safetensors"), "--checkpoint", work.path("two"))
    losses += work.train("first", 2, "--steps", str(steps), "--seed", "7", "--resume", "two")
    return losses, work.run(first, "--steps", str(3 * steps), "--random-weights", "7")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cli", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--steps", type=int, default=10, help="of each part")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    chosen = parser.parse_args()
    failed = 0
    for optimizer in ("sgd", "adamw"):
        for words, how in (("two plans, then the user's module", with_pytorch), ("a plan, Planloom's runner, a plan", with_runner)):
            work = Work(chosen)
            made, expected = how(work, optimizer, chosen.steps)
            error = worst(made, expected)
            failed += error > chosen.tolerance
            print(f"{optimizer:6} {words:36} {len(made)} steps, loss {expected[0]:.6f} to {expected[-1]:.6f}, worst difference {error:.1e}: "
                  f"{'equal' if error <= chosen.tolerance else 'DIFFERENT'}", flush=True)
            shutil.rmtree(work.folder)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
