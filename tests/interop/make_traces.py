"""Traces of torch.profiler on CPUs by gloo, to try readers with: of a data-parallel loop, or of an exported plan.

    VENV/bin/python tests/interop/make_traces.py ddp FOLDER [--ranks 4] [--steps 4] [--late RANK]
    VENV/bin/python tests/interop/make_traces.py plan FOLDER --cli build/tests/bin/planloom-cli [--ranks 4] [--gallery NAME]
        [--solve '--micro-batches 4']

Needs a Python with torch, which no build does. `ddp` writes rank0.json ... into FOLDER; --late makes a rank compute more than the
others. `plan` solves a small model, exports it, runs it under torchrun, and holds the trace against the plan: it fails where a
collective of the plan has no event, or the log of spans does not match exactly.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys

MODEL = "zoo:gpt?layers=2&hidden=64&heads=4&vocab=96&seq=16&batch=8"


def worker(rank, chosen):
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(chosen.port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=chosen.ranks)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(*[layer for _ in range(4) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())]), bucket_cap_mb=0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rows = 512 if rank == chosen.late else 64
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                schedule=torch.profiler.schedule(wait=1, warmup=0, active=chosen.steps),
                                on_trace_ready=lambda p: p.export_chrome_trace(os.path.join(chosen.folder, f"rank{rank}.json"))) as profile:
        for _ in range(chosen.steps + 1):
            loss = model(torch.randn(rows, 256)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profile.step()
    dist.destroy_process_group()


def make_ddp(chosen):
    import torch.multiprocessing

    os.makedirs(chosen.folder, exist_ok=True)
    torch.multiprocessing.spawn(worker, (chosen,), nprocs=chosen.ranks)


def run(command, **options):
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, check=True, **options)


def make_plan(chosen):
    os.makedirs(chosen.folder, exist_ok=True)
    plan, program = os.path.join(chosen.folder, "plan.json"), os.path.join(chosen.folder, "torch")
    traces, log = os.path.join(chosen.folder, "traces"), os.path.join(chosen.folder, "log.jsonl")
    run([chosen.cli, "solve", MODEL, "--cluster", f"cpu:{chosen.ranks}", "--gallery", chosen.gallery, "--allow-copies", *shlex.split(chosen.solve),
         "--out", plan], stdout=subprocess.DEVNULL)
    run([chosen.cli, "export", plan, "--format", "torch", "--out", program])
    environment = {**os.environ, "PLANLOOM_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(chosen.ranks), f"--master-port={chosen.port}",
         os.path.join(program, "train.py"), "--steps", str(chosen.steps), "--random-weights", "7", "--profile", traces],
        env=environment)
    run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(chosen.ranks), f"--master-port={chosen.port}",
         os.path.join(program, "train.py"), "--steps", "2", "--random-weights", "7", "--log-file", log, "--spans"], env=environment)
    failed = False
    for source in (traces, log):
        made = run([chosen.cli, "trace", source, "--plan", plan, "--no-cache", "--json"], stdout=subprocess.PIPE)
        matched = json.loads(made.stdout)["plan"]
        for count in matched["counts"]:
            print(f"{os.path.basename(source):10} {count['kind']:16} matched {count['matched']:6} only in plan {count['only_plan']:6} "
                  f"only in trace {count['only_trace']:6}")
            is_communication = count["kind"] in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send", "recv")
            failed = failed or (count["only_plan"] > 0 and (is_communication or matched["is_exact"]))
        print(f"{os.path.basename(source):10} step {matched['measured_seconds'] * 1e3:.2f} ms measured, "
              f"{matched['predicted_seconds'] * 1e3:.2f} ms predicted")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ddp", "plan"))
    parser.add_argument("folder")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--late", type=int, default=-1)
    parser.add_argument("--port", type=int, default=29511)
    parser.add_argument("--cli", default="build/tests/bin/planloom-cli")
    parser.add_argument("--gallery", default="data-parallel")
    parser.add_argument("--solve", default="", help="more options of solve, in one word")
    chosen = parser.parse_args()
    sys.exit(make_ddp(chosen) if chosen.what == "ddp" else make_plan(chosen))


if __name__ == "__main__":
    main()
