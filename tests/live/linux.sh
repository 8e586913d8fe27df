#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# linux.sh PROGRAM GUESTS TCG|KVM|DIRECT SERIES - Debian's kernel with five and four levels of page
# tables, with page-table isolation and without: virt-uprof finds the same facts in the guest's
# memory that the guest reports about itself, also of all its tasks, and where they wait
#
# $UPROF_LINUX_CELLS: levels and isolation of the guests. By default the series 6.1 and 6.12 together have all
# four combinations. The last guest also tests tables by process, a capture, and the tasks.
# $UPROF_LINUX_LISTS: the number of lists while tasks come and go
# shellcheck source=tests/live/linux-lib.sh
source "$(dirname "$0")/linux-lib.sh"

# boot_cell LEVELS PTI: boots a guest whose only process never leaves user mode; sets $name
boot_cell()
{
    local asked="pti=$2"
    name=$guest_prefix$series-$1-$2-$way
    [ "$1" = 5 ] || asked+=' no5lvl'
    boot_linux "$name" "$release" "$machine" "$asked -- kallsyms user" 1 ||
        fail "no guest with $1 levels and pti=$2"
    # The guest confirms its kernel, levels and isolation.
    must_say "$name" RELEASE "$release"
    must_say "$name" LEVELS "$1"
    must_say "$name" PTI "$2"
}

# look_at PROCESS EXPRESSION PART: checks `check` and a profile while PROCESS is the guest's only
# load. EXPRESSION must be true in the sidecar, and `check` must report stacks of PART (user,
# kernel).
look_at()
{
    local pid
    pid=$(tell_linux "$name" tasks | sed -n "s/^TASK \([0-9]*\) $1$/\1/p")
    profile 0 check "${patient[@]}" "$name"
    must_know_kernel "$name"
    out_has 'kernel log ' 'none tells of a crash or a hang'
    say "$name: $(sed -nE 's/^ +ok +linux +//p' "$work/out")"
    grep -qE "^ +(ok|warn) +$3 stacks +[0-9]+ of [0-9]+ complete$" "$work/out" ||
        fail "no '$3 stacks': $(cat "$work/out")"
    sample 120 "$work/x" --pids -v "$name"
    says "^$name: Linux [^ ]+: [0-9]+ symbols and [0-9]+ modules, with unwind tables, with processes; "
    result sidecar "$work/x.meta.json" "samples['running'] >= 2" "linux['release'] == '$release'" \
        "linux['btf'] and linux['processes'] and linux['orc_rules'] > 300000" \
        "linux['kernel_stacks'] + linux['user_stacks'] >= samples['running']" "$2"
    grep -q "^$name;$1-$pid;" "$work/x.folded" ||
        fail "no process '$1', number '$pid': $(cat "$work/x.folded")"
}

# dumps PATTERN [ARGUMENT...]: one of five dumps has the pattern; others may show a kernel thread
dumps()
{
    local i
    for i in 1 2 3 4 5; do
        profile 0 dump "${@:2}" "${patient[@]}" "$name"
        if grep -qE "$1" "$work/out"; then
            return
        fi
    done
    fail "no '$1' in: $(cat "$work/out")"
}

# by_process PROCESS: the process is in the tables of `top`, `dump` and `report`
by_process()
{
    local top row="^ +[0-9.]+ +[0-9.]+  $1"
    "$program" top "${patient[@]}" --batch --by process "$name" >"$work/out" 2>"$work/err" </dev/null &
    top=$!
    wait_until 60 grep -qE "$row$" "$work/out" || fail "no '$1' in: $(cat "$work/out")"
    kill -INT "$top"
    wait "$top" || fail "top exits $?"
    grep -qx 'kernel   total  process' "$work/out" || fail "no table: $(cat "$work/out")"
    dumps "^$name vcpu0 (user|kernel), process $1\[[0-9]+\]: [0-9]+ frame"
    dumps '"process": "'"$1"'"' --json
    python3 -m json.tool "$work/out" >/dev/null || fail "no JSON: $(cat "$work/out")"
    profile 0 report -n 1 --by process "$work/x.folded"
    grep -qE "$row-[0-9]+$" "$work/out" || fail "no '$1' in: $(cat "$work/out")"
}

