# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# debian-root.sh - makes folders with a Debian system, from Debian packages
#
# Scripts source this file after setup.sh and cache.sh. Each such system begins with a copy of one small
# system, which is made once and kept in the cache, because making a system takes much longer than
# copying it. Only root can do this.

debian_suite=bookworm
debian_seconds_to_make=1800
# Packages that nearly all of these systems have, in addition to the least that Debian needs.
debian_base_packages=(systemd-sysv udev kmod procps)

# debian_sources: prints the files that tell this machine's apt where Debian's packages are; all systems
# are made from the same sources
debian_sources()
{
    debian_indexes "$debian_suite" '$(SOURCESENTRY)' | sed 's/:[0-9]*$//' | sort -u
}

# fill_base DIR: makes the small system in DIR/tree. DIR/proxy has apt's settings of a proxy: those of
# this machine.
fill_base()
{
    local sources=() options=()
    chmod 755 "$1"
    need_indexes "$debian_suite" || return 1
    mapfile -t sources < <(debian_sources)
    apt-config dump | grep -E '^Acquire::https?::Proxy' >"$1/proxy" || true
    [ ! -s "$1/proxy" ] || options+=("--aptopt=$1/proxy")
    try_often bootstrap "$1/tree" --quiet --variant=minbase --aptopt='Apt::Install-Recommends "false"' \
        --dpkgopt='path-exclude=/usr/share/'{doc,man,locale,info}'/*' "${options[@]}" \
        --include="$(IFS=,; echo "${debian_base_packages[*]}")" "$debian_suite" "$1/tree" "${sources[@]}" &&
        # dpkg must not leave out files of packages that are installed later.
        rm "$1"/tree/etc/dpkg/dpkg.cfg.d/*mmdebstrap*
}

# make_base: makes the small system, unless it exists; sets $debian_base
make_base()
{
    local key
    key=$({
        printf '%s\n' "$debian_suite" "${debian_base_packages[@]}"
        cat "${BASH_SOURCE[0]}"
    } | sha256sum)
    debian_base=$cache_folder/debian-root/${key:0:16}
    make_once "$debian_base" 'a small Debian' "$debian_seconds_to_make" fill_base
}

# install_in DIR ARGUMENT...: runs `apt-get install ARGUMENT...` in DIR. Starts no services. Runs in a mount
# namespace of its own, so that no mount is left.
install_in()
{
    # shellcheck disable=SC2016 # the inner shell expands these
    try_often unshare --mount --propagation private bash -euc '
        mount -t proc proc "$1/proc"
        mount -t tmpfs tmpfs "$1/tmp"
        printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d"
        chmod 755 "$1/usr/sbin/policy-rc.d"
        [ ! -e /etc/resolv.conf ] || cp -L /etc/resolv.conf "$1/etc/"
        inside=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/root DEBIAN_FRONTEND=noninteractive
            chroot "$1" apt-get -q)
        "${inside[@]}" update
        "${inside[@]}" -y -o Dpkg::Options::=--force-unsafe-io install "${@:2}"
        "${inside[@]}" clean
        rm -rf "$1"/var/lib/apt/lists/* "$1/usr/sbin/policy-rc.d" "$1/etc/resolv.conf"
    ' - "$@" </dev/null
}

# copy_base DIR: makes DIR, a copy of the small system
copy_base()
{
    make_base && cp -a "$debian_base/tree" "$1"
}
