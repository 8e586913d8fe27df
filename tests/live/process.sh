#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# process.sh PROGRAM GUESTS TCG|DIRECT - memory is read from the guest's process, even if another
# process has the same arguments
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}process-$way

# finds_process: `check` reads memory from the process of the guest
finds_process()
{
    "$program" check --access "$access" "$name" >"$work/out" 2>"$work/err" </dev/null ||
        fail "check exits $?: $(cat "$work/out")"
    grep -qE "^  ok +memory +read by process_vm_readv from QEMU's process $1: " "$work/out" ||
        fail "another process, or none: $(cat "$work/out")"
}

need_daemon
boot "$name" split 2
pid=$(qemu_pid "$name")
finds_process "$pid"

python3 -c 'import time; time.sleep(600)' -uuid "${guest_uuids[$name]}" &
at_exit kill "$!"
finds_process "$pid"

# If libvirt shows no memory, nothing proves that the process is the guest's.
if ! grep -q __asan_init "$program"; then
    UPROF_TEST_MUTE=$name UPROF_TEST_MUTE_HOW=memory LD_PRELOAD=$guests/../cli/libmute-libvirt.so \
        "$program" check --access monitor "$name" >"$work/out" 2>"$work/err" </dev/null || true
    grep -q 'libvirt shows no memory to compare it with' "$work/out" || fail "check: $(cat "$work/out")"
    ! grep -q 'read by process_vm_readv' "$work/out" || fail "memory without proof: $(cat "$work/out")"
fi
must_run "$name"
