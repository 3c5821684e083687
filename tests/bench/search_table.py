#!/usr/bin/env python3
"""What the search finds without rows: a line for each model and cluster.

    tests/bench/search_table.py build/release/bin/planloom-cli ../shared/models
    tests/bench/search_table.py build/release/bin/planloom-cli ../shared/models --model moe --cluster dgx-h100:8 --core 0

Each is solved on one core, one after the other. The columns: the simulated step; by how much the search's model is off
it; the gap that the search could not close; the peak of the fullest device; seconds of processor time of the whole
program and of the search alone (wall); most memory; the plan.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

MODELS = {
    "gpt2_small": "gpt2_small_full.onnx",
    "gpt2_xl": "gpt2_xl_full.onnx",
    "gpt3": "gpt3_175b_full.onnx",
    "t5_3b": "t5_3b_full.onnx",
    "swin": "swin_1b_full.onnx",
    "evoformer": "evoformer_48_full.onnx",
    "resnet50": "resnet50_full.onnx",
    "llama": "zoo:llama?layers=80&hidden=8192&heads=64&kv_heads=8&ffn=28672&seq=2048&batch=64&vocab=32000",
    "moe": "zoo:moe?layers=24&hidden=2048&heads=16&experts=128&seq=1024&batch=64",
}
CLUSTERS = ["dgx-h100:8", "dgx2-v100:32", "dgx-h100:64"]


def solve(cli, model, cluster, core):
    command = [cli, "solve", model, "--cluster", cluster, "--json"]
    if core is not None:
        command = ["taskset", "-c", core] + command
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as problems:
        process = subprocess.Popen(command, stdout=out, stderr=problems)
        _, status, used = os.wait4(process.pid, 0)
        out.seek(0)
        problems.seek(0)
        text = out.read()
        try:
            return json.loads(text), used
        except json.JSONDecodeError:
            sys.exit(f"{' '.join(command)} ended with {status}: {problems.read().decode(errors='replace')[-400:]}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("cli", help="planloom-cli")
    arguments.add_argument("models", help="folder of the ONNX files")
    arguments.add_argument("--model", action="append", choices=list(MODELS), help="only this one; may be repeated")
    arguments.add_argument("--cluster", action="append", help="in place of the three; may be repeated")
    arguments.add_argument("--core", default="0", help="to keep to ('none': any)")
    options = arguments.parse_args()
    core = None if options.core == "none" else options.core
    print(f"{'model':11} {'cluster':13} {'step':>9} {'model off':>9} {'gap':>6} {'peak':>9} {'cpu':>6} {'search':>6} "
          f"{'memory':>7}  plan")
    for cluster in options.cluster or CLUSTERS:
        for name in options.model or MODELS:
            model = MODELS[name]
            if not model.startswith("zoo:"):
                model = os.path.join(options.models, model)
                if not os.path.exists(model):
                    print(f"{name:11} {cluster:13} {model} is not there")
                    continue
            answer, used = solve(options.cli, model, cluster, core)
            search = answer["search"]
            step = answer["step_seconds"] if "step_seconds" in answer else search["simulated"][0]["simulated_seconds"]
            state = "" if search["fits"] else (" (proven: nothing fits)" if search["proven_too_large"]
                                               else " (nothing found that fits)")
            print(f"{name:11} {cluster:13} {step * 1e3:7.1f}ms {100 * (search['model_seconds'] / step - 1):+8.1f}% "
                  f"{100 * search['gap']:5.1f}% {answer['search']['simulated'] and max(d['peak_bytes'] for d in answer['devices']) / 2**30:6.1f}GiB "
                  f"{used.ru_utime + used.ru_stime:5.1f}s {search['seconds']:5.1f}s {used.ru_maxrss / 1024:5.0f}MB  "
                  f"{search['plan']}{state}", flush=True)


if __name__ == "__main__":
    main()
