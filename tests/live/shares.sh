#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# shares.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - functions have their shares of the time, 10, 30 and
# 60 %, also in samples: within 2 points at 5000 samples, and for access `direct` within 1 point at
# 20000
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

samples_wanted=${UPROF_LIVE_SAMPLES:-$([ "$way" = DIRECT ] && echo 20000 || echo 5000)}
rate=("${fast[@]}")
[ "$way" != DIRECT ] || rate=(-F 2500 --budget 100 "${patient[@]}")
seconds_max=600
name=${guest_prefix}shares-$way

need_daemon
boot "$name" split
files=()
n=0
enough=$samples_wanted
# About one of a hundred runs differs by more, by chance. Then three times as many samples decide.
are_right()
{
    python3 "$here/result.py" shares "$name" "$samples_wanted" "${files[@]}"
}

while [ "$n" -lt "$enough" ]; do
    [ "$SECONDS" -lt "$seconds_max" ] || fail "$n samples in $SECONDS s"
    files+=("$work/${#files[@]}.folded")
    profile 0 "${rate[@]}" -d 10 -o "${files[-1]}" -o "$work/last.meta.json" "$name"
    n=$(result total "${files[@]}")
    must_run "$name"
    result sidecar "$work/last.meta.json" "ended_by == 'duration'" "access == '$access'" \
        "stacks['complete'] == samples['running']" "images[0]['matched']" "samples['idle'] == 0"
    [ "$n" -lt "$samples_wanted" ] || are_right || enough=$((3 * samples_wanted))
done
are_right || fail 'shares are not right'
no_leftovers "$work"
