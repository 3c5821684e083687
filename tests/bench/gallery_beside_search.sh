#!/usr/bin/env bash
# Plans of the gallery beside what the search finds: bash tests/bench/gallery_beside_search.sh CLUSTER MODEL
# [--entry NAME] [--plans N] [--all] (see tests/bench/gallery_beside_search.cpp).
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

{
    installPackages "Planloom's benchmarks" "${buildPackages[@]}" "${testPackages[@]}" libbenchmark-dev
    folder=$root/build/bench
    configure "$folder" -DCMAKE_BUILD_TYPE=Release -DPLANLOOM_BENCH=ON -DPLANLOOM_TESTS=OFF -DPLANLOOM_UNITY=ON
    build "$folder" gallery_beside_search
} >&2

"$folder/bench/gallery_beside_search" "$@"
