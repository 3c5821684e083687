#!/usr/bin/env bash
# Looks whether all sources are laid out as .clang-format says: bash resources/format.sh [--fix] [FILE...]
#
# Without files: all .h and .cpp files that git knows. --fix lays them out. Debian 12's clang-format (14) decides; others
# lay out differently in places.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

fix=0
[[ ${1:-} == --fix ]] && { fix=1; shift; }

installPackages "Checking the layout of the sources" clang-format-14
formatter=$(command -v clang-format-14 || command -v clang-format) ||
    die "there is no clang-format." "Debian 12 calls it clang-format-14."

if (($#)); then
    files=("$@")
else
    cd "$root"
    mapfile -d '' -t files < <(git ls-files -z -- '*.h' '*.cpp')
fi
((${#files[@]})) || die "there are no sources to look at."

# A share of the files for each core.
inParallel() { printf '%s\0' "${files[@]}" | xargs -0 -n 40 -P "$(nproc)" "$@"; }

if ((fix)); then
    inParallel "$formatter" --style=file -i
    exit 0
fi
mapfile -t wrong < <(inParallel bash -c '
    if ! found=$("$1" --style=file --dry-run --Werror "${@:2}" 2>&1); then
        names=$(sed -n "s/^\(.*\):[0-9]*:[0-9]*: error: .*/\1/p" <<<"$found" | LC_ALL=C sort -u)
        printf "%s\n" "${names:-$found}"
    fi' - "$formatter" | LC_ALL=C sort)
if ((${#wrong[@]})); then
    printf '%s\n' "${wrong[@]}" | head -n 20 >&2
    die "${#wrong[@]} of ${#files[@]} files are not laid out as .clang-format says." \
        "Lay them out by: bash resources/format.sh --fix"
fi
