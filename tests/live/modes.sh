#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# modes.sh PROGRAM GUESTS TCG - stacks are complete and have names in each paging mode of x86
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}modes

# A row is an image, a command line, and a CPU.
modes=(
    'guest32  split           -'
    'guest32  split,nopaging  -'
    'guest32  split,high      -'
    'guest32  split,large     -'
    'guestpae split           -'
    'guestpae split,high      -'
    'guestpae split,large     -'
    'guestpae split,nopaging  -'
    'guest5   split           max'
    'guest5   split,high      max'
    'guest5   deep            max'
    'guest64  split,high      -'
    'guest64  split,large     -'
    'guest64  split,huge      max'
    'guest64  deep,high       -'
    'guest32  deep,high       -'
)

need_daemon
for mode in "${modes[@]}"; do
    read -r image words cpu <<<"$mode"
    words=${words//,/ }
    boot "$name" "$words" 1 "$image" "${cpu#-}"
    # The guest reports its modes, or a feature that the CPU lacks.
    for word in $words; do
        case $word in
        split | deep | recursion) wait_until 5 grep -qa "virt-uprof guest: $word" "$(guest_serial "$name")" ;;
        *) wait_until 5 grep -qa " $word" "$(guest_serial "$name")" ;;
        esac || fail "$mode: the guest says '$(cat "$(guest_serial "$name")")'"
    done

    sample 60 "$work/x" "$name"
    if [ "${words%% *}" = deep ]; then
        # A few stacks are truncated before the run copies larger windows.
        result stacks "$name" 60 'guest_entry;guest_main;deep_loop(;deep_[0-9]{2}){64};work' "$work/x.folded"
        result sidecar "$work/x.meta.json" "stacks['truncated'] * 10 <= samples['running']" "stacks['unknown'] == 0"
    else
        result stacks "$name" 80 'guest_entry;guest_main;main_loop;function_[123];work' "$work/x.folded"
        result stacks "$name" 100 'guest_entry;guest_main(;main_loop)?(;function_[123])?(;work)?' "$work/x.folded"
        result sidecar "$work/x.meta.json" "stacks['complete'] == samples['running'] > 5"
    fi
    result sidecar "$work/x.meta.json" "ended_by == 'samples'" "60 <= samples['running'] < 600" \
        "frames['named'] == frames['total']" "images[0]['matched']" \
        "domain['arch'] == 'x86_64'"

    # `dump` shows one stack.
    profile 0 dump "${patient[@]}" "$name"
    grep -qE "frames?, complete" "$work/out" || [ "${words%% *}" = deep ] || fail "dump: $(cat "$work/out")"
    # The guest runs no Linux.
    profile 5 dmesg "${patient[@]}" "$name"
    says "^virt-uprof: $name: no Linux kernel was found"
    must_run "$name"
    destroy_guest "$name"
done
