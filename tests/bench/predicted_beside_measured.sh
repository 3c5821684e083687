#!/usr/bin/env bash
# Predicted steps and memory beside measured ones: bash tests/bench/predicted_beside_measured.sh [--quick] [--kinds]
#
# Four models under data, tensor and pipeline plans on this machine's cores (see tests/bench/predicted_beside_measured.cpp).
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../../resources/setup.sh"

runOfBench predicted_beside_measured "$@"
