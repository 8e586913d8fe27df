#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# direct.sh PROGRAM GUESTS DIRECT - virt-uprof says why it cannot hold vCPUs one by one. If others
# disturb a guest or its QEMU in mid-run, the run goes on, and only the samples of that time are
# lost.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}direct
emulated=${guest_prefix}emulated
rate=(-F 500 --budget 100 "${patient[@]}")
port=$(free_tcp_port)

# start SECONDS ARGUMENT...: starts a run in the background, and returns when it has sampled for a
# second
start()
{
    rm -f "$work"/x.* "$work/err"
    "$program" "${rate[@]}" -o "$work/x.folded" -o "$work/x.meta.json" -d "$@" "$name" \
        >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
    await_sampling
    says ', access direct'
    sleep 1
}

# finish [EXPRESSION...]: the run ends well and leaves nothing behind
finish()
{
    local status=0
    wait_until 120 is_gone "$profiler" || fail 'the run does not end'
    wait "$profiler" || status=$?
    [ "$status" = 0 ] || fail "exit $status"
    result sidecar "$work/x.meta.json" "ended_by == 'duration'" "access == 'direct'" \
        "samples['running'] > 50" "$@"
    no_leftovers "$work"
    must_be_free "$name"
    must_run "$name"
}

# hindered TEXT: the run has said TEXT once, and has counted the ticks without samples. The obstacle
# has lasted since $since, for at least two seconds. The run notices the end of the obstacle up to a
# second later. On a busy machine holds take longer, so the budget lowers the rate, and there are
# fewer ticks.
hindered()
{
    local lasted=$((SECONDS - since))
    finish "50 < ticks['busy'] < 500 * ($lasted + 3)"
    says "^virt-uprof: $name: $1, not by virt-uprof; no samples until that ends$"
    [ "$(grep -c 'not by virt-uprof' "$work/err")" = 1 ] || fail 'said more than once'
}

trace()
{
    rm -f "$work/traced"
    python3 "$here/tracer.py" "$(qemu_pid "$name")" >"$work/traced" &
    tracer=$!
    at_exit untrace
    wait_until 10 grep -qs traced "$work/traced" || fail 'the threads cannot be traced'
}

untrace()
{
    kill "$tracer" 2>/dev/null || true
    wait "$tracer" 2>/dev/null || true
}

# falls_back REASON [ARGUMENT...]: with --access auto the run uses the monitor and says why
falls_back()
{
    local why=$1
    shift
    profile 0 "$@" -F 20 --budget 100 -d 2 -o "$work/x.meta.json" "$name"
    says "^$name: access monitor: .*$why"
    result sidecar "$work/x.meta.json" "access == 'monitor'" "'$why' in access_why" "samples['running'] > 0"
    must_run "$name"
}

# refuses STATUS REASON ARGUMENT...: with --access direct the run fails with STATUS and says why
refuses()
{
    local status=$1 why=$2
    shift 2
    rm -f "$work"/x.*
    profile "$status" --access direct -d 1 -o "$work/x.folded" "$@"
    says "^virt-uprof: .*: no access 'direct': .*$why"
    [ ! -e "$work/x.folded" ] || fail 'an output of a refused run'
}

need_own_daemon 'listen_tcp = 1' 'auth_tcp = "none"' "tcp_port = \"$port\"" 'listen_addr = "127.0.0.1"'
boot "$name" split 1/2

say 'not permitted'
cat >"$work/powerless" <<SCRIPT
#!/bin/sh
exec setpriv --inh-caps -sys_ptrace --bounding-set -sys_ptrace '$program' "\$@"
SCRIPT
chmod +x "$work/powerless"
program=$work/powerless falls_back 'it needs root, or CAP_SYS_PTRACE'
program=$work/powerless refuses 4 'it needs root, or CAP_SYS_PTRACE' "$name"

say 'a remote connection'
falls_back 'the connection is remote' -c "qemu+tcp://127.0.0.1:$port/system"
refuses 5 'the connection is remote' -c "qemu+tcp://127.0.0.1:$port/system" "$name"

