#!/usr/bin/env bash
# Fuzzes the readers of files: bash tests/fuzz/run.sh [SECONDS [TARGET...]], 60 seconds for each target by default.
#
# Starts from small valid files, what earlier runs found worth keeping (build/fuzz/corpus) and the inputs that once
# failed (tests/fuzz/corpus/TARGET). An input that fails is left in build/fuzz/failed.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ ]] || die "expected a number of seconds, found \"$seconds\"." "Use: bash tests/fuzz/run.sh [SECONDS [TARGET...]]"
shift || true
all=(import_onnx import_pt2 lesson operator_file gallery_file read_config read_machine trace table execution_plan npz session)
(($#)) || set -- "${all[@]}"
for target in "$@"; do
    [[ " ${all[*]} " == *" $target "* ]] || die "\"$target\" is no fuzz target." "They are: ${all[*]}"
done

installPackages "Fuzzing Planloom" "${buildPackages[@]}" clang libclang-rt-14-dev llvm

folder=$root/build/fuzz
# The preset fuzz, with CMake run only where something changed.
configure "$folder" --preset fuzz
build "$folder" fuzzers

seeds=$folder/seeds
"$folder/bin/make_seeds" "$seeds"
mkdir -p "$folder/failed"

# Debian's libprotobuf is not instrumented, so what it does to shared containers would be reported wrongly.
export ASAN_OPTIONS=detect_container_overflow=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
status=0
for target in "$@"; do
    corpus=$folder/corpus/$target
    known=$root/tests/fuzz/corpus/$target
    mkdir -p "$corpus"
    folders=("$corpus" "$seeds/$target")
    [[ -d $known ]] && folders+=("$known")
    log=$folder/$target.log
    say "$target: $seconds s"
    if "$folder/bin/${target}_fuzz" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 -max_len=65536 \
        -print_final_stats=1 -artifact_prefix="$folder/failed/$target-" "${folders[@]}" >"$log" 2>&1; then
        say "  nothing found ($(awk '/number_of_executed_units/ { print $2 }' "$log") inputs)"
    else
        status=1
        grep -E 'ERROR|SUMMARY|runtime error|Test unit written' "$log" | head -n 8 | sed 's/^/  /' >&2 || true
        printf '  found something: see %s; the input is in %s\n' "$log" "$folder/failed" >&2
    fi
done
exit "$status"
