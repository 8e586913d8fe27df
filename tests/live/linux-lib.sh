# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# linux-lib.sh - functions for the live tests with Linux guests
#
# NAME.sh PROGRAM GUESTS TCG|KVM|DIRECT SERIES sources this file in place of lib.sh. The guests
# run the newest Debian kernel of SERIES (6.1) in the cache. If the cache has none, need_linux
# fetches it.
# shellcheck source=tests/live/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/lib/cache.sh
source "$here/../lib/cache.sh"
# shellcheck source=tests/linux/kernels.sh
source "$here/../linux/kernels.sh"
# shellcheck source=tests/linux/guests.sh
source "$here/../linux/guests.sh"

series=${4:-6.1}
linux_initrd=$guests/../linux/initrd.cpio

# need_linux: sets $release
need_linux()
{
    release=$(kept_linux "$series")
    if [ -z "$release" ]; then
        fetch_linux "$series" >&2 || skip "there is no kernel $series, and none can be fetched"
        release=$(kept_linux "$series")
    fi
}

# must_say NAME WORD VALUE: the only line WORD on the guest's console has VALUE
must_say()
{
    local value
    value=$(console_value "$1" "$2") || fail "no '$2'"
    [ "$value" = "$3" ] || fail "'$1' says '$2 $value', not '$3'"
}

# must_know_kernel NAME: the last `check` has found the kernel that the guest says it runs
must_know_kernel()
{
    local symbols
    read -ra symbols <<<"$(console_value "$1" KALLSYMS)"
    out_has 'linux ' "release $release, build-id $(console_value "$1" BUILDID), "
    out_has 'kernel symbols ' "${symbols[1]}, " "digest ${symbols[0]};"
    out_has 'kernel types ' "from the kernel's type information (BTF)"
    out_has 'kernel stacks ' "callers are found by the kernel's own tables, "
    out_has 'processes ' 'names and mapped files are known'
}

# out_has WHAT PART...: the last run's line `ok WHAT` has all parts
out_has()
{
    local line part
    line=$(grep -E "^ +ok +$1" "$work/out") || fail "no 'ok $1': $(cat "$work/out")"
    for part in "${@:2}"; do
        [[ $line == *" $part"* ]] || fail "no '$part' in '$line'"
    done
}

# list_tasks NAME ARGUMENT...: writes the lists of tasks of a guest or a capture to NAME.ps and NAME.dump
list_tasks()
{
    profile 0 ps --json "${@:2}"
    mv "$work/out" "$work/$1.ps"
    profile 0 dump --tasks --json "${@:2}"
    mv "$work/out" "$work/$1.dump"
}

# same_tasks NAME: these lists agree with the guest's own /proc
same_tasks()
{
    python3 "$here/tasks.py" "$work/before" "$work/after" "$work/$1.ps" "$work/$1.dump" >"$work/said" ||
        fail "tasks of $1: $(head -n 20 "$work/said")"
    say "$name: tasks of $1: $(tail -n 1 "$work/said")"
}