# replays PROCESS: the report of a capture has the kernel's symbols and the processes
replays()
{
    sample 120 "$work/y" --capture "$work/x.capture" "$name"
    profile 0 report -q -f folded "$work/x.capture"
    cmp -s "$work/out" "$work/y.folded" || fail "not the same: $(diff "$work/out" "$work/y.folded")"
    profile 0 report -q -f folded --pids "$work/x.capture"
    grep -qE "^$name;$1-[0-9]+;.*_\[k\] [0-9]+$" "$work/out" || fail "no process: $(cat "$work/out")"
}

# annotates KIND: the instructions of the hottest function of a capture, in the kernel or in user space
annotates()
{
    local hottest
    sample 120 "$work/y" --capture "$work/x.capture" "$name"
    result hottest "$work/y.folded" "$1" >"$work/said"
    read -ra hottest <"$work/said"
    profile 0 report -q --json --annotate "${hottest[0]}" "$work/x.capture"
    result annotated "$work/out" "${hottest[1]}" >"$work/said"
    say "$name: ${hottest[0]}: $(cat "$work/said")"
}

# same_log MIN: `dmesg` prints the log that the guest prints, with at least MIN records
same_log()
{
    ask_linux "$name" log >"$work/said" || fail 'it does not tell its log'
    profile 0 dmesg --json "${patient[@]}" "$name"
    mv "$work/out" "$work/log.json"
    profile 0 dmesg "${patient[@]}" "$name"
    python3 "$here/kernel_log.py" "$work/log.json" "$work/out" "$work/said" "$1" >"$work/compared" ||
        fail "the kernel's log: $(cat "$work/compared")"
    say "$name: the kernel's log: $(cat "$work/compared")"
}

# shows_log: the log of the kernel, before and after it has overwritten its first records
shows_log()
{
    same_log 100
    # In the KVM lab, the guest would need minutes to print thousands of records.
    [ "$way" != DIRECT ] || return 0
    profile 0 dmesg "${patient[@]}" "$name"
    grep -qE '^\[    0\.000000\] Linux version [0-9]' "$work/out" || fail "no log: $(head -n 5 "$work/out")"
    tell_linux "$name" write-log >"$work/said" || fail 'it does not write'
    same_log 500
    profile 0 dmesg "${patient[@]}" "$name"
    grep -qE '^\[[0-9]+ records? overwritten\]$' "$work/out" || fail "nothing overwritten: $(head -n 5 "$work/out")"
    grep -qE '^\[ *[0-9.]+\] last \?\[31mline ä\?\\$' "$work/out" || fail "no cleaned line: $(tail -n 5 "$work/out")"
    paused_log
}

# paused_log: a guest that somebody has paused shows its log, and stacks of its tasks
paused_log()
{
    cp "$work/out" "$work/before"
    quiet_virsh suspend "$name" >/dev/null
    profile 0 dmesg "${patient[@]}" "$name"
    cmp -s "$work/before" "$work/out" || fail "not the same: $(diff "$work/before" "$work/out" | head)"
    profile 0 dump --tasks=S "${patient[@]}" "$name"
    grep -qE "^$name [0-9]+ tasks? sleeping .*, complete$" "$work/out" || fail "no stack: $(head -n 5 "$work/out")"
    must_be_paused "$name"
    quiet_virsh resume "$name" >/dev/null
}

has_panic()
{
    "$program" dmesg "${patient[@]}" "$name" 2>/dev/null | grep -q 'Kernel panic - not syncing'
}

# last_words_of_kernel: a kernel that has panicked still tells why
last_words_of_kernel()
{
    printf 'panic\n' >"${guest_folders[$name]}/words.in"
    wait_until 60 has_panic || fail 'no panic'
    profile 0 check "${patient[@]}" "$name"
    grep -qE '^ +warn +kernel log +tells of (a panic|an oops), [0-9.]+ s after the boot and [0-9.]+ [mu]?s before the newest record: ' "$work/out" ||
        fail "no panic in: $(cat "$work/out")"
}

# list_by_peeks: writes the lists of tasks that a user without the right to read QEMU's memory gets
list_by_peeks()
{
    local privileged=$program program=$work/unprivileged
    printf '#!/bin/sh\nexec setpriv --bounding-set -sys_ptrace %q "$@"\n' "$privileged" >"$program"
    chmod +x "$program"
    list_tasks peeks --access monitor "$name"
}

