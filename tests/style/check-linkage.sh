#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# check-linkage.sh PROGRAM [XEN-MODULE [XL-MODULE]] - the program needs no Xen library, the
# Xen modules do not need libvirt, and only XL-MODULE needs a library of one version of Xen
#
# Reads the libraries that each file names (readelf) and all libraries that they need in
# turn (ldd).
set -euo pipefail

usage='usage: check-linkage.sh PROGRAM [XEN-MODULE [XL-MODULE]]'
program=${1:?$usage}
module=${2:-}
xl_module=${3:-}

# libraries_of FILE: prints the file names of all libraries that FILE needs, one per line
libraries_of()
{
    local dynamic loaded
    if ! dynamic=$(LC_ALL=C readelf -dW "$1"); then
        echo "check-linkage.sh: '$1' is not an ELF file" >&2
        return 2
    fi
    sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' <<<"$dynamic"
    # ldd fails for a static file, which needs no library.
    if grep -q '(NEEDED)' <<<"$dynamic"; then
        loaded=$(LC_ALL=C ldd "$1")
        awk '$2 == "=>" { print $1 }' <<<"$loaded"
    fi
}

# refuse FILE PATTERN WHY: reports a fault if FILE needs a library whose name begins with PATTERN
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
    refuse "$module" 'libvirt' 'the Xen module must not need libvirt'
    refuse "$module" 'libxenlight|libxenctrl|libxlutil' 'the Xen module must run on any version of Xen'
fi
if [ -n "$xl_module" ]; then
    refuse "$xl_module" 'libvirt' 'the module for domains of xl must not need libvirt'
fi
exit "$failed"
