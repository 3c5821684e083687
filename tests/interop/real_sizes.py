#!/usr/bin/env python3
"""Models of real size, exported by PyTorch with their weights, beside the zoo's twins.

    tests/interop/real_sizes.py --folder FOLDER [--cli build/bin/planloom-cli] [--only NAME ...] [--forms pt2 onnx]
        [--planloom build/bin/planloom] [--json FILE]

GPT-2 small, a LLaMA of 1.1 billion weights and two layers of OLMoE (64 experts, 8 of them a token) are exported by
torch.export.save and by torch.onnx.export with its weights in a file beside it: up to 5 GB each, made in FOLDER unless
they are there. Compared are parameters, FLOPs and predicted steps under several plans; with --planloom also the time to
the window's first picture (needs xvfb-run). Exit status 1 if a step is more than 2% off its twin's.

Needs PyTorch 2.8 or newer, transformers, onnx and onnxscript; not part of the test suite.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

BATCH = 8
LENGTH = 1024
BAR = 0.02
PLANS = [("data-parallel", 2), ("data-parallel", 4), ("data-parallel", 8), ("tensor-parallel", 2),
         ("tensor-parallel", 4), ("tensor-parallel", 8), ("3d:dp=2,pp=2,tp=2", 8)]
MIXTURE_PLANS = [("data-parallel", 2), ("data-parallel", 4), ("data-parallel", 8), ("expert-parallel", 4),
                 ("expert-parallel", 8), ("tensor-parallel", 4)]


def gpt2():
    import transformers

    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False))


def llama():
    import transformers

    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4,
        vocab_size=32000, max_position_embeddings=2048, use_cache=False))


def olmoe():
    import transformers

    model = transformers.OlmoeForCausalLM(transformers.OlmoeConfig(
        hidden_size=2048, intermediate_size=1024, num_hidden_layers=2, num_attention_heads=16, num_experts=64,
        num_experts_per_tok=8, vocab_size=50304, max_position_embeddings=4096, use_cache=False))
    model.set_experts_implementation("batched_mm")  # others call operators of transformers' own
    return model


# name: (make, the twin, options of the model, plans)
MODELS = {
    "gpt2": (gpt2, f"zoo:gpt?layers=12&hidden=768&heads=12&batch={BATCH}&seq={LENGTH}", [], PLANS),
    "llama": (llama, f"zoo:llama?layers=22&hidden=2048&heads=32&kv_heads=4&ffn=5632&batch={BATCH}&seq={LENGTH}", [], PLANS),
    "olmoe": (olmoe, f"zoo:llama?layers=2&hidden=2048&heads=16&ffn=1024&experts=64&top_k=8&qk_norm=1&vocab=50304&batch={BATCH}"
              f"&seq={LENGTH}", [], MIXTURE_PLANS),
}


def make(name, form, path):
    """Exports one model. In a process of its own, which gives back its gigabytes."""
    import warnings

    warnings.filterwarnings("ignore")
    import torch
    from model_cases import LanguageModel

    torch.manual_seed(0)
    module = LanguageModel(MODELS[name][0]()).train()
    inputs = tuple(torch.zeros(BATCH, LENGTH, dtype=torch.int64) for _ in range(2))
    if form == "pt2":
        torch.export.save(torch.export.export(module, inputs), path)
        return
    program = torch.onnx.export(module, inputs, dynamo=True, input_names=["tokens", "labels"], output_names=["loss"],
                                verbose=False)
    program.save(path, external_data=True)


def answer(cli, *words):
    """@return (the command line's object, seconds)"""
    began = time.monotonic()
    ran = subprocess.run([cli, *words, "--json"], capture_output=True, text=True)
    seconds = time.monotonic() - began
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr.strip() or ran.stdout.strip())
    return json.loads(ran.stdout), seconds


def solve(cli, model, options, plan, devices):
    found, _ = answer(cli, "solve", model, "--cluster", f"dgx-h100:{devices}", "--gallery", plan, "--micro-batches",
                      "2" if plan.startswith("3d") else "1", *options)
    return found["step_seconds"]


def first_picture(planloom, path):
    """Seconds until the window has written its picture, from its start; None without a window."""
    began = time.monotonic()
    picture = path.with_suffix(".png")
    ran = subprocess.run(["xvfb-run", "-a", planloom, str(path), "--screenshot", str(picture)], capture_output=True,
                         text=True, timeout=120)
    return time.monotonic() - began if ran.returncode == 0 else None


def compare(arguments, name, form):
    _, twin, options, plans = MODELS[name]
    folder = pathlib.Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.{form}"
    if not path.exists():
        subprocess.run([sys.executable, __file__, "--make", name, form, str(path)], check=True)
    cli = arguments.cli
    ours, seconds = answer(cli, "info", str(path), *options)
    theirs, _ = answer(cli, "info", twin)
    result = {"model": f"{name}.{form}", "info_seconds": round(seconds, 3)}
    for key in ("parameters", "flops_forward"):
        result[key] = ours[key]
        result[key + "_ratio"] = round(ours[key] / theirs[key], 5)
    if arguments.planloom:
        result["picture_seconds"] = first_picture(arguments.planloom, path)
    worst = 0
    result["steps"] = {}
    for plan, devices in plans:
        label = f"{plan} on {devices}"
        try:
            mine, other = (solve(cli, model, more, plan, devices) for model, more in ((str(path), options), (twin, [])))
        except RuntimeError as failure:
            result["steps"][label] = str(failure)
            worst = 1
            continue
        result["steps"][label] = [mine, other, round(mine / other - 1, 4)]
        worst = max(worst, abs(mine / other - 1))
    result["worst"] = round(worst, 4)
    print(json.dumps(result, indent=1), flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder")
    parser.add_argument("--cli", default="build/bin/planloom-cli")
    parser.add_argument("--planloom")
    parser.add_argument("--only", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--forms", nargs="*", default=["pt2", "onnx"], choices=["pt2", "onnx"])
    parser.add_argument("--json")
    parser.add_argument("--make", nargs=3, metavar=("NAME", "FORM", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        make(*arguments.make)
        return 0
    if not arguments.folder:
        parser.error("--folder says where the files go")
    results = [compare(arguments, name, form) for name in arguments.only for form in arguments.forms]
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1))
    return int(any(result["worst"] > BAR for result in results))


if __name__ == "__main__":
    sys.exit(main())
