#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# qemu.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - in mid-run somebody stops or kills QEMU, or plugs memory
#
# end.sh and direct.sh test commands of libvirt that stop, end or change a guest.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}qemu-$way

# start ARGUMENT...: starts a run in the background
start()
{
    rm -f "$work"/x.* "$work/err"
    "$program" "${fast[@]}" -o "$work/x.folded" -o "$work/x.meta.json" "$@" "$name" \
        >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
    await_sampling
    sleep 4
}

# start_round ARGUMENT...: starts a round over the guest in the background
start_round()
{
    rm -rf "$work/store" "$work/err"
    "$program" collect --config "$work/config.xml" --store "$work/store" "$@" >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
    wait_until 60 is_sampled "$name" || fail 'nothing is sampled'
    sleep 1
}

boot_pluggable()
{
    define_guest "$name" "$machine" "$guest64" "split unit=${UPROF_GUEST_UNIT:-100}" 1 '' 128/1024
    qemu=$(qemu_pid "$name")
}

# is_stopped: QEMU is stopped by a signal
is_stopped()
{
    grep -q '^State:[[:space:]]*T' "/proc/$qemu/status"
}

# stop_for SECONDS: stops QEMU by a signal, and continues it after SECONDS
stop_for()
{
    kill -STOP "$qemu"
    sleep "$1"
    is_stopped || fail 'virt-uprof has set QEMU going'
    kill -CONT "$qemu"
}

# start_destination: starts another daemon, to which guests migrate, and sets $destination
start_destination()
{
    mkdir -p "$work/m"
    echo uprof-destination >"$work/m/hostname"
    start_test_libvirtd "$work/m" "host_uuid = \"$(cat /proc/sys/kernel/random/uuid)\"" ||
        fail 'no second daemon can be started'
    destination=$(test_libvirtd_uri "$work/m")
}

# stop_between_holds: stops the run while the guest runs
stop_between_holds()
{
    kill -STOP "$profiler"
    if ! runs "$name"; then
        kill -CONT "$profiler"
        return 1
    fi
}

# has_migration: libvirt migrates the guest
has_migration()
{
    quiet_virsh domjobinfo "$name" | grep -q '^Operation: *Outgoing migration'
}

# migrate_guest: a guest that is held when the migration begins arrives paused (doc/guide.md), so the
# migration begins between two holds
migrate_guest()
{
    local sockets=${guest_folders[$name]}/sockets migration
    # QEMU makes the socket itself.
    install -d -o libvirt-qemu "$sockets"
    wait_until 60 stop_between_holds || fail 'the guest is always held'
    quiet_virsh migrate --live "$name" --desturi "$destination" --migrateuri "unix://$sockets/migration" &
    migration=$!
    wait_until 60 has_migration || fail 'the migration does not begin'
    kill -CONT "$profiler"
    wait "$migration" || fail 'the guest does not migrate'
}

only_collector
# The test has its own daemon, so that a round finds only the test's guest.
# shellcheck disable=SC2119
need_own_daemon
cat >"$work/config.xml" <<XML
<virt-uprof>
  <profile rate="500" duration="8s" budget="100"/>
  <collect connect="$libvirt_uri" domains="*"/>
  <limits rate="500" duration="60s" budget="100"/>
  <store minFreeMegabytes="0"/>
</virt-uprof>
XML
cat >"$work/memory.xml" <<'XML'
<memory model='dimm'><target><size unit='MiB'>128</size><node>0</node></target></memory>
XML
boot_pluggable

say 'memory is plugged'
start -d 14
quiet_virsh attach-device "$name" "$work/memory.xml" --live >/dev/null || fail 'no memory can be plugged'
finish 0 60
result sidecar "$work/x.meta.json" "ended_by == 'duration'" "samples['running'] > 5" "stacks['truncated'] == 0"
must_run "$name"

say 'stopped by a signal, in a run and in a round'
start -d 10
stop_for 4
finish 0 60
result sidecar "$work/x.meta.json" "ended_by == 'duration'" "samples['running'] > 0"
must_run "$name"
start_round
stop_for 3
finish 0 90
python3 "$here/store.py" "$work/store" "$name=1" || fail 'the store'
must_run "$name"

say 'stopped by a signal, and another signal ends the run'
start -d 60
kill -STOP "$qemu"
sleep 1
kill -INT "$profiler"
# The run ends after two seconds on a machine that is not busy. If it hangs, the guardian ends it
# after 70 s.
wait_until 30 is_gone "$profiler" || fail 'the run waits for QEMU'
status=0
wait "$profiler" || status=$?
if [ "$access" = monitor ]; then
    [[ $status =~ ^(1|10)$ ]] || fail "exit $status"
    says "^virt-uprof: $name: libvirt or its QEMU does not answer; sampling ended early"
else
    [ "$status" = 0 ] || fail "exit $status"
fi
# If holds take seconds, the run may have no sample, and then it writes no sidecar.
[ ! -e "$work/x.meta.json" ] || result sidecar "$work/x.meta.json" "samples['running'] > 0"
[ -e "$work/x.meta.json" ] || says ': no sample was taken$'
is_stopped || fail 'virt-uprof has set QEMU going'
kill -CONT "$qemu"
wait_until 60 runs "$name" || fail 'the guardian does not resume the guest'
must_run "$name"

say 'killed in a run'
start -d 60
kill -KILL "$qemu"
finish 0 60
says "^virt-uprof: $name: the domain ended during the run; its samples are kept$"
result sidecar "$work/x.meta.json" "ended_by == 'gone'" "samples['running'] > 0"
destroy_guest "$name"

say 'killed in a round'
boot_pluggable
start_round -d 60s
# The first second may give no sample.
sleep 4
kill -KILL "$qemu"
finish 0 90
python3 "$here/store.py" "$work/store" "$name=1" || fail 'the store'
result sidecar "$work/store/data/$name"/*.meta.json "ended_by == 'gone'"
destroy_guest "$name"

say 'migrated in a run'
boot_pluggable
start_destination
start -d 60 -F 5
migrate_guest
finish 0 60
says "^virt-uprof: $name: the domain ended during the run; its samples are kept$"
result sidecar "$work/x.meta.json" "ended_by == 'gone'" "samples['running'] > 0"
libvirt_uri=$destination must_run "$name"
