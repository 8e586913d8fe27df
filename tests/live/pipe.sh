#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# pipe.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - the simplest command writes folded stacks into a pipe
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}pipe-$way
chain='guest_entry;guest_main;main_loop;function_[123];work'
# result.py has the same pattern.
on_the_way='guest_entry(;guest_main(;main_loop(;function_[123])?)?)?'

need_daemon
boot "$name" split

"$program" -F 99 -d 5 "${patient[@]}" "$name" 2>"$work/err" | sort | head >"$work/out" ||
    fail "exit codes ${PIPESTATUS[*]}"
[ -s "$work/out" ] || fail "nothing came out of the pipe"
# On a slow machine the default budget allows few samples. One of them may be in a caller of work.
LC_ALL=C sort "$work/out" >"$work/sorted.folded"
result stacks "$name" 75 "$chain" "$work/sorted.folded"
result stacks "$name" 100 "$chain|$on_the_way" "$work/sorted.folded"
must_run "$name"

# If the reader ends early, the run exits 1 without a message, and the guest runs on.
status=0
"$program" "${patient[@]}" -d 3 "$name" 2>"$work/err" >/dev/full || status=$?
[ "$status" = 1 ] || fail "exit $status when stdout is full"
{
    status=0
    "$program" "${patient[@]}" -q -d 3 "$name" 2>"$work/err" || status=$?
    echo "$status" >"$work/status"
} | true
[ "$(cat "$work/status")" = 1 ] || fail "exit $(cat "$work/status") when stdout is closed"
[ ! -s "$work/err" ] || fail "words about a closed pipe"
must_run "$name"
