#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# linux-loads.sh PROGRAM GUESTS TCG|KVM|DIRECT SERIES - known loads on Debian's kernel: each sample
# has its process, with functions of the kernel and of the program, from files and from the guest's
# memory; hundreds of short-lived processes; and a reboot in mid-run
#
# $UPROF_LOADS_SAMPLES (600): the samples of threads whose shares are known. With 4500 samples and
# more, shares must be right within 3 points, with 1600 and more within 5, otherwise within 8: four
# standard deviations. Runs that differ only in where names come from have 300 samples, and a tolerance
# of 12 points.
# shellcheck source=tests/live/linux-lib.sh
source "$(dirname "$0")/linux-lib.sh"

name=${guest_prefix}loads-$series-$way
rounds_max=8
# The least number of samples. One wrong sample of so many is within the limit of 99.6 %.
few=300
samples=${UPROF_LOADS_SAMPLES:-600}
points=8
[ "$samples" -lt 1600 ] || points=5
[ "$samples" -lt 4500 ] || points=3

# Loads that share the processor. A row is a process, a function that only this process has, and a
# function of the kernel in which samples must show the process.
loads='switch network syscalls faults timers'
rows=(
    ping-proc   run_ping      '(anon_)?pipe_(read|write)'
    pong-proc   run_pong      '(anon_)?pipe_(read|write)'
    net-client  run_client    'tcp_(sendmsg|recvmsg)'
    net-server  run_server    'tcp_(sendmsg|recvmsg)'
    syscalls    run_syscalls  'vfs_read|read_zero|read_iter_zero'
    faults      run_faults    'asm_exc_page_fault|__munmap'
    timers      run_timers    'nanosleep|hrtimer.*'
)

# sample_enough MIN NAMES ARGUMENT...: samples until MIN samples have one of the names; sets $files
sample_enough()
{
    local round=0
    files=()
    while [ "$round" -lt "$rounds_max" ]; do
        round=$((round + 1))
        sample "$1" "$work/round$round" "${@:3}" "$name"
        files+=("$work/round$round.folded")
        [ "$(cat "${files[@]}" | grep -E ";($2)(;| )" | awk '{ n += $NF } END { print n + 0 }')" -lt "$1" ] ||
            return 0
    done
    fail "not $1 samples of $2 in $rounds_max rounds"
}

# keep_by_build_id FILE FOLDER: copies FILE to the path below FOLDER that its build-id gives
keep_by_build_id()
{
    local id
    id=$(readelf -n "$1" | sed -n 's/^ *Build ID: //p')
    mkdir -p "$2/.build-id/${id:0:2}"
    cp "$1" "$2/.build-id/${id:0:2}/${id:2}.debug"
}

