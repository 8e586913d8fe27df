#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# words.sh PROGRAM GUESTS TCG - what a run says on a terminal, where it cannot write its picture, and while
# another run samples the domain; and what a user without rights is told
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}words-$way

# on_terminal STATUS FOLDER ARGUMENT...: runs the program in FOLDER on a terminal; it must exit with
# STATUS; $work/screen gets all that the terminal shows
on_terminal()
{
    local want=$1 folder=$2 status=0
    shift 2
    (cd "$folder" && script -qec "$(printf '%q ' "$program" "$@")" /dev/null) \
        >"$work/screen" 2>&1 </dev/null || status=$?
    [ "$status" = "$want" ] || fail "virt-uprof $* exits $status, not $want: $(cat "$work/screen")"
}

# shows PATTERN, lacks PATTERN: a line of the screen matches, or none does
shows()
{
    grep -qE "$1" "$work/screen" || fail "no '$1' in: $(cat "$work/screen")"
}

lacks()
{
    ! grep -qE "$1" "$work/screen" || fail "'$1' in: $(cat "$work/screen")"
}

# be_user COMMAND...: runs COMMAND as a user without rights, whose daemon libvirt starts
be_user()
{
    setpriv --reuid nobody --regid nogroup --clear-groups env -u LIBVIRT_DEFAULT_URI -u XDG_CACHE_HOME \
        -u XDG_CONFIG_HOME HOME="$work/user" XDG_RUNTIME_DIR="$work/user" "$@" </dev/null
}

# as_user STATUS ARGUMENT...: runs the program as this user
as_user()
{
    local want=$1 status=0
    shift
    be_user "$work/user/virt-uprof" "$@" >"$work/out" 2>"$work/err" || status=$?
    [ "$status" = "$want" ] || fail "virt-uprof $* exits $status, not $want, as nobody"
}

end_user_daemon()
{
    [ ! -s "$work/user/libvirt/libvirtd.pid" ] || kill "$(cat "$work/user/libvirt/libvirtd.pid")"
}

need_daemon
boot "$name" split
mkdir "$work/here" "$work/nowhere" "$work/user"

# A user without rights has no domains, and is told where the others are.
cp "$program" "$work/user/virt-uprof"
chown nobody "$work/user"
chmod 711 "$work"
at_exit end_user_daemon
as_user 0 list
says "^virt-uprof: no domains on qemu:///session; root's domains: sudo virt-uprof list, or -c qemu:///system$"
as_user 3 "$name"
says "^virt-uprof: no domain '$name' on qemu:///session; .*; root's domains: sudo virt-uprof list, or -c"
# The daemon has answered, so the hint about a daemon that is missing would be wrong.
as_user 4 -c "qemu+unix:///sytem?socket=$work/user/libvirt/libvirt-sock" list
says "^virt-uprof: no connection to 'qemu[+]unix:///sytem.*': .*try qemu:///session$"

# Settings for rounds are not those of a run by hand.
profile 0 configure -F 49 --budget 100 "$name"
# Without files and options: a table, and a picture whose name is said.
on_terminal 0 "$work/here" "${patient[@]}" -d 3s -s "$guest64" "$name"
shows '[0-9]  *[^ ]*  *work'
# Holds of an emulated guest are so long that the budget lowers the rate.
shows "$name: [0-9.]+ instead of 99 Hz, so that holds take at most [0-9.]+ % of the time \(--budget\); each stops the guest [0-9.]+ [um]s"
shows "^$name: QEMU \(emulated\), x86_64, 1 vCPU, 99 Hz for 3 s, access monitor\. Ctrl-C stops early\."
shows "wrote $name-[0-9TZ]+\.svg"
[ "$(find "$work/here" -type f | wc -l)" = 1 ] || fail "files: $(ls "$work/here")"

# With -q: the table alone.
rm "$work/here"/*
on_terminal 0 "$work/here" -q "${patient[@]}" -d 3s -s "$guest64" "$name"
shows '[0-9]  *[^ ]*  *work'
lacks 'wrote|samples'
[ -z "$(ls -A "$work/here")" ] || fail "files in spite of -q: $(ls "$work/here")"

# With a named file: the same table. The run has 98 samples at most.
: >"$work/here/x.svg"
on_terminal 0 "$work/here" "${patient[@]}" -F 49 --budget 100 -d 2s -s "$guest64" -o x.svg "$name"
shows '[0-9]  *[^ ]*  *work'
shows 'wrote x\.svg \(replaced\)'
# On a busy machine the budget lowers the rate, so that a higher one would not help.
shows "$name: [0-9]+ samples of running vCPUs say little; use a longer -d( or a higher -F)?"

# A guest without Linux has no waits, and a capture has none of any guest.
profile 0 "${patient[@]}" -F 49 --budget 100 -d 2s --waits -o "$work/w.svg" -o "$work/w.capture" "$name"
says "^virt-uprof: $name: no waits are counted: tasks cannot be listed: no Linux kernel was found"
says '^virt-uprof: a capture has no waits: its report will show none$'
says "^wrote $work/w\.waits\.svg$"

# The folder cannot be written: said before anything is sampled, with what to do.
mount -t tmpfs -o ro none "$work/nowhere"
at_exit umount "$work/nowhere"
on_terminal 1 "$work/nowhere" "${patient[@]}" -d 60s "$name"
shows "$name-[0-9TZ]+\.svg.*: Read-only file system; name another place, such as: -o /tmp/%d\.svg"
lacks 'samples'

# Another run: its process is named; the wait has a limit, and Ctrl-C ends it.
rm -f "$work/err"
"$program" "${patient[@]}" -d 600s -o "$work/x.folded" "$name" >"$work/out" 2>"$work/err" </dev/null &
other=$!
await_sampling
"$program" check "$name" >"$work/check" 2>"$work/check-err" </dev/null &
check=$!
wait_until 120 grep -q 'waiting up to 60 s' "$work/check-err" || fail 'check does not wait'
kill -INT "$check"
status=0
wait "$check" || status=$?
[ "$status" = 75 ] || fail "check exits $status: $(cat "$work/check" "$work/check-err")"
said="another run of virt-uprof \(process $other\) is sampling it"
grep -qE "^virt-uprof: $name: $said; waiting up to 60 s for its end \(Ctrl-C gives up\)$|^$name: $said; waiting" \
    "$work/check-err" || fail "$(cat "$work/check-err")"
grep -qE "^ +note +access +$said" "$work/check" || fail "$(cat "$work/check")"
# When the other run ends, a run that waits begins.
"$program" "${patient[@]}" -d 2s -o "$work/y.folded" "$name" >"$work/second" 2>&1 </dev/null &
second=$!
wait_until 120 grep -qE "$said; waiting" "$work/second" || fail "it does not wait: $(cat "$work/second")"
kill -INT "$other"
wait "$other" || true # the run may have no sample yet
wait "$second" || fail "exit $?: $(cat "$work/second")"
must_run "$name"
