"""Exported plans in PyTorch against Planloom's own runner: loss, every gradient, and weights after some steps.

    python3 tests/e2e/torch_plans.py --cli build/tests/bin/planloom-cli --python VENV/bin/python [--only WORD] [--torchrun]
        [--exported] [--tables N]

--exported takes models that this PyTorch exports (torch_models.py), --tables N random tables of each model (torch_tables.py).
Needs a Python with torch and numpy (`python3 -m venv VENV; VENV/bin/pip install torch numpy`), which no build does. Plans run on
threads of one process each; with --torchrun in one start of torchrun for each number of processes, by gloo. Prints a line for
each plan, and a summary by model; --most N stops behind N plans, --seconds S behind so many seconds. What differs is held against
the unpartitioned model in double precision, where rounding cannot be what sets them apart. Weights are compared under SGD: Adam's first steps turn gradients that
are zero but for rounding into steps of full length.
"""

import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from torch_tables import draw_table

MODELS = {
    "gpt": "zoo:gpt?layers=4&hidden=32&heads=4&vocab=96&seq=16&batch=8",
    "llama": "zoo:llama?layers=4&hidden=32&heads=4&kv_heads=2&vocab=96&seq=16&batch=8",
    "t5": "zoo:t5?layers=2&hidden=32&heads=4&d_kv=8&ffn=64&vocab=96&src=16&tgt=16&batch=8",
    "moe": "zoo:moe?layers=2&hidden=32&heads=4&vocab=96&seq=16&batch=8&ffn=64",
    "resnet": "zoo:resnet?depth=18&width=8&image=64&classes=10&batch=8",
    "unet3d": "zoo:unet3d?batch=8&levels=2&width=4&volume=16",
    "swin": "zoo:swin?batch=8&hidden=16&heads=2&image=32&layers=4&window=4&patch=2&classes=10",
    "evoformer": "zoo:evoformer?layers=2&recycles=1&batch=8&msa=16&pair=16&single=16&seqs=4&residues=8&heads=2&pair_heads=2&head_width=8&triangle=8",
    "mlp": "zoo:mlp?batch=8&layers=3&hidden=16&input=12&classes=8",
    "gpt-dropout": "zoo:gpt?layers=2&hidden=32&heads=4&vocab=96&seq=16&batch=8&dropout=0.1",
}

# devices, gallery, more options
PLANS = [
    (1, "single", []),
    (2, "data-parallel", []), (4, "data-parallel", ["--micro-batches", "2"]),
    (4, "zero1", []), (4, "zero2", []), (4, "zero3", []), (2, "zero3", ["--micro-batches", "2"]),
    (2, "tensor-parallel", []), (4, "tensor-parallel", []),
    (2, "sequence-parallel", []), (4, "sequence-parallel", []),
    (2, "context-parallel", []), (4, "context-parallel", []), (4, "context-parallel:ring=0", []), (4, "context-parallel:zigzag=1", []),
    (4, "context-parallel:cp=2,ulysses=2", []), (2, "context-parallel:cp=1,ulysses=2", []), (2, "expert-parallel", []),
    (4, "expert-parallel", []), (2, "spatial", []), (4, "axial", []), (4, "conv-dense", []),
    (2, "pipeline", ["--micro-batches", "4"]), (4, "gpipe", ["--micro-batches", "4"]),
    (4, "1f1b", ["--micro-batches", "4"]), (2, "interlaced", ["--micro-batches", "4"]),
    (4, "3f1b", ["--micro-batches", "4"]), (4, "bidirectional", ["--micro-batches", "4"]),
    (2, "terapipe", ["--micro-batches", "2"]), (4, "coshard", []),
    (8, "3d:dp=2,tp=2,pp=2", ["--micro-batches", "4"]), (4, "3d:dp=2,tp=2,pp=1", []), (4, "alpa", []),
    (4, "autodist", []), (4, "bidirectional", ["--micro-batches", "4", "--schedule", "dualpipe"]),
    (2, "1f1b", ["--micro-batches", "4", "--schedule", "zb-h1"]),
    (2, "1f1b", ["--micro-batches", "4", "--schedule", "zb-v"]),
    (2, "1f1b", ["--micro-batches", "4", "--schedule", "interleaved"]),
    (2, "1f1b", ["--micro-batches", "4", "--schedule", "dualpipe"]),
    (2, "data-parallel", ["--recompute", "full"]), (2, "data-parallel", ["--offload", "both"]),
    (2, "data-parallel", ["--clip-norm", "0.1"]), (2, "data-parallel", ["--optimizer", "adamw"]),
    (2, "data-parallel", ["--attention", "plain"]),
    (2, "pipedream", ["--micro-batches", "4"]), (2, "pipedream-2bw", ["--micro-batches", "4"]),
]


