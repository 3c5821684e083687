#!/usr/bin/env bash
# Builds the benchmarks optimised and runs them: bash tests/bench/run.sh [BENCHMARK-OPTION...]
#
#   PLANLOOM_MODELS=models bash tests/bench/run.sh --benchmark_filter=import
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

installPackages "Planloom's benchmarks" "${buildPackages[@]}" "${testPackages[@]}" libbenchmark-dev

folder=$root/build/bench
configure "$folder" -DCMAKE_BUILD_TYPE=Release -DPLANLOOM_BENCH=ON -DPLANLOOM_TESTS=OFF -DPLANLOOM_UNITY=ON
build "$folder"

export QT_QPA_PLATFORM=offscreen
for program in "$folder"/bench/*_bench; do
    say "== $(basename "$program")"
    "$program" "$@"
done
