#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# linux.sh PROGRAM GUESTS TCG|KVM|DIRECT SERIES - Debian's kernel with each number of
# page-table levels, with page tables of its own for user mode and without: what the
# program finds out from outside is what the guest says of itself
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

# look_at NAME: what is found out while the guest is in user mode, or in the kernel
look_at()
{
    profile 0 check "$1"
    profile 0 "${fast[@]}" -d 1 -o "$work/x.folded" -o "$work/x.meta.json" "$1"
    result sidecar "$work/x.meta.json" "samples['running'] >= 2"
}

need_daemon
need_linux
for levels in 5 4; do
    for pti in on off; do
        boot_cell "$levels" "$pti"
        look_at "$name"
        tell_linux "$name" 'stop syscalls' >"$work/said" || fail 'it does not listen'
        look_at "$name"
        runs "$name" || fail "'$name' does not run any more"
        destroy_guest "$name"
    done
done
