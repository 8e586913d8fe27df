#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# aarch64-linux.sh PROGRAM GUESTS TCG SERIES - Debian's kernel for arm64, of which nothing is given: the
# symbols that the guest itself lists, complete stacks of the kernel and its processes, its log, and its tasks
#
# The kernel 6.1 has symbols of its code only, without those of the code that is mapped twice. Its build-id and
# its log are not found.
#
# $UPROF_LIVE_SAMPLES: of each guest
# shellcheck source=tests/live/linux-lib.sh
# shellcheck disable=SC2034 # the libraries use them
linux_arch=arm64
source "$(dirname "$0")/linux-lib.sh"
guest_arch=aarch64
linux_initrd=$guests/../linux/initrd-aarch64.cpio
linux_words='console=ttyAMA0 quiet loglevel=3 random.trust_cpu=on rdinit=/init-aarch64'
system_call='el0t_64_sync_\[k\];el0t_64_sync_handler_\[k\];el0_svc_\[k\]'
samples_wanted=${UPROF_LIVE_SAMPLES:-160}

# knows_kernel: `check` finds the kernel that the guest says it runs, with the symbols that it lists
knows_kernel()
{
    local symbols tries
    read -ra symbols <<<"$(console_value "$name" KALLSYMS)"
    # Only code of the kernel shows where it is, and a process may run during each of the holds.
    for ((tries = 0; tries < 5; tries++)); do
        profile 0 check "${patient[@]}" "$name"
        ! grep -qE '^ +ok +linux ' "$work/out" || break
    done
    out_has 'kernel symbols ' "${symbols[1]}, " "digest ${symbols[0]};"
    out_has 'processes ' 'names and mapped files are known'
    if [ "$series" = 6.1 ]; then
        out_has 'linux ' "release $release, "
    else
        out_has 'linux ' "release $release, build-id $(console_value "$name" BUILDID), "
        out_has 'kernel log ' 'none tells of a crash or a hang'
    fi
    say "$name: $(sed -nE 's/^ +ok +linux +//p' "$work/out")"
}

# complete_stacks: stacks of the kernel are complete, through interrupts and their own stack; of some hundred
# samples, one more or less decides about 99 %
complete_stacks()
{
    sample "$samples_wanted" "$work/x" --capture "$work/x.capture" "$name"
    result sidecar "$work/x.meta.json" "linux['release'] == '$release'" "linux['kernel_stacks'] > 20" \
        "linux['processes']" "linux['user_complete'] * 100 >= linux['user_stacks'] * 60" \
        "linux['kernel_complete'] * 100 >= linux['kernel_stacks'] * 97" \
        "call_sites['agreed'] * 100 >= call_sites['checked'] * 90"
    grep -qE "^$name;syscalls;_start;.*;run_syscalls;read_zero;$system_call;.*;vfs_read_\[k\][; ]" "$work/x.folded" ||
        fail "no system call: $(cat "$work/x.folded")"
}

# complete_processes: stacks of processes are complete, and all code has a name. Right behind an exception, only
# registers that the monitor does not show tell where the process was.
complete_processes()
{
    local behind='((vectors|tramp_vectors|el0t_[a-z0-9_]+)_\[k\]|\[unknown\])'
    [ "$series" = 6.1 ] || ! grep -E "^$name;(user|syscalls|worker-[0-9]);.*\[unknown\]" "$work/x.folded" ||
        fail 'code without a name'
    grep -E "^$name;(user|worker-[0-9]);" "$work/x.folded" | grep -vE ";\[truncated\];$behind [0-9]+$" \
        >"$work/processes.folded"
    result stacks "$name" 97 "(user;_start;.*;main;.*;run_user|worker-[0-9];thread_start;start_thread;run_thread);split_loop;.*" \
        "$work/processes.folded"
}

# replays: the report of a capture has the same stacks
replays()
{
    profile 0 report -q -f folded "$work/x.capture"
    cmp -s "$work/out" "$work/x.folded" || fail "not the same: $(diff "$work/out" "$work/x.folded")"
}

# prints_log: only a hold in the kernel's code shows where the kernel is
prints_log()
{
    "$program" dmesg "${patient[@]}" "$name" >"$work/out" 2>"$work/err"
}

shows_log()
{
    wait_until 60 prints_log || fail "no log: $(cat "$work/err")"
    grep -qE '^\[    0\.000000\] Booting Linux on physical CPU ' "$work/out" || fail "no log: $(head -n 5 "$work/out")"
}

# lists_tasks: as list_tasks; only a hold in the kernel's code shows where the kernel is
lists_tasks()
{
    (list_tasks guest "${patient[@]}" "$name") 2>/dev/null
}

# compares_tasks: `ps` and `dump --tasks` agree with the guest's own /proc
compares_tasks()
{
    tell_linux "$name" 'stop in:/system.slice/web.service:waits user user syscalls' >"$work/said" || fail 'no tasks'
    ask_linux "$name" states >"$work/before" || fail 'no states'
    wait_until 60 lists_tasks || fail "no tasks: $(cat "$work/err")"
    ask_linux "$name" states >"$work/after" || fail 'no states'
    same_tasks guest
}

# boot_cell CPU VCPUS: a kernel on a processor with other page tables and other instructions
boot_cell()
{
    name=${guest_prefix}arm-$series-${1//,*/}
    boot_linux "$name" "$release" TCG ' -- kallsyms user threads syscalls' "$2" "$1" || fail "no guest with '$1'"
    must_say "$name" RELEASE "$release"
    knows_kernel
    complete_stacks
    complete_processes
    replays
    [ "$series" = 6.1 ] || shows_log
    compares_tasks
    destroy_guest "$name"
}

command -v qemu-system-aarch64 >/dev/null || skip 'there is no QEMU for aarch64'
[ -e "$linux_initrd" ] || skip 'there is no cross compiler for aarch64'
need_linux
need_own_daemon
guest_nvme=$work/disk.ext4
truncate -s 16M "$guest_nvme"
mke2fs -q -F -t ext4 -O ^has_journal "$guest_nvme" 4M || fail 'no file system (try: apt-get install e2fsprogs)'
# Page-table isolation, and addresses of 48 bits. One processor is enough for the older kernel.
[ "$series" = 6.1 ] || boot_cell cortex-a57 1
# Signed return addresses, and addresses of 52 bits
boot_cell max 2
no_leftovers "$work"
