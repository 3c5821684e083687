#!/usr/bin/env bash
# Installs what is missing, builds Planloom and opens it on its sample: GPT-2 on four devices.
# Without a display it does the same job on the command line: solve, simulate, verify, run and check.
#
#   bash app/run.sh                the sample
#   bash app/run.sh model.onnx     arguments go to planloom (without a display: to planloom-cli)
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../resources/setup.sh"

installPackages Planloom "${buildPackages[@]}"

folder=$root/build/run
# The window waits for Qt and the engine, hardly for code of its own: less optimised, it is there earlier.
configure "$folder" -DCMAKE_BUILD_TYPE= -DCMAKE_CXX_FLAGS=-O2 -DPLANLOOM_WINDOW_FLAGS=-O1 -DPLANLOOM_TESTS=OFF -DPLANLOOM_UNITY=ON

if [[ -n ${DISPLAY:-} || -n ${WAYLAND_DISPLAY:-} ]]; then
    build "$folder" planloom planloom-exec planloom-layout
    (($#)) || set -- --sample gpt2
    "$folder/bin/planloom" "$@" &
    window=$!
    trap 'kill "$window" 2>/dev/null' EXIT
    (build "$folder") || true # the rest, while the window is open: the command line
    status=0
    wait "$window" || status=$?
    exit "$status"
fi
build "$folder"

cli=$folder/bin/planloom-cli
if (($#)); then
    exec "$cli" "$@"
fi

# A small GPT-2, whose run takes a second: the shape of the real one, with fewer and narrower layers.
model='zoo:gpt?layers=4&hidden=128&heads=4&seq=64&batch=4&vocab=1024'
plan=(--gallery 3d:dp=1,tp=2,pp=2 --micro-batches 4)
files=$folder/sample
mkdir -p "$files"

# step TITLE COMMAND...: one part of the report; the first that fails ends the script with its status.
step()
{
    local title=$1 status=0
    shift
    printf '\n== %s\n' "$title"
    "$@" || status=$?
    if ((status)); then
        printf '\n%s: this part failed (exit status %d). The plan and its trace are in %s\n' \
            "$(basename "$0")" "$status" "$files" >&2
        exit "$status"
    fi
}

say "There is no display (DISPLAY and WAYLAND_DISPLAY are empty), so this is the sample as text:"
say "a small GPT-2 under tensor parallelism x pipeline, 2 x 2 devices, 4 micro-batches."
step "The model" "$cli" info "$model"
step "The plan, solved for four CPU devices" "$cli" solve "$model" --cluster cpu:4 "${plan[@]}" --out "$files/plan.json"
step "Its predicted step" "$cli" simulate "$files/plan.json" --trace "$files/trace.json"
step "Proof that it computes the model" "$cli" verify "$files/plan.json"
step "Run on four CPU devices, and compared with the unpartitioned model" \
    "$cli" run "$model" --cluster cpu:4 "${plan[@]}" --steps 5 --check --random-weights 1
printf '\nThe plan is in %s, and its timeline, for https://ui.perfetto.dev, in %s\n' "$files/plan.json" "$files/trace.json"
