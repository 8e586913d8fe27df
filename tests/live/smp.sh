#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# smp.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - samples of two vCPUs that run different functions are
# never mixed up
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}smp-$way
# While the first instruction of a function runs, its caller may be missing.
vcpu0='guest_entry;guest_main(;vcpu0_loop)?(;vcpu0_work)?'
vcpu1='guest_entry_ap;ap_main(;vcpu1_loop)?(;vcpu1_work)?'

need_daemon
boot "$name" smp 2
wait_until "$guest_seconds" second_vcpu_works "$name" || fail 'vCPU 1 does not begin'

profile 0 "${fast[@]}" -d 8 --per-vcpu -o "$work/x.folded" -o "$work/x.meta.json" \
    --capture "$work/x.capture" "$name"
result stacks "$name" 100 "vcpu0;$vcpu0|vcpu1;$vcpu1" "$work/x.folded"
result stacks "$name" 40 "vcpu0;guest_entry;guest_main;vcpu0_loop;vcpu0_work" "$work/x.folded"
result stacks "$name" 40 "vcpu1;guest_entry_ap;ap_main;vcpu1_loop;vcpu1_work" "$work/x.folded"
# A hold of access `monitor` serves both vCPUs. Access `direct` has a hold for each.
if [ "$access" = monitor ]; then
    result sidecar "$work/x.meta.json" "2 * hold_us['count'] == samples['total']"
else
    result holds "$work/x.capture" "$work/x.meta.json"
fi
result sidecar "$work/x.meta.json" "domain['vcpus'] == 2" "samples['total'] >= 20" \
    "access == '$access'" "stacks['truncated'] == 0" "samples['idle'] == 0"

profile 0 "${fast[@]}" -d 3 -o "$work/x.folded" "$name"
result stacks "$name" 100 "$vcpu0|$vcpu1" "$work/x.folded"

profile 0 "${fast[@]}" -d 3 --vcpu 1 -o "$work/x.folded" -o "$work/x.meta.json" \
    --capture "$work/x.capture" "$name"
result stacks "$name" 100 "$vcpu1" "$work/x.folded"
result sidecar "$work/x.meta.json" "samples['total'] >= hold_us['count'] > 5"
result holds "$work/x.capture" "$work/x.meta.json"

profile 0 "${fast[@]}" -d 3 --vcpu 0 --per-vcpu -o "$work/x.folded" "$name"
result stacks "$name" 100 "vcpu0;$vcpu0" "$work/x.folded"

profile 2 -d 1 --vcpu 7 -o "$work/y.folded" "$name"
says "^virt-uprof: $name: no vCPU 7: the domain has vCPUs 0 to 1$"
profile 2 -d 1 --vcpu 0,2 -o "$work/y.folded" "$name"
profile 2 -d 1 --vcpu x -o "$work/y.folded" "$name"
[ ! -e "$work/y.folded" ] || fail 'an output of a refused run'
no_leftovers "$work"

profile 0 dump "${patient[@]}" "$name"
[ "$(grep -cE "^$name vcpu[01] kernel: [0-9]+ frames, complete" "$work/out")" = 2 ] ||
    fail "dump: $(cat "$work/out")"

# Both vCPUs still work.
must_run "$name"
before=$(counter "$name" uprof_counter_ap)
wait_until 20 counts_on "$name" "$before" uprof_counter_ap || fail 'vCPU 1 stands still'
