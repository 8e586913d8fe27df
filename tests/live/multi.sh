#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# multi.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - several domains in one run, --all, and
# in mid-run one of them that ends and another that starts
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

one=${guest_prefix}one-$way
two=${guest_prefix}two-$way
three=${guest_prefix}three-$way
off=${guest_prefix}off-$way
chain='guest_entry;guest_main(;main_loop)?(;function_[123])?(;work)?'

# complete NAME...: each has its folded file, which is its own, and its sidecar
complete()
{
    local name
    for name in "$@"; do
        result stacks "$name" 100 "$chain" "$work/out.d/$name.folded"
        result sidecar "$work/out.d/$name.meta.json" "domain['name'] == '$name'" \
            "samples['running'] > 5" "files == ['$name.folded', '$name.meta.json']"
    done
    [ "$(find "$work/out.d" -type f | wc -l)" = $(($# * 2)) ] || fail "$(ls -A "$work/out.d")"
    rm -rf "$work/out.d"
    mkdir "$work/out.d"
}

# A daemon of our own: --all means all there are, and others' are none of ours.
# shellcheck disable=SC2119
need_own_daemon
mkdir "$work/out.d"
outputs=(-c "$libvirt_uri" -o "$work/out.d/%d.folded" -o "$work/out.d/%d.meta.json" "${fast[@]}")

profile 3 "${outputs[@]}" -d 1 --all
says 'no domain runs on'

boot "$one" split
boot "$two" split
guest_xml "$off" "$(cat /proc/sys/kernel/random/uuid)" qemu "${guest_folders[$one]}" split 1 '' 128 \
    >"$work/off.xml"
quiet_virsh define "$work/off.xml" >/dev/null

say 'two by name'
profile 0 "${outputs[@]}" -d 6 "$one" "$two"
complete "$one" "$two"

say 'named twice, by name and by UUID'
profile 0 "${outputs[@]}" -d 2 "$one" "${guest_uuids[$one]}"
complete "$one"

say 'all that run'
profile 0 "${outputs[@]}" -d 6 --all
complete "$one" "$two"

say 'one is missing, one is shut off'
profile 6 "${outputs[@]}" -d 3 "$one" uprof-live-nobody
says "no domain 'uprof-live-nobody'"
complete "$one"
profile 6 "${outputs[@]}" -d 3 "$off" "$two"
says "^virt-uprof: domain '$off' is shut off; start it with: virsh start $off$"
complete "$two"
profile 2 -c "$libvirt_uri" -d 1 -o "$work/x.folded" "$one" "$two"
says '%d or %u in -o'

say 'both on stdout'
profile 0 -c "$libvirt_uri" "${fast[@]}" -d 3 "$one" "$two"
for name in "$one" "$two"; do
    grep -q "^$name;guest_entry;guest_main;main_loop;function_3;work [0-9]*$" "$work/out" ||
        fail "no stacks of '$name' on stdout"
done
must_run "$one"

say 'one ends in mid-run, another starts'
"$program" "${outputs[@]}" -d 120 --all >"$work/out" 2>"$work/err" </dev/null &
profiler=$!
sleep 4
quiet_virsh destroy "$two" >/dev/null
boot "$three" split
# Under a new UUID, but with the name of a file that is to be written.
boot "$two" split
wait_until 30 grep -q ": it was started anew;" "$work/err" || fail 'it is not seen that it was started anew'
sleep 3
kill -INT "$profiler"
wait "$profiler" || fail "exit $?"
says "^virt-uprof: $two: the domain ended in mid-run; its samples stand$"
says "^virt-uprof: $two: it was started anew; this run keeps to what it had sampled$"
result sidecar "$work/out.d/$one.meta.json" "ended_by == 'signal'"
result sidecar "$work/out.d/$two.meta.json" "ended_by == 'gone'" "duration_ms < 10000"
# Its boot was sampled as well.
result sidecar "$work/out.d/$three.meta.json" "ended_by == 'signal'" \
    "stacks['complete'] > 5"
result stacks "$three" 100 '(_start|guest_entry)(;.*)?|\[unknown\]|\[truncated\];.*' "$work/out.d/$three.folded"
rm "$work/out.d/$three.folded" "$work/out.d/$three.meta.json"
complete "$one" "$two"
must_run "$one"
must_run "$three"
quiet_virsh undefine "$off" >/dev/null