# whose_samples: each sample is of an existing task, and has no function of another process; sets
# $tasks, a pattern of the tasks
whose_samples()
{
    local i owners=''
    for ((i = 0; i < ${#rows[@]}; i += 3)); do
        owners+="(?!(?!${rows[i]};).*;${rows[i + 1]}(;|$))"
    done
    tasks=$(tell_linux "$name" tasks | awk '{ print $NF }' | sort -u | sed 's/[.+]/\\&/g' | paste -sd '|')
    tasks+='|kworker/[^;]*|swapper/[0-9]+|\[idle\]'
    # A sample in some hundreds may be of a task that begins or ends meanwhile.
    result stacks "$name" 99.6 "($tasks)(;.*)?" "$work/all.folded"
    result stacks "$name" 100 "$owners.*" "$work/all.folded"
}

# sees_rows: all.folded has each row's functions in the row's process; sets $unseen
sees_rows()
{
    local i
    for ((i = 0; i < ${#rows[@]}; i += 3)); do
        unseen="'${rows[i]}' in ${rows[i + 2]}"
        grep -qE "^$name;${rows[i]};.*;(${rows[i + 2]})_\[k\]" "$work/all.folded" || return 1
        unseen="'${rows[i]}' in ${rows[i + 1]}"
        grep -qE "^$name;${rows[i]};.*;${rows[i + 1]};" "$work/all.folded" || return 1
    done
}

# sample_rows: samples until all.folded has each row's functions. Some are rare, so chance decides
# whether one run sees them.
sample_rows()
{
    local round
    for round in 1 2 3 4; do
        ! sees_rows || return 0
        sample "$few" "$work/more" -s "$init" "$name"
        LC_ALL=C sort -o "$work/all.folded" "$work/all.folded" "$work/more.folded"
    done
    sees_rows || fail "no sample of $unseen"
}

need_daemon
need_linux
boot_linux "$name" "$release" "$machine" "pti=on -- $loads" 1 || fail 'no guest'
init=$guests/../linux/init

sample "$few" "$work/all" -s "$init" "$name"
result sidecar "$work/all.meta.json" "stacks['complete'] * 100 >= samples['running'] * 97" \
    "call_sites['agreed'] * 100 >= call_sites['checked'] * 97"
sample_rows
whose_samples

tell_linux "$name" 'stop threads' >"$work/said"
sample_enough "$samples" 'split_[136]0' -s "$init"
result split "$name" "$points" "$samples" split_10=10,split_30=30,split_60=60 "${files[@]}"
result stacks "$name" 99 "($tasks|worker-[123])(;.*)?" "${files[0]}"
result stacks "$name" 90 'worker-[123](;.*)?' "${files[0]}"

tell_linux "$name" 'stop plain:threads' >"$work/said"
keep_by_build_id "$guests/../linux/plain" "$work/files"
sample_enough "$few" 'split_[136]0' --debug-dir "$work/files"
result split "$name" 12 "$few" split_10=10,split_30=30,split_60=60 "${files[@]}"
# Without the file, the guest's memory has the same names: the initial RAM disk is in the page cache.
sample_enough "$few" 'split_[136]0'
result split "$name" 12 "$few" split_10=10,split_30=30,split_60=60 "${files[@]}"
result sidecar "${files[0]%.folded}.meta.json" \
    "any(i['name'] == '[plain]' and i['memory'] and not i['symbols'] for i in images)" \
    "call_sites['agreed'] * 100 >= call_sites['checked'] * 98" \
    "stacks['complete'] * 100 >= samples['running'] * 97"
profile 0 check "${patient[@]}" "$name"
out_has 'symbols ' "1 files of the guest's processes, from the guest's memory; unwind tables of 1"

# A program of a distribution, and its libraries, out of the guest's memory: all exported functions that
# occur have their names. Without the empty sysroot, this host's files would be used, which are the same.
if [ -e /usr/bin/openssl ]; then
    tell_linux "$name" 'stop run:/usr/bin/openssl,speed,-seconds,3000,sha512' >"$work/said"
    sample 150 "$work/host" "$name"
    result sidecar "$work/host.meta.json" \
        "any(i['name'].startswith('[libcrypto.so') and i['symbols'].startswith('/') and not i['memory'] for i in images)"
    mkdir "$work/empty"
    sample "$few" "$work/openssl" --sysroot "$work/empty" "$name"
    result sidecar "$work/openssl.meta.json" \
        "any(i['name'].startswith('[libcrypto.so') and i['memory'] and not i['symbols'] for i in images)" \
        "call_sites['agreed'] * 100 >= call_sites['checked'] * 97" \
        "stacks['complete'] * 100 >= samples['running'] * 95"
    for function in EVP_Digest EVP_DigestFinal_ex SHA512_Final __libc_start_main; do
        grep -qE "^$name;openssl;(.*;)?$function[; @]" "$work/openssl.folded" ||
            fail "no '$function' in $(head -c 2000 "$work/openssl.folded")"
    done
fi

# A BPF program has the name that /proc/kallsyms shows, and its callers are the kernel's.
tell_linux "$name" 'stop bpf' >"$work/said"
sample "$few" "$work/bpf" -s "$init" "$name"
result sidecar "$work/bpf.meta.json" "stacks['complete'] * 100 >= samples['running'] * 97"
grep -qE "^$name;bpf;.*;run_bpf;.*;__sys_bpf_\[k\];.*;bpf_test_run_\[k\];bpf_prog_[0-9a-f]{16}_uprof_spin_\[k\] " \
    "$work/bpf.folded" || fail "no program in $(head -c 2000 "$work/bpf.folded")"

# Functions that a process generates have the names of its perf map, also those that it generates while
# it is sampled, some seconds after its start. Their callers are the program's.
tell_linux "$name" 'stop jit' >"$work/said"
sample 600 "$work/jit" -F 60 -s "$init" "$name"
result sidecar "$work/jit.meta.json" "stacks['complete'] * 100 >= samples['running'] * 97"
inner='JS:\*(later_)?outer /srv/app\.js:[0-9:]+;JS:\*(later_)?inner /srv/app\.js:[0-9:]+'
result stacks "$name" 85 "jit;.*;run_jit;call_generated;$inner(;[^;]*_\\[k\\])*" "$work/jit.folded"
# The list is read again some time after a function without a name was seen.
result stacks "$name" 97 '(?!.*\[unknown\]).*' "$work/jit.folded"
grep -qE 'JS:\*later_outer [^;]*;JS:\*later_inner ' "$work/jit.folded" || fail 'no function that was generated later'
profile 0 check "${patient[@]}" "$name"
out_has 'symbols ' '4 functions that JIT compilers generated, from the perf maps of 1 processes'

# A service and a container share the processor. Other samples are of the kernel's own threads.
id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
tell_linux "$name" "stop in:/system.slice/web.service:user in:/docker/$id:syscalls" >"$work/said"
sample "$few" "$work/cgroups" --cgroups -s "$init" "$name"
result stacks "$name" 99.6 "web\.service;user;.*|/docker/${id:0:12};syscalls;.*|/;(?!user;|syscalls;).*" \
    "$work/cgroups.folded"
profile 0 report --by cgroup "$work/cgroups.folded"
grep -qE '^ +[0-9.]+ +[0-9.]+  web\.service$' "$work/out" || fail "no service in: $(cat "$work/out")"
grep -qE "^ +[0-9.]+ +[0-9.]+  /docker/${id:0:12}$" "$work/out" ||
    fail "no container in: $(cat "$work/out")"

# Short-lived processes: each sample belongs to one of them, or to the process that starts them.
tell_linux "$name" 'stop forks' >"$work/said"
sample "$few" "$work/forks" -s "$init" "$name"
result stacks "$name" 99.6 "($tasks|forks|forked)(;.*)?" "$work/forks.folded"
grep -qE "^$name;forked;" "$work/forks.folded" || fail 'no sample of a forked process'

# The guest reboots while it is sampled. Its kernel then has another address, and virt-uprof must find
# it again. The loads of the command line start after the boot.
has_booted()
{
    [ "$(grep -ac '^READY' "$(guest_serial "$name")")" -ge 2 ]
}
rm -f "$work/err"
"$program" "${fast[@]}" -d 600 -s "$init" -o "$work/boot.folded" -o "$work/boot.meta.json" "$name" \
    >"$work/out" 2>"$work/err" </dev/null &
profiler=$!
await_sampling
sleep 8
virsh -q reset "$name"
began=$SECONDS
wait_until "$linux_seconds" has_booted || fail 'it does not boot again'
# While the guest boots, virt-uprof searches less and less often. It may find the kernel only after
# twice the time of the boot.
sleep $((SECONDS - began + 15))
kill -INT "$profiler"
wait "$profiler" || fail "virt-uprof exits $?"
for row in 'forked;' 'ping-proc;.*;run_ping;' 'net-client;.*;tcp_sendmsg_\[k\]'; do
    grep -qE "^$name;$row" "$work/boot.folded" || fail "no '$row' in one of two boots"
done
