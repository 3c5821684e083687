#!/usr/bin/env bash
# A new user's first minutes, with the mouse alone: from the start of Planloom to an own improvement of the sample plan.
#
#   bash tests/e2e/newcomer.sh                    starts `bash app/run.sh` (builds what is missing)
#   bash tests/e2e/newcomer.sh build/run/bin      takes the programs of this folder
#   THEME=dark bash tests/e2e/newcomer.sh ...     light (as it is), dark; SCALE=2 doubles everything
#
# Each step is a picture in tests/e2e/newcomer. Ends with 1 if the step time of the session did not become shorter.
# Needs Xvfb, xdotool and imagemagick.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=${1:-}
theme=${THEME:-light}
scale=${SCALE:-1}
pictures=${PICTURES:-$here/newcomer}
suffix=$theme
[[ $scale == 1 ]] || suffix=$theme-${scale}x
for tool in Xvfb xdotool import convert; do
    command -v "$tool" > /dev/null || { echo "newcomer: $tool is missing (apt-get install xvfb xdotool imagemagick)" >&2; exit 2; }
done

work=$(mktemp -d)
width=$((1600 * scale))
height=$((1000 * scale))
display=:$((90 + RANDOM % 400))
Xvfb "$display" -screen 0 "${width}x${height}x24" > /dev/null 2>&1 &
server=$!
cleanUp()
{
    kill "${window:-}" "$server" 2> /dev/null || true
    rm -rf "$work"
}
trap cleanUp EXIT
sleep 1
export DISPLAY=$display QT_QPA_PLATFORM=xcb QT_SCALE_FACTOR=$scale XDG_DATA_HOME=$work/data XDG_CONFIG_HOME=$work/config
mkdir -p "$pictures"

options=(--sample gpt2 --theme "$theme" --sessions "$work/sessions" --size 1600x1000)
if [[ -n $programs ]]; then
    "$programs/planloom" "${options[@]}" > "$work/log" 2>&1 &
    cli=$programs/planloom-cli
else
    bash "$here/../../app/run.sh" "${options[@]}" > "$work/log" 2>&1 &
    cli=$here/../../build/run/bin/planloom-cli
fi
window=$!

count=0
# Flat colours, few of them: a picture of a window stays small.
shot()
{
    import -window root png:- | convert - +dither -colors 96 -define png:compression-level=9 "png8:$pictures/$(printf %02d "$count")-$1-$suffix.png"
}
say() { count=$((count + 1)); printf '%2d. %s\n' "$count" "$1"; }
at() { echo $(($1 * scale)) $(($2 * scale)); }
click() { xdotool mousemove $(at "$1" "$2") click 1; sleep 1; }
drag() # from, to, and a picture in mid-air
{
    xdotool mousemove $(at "$1" "$2") mousedown 1
    for share in 1 2 3 4 5 6 7 8; do
        xdotool mousemove $(at $(($1 + ($3 - $1) * share / 8)) $(($2 + ($4 - $2) * share / 8)))
        sleep 0.1
    done
    sleep 1.5
    shot "$5"
}

for _ in $(seq 600); do # the first build may take minutes
    xdotool search --onlyvisible --name Planloom > /dev/null 2>&1 && break
    sleep 1
done
sleep 4
shot start

. "$here/newcomer-steps.sh"

sleep 2
session=$(find "$work/sessions" -name '*.planloom' | head -1)
[[ -n $session ]] || { echo "newcomer: no session was kept" >&2; exit 1; }
"$cli" session "$session" --json > "$work/session.json"
sample=$here/../../resources/samples/1-gpt2.json
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$sample" "$1"; }
"$cli" solve "$(field model)" --cluster "$(field cluster):$(field devices)" --gallery "$(field gallery)" --json > "$work/before.json"
python3 - "$work/before.json" "$work/session.json" "$count" << 'END'
import json, sys
before = json.load(open(sys.argv[1]))["step_seconds"]
after = [s["step_seconds"] for s in json.load(open(sys.argv[2]))["steps"] if s.get("step_seconds")][-1]
print("step %.3g ms -> %.3g ms in %s actions" % (before * 1e3, after * 1e3, sys.argv[3]))
sys.exit(0 if after < before and int(sys.argv[3]) <= 12 else 1)
END
