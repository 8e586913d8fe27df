# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# build.sh - builds the Debian packages of this tree
#
# Scripts source this file; $root is the tree.

# export_tree DIR: copies the files that git would commit to DIR
export_tree()
{
    mkdir -p "$1"
    git -c safe.directory='*' -C "$root" ls-files -z -co --exclude-standard --deduplicate |
        (cd "$root" && while IFS= read -rd '' file; do
            [ ! -e "$file" ] || printf '%s\0' "$file"
        done) | tar -C "$root" --null -T - -c | tar -x -C "$1"
}

# build_packages DIR: builds the packages of the tree in DIR/virt-uprof, into DIR. The build folder and the
# flags are those of tests/all, whose cache has most of the objects.
build_packages()
{
    (cd "$1/virt-uprof" && DEB_BUILD_OPTIONS='nocheck noautodbgsym parallel=2' DEB_CFLAGS_APPEND=-Werror \
        DH_OPTIONS=--builddirectory=build-all/gcc dpkg-buildpackage -b -us -uc) >"$1.log" 2>&1 </dev/null
}

# build_packages_cached DIR: builds them through ccache if it is installed and tests/all has set
# $CCACHE_DIR. The packages are built several times. The cache has an object for each preprocessed source,
# so a path or a date in a source still gives another object in another folder.
build_packages_cached()
{
    if [ -z "${CCACHE_DIR:-}" ] || ! command -v ccache >/dev/null; then
        build_packages "$1"
        return
    fi
    (
        unset CCACHE_DISABLE
        export CC='ccache gcc' CCACHE_NODIRECT=1
        build_packages "$1"
    )
}

seconds_to_make_packages=1800

# packages_key: prints a key of all that the packages are made of: the tree, and this machine's packages
packages_key()
{
    local files
    mapfile -td '' files < <(git -c safe.directory='*' -C "$root" ls-files -z -co --exclude-standard --deduplicate)
    {
        (cd "$root" && stat -c '%a %n' -- "${files[@]}" && sha256sum -- "${files[@]}") 2>/dev/null
        dpkg-query -W
    } | sha256sum | cut -c 1-16
}

# fill_packages DIR: builds the packages in DIR, and forgets those of other trees
fill_packages()
{
    find "$cache_folder/debs" -mindepth 1 -maxdepth 1 -type d ! -path "$1" -exec rm -rf {} +
    if ! { export_tree "$1/virt-uprof" && build_packages_cached "$1"; }; then
        tail -n 60 "$1.log"
        return 1
    fi
    mv "$1.log" "$1/log"
    rm -rf "$1/virt-uprof"
}

# make_packages_once: builds the packages, unless another test has built them from the same tree; sets
# $packages to their folder. Needs cache.sh.
make_packages_once()
{
    packages=$cache_folder/debs/$(packages_key)
    make_once "$packages" 'the packages' "$seconds_to_make_packages" fill_packages
}
