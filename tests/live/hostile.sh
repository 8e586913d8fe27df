#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# hostile.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - a guest that rewrites its stacks into loops and
# wild pointers only loses its own samples: they count as truncated, nothing hangs, memory does
# not grow, and no device register is read
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

samples_wanted=${UPROF_LIVE_SAMPLES:-3000}
seconds_max=500
# The limit for growth of memory after the first measurement: some code and tables are loaded later.
growth_kib_max=4096
name=${guest_prefix}hostile-$way
# AddressSanitizer keeps freed memory, which would look like growth.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}:quarantine_size_mb=1

need_daemon
cmdline=hostile
# Each case of the guest spins for 100 units of work. A short unit gives many cases in a run.
[ "$way" = TCG ] || cmdline='hostile unit=10'
boot "$name" "$cmdline"
before=$(counter "$name")

# memory_of PID: prints the KiB of resident memory
memory_of()
{
    awk '$1 == "VmRSS:" { print $2 }' "/proc/$1/status"
}

n=0
crowded=0
first=
last=0
while [ "$n" -lt "$samples_wanted" ]; do
    [ "$SECONDS" -lt "$seconds_max" ] || fail "$n samples in $SECONDS s"
    rm -f "$work/err"
    "$program" "${fast[@]}" -d 25 -o "$work/x.folded" -o "$work/x.meta.json" --capture "$work/x.capture" \
        "$name" >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
    await_sampling
    sleep 5
    first=$(memory_of "$profiler")
    sleep 13
    last=$(memory_of "$profiler")
    wait_until 60 is_gone "$profiler" || fail 'it hangs'
    wait "$profiler" || fail "exit $?"
    [ $((last - first)) -le "$growth_kib_max" ] || fail "memory grew from $first to $last KiB"
    # A sample costs at most 20 ms of CPU time.
    result sidecar "$work/x.meta.json" "stacks['truncated'] > 0" "ended_by == 'duration'" \
        "duration_ms < 40000" "profiler_cpu_ms < 20 * samples['running']" \
        "stacks['truncated'] >= samples['running'] // 4"
    # A forged stack is never attached to a root: stacks are [truncated], or begin at guest_entry.
    result stacks "$name" 100 '\[truncated\];.*|guest_entry(;.*)?|hostile_.*' "$work/x.folded"
    "$program" report -f folded -o "$work/y.folded" "$work/x.capture" 2>"$work/err" || fail 'report'
    cmp "$work/x.folded" "$work/y.folded" || fail 'the capture gives other stacks'
    # If the machine takes the processor from the analysis for a moment, the ring is full and ticks
    # are skipped. This may happen once.
    if python3 "$here/result.py" sidecar "$work/x.meta.json" "ticks['skipped'] * 100 <= samples['running']"; then
        n=$((n + $(result total "$work/x.folded")))
    else
        crowded=$((crowded + 1))
        [ "$crowded" -le 1 ] || fail 'the analysis is too slow'
    fi
done
say "$n samples; memory $first KiB after 5 s, $last KiB after 18 s"

# Reading a device register is an access to the device. QEMU's log shows such accesses if no
# device is at the address.
profile 0 dump "${patient[@]}" "$name"
log=/var/log/libvirt/qemu/$name.log
if [ -r "$log" ] && tail -n 50 "$log" | grep -iE 'invalid|unassigned|bad (read|access)'; then
    fail "QEMU complains in '$log'"
fi
must_run "$name"
[ "$(counter "$name")" != "$before" ] || fail 'the guest stands still'