# compares_tasks: `ps` and `dump --tasks` agree with the guest's own /proc, also by peeks and for a capture
compares_tasks()
{
    tell_linux "$name" 'stop in:/system.slice/web.service:waits user user' >"$work/said"
    say "$name: tasks wait"
    ask_linux "$name" states >"$work/before" || fail 'no states'
    list_tasks guest "${patient[@]}" "$name"
    [ "$access" = direct ] || list_by_peeks # in the lab each peek takes tenths of a second
    profile 0 -q -d 1s "${patient[@]}" -o "$work/tasks.capture" "$name"
    ask_linux "$name" states >"$work/after" || fail 'no states'
    profile 0 dmesg "${patient[@]}" "$name"
    mv "$work/out" "$work/log"
    list_tasks capture "$work/tasks.capture"
    profile 0 dmesg "$work/tasks.capture"
    # The guest may have gone on logging since.
    head -n "$(wc -l <"$work/out")" "$work/log" | cmp -s - "$work/out" || fail "another log: $(head "$work/out")"
    same_tasks guest
    [ "$access" = direct ] || same_tasks peeks
    same_tasks capture
    echo bad >"$work/bad.capture"
    profile 6 ps "$work/bad.capture" "$work/tasks.capture"
    grep -qE ' a-vfork$' "$work/out" || fail "no tasks beside a bad capture: $(cat "$work/err")"
}

# has_hold FILE MIN MAX: the list of tasks says that the guest was held for more than MIN ns, up to MAX
has_hold()
{
    python3 - "$@" <<'PYTHON' || fail "$1: $(head -n 1 "$1")"
import json, sys
assert int(sys.argv[2]) < json.load(open(sys.argv[1]))["held_ns"] <= int(sys.argv[3])
PYTHON
}

# count_turns: prints how often the thread that reads for the worker has waited
count_turns()
{
    local thread
    thread=$(grep -lx workers "/proc/$profiler/task/"*/comm 2>/dev/null) || return 1
    sed -n 's/^voluntary_ctxt_switches:\t//p' "${thread%/comm}/status"
}

# reads_by_peeks: slow reads of the worker go on in a hold: either it ends early, or they are seen in it
reads_by_peeks()
{
    local first=0 last=0
    tell_linux "$name" stop >"$work/said"
    setpriv --bounding-set -sys_ptrace "$program" ps --state Z --pause --max-pause 6s --access monitor "$name" \
        >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
    until is_gone "$profiler"; do
        if [ "$(qemu_status "$name")" = paused ]; then
            first=$(count_turns) || continue
            sleep 2
            last=$(count_turns) || last=$first
            [ "$(qemu_status "$name")" != paused ] || break
        fi
        sleep 0.2
    done
    wait "$profiler" || fail "ps --pause by peeks exits $?"
    wait_until 3 runs "$name" || fail "'$name' does not run after a hold by peeks"
    say "$name: by peeks, $((last - first)) turns in 2 s of a hold"
    if ! grep -qE "^$name: held for " "$work/err" && [ "$((last - first))" -lt 3 ]; then
        fail 'no read in the hold'
    fi
}

# compares_held_tasks: with --pause the list and all stacks are of one moment; the load is that of
# compares_tasks
compares_held_tasks()
{
    ask_linux "$name" states >"$work/before" || fail 'no states'
    list_tasks held "${pause[@]}" "$name"
    says "^$name: held for [0-9.]+ m?s$"
    wait_until 3 runs "$name" || fail "'$name' does not run after --pause"
    ask_linux "$name" states >"$work/after" || fail 'no states'
    same_tasks held
    has_hold "$work/held.ps" 0 10100000000
    has_hold "$work/held.dump" 0 10100000000
    say "$name: $(grep -o 'held_ns": [0-9]*' "$work/held.ps" "$work/held.dump" | tr '\n' ' ')"
}

