#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# shell.sh - a loop that starts processes, for ever
while :; do
    i=0
    while [ "$i" -lt 500 ]; do
        i=$((i + 1))
    done
    ls -l /usr/bin | sort | tail -n 1 >/dev/null
done
