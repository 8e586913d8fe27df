#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# collect.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - rounds over domains of which some cannot be sampled;
# rounds with the privileges of the units; and rounds that are killed, also while the disk is full
#
# rounds.sh runs more rounds without such faults.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

rounds=2
namespace=https://virt-uprof.org/xmlns/domain/1.0
kvm=${guest_prefix}kvm
tcg=${guest_prefix}tcg
paused=${guest_prefix}paused
# shellcheck disable=SC2016 # a name, not a command
hostile='-rf;$(touch x) %n'
off=${guest_prefix}off
store=$work/store
skipped= # parts that could not be tested
stacks='guest_entry;guest_main(;main_loop)?(;function_[123])?(;work)?'

# collect STATUS OPTION...: runs a round, which must exit with STATUS
collect()
{
    local status=$1
    shift
    profile "$status" collect --config "$work/config.xml" --store "$store" "$@"
}

# round: runs a round over all domains. On a busy machine whose KVM is itself emulated, QEMU does
# not answer its monitor for minutes, once in hundreds of rounds. The round then ends that domain's
# run, says so, and samples all other domains.
slow=0
round()
{
    local status=0
    "$program" collect --config "$work/config.xml" --store "$store" >"$work/out" 2>"$work/err" </dev/null ||
        status=$?
    if [ "$status" = 6 ] && [ "$(grep -c ': failed: ' "$work/err")" = 1 ] &&
        grep -q ': failed: its run took too long and was ended' "$work/err"; then
        slow=$((slow + 1))
    elif [ "$status" != 0 ]; then
        fail "a round exits $status"
    fi
    [ "$slow" -le 1 ] || fail 'domains are given up again and again'
}

# collect_one STATUS OPTION...: runs a round over one domain, and once more if it took too long
collect_one()
{
    local try status
    for try in 1 2; do
        status=0
        "$program" collect --config "$work/config.xml" --store "$store" "${@:2}" >"$work/out" 2>"$work/err" \
            </dev/null || status=$?
        grep -q ': failed: its run took too long and was ended' "$work/err" || break
    done
    [ "$status" = "$1" ] || fail "collect ${*:2} exits $status, not $1"
}

# check_store [NAME=COUNT...]: the store is in order and has COUNT slices of each domain
check_store()
{
    python3 "$here/store.py" "$store" "$@" || fail 'the store'
}

# newest NAME: prints the sidecar of the domain's newest slice
newest()
{
    find "$store/data/$1" -name '*.meta.json' | sort | tail -n 1
}

# shows PATTERN: `configure` prints such a line for $tcg
shows()
{
    profile 0 configure --config "$work/config.xml" "$tcg"
    grep -qE -- "$1" "$work/out" || fail "configure says nothing of '$1': $(cat "$work/out")"
}

only_collector
# The test has its own daemon, so that hostile names do no harm to other tests.
# shellcheck disable=SC2119
need_own_daemon
cat >"$work/config.xml" <<XML
<virt-uprof>
  <profile rate="500" duration="1s" budget="50"/>
  <collect connect="$libvirt_uri" domains="-rf*"/>
  <limits rate="500" duration="60s" budget="50"/>
  <symbols path="$work/symbols"/>
  <store minFreeMegabytes="1"/>
  <destination name="engine" type="pyroscope" url="http://127.0.0.1:9" metadataLabels="team"/>
</virt-uprof>
XML
mkdir "$work/symbols"
define_guest "$paused" TCG "$guest64" split 1
quiet_virsh suspend "$paused" >/dev/null
for name in "$kvm" "$hostile"; do
    boot "$name" split
done
define_guest "$tcg" TCG "$guest64" split 1

say 'metadata by virsh, and by the program'
collect 0 -- "$paused"
says "^$paused \\(.*\\): skipped: it is paused$"
quiet_virsh metadata "$tcg" "$namespace" --key uprof --live --set '<profile enabled="no" rate="77" color="red"/>' \
    >/dev/null
shows '^  enabled +no +metadata$'
shows '^  rate +77 Hz +metadata$'
profile 0 enable --config "$work/config.xml" -d 250ms --unwind cfi "$tcg"
found=$(quiet_virsh metadata "$tcg" "$namespace")
for part in 'enabled="yes"' 'rate="77"' 'duration="250ms"' 'color="red"' '<unwind method="cfi"/>'; do
    [[ $found = *"$part"* ]] || fail "no $part in: $found"
