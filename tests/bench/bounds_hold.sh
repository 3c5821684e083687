#!/usr/bin/env bash
# Whether what the search says of all plans is true: bash tests/bench/bounds_hold.sh [--count N] [--seed S] [--state FILE]
# [--models FOLDER]... [--small] [--json] (see tests/bench/bounds_hold.cpp).
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

runOfBench bounds_hold "$@"
