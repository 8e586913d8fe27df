#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# peek.sh PROGRAM GUESTS TCG|KVM - runs without privileges over the QEMU process: by a user who may
# use the daemon's socket, and over TCP. All memory is read by virDomainMemoryPeek, which is slower.
# Stacks are as correct as with privileges.
# shellcheck source=tests/live/lib.sh
source "$(dirname "$0")/lib.sh"

name=${guest_prefix}peek-$way
user=nobody
# A hold takes tens of milliseconds, because it includes a peek.
slow=(-F 100 --budget 100 "${patient[@]}")

# check_says WHY COMMAND...: `check` finds a usable access method, and says why reads are slow
check_says()
{
    local why=$1
    shift
    "$@" check "$name" >"$work/out" 2>"$work/err" </dev/null || fail "check exits $?: $(cat "$work/out")"
    grep -qE '^  ok +access ' "$work/out" || fail "check: no access: $(cat "$work/out")"
    grep -E '^  (note|warn) ' "$work/out" | grep virDomainMemoryPeek | grep -qiE "$why" ||
        fail "check does not say why reads are slow: $(cat "$work/out")"
    grep -qE '^  note +linux +not found after .*: ' "$work/out" ||
        fail "check does not say that it is no Linux: $(cat "$work/out")"
    say "$(grep -E '^  note +linux ' "$work/out")"
}

# sample_by_peek COMMAND...: samples as root or as $user; stacks are complete
sample_by_peek()
{
    "$@" -d 15 "${slow[@]}" -s "$work/kernel.elf" -o "$out/x.folded" -o "$out/x.meta.json" "$name" \
        >"$work/out" 2>"$work/err" </dev/null || fail "exit $?"
    result stacks "$name" 85 'guest_entry;guest_main;main_loop;function_[123];work' "$out/x.folded"
    result stacks "$name" 100 'guest_entry;guest_main(;main_loop)?(;function_[123])?(;work)?' "$out/x.folded"
    result sidecar "$out/x.meta.json" "access == 'monitor'" "samples['running'] >= 10" \
        "stacks['complete'] == samples['running']" "images[0]['matched']"
    say "$(python3 -c 'import json, sys; m = json.load(open(sys.argv[1]));
print(m["samples"]["total"], "samples, a hold takes", m["hold_us"]["p50"], "us")' "$out/x.meta.json")"
    must_run "$name"
}

port=$(free_tcp_port)
need_own_daemon 'listen_tcp = 1' 'auth_tcp = "none"' "tcp_port = \"$port\"" \
    'listen_addr = "127.0.0.1"' 'auth_unix_rw = "none"' "unix_sock_group = \"$(id -gn $user)\"" \
    'unix_sock_rw_perms = "0770"'
start_keeper
boot "$name" split
cp "$guest64" "$work/kernel.elf"

# An unprivileged user needs these permissions and its own folders.
chmod 755 "$work"
cp "$program" "$work/virt-uprof"
out=$work/out.d
run=$work/run
mkdir "$out" "$run"
chown "$user" "$out" "$run"
chmod 700 "$run"
as_user=(setpriv --reuid "$user" --regid "$(id -g $user)" --clear-groups
    env "XDG_RUNTIME_DIR=$run" "HOME=$out" "$work/virt-uprof" -c "$libvirt_uri")
over_tcp=("$program" -c "qemu+tcp://127.0.0.1:$port/system")

say 'an unprivileged user'
sample_by_peek "${as_user[@]}"
rm -f "$out"/*
say 'over TCP'
sample_by_peek "${over_tcp[@]}"

# The guardian of a killed run resumes the guest over the same connection.
rm -f "$work/err"
"${over_tcp[@]}" -d 60 "${slow[@]}" -s "$work/kernel.elf" -o "$out/y.folded" "$name" 2>"$work/err" </dev/null &
profiler=$!
await_sampling
sleep 2
! is_gone "$profiler" || fail 'the run has ended early'
kill -KILL "$profiler"
wait "$profiler" 2>/dev/null || true
sleep 1
wait_until "$daemon_seconds" libvirt_answers || fail 'the daemon is away'
wait_until 30 runs "$name" || fail 'the guest is left stopped'
must_run "$name"

# This user is not in the socket's group, and gets no connection.
status=0
setpriv --reuid "$user" --regid daemon --clear-groups env "XDG_RUNTIME_DIR=$run" "HOME=$out" \
    "$work/virt-uprof" -c "$libvirt_uri" -d 1 "$name" >"$work/out" 2>"$work/err" </dev/null || status=$?
[ "$status" = 4 ] || fail "exit $status without rights, not 4"
says '^virt-uprof: no connection to '
must_run "$name"

say 'check says why'
check_says 'permitted|CAP_SYS_PTRACE|process' "${as_user[@]}"
check_says 'remote' "${over_tcp[@]}"
must_run "$name"
