#!/usr/bin/env bash
# Predictions beside published measurements: bash tests/bench/published.sh FILE.json [--json]
#
# FILE is a list of measured training speeds: rows of Megatron-LM's tables, or recipes (see tests/bench/published.cpp).
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

runOfBench published "$@"
