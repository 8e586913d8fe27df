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
must_run "$name"
