#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# capture.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - the report of a capture has the same bytes as the
# run, and the sidecar is right
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

# record NAME SECONDS [ARGUMENT...]: runs with all outputs, and checks each of them; sets $total
# to the number of samples in the folded file
record()
{
    local name=$1 seconds=$2 i
    shift 2
    rm -f "$work"/x.*
    profile 0 "${fast[@]}" -d "$seconds" -o "$work/x.folded" --capture "$work/x.capture" \
        -o "$work/x.meta.json" "$@" "$name"
    for i in 1 2; do
        "$program" report -f folded -o - "$work/x.capture" >"$work/again$i" 2>"$work/err" ||
            fail "report of $name"
        cmp "$work/x.folded" "$work/again$i" || fail "report $i differs from the run of $name"
    done
    total=$(result total "$work/x.folded")
    result sidecar "$work/x.meta.json" "domain['name'] == '$name'" "ended_by == 'duration'" \
        "files == ['x.folded', 'x.meta.json', 'x.capture']" "rate['asked_millihertz'] == 1000000" \
        "rate['got_millihertz'] > 0" "images[0]['build_id']" \
        "images[0]['matched'] or samples['running'] == 0" \
        "hold_us['total'] >= stopped_us['total']" \
        "hold_us['count'] > 0 and held_share_ppm > 0 or samples['running'] == 0" \
        "-1000 < duration_ms - $seconds * 1000 < 10000"
    [ "$(stat -c %a "$work/x.capture")" = 600 ] || fail 'others may read the capture'
    # The sidecar of the report has the same facts about samples.
    "$program" report -f meta -o "$work/again.meta.json" "$work/x.capture" 2>"$work/err" ||
        fail 'report -f meta'
    python3 - "$work"/x.meta.json "$work"/again.meta.json <<'PYTHON' || fail "the sidecars of $name differ"
import json, sys
one, two = (json.load(open(path)) for path in sys.argv[1:])
for name in "domain access access_why started duration_ms ended_by rate samples ticks stacks frames call_sites hold_us".split():
    assert one[name] == two[name], (name, one[name], two[name])
PYTHON
}

# weighed NUMBER: the folded file has at least NUMBER samples. A sample counts for more if the
# rate was lowered in mid-run.
weighed()
{
    result sidecar "$work/x.meta.json" "$total >= $1"
}

# grows_beyond FILE BYTES
grows_beyond()
{
    [ "$(stat -c %s "$1")" -gt "$2" ]
}

need_daemon

name=${guest_prefix}split-$way
boot "$name" split
record "$name" 3
weighed "samples['running']"
result stacks "$name" 85 'guest_entry;guest_main;main_loop;function_[123];work' "$work/x.folded"
profile 0 report --json --annotate work "$work/x.capture"
result annotation "$work/out" "$guest64" work 95

say 'a run while a command runs'
# shellcheck disable=SC2016 # the command expands it
UPROF_TEST_WORD='a b' profile 7 "${fast[@]}" -o "$work/c.folded" -o "$work/c.meta.json" "$name" -- \
    sh -c 'echo "$UPROF_TEST_WORD $(ulimit -Sn)"; sleep 3; exit 7'
[ "$(cat "$work/out")" = "a b $(ulimit -Sn)" ] || fail "the command says '$(cat "$work/out")'"
says 'Hz until stopped'
result sidecar "$work/c.meta.json" '1000 < duration_ms < 20000' "samples['running'] > 0"
profile 0 "${fast[@]}" -d 1 -o "$work/c.folded" "$name" -- sleep 4
says 'Hz for 1 s'
rm -f "$work/err"
"$program" "${fast[@]}" -o "$work/c.folded" "$name" -- sleep 300 >"$work/out" 2>"$work/err" </dev/null &
profiler=$!
await_sampling 1
sleep 1
kill -TERM "$profiler"
finish 143 60 # the command has the signal, too
status=0
python3 "$here/interrupt.py" "$program" "${fast[@]}" -o "$work/c.folded" "$name" >"$work/out" 2>"$work/err" || status=$?
[ "$status" = 9 ] || fail "a run on a terminal exits $status: $(cat "$work/out")"
[ -s "$work/c.folded" ] || fail 'no file of a run that Ctrl-C ended'

say 'a domain that is done has its files and its lock back'
rm -f "$work"/c.*
"$program" "${fast[@]}" -d 2 --wait=300s -o "$work/%d.folded" "$name" "$name-nobody" >"$work/out" 2>"$work/err" </dev/null &
profiler=$!
wait_until 100 test -s "$work/$name.folded" || fail 'no file of the domain that is done'
! is_gone "$profiler" || fail 'it has not waited for the other one'
timeout 60 "$program" "${fast[@]}" -d 1 -o "$work/c.folded" "$name" 2>"$work/second" || fail "$(cat "$work/second")"
if grep -q 'another run' "$work/second"; then fail 'the lock was kept'; fi
kill -INT "$profiler"
finish 0 60

