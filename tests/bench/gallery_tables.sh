#!/usr/bin/env bash
# Plans of the gallery beside the best of Megatron-LM's space: bash tests/bench/gallery_tables.sh [swin|t5|evoformer ...]
# [--fused] [--all] (see tests/bench/gallery_tables.cpp).
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

runOfBench gallery_tables "$@"
