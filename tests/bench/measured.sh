#!/usr/bin/env bash
# Predictions beside measured training runs: bash tests/bench/measured.sh FILE.json [--json] [--only TEXT]
#
# FILE holds runs with their models and what was fixed (see tests/bench/measured.cpp); --only keeps rows with TEXT.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

runOfBench measured "$@"