def words_of(model, devices, gallery, more):
    return f"{model:12} {devices} {gallery} {' '.join(more)}".strip()


def plans(model):
    for devices, gallery, more in PLANS:
        yield devices, ["--gallery", gallery], more, words_of(model, devices, gallery, more)


def tables(chosen, work, model):
    """Random tables of which plans can be made."""
    made = tried = 0
    while made < chosen.tables and tried < 20 * chosen.tables and time.time() < chosen.end:
        tried += 1
        devices, rows = draw_table(f"{chosen.seed} {model} {tried}")
        path = os.path.join(work, f"{model}-{tried}.txt")
        with open(path, "w") as file:
            file.write("\n".join(rows) + "\n")
        if run([chosen.cli, "solve", MODELS[model], "--devices", str(devices), "--table", path, "--no-search", "--allow-copies"]).returncode:
            continue
        made += 1
        yield devices, ["--table", path, "--no-search"], [], f"{model:12} {devices} table {tried}: {'; '.join(rows[1:])}"[:110]


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def prepare(cli, folder, model, devices, how, more, steps, seed):
    """A plan, its export, and what the runner makes of it. @return what went wrong, and where"""
    plan = os.path.join(folder, "plan.json")
    options = more if "--optimizer" in more else [*more, "--optimizer", "sgd", "--learning-rate", "0.1"]
    solved = run([cli, "solve", MODELS[model], "--devices", str(devices), *how, "--allow-copies", *options, "--out", plan])
    if not os.path.exists(plan):
        return "no plan", (solved.stderr.strip().splitlines() or ["?"])[-1]
    if "--table" in how and run([cli, "verify", plan]).returncode != 0:
        return "not proven", plan
    weights = [] if MODELS[model].startswith("zoo:") else ["--weights"]
    exported = run([cli, "export", plan, "--format", "torch", "--out", os.path.join(folder, "torch"), *weights])
    if exported.returncode != 0:
        return "refused", exported.stderr.strip().splitlines()[0]
    ran = run([cli, "run", plan, "--steps", str(steps), "--random-weights", str(seed), "--dump", os.path.join(folder, "dump")])
    if ran.returncode != 0:
        return "no run", (ran.stderr.strip().splitlines() or ["?"])[-1]
    return None, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cli", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--only", default="*", help="pattern of the plans' lines")
    parser.add_argument("--model", action="append", help="may be repeated; default: all")
    parser.add_argument("--exported", action="store_true", help="models that this PyTorch exports")
    parser.add_argument("--tables", type=int, default=0, metavar="N", help="random tables of each model, in place of the gallery's plans")
    parser.add_argument("--seed", type=int, default=1, help="of the tables")
    parser.add_argument("--seconds", type=float, default=1e9, help="no plan is begun behind so many")
    parser.add_argument("--most", type=int, default=10**9)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--torchrun", action="store_true")
    parser.add_argument("--compile", metavar="BACKEND", help="each block under torch.compile, such as inductor; with --torchrun")
    parser.add_argument("--keep", help="folder to work in, which stays")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    chosen = parser.parse_args()
    work = chosen.keep or tempfile.mkdtemp(prefix="torch_plans")
    os.makedirs(work, exist_ok=True)
    chosen.end = time.time() + chosen.seconds
    if chosen.exported:
        MODELS.clear()
        run([chosen.python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_models.py"), work])
        MODELS.update({name.partition(".")[0]: os.path.join(work, name) for name in sorted(os.listdir(work)) if name.endswith((".pt2", ".onnx"))})
    jobs, table = [], []
    for model in chosen.model or MODELS:
        for devices, how, more, words in tables(chosen, work, model) if chosen.tables else plans(model):
            if not fnmatch.fnmatch(words, chosen.only) or len(jobs) >= chosen.most or time.time() > chosen.end:
                continue
            folder = os.path.join(work, "".join(c if c.isalnum() else "_" for c in words))
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            problem, why = prepare(chosen.cli, folder, model, devices, how, more, chosen.steps, 7)
            if problem:
                table.append((words, problem, why))
                print(f"{words:70} {problem}: {why}", flush=True)
                continue
            jobs.append({"words": words, "devices": devices, "folder": os.path.join(folder, "torch"), "steps": chosen.steps,
                         "seed": 7, "compile": chosen.compile, "dump": os.path.join(folder, "dump")})
    here = os.path.dirname(os.path.abspath(__file__))
    groups = sorted({job["devices"] for job in jobs}) if chosen.torchrun else [None]
    for processes in groups:
        mine = [job for job in jobs if processes in (None, job["devices"])]
        while mine and time.time() < chosen.end + 120:
            listed = os.path.join(work, "jobs")
            with open(listed, "w") as file:
                file.writelines(json.dumps(job) + "\n" for job in mine)
            start = [chosen.python, "-u"]
            if processes:
                start += ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
            worker = subprocess.Popen([*start, os.path.join(here, "torch_plans_worker.py"), listed], stdout=subprocess.PIPE,
                                      stderr=open(os.path.join(work, "errors"), "w"), text=True,
                                      env={**os.environ, "OMP_NUM_THREADS": "1"})
            done = 0
            for line in worker.stdout:
                if not line.startswith("{"):
                    continue
                answer = json.loads(line)
                job = next((each for each in mine if each["folder"] == answer["folder"]), None)
                if job is None or "judged" in job:
                    continue
                job["judged"] = True
                done += 1
                judge(chosen, job, answer, table)
            worker.wait()
            left = [job for job in mine if "judged" not in job]
            if left and not done:
                judge(chosen, left[0], {"error": "nothing was said; see " + os.path.join(work, "errors")}, table)
                left = left[1:]
            mine = left
    counts = {}
    for words, outcome, _ in table:
        counts[outcome] = counts.get(outcome, 0) + 1
    for model in sorted({words.split()[0] for words, _, _ in table}):
        own = [(outcome, why) for words, outcome, why in table if words.split()[0] == model]
        errors = [why for outcome, why in own if isinstance(why, float)]
        print(f"{model:16} " + ", ".join(f"{sum(each == outcome for each, _ in own)} {outcome}" for outcome in sorted({each for each, _ in own}))
              + (f"; worst {max(errors):.1e}" if errors else ""))
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    apart = [job for job in jobs if abs(job.get("memory", 0.0)) > 0.05]
    print(f"{len(apart)} plans whose live bytes are more than 5% from what is planned"
          + (f", at most {100 * max((job['memory'] for job in apart), key=abs):+.1f}%" if apart else ""))
    if not chosen.keep:
        shutil.rmtree(work)
    sys.exit(1 if counts.get("DIFFERENT", 0) + counts.get("broke", 0) else 0)


def judge(chosen, job, answer, table):
    if "error" in answer:
        table.append((job["words"], "broke", answer["error"]))
        print(f"{job['words']:70} broke: {answer['error']}", flush=True)
        if "trace" in answer:
            with open(os.path.join(os.path.dirname(job["folder"]), "trace"), "w") as file:
                file.write(answer["trace"])
        return
    worst = max(answer["loss"], answer["grad"][0], 0 if "--optimizer adamw" in job["words"] else answer["weight"][0])
    outcome = "equal" if worst <= chosen.tolerance else "DIFFERENT"
    if outcome == "DIFFERENT":
        double = run([chosen.python, os.path.join(job["folder"], "check.py"), "--double", "--steps", str(chosen.steps)])
        print("    in double precision: " + (double.stdout.strip().splitlines() or ["?"])[-1], flush=True)
        outcome = "equal in double" if double.returncode == 0 else outcome
    memory = max(answer.get("memory", []), key=abs, default=0.0)
    job["memory"] = memory
    table.append((job["words"], outcome, worst))
    print(f"{job['words']:70} {outcome}: loss {answer['loss']:.1g}, gradient {answer['grad'][0]:.1g} ({answer['grad'][1]}), "
          f"weight {answer['weight'][0]:.1g} ({answer['weight'][1]}), memory {100 * memory:+.1f}%, {answer['seconds']:.1f} s", flush=True)


if __name__ == "__main__":
    main()
