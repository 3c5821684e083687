#!/usr/bin/env bash
# Kills a program that edits a session at random moments, and looks whether every acknowledged edit is there:
# bash tests/e2e/kill_sessions.sh [ROUNDS [WRITER [SEED]]], 25 rounds by default.
#
# Each round edits as fast as it can for up to 0.2 s and ends in SIGKILL; ten rounds go on with the same file.
set -euo pipefail

rounds=${1:-25}
writer=${2:-build/tests/session_writer}
seed=${3:-$RANDOM}
[[ $rounds =~ ^[0-9]+$ && $seed =~ ^[0-9]+$ ]] || { echo "Use: kill_sessions.sh [ROUNDS [WRITER [SEED]]]" >&2; exit 2; }
[[ -x $writer ]] || { echo "There is no program $writer: build the target session_writer." >&2; exit 2; }
RANDOM=$seed
echo "seed $seed"

folder=$(mktemp -d)
pid=
cleanUp() {
    [[ -z $pid ]] || kill -KILL "$pid" 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanUp EXIT

promised=0
for ((round = 0; round < rounds; ++round)); do
    if ((round % 10 == 0)); then
        rm -rf "$folder/session"
        mkdir "$folder/session"
    fi
    file=$folder/session/s.planloom
    "$writer" write "$file" "$folder/session/log" "$((seed + round))" 2>"$folder/errors" &
    pid=$!
    # Mostly in the middle of the work, sometimes while the file is being made or opened.
    if ((RANDOM % 5 == 0)); then
        sleep "0.0$(printf '%02d' $((RANDOM % 30)))"
    else
        sleep "0.$(printf '%03d' $((20 + RANDOM % 180)))"
    fi
    if ! kill -KILL "$pid" 2>/dev/null; then
        echo "round $round: the writer ended by itself: $(cat "$folder/errors")" >&2
        exit 1
    fi
    wait "$pid" 2>/dev/null || true
    pid=
    if [[ -s $folder/errors ]]; then
        echo "round $round: $(cat "$folder/errors")" >&2
        exit 1
    fi
    if ! found=$("$writer" check "$file" "$folder/session/log" 2>&1); then
        echo "round $round (seed $seed): $found" >&2
        exit 1
    fi
    [[ $found == *" acknowledged"* ]] && promised=$((promised + ${found%% *}))
    ((rounds > 50 && round % 50 != 0)) || echo "round $round: $found"
done
((promised > 0)) || { echo "no write was ever acknowledged" >&2; exit 1; }
echo "$rounds kills, nothing lost"
