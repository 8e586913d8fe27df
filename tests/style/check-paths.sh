#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# check-paths.sh [ROOT] - no file under version control has paths or hosts of one machine
#
# Files have no absolute path into a home or work folder. They also name no host of
# packages: neither a host that looks like a mirror nor a source of this machine's apt.
# Exits 77 (skipped) without git, or if ROOT is not a checkout.
set -euo pipefail

root=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}

# The checkout may belong to a user other than the one who runs the tests.
git=(git -c safe.directory='*' -C "$root")

if ! command -v git >/dev/null; then
    echo "SKIP: 'git' is not installed"
    exit 77
fi
if [ "$("${git[@]}" rev-parse --show-prefix 2>/dev/null || echo none)" != "" ]; then
    echo "SKIP: '$root' is not a git checkout"
    exit 77
fi

# An absolute path has no word or variable before its first slash, except the letter of an
# option.
paths='(^|[^A-Za-z0-9_.}~*/-]|(^|[[:space:]"])-[A-Za-z])/(root|work|Users|home/[A-Za-z0-9_][A-Za-z0-9_.-]*)/'
mirrors='://([a-z]+@)?(deb|ftp[0-9]*|archive|security|snapshot|mirrors?|registry|proxy|pypi|index|apt)'
mirrors+='\.[a-z0-9-]+\.[a-z0-9.-]+'

# apt_hosts: prints the hosts of this machine's package sources, one per line
apt_hosts()
{
    find /etc/apt -name '*.list' -o -name '*.sources' 2>/dev/null |
        while IFS= read -r file; do
            grep -hoE '^[^#]*://[^/ ]+' "$file" 2>/dev/null || true
        done | sed -E 's,.*://([^@]*@)?,,; s,:[0-9]+$,,' | sort -u
}

failed=0

# refuse WHY GREP-ARGUMENT...: prints the lines that git grep finds
refuse()
{
    local why=$1 status=0
    shift
    "${git[@]}" grep -nI "$@" || status=$?
    if [ "$status" = 0 ]; then
        echo "check-paths.sh: $why" >&2
        failed=1
    elif [ "$status" != 1 ]; then
        exit 2
    fi
}

refuse 'write paths relative to the file or to a variable' -E -e "$paths"
refuse 'name packages, not the hosts they come from' -E -e "$mirrors"
while IFS= read -r host; do
    # A name without a dot, such as 'localhost', is not a mirror.
    [[ $host == *.* ]] || continue
    refuse 'name packages, not the hosts they come from' -F -e "$host"
done < <(apt_hosts)
exit "$failed"
