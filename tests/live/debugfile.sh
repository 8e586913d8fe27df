#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# debugfile.sh PROGRAM GUESTS TCG - a stripped guest without frame pointers: a debug file gives it
# names, unwind tables of C code (only .debug_frame), inlined functions and lines. A debug file of
# another build is refused. The samples of a function are on the instructions of its loop. A hostile file as kernel, or beside it, harms nothing.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

chain='guest_entry;guest_main;main_loop(;function_[123](;work)?)?'
name=${guest_prefix}debugfile-$way
whole=$guests/guestdebug.elf

# record_well WHAT ARGUMENT...: a run with ARGUMENTs has only complete stacks with names
record_well()
{
    local what=$1
    shift
    profile 0 "${fast[@]}" -d 2 -o "$work/$what.folded" -o "$work/$what.meta.json" "$@" "$name"
    result stacks "$name" 100 "$chain" "$work/$what.folded"
    result sidecar "$work/$what.meta.json" "stacks['complete'] == samples['running'] > 0" \
        "frames['named'] == frames['total']" "frames['fp'] == frames['code'] == 0" \
        "frames['cfi'] > 0" "images[0]['matched']"
}

# check_says PATTERN...: `check` prints such lines
check_says()
{
    local pattern
    profile 0 check "${patient[@]}" "$name"
    for pattern; do
        grep -qE -- "$pattern" "$work/out" || fail "no '$pattern' in: $(cat "$work/out")"
    done
}

# annotate_well CAPTURE ARGUMENT...: the instructions of work() are those of objdump, and samples are on its
# loop; each sample of work() is counted
annotate_well()
{
    local capture=$1
    shift
    profile 0 report --json --annotate work "$@" "$capture"
    cp "$work/out" "$work/annotation.json"
    result annotation "$work/annotation.json" "$whole" work 95
    profile 0 report --json --focus work "$@" "$capture"
    python3 - "$work/annotation.json" "$work/out" <<'PYTHON' || fail 'samples of work() are missing'
import json, sys
annotated, focused = (json.load(open(path)) for path in sys.argv[1:])
assert annotated["annotation"]["self"] == focused["focus"]["self"] > 10, (annotated, focused["focus"])
PYTHON
}

need_daemon
readelf -SW "$whole" | grep -q ' \.debug_frame ' || fail 'the guest has no .debug_frame'
if readelf -SW "$whole" | grep -q ' \.eh_frame '; then fail 'the guest has .eh_frame'; fi
objcopy --strip-all "$whole" "$work/stripped.elf"
guests=$work
boot "$name" split 1 stripped
kernel=${guest_folders[$name]}/kernel

check_says 'note +linux +not found after ' "warn +symbols .*'$kernel' has no symbols .* such as '$kernel.dbg'"
cp "$guest64" "$kernel.dbg"
check_says "warn +symbols .*'$kernel.dbg' is not its debug file: its build-id differs"

cp "$whole" "$kernel.dbg"
record_well sibling --capture "$work/sibling.capture"
check_says "ok +symbols +'$kernel': uses its debug file '$kernel.dbg'" \
    "ok +symbols +'$kernel': [0-9]+ functions; its code is equal to the guest's"

say 'instructions: the code is in the stripped file, names and lines are in its debug file'
annotate_well "$work/sibling.capture"
profile 0 report --annotate work "$work/sibling.capture"
grep -qE '^ *[0-9.]+  guest\.[ch]:[0-9]+$' "$work/out" || fail "no line of the source: $(cat "$work/out")"
rm "$kernel.dbg"

say 'instructions: the code is in the capture only'
nm -S "$whole" >"$work/names.txt" # with sizes, so that the function ends before its padding
profile 0 "${fast[@]}" -d 2 -s "$work/names.txt" --capture "$work/names.capture" "$name"
annotate_well "$work/names.capture" -s "$work/names.txt"

say 'instructions: the profile has addresses instead of names'
profile 0 "${fast[@]}" -d 2 -o "$work/addresses.folded" -o "$work/addresses.meta.json" "$name"
annotate_well "$work/addresses.folded" -s "$whole"

# Lines that would rest on a file that is wrong say nothing.
profile 1 check "${patient[@]}" -s "$guest64" "$name"
for pattern in "FAIL +symbols +'$guest64' does not match the guest's code" \
    "note +unwind tables +'$guest64': not checked" 'note +callers +not checked'; do
    grep -qE -- "$pattern" "$work/out" || fail "no '$pattern' in: $(cat "$work/out")"
done
id=$(readelf -n "$whole" | sed -n 's/.*Build ID: //p')
"$here/hostile_kernel.py" "$kernel" "$id" "${guest_folders[$name]}/hostile" \
    "$program" dump "${patient[@]}" "$name" || fail 'a hostile file as kernel, or beside it'

# The debug file, which has no code, is found by its build-id.
mkdir -p "$work/debug/.build-id/${id:0:2}"
objcopy --only-keep-debug "$whole" "$work/debug/.build-id/${id:0:2}/${id:2}.debug"
record_well build-id --debug-dir "$work/debug"

# The debug file is found by its name and checksum.
objcopy --only-keep-debug "$whole" "$work/linked.debug"
(cd "$work" && objcopy --strip-all --add-gnu-debuglink=linked.debug "$whole" linked)
record_well link -s "$work/linked"

# The numbers are lines of the source. The line of a caller is the line of its call.
profile 0 "${fast[@]}" -d 2 --lines -s "$whole" -o "$work/lines.folded" "$name"
result stacks "$name" 100 \
    'guest_entry \(entry64\.S:[0-9]+\);guest_main \(guest\.c:[0-9]+\);main_loop \(guest\.c:[0-9]+\)(;function_[123] \(guest\.c:[0-9]+\)(;work \((guest\.[ch]):[0-9]+\))?)?' \
    "$work/lines.folded"
no_leftovers "$work"
