#!/usr/bin/env bash
# Says how many tests the last run skipped, and why: bash tests/skipped.sh BUILD_FOLDER. Fails if one need not have been: for
# want of models although PLANLOOM_MODELS names a folder that is there, or of a program that the build makes. What else tests
# are skipped for is the machine (no GPU, no compiler of kernels ...), whatever the folder.
set -euo pipefail

log=$1/Testing/Temporary/LastTest.log
[[ -e $log ]] || { echo "There is no log of tests at $log." >&2; exit 2; }

# One reason a line. GoogleTest says it in the line behind "FILE:LINE: Skipped", Qt Test behind the test's name.
reasons=$(awk '
    skipped { print; skipped = 0 }
    /^[^ ].*:[0-9]+: Skipped$/ { skipped = 1 }
    /^SKIP   : / { sub(/^SKIP   : [^)]*\) /, ""); print }' "$log" |
    sed -E 's#^(the model set|no models|the sample models|The models).*#there are no models#')
count=$(grep -c . <<<"$reasons" || true)
echo "Skipped tests: $count"
((count)) || exit 0
sort <<<"$reasons" | uniq -c | sort -rn | sed -E 's/^ *([0-9]+) /  \1: /'

status=0
if [[ -n ${PLANLOOM_MODELS:-} && -d $PLANLOOM_MODELS ]] && grep -q '^there are no models$' <<<"$reasons"; then
    echo "Tests found no models, although PLANLOOM_MODELS names a folder: $PLANLOOM_MODELS" >&2
    status=1
fi
if missing=$(grep -E 'is not built|no program' <<<"$reasons"); then
    printf 'Tests found no program of the build: %s\n' "$missing" >&2
    status=1
fi
exit "$status"
