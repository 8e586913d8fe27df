#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# daemon.sh PROGRAM GUESTS TCG|KVM - libvirt's daemon dies and is started again in mid-run, hangs,
# or is slow: the run goes on and ends with its samples, and the guest does not stay stopped
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}daemon-$way

# kill_daemon: kills the daemon with SIGKILL
kill_daemon()
{
    kill -KILL "$daemon" 2>/dev/null || true
    wait_until 20 is_gone "$daemon" || fail 'the daemon lives on'
    end_test_libvirtd "$work/d" KILL
}

continue_daemon()
{
    [ -z "${daemon:-}" ] || kill -CONT "$daemon" 2>/dev/null || true
}

# held: prints the state in the marker: 0 not held, 1 asked for, 2 held
held()
{
    od -An -td4 -j4 -N4 "/run/virt-uprof/$uuid" | tr -d ' '
}

# in_hold: the marker says that a hold lasts. It still says so after the daemon was killed in a
# hold, because the run cannot end the hold without the daemon.
in_hold()
{
    [ "$(held)" != 0 ]
}

# catch_hold: waits for a hold. The intervals between checks are random, because regular checks
# could miss every hold.
catch_hold()
{
    local end=$((SECONDS + 20))
    until in_hold; do
        [ "$SECONDS" -lt "$end" ] || fail 'it holds nothing'
        sleep "0.0$((RANDOM % 9 + 1))"
    done
}

# be_slow N: the daemon answers late, N times
be_slow()
{
    for _ in $(seq "$1"); do
        kill -STOP "$daemon"
        sleep 0.3
        kill -CONT "$daemon"
        sleep 0.1
    done
}

start()
{
    rm -f "$work"/x.* "$work/err"
    "$program" -c "$libvirt_uri" "${fast[@]}" -d "$1" -o "$work/x.folded" -o "$work/x.meta.json" "$name" \
        >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
    daemon=$(cat "$work/d/run/libvirtd.pid")
    await_sampling
    sleep 2
    ! is_gone "$profiler" || fail 'the run has ended early'
}

# finish SECONDS [SAMPLES]: the run ends well within SECONDS, with more than SAMPLES
finish()
{
    local samples=${2:-20}
    wait_until "$1" is_gone "$profiler" || fail "the run does not end within $1 s"
    wait "$profiler" || fail "exit $?"
    result sidecar "$work/x.meta.json" "ended_by == 'duration'" "samples['running'] > $samples" \
        "stacks['truncated'] <= 5"
    no_leftovers "$work"
    must_run "$name"
}

# shellcheck disable=SC2119
need_own_daemon
boot "$name" split
# A daemon that a failure leaves stopped would keep the clean-up waiting.
at_exit continue_daemon
uuid=$(quiet_virsh domuuid "$name")

say 'a restart'
start 12
end_test_libvirtd "$work/d"
sleep 2
run_test_libvirtd "$work/d"
finish 60
result sidecar "$work/x.meta.json" "ticks['busy'] > 0 or ticks['late'] > 0"

say 'killed, in a hold if possible'
n_held=0
for ((n = 0; n < 3 || (n < 40 && n_held == 0); n++)); do
    start 11
    catch_hold
    kill_daemon
    sleep 0.2
    ! in_hold || n_held=$((n_held + 1))
    run_test_libvirtd "$work/d"
    finish 60
done
say "$n_held of $n kills hit a hold"
[ "$n_held" -gt 0 ] || fail 'no kill hit a hold'

say 'it hangs for a while'
start 16
catch_hold
kill -STOP "$daemon"
sleep 5
kill -CONT "$daemon"
finish 60 0

say 'it is slow'
start 10
be_slow 20
finish 60 0

# A guardian waits for a suspend that was requested, because the daemon may still execute it. Here
# only the marker says that one was requested.
say 'killed while it asks for a hold, and the daemon is slow: the guardian does not wait for ever'
start 60
guardian=$(guardian_of "$profiler")
for ((n = 0; n < 40; n++)); do
    kill -STOP "$daemon"
    sleep 0.1
    in_hold || break
    kill -CONT "$daemon"
    sleep "0.0$((RANDOM % 9 + 1))"
