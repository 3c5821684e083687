#!/usr/bin/env bash
# Writes resources/runs, which the window shows: bash tests/bench/measured_runs.sh FILE.json...
#
# Each FILE holds measured training runs (see tests/bench/measured.cpp); what is predicted for them stands beside. To
# be run again when predictions change: a test holds some of the rows against what the engine says.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

runs="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/resources/runs"
for file in "$@"; do
    runOfBench measured "$file" --table "$runs/$(basename "$file")"
done
