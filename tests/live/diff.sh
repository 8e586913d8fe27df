#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# diff.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - captures of two guests in which two functions have
# different shares: `diff` shows these two changes in their right size, and no other
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

need_daemon
name=${guest_prefix}diff-$way

# take SECONDS: samples each guest into a capture
take()
{
    local shift
    for shift in 0 1; do
        boot "$name" "split shift=$shift"
        profile 0 -F 500 --budget 100 "${patient[@]}" -d "$1" --capture "$work/$shift.capture" \
            -o "$work/$shift.pb.gz" "$name"
        destroy_guest "$name"
    done
}

# shows_both OLD: `diff` shows the two changes, and no other
shows_both()
{
    profile 0 diff -s "$guest64" --json -o "$work/x.svg" "$1" "$work/1.capture"
    python3 - "$work/out" <<'PYTHON'
import json, sys
rows = {row["name"]: row for row in json.load(open(sys.argv[1]))["functions"]}
significant = {name for name, row in rows.items() if row["total_significant"] or row["self_significant"]}
points = {name: rows[name]["total_change_ppm"] / 10000 for name in ("function_1", "function_3")}
print(significant, points, file=sys.stderr)
# About one of a hundred unchanged functions seems to have changed a little, by chance.
others = [abs(rows[name][key]) for name in significant - set(points)
          for key in ("total_change_ppm", "self_change_ppm")]
sys.exit(not set(points) <= significant or max(others, default=0) > 20000
         or abs(points["function_1"] - 10) > 4 or abs(points["function_3"] + 10) > 4)
PYTHON
}

seconds=20
for ((n = 0; n < 2; n++)); do
    take "$seconds"
    # By chance, a change may look larger. Then three times as many samples decide.
    if shows_both "$work/0.capture"; then
        break
    fi
    seconds=$((3 * seconds))
done
for old in 0.capture 0.pb.gz; do
    shows_both "$work/$old" || fail "diff of $old: $(cat "$work/out")"
    xmllint --noout "$work/x.svg" || fail 'the picture is no XML'
done
profile 0 diff -s "$guest64" "$work/0.capture" "$work/0.pb.gz"
! grep -qE ' (function_[0-9]|work|main_loop)$' "$work/out" ||
    fail "what is the same has changed: $(cat "$work/out")"
no_leftovers "$work"
