"""What exported plans do when a rank dies, hangs or raises, when ranks have different plans, and when the disk fills:
each run has to end within its deadline, with the instruction and the ranks, and leave no half a checkpoint.

    python3 tests/e2e/torch_failures.py --cli build/tests/bin/planloom-cli --python VENV/bin/python

Needs a Python with torch. Failures come from the user's Dataset, as those of users do: exported code has no hooks for tests.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

MODEL = "zoo:gpt?layers=2&hidden=32&heads=4&vocab=96&seq=16&batch=8"
DEADLINE = 8.0

DATASET = """
import os, time
import torch

class Failing:
    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index >= 16 and os.environ["RANK"] == "1":  # the third step
            {fails}
        return {{"input_ids": torch.arange(16) * (index + 1) % 96, "labels": torch.arange(1, 17) * (index + 1) % 96}}

def dataset():
    return Failing()
"""


def start(python, folder, *options, limit="", seconds=90):
    """@return status, what was said, seconds"""
    begin = time.time()
    command = [python, "-m", "torch.distributed.run", "--nproc-per-node", "2", os.path.join(folder, "train.py"), "--steps", "4",
               "--random-weights", "7", "--deadline", str(DEADLINE), *options]
    shell = ["bash", "-c", limit + 'exec "$@"', "bash", *command]
    made = subprocess.run(shell, capture_output=True, text=True, timeout=seconds, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return made.returncode, made.stdout + made.stderr, time.time() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cli", required=True)
    parser.add_argument("--python", required=True)
    chosen = parser.parse_args()
    work = tempfile.mkdtemp(prefix="torch_failures")
    plan, folder = os.path.join(work, "plan.json"), os.path.join(work, "torch")
    failures = []

    def export(gallery, out):
        subprocess.run([chosen.cli, "solve", MODEL, "--devices", "2", "--gallery", gallery, "--micro-batches", "2", "--allow-copies",
                        "--optimizer", "sgd", "--out", plan], check=True, capture_output=True)
        subprocess.run([chosen.cli, "export", plan, "--format", "torch", "--out", out], check=True, capture_output=True)

    def expect(name, status, said, seconds, words, most=DEADLINE + 40):
        wrong = [word for word in words if word not in said]
        good = status != 0 and not wrong and seconds <= most
        print(f"{name:55} {'named' if good else 'FAILED'} in {seconds:.1f} s", flush=True)
        if not good:
            failures.append(name)
            print(f"  status {status}, not said: {wrong}\n{said[-3000:]}")

    for gallery, *at in (("tensor-parallel", "rank 0: ", "all-reduce of ranks 0, 1 (forward_stage0, line "), ("1f1b", "rank 0: ", "receive from rank 1 (transfer_stage1, line ")):
        for words, fails in (("dies", "os._exit(3)"), ("hangs", "time.sleep(600)")):
            export(gallery, folder)
            with open(os.path.join(folder, "dataset.py"), "w") as file:
                file.write(DATASET.format(fails=fails))
            expect(f"{gallery}: a rank {words}", *start(chosen.python, folder), [*at, " of stage0.py)"])
    with open(os.path.join(folder, "dataset.py"), "w") as file:
        file.write(DATASET.format(fails="raise ValueError('sample ' + str(index) + ' is damaged')"))
    expect("a Dataset raises", *start(chosen.python, folder), ["rank 1: ValueError: sample 16 is damaged"])
    os.remove(os.path.join(folder, "dataset.py"))
    export("tensor-parallel", folder)
    checkpoints = os.path.join(work, "checkpoints")
    status, said, seconds = start(chosen.python, folder, "--checkpoint", checkpoints, "--data", "same", limit="trap '' XFSZ; ulimit -f 64; ")
    expect("a disk fills", status, said, seconds, ["checkpoints/step-00000004 cannot be written"])
    if os.path.isdir(checkpoints) and os.listdir(checkpoints):
        failures.append("half a checkpoint")
        print("  left:", os.listdir(checkpoints))
    other = os.path.join(work, "other")
    export("data-parallel", other)
    with open(os.path.join(work, "pick.py"), "w") as file:
        file.write("import os, runpy, sys\nsys.argv[0] = os.path.join([sys.argv.pop(1), sys.argv.pop(1)][int(os.environ['RANK'])], 'train.py')\n"
                   "runpy.run_path(sys.argv[0], run_name='__main__')\n")
    begin = time.time()
    made = subprocess.run([chosen.python, "-m", "torch.distributed.run", "--nproc-per-node", "2", os.path.join(work, "pick.py"), folder,
                           other, "--random-weights", "7"], capture_output=True, text=True, timeout=90)
    expect("ranks have different plans", made.returncode, made.stdout + made.stderr, time.time() - begin,
           ["rank 1 has another plan than rank 0: copy one folder to all machines"])
    shutil.rmtree(work)
    print(f"{len(failures)} failed" if failures else "all named")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
