#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# end.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - in mid-run others destroy, suspend or save a guest, or
# it shuts down or reboots by itself
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}end-$way
rate=(-F 200 --budget 100 "${patient[@]}")

# start ARGUMENT...: starts a run in the background
start()
{
    rm -f "$work"/x.* "$work/err"
    "$program" "${rate[@]}" -o "$work/x.folded" -o "$work/x.meta.json" "$@" "$name" \
        >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
}

# has_ended: libvirt knows that the guest has ended. The run notices the end of QEMU earlier.
has_ended()
{
    ! guest_runs "$name"
}

# has_rebooted: the guest has named its workload on the serial line a second time
has_rebooted()
{
    [ "$(grep -ac 'virt-uprof guest:' "$(guest_serial "$name")")" -ge 2 ]
}

need_daemon

# direct.sh tests this for access `direct`.
if [ "$way" != DIRECT ]; then
    say 'destroyed'
    boot "$name" split
    start -d 60
    await_sampling
    sleep 4
    quiet_virsh destroy "$name" >/dev/null
    finish 0 40
    says "^virt-uprof: $name: the domain ended during the run; its samples are kept$"
    result sidecar "$work/x.meta.json" "ended_by == 'gone'" "samples['running'] > 5" "duration_ms < 50000"
    [ -s "$work/x.folded" ] || fail 'no partial result'
    destroy_guest "$name"
fi

say 'shuts down by itself'
# The guest stops six seconds after its boot. On a busy machine a run may take as long to begin, so
# the run waits for the guest.
start --wait=120s -d 120
wait_until 60 grep -qs "^virt-uprof: waiting for '$name', which libvirt does not know yet" "$work/err" ||
    fail 'it does not wait'
boot "$name" stop=6
finish 0 100
result sidecar "$work/x.meta.json" "ended_by == 'gone'" "samples['running'] > 5"
wait_until 20 has_ended || fail 'libvirt still has it'
destroy_guest "$name"

say 'reboots'
boot "$name" reboot=2
start -d 600
wait_until "$guest_seconds" has_rebooted || fail 'it did not reboot'
sleep 8
kill -INT "$profiler"
finish 0 60
result sidecar "$work/x.meta.json" "ended_by == 'signal'" "stacks['complete'] > 5"
# The run finds the guest again after each reset: the last stacks have the same names as the
# first.
grep -q '^[^;]*;guest_entry;guest_main;main_loop;function_3;work ' "$work/x.folded" ||
    fail "$(cat "$work/x.folded")"
wait_until 30 runs "$name" || fail 'it does not run'
destroy_guest "$name"

if [ "$way" != DIRECT ]; then
    say 'suspended by a user'
    boot "$name" split
    # The run seldom holds the guest. A suspend in a hold would succeed, and the end of the hold
    # would undo it.
    start -F 10 --budget 10 -d 20
    await_sampling
    # A run begins with holds that give no sample.
    sleep 8
    for _ in $(seq 10); do
        quiet_virsh suspend "$name" >/dev/null
        before=$(counter "$name")
        sleep 0.5
        if [ "$(counter "$name")" = "$before" ]; then
            break
        fi
    done
    must_be_paused "$name"
    finish 0 60
    must_be_paused "$name"
    [ "$(counter "$name")" = "$before" ] || fail 'it has worked since it was suspended'
    result sidecar "$work/x.meta.json" "ended_by == 'duration'" "ticks['busy'] > 0" "samples['running'] > 0"
    quiet_virsh resume "$name" >/dev/null
    must_run "$name"
fi

say 'saved and restored'
[ "$way" != DIRECT ] || boot "$name" split
start -d 120
await_sampling
sleep 3
quiet_virsh save "$name" "$work/saved" >/dev/null || fail 'virsh save in mid-run'
finish 0 60
result sidecar "$work/x.meta.json" "ended_by == 'gone'" "samples['running'] > 5"
# A save in a hold saves the guest as paused, because libvirt does not know who has paused it.
quiet_virsh restore --running "$work/saved" >/dev/null || fail 'virsh restore'
must_run "$name"
profile 0 "${patient[@]}" -d 2 -o "$work/z.meta.json" "$name"
result sidecar "$work/z.meta.json" "samples['running'] > 0" "stacks['truncated'] == 0"
