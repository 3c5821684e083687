#!/usr/bin/env bash
# Checks that no test is left out: each file of each test program has an entry of CTest's, and each entry a file with tests.
# bash tests/check_entries.sh FOLDER, where FOLDER/entries.txt says "PROGRAM FILE..." for each program in FOLDER.
set -euo pipefail

folder=$1
status=0
while read -r program entries; do
    [[ -n $program ]] || continue
    wanted=$(tr ' ' '\n' <<<"$entries" | LC_ALL=C sort)
    if ! found=$("$folder/$program" --files | LC_ALL=C sort); then
        echo "$program cannot list its files" >&2
        status=1
    elif [[ $wanted != "$found" ]]; then
        echo "$program: files with an entry (<) and files with tests (>) differ:" >&2
        diff <(printf '%s\n' "$wanted") <(printf '%s\n' "$found") | grep '^[<>]' >&2 || true
        status=1
    fi
done <"$folder/entries.txt"
exit "$status"
