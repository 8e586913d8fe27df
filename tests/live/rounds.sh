#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# rounds.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - twenty rounds over five domains: one on KVM, one
# emulated, one paused, one with a hostile name, and one that ends in mid-round. `summary`, `report`
# and `prune` then work on the stored profiles.
#
# The test sets the program's clock to noon of one day, then to noon of the next day. The clock also
# jumps ahead once while a domain is sampled.
#
# tests/packages runs this test with the program of the Debian packages.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

rounds=20
rounds_of_first_day=14
kvm=${guest_prefix}kvm
tcg=${guest_prefix}tcg
paused=${guest_prefix}paused
# shellcheck disable=SC2016 # a name, not a command
hostile='-rf;$(touch x) %n'
mortal=${guest_prefix}mortal
store=$work/store
stacks='guest_entry;guest_main(;main_loop)?(;function_[123])?(;work)?'

# set_clock DAYS: sets the clock to noon, DAYS after the day before today
offset_to_noon=$(($(date +%s) / 86400 * 86400 - 43200 - $(date +%s)))
set_clock()
{
    echo $((offset_to_noon + $1 * 86400)) >"$work/clock.new"
    mv "$work/clock.new" "$work/clock"
}

# Each process of the program sees the clock of the test.
real_program=$program
program=$work/virt-uprof
cp "$guests/../libshift-clock.so" "$work/"
printf '#!/bin/sh\nLD_PRELOAD=%q UPROF_TEST_CLOCK=%q exec %q "$@"\n' "$work/libshift-clock.so" "$work/clock" \
    "$real_program" >"$program"
chmod 755 "$program"
set_clock 0

# stored STATUS COMMAND [WORD...]: runs a command on the store, which must exit with STATUS
stored()
{
    local status=$1 command=$2
    shift 2
    profile "$status" "$command" --config "$work/config.xml" --store "$store" "$@"
}

# newest NAME: prints the sidecar of the domain's newest slice; names of slices sort by time
newest()
{
    find "$store/data/$1" -name '*Z.meta.json' | sort | tail -n 1
}

# samples_of NAME: prints the samples in the domain's folded files: all slices, and merged days
# whose slices are deleted. Sidecars count a sample once; a profile counts the ticks for which the
# sample stands.
samples_of()
{
    python3 - "$store/data/$1" <<'PYTHON'
import gzip, json, pathlib, sys
total = 0
runs = {path: json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("*.meta.json")}
days = {path.name.split("-")[-1][:8] for path, run in runs.items() if "slices" in run}
for path, run in runs.items():
    if "slices" not in run and path.name.split("-")[-1][:8] in days:
        continue
    with gzip.open(str(path).removesuffix(".meta.json") + ".folded.gz", "rt") as lines:
        found = sum(int(line.rpartition(" ")[2]) for line in lines)
    if found < run["samples"]["running"]:
        sys.exit(f"{path}: {run['samples']['running']} samples, and {found} in the profile")
    total += found
print(total)
PYTHON
}

