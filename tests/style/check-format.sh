#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# check-format.sh [ROOT] - C files are formatted according to .clang-format
#
# $CLANG_FORMAT is the program (default: clang-format). Exits 77 (skipped) if it is missing.
set -euo pipefail

root=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
clang_format=${CLANG_FORMAT:-clang-format}

if ! command -v "$clang_format" >/dev/null; then
    echo "SKIP: '$clang_format' is not installed"
    exit 77
fi

cd "$root"
files=()
for folder in src include tests; do
    [ -d "$folder" ] || continue
    mapfile -d '' -t -O "${#files[@]}" files < <(find "$folder" -name '*.[ch]' -print0 | sort -z)
done
if [ "${#files[@]}" = 0 ]; then
    echo "check-format.sh: no C file below '$root'" >&2
    exit 2
fi

if ! "$clang_format" --style=file --dry-run -Werror "${files[@]}"; then
    echo "check-format.sh: to format a file: $clang_format -i FILE..." >&2
    exit 1
fi