say 'an emulated guest'
machine=TCG boot "$emulated" split
refuses 5 'it is emulated' "$emulated"
destroy_guest "$emulated"

say 'not to be paused'
falls_back 'without stopping' --no-pause
profile 2 --access direct --no-pause -d 1 "$name"

say 'somebody else traces it'
trace
falls_back 'another process, such as a debugger, traces QEMU'
refuses 5 'another process, such as a debugger, traces QEMU' "$name"
untrace

say 'traced in mid-run'
start 8
since=$SECONDS
trace
sleep 2
untrace
hindered "another process traces its QEMU \\(process $tracer\\)"

say 'suspended and resumed'
start 8
since=$SECONDS
quiet_virsh suspend "$name" >/dev/null
sleep 2
must_be_paused "$name"
quiet_virsh resume "$name" >/dev/null
hindered 'it is paused'

say 'its QEMU is stopped by a signal'
start 8
since=$SECONDS
kill -STOP "$(qemu_pid "$name")"
sleep 2
grep -q '^State:[[:space:]]*T' "/proc/$(qemu_pid "$name")/status" || fail 'we have set it going'
kill -CONT "$(qemu_pid "$name")"
hindered 'a signal has stopped its QEMU'

say 'the daemon restarts'
start 8
end_test_libvirtd "$work/d"
sleep 2
run_test_libvirtd "$work/d"
finish "ticks['busy'] < 500"

say 'reset'
start 8
quiet_virsh reset "$name" >/dev/null
finish "ticks['busy'] < 500" "stacks['unknown'] > 0"
# This run finds the guest again if the boot took longer than the run before.
profile 0 "${rate[@]}" -d 2 -o "$work/x.folded" "$name"
result stacks "$name" 50 'guest_entry;guest_main;main_loop;function_[123];work' "$work/x.folded"

# eject: does what the guest's ACPI would do to remove vCPU 1 (QEMU, docs/specs/acpi_cpu_hotplug:
# the selector, and bit 3 of the control field)
eject()
{
    quiet_virsh qemu-monitor-command "$name" --hmp 'device_del vcpu1'
    quiet_virsh qemu-monitor-command "$name" --hmp 'o /1 0xaf00 0'
    quiet_virsh qemu-monitor-command "$name" --hmp 'o /4 0xaf00 1'
    quiet_virsh qemu-monitor-command "$name" --hmp 'o /1 0xaf04 8'
}

has_vcpus()
{
    [ "$(quiet_virsh vcpucount "$name" --live --active)" = "$1" ]
}

say 'a vCPU is plugged, unplugged and plugged again'
start 12 --per-vcpu --idle
for _ in 1 2; do
    quiet_virsh setvcpus "$name" 2 --live >/dev/null
    wait_until 30 has_vcpus 2 || fail 'no second vCPU'
    sleep 2
    eject >/dev/null
    wait_until 30 has_vcpus 1 || fail 'the second vCPU does not go'
    sleep 1
done
# The run notices only after a second that the vCPU was unplugged. Until then its ticks are busy.
finish "ticks['busy'] < 2500" "samples['idle'] > 50"
# The guest never starts vCPU 1. The vCPU's thread is awake only shortly after it is plugged, at
# the address where a vCPU begins.
result stacks "$name" 99 'vcpu0;guest_entry;guest_main;.*|vcpu1;\[idle\]' "$work/x.folded"
result stacks "$name" 100 'vcpu0;guest_entry;guest_main;.*|vcpu1;(\[idle\]|(\[truncated\];)?\[unknown\])' \
    "$work/x.folded"

say 'destroyed, and started anew'
start 8
quiet_virsh destroy "$name" >/dev/null
wait_until 60 is_gone "$profiler" || fail 'the run does not end with its guest'
wait "$profiler" || fail "exit $?"
says "^virt-uprof: $name: the domain ended during the run; its samples are kept$"
result sidecar "$work/x.meta.json" "ended_by == 'gone'" "samples['running'] > 20"
boot "$name" split
start 8
finish
