"""How fast exported plans of GPT-2 are beside PyTorch's own training of it on this machine's processors, taken turn by turn.

    python3 tests/bench/torch_speed.py --cli build/tests/bin/planloom-cli --python VENV/bin/python [--processes 1] [--small]

One process: the plan `single` beside the module in eager PyTorch. Two and four: data parallel beside DistributedDataParallel, and
1F1B beside torch.distributed.pipelining's (of a model whose head is not tied, which that cannot say). Each round runs both, in
processes of their own, and keeps the fastest step of each, by the clock and by the processors' time of all ranks, which others
that use the machine disturb less. What is printed is the median of the rounds' ratios, with the load that the machine had.
"""

import argparse
import json
import os
import re
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
seconds, processor = [], []
for _ in range(steps):
    begin, used = time.perf_counter(), time.process_time()
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
    processor.append(time.process_time() - used)
os.write(1, ("\\nRANK " + json.dumps([seconds, processor]) + "\\n").encode())
'''

OURS = '''
import json, os, sys, time
folder, steps = sys.argv[1], int(sys.argv[2])
sys.path.insert(0, folder)
from runtime.data import Beginnings, Drawn
from runtime.groups import Processes
from runtime.step import Run, read_plan
plan = read_plan(folder)
run = Run(folder, Processes(plan), Beginnings(plan, os.path.join(folder, "constants.safetensors"), None, 1), Drawn(plan, 1), 1)
seconds, processor = [], []
for _ in range(steps):
    begin, used = time.perf_counter(), time.process_time()
    run.step()
    seconds.append(time.perf_counter() - begin)
    processor.append(time.process_time() - used)
os.write(1, ("\\nRANK " + json.dumps([seconds, processor]) + "\\n").encode())
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cli", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--processes", type=int, action="append", choices=(1, 2, 4))
    parser.add_argument("--kind", action="append", choices=("data-parallel", "1f1b"), help="of several processes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--small", action="store_true", help="a GPT-2 of 4 layers of 256, for a try")
    chosen = parser.parse_args()
    layers, width, heads, vocabulary = (4, 256, 4, 4096) if chosen.small else (12, 768, 12, 50257)
    sequence, batch = 64, 4
    environment = {**os.environ, "OMP_NUM_THREADS": str(chosen.threads)}

    def say(command):
        made = subprocess.run(command, capture_output=True, text=True, env=environment)
        if made.returncode:
            raise SystemExit(f"{' '.join(command)}: {made.stderr[-3000:]}")
        return made.stdout

    def fastest(command):
        """Seconds of a step by the clock, and of all ranks' processors."""
        said = say(command)
        ranks = [json.loads(found) for found in re.findall(r"RANK (\[\[.*?\]\])", said)]
        if len(ranks) != (int(command[command.index("--nproc-per-node") + 1]) if "--nproc-per-node" in command else 1):
            raise SystemExit(f"{' '.join(command)}: not all ranks said their times: {said[-1000:]}")
        return max(min(seconds) for seconds, _ in ranks), sum(min(processor) for _, processor in ranks)

    with tempfile.TemporaryDirectory(prefix="torch_speed") as work:
        scripts = {}
        for name, text in (("theirs", THEIRS), ("ours", OURS)):
            scripts[name] = os.path.join(work, name + ".py")
            with open(scripts[name], "w") as file:
                file.write(text)
        for processes in chosen.processes or (1, 2, 4):
            for kind in ("single",) if processes == 1 else chosen.kind or ("data-parallel", "1f1b"):
                micro_batches, tied = (4, 0) if kind == "1f1b" else (1, 1)
                model = f"zoo:gpt?layers={layers}&hidden={width}&heads={heads}&vocab={vocabulary}&seq={sequence}&batch={batch}&tied={tied}"
                plan, folder = os.path.join(work, "plan.json"), os.path.join(work, f"{kind}{processes}")
                say([chosen.cli, "solve", model, "--devices", str(processes), "--gallery", kind, "--optimizer", "sgd", "--allow-copies",
                     *(["--micro-batches", "4"] if kind == "1f1b" else []), "--out", plan])
                say([chosen.cli, "export", plan, "--format", "torch", "--out", folder])
                start = [chosen.python] if processes == 1 else [chosen.python, "-m", "torch.distributed.run", "--standalone",
                                                                "--nproc-per-node", str(processes)]
                ratios = []
                for _ in range(chosen.rounds):
                    ours = fastest([*start, scripts["ours"], folder, str(chosen.steps)])
                    other = fastest([*start, scripts["theirs"], kind,
                                     *map(str, (layers, width, heads, sequence, batch, vocabulary, chosen.steps, micro_batches))])
                    ratios.append([ours[i] / other[i] for i in range(2)])
                    print(f"  {kind} on {processes}: {ours[0] * 1e3:.0f} ms ({ours[1] * 1e3:.0f} ms of processors), PyTorch {other[0] * 1e3:.0f} ms "
                          f"({other[1] * 1e3:.0f}), load {os.getloadavg()[0]:.1f}", flush=True)
                clock, processor = (statistics.median(each) for each in zip(*ratios))
                print(f"{kind} on {processes}, {chosen.threads} threads each: {clock:.2f}x of PyTorch's by the clock, {processor:.2f}x by the processors",
                      flush=True)


if __name__ == "__main__":
    sys.exit(main())