done
shows '^  duration +250ms +metadata$'
shows '^  unwind +cfi +metadata$'
shows '^  unknown +@color +metadata'
# The schema accepts the element in the domain's XML, except for the unknown attribute.
profile 0 disable --config "$work/config.xml" "$tcg"
shows '^  enabled +no +metadata$'
shows '^  rate +77 Hz +metadata$'
profile 0 enable --config "$work/config.xml" -F 500 -d 1s --unwind auto "$kvm" "$tcg" "$paused"

say 'a domain that is persistent: both places'
guest_xml "$off" "$(cat /proc/sys/kernel/random/uuid)" qemu "${guest_folders[$tcg]}" split 1 '' 128 >"$work/off.xml"
quiet_virsh define "$work/off.xml" >/dev/null
profile 0 enable --config "$work/config.xml" -F 5 "$off"
quiet_virsh metadata "$off" "$namespace" --config | grep -q 'rate="5"' || fail 'nothing is written for a start'
quiet_virsh undefine "$off" >/dev/null

say 'symbols that metadata may not have'
profile 1 enable --config "$work/config.xml" -s /etc/passwd "$tcg"
says "^virt-uprof: $tcg: symbols '/etc/passwd' are outside the folders that <symbols> allows"
quiet_virsh metadata "$tcg" "$namespace" --key uprof --live --set \
    '<profile enabled="yes" duration="1s"><symbols file="/etc/passwd"/></profile>' >/dev/null
collect_one 0 -- "$tcg"
says "symbols '/etc/passwd' are outside the folders that <symbols> allows .*; ignored$"
says "^$tcg \\(.*\\): ok: [0-9]+ samples in [0-9]+\\.[0-9] s, each vCPU held [0-9.]+ % of the time or less$"
cp "$guest64" "$work/symbols/app.dbg"
profile 0 enable --config "$work/config.xml" -s "$work/symbols/app.dbg" "$tcg"
collect_one 0 -- "$tcg"
result sidecar "$(newest "$tcg")" "images[0]['symbols'] == '$work/symbols/app.dbg'"
rm -rf "$store"

say "$rounds rounds"
for ((n = 1; n <= rounds; n++)); do
    round
    says "^$paused \\(.*\\): skipped: it is paused$"
done
[ "$slow" = 0 ] || rounds=$((rounds - slow))+
check_store "$kvm=$rounds" "$tcg=$rounds" "$hostile=$rounds"
rounds=${rounds%+}
result sidecar "$(newest "$kvm")" "access == '$access'" "ended_by == 'duration'"
result sidecar "$(newest "$tcg")" "access == 'monitor'"
slice=$(newest "$kvm")
gunzip -c "${slice%.meta.json}.folded.gz" >"$work/kvm.folded"
result stacks "$kvm" 95 "$stacks" "$work/kvm.folded"
must_be_paused "$paused"
collect_one 0 -q "$tcg"
[ ! -s "$work/err" ] || fail "a round with -q prints: $(cat "$work/err")"

say 'another run samples it'
"$program" -d 60s -o "$work/hand.folded" --access "$access" "$kvm" >/dev/null 2>"$work/hand.err" </dev/null &
hand=$!
wait_until 60 grep -q ', access ' "$work/hand.err" || fail "nothing is sampled by hand: $(cat "$work/hand.err")"
collect 0 "$kvm"
says "^$kvm \\(.*\\): skipped: another run of virt-uprof \\(process [0-9]+\\) is sampling it$"
kill -INT "$hand"
wait "$hand" || true # the run may have no sample yet

