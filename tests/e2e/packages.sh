#!/usr/bin/env bash
# Tries the packages of resources/package.sh in a bare Debian 12: installs them with apt, plans, runs with --check, opens the
# window under Xvfb and takes a picture of it, removes them, and looks for what they left behind.
#
#   bash tests/e2e/packages.sh FOLDER PICTURE.png [BARE]
#
# FOLDER has the packages. BARE is a folder that debootstrap made (--variant=minbase bookworm); without it one is made. Times
# and sizes are printed. Ends with 1 where something does not hold. Needs root, overlayfs and a network.
set -euo pipefail

(($# >= 2)) || { echo "packages: expected a folder of packages and the name of a picture" >&2; exit 2; }
packages=$(realpath "$1")
picture=$(realpath -m "$2")
((EUID == 0)) || { echo "packages: only root may make a root folder of its own; start it with sudo" >&2; exit 2; }
work=$(mktemp -d)
bare=${3:-$work/bare}
if [[ ! -e $bare/etc/debian_version ]]; then
    command -v debootstrap >/dev/null || { echo "packages: debootstrap is missing (apt-get install debootstrap)" >&2; exit 2; }
    debootstrap --variant=minbase bookworm "$bare" >"$work/debootstrap.log"
fi
root=$work/root
mkdir -p "$work"/{upper,below} "$root"
mount -t tmpfs none "$work/below"
mkdir "$work"/below/{upper,work}
mount -t overlay overlay -o "lowerdir=$bare,upperdir=$work/below/upper,workdir=$work/below/work" "$root"
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
cleanUp()
{
    umount "$root/proc" "$root/dev" "$root" "$work/below" || true
    rm -rf "$work"
}
trap cleanUp EXIT
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir -p "$root/packages"
cp "$packages"/*.deb "$root/packages"

# No variable of this machine but the settings of its network.
inside()
{
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} bash -euo pipefail -c "$1"
}
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f s", b - a }'; }
fail() { echo "packages: $*" >&2; exit 1; }

inside 'apt-get -q update >/dev/null'
# What has to be there before: a display of one's own, to look at the window as a person does.
inside 'apt-get -q -y install --no-install-recommends xvfb xauth >/dev/null 2>&1'
inside 'find / -xdev \( -path /proc -o -path /dev -o -path /packages -o -path /var -o -path /tmp \) -prune -o -print | sort >/tmp/before'

for one in "$packages"/*.deb; do
    echo "$(basename "$one"): $(stat -c %s "$one") bytes, installed $(dpkg-deb -f "$one" Installed-Size) KiB"
done
inside 'cd /packages; apt-get -q -y --download-only --no-install-recommends install ./planloom-tools_*.deb ./planloom_*.deb >/dev/null 2>&1'
start=$(now)
inside 'cd /packages; apt-get -q -y --no-install-recommends install ./planloom-tools_*.deb ./planloom_*.deb >/tmp/apt.log 2>&1' ||
    { tail -n 20 "$root/tmp/apt.log" >&2; fail "apt did not install them"; }
echo "installed, with what they depend on, once that is downloaded: $(since "$start")"
inside 'xvfb-run -a -s "-screen 0 1600x1000x24" planloom --sample gpt2 --size 1600x1000 --screenshot /tmp/first.png'
echo "from package to first picture: $(since "$start")"
mkdir -p "$(dirname "$picture")"
cp "$root/tmp/first.png" "$picture"

model="'zoo:gpt?layers=2&hidden=32&heads=4&seq=16&batch=8&vocab=64'"
start=$(now)
inside "cd /tmp; planloom-cli solve $model --cluster cpu:4 --gallery 3d:dp=2,tp=2 --out plan.json >solve.txt; planloom-cli verify plan.json"
inside 'cd /tmp; planloom-cli run plan.json --steps 2 --random-weights 1 --check'
echo "solve, verify, run with --check: $(since "$start")"
for program in planloom planloom-cli planloom-exec; do
    said=$(inside "$program --version")
    [[ $said == "$program $(dpkg-deb -f "$(ls "$packages"/planloom-tools_*.deb)" Version)" ]] || fail "$said is not the packages' version"
done
inside 'planloom-cli doctor'

if ls "$packages"/planloom-cuda_*.deb >/dev/null 2>&1; then
    said=$(inside 'cd /packages; apt-get -q -y --no-install-recommends install ./planloom-cuda_*.deb' 2>&1) ||
        { echo "$said" >&2; fail "the plugin's package did not install without a GPU"; }
    grep -q 'does nothing yet' <<<"$said" || { echo "$said" >&2; fail "the plugin's package does not say why it does nothing"; }
    sed -n '/does nothing yet/,$p' <<<"$said"
    inside "planloom-cli run $model --devices 2 --random-weights 1 --backend cuda" 2>&1 && fail "a run on GPUs succeeded without one"
fi

inside 'apt-get -q -y purge "planloom*" >/dev/null 2>&1; apt-get -q -y autoremove --purge >/dev/null 2>&1'
left=$(inside 'find / -xdev -name "*planloom*" -not -path "/packages*" -not -path "/proc/*" -not -path "/tmp/*"')
[[ -z $left ]] || fail "left behind: $left"
inside 'find / -xdev \( -path /proc -o -path /dev -o -path /packages -o -path /var -o -path /tmp \) -prune -o -print | sort >/tmp/after; comm -13 /tmp/before /tmp/after | grep -v -e "/etc/ld.so.cache" -e "^/usr/share/mime/" -e "__pycache__"' >"$work/left" || true
[[ ! -s $work/left ]] || echo "files that other packages left: $(wc -l <"$work/left"), of them: $(head -n 5 "$work/left" | tr '\n' ' ')"
echo "removed; nothing of Planloom is left"
