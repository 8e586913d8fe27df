#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# linux-direct.sh PROGRAM GUESTS DIRECT SERIES - a Linux guest of two vCPUs with four levels of
# page tables and with isolation: each vCPU's samples are of the processes that run there, with
# kernel and user functions; functions have their known shares; and the guest runs on if a run that
# holds its vCPUs is killed
#
# $UPROF_LINUX_SAMPLES (1600): the samples of functions whose shares are known. Shares may be off
# by four times the standard deviation.
# $UPROF_LIVE_KILLS (100): the number of runs that are killed.
# shellcheck source=tests/live/linux-lib.sh
source "$(dirname "$0")/linux-lib.sh"

name=${guest_prefix}direct-$series-$way
init=$guests/../linux/init
samples=${UPROF_LINUX_SAMPLES:-1600}
kills=${UPROF_LIVE_KILLS:-100}
# The largest share is 60 %: 4 * sqrt(0.6 * 0.4 / samples), in percent.
points=$(python3 -c "print(round(400 * (0.24 / $samples) ** 0.5, 1))")

need_daemon
need_linux
boot_linux "$name" "$release" "$machine" 'pti=on no5lvl -- user syscalls' 2 || fail 'no guest'
must_say "$name" PTI on
must_say "$name" LEVELS 4

say 'each vCPU has its own process'
sample 150 "$work/x" --per-vcpu -s "$init" "$name"
result sidecar "$work/x.meta.json" "domain['vcpus'] == 2" "access == 'direct'" \
    "linux['user_stacks'] > 0" "linux['kernel_complete'] > 0" "linux['user_complete'] > 0" \
    "stacks['complete'] * 100 >= samples['running'] * 90" \
    "call_sites['agreed'] * 100 >= call_sites['checked'] * 95"
result stacks "$name" 80 'vcpu[01];(user|syscalls)(;.*)?' "$work/x.folded"
for vcpu in vcpu0 vcpu1; do
    grep -qE "^$name;$vcpu;(user|syscalls);" "$work/x.folded" ||
        fail "no load on $vcpu: $(head -n 20 "$work/x.folded")"
done
# No process has functions of another process.
result stacks "$name" 100 \
    'vcpu[01];(?!(?!user;).*;run_user(;|$))(?!(?!syscalls;).*;run_syscalls(;|$)).*' "$work/x.folded"
grep -qE "^$name;vcpu[01];user;.*;run_user;split_loop" "$work/x.folded" || fail 'no user stack'
grep -qE "^$name;vcpu[01];syscalls;.*;run_syscalls;.*_\[k\]" "$work/x.folded" || fail 'no kernel stack'

say "shares of threads, within $points points"
tell_linux "$name" 'stop threads' >"$work/said" || fail 'it does not listen'
files=()
for ((n = 0, round = 0; n < samples; round++)); do
    [ "$round" -lt 40 ] || fail "only $n samples in $round rounds"
    sample "$((samples - n + 20))" "$work/round$round" -s "$init" "$name"
    files+=("$work/round$round.folded")
    n=$(cat "${files[@]}" | awk '/;split_[136]0[; ]/ { n += $NF } END { print n + 0 }')
done
result split "$name" "$points" "$samples" split_10=10,split_30=30,split_60=60 "${files[@]}"

say "$kills runs are killed"
tell_linux "$name" 'stop user syscalls' >"$work/said" || fail 'it does not listen'
mkdir "$work/out.d"
: >"$work/outages"
python3 "$here/killdirect.py" "$program" "$libvirt_uri" "$work/out.d" "$work/outages" threads \
    "$kills" "$((kills / 50))" "$(qemu_pid "$name")" "$name" || fail 'kills'
must_be_free "$name"
wait_until 3 runs "$name" || fail "'$name' does not run any more"
# The guest answers on its serial line, and its loads still run.
tell_linux "$name" tasks >"$work/said" || fail 'it does not answer'
for load in user syscalls; do
    grep -q "^TASK [0-9]* $load$" "$work/said" || fail "no '$load' runs: $(cat "$work/said")"
done
