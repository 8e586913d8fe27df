#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# idle.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - halted vCPUs are counted, and shown if asked for
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}idle-$way

need_daemon
boot "$name" idle
# Where vCPUs are held one by one, one that sleeps is not held at all.
holds="hold_us['count'] >= samples['total']"
[ "$access" = monitor ] || holds="hold_us['count'] <= 0.1 * samples['total']"

# It is awake four times a second for a moment, which may be seen.
profile 0 "${fast[@]}" -d 4 -o "$work/x.folded" -o "$work/x.meta.json" "$name"
result sidecar "$work/x.meta.json" "samples['idle'] >= 10" "samples['idle'] >= 0.8 * samples['total']" \
    "$holds"
grep -q '\[idle\]' "$work/x.folded" && fail "idle is shown unasked: $(cat "$work/x.folded")"
if [ "$(result sidecar "$work/x.meta.json" "samples['running'] == 0" 2>/dev/null && echo none)" = none ]; then
    [ ! -s "$work/x.folded" ] || fail 'stacks of nothing'
    says 'it was idle all the time'
fi

profile 0 "${fast[@]}" -d 4 --idle -o "$work/x.folded" -o "$work/x.meta.json" "$name"
result stacks "$name" 80 '\[idle\]' "$work/x.folded"
result stacks "$name" 100 '\[idle\]|guest_entry;.*' "$work/x.folded"

# The stack it went to sleep with; it is the same for long, and there is one for each sample.
profile 0 "${fast[@]}" -d 4 --idle=stack -o "$work/x.folded" -o "$work/x.meta.json" "$name"
result stacks "$name" 80 'guest_entry;guest_main;idle_loop(;.*)?' "$work/x.folded"
result sidecar "$work/x.meta.json" "samples['idle'] >= 10" "samples['idle'] >= 0.8 * samples['total']"

profile 0 dump "${patient[@]}" "$name"
grep -qE "^$name vcpu0 (idle \(halted\)|kernel: )" "$work/out" || fail "dump: $(cat "$work/out")"
must_run "$name"
destroy_guest "$name"

# Half of the time: what runs is a stack as any other.
name=${guest_prefix}halfidle-$way
boot "$name" halfidle
profile 0 "${fast[@]}" -d 8 --idle -o "$work/x.folded" -o "$work/x.meta.json" "$name"
result stacks "$name" 15 '\[idle\]' "$work/x.folded"
result stacks "$name" 15 'guest_entry;guest_main;halfidle_loop;burst;work' "$work/x.folded"
must_run "$name"
