#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# fallback.sh PROGRAM GUESTS DIRECT - a run gives up a vCPU that does not stop in time. After some
# tries the run continues through the monitor. A preloaded library, tests/lib/no-interrupt.c, drops
# the program's interrupts in mid-run.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}fallback-$way
# At this rate each tick gives a sample, as long as a hold takes less than two milliseconds.
slow=(-F 50 --budget 10)
calm=(-F 50 --budget 100 -d 3 -o "$work/w.meta.json")
library=$(dirname "$program")/../tests/live/libno-interrupt.so

[ -e "$library" ] || fail "there is no $library"
if nm -D "$program" | grep __asan_init >/dev/null; then
    skip 'a program with sanitizers takes no library before its own'
fi

# starved ARGUMENT...: runs the program, which can send only $UPROF_TEST_INTERRUPTS interrupts
starved()
{
    UPROF_TEST_INTERRUPTS=${UPROF_TEST_INTERRUPTS:-200} LD_PRELOAD=$library \
        timeout -k 5 60 "$program" "$@" >"$work/out" 2>"$work/err" </dev/null
}

# untouched: nobody traces a thread of QEMU, and no thread is stopped
untouched()
{
    local pid
    pid=$(pgrep -f "guest=$name,") || fail 'there is no QEMU'
    ! grep -hE '^(State:.[tT]|TracerPid:.[1-9])' "/proc/$pid/task/"*/status || fail 'left traced or stopped'
}

need_daemon
boot "$name" split

say 'a vCPU that is late at first is waited for'
export UPROF_TEST_INTERRUPTS=100000
UPROF_TEST_LOST=3 starved --access direct --max-pause 1s "${calm[@]}" "$name" || fail "exit $?"
result sidecar "$work/w.meta.json" "access == 'direct'" "ended_by == 'duration'" "ticks['stuck'] == 0" \
    "samples['running'] > 5"
untouched
must_run "$name"

# While the vCPU is stopped, a query of its registers through the monitor would wait for ever.
say 'the monitor is not asked for a vCPU that is late when it is checked'
for _ in 1 2 3 4; do
    UPROF_TEST_HIDDEN=20 starved --access direct "${calm[@]}" "$name" || fail "exit $?"
    result sidecar "$work/w.meta.json" "access == 'direct'" "samples['running'] > 5"
    untouched
    must_run "$name"
done
unset UPROF_TEST_INTERRUPTS

say 'a vCPU that never stops is not waited for'
status=0
UPROF_TEST_LOST=100000 starved --access direct -d 1 "$name" || status=$?
[ "$status" = 5 ] || fail "exit $status"
says "^virt-uprof: .*: no access 'direct': a vCPU thread did not stop in time"
untouched
must_run "$name"

say 'auto goes on through the monitor'
# The interrupts must be used up long before the end, even if a busy machine makes holds long and
# the budget lowers the rate.
UPROF_TEST_INTERRUPTS=60 starved --access auto "${slow[@]}" -d 10 -o "$work/x.folded" -o "$work/x.meta.json" "$name" || fail "exit $?"
says "^virt-uprof: $name: a vCPU thread repeatedly does not stop in time; continuing with access .monitor."
says "^$name: access monitor: changed from 'direct' during the run, because a vCPU thread did not stop in time"
untouched
must_run "$name"
result sidecar "$work/x.meta.json" "access == 'monitor'" "ended_by == 'duration'" \
    "ticks['stuck'] >= 5" "samples['running'] >= 20" "duration_ms >= 9900"
# Access `monitor` is slower, so each of its samples stands for several ticks.
ticks=$(awk '{ n += $NF } END { print n }' "$work/x.folded")
[ "$ticks" -ge 200 ] || fail "all of 10 s at 50 Hz is worth $ticks ticks"

say 'direct alone ends, with what it has'
status=0
UPROF_TEST_INTERRUPTS=100 starved --access direct -F 50 --budget 100 --max-pause 1s -d 10 -o "$work/y.folded" -o "$work/y.meta.json" \
    "$name" || status=$?
[ "$status" = 1 ] || fail "exit $status"
says "^virt-uprof: $name: sampling ended early: a vCPU thread repeatedly did not stop in time"
untouched
must_run "$name"
result sidecar "$work/y.meta.json" "access == 'direct'" "ended_by == 'error'" "samples['running'] >= 20"

say 'and the next run works'
profile 0 --access direct --max-pause 1s --budget 100 -d 6 -o "$work/z.meta.json" "$name"
result sidecar "$work/z.meta.json" "samples['running'] >= 20" "ticks['stuck'] == 0"