say 'a run that is killed leaves its capture'
rm -f "$work/err"
"$program" "${fast[@]}" -d 60 --capture "$work/killed.capture" "$name" >"$work/out" 2>"$work/err" </dev/null &
profiler=$!
await_sampling 1
wait_until 60 grows_beyond "$work/killed.capture.part" 20000 || fail 'the capture does not grow'
kill -KILL "$profiler"
wait "$profiler" || true
profile 0 report -o "$work/part.folded" "$work/killed.capture.part"
says "^virt-uprof: $name: the capture is cut off, as if the recording was killed; its complete samples count$"
result stacks "$name" 85 'guest_entry;guest_main;main_loop;function_[123];work' "$work/part.folded"
[ ! -e "$work/killed.capture" ] || fail 'a capture of a run that was killed'
wait_until 20 runs "$name" || fail 'the guest is not resumed'
rm "$work/part.folded" "$work/killed.capture.part"

say 'a wrong file does not turn the right one off, and is said at once'
wrong=$guests/guestleaf.elf
profile 0 "${fast[@]}" -d 2 -s "$wrong" -o "$work/x.folded" --capture "$work/x.capture" "$name"
says "^virt-uprof: $name: '$wrong' is not what this guest runs; ignored, taking its <kernel> '/.*'$"
line=$(grep -n 'is not what this guest runs' "$work/err" | cut -d: -f1)
[ "$line" -lt "$(grep -n ' samples' "$work/err" | cut -d: -f1 | head -1)" ] || fail 'it is said at the end'
result stacks "$name" 85 'guest_entry;guest_main;main_loop;function_[123];work' "$work/x.folded"
# A program that can be loaded anywhere is linked for addresses where no code of the guest is.
profile 0 "${fast[@]}" -d 4 -s "$(command -v ls)" -o "$work/unseen.folded" "$name"
says "^virt-uprof: $name: no sample is in the code of '/.*ls', but samples are in the domain's <kernel> '/.*', which is used, too; "
result stacks "$name" 70 'guest_entry;guest_main;main_loop;function_[123];work' "$work/unseen.folded"
profile 0 report -s "$wrong" -o "$work/again.folded" "$work/x.capture"
says "^virt-uprof: '$wrong' is not what the guest ran; ignored, taking the files that the capture names$"
result stacks "$name" 85 'guest_entry;guest_main;main_loop;function_[123];work' "$work/again.folded"
destroy_guest "$name"

name=${guest_prefix}smp-$way
boot "$name" smp 2
wait_until "$guest_seconds" second_vcpu_works "$name" || fail 'vCPU 1 does not begin'
record "$name" 3 --per-vcpu
weighed "samples['running']"
result stacks "$name" 100 'vcpu0;guest_entry;.*|vcpu1;guest_entry_ap;.*' "$work/x.folded"

say 'the rate is that of the vCPUs that were asked for'
record "$name" 3 --vcpu 0
result sidecar "$work/x.meta.json" "domain['vcpus'] == 2" "domain['vcpus_sampled'] == 1" \
    "0.9 < rate['got_millihertz'] * duration_ms / 1e6 / samples['total'] < 1.1"
profile 2 "${fast[@]}" --vcpu 2 "$name"
says "no vCPU 2: the domain has vCPUs 0 to 1"
profile 2 "${fast[@]}" --access xen "$name"
destroy_guest "$name"

name=${guest_prefix}idle-$way
boot "$name" idle
record "$name" 3 --idle
weighed "samples['total']"
result stacks "$name" 80 '\[idle\]' "$work/x.folded"
destroy_guest "$name"

# The first stacks are truncated: a hold copies 16 KiB of stack until the run sees that guests use
# more.
name=${guest_prefix}deep-$way
boot "$name" deep
record "$name" 10
deep=$(printf ';deep_%02d' {0..63})
result stacks "$name" 60 "guest_entry;guest_main;deep_loop$deep;work" "$work/x.folded"
result stacks "$name" 90 "guest_entry;guest_main;deep_loop.*|\\[truncated\\];.*" "$work/x.folded"
python3 - "$work/x.folded" <<'PYTHON' || fail 'no complete stack of 68 frames'
import sys
depths = {len(line.rpartition(" ")[0].split(";")) - 1 for line in open(sys.argv[1]) if "[truncated]" not in line}
assert 68 in depths and max(depths) == 68, depths
PYTHON
# One truncated stack is enough to raise the limit; a few more are sampled meanwhile.
result sidecar "$work/x.meta.json" "stacks['truncated'] * 20 <= samples['running']" "stacks['complete'] > 5 * stacks['truncated']"
destroy_guest "$name"

name=${guest_prefix}recursion-$way
boot "$name" recursion
record "$name" 3
recursion=$(printf ';recurse%.0s' {1..40})
result stacks "$name" 90 "guest_entry;guest_main;recursion_loop$recursion;work" "$work/x.folded"
must_run "$name"
