#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# faults.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - system calls of `record` and `collect` fail: a guest
# that runs still runs, and a guest that its administrator has paused stays paused. faults.py does
# the work.
#
# UPROF_TEST_FAULTS=all tests all faults, UPROF_TEST_FAULTS=K/N a part of them, and
# UPROF_TEST_FAULTS=NUMBER so many for each command.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

running=${guest_prefix}faults-1-$way
paused=${guest_prefix}faults-2-$way
library=$guests/../libfail-call.so
declare -A numbers=([record]=20 [collect]=10)

# calls_fail COMMAND
calls_fail()
{
    say "calls of $1 fail"
    rm -rf "$work/files"
    mkdir -m 755 "$work/files"
    python3 "$here/faults.py" "$1" "${numbers[$1]}" "$program" "$library" "$libvirt_uri" "$work/files" \
        "$work/outages" "$access" "$counter_at" \
        "$(qemu_pid "$running")" "$running" "$(qemu_pid "$paused")" "$paused" || fail "calls of $1 fail"
}

# A preloaded library would stand before the library of the sanitizers, which must be first.
! grep -q __asan_init "$program" || skip 'a program with sanitizers takes no library before its own'
# The test has its own daemon, because the daemon may crash, and because the runs sample all its guests.
# shellcheck disable=SC2119
need_own_daemon
counter_at=0x$(nm "$guest64" | awk '$3 == "uprof_counter" { print $1 }')
boot "$running" split
boot "$paused" split
quiet_virsh suspend "$paused" >/dev/null
start_keeper
calls_fail record
only_collector
calls_fail collect
must_be_free "$running"
must_run "$running"
must_be_paused "$paused"
