#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# top.sh PROGRAM GUESTS [TCG|KVM|DIRECT] - `top` prints one table a second for scripts, and shows a
# screen on a terminal. The terminal is restored however the program ends.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

need_daemon
name=${guest_prefix}top-$way
boot "$name" split
boot "$name-2" split

profile 0 top "${patient[@]}" --batch --rounds 3 -n 3 "$name"
[ "$(grep -c "^$name: [0-9.]* % busy, [0-9.]* % idle, " "$work/out")" = 3 ] || fail "$(cat "$work/out")"
[ "$(grep -c ' work$' "$work/out")" = 3 ] || fail "not three tables: $(cat "$work/out")"
[ ! -s "$work/err" ] || fail 'words on stderr'
profile 0 top "${patient[@]}" --batch --rounds 3 --sort total "$name" "$name-2"
grep -qE "100\.0  guest_entry  \($name\)|[0-9.]+  guest_entry  \($name\)" "$work/out" ||
    fail "no domain beside its functions: $(cat "$work/out")"
grep -q "($name-2)" "$work/out" || fail "no second domain: $(cat "$work/out")"
profile 2 top "$name"
says "'top' needs a terminal; in a script use --batch --rounds N"
profile 0 top "${patient[@]}" --batch --rounds 2 --by vcpu "$name"
grep -qE '^ +0\.0 +100\.0  vcpu0$' "$work/out" || fail "no vCPU: $(cat "$work/out")"
mkdir "$work/folder"
cd "$work/folder"
python3 "$here/terminal.py" "$program" top "${patient[@]}" "$name" || fail 'the terminal'
must_run "$name"
# The key w has written the only file.
[ "$(find . -type f | wc -l)" = 1 ] || fail "not one file: $(ls)"
grep -q 'guest_main' "$name"-*.svg && ! grep -q vcpu0 "$name"-*.svg || fail 'not the picture of the guest'
cd "$work"
no_leftovers "$work"
