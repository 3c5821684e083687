#!/usr/bin/env bash
# Runs plans on the GPU of a machine that has nothing but a C++ compiler, CMake and the CUDA toolkit, in under 8 minutes.
#
#   bash tests/bench/on_gpu.sh prepare FOLDER   where Planloom is built (bash app/run.sh): writes plans, each with the
#                                               unpartitioned model that it is compared with, and nlohmann's header
#   bash tests/bench/on_gpu.sh run FOLDER       on the machine with the GPU: builds planloom-exec with its plugin, runs every
#                                               plan, and prints tables; exit status 1 if something is not as it should be
#
# Tables: every plan's step, forward and backward with an optimizer, beside the CPU's run of the unpartitioned model on the
# same machine (within 1e-4 of it, 2e-2 in bf16, relative L2); plans of several devices beside those of one; GPT-2 beside
# PyTorch, eager and compiled, where that is installed; plans as exported to PyTorch, beside both; predicted beside
# measured, before and after the plan's kernels were measured by themselves. With compute-sanitizer on PATH the smallest
# plan runs under it; with --backend cuda in this build, and two GPUs, one rank a GPU by NCCL. What did not run is named
# with the reason.
#
# To try this script without a GPU: BACKEND=cpu SMALL=1 for `prepare`, and EXEC=path of a planloom-exec, and EXPORTED_ON=cpu, for
# `run`. PYTHON names the Python that has PyTorch.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
usage() { sed -n '2,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
[[ $# -eq 2 ]] || usage
folder=$2
backend=${BACKEND:-cuda-emulated}
cluster=${CLUSTER:-dgx-h100}
python=${PYTHON:-python3}
exported_on=${EXPORTED_ON:-cuda}
limit=${LIMIT_SECONDS:-460} # of `run`, the build included

gpt="zoo:gpt?layers=2&hidden=64&heads=4&seq=32&batch=8&vocab=128"
# name, model, precision, devices, gallery. Names up to the first "-" are one model: its plans make one loss.
compared=(
    "gpt-1 $gpt fp32 1 single"
    "gpt-dp $gpt fp32 4 data-parallel"
    "gpt-tp $gpt fp32 2 tensor-parallel"
    "gpt-3d $gpt fp32 8 3d:dp=2,tp=2,pp=2,micro-batches=2"
    "gpt-zero $gpt fp32 4 zero2"
    "gpt16-1 $gpt bf16 1 single"
    "gpt16-dp $gpt bf16 2 data-parallel"
    "gpth-1 $gpt fp16 1 single"
    "llama-1 zoo:llama?layers=2&hidden=64&heads=4&kv_heads=2&seq=32&batch=4&vocab=128 fp32 1 single"
    "llama-tp zoo:llama?layers=2&hidden=64&heads=4&kv_heads=2&seq=32&batch=4&vocab=128 fp32 2 tensor-parallel"
    "moe-1 zoo:moe?layers=2&hidden=32&heads=4&seq=16&batch=4&vocab=64&experts=4 fp32 1 single"
    "resnet-1 zoo:resnet?batch=2&image=32 fp32 1 single"
)
# Models of files, where they are beside the checkout.
for model in "${PLANLOOM_MODELS:-$root/../shared/models}"/*_tiny.onnx; do
    [[ -f $model ]] || continue
    short=$(basename "$model" _tiny.onnx)
    compared+=("$short.file-1 $model fp32 1 single" "${short}16.file-1 $model bf16 1 single")
done
# Timed, not compared: the reference on a CPU would take too long. Layers, hidden size, heads, sequence, batch, vocabulary:
timed=("gpt2-124m 12 768 12 1024 4 50257" "gpt2-1.5b 48 1600 25 1024 2 50257")
[[ -n ${SMALL:-} ]] && timed=("gpt2-124m 2 64 4 64 2 512" "gpt2-1.5b 3 64 4 64 2 512")

left() { echo $((limit - SECONDS)); }
# The number, or list, of a member of a JSON line.
member() { grep -o "\"$1\":[^,}]*" | tail -1 | cut -d: -f2; }
list() { grep -o "\"$1\":\[[^]]*\]" | tail -1 | cut -d: -f2 | tr -d '[]' | tr ',' '\n'; }
milliseconds() { awk -v s="${1:-0}" 'BEGIN { printf "%.3f", s * 1000 }'; }

prepare() {
    local cli
    cli=$(command -v planloom-cli || echo "$root/build/run/bin/planloom-cli")
    [[ -x $cli ]] || { echo "on_gpu.sh: planloom-cli was not found: bash app/run.sh builds it" >&2; exit 2; }
    mkdir -p "$folder"
    # what the tables know of each plan: name, kind, devices, precision, model's sizes
    : >"$folder/plans"
    write() { # name kind devices precision sizes backend, and what solve takes
        local name=$1 kind=$2 devices=$3 precision=$4 sizes=$5 on=$6
        shift 6
        if "$cli" run "$@" --precision "$precision" --cluster "$cluster:$devices" --backend "$on" --random-weights 1 \
            --prepare "$folder/$name" 2>"$folder/$name.why"; then
            "$cli" simulate "$folder/$name/plan.json" --json | member step_seconds >"$folder/$name/predicted"
            echo "$name $kind $devices $precision $sizes" >>"$folder/plans"
            "$cli" export "$folder/$name/plan.json" --format torch --out "$folder/$name/torch" >/dev/null 2>"$folder/$name.export" ||
                echo "on_gpu.sh: $name is not exported to PyTorch: $(tail -1 "$folder/$name.export")"
            rm -f "$folder/$name.why"
        else
            echo "on_gpu.sh: $name was left out: $(tail -1 "$folder/$name.why")"
        fi
    }
    local each name model precision devices gallery layers hidden heads sequence batch vocabulary
    for each in "${compared[@]}"; do
        read -r name model precision devices gallery <<<"$each"
        write "$name" compared "$devices" "$precision" - "$backend" "$model" --gallery "$gallery" --check --steps 6
    done
    for each in "${timed[@]}"; do
        read -r name layers hidden heads sequence batch vocabulary <<<"$each"
        write "$name" timed 1 bf16 "$layers,$hidden,$heads,$sequence,$batch,$vocabulary" "$backend" \
            "zoo:gpt?layers=$layers&hidden=$hidden&heads=$heads&seq=$sequence&batch=$batch&vocab=$vocabulary" --gallery single --steps 10
    done
    write gpt-nccl nccl 2 fp32 - cuda "$gpt" --gallery data-parallel --check --steps 4
    local header config
    for header in /usr/include/nlohmann /usr/local/include/nlohmann; do
        [[ -d $header ]] && mkdir -p "$folder/deps/include" && cp -r "$header" "$folder/deps/include/"
    done
    for config in /usr/share/cmake/nlohmann_json /usr/local/share/cmake/nlohmann_json; do
        [[ -d $config ]] && mkdir -p "$folder/deps/share/cmake" && cp -r "$config" "$folder/deps/share/cmake/"
    done
    echo "$(wc -l <"$folder/plans") plans in $folder"
}

# Runs one plan; leaves NAME.events and NAME.errors. Of its steps, the first is not timed.
carry_out() {
    local name=$1 most
    most=$(left)
    [[ $most -gt 5 ]] || { echo "no time was left" >"$folder/$name.errors"; return 1; }
    timeout "$((most < 150 ? most : 150))" "$exec" run --plan "$folder/$name/plan.json" --options "$folder/$name/options.json" \
        >"$folder/$name.events" 2>"$folder/$name.errors" </dev/null
}
fastest() { grep '"t":"done"' "$folder/$1.events" | list step_seconds | tail -n +2 | sort -g | head -1; }
reason() { { grep '"t":"error"' "$folder/$1.events"; cat "$folder/$1.errors"; } 2>/dev/null | head -1 | cut -c1-200; }

compare() {
    printf '\nBeside the CPU:\n%-16s %7s %9s %3s %12s %12s  %s\n' plan devices precision ok 'ms a step' error tensor
    local name kind devices precision sizes ok check
    while read -r name kind devices precision sizes; do
        [[ $kind == compared ]] || continue
        if carry_out "$name"; then ok=yes; else ok=NO; failed=1; fi
        check=$(grep '"t":"check"' "$folder/$name.events")
        if [[ $ok == yes ]]; then # the engine's own bounds, and those that were promised
            awk -v e="$(member error <<<"$check")" -v p="$precision" \
                'BEGIN { exit !(e != "" && e + 0 <= (p == "fp32" ? 1e-4 : 2e-2)) }' || { ok=NO; failed=1; }
        fi
        printf '%-16s %7s %9s %3s %12s %12s  %s\n' "$name" "$devices" "$precision" "$ok" \
            "$(milliseconds "$(fastest "$name")")" "$(member error <<<"$check")" \
            "$(grep -o '"tensor":"[^"]*"' <<<"$check" | cut -d'"' -f4)$([[ $ok == yes ]] || reason "$name")"
    done <"$folder/plans"
}

# The losses of all steps of plans of one model, beside those of its plan of one device.
several_are_one() {
    printf '\nSeveral devices beside one:\n%-16s %7s %3s %14s\n' plan devices ok 'loss apart by'
    local name kind devices precision sizes apart bound
    while read -r name kind devices precision sizes; do
        [[ $kind == compared && $devices -gt 1 ]] || continue
        bound=1e-4
        [[ $precision == fp32 ]] || bound=2e-2
        apart=$(paste <(grep '"t":"done"' "$folder/${name%%-*}-1.events" | list losses) \
            <(grep '"t":"done"' "$folder/$name.events" | list losses) | awk '
                NF == 2 { d = ($1 - $2) / $1; d = d < 0 ? -d : d; if (d > most) most = d; n++ }
                NF != 2 { bad = 1 }
                END { if (bad || !n) print "none"; else printf "%.2e", most }')
        if [[ $apart != none ]] && awk -v a="$apart" -v b="$bound" 'BEGIN { exit !(a <= b) }'; then
            printf '%-16s %7s yes %14s\n' "$name" "$devices" "$apart"
        else
            printf '%-16s %7s  NO %14s\n' "$name" "$devices" "$apart"
            failed=1
        fi
    done <"$folder/plans"
}

time_beside_pytorch() {
    printf '\nSteps of GPT-2, bf16 (fastest, ms):\n%-12s %12s %12s %12s %14s\n' model Planloom 'torch eager' compiled 'of compiled'
    local name kind devices precision sizes own eager compiled
    local has_torch=yes
    "$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || has_torch=no
    while read -r name kind devices precision sizes; do
        [[ $kind == timed ]] || continue
        if ! carry_out "$name"; then
            failed=1
            printf '%-12s did not run: %s\n' "$name" "$(reason "$name")"
            continue
        fi
        own=$(milliseconds "$(fastest "$name")")
        eager=-
        compiled=-
        if [[ $has_torch == yes && $(left) -gt 30 ]]; then
            timeout "$(left)" "$python" "$root/tests/bench/gpt2_in_pytorch.py" "$sizes" >"$folder/$name.torch" 2>&1
            eager=$(awk '$1 == "eager" { print $2 }' "$folder/$name.torch")
            compiled=$(awk '$1 == "compiled" { print $2 }' "$folder/$name.torch")
        fi
        printf '%-12s %12s %12s %12s %14s\n' "$name" "$own" "${eager:--}" "${compiled:--}" \
            "$(awk -v a="${compiled:--}" -v b="$own" 'BEGIN { if (a + 0 > 0 && b > 0) printf "%.2fx", a / b; else print "-" }')"
    done <"$folder/plans"
    [[ $has_torch == yes ]] || echo "PyTorch with a GPU is not there: no figures of it"
}

# Runs an exported plan; leaves NAME.FORM.events as `carry_out` does.
train_exported() { # name form devices options
    local name=$1 form=$2 devices=$3 most
    shift 3
    most=$(left)
    [[ $most -gt 10 ]] || { echo "no time was left" >"$folder/$name.$form.errors"; return 1; }
    rm -f "$folder/$name.$form.log"
    PLANLOOM_DEVICE=$exported_on timeout "$((most < 120 ? most : 120))" "$python" -m torch.distributed.run --standalone \
        --nproc-per-node "$devices" "$folder/$name/torch/train.py" --steps 6 --random-weights 1 --log-file "$folder/$name.$form.log" "$@" \
        >/dev/null 2>"$folder/$name.$form.errors" </dev/null
    local ended=$?
    tr -d ' ' <"$folder/$name.$form.log" >"$folder/$name.$form.events"
    return $ended
}

# The large ones first, in every form; of the others, whether their losses are those of our run. A rank needs a GPU of its own.
exported() {
    printf '\nExported to PyTorch, beside our runner and PyTorch compiled (fastest, ms):\n%-16s %9s %3s %12s %10s %10s %10s %10s %10s\n' \
        plan precision ok 'loss apart by' eager compiled graphs Planloom 'torch'
    if ! "$python" -c "import torch; assert '$exported_on' == 'cpu' or torch.cuda.is_available()" 2>/dev/null; then
        echo "PyTorch with a GPU is not there: nothing exported ran"
        return
    fi
    local name kind devices precision sizes ok apart bound form most=1
    [[ $exported_on == cpu ]] && most=8 || most=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
    while read -r name kind devices precision sizes; do
        [[ $kind != nccl && $devices -le $most && -d $folder/$name/torch ]] || continue
        ok=yes
        train_exported "$name" eager "$devices" || ok=NO
        if [[ $kind == timed ]]; then
            train_exported "$name" compiled "$devices" --compile || ok=NO
            [[ $exported_on == cpu ]] || train_exported "$name" graphs "$devices" --compile --cuda-graphs || ok=NO
        fi
        bound=1e-4
        [[ $precision == fp32 ]] || bound=2e-2
        apart=-
        for form in eager compiled graphs; do
            [[ -s $folder/$name.$form.events ]] || continue
            apart=$(paste <(grep '"t":"done"' "$folder/$name.events" | list losses) \
                <(grep '"t":"done"' "$folder/$name.$form.events" | list losses) | awk -v before="$apart" '
                    NF == 2 { d = ($1 - $2) / $1; d = d < 0 ? -d : d; if (d > most) most = d; n++ }
                    END { if (!n) print "none"; else printf "%.2e", (before + 0 > most ? before : most) }')
        done
        awk -v a="$apart" -v b="$bound" 'BEGIN { exit !(a ~ /e/ && a + 0 <= b) }' || ok=NO
        [[ $ok == yes ]] || failed=1
        printf '%-16s %9s %3s %12s %10s %10s %10s %10s %10s  %s\n' "$name" "$precision" "$ok" "$apart" \
            "$(milliseconds "$(fastest "$name.eager")")" "$(milliseconds "$(fastest "$name.compiled" 2>/dev/null)")" \
            "$(milliseconds "$(fastest "$name.graphs" 2>/dev/null)")" "$(milliseconds "$(fastest "$name")")" \
            "$(awk '$1 == "compiled" { print $2 }' "$folder/$name.torch" 2>/dev/null)" \
            "$([[ $ok == yes ]] || tail -1 "$folder/$name.eager.errors" | cut -c1-150)"
    done < <(sort -k2,2r -s "$folder/plans")
}

# One device's plans alone: several devices of one GPU share what the prediction gives each. Calibrated: by kernels measured
# here, each by itself; where they could not be, by one factor from the first plan ("*").
predicted_beside_measured() {
    printf '\nPredicted (%s) beside measured, and by what was measured here (*: by one factor from the first):\n%-16s %12s %12s %8s %13s %8s\n' \
        "$cluster" plan 'predicted ms' 'measured ms' error calibrated error
    local name kind devices precision sizes measured predicted factor= calibrated mark most
    while read -r name kind devices precision sizes; do
        [[ $devices -eq 1 && $kind != nccl ]] || continue
        measured=$(fastest "$name")
        predicted=$(cat "$folder/$name/predicted")
        [[ -n $measured && -n $predicted ]] || continue
        factor=${factor:-$(awk -v m="$measured" -v p="$predicted" 'BEGIN { print (p > 0 ? m / p : 1) }')}
        most=$(($(left) / 2))
        calibrated=
        [[ $most -lt 3 ]] || calibrated=$(timeout "$most" "$exec" bench --plan "$folder/$name/plan.json" --options "$folder/$name/options.json" \
            --profile "$folder/profile.json" --seconds "$((most < 20 ? most : 20))" 2>"$folder/$name.bench" </dev/null |
            sed -n 's/^predicted for this machine: \([0-9.]*\) ms.*/\1/p')
        mark=' '
        [[ -n $calibrated ]] || { mark='*'; calibrated=$(awk -v p="$predicted" -v f="$factor" 'BEGIN { print p * f * 1e3 }'); }
        awk -v name="$name" -v m="$measured" -v p="$predicted" -v c="$calibrated" -v mark="$mark" 'BEGIN {
            printf "%-16s %12.3f %12.3f %7.0f%% %12.3f%s %7.0f%%\n", name, p * 1e3, m * 1e3, (p / m - 1) * 100, c, mark, (c / (m * 1e3) - 1) * 100 }'
    done <"$folder/plans"
}

sanitize() {
    echo
    if ! command -v compute-sanitizer >/dev/null; then
        echo "compute-sanitizer is not on PATH: nothing ran under it"
    elif [[ $(left) -lt 20 ]]; then
        echo "compute-sanitizer: no time was left"
    elif timeout "$(left)" compute-sanitizer --target-processes all --error-exitcode 9 "$exec" run \
        --plan "$folder/gpt-1/plan.json" --options "$folder/gpt-1/options.json" >"$folder/sanitizer.log" 2>&1 </dev/null; then
        echo "compute-sanitizer: clean"
    else
        echo "compute-sanitizer: see $folder/sanitizer.log"
        failed=1
    fi
}

by_nccl() {
    local gpus
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
    if ! grep -q '^gpt-nccl ' "$folder/plans"; then
        echo "NCCL: this build has no --backend cuda"
    elif [[ $gpus -lt 2 ]]; then
        echo "NCCL: needs two GPUs, this machine has $gpus"
    elif carry_out gpt-nccl; then
        echo "NCCL, one rank a GPU: ok, $(milliseconds "$(fastest gpt-nccl)") ms a step"
    else
        echo "NCCL, one rank a GPU: NO, $(reason gpt-nccl)"
        failed=1
    fi
}

run() {
    [[ -s $folder/plans ]] || { echo "on_gpu.sh: there is nothing in $folder: prepare it first" >&2; exit 2; }
    exec=${EXEC:-}
    if [[ -z $exec ]]; then
        local build=$folder/build
        cmake -S "$root" -B "$build" -DPLANLOOM_RUNNER=ON -DCMAKE_BUILD_TYPE=Release -DPLANLOOM_UNITY=ON -DPLANLOOM_PCH=OFF \
            -DPLANLOOM_CUDA_ARCHITECTURES="${ARCHITECTURES:-native}" -DCMAKE_PREFIX_PATH="$folder/deps" >"$folder/build.log" 2>&1 \
            && cmake --build "$build" -j"$(nproc)" --target planloom-exec >>"$folder/build.log" 2>&1 \
            || { tail -20 "$folder/build.log" >&2; exit 2; }
        exec=$build/bin/planloom-exec
    fi
    echo "built after $SECONDS s; this machine:"
    timeout 10 "$exec" probe | head -c 2000
    failed=0
    compare
    several_are_one
    time_beside_pytorch
    exported
    predicted_beside_measured
    sanitize
    by_nccl
    printf '\n%s s in all\n' "$SECONDS"
    exit $failed
}

case $1 in
prepare) prepare ;;
run) run ;;
*) usage ;;
esac
