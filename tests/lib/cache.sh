# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# cache.sh - caches files that tests make or fetch from Debian packages
#
# Scripts source this file after setup.sh. The files in the cache may be deleted at any time.

cache_folder=${XDG_CACHE_HOME:-$HOME/.cache}/virt-uprof

# debian_indexes SUITE FORMAT: prints FORMAT (apt-get(8), indextargets) for each source from which
# this machine gets Debian packages of SUITE, including updates
debian_indexes()
{
    apt-get indextargets --format "\$(CODENAME) $2" 'Created-By: Packages' 'Origin: Debian' |
        awk -v suite="$1" 'index($1, suite) == 1 { sub(/^[^ ]* /, ""); print }' |
        sort -u
}

has_indexes()
{
    [ -n "$(debian_indexes "$1" x)" ]
}

# fetch_indexes SUITE: fetches the indexes of all of apt's sources; sources other than SUITE may fail
fetch_indexes()
{
    apt-get -q update
    has_indexes "$1"
}

# need_indexes SUITE: fetches the indexes unless apt has them
need_indexes()
{
    has_indexes "$1" || try_often fetch_indexes "$1" && return 0
    complain "apt knows no packages of Debian $1 here (try: apt-get update)"
    return 1
}

# bootstrap TARGET ARGUMENT...: runs `mmdebstrap ARGUMENT...`; TARGET is one of the arguments
bootstrap()
{
    rm -rf "$1"
    mmdebstrap "${@:2}" </dev/null
}

# make_once FOLDER WHAT SECONDS COMMAND [ARGUMENT...]: makes FOLDER unless it exists. Runs `COMMAND
# ARGUMENT... WORK`, and renames the new folder WORK to FOLDER afterwards. If another process is
# making a folder beside FOLDER, waits for it.
make_once()
{
    local folder=$1 what=$2 seconds=$3 beside work lock started=$SECONDS
    shift 3
    beside=$(dirname "$folder")
    mkdir -p "$beside" || return 1
    exec {lock}>"$beside/lock"
    if ! flock -n "$lock"; then
        say "waiting for another run that makes $what (at most $seconds s)"
        flock -w "$seconds" "$lock" || {
            complain "$what is still being made by somebody else"
            return 1
        }
    fi
    if [ ! -e "$folder" ]; then
        say "making $what, once, in $folder"
        work=$(mktemp -d "$beside/making.XXXXXX") || return 1
        at_exit rm -rf "$work"
        if ! "$@" "$work" >"$beside/log" 2>&1; then
            complain "cannot make $what; the end of $beside/log:"
            tail -n 30 "$beside/log" >&2
            return 1
        fi
        mv "$work" "$folder" || return 1
        say "made $what in $((SECONDS - started)) s"
    fi
    exec {lock}>&-
}