# reports SAMPLES WORD...: `report` finds SAMPLES samples with the guest's stacks
reports()
{
    local want=$1 found
    shift
    stored 0 report -q -f folded "$@" "$kvm"
    found=$(awk '{ n += $NF } END { print n + 0 }' "$work/out")
    [ "$found" = "$want" ] || fail "report $* has $found samples, not $want"
    result stacks "$kvm" 90 "$stacks" "$work/out"
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
  <store minFreeMegabytes="1"/>
</virt-uprof>
XML
define_guest "$paused" TCG "$guest64" split 1
quiet_virsh suspend "$paused" >/dev/null
for name in "$kvm" "$hostile"; do
    boot "$name" split
done
for name in "$tcg" "$mortal"; do
    define_guest "$name" TCG "$guest64" split 1
done
profile 0 enable --config "$work/config.xml" "$kvm" "$tcg" "$paused" "$mortal"

# gave_up: the last round has ended one domain's run because it took too long. On a busy machine
# whose KVM is itself emulated, QEMU does not answer its monitor for minutes, once in hundreds of
# runs. The round samples the other domains.
slow=0
slow_max=3
gave_up()
{
    [ "$(grep -c ': failed: ' "$work/err")" = 1 ] &&
        grep -q ': failed: its run took too long and was ended' "$work/err" || return 1
    slow=$((slow + 1))
    [ "$slow" -le "$slow_max" ] || fail 'domains are given up again and again'
}

say "$rounds rounds"
for ((n = 1; n <= rounds; n++)); do
    [ "$n" != $((rounds_of_first_day + 1)) ] || set_clock 1
    if [ "$n" = 2 ]; then
        profile 0 enable --config "$work/config.xml" -d 20s "$mortal"
        # The domain dies while its samples are taken.
        (
            wait_until 60 is_sampled "$mortal"
            sleep 4
            quiet_virsh destroy "$mortal" >/dev/null
        ) &
        killer=$!
    fi
    status=0
    "$program" collect --config "$work/config.xml" --store "$store" >"$work/out" 2>"$work/err" </dev/null ||
        status=$?
    [ "$status" = 0 ] || { [ "$status" = 6 ] && gave_up; } || fail "a round exits $status"
    [ "$n" != 2 ] || wait "$killer"
    says "^$paused \\(.*\\): skipped: it is paused$"
done
counts=$rounds deaths=2
[ "$slow" = 0 ] || counts=$((rounds - slow))+ deaths=1+
python3 "$here/store.py" "$store" "$kvm=$counts" "$tcg=$counts" "$hostile=$counts" "$mortal=$deaths" || fail 'the store'
result sidecar "$(newest "$mortal")" "ended_by == 'gone'" "samples['total'] > 0" 'duration_ms < 20000'
result sidecar "$(newest "$kvm")" "access == '$access'" "ended_by == 'duration'"
result sidecar "$(newest "$tcg")" "access == 'monitor'"
must_be_paused "$paused"

say 'what is stored is read'
samples=$(samples_of "$kvm")
reports "$samples" --since 2d
stored 0 prune
says ': [0-9]+ profiles merged into 4 days, 1 summaries written, 0 profiles removed, '
[ "$(samples_of "$kvm")" = "$samples" ] || fail 'prune has lost samples'
reports "$samples" --since 2d
stored 0 summary
for name in "$kvm" "$tcg" "$hostile" "$mortal"; do
    grep -qF -- "$name (" "$work/out" || fail "no '$name' in the summary: $(cat "$work/out")"
done
grep -qE '^ +[0-9.]+ +[0-9.]+ .* work$' "$work/out" || fail "no function in the summary: $(cat "$work/out")"
cmp "$work/out" "$store"/summary/*.txt || fail 'prune has written another summary'
stored 0 summary today
stored 0 diff "$kvm@yesterday" "$kvm@today"

say 'a clock that jumps ahead'
until
    set_clock 1
    before=$(newest "$kvm")
    "$program" collect --config "$work/config.xml" --store "$store" -d 3s "$kvm" >"$work/out" 2>"$work/err" </dev/null &
    running=$!
    wait_until 20 is_sampled "$kvm" || fail 'nothing is sampled'
    sleep 1
    set_clock 400
    wait "$running"
do
    gave_up || fail 'a round in which the clock jumps fails'
done
after=$(newest "$kvm")
[ "$after" != "$before" ] || fail 'that round has stored nothing'
[[ $after = *"-$(date -u -d "@$(($(date +%s) + offset_to_noon + 86400))" +%Y%m%d)T"* ]] ||
    fail "that round is of the day that the clock shows behind it: $after"
result sidecar "$after" "ended_by == 'duration'" 'duration_ms < 20000' "samples['total'] > 0"
stored 0 collect "$tcg"
set_clock 1
stored 0 collect "$tcg"
set_clock 2
samples=$(samples_of "$kvm")
stored 0 prune
says ' profiles merged into 3 days, 1 summaries written, 0 profiles removed, '
[ "$(samples_of "$kvm")" = "$samples" ] || fail 'prune has lost samples'
reports "$samples" --since 4d
for name in "$kvm" "$tcg" "$hostile"; do
    must_be_free "$name"
    must_run "$name"
done
must_be_paused "$paused"
no_leftovers "$store"
