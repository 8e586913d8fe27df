#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# killstorm.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - runs end in many ways, and processes of runs are
# killed: the guest runs again within a second, or at once with access `direct`. killstorm.py and
# killdirect.py do the work.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

# Under emulation the tested code is the same, so fewer rounds are enough. $UPROF_LIVE_KILLS says
# how often each process of a run is killed.
declare -A many=([TCG]=10 [KVM]=40 [DIRECT]=100) few=([TCG]=2 [KVM]=8 [DIRECT]=0)
kills=${UPROF_LIVE_KILLS:-${many[$way]}}
kills_of_others=${UPROF_LIVE_KILLS:-${few[$way]}}
others=$((kills < 20 ? 1 : kills / 20))
names=("${guest_prefix}storm1-$way" "${guest_prefix}storm2-$way")

# storm WAY ROUNDS: ends ROUNDS runs in this way
storm()
{
    rm -rf "$work/out.d"
    mkdir "$work/out.d"
    python3 "$here/killstorm.py" "$program" "$libvirt_uri" "$work/out.d" "$work/outages" \
        "$counter_at" "$1" "$2" "${names[@]}" || fail "kill storm: $1"
}

storm_direct()
{
    local name qemus=()
    for name in "${names[@]}"; do
        qemus+=("$(qemu_pid "$name")" "$name")
    done
    mkdir "$work/out.d"
    python3 "$here/killdirect.py" "$program" "$libvirt_uri" "$work/out.d" "$work/outages" \
        "$counter_at" "$kills" "$kills_of_others" "${qemus[@]}" || fail 'kill storm'
}

# The test has its own daemon, because the daemon may crash.
# shellcheck disable=SC2119
need_own_daemon
counter_at=0x$(nm "$guest64" | awk '$3 == "uprof_counter" { print $1 }')
for name in "${names[@]}"; do
    boot "$name" split
done

start_keeper

if [ "$way" = DIRECT ]; then
    storm_direct
else
    storm kill "$kills"
    for kind in guardian spawner worker; do
        storm "$kind" "$kills_of_others"
    done
    for kind in group term int stop hangup; do
        storm "$kind" "$others"
    done
fi
for name in "${names[@]}"; do
    must_be_free "$name"
    must_run "$name"
done
