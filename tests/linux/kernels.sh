# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# kernels.sh - Debian's kernels for the tests' Linux guests
#
# Scripts source this file after setup.sh and cache.sh. The cache's folder linux/RELEASE keeps only
# the kernel's image of a package.

linux_cache=$cache_folder/linux
linux_seconds_to_fetch=600

# The series of kernels, and the Debian suite of each. Tests use the newest kernel of a series.
linux_series=(6.1 6.12)
declare -A linux_suites=([6.1]=bookworm [6.12]=bookworm-backports)

# The Debian architecture of the kernels: amd64 or arm64
linux_arch=${linux_arch:-amd64}

# linux_releases SERIES: reads names of packages and prints the releases of cloud kernels of SERIES,
# the newest last
linux_releases()
{
    sed -nE "s/^linux-image-(${1//./\\.}\.[0-9.+a-z-]*-cloud-$linux_arch)$/\1/p" | sort -V
}

# kept_linux SERIES: prints the newest release in the cache, if any
kept_linux()
{
    local folder
    for folder in "$linux_cache"/*-cloud-"$linux_arch"; do
        [ ! -d "$folder" ] || printf 'linux-image-%s\n' "${folder##*/}"
    done | linux_releases "$1" | tail -n 1
}

# linux_kernel RELEASE: prints the path of the kernel's image
linux_kernel()
{
    printf '%s/%s/vmlinuz\n' "$linux_cache" "$1"
}

# make_apt FOLDER SUITE: makes FOLDER/apt.conf, with which apt knows only Debian packages of SUITE,
# from this machine's source of Debian packages. The machine's own apt does not change.
make_apt()
{
    local archive
    archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
        'Origin: Debian' 'Label: Debian' 'Component: main' | sort -u | head -n 1)
    if [ -z "$archive" ]; then
        complain "apt does not know where Debian's packages are (try: apt-get update)"
        return 1
    fi
    mkdir -p "$1"/{state/lists/partial,cache/archives/partial}
    : >"$1/status"
    printf 'deb [signed-by=%s] %s %s main\n' /usr/share/keyrings/debian-archive-keyring.gpg \
        "$archive" "$2" >"$1/sources.list"
    cat >"$1/apt.conf" <<CONF
Dir::State "$1/state";
Dir::State::status "$1/status";
Dir::Cache "$1/cache";
Dir::Etc::SourceList "$1/sources.list";
Dir::Etc::SourceParts "/dev/null";
Acquire::Languages "none";
APT::Architecture "$linux_arch";
APT::Architectures "$linux_arch";
APT::Sandbox::User "root";
CONF
    APT_CONFIG=$1/apt.conf try_often apt-get -q -o APT::Update::Error-Mode=any update
}

# take_linux RELEASE FOLDER: fetches the release's package, which apt verifies, and puts the kernel's
# image into FOLDER
take_linux()
{
    (
        cd "$2" && try_often apt-get -q -o APT::Sandbox::User=root download "linux-image-$1" &&
            dpkg-deb --fsys-tarfile "linux-image-$1"_*.deb |
            tar -x --strip-components=2 "./boot/vmlinuz-$1" && rm -f ./*.deb &&
            mv "vmlinuz-$1" vmlinuz && chmod 755 .
    )
}

# fetch_linux SERIES: fetches Debian's newest kernel of the series, unless the cache has it
fetch_linux()
{
    local suite=${linux_suites[$1]} release apt_config=${APT_CONFIG:-} apt
    need_indexes bookworm || return 1
    if [ "$suite" != bookworm ] || [ "$linux_arch" != "$(dpkg --print-architecture)" ]; then
        apt=$(mktemp -d) || return 1
        at_exit rm -rf "$apt"
        make_apt "$apt" "$suite" || return 1
        apt_config=$apt/apt.conf
    fi
    release=$(APT_CONFIG=$apt_config apt-cache pkgnames "linux-image-$1." | linux_releases "$1" |
        tail -n 1)
    if [ -z "$release" ]; then
        complain "there is no cloud kernel $1 in Debian $suite"
        return 1
    fi
    APT_CONFIG=$apt_config make_once "$linux_cache/$release" "the kernel $release" \
        "$linux_seconds_to_fetch" take_linux "$release"
}
