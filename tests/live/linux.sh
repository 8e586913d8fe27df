#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# linux.sh PROGRAM GUESTS TCG|KVM|DIRECT SERIES - Debian's kernel with each number of
# page-table levels, with page tables of its own for user mode and without: what the
# program finds in memory is what the guest says of itself
# shellcheck source=tests/live/linux-lib.sh
source "$(dirname "$0")/linux-lib.sh"

# boot_cell LEVELS PTI: a guest so, whose only process never leaves user mode; sets $name
boot_cell()
{
    local asked="pti=$2"
    name=$guest_prefix$series-$1-$2-$way
    [ "$1" = 5 ] || asked+=' no5lvl'
    boot_linux "$name" "$release" "$machine" "$asked -- kallsyms user" 1 ||
        fail "no guest with $1 levels and pti=$2"
    # That this is what was asked for is not to be taken on trust.
    must_say "$name" RELEASE "$release"
    must_say "$name" LEVELS "$1"
    must_say "$name" PTI "$2"
}

# look_at PROCESS: what is found while the guest does nothing else
look_at()
{
    profile 0 check "${patient[@]}" "$name"
    must_know_kernel "$name"
    profile 0 "${fast[@]}" -d 1 -o "$work/x.folded" -o "$work/x.meta.json" "$name"
    result sidecar "$work/x.meta.json" "samples['running'] >= 2"
    grep -q "^$name;$1;" "$work/x.folded" || fail "no process '$1': $(cat "$work/x.folded")"
}

need_daemon
need_linux
for levels in 5 4; do
    for pti in on off; do
        boot_cell "$levels" "$pti"
        look_at user
        tell_linux "$name" 'stop syscalls' >"$work/said" || fail 'it does not listen'
        look_at syscalls
        runs "$name" || fail "'$name' does not run any more"
        destroy_guest "$name"
    done
done
