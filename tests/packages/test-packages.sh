#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-packages.sh [GUESTS] - builds, installs, uses and removes the Debian packages of this tree
#
# Builds the packages twice from the files that git would commit, in folders of different names. Both
# builds must give the same bytes. The first build is kept in the cache, for the KVM lab. Installs the packages into a Debian 12 that has their dependencies and
# systemd. That Debian is made once, as root, and kept in the cache. The installed program then
# samples guests on a libvirtd outside of that Debian. GUESTS is the folder of the guests' images.
# Prints TAP.
set -euo pipefail

script_name=tests/packages
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=tests/lib/setup.sh
source "$root/tests/lib/setup.sh"
# shellcheck source=tests/lib/cache.sh
source "$root/tests/lib/cache.sh"
# This file has debian_sources and $debian_suite.
# shellcheck source=tests/lib/debian-root.sh
source "$root/tests/lib/debian-root.sh"
# shellcheck source=tests/packages/build.sh
source "$root/tests/packages/build.sh"

# The dependencies of the packages: dpkg refuses the packages if one is missing here. systemd is only
# needed for systemd-analyze.
root_packages=(
    libc6 libdw1 libelf1 libglib2.0-0 libjson-glib-1.0-0 liblzma5 libpopt0 libseccomp2 libvirt0 libxml2 libzydis4.0 zlib1g
    libdebuginfod1 libcurl4 libxencall1 libxenforeignmemory1 libxenstore4 libxentoollog1
    systemd
)
seconds_to_make_root=900

n_tests=0

# result NAME STATUS [FILE]: prints a line of TAP, and the last lines of FILE if the test failed
result()
{
    n_tests=$((n_tests + 1))
    if [ "$2" = 0 ]; then
        printf 'ok %d %s\n' "$n_tests" "$1"
        return
    fi
    printf 'not ok %d %s\n' "$n_tests" "$1"
    [ -z "${3:-}" ] || tail -n 40 "$3" | sed 's/^/# /'
    n_failed=$((n_failed + 1))
}
n_failed=0

# check NAME COMMAND [ARGUMENT...]: a test that passes if COMMAND succeeds
check()
{
    local name=$1 status=0
    shift
    "$@" >"$work/check.log" 2>&1 || status=$?
    result "$name" "$status" "$work/check.log"
}

# skip NAME WHY
skip()
{
    n_tests=$((n_tests + 1))
    printf 'ok %d %s # SKIP %s\n' "$n_tests" "$1" "$2"
}

skip_all()
{
    printf '1..0 # SKIP %s\n' "$*"
    exit 0
}

# fill_root DIR: installs that Debian in DIR/tree
fill_root()
{
    chmod 755 "$1"
    copy_base "$1/tree" && install_in "$1/tree" "${root_packages[@]}"
}

# make_root: makes the Debian for the packages, unless it exists; sets $base
make_root()
{
    local key
    key=$({
        printf '%s\n' "$debian_suite" "${root_packages[@]}"
        cat "$root/tests/lib/debian-root.sh"
    } | sha256sum)
    base=$cache_folder/packages/${key:0:16}
    make_once "$base" 'a Debian to install packages into' "$seconds_to_make_root" fill_root
}

# start_build DIR: builds the packages in the background; sets $second
start_build()
{
    set -m
    build_packages_cached "$1" &
    second=$!
    set +m
    at_exit end_build "$second"
}

end_build()
{
    kill -TERM -- "-$1" 2>/dev/null
}

# in_root COMMAND [ARGUMENT...]: runs COMMAND in the Debian of the packages
in_root()
{
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root DEBIAN_FRONTEND=noninteractive \
        chroot "$tree" "$@" </dev/null
}

# list_root: lists the files of that Debian, without dpkg's records
list_root()
{
    (cd "$tree" && find . \( -path ./proc -o -path ./tmp -o -path ./debs -o -path ./run/systemd \
        -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache/ldconfig \) -prune \
        -o -print | sort)
}