# ends_holds: a guest always runs after --pause, unless it was paused before
ends_holds()
{
    profile 0 ps --pause --max-pause 1ms --access monitor --json "$name"
    says "^virt-uprof: $name: the pause ended after [0-9.]+ m?s, before all tasks were read: .*; try --max-pause [0-9]+s$"
    wait_until 3 runs "$name" || fail "'$name' does not run after the end of a pause"

    local end
    for end in bound worker int kill stop; do
        python3 "$here/pauses.py" "$program" "${guest_uuids[$name]}" "$end" >"$work/said" || fail "$end: $(cat "$work/said")"
        say "$name: $(cat "$work/said")"
        wait_until 5 runs "$name" || fail "'$name' does not run after a hold's end: $end"
    done

    quiet_virsh suspend "$name" >/dev/null
    profile 0 ps --json "${pause[@]}" "$name"
    has_hold "$work/out" -1 0
    must_be_paused "$name"
    quiet_virsh resume "$name" >/dev/null
    if [ "$access" = direct ]; then
        profile 2 ps --pause --access direct "$name"
        profile 0 ps --pause --json "$name"
        has_hold "$work/out" 0 1100000000
    fi
    reads_by_peeks
}

# has_unknown_stack: captures tasks that run all the time; true if one has no stack because it has run meanwhile.
# A stack that the capture has is a right one: the guest may have stood still on a busy host.
has_unknown_stack()
{
    local status=0
    profile 0 -q -d 1s "${patient[@]}" -o "$work/runners.capture" "$name"
    profile 0 dump --tasks --process '^p[io]ng-proc$' --json "$work/runners.capture"
    python3 - "$work/out" <<'PYTHON' || status=$?
import json, sys
stacks = json.load(open(sys.argv[1]))["stacks"]
assert sorted(task["name"] for stack in stacks for task in stack["tasks"]) == ["ping-proc", "pong-proc"], stacks
for stack in stacks:
    names = [frame["name"] for frame in stack["frames"]]
    work = {"run_ping", "run_pong"} & set(names)
    assert not names or (stack["complete"] and work and names[0] == "__schedule_[k]"), stack
sys.exit(0 if any(stack["end"] == "changed while it was read" for stack in stacks) else 2)
PYTHON
    [ "$status" = 0 ] || [ "$status" = 2 ] || fail "runners: $(cat "$work/out")"
    return "$status"
}

# captures_runners: a capture has no wrong stack of tasks that run while their pages are read
captures_runners()
{
    tell_linux "$name" 'stop switch' >"$work/said"
    wait_until 60 has_unknown_stack || fail "runners stand still: $(cat "$work/out")"
}

# lists_while_forking: tasks that live all the time are in each of $UPROF_LINUX_LISTS lists while others come
# and go, and no list has a wrong row or a false stack
lists_while_forking()
{
    local i n=${UPROF_LINUX_LISTS:-4}
    tell_linux "$name" 'stop waits forks user' >"$work/said"
    ask_linux "$name" states >"$work/before" || fail 'no states'
    mkdir -p "$work/lists"
    for ((i = 0; i < n; i++)); do
        list_tasks "lists/$i" "${patient[@]}" "$name"
    done
    ask_linux "$name" states >"$work/after" || fail 'no states'
    python3 "$here/tasks.py" --restless "$work/before" "$work/after" "$work/lists" >"$work/said" ||
        fail "lists: $(head -n 20 "$work/said")"
    say "$name: $(tail -n 1 "$work/said")"
    rm -rf "$work/lists"
}

# shows_tasks: texts, filters, and stacks of processes; the load is `waits`
shows_tasks()
{
    profile 0 ps --state D "${patient[@]}" "$name"
    grep -qE '^ +[0-9]+ +[0-9]+ +[0-9]+ D +0\.[0-9]s +[0-9.ms]+s +kernel_clone +vfork +web\.service +a-vfork$' \
        "$work/out" || fail "no vfork in: $(cat "$work/out")"
    grep -qE ' D io +0\.[0-9]s +[0-9.]+s +[a-z_]+ +pread64 +/slow +a-disk$' "$work/out" ||
        fail "no wait for a disk in: $(cat "$work/out")"
    profile 0 dump --blocked --process '^a-' "${patient[@]}" -s "$guests/../linux/init" "$name"
    head -n 1 "$work/out" | grep -qE "^$name 16 tasks uninterruptible for up to [^ ]+, a-vfork\[" ||
        fail "not blocked first: $(head -n 3 "$work/out")"
    grep -qE '^  #[0-9]+ +[0-9a-f]+  wait_for_futex$' "$work/out" || fail "no program in: $(cat "$work/out")"
    profile 0 ps --process 'evil' "${patient[@]}" "$name"
    grep -qF 'evil?[2J?;' "$work/out" || fail "no clean name in: $(cat "$work/out")"
}