done
! in_hold || fail 'it holds the guest all the time'
printf '\1' | dd of="/run/virt-uprof/$uuid" bs=1 seek=4 conv=notrunc status=none
kill -KILL "$profiler"
wait "$profiler" 2>/dev/null || true
for ((n = 0; n < 20; n++)); do
    be_slow 5
    ! is_gone "$guardian" || break
done
is_gone "$guardian" || fail 'the guardian lives on'
! in_hold || fail 'the marker is still flagged'
must_run "$name"
rm -f "$work"/.virt-uprof-*.tmp

say 'it hangs, and a signal ends the run: the guardian resumes the guest when the daemon goes on'
start 60
guardian=$(guardian_of "$profiler")
catch_hold
kill -STOP "$daemon"
# The hold may have ended already. By then the run waits for the daemon in any case.
sleep 0.5
kill -INT "$profiler"
# The run ends after two seconds on a machine that is not busy. If it hangs, the guardian ends it
# after 70 s.
wait_until 30 is_gone "$profiler" || fail 'the run waits for the daemon'
status=0
wait "$profiler" || status=$?
[[ $status =~ ^(1|10)$ ]] || fail "exit $status"
says "^virt-uprof: $name: libvirt or its QEMU does not answer; sampling ended early"
[ "$status" = 1 ] || says 'IT MAY STILL BE STOPPED'
result sidecar "$work/x.meta.json" "ended_by == 'error'" "samples['running'] > 0"
kill -CONT "$daemon"
wait_until 30 is_gone "$guardian" || fail 'the guardian lives on'
! in_hold || fail 'the marker is still flagged'
must_run "$name"
no_leftovers "$work"

# The daemon answers never, or about when the run saves its samples without an answer.
for answers_after in never 0.7 0.75 0.8; do
    say "it hangs while a run looks for new domains, and a signal ends the run: it answers after $answers_after s"
    rm -f "$work"/x.* "$work/err"
    "$program" -c "$libvirt_uri" "${fast[@]}" -d 60 -o "$work/%d.folded" -o "$work/%d.meta.json" --all \
        >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
    daemon=$(cat "$work/d/run/libvirtd.pid")
    await_sampling
    sleep 2
    guardian=$(guardian_of "$profiler")
    kill -STOP "$daemon"
    # The run looks for new domains once a second.
    sleep 1.5
    kill -INT "$profiler"
    if [ "$answers_after" != never ]; then
        sleep "$answers_after"
        kill -CONT "$daemon"
    fi
    # It takes a second on a machine that is not busy.
    wait_until 20 is_gone "$profiler" || fail 'the run waits for the daemon'
    status=0
    wait "$profiler" || status=$?
    [[ $status =~ ^(0|1|10)$ ]] || fail "exit $status"
    [ "$answers_after" != never ] || says '^virt-uprof: libvirt, or a QEMU, does not answer; ending without its answer'
    result sidecar "$work/$name.meta.json" "ended_by in ('error', 'signal')" "samples['running'] > 0"
    [ -s "$work/$name.folded" ] || fail 'no profile'
    kill -CONT "$daemon"
    wait_until 30 is_gone "$guardian" || fail 'the guardian lives on'
    ! in_hold || fail 'the marker is still flagged'
    must_run "$name"
    rm -f "$work/$name".*
    no_leftovers "$work"
done

say 'daemon and profiler are killed, in a hold if possible: the guardian waits for the daemon'
n_held=0
for ((n = 0; n < 3 || (n < 40 && n_held == 0); n++)); do
    start 30
    guardian=$(guardian_of "$profiler")
    catch_hold
    kill_daemon
    kill -KILL "$profiler"
    wait "$profiler" 2>/dev/null || true
    ! in_hold || n_held=$((n_held + 1))
    sleep 3
    run_test_libvirtd "$work/d"
    # The guardian resumes the guest when the daemon is back.
    wait_until 30 runs "$name" || fail 'the guest is left stopped'
    must_run "$name"
    wait_until 30 is_gone "$guardian" || fail 'the guardian lives on'
    ! in_hold || fail 'the marker is still flagged'
done
say "$n_held of $n kills hit a hold"
[ "$n_held" -gt 0 ] || fail 'no kill hit a hold'
rm -f "$work"/.virt-uprof-*.tmp
