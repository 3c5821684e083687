#!/usr/bin/env bash
# Runs plans on the GPU of a machine that has nothing but a C++ compiler, CMake and the CUDA toolkit, in under 8 minutes.
#
#   bash tests/bench/on_gpu.sh prepare FOLDER   where Planloom is built (bash app/run.sh): writes plans, each with the
#                                               unpartitioned model that it is compared with, and nlohmann's header
#   bash tests/bench/on_gpu.sh run FOLDER       on the machine with the GPU: builds planloom-exec with its plugin, runs every
#                                               plan on emulated devices, and prints a table; exit status 1 if one differs
#
# Plans run forward and backward with an optimizer step. "ok" is the comparison with the CPU's run of the model on that
# machine. With compute-sanitizer on PATH the smallest plan runs under it, too; with PyTorch, a step of GPT-2 is timed beside.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
usage() { sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
[[ $# -eq 2 ]] || usage
folder=$2

# name, model, what solve takes
plans=(
    "gpt-1 zoo:gpt?layers=2&hidden=64&heads=4&seq=32&batch=8&vocab=128 --gallery single --devices 1"
    "gpt-dp zoo:gpt?layers=2&hidden=64&heads=4&seq=32&batch=8&vocab=128 --gallery data-parallel --devices 4"
    "gpt-tp zoo:gpt?layers=2&hidden=64&heads=4&seq=32&batch=8&vocab=128 --gallery tensor-parallel --devices 2"
    "gpt-3d zoo:gpt?layers=2&hidden=64&heads=4&seq=32&batch=8&vocab=128 --gallery 3d:dp=2,tp=2,pp=2,micro-batches=2 --devices 8"
    "gpt-zero zoo:gpt?layers=2&hidden=64&heads=4&seq=32&batch=8&vocab=128 --gallery zero2 --devices 4"
    "gpt-bf16 zoo:gpt?layers=2&hidden=64&heads=4&seq=32&batch=8&vocab=128 --gallery data-parallel --devices 2 --precision bf16"
    "llama-tp zoo:llama?layers=2&hidden=64&heads=4&kv_heads=2&seq=32&batch=4&vocab=128 --gallery tensor-parallel --devices 2"
    "moe-1 zoo:moe?layers=2&hidden=32&heads=4&seq=16&batch=4&vocab=64&experts=4 --gallery single --devices 1"
)
# Timed, not compared: the reference on a CPU would take too long.
timed="gpt2-124m zoo:gpt?layers=12&hidden=768&heads=12&seq=1024&batch=4&vocab=50257 --gallery single --devices 1 --precision bf16"

case $1 in
prepare)
    cli=$(command -v planloom-cli || echo "$root/build/run/bin/planloom-cli")
    [[ -x $cli ]] || { echo "on_gpu.sh: planloom-cli was not found: bash app/run.sh builds it" >&2; exit 2; }
    mkdir -p "$folder"
    for plan in "${plans[@]}" "$timed"; do
        read -r name model rest <<<"$plan"
        check=(--check --steps 2)
        [[ $plan == "$timed" ]] && check=(--steps 10)
        # shellcheck disable=SC2086 # options are words
        "$cli" run "$model" $rest "${check[@]}" --backend cuda-emulated --random-weights 1 --prepare "$folder/$name" || exit 1
    done
    for header in /usr/include/nlohmann /usr/local/include/nlohmann; do
        [[ -d $header ]] && mkdir -p "$folder/deps/include" && cp -r "$header" "$folder/deps/include/"
    done
    for config in /usr/share/cmake/nlohmann_json /usr/local/share/cmake/nlohmann_json; do
        [[ -d $config ]] && mkdir -p "$folder/deps/share/cmake" && cp -r "$config" "$folder/deps/share/cmake/"
    done
    ;;
run)
    build=$folder/build
    cmake -S "$root" -B "$build" -DPLANLOOM_RUNNER=ON -DCMAKE_BUILD_TYPE=Release -DPLANLOOM_UNITY=ON -DPLANLOOM_PCH=OFF \
        -DPLANLOOM_CUDA_ARCHITECTURES="${ARCHITECTURES:-native}" -DCMAKE_PREFIX_PATH="$folder/deps" || exit 2
    cmake --build "$build" -j"$(nproc)" --target planloom-exec || exit 2
    failed=0
    printf '%-12s %-6s %14s  %s\n' plan ok 'ms a step' 'worst'
    for plan in "$folder"/*/plan.json; do
        name=$(basename "$(dirname "$plan")")
        timeout 120 "$build/bin/planloom-exec" run --plan "$plan" --options "$(dirname "$plan")/options.json" \
            >"$folder/$name.events" 2>"$folder/$name.errors"
        status=$?
        [[ $status -eq 0 ]] || failed=1
        fastest=$(grep -o '"seconds":[0-9.e-]*' "$folder/$name.events" | cut -d: -f2 | sort -g | head -1)
        worst=$(grep '"t":"check"' "$folder/$name.events" | grep -o '"worst[^,]*,[^,}]*' | head -1)
        printf '%-12s %-6s %14s  %s\n' "$name" "$([[ $status -eq 0 ]] && echo yes || echo NO)" \
            "$(awk -v s="${fastest:-0}" 'BEGIN { printf "%.3f", s * 1000 }')" "$worst$(head -c 300 "$folder/$name.errors")"
    done
    if command -v compute-sanitizer >/dev/null; then
        timeout 120 compute-sanitizer --target-processes all --error-exitcode 9 "$build/bin/planloom-exec" run \
            --plan "$folder/gpt-1/plan.json" --options "$folder/gpt-1/options.json" >"$folder/sanitizer.log" 2>&1 \
            && echo "compute-sanitizer: clean" || { echo "compute-sanitizer: see $folder/sanitizer.log"; failed=1; }
    fi
    if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
        timeout 150 python3 - <<'PYTHON'
import time, torch, torch.nn as nn, torch.nn.functional as F

class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.a, self.b = h, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out, self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(self, x):
        n, s, d = x.shape
        q, k, v = (t.view(n, s, self.h, -1).transpose(1, 2) for t in self.qkv(self.a(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, s, d)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.b(x)), approximate="tanh"))

class Gpt(nn.Module):
    def __init__(self, layers=12, d=768, h=12, s=1024, vocab=50257):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, d), nn.Embedding(s, d)
        self.blocks, self.norm, self.head = nn.Sequential(*(Block(d, h) for _ in range(layers))), nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)
    def forward(self, x, y):
        h = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return F.cross_entropy(self.head(self.norm(self.blocks(h))).flatten(0, 1), y.flatten())

for compiled in (False, True):
    torch.manual_seed(0)
    model = Gpt().cuda()
    step_model = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x, y = torch.randint(50257, (2, 4, 1024), device="cuda")
    times = []
    for _ in range(12):
        torch.cuda.synchronize(); begin = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = step_model(x, y)
        loss.backward(); optimizer.step(); optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize(); times.append(time.perf_counter() - begin)
    print(f"PyTorch {'compiled' if compiled else 'eager'}: GPT-2 124M, bf16: {min(times) * 1e3:.2f} ms a step")
PYTHON
    fi
    exit $failed
    ;;
*) usage ;;
esac
