#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# check-size.sh [ROOT] - src/cli is small, because it has only commands, options and messages
set -euo pipefail

root=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
lines_max=5500

shopt -s nullglob
files=("$root"/src/cli/*.[ch])
if [ "${#files[@]}" = 0 ]; then
    echo "check-size.sh: no C file in '$root/src/cli'" >&2
    exit 2
fi
lines=$(cat "${files[@]}" | wc -l)
if [ "$lines" -gt "$lines_max" ]; then
    echo "check-size.sh: src/cli has $lines lines, more than $lines_max: move what does not print to the" \
        "modules above it" >&2
    exit 1
fi
