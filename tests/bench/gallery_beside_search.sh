#!/usr/bin/env bash
# Plans of the gallery beside what the search finds: bash tests/bench/gallery_beside_search.sh CLUSTER MODEL
# [--entry NAME] [--plans N] [--all] (see tests/bench/gallery_beside_search.cpp).
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

runOfBench gallery_beside_search "$@"
