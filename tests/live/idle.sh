#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# idle.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - halted vCPUs are counted, and shown if asked for
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}idle-$way

need_daemon
boot "$name" idle
# Access `direct` does not hold a vCPU that sleeps. On a busy machine a vCPU waits for a processor and
# is awake for longer, so the bounds here are far from the values of a machine without load.
holds="hold_us['count'] >= samples['total']"
[ "$access" = monitor ] || holds="hold_us['count'] <= 0.3 * samples['total']"

# The guest is awake four times a second for a moment, so a few samples may be of running vCPUs.
profile 0 "${fast[@]}" -d 4 -o "$work/x.folded" -o "$work/x.meta.json" "$name"
result sidecar "$work/x.meta.json" "samples['idle'] >= 10" "samples['idle'] >= 0.6 * samples['total']" \
    "$holds"
grep -q '\[idle\]' "$work/x.folded" && fail "idle is shown unasked: $(cat "$work/x.folded")"
if [ "$(result sidecar "$work/x.meta.json" "samples['running'] == 0" 2>/dev/null && echo none)" = none ]; then
    [ ! -s "$work/x.folded" ] || fail 'stacks of nothing'
    says 'nothing ran: --idle shows idle time, --idle=stack shows where it waits'
fi

profile 0 "${fast[@]}" -d 4 --idle -o "$work/x.folded" -o "$work/x.meta.json" "$name"
result stacks "$name" 60 '\[idle\]' "$work/x.folded"
# On a busy host, a sample may be in the first instructions of the timer's interrupt.
result stacks "$name" 99 '\[idle\]|guest_entry;.*' "$work/x.folded"

# --idle=stack shows the stack with which the vCPU went to sleep, once for each sample.
profile 0 "${fast[@]}" -d 4 --idle=stack -o "$work/x.folded" -o "$work/x.meta.json" "$name"
result stacks "$name" 60 'guest_entry;guest_main;idle_loop(;.*)?' "$work/x.folded"
result sidecar "$work/x.meta.json" "samples['idle'] >= 10" "samples['idle'] >= 0.6 * samples['total']"

profile 0 dump "${patient[@]}" "$name"
grep -qE "^$name vcpu0 (idle \(halted\)|kernel: )" "$work/out" || fail "dump: $(cat "$work/out")"
must_run "$name"
destroy_guest "$name"

# This guest works half of the time. Its running stacks are like any other.
name=${guest_prefix}halfidle-$way
boot "$name" halfidle
profile 0 "${fast[@]}" -d 8 --idle -o "$work/x.folded" -o "$work/x.meta.json" "$name"
result stacks "$name" 15 '\[idle\]' "$work/x.folded"
result stacks "$name" 15 'guest_entry;guest_main;halfidle_loop;burst;work' "$work/x.folded"
must_run "$name"
