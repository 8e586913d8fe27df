#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# watch.sh PROGRAM GUESTS TCG - the flight recorder: rules, events, SIGUSR1 and --now write the time before
# and after them, of a guest that changes its phase
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}watch-$way
store=$work/store

# start_watch ARGUMENT...: starts a watch in the background, and returns when it samples
start_watch()
{
    "$program" watch --budget 50 -F 99 "${patient[@]}" "$@" "$name" \
        >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
    wait_until 120 has_steps || fail 'the watch does not begin to sample'
}

# has_steps [WORD]: the watch has samples, as a request for a profile tells. WORD: the domain's id, UUID or name
has_steps()
{
    "$program" watch --now "${1:-$name}" >"$work/asked" 2>&1 </dev/null
}

# stop_watch: kills the watch, if it still runs
stop_watch()
{
    [ "$profiler" = 0 ] || kill -KILL "$profiler" 2>/dev/null || true
}

# end_watch STATUS: ends the watch by SIGTERM
end_watch()
{
    kill -TERM "$profiler"
    finish "$1" 60
}

# shows_phase FILES: a profile that the watch writes now shows the guest's own code. FILES: where names begin
shows_phase()
{
    has_steps && cat "$1"*.folded | grep -q ';phase_'
}

# share FILE NAME: prints how many percent of the samples have the function NAME
share()
{
    awk -v name="$2" '{ total += $NF; if (index($0, ";" name ";")) part += $NF }
        END { printf "%d\n", total ? part * 100 / total : 0 }' "$1"
}

# seconds FILE: prints the duration that a sidecar tells, in seconds
seconds()
{
    sed -n 's/.*"duration_ms": \([0-9]*\)[0-9][0-9][0-9],.*/\1/p' "$1"
}

# written [TRIGGER]: prints the newest sidecar in the store, with this trigger
written()
{
    grep -rl --include='*.meta.json' -- "\"trigger\": \"${1:-}" "$store/watch/data" 2>/dev/null | sort | tail -n 1
}

has_written()
{
    [ -n "$(written "$1")" ]
}

need_daemon
profiler=0
at_exit stop_watch
install -d -m 755 "$store"

# A rule about a function: the guest begins with phase_1, and goes on with phase_2 after 20 s. The
# profile begins before the change, and ends after it.
boot "$name" phases=20
start_watch -s "$guest64" --store "$store" --keep 10s --after 3s --rest 1h \
    --when 'function phase_2 > 60 % for 3s'
asked=$(cat "$work/asked")
[[ $asked == "$name: 'asked by watch --now': wrote "*.folded.gz', '*.meta.json ]] ||
    fail "--now prints '$asked'"
for word in "$(quiet_virsh domid "$name")" "${guest_uuids[$name]^^}"; do
    has_steps "$word" || fail "--now does not know '$word': $(cat "$work/asked")"
done
wait_until 120 has_written 'function phase_2' || fail 'the rule does not trigger'
sidecar=$(written 'function phase_2')
stacks=${sidecar%.meta.json}.folded
gzip -dc "$stacks.gz" >"$work/rule.folded"
[ "$(share "$work/rule.folded" phase_1)" -gt 25 ] && [ "$(share "$work/rule.folded" phase_2)" -gt 20 ] ||
    fail "shares of the phases: $(share "$work/rule.folded" phase_1), $(share "$work/rule.folded" phase_2)"
long=$(seconds "$sidecar")
# On a busy machine steps end late.
[ "$long" -ge 12 ] && [ "$long" -le 20 ] || fail "the profile has $long s, not 10 and 3"
grep -q '"complete": [1-9]' "$sidecar" || fail 'no stack is complete'
says "^$name: watched; a trigger writes its last .* to .*; to write them now: virt-uprof watch --now $name$"
says "$name: 'function phase_2 > 60 % for 3s' happened; its profile is written in 3 s"
# The line is printed after the file has its name.
wait_until 20 grep -qE "$name: 'function phase_2 > 60 % for 3s': wrote .*\.meta\.json" "$work/err" || fail 'no line'
# report reads the profiles as those of a store
profile 0 report --store "$store/watch" --since today "$name"
grep -q 'phase_2' "$work/out" || fail 'report does not show phase_2'

