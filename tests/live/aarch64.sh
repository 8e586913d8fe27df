#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# aarch64.sh PROGRAM GUESTS TCG PAGE-WALK - bare aarch64 guests: page tables of every kind, which no register
# tells; functions have their shares, and no caller of a leaf is lost; gdb shows the same stacks
#
# $UPROF_LIVE_SAMPLES: of the shares of each guest
# $UPROF_LIVE_ADDRESSES: random addresses of each guest, which QEMU translates, too
# $UPROF_LIVE_STACKS: states of each guest that gdb shows, too
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2034 # setup.sh uses it
guest_arch=aarch64
page_walk=$(realpath "$4")
samples_wanted=${UPROF_LIVE_SAMPLES:-600}
chain='guest_entry;guest_main;main_loop(;function_[123](;work)?)?'
stacks_wanted=${UPROF_LIVE_STACKS:-3}
addresses=${UPROF_LIVE_ADDRESSES:-400}

# walks IMAGE CPU CMDLINE: our walks agree with QEMU's translation
walks()
{
    local name=${guest_prefix}$1
    boot "$name" "$3" 1 "$1" "$2"
    "$page_walk" "$libvirt_uri" "${guest_uuids[$name]}" "$name" "$addresses" >"$work/said" 2>"$work/err" ||
        fail "$1, $2: the page tables"
    say "$1, $2: $(cat "$work/said")"
    must_run "$name"
    destroy_guest "$name"
}

# complete IMAGE CPU SAMPLES EXPRESSION: stacks are complete, and how callers are found
complete()
{
    name=${guest_prefix}$1
    boot "$name" split 1 "$1" "$2"
    sample "$3" "$work/x" "$name"
    result sidecar "$work/x.meta.json" "stacks['complete'] == samples['running']" \
        "frames['named'] == frames['total']" "0 < call_sites['agreed'] == call_sites['checked']" "$4"
    result stacks "$name" 100 "$chain" "$work/x.folded"
    must_run "$name"
    destroy_guest "$name"
}

# shares IMAGE CPU EXPRESSION: the same, and functions have their shares
shares()
{
    complete "$1" "$2" "$samples_wanted" "$3"
    result shares "$name" "$samples_wanted" "$work/x.folded"
}

# names_by_gdb NAME IMAGE: prints the functions of a paused guest's stack
names_by_gdb()
{
    local socket=$work/gdb/socket
    quiet_virsh qemu-monitor-command "$1" --hmp "gdbserver unix:$socket,server=on,wait=off" >/dev/null
    timeout -k 5 60 gdb-multiarch -nx -batch -ex "file $guests/$2.elf" -ex "target remote $socket" \
        -ex 'bt -frame-info short-location' -ex detach 2>"$work/gdb.err" |
        sed -n 's/^#[0-9]* *\(0x[0-9a-f]* in \)\?\([A-Za-z_0-9]*\).*/\2/p'
    quiet_virsh qemu-monitor-command "$1" --hmp 'gdbserver none' >/dev/null
}

# stacks IMAGE CPU CMDLINE: gdb shows the same stacks of the paused guest
stacks()
{
    local name=${guest_prefix}$1 ours theirs i
    boot "$name" "$3" 1 "$1" "$2"
    for ((i = 0; i < stacks_wanted; i++)); do
        quiet_virsh suspend "$name" >/dev/null
        ours=$("$program" dump --json "$name" 2>"$work/err" |
            python3 -c 'import json, sys
print(*[frame["name"] for frame in json.load(sys.stdin)["vcpus"][0]["frames"]], sep="\n")')
        theirs=$(names_by_gdb "$name" "$1")
        # gdb resumes the guest when it detaches.
        quiet_virsh resume "$name" >/dev/null 2>&1 || true
        if [ -z "$ours" ] || [ "$ours" != "$theirs" ]; then
            fail "$1: we say $(xargs <<<"$ours"), gdb says $(xargs <<<"$theirs")"
        fi
        # The next state is another one.
        must_run "$name"
    done
    say "$1, $2: $stacks_wanted stacks as gdb shows them"
    destroy_guest "$name"
}

# two_vcpus: each vCPU has its own stacks
two_vcpus()
{
    local name=${guest_prefix}arm-smp
    boot "$name" smp 2 guestarm cortex-a57
    wait_until 60 second_vcpu_works "$name" || fail 'the second vCPU does not start'
    sample 60 "$work/x" --per-vcpu "$name"
    result stacks "$name" 95 'vcpu0;guest_entry;guest_main;vcpu0_loop(;vcpu0_work)?|vcpu1;guest_entry_ap;ap_main;vcpu1_loop(;vcpu1_work)?' \
        "$work/x.folded"
    destroy_guest "$name"
}

# captured: the report of a capture has the same stacks
captured()
{
    local name=${guest_prefix}arm-capture
    boot "$name" deep 1 guestarmsigned max
    sample 20 "$work/x" --capture "$work/x.capture" "$name"
    profile 0 report -q -f folded "$work/x.capture"
    cmp -s "$work/out" "$work/x.folded" || fail "not the same: $(diff "$work/out" "$work/x.folded")"
    profile 0 report -q --annotate work "$work/x.capture"
    grep -qE '\.inst 0x[0-9a-f]{8}' "$work/out" || fail "no instructions: $(head -n 5 "$work/out")"
    grep -qE "^$name;guest_entry;guest_main;deep_loop;deep_00;.*;deep_63;work [0-9]+$" "$work/x.folded" ||
        fail "no deep stack: $(cut -c 1-200 "$work/x.folded")"
    profile 0 check "${patient[@]}" "$name"
    grep -qE "^ +ok +guest +aarch64, 64-bit code, paging 4 KiB pages, 1 vCPU$" "$work/out" ||
        fail "no paging in: $(cat "$work/out")"
}

command -v qemu-system-aarch64 >/dev/null || skip 'there is no QEMU for aarch64'
[ -e "$guests/guestarm.elf" ] || skip 'there is no cross compiler for aarch64'
[ -e "$guests/guestarmclang.elf" ] || skip 'clang or its linker is missing'
need_own_daemon
# QEMU, which runs as another user, makes the socket.
chmod 711 "$work"
mkdir -m 777 "$work/gdb"
walks guestarm cortex-a57 split
walks guestarm cortex-a57 'split nopaging'
walks guestarm48 max 'split high'
walks guestarm52 max 'split high'
walks guestarm16k max 'split high'
walks guestarm16k52 max 'split high'
walks guestarm64k max 'split high'
walks guestarm64k52 max 'split high'
complete guestarm cortex-a57 80 "frames['cfi'] > 0"
complete guestarmleaf cortex-a57 80 "frames['cfi'] == 0"
complete guestarmtables cortex-a57 80 "frames['cfi'] > 0"
complete guestarmclangbare max 80 "frames['cfi'] == 0"
complete guestarmsigned max 80 "frames['cfi'] == 0"
shares guestarmbare max "frames['cfi'] == 0"
two_vcpus
captured
command -v gdb-multiarch >/dev/null || skip 'there is no gdb-multiarch'
stacks guestarmtables cortex-a57 split
stacks guestarmclang max 'recursion high'
no_leftovers "$work"
