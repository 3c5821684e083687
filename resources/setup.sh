# Shared by app/run.sh, tests/run.sh, tests/bench/run.sh and tests/fuzz/run.sh, which source it: installing what is
# missing, configuring and building, with plain words for what goes wrong. Needs bash 4.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# What a build of everything needs on Debian 12; a script may install more.
buildPackages=(
    build-essential cmake ninja-build pkg-config # the tools
    ccache # makes second builds quick
    libonnx-dev libprotobuf-dev protobuf-compiler # reading models
    libdnnl-dev # fast products on CPU devices
    libmimalloc-dev # quick allocation of many small things
    zlib1g-dev # compressed .npz, session files
    nlohmann-json3-dev # JSON
    libsqlitecpp-dev libsqlite3-dev # session files
    libgraphviz-dev # laying out groups of operators
    libz3-dev # which rows hold together
    libyaml-cpp-dev # partition constraints of autodist
    qt6-base-dev qt6-svg-dev qt6-qpa-plugins fonts-dejavu-core # the window
)
testPackages=(libgtest-dev python3-pyflakes)

say() { printf '%s\n' "$*"; }

# Ends the script: what went wrong, then what to do about it.
die()
{
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    shift
    for line in "$@"; do
        printf '  %s\n' "$line" >&2
    done
    exit 1
}

# installPackages WHY PACKAGE...: installs those that are missing; quick where none is.
installPackages()
{
    local why=$1 missing=() package
    shift
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        # Another system: say what is needed, once, and let the configuration find out what is there.
        if [[ ! -e $root/build/not-debian ]]; then
            say "This is not Debian, so nothing is installed. $why needs what Debian 12 calls: $*"
            mkdir -p "$root/build" && touch "$root/build/not-debian"
        fi
        return 0
    fi
    local installed
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
    for package in "$@"; do
        [[ $'\n'$installed$'\n' == *$'\n'"$package installed"$'\n'* ]] || missing+=("$package")
    done
    ((${#missing[@]})) || return 0

    local asRoot=()
    if ((EUID != 0)); then
        command -v sudo >/dev/null || die "$why needs packages that are not installed, and you are neither root nor have sudo." \
            "Have them installed by: apt-get install ${missing[*]}"
        asRoot=(sudo)
    fi
    say "$why needs Debian packages that are missing; installing: ${missing[*]}"
    local log=$root/build/setup.log
    mkdir -p "$root/build"
    local apt=("${asRoot[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300
        -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
    : >"$log"
    if ! "${apt[@]}" update >>"$log" 2>&1; then
        sleep 3
        "${apt[@]}" update >>"$log" 2>&1 || say "The package lists could not be refreshed; trying with those that are there."
    fi
    if ! "${apt[@]}" install --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
        tail -n 15 "$log" >&2
        die "the packages could not be installed: see the lines above, and $log for all of it." \
            "A name that cannot be found means that this is not Debian 12 (bookworm) or newer, or that there is no network."
    fi
}

# Shows a build's progress, and how long the rest takes at the pace so far: one line that is rewritten on a terminal, one
# line for each tenth elsewhere. Reads ninja's output with the status "[done/all seconds] ". The pace of the first steps
# says little, so the estimate starts with the fifth second and the twentieth part.
showProgress()
{
    local onTerminal=0
    [[ -t 1 ]] && onTerminal=1
    awk -v terminal="$onTerminal" '
        function left(seconds) {
            if (seconds < 10) return "a few seconds left"
            if (seconds < 55) return "about " 10 * int((seconds + 5) / 10) " s left"
            return "about " int((seconds + 30) / 60) " min left"
        }
        match($0, /^\[[0-9]+\/[0-9]+ [0-9.]+\] /) {
            split(substr($0, 2, RLENGTH - 3), at, /[\/ ]/)
            done = at[1]; all = at[2]; seconds = at[3]
            line = sprintf("  building: %d of %d", done, all)
            if (seconds >= 5 && done < all && 20 * done >= all)
                line = line ", " left(seconds * (all - done) / done)
            if (terminal)
                printf "\r%-60s", line
            else if (all >= 10 && int(10 * done / all) > shown) {
                shown = int(10 * done / all)
                print line
            }
            fflush()
            any = 1
        }
        END { if (terminal && any) printf "\n" }'
}

# configure FOLDER OPTION...: runs CMake if the folder is new, was made for another source tree or other options.
# Afterwards ninja itself sees to changed CMakeLists.txt.
configure()
{
    local folder=$1 wanted
    shift
    wanted=$(printf '%s\n' "$root" "$@")
    if [[ -e $folder/build.ninja && -e $folder/configured && $(<"$folder/configured") == "$wanted" ]]; then
        return 0
    fi
    mkdir -p "$folder" || die "the build folder $folder cannot be made." "Check that there is room, and that you may write there."
    local launcher=()
    command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    say "Configuring in $folder"
    if ! cmake --fresh -S "$root" -B "$folder" -G Ninja "${launcher[@]}" "$@" >"$folder/configure.log" 2>&1; then
        tail -n 20 "$folder/configure.log" >&2
        die "the build could not be configured: see the lines above, and $folder/configure.log for all of it."
    fi
    printf '%s\n' "$wanted" >"$folder/configured"
}

# build FOLDER [TARGET...]: builds, with as many jobs as there are cores and memory for.
build()
{
    local folder=$1 jobs memory
    shift
    jobs=$(nproc)
    # A compilation takes up to 2 GiB.
    memory=$(awk '/^MemAvailable:/ { print int($2 / 2097152) }' /proc/meminfo 2>/dev/null || true)
    [[ -n $memory ]] && ((memory < jobs)) && jobs=$((memory > 0 ? memory : 1))
    # Found again wherever the tree lies: paths in what ccache keeps are relative. With precompiled headers it has to be told
    # that macros and times in them are taken care of.
    export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
    if ! NINJA_STATUS='[%f/%t %e] ' ninja -C "$folder" -j "$jobs" "$@" 2>&1 | tee "$folder/build.log" | showProgress; then
        # What failed first, with what the compiler said of it.
        awk '/^FAILED:/ { ++failed } failed == 1 && ++line <= 40' "$folder/build.log" >&2
        grep -q '^FAILED:' "$folder/build.log" || tail -n 15 "$folder/build.log" >&2
        die "the build failed: see the lines above, and $folder/build.log for all of it."
    fi
}

# runOfBench PROGRAM ARGUMENT...: builds one of tests/bench, optimised, and runs it; what building says is not its output.
runOfBench()
{
    local program=$1 folder=$root/build/bench
    shift
    {
        installPackages "Planloom's benchmarks" "${buildPackages[@]}" "${testPackages[@]}" libbenchmark-dev
        configure "$folder" -DCMAKE_BUILD_TYPE=Release -DPLANLOOM_BENCH=ON -DPLANLOOM_TESTS=OFF -DPLANLOOM_UNITY=ON
        build "$folder" "$program"
    } >&2
    "$folder/bench/$program" "$@"
}
