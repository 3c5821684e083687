#!/usr/bin/env bash
# Plans of the gallery beside the best of Megatron-LM's space: bash tests/bench/gallery_tables.sh [swin|t5|evoformer ...]
# [--fused] [--all] (see tests/bench/gallery_tables.cpp).
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

{
    installPackages "Planloom's benchmarks" "${buildPackages[@]}" "${testPackages[@]}" libbenchmark-dev
    folder=$root/build/bench
    configure "$folder" -DCMAKE_BUILD_TYPE=Release -DPLANLOOM_BENCH=ON -DPLANLOOM_TESTS=OFF -DPLANLOOM_UNITY=ON
    build "$folder" gallery_tables
} >&2

"$folder/bench/gallery_tables" "$@"
