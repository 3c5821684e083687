#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test; the last lines are ctest's summary.
#
#   bash tests/run.sh                  all tests
#   bash tests/run.sh -R simulate      arguments go to ctest
#
# With CI=true warnings are errors.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../resources/setup.sh"

installPackages "Planloom's tests" "${buildPackages[@]}" "${testPackages[@]}"

werror=OFF
[[ ${CI:-} == true || ${CI:-} == 1 ]] && werror=ON

folder=$root/build/tests
# Little optimisation and no debug information: for the tests, compiling takes longer than running.
architectures='90-real;75-virtual'
[[ $werror == ON ]] && architectures=all
configure "$folder" -DPLANLOOM_CUDA_ARCHITECTURES="$architectures" -DCMAKE_BUILD_TYPE= -DCMAKE_CXX_FLAGS="-O1 -g0" -DPLANLOOM_WERROR="$werror" -DPLANLOOM_UNITY=ON
build "$folder"

export QT_QPA_PLATFORM=offscreen
unset DISPLAY WAYLAND_DISPLAY # no test may open a window
exec ctest --test-dir "$folder" --output-on-failure --no-tests=error -j2 "$@"
