#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# stacks.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - stacks are complete and correct even if leaf functions
# have no frame. They are unwound by unwind tables, by frame pointers, or by the code alone. gdb
# shows the same stack of a paused guest.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

samples_wanted=${UPROF_LIVE_SAMPLES:-$([ "$way" = DIRECT ] && echo 2000 || echo 700)}
chain='guest_entry;guest_main;main_loop(;function_[123](;work)?)?'

# shares_are_right IMAGE: all stacks are complete, and no stack of work lacks its function_N
shares_are_right()
{
    local image=$1 name=$guest_prefix$1-$way
    boot "$name" split 1 "$image"
    sample "$samples_wanted" "$work/$image" "$name"
    result sidecar "$work/$image.meta.json" "stacks['complete'] == samples['running']" \
        "frames['named'] == frames['total']" \
        "0 < call_sites['agreed'] == call_sites['checked']" "${@:2}"
    result stacks "$name" 100 "$chain" "$work/$image.folded"
    result shares "$name" "$samples_wanted" "$work/$image.folded"
}

# names_by_us NAME, names_by_gdb NAME IMAGE: print the functions of a paused guest's stack
names_by_us()
{
    "$program" dump --json "$1" 2>"$work/err" |
        python3 -c 'import json, sys
print(*[frame["name"] for frame in json.load(sys.stdin)["vcpus"][0]["frames"]], sep="\n")'
}

names_by_gdb()
{
    local socket=$work/gdb/socket
    quiet_virsh qemu-monitor-command "$1" --hmp \
        "gdbserver unix:$socket,server=on,wait=off" >/dev/null
    timeout -k 5 60 gdb -nx -batch -ex "file $guests/$2.elf" -ex "target remote $socket" \
        -ex 'bt -frame-info short-location' -ex detach 2>"$work/gdb.err" |
        sed -n 's/^#[0-9]* *\(0x[0-9a-f]* in \)\?\([A-Za-z_0-9]*\).*/\2/p'
    quiet_virsh qemu-monitor-command "$1" --hmp 'gdbserver none' >/dev/null
}

# gdb_agrees IMAGE: gdb shows the same stack as virt-uprof, five times
gdb_agrees()
{
    local image=$1 name=$guest_prefix$1-$way ours theirs i
    for i in 1 2 3 4 5; do
        quiet_virsh suspend "$name" >/dev/null
        ours=$(names_by_us "$name")
        theirs=$(names_by_gdb "$name" "$image")
        # gdb resumes the guest when it detaches.
        quiet_virsh resume "$name" >/dev/null 2>&1 || true
        if [ -z "$ours" ] || [ "$ours" != "$theirs" ]; then
            fail "$image: we say $(xargs <<<"$ours"), gdb says $(xargs <<<"$theirs")"
        fi
    done
}

# interrupts_are_right IMAGE: stacks are complete though nothing marks their root, with handlers of
# interrupts and without
interrupts_are_right()
{
    local image=$1 name=$guest_prefix$1-$way
    local within='main_loop(;function_[123](;work)?)?'
    boot "$name" ticks 1 "$image"
    sample "$samples_wanted" "$work/$image" "$name"
    result sidecar "$work/$image.meta.json" \
        "stacks['complete'] * 100 >= samples['running'] * 99 > 0"
    result stacks "$name" 99 \
        "guest_entry;guest_main;ticks_loop;$within(;tick_interrupt(;handle_tick(;work)?)?)?" \
        "$work/$image.folded"
    grep -qE ";$within;tick_interrupt;handle_tick;work " "$work/$image.folded" ||
        fail "no handler of interrupts: $(cat "$work/$image.folded")"
}

need_daemon
command -v gdb >/dev/null || skip 'there is no gdb'
# QEMU, which runs as another user, makes the socket.
chmod 711 "$work"
mkdir -m 777 "$work/gdb"
shares_are_right guestleaf "frames['cfi'] == 0" "frames['code'] > 0"
destroy_guest "${guest_prefix}guestleaf-$way"
shares_are_right guestbare "frames['cfi'] == 0" "frames['code'] > 0"
destroy_guest "${guest_prefix}guestbare-$way"
interrupts_are_right guesttick
destroy_guest "${guest_prefix}guesttick-$way"
shares_are_right guesttables "frames['code'] == frames['fp'] == 0"
gdb_agrees guesttables
no_leftovers "$work"
