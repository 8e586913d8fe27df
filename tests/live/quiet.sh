#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# quiet.sh PROGRAM GUESTS DIRECT - access `direct` sends nothing to QEMU's monitor while it
# samples, the monitor answers others meanwhile, and the profile agrees with that of access
# `monitor`
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

commands=2000
name=${guest_prefix}quiet
log=$work/d/log/libvirtd.log

# n_commands: prints how many commands the daemon has sent to monitors so far
n_commands()
{
    grep -c QEMU_MONITOR_SEND_MSG "$log" || true
}

# start SECONDS ARGUMENT...: starts a run in the background
start()
{
    rm -f "$work"/x.* "$work/err"
    "$program" -o "$work/x.folded" -o "$work/x.meta.json" --budget 100 --max-pause 1s -d "$@" "$name" \
        >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
}

finish()
{
    local status=0
    wait_until 120 is_gone "$profiler" || fail 'the run does not end'
    wait "$profiler" || status=$?
    [ "$status" = 0 ] || fail "exit $status"
}

# count_commands: prints the number of commands in three seconds, beginning a second after the run
# begins to sample
count_commands()
{
    local before
    await_sampling
    sleep 1
    before=$(n_commands)
    sleep 3
    ! is_gone "$profiler" || fail 'the run has ended early'
    echo $(($(n_commands) - before))
}

has_one_vcpu()
{
    [ "$(quiet_virsh vcpucount "$name" --live --active)" = 1 ]
}

need_own_daemon 'log_filters = "1:qemu.qemu_monitor"' \
    'log_outputs = "1:file:/var/log/libvirt/libvirtd.log"'
boot "$name" split 1/2

say 'nothing is asked while samples are taken'
start 30 -F 1000 --access direct
n=$(count_commands)
[ "$n" = 0 ] || fail "$n monitor commands: $(grep QEMU_MONITOR_SEND_MSG "$log" | tail -n "$n")"
kill -INT "$profiler"
finish
result sidecar "$work/x.meta.json" "samples['running'] > 50"

say 'nor after a vCPU has come and gone'
start 30 -F 1000 --access direct
await_sampling
quiet_virsh setvcpus "$name" 2 --live >/dev/null
sleep 1.5
# The guest's ACPI would write these registers: see direct.sh.
for command in 'device_del vcpu1' 'o /1 0xaf00 0' 'o /4 0xaf00 1' 'o /1 0xaf04 8'; do
    quiet_virsh qemu-monitor-command "$name" --hmp "$command" >/dev/null
done
wait_until 10 has_one_vcpu || fail 'the second vCPU does not go'
sleep 2
n=$(count_commands)
[ "$n" = 0 ] || fail "$n monitor commands: $(grep QEMU_MONITOR_SEND_MSG "$log" | tail -n "$n")"
kill -INT "$profiler"
finish

say 'access monitor, for comparison: its commands are seen, and the profiles agree'
start 18 -F 1000 --access monitor
n=$(count_commands)
[ "$n" -gt 3 ] || fail "only $n monitor commands in 3 s"
finish
cp "$work/x.folded" "$work/monitor.folded"
profile 0 "${fast[@]}" -d 5 -o "$work/direct.folded" "$name"
result agree "$name" "$work/direct.folded" "$work/monitor.folded"

say "$commands commands while vCPUs are held at the highest rate"
for ((i = 0; i < commands; i++)); do
    # QEMU reads registers in the vCPU's own thread, and interrupts that thread by a signal.
    echo "qemu-monitor-command $name --hmp 'info registers 0'"
done >"$work/commands"
start 240 -F 5000 --access direct
await_sampling
began=$SECONDS
timeout -k 2 200 virsh -q -c "$libvirt_uri" <"$work/commands" >"$work/answers" 2>&1 || fail 'commands were not answered'
took=$((SECONDS - began))
n=$(grep -c 'RIP=' "$work/answers" || true)
[ "$n" = "$commands" ] || fail "$n of $commands commands were answered: $(tail -n 3 "$work/answers")"
kill -INT "$profiler"
finish
result sidecar "$work/x.meta.json" "ended_by == 'signal'" "access == 'direct'" "samples['running'] > 50"
result stacks "$name" 90 'guest_entry;guest_main;main_loop;function_[123];work' "$work/x.folded"
say "$commands commands were answered within $took s, $(result total "$work/x.folded") samples"
must_be_free "$name"
must_run "$name"
