#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test; the last lines are ctest's summary, and how many tests were
# skipped and why.
#
#   bash tests/run.sh                  all tests
#   bash tests/run.sh -R simulate      arguments go to ctest
#
# PLANLOOM_MODELS names the folder of models that are too large for the repository; else it is ../shared/models, if it is there.
# With CI=true warnings are errors.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../resources/setup.sh"

installPackages "Planloom's tests" "${buildPackages[@]}" "${testPackages[@]}"

werror=OFF
[[ ${CI:-} == true || ${CI:-} == 1 ]] && werror=ON

folder=$root/build/tests
# Little optimisation and no debug information: for the tests, compiling takes longer than running. Nor does the compiler look
# for memory to give back before it has a gibibyte. Tests of windows compute nothing themselves.
configure "$folder" -DCMAKE_BUILD_TYPE= -DCMAKE_CXX_FLAGS="-O1 -g0 --param=ggc-min-heapsize=1048576" -DPLANLOOM_WERROR="$werror" \
    -DPLANLOOM_WINDOW_TEST_FLAGS=-O0 -DPLANLOOM_UNITY=ON
build "$folder"

export QT_QPA_PLATFORM=offscreen
unset DISPLAY WAYLAND_DISPLAY # no test may open a window
models=$(dirname "$root")/shared/models
[[ -n ${PLANLOOM_MODELS:-} || ! -d $models ]] || export PLANLOOM_MODELS=$models
status=0
ctest --test-dir "$folder" --output-on-failure --no-tests=error -j2 "$@" || status=$?
bash "$root/tests/skipped.sh" "$folder" || ((status)) || status=1
exit "$status"