say 'a store that is full'
mkdir "$work/small"
if mount -t tmpfs -o size=256k,mode=750 tmpfs "$work/small"; then
    at_exit umount "$work/small"
    sed 's/minFreeMegabytes="1"/minFreeMegabytes="0"/' "$work/config.xml" >"$work/full.xml"
    store=$work/small
    collect_one 0 --config "$work/full.xml" "$kvm"
    dd if=/dev/zero of="$store/rest" bs=4k 2>/dev/null || true
    collect_one 5 --config "$work/full.xml" "$kvm"
    says "^$kvm \\(.*\\): failed: cannot write .*: No space left on device$"
    collect 5 "$kvm"
    says "^$kvm \\(.*\\): failed: .*free"
    rm "$store/rest"
    collect_one 0 --config "$work/full.xml" "$kvm"
    check_store "$kvm=2"
    say 'a store that cannot be written'
    mount -o remount,ro "$work/small"
    collect_one 5 --config "$work/full.xml" "$kvm"
    says "^$kvm \\(.*\\): failed: cannot .*: Read-only file system$"
    mount -o remount,rw "$work/small"
    check_store "$kvm=2"
    store=$work/store
else
    skipped+='no tmpfs can be mounted here; '
fi

say 'a daemon that hangs, and one that starts again in mid-round'
sed 's/<collect /<collect longest="2s" /' "$work/config.xml" >"$work/short.xml"
daemon=$(cat "$work/d/run/libvirtd.pid")
kill -STOP "$daemon"
profile 4 collect --config "$work/short.xml" --store "$store"
kill -CONT "$daemon"
says "^virt-uprof: .*: libvirt does not answer; see: systemctl status libvirtd; its domains are left out$"
[ "$(wc -l <"$work/err")" = 1 ] || fail 'not one line'
"$program" collect --config "$work/config.xml" --store "$store" -d 3s "$kvm" "$tcg" \
    >"$work/out" 2>"$work/err" </dev/null &
running=$!
wait_until 20 is_sampled "$kvm" || wait_until 20 is_sampled "$tcg" || fail 'nothing is sampled'
end_test_libvirtd "$work/d" KILL
run_test_libvirtd "$work/d"
status=0
wait "$running" || status=$?
[[ $status =~ ^[0456]$ ]] || fail "a round exits $status when libvirt starts again"
round
no_leftovers "$store"

say 'rounds that are killed, of collect and of prune'
mkdir "$work/kills"
if mount -t tmpfs -o size=8m,mode=750 tmpfs "$work/kills"; then
    at_exit umount "$work/kills"
    start_keeper
    python3 "$here/killrounds.py" "$program" "$libvirt_uri" "$work/kills" "$kvm" "$tcg" "$hostile" >"$work/out" ||
        fail 'killrounds.py'
    say "$(cat "$work/out")"
else
    skipped+='no tmpfs can be mounted here; '
fi
must_be_paused "$paused"
for name in "$kvm" "$tcg" "$hostile"; do
    must_be_free "$name"
    must_run "$name"
done

say 'as the units do it'
for command in collect prune push; do
    sed "s,@bindir@,/usr/bin," "$here/../../data/virt-uprof-$command.service.in" >"$work/$command.service"
done
cp "$program" "$work/virt-uprof" # a path that the units can read
helper=$(dirname "$(realpath "$program")")/push-helper
[ ! -e "$helper" ] || cp "$helper" "$work/push-helper"
# as_unit UNIT SCRIPT: runs the shell script SCRIPT with the unit's privileges; $0 is the program,
# $1 the configuration, $2 the store
as_unit()
{
    local status=0
    "$here/../lib/as-unit.py" "$work/$1.service" "$store" -- sh -ec "$2" "$work/virt-uprof" "$work/config.xml" \
        "$store" "$kvm" "$tcg" >"$work/out" 2>"$work/err" || status=$?
    [ "$status" = 0 ] || [ "$status" = 77 ] || fail "as the unit of $1 it exits $status: $(cat "$work/out")"
    return "$status"
}
# The scripts also try forbidden actions, to show that the restrictions of the units are in force.
# shellcheck disable=SC2016 # the inner shell expands these variables
if as_unit collect '
    "$0" collect --config "$1" --store "$2" "$3" "$4"
    "$0" check --heal --quiet
    ! touch /etc/uprof 2>/dev/null && ! python3 -c "import socket; socket.socket(socket.AF_INET)" 2>/dev/null'; then
    says "^$kvm \\(.*\\): ok: "
    says "^$tcg \\(.*\\): ok: "
    result sidecar "$(newest "$kvm")" "access == '$access'" "ended_by == 'duration'"
    result sidecar "$(newest "$tcg")" "images[0]['symbols'] == '$work/symbols/app.dbg'"
    as_unit prune '
        "$0" prune --config "$1" --store "$2"
        status=0
        "$0" collect -q --config "$1" --store "$2" "$3" 2>/dev/null || status=$?
        [ "$status" = 4 ]'