# counts_waits: tasks that wait all the time have all of the time, and three tasks that spin on one vCPU
# wait for it in turn
counts_waits()
{
    tell_linux "$name" 'stop waits user user user' >"$work/said"
    profile 0 -d 10 --waits "${patient[@]}" -o "$work/w.folded" -o "$work/w.pb.gz" -o "$work/w.meta.json" \
        -o "$work/w.svg" -s "$guests/../linux/init" "$name"
    says "^$name: waits: [0-9]+ walks of [0-9]+ tasks in "
    says "^wrote $work/w.waits.svg"
    result sidecar "$work/w.meta.json" "waits['walks'] >= 3" "waits['incomplete'] == 0" "waits['time_ms'] > 5000"
    python3 "$here/waits.py" "$work/w.waits.folded" "$work/w.folded" "$work/w.pb.gz" "$work/w.meta.json" >"$work/said" ||
        fail "waits: $(head -n 20 "$work/said")"
    say "$name: $(tail -n 1 "$work/said")"
}

has_hang()
{
    "$program" dmesg "${patient[@]}" "$name" 2>/dev/null | grep -qE 'INFO: task l-[a-z]+:[0-9]+ blocked for more than'
}

# compares_locks: `dump --blocked` and `ps` name the locks and owners that the guest has made
compares_locks()
{
    tell_linux "$name" 'stop locks' >"$work/locks" || fail 'it does not lock'
    profile 0 dump --blocked --json "${patient[@]}" "$name"
    mv "$work/out" "$work/dump.json"
    profile 0 ps --json "${patient[@]}" "$name"
    mv "$work/out" "$work/ps.json"
    python3 "$here/locks.py" "$work/locks" "$work/dump.json" "$work/ps.json" >"$work/said" ||
        fail "locks: $(head -n 20 "$work/said")"
    say "$name: $(tail -n 1 "$work/said")"
    shows_locks
    wait_until 120 has_hang || fail 'no hung task in the log'
    tell_linux "$name" stop >/dev/null || fail 'it does not stop'
}

# shows_locks: texts about a guest that hangs
shows_locks()
{
    local owner='[a-z-]+\[[0-9]+\] \((uninterruptible|sleeping) for [0-9.ms]+\)'
    profile 0 dump --blocked "${patient[@]}" "$name"
    local line
    for line in "6 wait to write under a rw-semaphore at ff[0-9a-f]{14} that $owner holds" \
        "3 wait to read under a rw-semaphore at ff[0-9a-f]{14} that 1 reader holds; the last to come, a hint: $owner" \
        "[0-9] wait for a mutex at ff[0-9a-f]{14} that $owner holds" \
        "3 wait for a PI futex, rt-mutex at ff[0-9a-f]{14} that $owner holds" \
        '6 wait for a file system: ext4 on nvme0n1, frozen'; do
        grep -qxE "  $line" "$work/out" || fail "no '$line' in: $(grep -B 1 ' waits\? ' "$work/out")"
    done
}

# start_watch: starts a watch in the background, $profiler; returns when a rule on a process has triggered
start_watch()
{
    "$program" watch -F 99 --budget 50 "${patient[@]}" --keep 10s --after 1s --rest 1s --when crash \
        --when 'process syscalls > 1 % for 2s' -o "$work/watch.folded" -o "$work/watch.meta.json" "$name" \
        >"$work/out" 2>"$work/err" </dev/null &
    profiler=$!
    watch=$profiler
    wait_until 120 has_profile 'process syscalls > 1 % for 2s' || fail 'the rule on a process does not trigger'
}

# stop_watch: kills the watch, if it still runs
stop_watch()
{
    [ "$watch" = 0 ] || kill -KILL "$watch" 2>/dev/null || true
}

# has_profile TRIGGER: the watch has written a profile with this trigger; sets $written
has_profile()
{
    written=$(grep -l "\"trigger\": \"$1\"" "$work"/watch*.meta.json 2>/dev/null) && written=${written%.meta.json}
}

