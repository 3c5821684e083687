#!/usr/bin/env bash
# Builds Planloom and makes its Debian packages: planloom (the window), planloom-tools (command line and runner) and, where the
# CUDA toolkit is found, planloom-cuda (the plugin).
#
#   bash resources/package.sh [--to FOLDER] [--twice]
#
# They are written to build/packages, or to FOLDER. --twice builds everything again in another folder, and ends with status 1
# if a package differs in a byte. Their times are that of the last commit, or SOURCE_DATE_EPOCH where it is set.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

target=$root/build/packages
twice=0
while (($#)); do
    case $1 in
        --to) (($# > 1)) || die "--to expects a folder."; target=$(realpath -m -- "$2"); shift ;;
        --twice) twice=1 ;;
        -h | --help) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
        *) die "expected --to FOLDER or --twice, found \"$1\"." ;;
    esac
    shift
done

installPackages "Making Planloom's packages" "${buildPackages[@]}" dpkg-dev file

if [[ -z ${SOURCE_DATE_EPOCH:-} ]]; then
    SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$root/CHANGELOG.md")
fi
export SOURCE_DATE_EPOCH

# package FOLDER TARGET: builds in FOLDER, and writes packages to TARGET.
package()
{
    local folder=$1 to=$2
    configure "$folder" -DCMAKE_BUILD_TYPE=Release -DPLANLOOM_TESTS=OFF -DPLANLOOM_UNITY=ON -DCMAKE_INSTALL_PREFIX=/usr
    build "$folder"
    rm -rf "$to"
    mkdir -p "$to"
    say "Making packages in $to"
    if ! (cd "$folder" && umask 022 && cpack -G DEB -B "$to" >"$folder/cpack.log" 2>&1); then
        tail -n 20 "$folder/cpack.log" >&2
        die "the packages could not be made: see the lines above, and $folder/cpack.log for all of it."
    fi
    rm -rf "$to/_CPack_Packages"
}

package "$root/build/package" "$target"
if ((twice)); then
    package "$root/build/package-again" "$root/build/packages-again"
    for one in "$target"/*.deb; do
        cmp "$one" "$root/build/packages-again/${one##*/}" || die "$(basename "$one") differs when it is built again."
    done
    say "Built twice, the same bytes."
fi
for one in "$target"/*.deb; do
    say "$(du -h --apparent-size "$one" | tr '\t' ' ')"
done
say "Install them by: apt-get install ${target/#$PWD\//./}/*.deb"
