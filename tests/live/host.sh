#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# host.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - while a guest is sampled, the host's disk is full, or
# its clock is set
#
# daemon.sh and qemu.sh test a daemon and a QEMU that die or hang. tests/cli tests commands that
# only read and write files.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}host-$way
seconds=6
# One and a half days, so that the day of the month changes, too.
jump=130000

# jump_often SIGN: sets the clock of the run back and forth while the run lasts, first by SIGN$jump
jump_often()
{
    local sign=$1
    while ! is_gone "$profiler"; do
        sleep 0.5
        echo "$sign$jump" >"$work/clock.new"
        mv "$work/clock.new" "$work/clock"
        sign=$([ "$sign" = - ] || echo -)
    done
}

# clock_jumps SIGN COMMAND...: runs the program while its clock jumps
clock_jumps()
{
    local sign=$1
    shift
    echo 0 >"$work/clock"
    : >"$work/err"
    LD_PRELOAD=$guests/../libshift-clock.so UPROF_TEST_CLOCK=$work/clock "$program" "$@" \
        >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
    jump_often "$sign"
    finish 0 "$daemon_seconds"
}

# lasted FILE: the sidecar says that the run lasted as long as it should
lasted()
{
    result sidecar "$1" "ended_by == 'duration'" "samples['running'] > 0" \
        "$((seconds * 1000)) <= duration_ms < $((seconds * 1000 + 20000))"
}

only_collector
# The test has its own daemon, so that a round finds only the test's guest.
# shellcheck disable=SC2119
need_own_daemon
boot "$name" split

if grep -q __asan_init "$program"; then
    # A preloaded library would stand before the library of the sanitizers, which must be first.
    say 'no clock is set for a program with sanitizers'
else
    cat >"$work/config.xml" <<XML
<virt-uprof>
  <profile rate="200" duration="${seconds}s" budget="100"/>
  <collect connect="$libvirt_uri" domains="*"/>
  <limits rate="500" duration="60s" budget="100"/>
  <store minFreeMegabytes="0"/>
</virt-uprof>
XML
    for sign in '' -; do
        say "a clock that jumps, first $([ "$sign" = - ] && echo back || echo ahead)"
        clock_jumps "$sign" "${fast[@]}" -d "$seconds" -o "$work/x.folded" -o "$work/x.meta.json" "$name"
        lasted "$work/x.meta.json"
        rm -rf "$work/store"
        clock_jumps "$sign" collect -q --config "$work/config.xml" --store "$work/store"
        python3 "$here/store.py" "$work/store" "$name=1" || fail 'the store'
        lasted "$work/store/data/$name"/*.meta.json
        must_run "$name"
    done
fi

say 'a disk that is full'
mkdir "$work/small"
if ! mount -t tmpfs -o size=16m,mode=750 tmpfs "$work/small"; then
    skip 'no tmpfs can be mounted here'
fi
at_exit umount "$work/small"
profile 0 "${fast[@]}" -d 2 -o "$work/full.capture" "$name"
python3 "$here/full.py" "$program" "$libvirt_uri" "$work/small" "$work/full.capture" "$name" || fail 'full.py'
must_be_free "$name"
must_run "$name"