# watched_crash: the watch has written what the guest did before it crashed
watched_crash()
{
    wait_until 60 has_profile crash || fail 'the crash writes no profile'
    kill -TERM "$profiler"
    finish 0 60
    watch=0
    result sidecar "$written.meta.json" "trigger == 'crash'" "duration_ms >= 3000" "samples['running'] >= 2" \
        "linux['release'] == '$release'"
    result stacks "$name" 50 'syscalls;.*' "$written.folded"
    rm "$work"/watch*
}

# shows_crashed: a guest that has crashed still shows its stacks, tasks and log
shows_crashed()
{
    # The KVM lab has no time for it.
    [ "$way" = DIRECT ] || start_watch
    printf 'crash\n' >"${guest_folders[$name]}/words.in"
    wait_until 20 has_crashed || fail "libvirt says: $(quiet_virsh domstate "$name")"
    [ "$way" = DIRECT ] || watched_crash
    profile 3 -d 1 "$name"
    says "^virt-uprof: domain '$name' has crashed; .*: try 'virt-uprof dump $name', and 'ps' and 'dmesg'$"
    profile 0 list
    grep -qE "^$name +crashed " "$work/out" || fail "list: $(cat "$work/out")"
    profile 0 ps "$name"
    grep -qE '^ +1 +1 +0 R cpu[0-9] .* init$' "$work/out" || fail "no process 1 in: $(cat "$work/out")"
    profile 0 dump --tasks "$name"
    grep -qE "^$name [0-9]+ tasks? sleeping .*: [0-9]+ frames?, complete$" "$work/out" ||
        fail "no stack in: $(cat "$work/out")"
    profile 0 dump -s "$guests/../linux/init" "$name"
    grep -qE '^  #[0-9]+ +[0-9a-f]+  do_words$' "$work/out" || fail "no crash in: $(cat "$work/out")"
    profile 0 dmesg --all
    grep -qF 'Linux version' "$work/out" || fail "no log: $(head "$work/out")"
    has_crashed || fail "libvirt says: $(quiet_virsh domstate "$name")"
}

has_crashed()
{
    [ "$(quiet_virsh domstate "$name")" = crashed ]
}

watch=0
at_exit stop_watch
pause=(--pause --max-pause 10s)
[ "$way" = DIRECT ] || pause+=(--access monitor)
guest_panics=yes
guest_nvme=$work/disk.ext4
# In the KVM lab, the disk is as slow as its guests.
[ "$way" != DIRECT ] || guest_nvme_options=,throttling.iops-total=10
truncate -s 16M "$guest_nvme"
mke2fs -q -F -t ext4 -O ^has_journal "$guest_nvme" 4M || fail 'no file system (try: apt-get install e2fsprogs)'

# With --all, it reads all domains of a daemon.
# shellcheck disable=SC2119
need_own_daemon
need_linux
case $series in
6.1) cells='5:on 4:off' ;;
*) cells='5:off 4:on' ;;
esac
read -ra cells <<<"${UPROF_LINUX_CELLS:-$cells}"
for cell in "${cells[@]}"; do
    boot_cell "${cell%:*}" "${cell#*:}"
    look_at user "any(i['name'] == '[init]' and i['module'] and i['build_id'] for i in images)" user
    [ "$cell" != "${cells[-1]}" ] || annotates user
    tell_linux "$name" 'stop syscalls' >"$work/said" || fail 'it does not listen'
    look_at syscalls "linux['kernel_complete'] > 0" kernel
    if [ "$cell" = "${cells[-1]}" ]; then
        by_process syscalls
        replays syscalls
        annotates kernel
        compares_tasks
        shows_tasks
        compares_held_tasks
        # In the KVM lab, the rest would take minutes.
        if [ "$way" != DIRECT ]; then
            ends_holds
            captures_runners
            lists_while_forking
            counts_waits
            compares_locks
        fi
        shows_log
    fi
    wait_until 3 runs "$name" || fail "'$name' does not run any more"
    if [ "$cell" != "${cells[-1]}" ]; then
        shows_crashed
    elif [ "$way" != DIRECT ]; then
        last_words_of_kernel
    fi
    destroy_guest "$name"
done
