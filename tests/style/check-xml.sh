#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# check-xml.sh - the schema agrees with the installed configuration and the examples: all of
# them are valid, except those named bad-*, which must be invalid
# usage: check-xml.sh SOURCE_ROOT
set -u

root=$1
schema=$root/xml/virt-uprof.rng
failed=0
n=0

if ! command -v xmllint >/dev/null; then
    echo 'SKIP: xmllint is not installed'
    exit 77
fi
for example in "$root"/xml/virt-uprof.xml "$root"/xml/examples/*.xml; do
    n=$((n + 1))
    valid=yes
    xmllint --nonet --noout --relaxng "$schema" "$example" 2>/dev/null || valid=no
    case $(basename "$example") in
    bad-*) wanted=no ;;
    *) wanted=yes ;;
    esac
    if [ "$valid" != "$wanted" ]; then
        echo "$example: validates: $valid, should be: $wanted"
        failed=1
    fi
done
if [ "$n" -lt 18 ]; then
    echo "only $n examples found"
    failed=1
fi
exit "$failed"
