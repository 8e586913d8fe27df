#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# check-headers.sh [ROOT] - each public header compiles alone
#
# For each header below ROOT/include/uprof the script compiles a file that includes
# only this header. $CC is the compiler with its options. $PKG_CONFIG (default:
# pkg-config) finds GLib.
set -euo pipefail

root=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
read -ra cc <<<"${CC:-cc}"
read -ra glib <<<"$("${PKG_CONFIG:-pkg-config}" --cflags glib-2.0)"
warnings=(-Wall -Wextra -Wno-unused-parameter -Wmissing-prototypes -Wstrict-prototypes -Wundef)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

n_headers=0
failed=0
while IFS= read -r -d '' header; do
    n_headers=$((n_headers + 1))
    shown=${header#"$root/include/"}
    printf '#include "%s"\n' "$shown" >"$work/alone.c"
    if ! "${cc[@]}" -std=gnu11 -D_GNU_SOURCE "${warnings[@]}" "${glib[@]}" -I"$root/include" \
        -fsyntax-only -Werror "$work/alone.c"; then
        echo "check-headers.sh: include/$shown does not compile alone; it must include what it uses" >&2
        failed=1
    fi
done < <(find "$root/include/uprof" -name '*.h' -print0 | sort -z)

# A check without any header must not pass.
if [ "$n_headers" = 0 ]; then
    echo "check-headers.sh: no header in '$root/include/uprof'" >&2
    exit 2
fi
exit "$failed"
