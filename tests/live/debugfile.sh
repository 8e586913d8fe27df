#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# debugfile.sh PROGRAM GUESTS TCG - a stripped guest without frame pointers: a debug file gives it
# names, unwind tables of C code (only .debug_frame), inlined functions and lines. A debug file of
# another build is refused. A hostile file as kernel, or beside it, harms nothing.
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
record_well sibling
check_says "ok +symbols +'$kernel': uses its debug file '$kernel.dbg'" \
    "ok +symbols +'$kernel': [0-9]+ functions; its code is equal to the guest's"

rm "$kernel.dbg"
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
