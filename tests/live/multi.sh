#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# multi.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - several domains in one run; --all; and a domain that
# ends, and a domain that starts, in mid-run
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

one=${guest_prefix}one-$way
two=${guest_prefix}two-$way
three=${guest_prefix}three-$way
off=${guest_prefix}off-$way
chain='guest_entry;guest_main(;main_loop)?(;function_[123])?(;work)?'

# complete NAME...: each domain has a sidecar and a folded file with its own stacks
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

# The test has its own daemon, because --all samples all domains of a daemon.
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
# The run ends when each domain has its samples.
profile 0 "${outputs[@]}" --samples 5 --all
profile 0 "${outputs[@]}" -d 6 --all
complete "$one" "$two"
profile 0 dump "${patient[@]}" -c "$libvirt_uri" --all
[ "$(grep -cE "^($one|$two) vcpu0 kernel: [0-9]+ frames?, complete" "$work/out")" = 2 ] || fail "dump: $(cat "$work/out")"

say 'one is missing, one is shut off'
profile 6 "${outputs[@]}" -d 3 "$one" uprof-live-nobody
says "no domain 'uprof-live-nobody'"
# All names are looked up before the first sample.
[ "$(grep -n "no domain 'uprof-live-nobody'" "$work/err" | cut -d: -f1)" -lt \
    "$(grep -n ', access ' "$work/err" | cut -d: -f1)" ] || fail 'it is said after the start'
complete "$one"
profile 6 "${outputs[@]}" -d 3 "$off" "$two"
says "^virt-uprof: domain '$off' is shut off; start it with: virsh (-c [^ ]+ )?start $off$"
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
rm -f "$work/err"
"$program" "${outputs[@]}" -d 300 --all >"$work/out" 2>"$work/err" </dev/null &
profiler=$!
await_sampling 2
sleep 4
quiet_virsh destroy "$two" >/dev/null
boot "$three" split
# The new domain has a new UUID, but the name of a domain that this run has sampled.
boot "$two" split
wait_until 90 grep -q ": the domain was restarted;" "$work/err" || fail 'its restart is not noticed'
sleep 3
kill -INT "$profiler"
wait "$profiler" || fail "exit $?"
says "^virt-uprof: $two: the domain ended during the run; its samples are kept$"
says "^virt-uprof: $two: the domain was restarted; the restarted domain is not sampled, earlier samples are kept$"
result sidecar "$work/out.d/$one.meta.json" "ended_by == 'signal'"
result sidecar "$work/out.d/$two.meta.json" "ended_by == 'gone'" "duration_ms < 60000"
# The run has also sampled the boot of this domain.
result sidecar "$work/out.d/$three.meta.json" "ended_by == 'signal'" \
    "stacks['complete'] > 5"
result stacks "$three" 100 '(_start|guest_entry)(;.*)?|\[unknown\]|\[truncated\];.*' "$work/out.d/$three.folded"
rm "$work/out.d/$three.folded" "$work/out.d/$three.meta.json"
complete "$one" "$two"
must_run "$one"
must_run "$three"
quiet_virsh undefine "$off" >/dev/null
