#!/usr/bin/env python3
"""Configs that planloom-cli export writes, read by the frameworks' own parsers.

    tests/interop/framework_configs.py FRAMEWORK [--cli build/tests/bin/planloom-cli] [--sources FOLDER]

FRAMEWORK is accelerate or deepspeed (of the installed packages), or torchtitan or megatron (of a checkout, SOURCES). Six
plans are solved, written, and taken by the framework's parser; what it says against one is printed, and the status is 1.
Megatron-LM needs Python 3.12.
A plan that the framework has no words for is written as far as it has. Needs PyTorch. Not part of the test suite.
"""

import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

MODEL = "zoo:llama?layers=8&hidden=256&heads=8&kv_heads=4&ffn=512&seq=128&batch=32&vocab=1024"
DEVICES = 8
PLANS = [
    "3d:dp=2,tp=2,pp=2,zero=1,sequence=1,micro-batches=4",
    "3d:dp=4,tp=2,zero=3,sequence=1,micro-batches=1",
    "3d:dp=2,tp=2,pp=2,zero=1,sequence=1,layout=Et*3|t*5L,recompute=core_attn+mlp,micro-batches=4",
    "3d:dp=8,zero=1,micro-batches=2",
    "3d:dp=2,pp=2,cp=2,zigzag=1,zero=3,interleave=2,micro-batches=4",
    "3d:dp=2,ulysses=4,zero=1,micro-batches=2",
]


def accelerate_takes(path, sources):
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(path))
    assert config.num_processes == DEVICES, config.num_processes


def deepspeed_takes(path, sources):
    from deepspeed.runtime import config as module

    settings = json.loads(path.read_text())
    replicas = DEVICES // settings.get("tensor_parallel", {}).get("autotp_size", 1)
    module.dist = types.SimpleNamespace(
        is_initialized=lambda: True, get_rank=lambda *a, **k: 0, get_world_size=lambda *a, **k: replicas
    )
    module.DeepSpeedConfig(settings)


def torchtitan_takes(path, sources):
    spec = importlib.util.spec_from_file_location("titan_configs", sources / "torchtitan/config/configs.py")
    configs = importlib.util.module_from_spec(spec)
    sys.modules["titan_configs"] = configs
    spec.loader.exec_module(configs)
    kept = types.SimpleNamespace(Config=lambda **settings: None)
    scope = {"FullAC": kept, "SelectiveAC": kept}
    exec(path.read_text(), scope)  # written by planloom-cli a moment ago
    config = types.SimpleNamespace(parallelism=configs.ParallelismConfig(), training=configs.TrainingConfig())
    scope["planloom"](config)
    for part in (config.parallelism, config.training):  # checked anew with what was set
        type(part)(**{field.name: getattr(part, field.name) for field in dataclasses.fields(part)})


def megatron_takes(path, sources):
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)  # of the plan before
    script = 'torchrun() { printf "%s\\n" "$@"; env -0 >&2; }; source "$0"'
    ran = subprocess.run(["bash", "-c", script, str(path)], capture_output=True, text=True, check=True)
    words = ran.stdout.split("\n")
    connections = [each for each in ran.stderr.split("\0") if each.startswith("CUDA_DEVICE_MAX_CONNECTIONS=")]
    os.environ.update(dict(each.split("=") for each in connections), WORLD_SIZE=str(DEVICES), RANK="0", LOCAL_RANK="0")
    usual = "--tokenizer-type NullTokenizer --mock-data --train-iters 10 --lr 1e-4 --transformer-impl local"
    sys.argv = words[words.index("pretrain_gpt.py") :][:-1] + usual.split()
    sys.path.insert(0, str(sources))
    import torch

    device = types.SimpleNamespace(major=9, minor=0, name="H100", multi_processor_count=132)
    torch.cuda.get_device_capability = lambda *a: (9, 0)  # it asks for a GPU, which parsing has no use for
    torch.cuda.get_device_properties = lambda *a: device
    from megatron.training.arguments import parse_args, validate_args

    validate_args(parse_args())


TAKES = {
    "accelerate": ("yaml", accelerate_takes),
    "deepspeed": ("json", deepspeed_takes),
    "torchtitan": ("py", torchtitan_takes),
    "megatron": ("sh", megatron_takes),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", choices=sorted(TAKES))
    parser.add_argument("--cli", default="build/tests/bin/planloom-cli")
    parser.add_argument("--sources", type=pathlib.Path, help="a checkout of the framework")
    options = parser.parse_args()
    ending, takes = TAKES[options.framework]
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for index, gallery in enumerate(PLANS):
            plan = pathlib.Path(folder, f"{index}.plan")
            config = pathlib.Path(folder, f"{index}.{ending}")
            solve = ["solve", MODEL, "--cluster", f"dgx-h100:{DEVICES}", "--gallery", gallery, "--precision", "bf16"]
            subprocess.run([options.cli, *solve, "--out", plan], check=True, stdout=subprocess.DEVNULL)
            write = [options.cli, "export", plan, "--format", options.framework, "--out", config, "--json"]
            said = json.loads(subprocess.run(write, stdout=subprocess.PIPE, check=False).stdout)
            try:
                takes(config, options.sources)
                verdict = "taken"
            except (Exception, SystemExit) as error:
                verdict = f"refused: {type(error).__name__}: {error}"
                refused += 1
            print(f"{gallery}: {'whole' if said['whole'] else 'in part'}, {verdict}", flush=True)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