# Another run gets the domain, and the watch goes on afterwards.
"$program" "${patient[@]}" -d 2s -o "$work/other.folded" "$name" >"$work/second" 2>&1 </dev/null ||
    fail "the other run exits $?: $(cat "$work/second")"
[ -s "$work/other.folded" ] || fail 'the other run has no samples'
rm -rf "$store/watch/data/$name"
wait_until 60 has_steps || fail 'the watch does not go on'

# SIGUSR1
kill -USR1 "$profiler"
wait_until 60 has_written SIGUSR1 || fail 'SIGUSR1 writes nothing'

# Killed, it leaves no half file and no stopped guest.
kill -KILL "$profiler"
wait "$profiler" 2>/dev/null || true
must_run "$name"
no_leftovers "$store"
profile 3 watch --now "$name"
# another watch may run on this machine
says "no 'virt-uprof watch' is running|no running 'virt-uprof watch' watches '$name'"
[ ! -e "/run/virt-uprof/watch-$profiler.sock" ] || fail 'a socket is left behind'

# The guest is never idle, so two rules begin to hold together. The second one triggers at the end of the rest.
# An event in the rest is left out. The shares are small, so that no rule ceases to hold on a busy host.
start_watch -s "$guest64" --store "$store" --keep 10s --after 2s --rest 30s \
    --when 'busy > 1 % for 2s' --when 'vcpu 0 > 1 % for 2s' --when reboot
wait_until 60 has_written 'busy > 1 %' || fail 'the rule on busy does not trigger'
! has_written 'vcpu 0' || fail 'the second rule does not wait'
quiet_virsh reset "$name" >/dev/null
wait_until 90 has_written 'vcpu 0 > 1 %' || fail 'the rule on a vCPU does not trigger late'
! has_written reboot || fail 'a trigger in the rest writes a profile'
says "$name: left out [1-9] more triggers?, which came too soon after others$"
sidecar=$(written 'vcpu 0')
gzip -dc "${sidecar%.meta.json}.folded.gz" | grep -q "^$name;vcpu0;" || fail 'the profile does not show the vCPU'
end_watch 0

# Two questions in one second give two profiles. An existing file is not replaced.
start_watch -s "$guest64" -o "$work/%d-twice.folded" --keep 10s --when 'busy < 0.1 %'
has_steps && [[ $(cat "$work/asked") == *-twice-2.folded ]] || fail "$(cat "$work/asked")"
[ -s "$work/$name-twice.folded" ] && [ -s "$work/$name-twice-2.folded" ] || fail 'a profile is lost'
end_watch 0

# A watch that can watch nothing ends.
profile 1 watch -s "$work/nowhere.elf" "$name"
profile 2 watch --when 'busy > 80 % for 10m' --keep 1m "$name"
says "--when 'busy > 80 % for 10m' needs 600 s: use a longer --keep"

# An event of libvirt triggers a profile, which goes to a named file. The watch goes on afterwards.
start_watch -s "$guest64" -o "$work/%d-event.svg" -o "$work/%d-event.meta.json" --keep 10s --after 1s \
    --when reboot
rm -f "$work/$name-event"*
quiet_virsh reset "$name" >/dev/null
wait_until 60 test -s "$work/$name-event.svg" || fail 'the event reboot writes nothing'
end_watch 0
[ "$(grep -c '"trigger": "reboot"' "$work/$name-event.meta.json")" = 1 ] || fail 'no trigger in the facts'

# A domain that is destroyed and started again.
start_watch -s "$guest64" -o "$work/%d-again.folded" --keep 10s --after 1s --when 'busy < 0.1 %'
# the reset above boots the guest once more, and its firmware waits halted
wait_until 120 shows_phase "$work/$name-again" || fail 'the guest does not boot after its reset'
quiet_virsh define "${guest_folders[$name]}/domain.xml" >/dev/null
at_exit quiet_virsh undefine "$name"
quiet_virsh destroy "$name" >/dev/null
wait_until 60 grep -q 'the domain ended during the run' "$work/err" || fail 'the end is not seen'
# what was kept can still be had
has_steps || fail "nothing is kept of a domain that ended: $(cat "$work/asked")"
quiet_virsh start "$name" >/dev/null
# ten seconds later, nothing is left of the time before
sleep 11
has_steps || fail "the domain is not sampled again: $(cat "$work/asked")"
end_watch 0
must_run "$name"
