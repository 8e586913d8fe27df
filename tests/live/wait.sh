#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# wait.sh PROGRAM GUESTS DIRECT - a run waits for domains that do not run yet, and samples them
# from their boot on
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}wait-$way
other=${guest_prefix}other-$way
# Stacks of the firmware and of the guest's start, and of its work.
boot_stack='(_start|guest_entry)(;.*)?|\[unknown\]|\[truncated\];.*'
work_stack='guest_entry;guest_main;main_loop;function_[123];work'

# start ARGUMENT...: starts a run in the background
start()
{
    rm -f "$work"/x.* "$work/err"
    "$program" "${fast[@]}" -o "$work/x.folded" -o "$work/x.meta.json" "$@" >"$work/out" 2>"$work/err" \
        </dev/null &
    profiler=$!
}

# waits NAME: the run says that it waits for the domain, and does not end
waits()
{
    wait_until 60 grep -qs "^virt-uprof: waiting for '$1'" "$work/err" || fail 'it does not wait'
    sleep 1
    ! is_gone "$profiler" || fail 'it has not waited'
}

# finish STATUS: the run ends with STATUS
finish()
{
    local status=0
    wait_until 60 is_gone "$profiler" || fail 'the run does not end'
    wait "$profiler" || status=$?
    [ "$status" = "$1" ] || fail "exit $status, not $1"
    no_leftovers "$work"
}

# sampled_from_its_boot EXPRESSION...: the run has samples of the firmware and of the guest
sampled_from_its_boot()
{
    result sidecar "$work/x.meta.json" "access == '$access'" "stacks['unknown'] > 0" "$@"
    result stacks "$name" 100 "$boot_stack" "$work/x.folded"
    say "$(grep -F '[unknown]' "$work/x.folded" | awk '{ n += $NF } END { print n }') samples of firmware"
}

# The test has its own daemon, because it defines domains.
# shellcheck disable=SC2119
need_own_daemon

say 'nobody comes'
profile 3 "${fast[@]}" --wait=1s -d 5 -o "$work/x.folded" "$name"
says "^virt-uprof: no domain '$name' on .*; waited 1 s for it$"
[ ! -e "$work/x.folded" ] || fail 'an output of nothing'
no_leftovers "$work"

say 'it does not exist yet'
start --wait -d 120 "$name"
waits "$name"
boot "$name" split
sleep 5
kill -INT "$profiler"
finish 0
sampled_from_its_boot "ended_by == 'signal'" "stacks['complete'] > 5"
must_run "$name"

say 'it runs already'
SECONDS=0
profile 0 "${fast[@]}" --wait -d 2 -o "$work/x.folded" -o "$work/x.meta.json" "$name"
[ "$SECONDS" -lt 60 ] || fail "it has waited for what runs"
if grep -q 'waiting for' "$work/err"; then
    fail 'it says that it waits'
fi
result sidecar "$work/x.meta.json" "samples['running'] > 5" "stacks['unknown'] == 0"

say 'it is shut off'
quiet_virsh define "${guest_folders[$name]}/domain.xml" >/dev/null
quiet_virsh destroy "$name" >/dev/null
start --wait=60s -d 5 "$name"
waits "$name"
: >"$(guest_serial "$name")"
quiet_virsh start "$name" >/dev/null
finish 0
# The duration begins when the domain starts.
sampled_from_its_boot "ended_by == 'duration'" "4000 < duration_ms < 15000"
# On a busy machine the run may end while the firmware still runs.
await_guest "$name"
must_run "$name"
quiet_virsh undefine "$name" >/dev/null

say 'one runs, the other does not come'
mkdir "$work/out.d"
profile 6 "${fast[@]}" --wait=1s -d 3 -o "$work/out.d/%d.folded" "$name" "$other"
says "^virt-uprof: no domain '$other' on .*; waited 1 s for it$"
result stacks "$name" 80 "$work_stack" "$work/out.d/$name.folded"
[ "$(ls "$work/out.d")" = "$name.folded" ] || fail "outputs: $(ls "$work/out.d")"

say 'a signal ends waiting, and both'
start --wait -d 60 "$other"
waits "$other"
kill -INT "$profiler"
finish 3
[ ! -e "$work/x.folded" ] || fail 'an output of nothing'
start --wait -d 60 --json "$name"
await_sampling
sleep 2
kill -TERM "$profiler"
finish 0
result sidecar "$work/x.meta.json" "ended_by == 'signal'" "samples['running'] > 5"
must_run "$name"