else
    skipped+="$(cat "$work/out"); "
fi

say 'what is stored is read'
profile 0 summary --config "$work/config.xml" --store "$store" today
for name in "$kvm" "$tcg"; do
    grep -qF -- "$name (" "$work/out" || fail "no $name in the summary: $(cat "$work/out")"
done
grep -qE '^  [0-9]+ profiles? of ' "$work/out" || fail "no profile in the summary: $(cat "$work/out")"
profile 0 report --config "$work/config.xml" --store "$store" -f folded --since today "$kvm"
result stacks "$kvm" 90 "$stacks" "$work/out"
profile 0 prune --config "$work/config.xml" --store "$store"
says ': [0-9]+ profiles merged into [0-9]+ days, [0-9]+ summaries written, 0 profiles removed, '
[ -s "$(newest "$kvm")" ] || fail 'prune has deleted the newest profile'

if [ -e "$work/push-helper" ]; then
    say 'rounds and runs go to an engine'
    mkdir "$work/engine"
    python3 "$here/../push/serve.py" pyroscope "$work/engine" &
    at_exit kill $!
    wait_until 30 test -s "$work/engine/url" || fail 'the receiver does not start'
    url=$(cat "$work/engine/url")
    sed -i "s,http://127.0.0.1:9,$url," "$work/config.xml"
    virsh -c "$libvirt_uri" metadata "$tcg" "$namespace" --key uprof --live \
        --set '<profile enabled="yes"><label name="team" value="a b"/><label name="other" value="c"/></profile>' \
        >/dev/null
    collect_one 0 "$tcg"
    # shellcheck disable=SC2016 # the inner shell expands these variables
    as_unit push '
        "$0" push --config "$1" --store "$2" && ! touch /etc/uprof 2>/dev/null' ||
        fail "push as a unit: $(cat "$work/out")"
    says '^engine: [0-9]+ profiles sent \('
    grep -F -- "$tcg " "$work/engine/accepted" | tail -n 1 | grep -q '"team": "a b"' ||
        fail "no label of metadata: $(cat "$work/engine/accepted")"
    # the stored round says where its functions come from
    grep -F -- "$tcg " "$work/engine/accepted" | tail -n 1 |
        grep -qE '"guest_main": \["\[app\]", "[0-9a-f]{40}", "[^"]+/guest[^"]*\.c", [1-9][0-9]*\]' ||
        fail "no source of a function: $(tail -n 1 "$work/engine/accepted")"
    ! grep -q '"other"' "$work/engine/accepted" || fail 'a label that the destination does not allow'
    profile 0 push --config "$work/config.xml" --store "$store"
    says '^engine: nothing to send$'
    before=$(wc -l <"$work/engine/accepted")
    profile 0 record --push --config "$work/config.xml" -c "$libvirt_uri" -d 1s -o "$work/pushed.folded" "$kvm"
    says '^engine: 1 profile sent \('
    after=$(wc -l <"$work/engine/accepted")
    [ "$after" = $((before + 1)) ] || fail "$before profiles before, $after after"
    samples=$(awk '{ sum += $NF } END { print sum }' "$work/pushed.folded")
    tail -n 1 "$work/engine/accepted" | grep -q "^$kvm $samples " ||
        fail "$samples samples, but: $(tail -n 1 "$work/engine/accepted")"
    tail -n 1 "$work/engine/accepted" | grep -qE '/guest[^"]*\.c", [1-9]' ||
        fail "no source of a function: $(tail -n 1 "$work/engine/accepted")"
    [ ! -e "$work/engine/faults" ] || fail "the receiver: $(cat "$work/engine/faults")"
    profile 0 check --push --config "$work/config.xml" -c "$libvirt_uri"
    grep -q "^  ok    engine  *$url answers" "$work/out" || fail "check: $(cat "$work/out")"
else
    skipped+='the build is without libcurl; '
fi

[ -z "$skipped" ] || skip "$skipped"
