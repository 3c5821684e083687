#!/usr/bin/env bash
# Kills the window at random moments while somebody works in it, and looks whether everything that it showed as saved is there:
# bash tests/e2e/kill_sessions.sh [ROUNDS [WRITER [SEED]]], 25 rounds by default. WRITER is build/tests/window_writer, or
# build/tests/session_writer for the store below the window; session_promise.h says what is promised.
#
# Ten rounds go on with the same session, each opening what the last one left. One kill in five falls into the opening.
set -euo pipefail

rounds=${1:-25}
writer=${2:-build/tests/window_writer}
seed=${3:-$RANDOM}
[[ $rounds =~ ^[0-9]+$ && $seed =~ ^[0-9]+$ ]] || { echo "Use: kill_sessions.sh [ROUNDS [WRITER [SEED]]]" >&2; exit 2; }
[[ -x $writer ]] || { echo "There is no program $writer: build the target $(basename "$writer")." >&2; exit 2; }
RANDOM=$seed
echo "seed $seed"
export QT_QPA_PLATFORM=offscreen

folder=$(mktemp -d)
pid=
cleanUp() {
    [[ -z $pid ]] || kill -KILL "$pid" 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanUp EXIT
mkfifo "$folder/says"

promised=0
for ((round = 0; round < rounds; ++round)); do
    if ((round % 10 == 0)); then
        rm -rf "$folder/session" "$folder/log"
        mkdir "$folder/session"
    fi
    "$writer" write "$folder/session" "$folder/log" "$((seed + round))" >"$folder/says" 2>"$folder/errors" &
    pid=$!
    exec {says}<"$folder/says"
    if ((RANDOM % 5 == 0)); then
        sleep "0.$(printf '%03d' $((RANDOM % 400)))"
    else
        read -r -t 60 <&"$says" || true # it is open, and the work begins
        sleep "0.$(printf '%03d' $((RANDOM % 500)))"
    fi
    # Not between an edit and its line in the log.
    killed=yes
    {
        flock "$folder/log.lock" kill -KILL "$pid" || killed=
        wait "$pid" || true
    } 2>/dev/null
    if [[ -z $killed ]]; then
        echo "round $round (seed $seed): the writer ended by itself: $(cat "$folder/errors")" >&2
        exit 1
    fi
    pid=
    exec {says}<&-
    if [[ -s $folder/errors ]]; then
        echo "round $round (seed $seed): $(cat "$folder/errors")" >&2
        exit 1
    fi
    touch "$folder/log"
    if ! found=$("$writer" check "$folder/session" "$folder/log" 2>&1); then
        echo "round $round (seed $seed): $found" >&2
        exit 1
    fi
    [[ $found == *" acknowledged"* ]] && promised=$((promised + ${found%% *}))
    ((rounds > 50 && round % 50 != 0)) || echo "round $round: $found"
done
((promised > 0)) || { echo "no write was ever acknowledged" >&2; exit 1; }
echo "$rounds kills, nothing lost"
