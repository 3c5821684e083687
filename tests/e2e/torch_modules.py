"""Runs what `export --format torch-modules` writes, with PyTorch, on four processes of this machine.

    tests/e2e/torch_modules.py --cli build/run/bin/planloom-cli --python VENV/bin/python [PLAN ...]

LLaMA and GPT-2 of transformers, small, with their losses inside, are exported by torch.export and planned in each of the ways
below; check.py of each folder holds losses and the gradients of every parameter in three steps against the module on one process.
All folders are run by one torchrun. A Python with torch and transformers is no need of the build. Exit status 1 if anything
differs, or is refused that should not be.
"""

import argparse
import os
import runpy
import subprocess
import sys
import tempfile
import time
import traceback

PROCESSES = 4
PLANS = {
    "data": "data-parallel", "data, micro-batches": "data-parallel --micro-batches 2", "zero1": "zero1",
    "zero2": "zero2 --micro-batches 2", "zero3": "zero3", "tensor": "tensor-parallel", "sequence": "sequence-parallel",
    "gpipe": "1f1b --schedule gpipe --micro-batches 4", "1f1b": "1f1b --micro-batches 4",
    "1f1b, recomputed": "1f1b --micro-batches 4 --recompute full",
    "interleaved": "3d:dp=1,tp=1,pp=4,interleave=2 --micro-batches 4",
    "zb-v": "1f1b --schedule zb-v --micro-batches 8", "dualpipev": "1f1b --schedule dualpipev --micro-batches 8",
    "zb-h1 by its csv": "1f1b --schedule zb-h1 --micro-batches 4",
    "dp x tp": "3d:dp=2,tp=2,pp=1", "tp x pp": "3d:dp=1,tp=2,pp=2 --micro-batches 4", "dp x pp": "3d:dp=2,tp=1,pp=2 --micro-batches 2",
}
MADE_ONLY = {"context": "context-parallel"}  # PyTorch's ring attention has no kernel for CPUs


def with_loss(model):
    import torch
    from torch import nn

    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, tokens, labels):
            logits = self.model(input_ids=tokens, use_cache=False).logits
            return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))

    return WithLoss().train()


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    return with_loss(LlamaForCausalLM(LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4,
        max_position_embeddings=64)))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return with_loss(GPT2LMHeadModel(GPT2Config(
        vocab_size=96, n_positions=64, n_embd=32, n_layer=8, n_head=8, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)))


MODELS = {"llama": llama, "gpt2": gpt2}
OF_FOLDERS = ("train", "parallelize", "dataset", "stages", "styles", "check")


def worker(folders):
    """On each process: every folder's check.py, one after another."""
    import torch.distributed

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    torch.distributed.destroy_process_group = lambda group=None: None  # processes meet once for all folders
    for folder in folders:
        for name in OF_FOLDERS:
            sys.modules.pop(name, None)
        sys.path.insert(0, folder)
        sys.argv = [os.path.join(folder, "check.py"), "--module", "torch_modules:" + os.path.basename(folder).split("-")[0]]
        outcome = "ok"
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as end:
            outcome = "ok" if not end.code else f"failed: {end.code}"
        except Exception as error:
            traceback.print_exc()
            outcome = f"raised {type(error).__name__}: {error}".splitlines()[0]
        sys.path.remove(folder)
        if os.environ["RANK"] == "0":
            print(f"RESULT {folder} {outcome}", flush=True)


def export_models(folder):
    """Writes NAME.pt2 of each model."""
    import torch
    for name, make in MODELS.items():
        torch.manual_seed(1)
        tokens = torch.randint(0, 96, (8, 16))
        torch.export.save(torch.export.export(make(), (tokens, tokens.clone())), os.path.join(folder, name + ".pt2"))


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cli", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--keep", metavar="FOLDER", help="leave the folders there")
    parser.add_argument("--each", action="store_true", help="a torchrun of its own for each folder")
    parser.add_argument("plans", nargs="*", metavar="PLAN")
    chosen = parser.parse_args()
    here = os.path.abspath(__file__)
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.keep or scratch
        os.makedirs(folder, exist_ok=True)
        if not all(os.path.exists(os.path.join(folder, name + ".pt2")) for name in MODELS):
            exported = run([chosen.python, here, "--export", folder])
            if exported.returncode:
                sys.exit(exported.stderr)
        refused, folders, made_only = {}, {}, set()
        for model in chosen.models.split(","):
            for plan, words in {**PLANS, **MADE_ONLY}.items():
                if chosen.plans and plan not in chosen.plans:
                    continue
                name = f"{model}-{plan}".replace(" ", "_").replace(",", "")
                out = os.path.join(folder, name)
                file = os.path.join(folder, name + ".json")
                solved = run([chosen.cli, "solve", os.path.join(folder, model + ".pt2"), "--devices", str(PROCESSES), "--allow-copies",
                              "--out", file, "--gallery", *words.split()])
                made = run([chosen.cli, "export", file, "--format", "torch-modules", "--out", out]) if not solved.returncode else solved
                if made.returncode:
                    refused[name] = made.stderr.strip() or made.stdout.strip()
                elif plan in MADE_ONLY:
                    made_only.add(name)
                else:
                    folders[name] = out
        failed, results, said = bool(refused), {}, ""
        for some in [[each] for each in folders.values()] if chosen.each else [list(folders.values())] if folders else []:
            begin = time.time()
            output = run([chosen.python, "-m", "torch.distributed.run", "--nproc-per-node", str(PROCESSES), "--master-port", "29563",
                          here, "--worker", *some], env={**os.environ, "OMP_NUM_THREADS": "1", "USE_LIBUV": "0"}, cwd=scratch)
            said = output.stdout
            for line in output.stdout.splitlines():
                if line.startswith("check.py:"):
                    last = line
                elif line.startswith("RESULT "):
                    _, path, outcome = line.split(" ", 2)
                    results[os.path.basename(path)] = last if outcome == "ok" else outcome + " " + last
            if output.returncode:
                print(output.stderr[-6000:], file=sys.stderr)
            print(f"{len(some)} folders in {time.time() - begin:.0f} s", file=sys.stderr)
        for name in folders:
            outcome = results.get(name, "did not run")
            failed = failed or "DIFFER" in outcome or "agree" not in outcome
            print(f"{name:32} {outcome.removeprefix('check.py: ')}")
        for name in sorted(made_only):
            print(f"{name:32} made")
        for name, why in refused.items():
            print(f"{name:32} REFUSED {why}")
        if not folders and not made_only:
            print(said)
    sys.exit(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2:])
    elif sys.argv[1:2] == ["--export"]:
        export_models(sys.argv[2])
    else:
        main()
