#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# worker.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - the rights of the processes that analyze samples, and
# the samples that are lost if such a process dies
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

one=${guest_prefix}worker-1-$way
other=${guest_prefix}worker-2-$way
rate=(-F 200 --budget 100 "${patient[@]}")

# start ARGUMENT... DOMAIN...: starts a run in the background
start()
{
    rm -f "$work"/*.folded "$work"/*.meta.json "$work/err"
    "$program" "${rate[@]}" -o "$work/%d.folded" -o "$work/%d.meta.json" "$@" \
        >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
}

# list_workers: prints the workers of the run, in the order in which they began
list_workers()
{
    local spawner
    spawner=$(pgrep -P "$profiler" -x uprof-spawner) && pgrep -P "$spawner" -x uprof-worker
}

# field PID KEY: prints a field of /proc/PID/status
field()
{
    sed -n "s/^$2:\t//p" "/proc/$1/status"
}

# kill_worker: kills the worker of the run's only domain
kill_worker()
{
    killed=$(list_workers)
    kill -KILL "$killed"
}

# has_worker: the run has a new worker after kill_worker
has_worker()
{
    local now
    now=$(list_workers) && [ -n "$now" ] && [ "$now" != "$killed" ]
}

# check_loss: the samples that the message calls lost are counted as skipped
check_loss()
{
    local lost
    lost=$(sed -n 's/.*; \([0-9]*\) samples are lost.*/\1/p' "$work/err" | tail -n 1)
    result sidecar "$work/$one.meta.json" "ticks['skipped'] >= ${lost:-0}"
}

need_daemon
boot "$one" split
boot "$other" split