same_packages()
{
    local deb status=0
    for deb in "$packages"/*.deb; do
        cmp "$deb" "$work/another-folder/$(basename "$deb")" || status=1
    done
    return "$status"
}

# start_lintian: starts lintian in the background, because it takes long; sets $linting
start_lintian()
{
    # Only errors count: a lintian of another release has other warnings.
    lintian --fail-on error --allow-root "$packages"/*.changes >"$work/lintian.log" 2>&1 </dev/null &
    linting=$!
    at_exit end_lintian
}

end_lintian()
{
    [ -z "$linting" ] || kill -TERM "$linting" 2>/dev/null
}

holds_only_module()
{
    local files
    files=$(dpkg-deb -c "$packages"/virt-uprof-xen_*.deb | awk '!/\/$/ { print $6 }')
    [ "$(grep -v '^./usr/share/doc/' <<<"$files" | xargs)" = \
        './usr/lib/x86_64-linux-gnu/virt-uprof/xen.so ./usr/lib/x86_64-linux-gnu/virt-uprof/xl.so' ] || {
        echo "$files"
        return 1
    }
    # Only names of domains of xl need a library of one version of Xen.
    dpkg-deb -f "$packages"/virt-uprof-xen_*.deb Recommends | grep -q libxenmisc
    ! dpkg-deb -f "$packages"/virt-uprof-xen_*.deb Depends | grep -i libxenmisc
    # Without the modules the program needs no library of Xen.
    ! dpkg-deb -f "$packages"/virt-uprof_*.deb Depends | grep -i xen
}

# The program itself never uses the network, so it links no client.
#
# holds_only_helper PACKAGE HELPER
holds_only_helper()
{
    local files
    files=$(dpkg-deb -c "$packages/$1"_*.deb | awk '!/\/$/ { print $6 }')
    [ "$(grep -v '^./usr/share/doc/' <<<"$files")" = "./usr/lib/x86_64-linux-gnu/virt-uprof/$2" ] || {
        echo "$files"
        return 1
    }
    ! dpkg-deb -f "$packages"/virt-uprof_*.deb Depends | grep -i 'debuginfod\|curl\|guestfs'
}

is_inactive()
{
    ! find "$tree/etc/systemd" "$tree/lib/systemd/system" -lname '*virt-uprof*' | grep . &&
        ! find "$tree/etc" -path '*cron*' -name '*uprof*' | grep .
}

verifies()
{
    local said
    said=$(in_root sh -c 'systemd-analyze verify --man=no /lib/systemd/system/virt-uprof-*' 2>&1) ||
        return 1
    # Messages about other units do not count.
    ! grep uprof <<<"$said"
}

lists_domain()
{
    in_root virt-uprof -c test:///default list | grep '^test '
}

# run_rounds: runs tests/live/rounds.sh with the installed program. Guests, the store and locks have
# the same paths inside and outside of that Debian. The mounts for that are in a mount namespace of
# their own, so that nothing outside is deleted through them.
run_rounds()
{
    cat >"$work/installed" <<SH
#!/bin/sh
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root LD_PRELOAD="\$LD_PRELOAD" \\
    UPROF_TEST_CLOCK="\$UPROF_TEST_CLOCK" LIBVIRT_DEFAULT_URI="\$LIBVIRT_DEFAULT_URI" \\
    chroot $(printf %q "$tree") /usr/bin/virt-uprof "\$@"
SH
    chmod 755 "$work/installed"
    install -d -m 700 /run/virt-uprof "$tree/run/virt-uprof"
    # shellcheck disable=SC2016 # The inner shell expands the variable.
    unshare -m --propagation private bash -ec '
        mount --bind /var/tmp "$0/var/tmp"
        mount --bind /run/virt-uprof "$0/run/virt-uprof"
        exec bash "$@"' "$tree" "$root/tests/live/rounds.sh" "$work/installed" "$guests" DIRECT \
        >"$work/rounds.log" 2>&1 </dev/null
}

# has_files FILE...: succeeds if each of these files is installed
has_files()
{
    local file status=0
    for file in "$@"; do
        [ -s "$tree/$file" ] || {
            echo "no '$file'"
            status=1
        }
    done
    return "$status"
}

use()
{
    local doc=usr/share/doc/virt-uprof
    check version in_root virt-uprof --version
    check list lists_domain
    check smoke in_root sh /debs/smoke
    check units verifies
    check inactive is_inactive
    check user in_root getent passwd virt-uprof
    check files has_files etc/virt-uprof.xml usr/lib/tmpfiles.d/virt-uprof.conf \
        usr/lib/sysusers.d/virt-uprof.conf \
        usr/share/man/man1/virt-uprof.1.gz usr/share/man/man5/virt-uprof.xml.5.gz \
        usr/share/bash-completion/completions/virt-uprof \
        usr/share/zsh/vendor-completions/_virt-uprof \
        usr/share/fish/vendor_completions.d/virt-uprof.fish "$doc/examples/crontab" \
        "$doc/examples/hooks/qemu.d/virt-uprof" "$doc/copyright"
    # This makes a store, which a purge must remove.
    check periodic in_root sh -ec '
        echo "<virt-uprof><collect connect=\"test:///default\"/></virt-uprof>" >/tmp/config.xml
        virt-uprof collect --config /tmp/config.xml -q
        virt-uprof prune --config /tmp/config.xml -q'
    check cron in_root sh -ec "
        grep -v '^#' /$doc/examples/crontab | grep root | sed 's/.* root //' >/tmp/cron
        [ \$(wc -l </tmp/cron) = 3 ] && LIBVIRT_DEFAULT_URI=test:///default sh -e /tmp/cron"
}

rounds()
{
    local status=0
    if [ -z "$guests" ]; then
        skip rounds 'no folder of guests was given'
        return
    fi
    run_group run_rounds || status=$?
    if [ "$status" = 77 ]; then
        skip rounds "$(sed -n 's/^SKIP: //p' "$work/rounds.log")"
    else
        result rounds "$status" "$work/rounds.log"
    fi
}

# enables: enables the timers as an administrator does, and checks that systemd finds the links
enables()
{
    in_root systemctl enable virt-uprof-collect.timer virt-uprof-prune.timer &&
        [ "$(find "$tree/etc/systemd" -lname '*virt-uprof*' | wc -l)" = 2 ] && verifies
}

leaves_configuration()
{
    [ -e "$tree/etc/virt-uprof.xml" ] && [ ! -e "$tree/usr/bin/virt-uprof" ]
}

# remove: a purge leaves no file behind, even if the timers were enabled
remove()
{
    check enable enables
    check remove-module in_root dpkg --purge virt-uprof-xen virt-uprof-debuginfod virt-uprof-push
    check list-without-module lists_domain
    check remove in_root dpkg --remove virt-uprof
    check configuration-stays leaves_configuration
    check purge in_root dpkg --purge virt-uprof
    list_root >"$work/after"
    check nothing-left diff "$work/before" "$work/after"
}

guests=${1:+$(realpath "$1")}
[ "$(id -u)" = 0 ] || skip_all "only root can make a Debian to install packages into"
[ "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" = "$debian_suite" ] ||
    skip_all "packages are built for Debian $debian_suite, and this is not one"
for tool in mmdebstrap dpkg-buildpackage dh lintian git; do
    command -v "$tool" >/dev/null || skip_all "'$tool' is not installed"
done
work=$(mktemp -d)
at_exit rm -rf "$work"
chmod 755 "$work"

make_root >"$work/root.log" 2>&1 && status=0 || status=$?
result root "$status" "$work/root.log"
[ "$status" = 0 ] || exit 1
make_packages_once >"$work/build.log" 2>&1 && status=0 || status=$?
result build "$status" "$work/build.log"
[ "$status" = 0 ] || exit 1
export_tree "$work/another-folder/virt-uprof"
# The first packages are tried while the second ones are built.
start_build "$work/another-folder"

tree=$work/tree
cp -a "$base/tree" "$tree"
mkdir "$tree/debs"
cp "$packages"/*.deb "$root/debian/tests/smoke" "$tree/debs/"
# libguestfs needs some hundred packages
rm "$tree/debs"/virt-uprof-guestfs*_*.deb
mount -t proc proc "$tree/proc"
at_exit umount -l "$tree/proc"
list_root >"$work/before"
start_lintian
check module-alone holds_only_module
check helper-alone holds_only_helper virt-uprof-debuginfod debuginfod-helper
check push-alone holds_only_helper virt-uprof-push push-helper
check disks-alone holds_only_helper virt-uprof-guestfs disk-helper
check install in_root sh -c 'dpkg -i /debs/*.deb'
use
rounds
remove
wait "$linting" && status=0 || status=$?
linting=
result lintian "$status" "$work/lintian.log"
wait "$second" && status=0 || status=$?
result build-again "$status" "$work/another-folder.log"
check reproducible same_packages
printf '1..%d\n' "$n_tests"
[ "$n_failed" = 0 ]
