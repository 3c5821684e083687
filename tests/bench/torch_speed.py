"""How fast exported plans of GPT-2 are beside PyTorch's own training of it on this machine's processors, taken turn by turn.

    python3 tests/bench/torch_speed.py --cli build/tests/bin/planloom-cli --python VENV/bin/python [--processes 1] [--small]

One process: the plan `single` beside the module in eager PyTorch. Two and four: data parallel beside DistributedDataParallel, and
1F1B beside torch.distributed.pipelining's. Each round runs both, in processes of their own, and keeps the fastest step of each;
what is printed is the median of the rounds' ratios, with the load that the machine had.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

THEIRS = '''
import os, sys, time, json
import torch, torch.distributed as dist
from torch import nn
from torch.nn import functional as F
kind, layers, width, heads, sequence, batch, vocabulary, steps, micro_batches = sys.argv[1], *map(int, sys.argv[2:])
rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
torch.manual_seed(0)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out, self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        n, s, d = x.shape
        q, k, v = (t.view(n, s, heads, -1).transpose(1, 2) for t in self.qkv(self.a(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, s, d))
        return x + self.down(F.gelu(self.up(self.b(x)), approximate="tanh"))

class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(sequence, width)
    def forward(self, x):
        return self.tokens(x) + self.places(torch.arange(sequence))

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
    def forward(self, x):
        return self.head(self.norm(x))

blocks = [Block() for _ in range(layers)]
if kind == "1f1b":
    per = layers // world
    parts = ([Embed()] if rank == 0 else []) + blocks[rank * per:(rank + 1) * per] + ([Head()] if rank == world - 1 else [])
    module = nn.Sequential(*parts)
else:
    module = nn.Sequential(Embed(), *blocks, Head())
    if kind == "single":
        module[-1].head.weight = module[0].tokens.weight
loss_of = lambda y, labels: F.cross_entropy(y.flatten(0, 1), labels.flatten())
if world > 1:
    dist.init_process_group("gloo")
optimizer = torch.optim.SGD(module.parameters(), 0.1)
rows = batch if kind == "1f1b" else batch // world
x, labels = torch.randint(vocabulary, (2, rows, sequence))
if kind == "1f1b":
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    schedule = Schedule1F1B(PipelineStage(module, rank, world, torch.device("cpu")), micro_batches, loss_fn=loss_of)
elif world > 1:
    module = nn.parallel.DistributedDataParallel(module)
seconds = []
for _ in range(steps):
    begin = time.perf_counter()
    optimizer.zero_grad()
    if kind == "1f1b":
        losses = []
        if rank == 0:
            schedule.step(x)
        elif rank == world - 1:
            schedule.step(target=labels, losses=losses)
        else:
            schedule.step()
    else:
        loss_of(module(x), labels).backward()
    optimizer.step()
    seconds.append(time.perf_counter() - begin)
if rank == world - 1:
    print("SECONDS", json.dumps(seconds))
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cli", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--processes", type=int, action="append", choices=(1, 2, 4))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--small", action="store_true", help="a GPT-2 of 4 layers of 256, for a try")
    chosen = parser.parse_args()
    layers, width, heads, vocabulary = (4, 256, 4, 4096) if chosen.small else (12, 768, 12, 50257)
    sequence, batch = 64, 4
    model = f"zoo:gpt?layers={layers}&hidden={width}&heads={heads}&vocab={vocabulary}&seq={sequence}&batch={batch}"
    environment = {**os.environ, "OMP_NUM_THREADS": str(chosen.threads)}

    def say(command):
        made = subprocess.run(command, capture_output=True, text=True, env=environment)
        if made.returncode:
            raise SystemExit(f"{' '.join(command)}: {made.stderr[-3000:]}")
        return made.stdout

    with tempfile.TemporaryDirectory(prefix="torch_speed") as work:
        theirs = os.path.join(work, "theirs.py")
        with open(theirs, "w") as file:
            file.write(THEIRS)
        for processes in chosen.processes or (1, 2, 4):
            for kind in ("single",) if processes == 1 else ("data-parallel", "1f1b"):
                micro_batches = 4 if kind == "1f1b" else 1
                plan, folder = os.path.join(work, "plan.json"), os.path.join(work, f"{kind}{processes}")
                say([chosen.cli, "solve", model, "--devices", str(processes), "--gallery", kind, "--optimizer", "sgd", "--allow-copies",
                     *(["--micro-batches", "4"] if kind == "1f1b" else []), "--out", plan])
                say([chosen.cli, "export", plan, "--format", "torch", "--out", folder])
                start = [chosen.python] if processes == 1 else [chosen.python, "-m", "torch.distributed.run", "--standalone",
                                                                "--nproc-per-node", str(processes)]
                ratios = []
                for _ in range(chosen.rounds):
                    log = os.path.join(work, "log")
                    if os.path.exists(log):
                        os.remove(log)
                    say([*start, os.path.join(folder, "train.py"), "--steps", str(chosen.steps), "--random-weights", "1", "--log-file", log])
                    ours = min(line["seconds"] for line in map(json.loads, open(log)) if line["t"] == "step")
                    said = say([*start, theirs, kind, *map(str, (layers, width, heads, sequence, batch, vocabulary, chosen.steps, micro_batches))])
                    other = min(json.loads(next(line for line in said.splitlines() if line.startswith("SECONDS"))[8:]))
                    ratios.append(ours / other)
                    print(f"  {kind} on {processes}: {ours * 1e3:.0f} ms, PyTorch {other * 1e3:.0f} ms, load {os.getloadavg()[0]:.1f}", flush=True)
                print(f"{kind} on {processes}, {chosen.threads} threads each: {statistics.median(ratios):.2f}x of PyTorch's", flush=True)


if __name__ == "__main__":
    sys.exit(main())
