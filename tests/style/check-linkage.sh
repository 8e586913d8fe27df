#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# check-linkage.sh PROGRAM [XEN-MODULE] - the program needs no Xen library, the
# Xen module no libvirt
#
# Looks at what each names itself (readelf) and at all that this brings with it
# (ldd), so that a library cannot come in by way of another.
set -euo pipefail

usage='usage: check-linkage.sh PROGRAM [XEN-MODULE]'
program=${1:?$usage}
module=${2:-}

# libraries_of FILE: the file names of all libraries that FILE needs, one a line
libraries_of()
{
    local dynamic loaded
    if ! dynamic=$(LC_ALL=C readelf -dW "$1"); then
        echo "check-linkage.sh: '$1' is no ELF file" >&2
        return 2
    fi
    sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' <<<"$dynamic"
    # Nothing to load for a static file, where ldd fails.
    if grep -q '(NEEDED)' <<<"$dynamic"; then
        loaded=$(LC_ALL=C ldd "$1")
        awk '$2 == "=>" { print $1 }' <<<"$loaded"
    fi
}

# refuse FILE PATTERN WHY: fails if FILE needs a library whose name PATTERN begins
refuse()
{
    local libraries found
    libraries=$(libraries_of "$1") || exit 2
    found=$(grep -E "^($2)" <<<"$libraries" | sort -u | tr '\n' ' ') || true
    if [ -n "$found" ]; then
        echo "check-linkage.sh: '${1##*/}' needs ${found% }; $3" >&2
        failed=1
    fi
}

failed=0
refuse "$program" 'libxen|libxl|libxlutil' 'only the Xen module may need a Xen library'
if [ -n "$module" ]; then
    refuse "$module" 'libvirt' 'the Xen module does without libvirt'
fi
exit "$failed"
