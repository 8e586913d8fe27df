#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# paused.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - a guest that somebody else has paused stays paused:
# record refuses it, dump shows its stack, list and check do not change it
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}paused-$way

# stays_paused WHAT: the guest is paused and does not work after WHAT
stays_paused()
{
    wait_until "$daemon_seconds" libvirt_answers || fail 'the daemon is away'
    must_be_paused "$name"
    [ "$(counter "$name")" = "$stands_at" ] || fail "the guest has worked after $1"
}

# The test has its own daemon, because the daemon may crash when clients are killed.
# shellcheck disable=SC2119
need_own_daemon
start_keeper
boot "$name" split
quiet_virsh suspend "$name" >/dev/null
stands_at=$(counter "$name")

profile 3 -d 1 -o "$work/x.folded" "$name"
says "^virt-uprof: domain '$name' is paused, not by virt-uprof; resume it first: virsh resume $name$"
[ ! -e "$work/x.folded" ] || fail "an output of a refused run"
stays_paused record

profile 0 dump --max-pause 1s "$name"
grep -qE "^$name vcpu0 kernel: [0-9]+ frames, complete" "$work/out" || fail "dump: $(cat "$work/out")"
grep -qE '^  #[0-9]+ +[0-9a-f]{16}  guest_entry$' "$work/out" || fail "no guest_entry in the dump"
stays_paused dump

profile 0 dump --json --max-pause 1s "$name"
python3 - "$work/out" <<'PYTHON' || fail "dump --json"
import json, sys
dump = json.load(open(sys.argv[1]))
assert dump["paused"] is True, dump
vcpu, = dump["vcpus"]
assert vcpu["complete"] and vcpu["mode"] == "kernel" and not vcpu["idle"], vcpu
assert vcpu["frames"][-1]["name"] == "guest_entry", vcpu
PYTHON
stays_paused 'dump --json'

# A paused guest is read through the monitor. Access `direct` needs a guest that runs.
if [ "$access" = direct ]; then
    profile 5 dump --access direct "$name"
    says "^virt-uprof: $name: no access 'direct': it is paused"
    stays_paused 'dump by direct'
fi

profile 0 list
grep -qE "^$name +paused +[0-9]+ +1 +$access +no +never " "$work/out" || fail "list: $(cat "$work/out")"
stays_paused list

# The exit code of `check` does not matter here.
"$program" check "$name" >"$work/out" 2>&1 </dev/null || true
stays_paused check

# A killed dump has not held the guest, and its guardian does not resume the guest.
for delay in 0.02 0.05 0.1 0.2 0.4; do
    "$program" dump "$name" >/dev/null 2>&1 </dev/null &
    sleep "$delay"
    kill -KILL $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    stays_paused "dump, killed after $delay s"
done
sleep 2
stays_paused 'killed dumps'

# The same is true if an earlier run was killed in a hold and its marker still exists.
quiet_virsh resume "$name" >/dev/null
must_run "$name"
rm -f "$work/err"
"$program" "${fast[@]}" -d 30 -o "$work/y.folded" "$name" 2>"$work/err" </dev/null &
profiler=$!
await_sampling
sleep 1
guardian=$(guardian_of "$profiler")
kill -KILL "$profiler"
wait "$profiler" 2>/dev/null || true
# While the guardian runs, it would resume the guest even if somebody else has paused it.
wait_until 60 is_gone "$guardian" || fail 'the guardian lives on'
wait_until "$daemon_seconds" libvirt_answers || fail 'the daemon is away'
must_run "$name"
quiet_virsh suspend "$name" >/dev/null
stands_at=$(counter "$name")
sleep 2
profile 3 -d 1 "$name"
profile 0 list
stays_paused 'a killed run before'

# A dump leaves a running guest running.
quiet_virsh resume "$name" >/dev/null
profile 0 dump --max-pause 1s "$name"
must_run "$name"
