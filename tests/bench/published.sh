#!/usr/bin/env bash
# Predictions beside published measurements: bash tests/bench/published.sh FILE.json [--json]
#
# FILE is a list of measured training speeds: rows of Megatron-LM's tables, or recipes (see tests/bench/published.cpp).
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

{
    installPackages "Planloom's benchmarks" "${buildPackages[@]}" "${testPackages[@]}" libbenchmark-dev
    folder=$root/build/bench
    configure "$folder" -DCMAKE_BUILD_TYPE=Release -DPLANLOOM_BENCH=ON -DPLANLOOM_TESTS=OFF -DPLANLOOM_UNITY=ON
    build "$folder" published
} >&2

"$folder/bench/published" "$@"