say 'rights'
start -d 60 "$one"
await_sampling
worker=$(list_workers)
[ "$(field "$worker" CapEff)" = 0000000000000000 ] || fail 'a worker has capabilities'
[ "$(field "$worker" CapPrm)" = 0000000000000000 ] || fail 'a worker may have capabilities'
[ "$(field "$worker" NoNewPrivs)" = 1 ] || fail 'a worker may gain rights'
[ "$(field "$worker" Seccomp)" = 2 ] || fail 'a worker has all system calls'
[ "$(id -u)" != 0 ] || [[ "$(field "$worker" Uid)" != 0* ]] || fail 'a worker is root'
# It may use as much processor time as the run lasts, and half an hour.
grep -qE '^Max cpu time +1860 ' "/proc/$worker/limits" || fail 'the processor time of a worker'
# A worker has its streams, two channels, two outputs and two checkpoints.
mapfile -t files < <(for fd in "/proc/$worker/fd"/*; do readlink "$fd"; done | sort | uniq -c)
[ "${#files[@]}" -le 7 ] || fail "a worker has too many descriptors: ${files[*]}"
if printf '%s\n' "${files[@]}" | grep -Ev '/dev/null|socket:|\(deleted\)|/#[0-9]+|\.tmp'; then
    fail 'a worker has a descriptor that it does not need'
fi
# Under emulation the first sample may take some seconds.
sleep 4
kill -INT "$profiler"
finish 0 20

if [ "$(id -u)" = 0 ]; then
    say 'check says which rights the workers keep'
    "$program" check >"$work/out" 2>"$work/err" || fail 'check fails'
    grep -q 'foreign bytes are read by processes without rights' "$work/out" || fail "check: $(cat "$work/out")"
    setpriv --bounding-set=-setuid,-sys_admin "$program" check >"$work/out" 2>"$work/err" || true
    for kept in 'keep the user root: this process lacks CAP_SETUID' \
        'have no namespaces of their own: this process may not make namespaces'; do
        [ "$(grep -c "the processes that read foreign bytes $kept" "$work/out")" = 1 ] ||
            fail "no '$kept' in: $(cat "$work/out")"
    done
fi

died='the process that analyzes its samples has failed: it died of signal 9 \(Killed\) while it'

say 'a worker is killed: another one continues'
start -d 8 "$one"
await_sampling
kill_worker
wait_until 20 has_worker || fail 'no other worker has started'
finish 0 40
says "^virt-uprof: $one: $died analyzed samples; continuing"
result sidecar "$work/$one.meta.json" "ended_by == 'duration' and samples['total'] > 0"
check_loss
must_run "$one"

say 'a worker that writes a capture is killed: the capture ends early'
start -d 12 -o "$work/x.capture" "$one"
await_sampling
# The worker writes its first samples to the capture meanwhile.
sleep 6
kill_worker
wait_until 20 has_worker || fail 'no other worker has started'
finish 1 40
says "^virt-uprof: $one: its capture ends early"
"$program" report -o "$work/x.folded" "$work/x.capture" || fail 'the capture cannot be read'
must_run "$one"

say 'the other one is killed, too: its checkpoint is saved'
start -d 60 "$one"
await_sampling
kill_worker
wait_until 20 has_worker || fail 'no other worker has started'
# a checkpoint is made every 2 s
sleep 7
kill_worker
finish 1 20
says "^virt-uprof: $one: $died analyzed samples; saving what was counted before; [0-9]* samples are lost"
result sidecar "$work/$one.meta.json" "ended_by == 'error' and samples['total'] > 0"
[ -s "$work/$one.folded" ] || fail 'the checkpoint gave no profile'
check_loss
must_run "$one"

say 'both are killed before the first checkpoint'
start -d 60 "$one"
await_sampling
kill_worker
wait_until 20 has_worker || fail 'no other worker has started'
kill_worker
finish 1 20
says "^virt-uprof: $one: $died "
[ ! -e "$work/$one.folded" ] || fail 'a profile without its samples was written'
must_run "$one"

say 'one of two is killed'
start -d 8 "$one" "$other"
wait_until 60 samples_domains 2 || fail 'not both are sampled'
mapfile -t workers < <(list_workers)
[ "${#workers[@]}" = 2 ] || fail "there are ${#workers[@]} workers for two domains"
kill -KILL "${workers[0]}"
finish 0 40
says "^virt-uprof: $one: $died "
[ -s "$work/$one.folded" ] || fail 'the domain of the killed worker has no profile'
[ -s "$work/$other.folded" ] || fail 'the other domain has no profile'
result sidecar "$work/$other.meta.json" "ended_by == 'duration'"
must_run "$one"
must_run "$other"

say 'two workers hang: the run ends as soon as with one'
start -d 60 "$one" "$other"
await_sampling 2
# a checkpoint is made every 2 s
sleep 6
list_workers | xargs kill -STOP
sleep 1
kill -INT "$profiler"
# It takes less than two seconds on a machine that is not busy.
finish 1 8
for name in "$one" "$other"; do
    says "^virt-uprof: $name: the process that analyzes its samples has failed: it was still at work"
    result sidecar "$work/$name.meta.json" "ended_by == 'error' and samples['total'] > 0"
    must_run "$name"
done

# find_worker: prints the worker of the round in the background
find_worker()
{
    local step spawner
    for step in $(pgrep -P "$profiler"); do
        spawner=$(pgrep -P "$step" -x uprof-spawner) && pgrep -P "$spawner" -x uprof-worker && return
    done
    return 1
}

# has_next_worker: the round has a worker that was not killed
has_next_worker()
{
    local now
    now=$(find_worker) && [ "$now" != "$killed" ]
}

say 'both processes of a domain are killed: collect goes on with the next domain'
only_collector
echo '<virt-uprof/>' >"$work/config.xml"
"$program" collect --config "$work/config.xml" --store "$work/store" -d 8 "$one" "$other" \
    >"$work/out" 2>"$work/err" </dev/null &
profiler=$!
killed=
for ((i = 0; i < 2; i++)); do
    wait_until 60 has_next_worker || fail 'there is no worker'
    killed=$(find_worker)
    kill -KILL "$killed"
done
finish 6 90
# Any of the domains may be the first one.
failed=$(sed -nE 's/^(uprof-[^ ]*) .*: failed: .*/\1/p' "$work/err")
[[ $failed = "$one" || $failed = "$other" ]] || fail "not one domain has failed: $(cat "$work/err")"
says "^virt-uprof: $failed: $died analyzed samples; continuing"
next=$one
[ "$failed" != "$one" ] || next=$other
[ -n "$(find "$work/store/data/$next" -name '*.folded.gz')" ] || fail 'the next domain was not sampled'
must_run "$one"
must_run "$other"
