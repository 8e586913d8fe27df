# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# tests.sh - the tests in the Xen lab, listed in the tables at the end; sourced after lib.sh

# A hold that is older than 50 ms copies no stack. Such holds occur on a busy emulated machine, and
# no test is about them.
patient=(--max-pause 1s)
fast=(-F 1000 --budget 100 "${patient[@]}")
samples_wanted=5000
# One and a half times as many samples make it unlikely that chance decides.
samples_taken=7500
# How often measurements are repeated
rounds=3
# The number of iterations of the loop in the shortest of the guest's three functions. The iterations
# take about a millisecond. Xen lets a vCPU run for a millisecond before another vCPU gets the CPU
# (sched_ratelimit_us), so on the lab's one CPU the guest runs for that time between two samples.
# With work that repeats within 25 us, consecutive samples were alike, and the shares of runs had 4
# times the variance of independent samples. With this number of iterations, the shares have half the
# variance of independent samples.
long_work=300000

# guest_image KIND: prints the path of the guest of known shares
guest_image()
{
    case $1 in
    pvh) echo "$guests/guest64.elf" ;;
    pv) echo "$guests/guestpv.elf" ;;
    esac
}

# boot NAME KIND [CMDLINE [VCPUS [UNIT]]]: boots the guest of known shares; sets $domid
boot()
{
    local words=${3:-split}
    # An emulated guest is slow, so its slices of work are short.
    create "$1" "$2" "$(guest_image "$2")" "$words unit=${5:-500}" 64 '' "${4:-1}"
    if [ "$2" = pv ]; then
        await_word "$1" "virt-uprof guest: ${words%%[= ]*}"
    fi
}

# explains_late_ticks: if a twentieth of the ticks was late, the summary says why and what helps
explains_late_ticks()
{
    local percent
    percent=$(python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))
print(run["ticks"]["late"] * 100 // (sum(run["ticks"].values()) + run["samples"]["total"]))' "$work/run.meta.json")
    [ "$percent" -lt 5 ] || says 'samples missed: .* dom0 shares a CPU with the domain\. .* use -F 400'
}

# shares KIND: functions have 10, 30 and 60 % within 2 points at 5000 samples; stacks are complete
shares()
{
    local files=() n=0
    boot g "$1" split 1 "$long_work"
    while [ "$n" -lt "$samples_taken" ]; do
        files+=("$work/${#files[@]}.folded")
        profile 0 "${fast[@]}" -d 4 -o "${files[-1]}" -o "$work/run.meta.json" g
        result sidecar "$work/run.meta.json" "ended_by == 'duration'" "access == 'xen'" \
            "stacks['complete'] * 100 >= samples['running'] * 99" "images[0]['matched']" \
            "samples['idle'] == 0" "domain['driver'] == 'Xen'"
        n=$(result total "${files[@]}")
        [ "${#files[@]}" -lt 60 ] || fail "only $n samples"
    done
    cat "$work/err"
    explains_late_ticks
    result shares g "$samples_wanted" "${files[@]}"
    must_run "$domid"
}

# stacks KIND IMAGE: no caller is missing from stacks of leaf functions without a frame
stacks()
{
    create g "$1" "$guests/$2.elf" 'split unit=500' 64 '' 1
    [ "$1" != pv ] || await_word g 'virt-uprof guest: split'
    profile 0 "${fast[@]}" -d 2 -o "$work/g.folded" -o "$work/run.meta.json" g
    cat "$work/err"
    result sidecar "$work/run.meta.json" \
        "stacks['complete'] * 100 >= samples['running'] * 99 > 0"
    grep -qE '^g;guest_entry;guest_main;main_loop;function_3;work ' "$work/g.folded"
    if grep -E 'truncated' -v "$work/g.folded" |
        grep -vE '^g;guest_entry;guest_main;main_loop(;function_[123](;work)?)? [0-9]+$'; then
        fail 'somebody is left out'
    fi
    must_run "$domid"
}

# check_ticks NAME ROOT: nothing marks the root of this guest's stacks, and its interrupts come in
# through assembly. Handlers and what they have interrupted are complete, in one stack.
check_ticks()
{
    local within='main_loop(;function_[123](;work)?)?'
    profile 0 "${fast[@]}" -d 2 -o "$work/ticks.folded" -o "$work/run.meta.json" "$1"
    cat "$work/err"
    result sidecar "$work/run.meta.json" "images[0]['matched']" \
        "stacks['complete'] * 100 >= samples['running'] * 99 > 0"
    result stacks "$1" 99 "$2;guest_main;ticks_loop;$within(;tick_interrupt(;handle_tick(;work)?)?)?" \
        "$work/ticks.folded"
    grep -qE ";$within;tick_interrupt;handle_tick;work " "$work/ticks.folded" ||
        fail "no handler: $(cat "$work/ticks.folded")"
}

# ticks: stacks of a PVH guest that has interrupts, and marks no root (domid has the PV guest)
ticks()
{
    # Xen's local APIC counts ten times as slowly as QEMU's, so there are ten ticks a second.
    create g pvh "$guests/guesttick.elf" 'ticks unit=200000' 64 '' 1
    check_ticks g guest_entry
    must_run "$domid"
}

# deep KIND: a stack of 25 KiB is complete, though a hold copies less at first
deep()
{
    boot g "$1" deep
    profile 0 "${fast[@]}" -d 3 -o "$work/g.folded" g
    result stacks g 80 "guest_entry;guest_main;deep_loop;(deep_[0-9]+;?){64};work" "$work/g.folded"
}

# high: stacks are complete if the stack is mapped at an address in the upper half
high()
{
    boot g pvh "split $1"
    profile 0 "${fast[@]}" -d 2 -o "$work/g.folded" g
    result stacks g 85 "guest_entry;guest_main;main_loop;function_[123];work" \
        "$work/g.folded"
}

# idle KIND: a halted vCPU is not held
idle()
{
    # The guest works for less than a millisecond before it halts.
    started_ns=1 boot g "$1" idle
    profile 0 -F 99 -d 4 --idle -o "$work/g.folded" -o "$work/run.meta.json" g
    cat "$work/err"
    result sidecar "$work/run.meta.json" "samples['idle'] * 100 >= samples['total'] * 80" \
        "hold_us['count'] * 4 <= samples['total']"
    profile 0 dump g
    is_in_state "$domid" running
}

# hostile: stacks that the guest forges are truncated
hostile()
{
    boot g pvh hostile
    profile 0 "${fast[@]}" -d 2 -o "$work/g.folded" -o "$work/run.meta.json" g
    cat "$work/err"
    result stacks g 100 '\[truncated\];.*|guest_entry(;.*)?|hostile_.*' "$work/g.folded"
    result sidecar "$work/run.meta.json" "stacks['truncated'] > 0" \
        "frames['total'] > samples['total'] > 100"
    must_run "$domid"
}

# create_by_xl TYPE MIB [LINE...]: creates a domain 'of-xl' that libvirt does not know, with LINEs in
# its configuration; sets $domid. libvirtd 9.0 crashes when such a domain of type hvm is destroyed.
create_by_xl()
{
    printf '%s\n' 'name = "of-xl"' "type = \"$1\"" "memory = $2" 'vcpus = 1' "${@:3}" \
        >"$work/g.cfg"
    xl create -q "$work/g.cfg"
    domid=$(xl domid of-xl)
    wait_until 60 has_run "$domid" 100000000
}

# foreign EXPRESSION TYPE MIB [LINE...]: the stacks of a foreign guest, which has no symbols,
# are addresses. Its kernel may be $work/kernel, which is deleted when the guest runs.
foreign()
{
    local seconds
    create_by_xl "${@:2}"
    rm -f "$work/kernel"
    # The first samples of unknown code cost most, so on a slow machine a short run has few.
    for seconds in 2 8; do
        profile 0 "${fast[@]}" -d "$seconds" --idle -o "$work/g.folded" -o "$work/run.meta.json" \
            --domid "$domid"
        cat "$work/err"
        [ "$(awk '!/\[idle\]/ { n += $NF } END { print n + 0 }' "$work/g.folded")" -le 100 ] || break
    done
    sed -n 1,4p "$work/g.folded"
    result stacks of-xl 100 '\[idle\]|(\[truncated\];)?0x[0-9a-f]+(;0x[0-9a-f]+)*' \
        "$work/g.folded"
    result sidecar "$work/run.meta.json" "samples['running'] > 100" "$1"
    profile 0 dump --domid "$domid"
    cat "$work/out"
    # The guest may have halted just before.
    grep -qE '#0 .* 0x[0-9a-f]+|vcpu0 idle \(halted\)' "$work/out"
    is_in_state "$domid" running
}

# foreign_hvm: a guest with firmware and devices of QEMU, and no disk to boot from
foreign_hvm()
{
    foreign "frames['total'] >= samples['running']" hvm 64 'vga = "none"'
}

# foreign_grub TYPE NAME: GRUB, which runs from a heap. Its 32-bit code has frame pointers.
foreign_grub()
{
    local wanted="frames['total'] >= samples['running']"
    [ "$1" = pv ] || wanted="frames['total'] > samples['running']"
    cp "/usr/lib/grub-xen/grub-$2.bin" "$work/kernel"
    foreign "$wanted" "$1" 128 "kernel = \"$work/kernel\""
}

# boot_debian KIND VCPUS WORDS MIB: boots a guest 'g' with Debian's kernel; sets $domid. On the
# emulated processor a program of the guest crashes now and then. If it is process 1, the guest
# panics, and another one is booted.
boot_debian()
{
    local try
    for try in 1 2 3; do
        create g "$1" "$(echo /boot/vmlinuz-*)" "console=hvc0 quiet -- $3" "$4" /lab/initrd.cpio "$2"
        await_word g '^READY|Kernel panic'
        ! console_says g 'Kernel panic' && return
        printf 'boot %s: %s\n' "$try" "$(console_of g | grep -a 'Kernel panic')"
        virsh -q destroy g || true
        wait_until 30 is_in_state "$domid" gone
    done
    fail 'it panics each time it boots'
}

# sample_linux: samples the Linux guest `g`; the stacks are complete, and each has a task
sample_linux()
{
    local seconds
    # One truncated stack of a few would be too many. The first stacks of a run often are truncated.
    for seconds in 4 16 60; do
        profile 0 "${fast[@]}" -d "$seconds" --per-vcpu -s "$guests/init" -o "$work/g.folded" \
            -o "$work/run.meta.json" g
        [ "$(result total "$work/g.folded")" -lt 60 ] || break
    done
    cat "$work/err"
    sort -t ' ' -k 2 -rn "$work/g.folded" | sed -n 1,8p
    result sidecar "$work/run.meta.json" \
        "stacks['complete'] * 100 >= samples['running'] * 95" \
        "call_sites['agreed'] * 100 >= call_sites['checked'] * 95"
    # Each sample has a task, such as rcu_preempt. The first frame of a sample without a task would be
    # a function of the kernel, _start, or a marker.
    result stacks g 99 'vcpu[01];[a-z][^;[]*(;.*)?' "$work/g.folded"
}

# shows_loads VCPUS: the samples show both loads on each vCPU
shows_loads()
{
    sample_linux
    grep -qE 'vcpu0;.*(split_loop|read_zero|call_getpid)' "$work/g.folded" &&
        { [ "$1" = 1 ] || grep -qE 'vcpu1;.*(split_loop|read_zero|call_getpid)' "$work/g.folded"; } &&
        grep -qE 'run_syscalls;.*;entry_SYSCALL_64_after_hwframe_\[k\];do_syscall_64_\[k\]' \
            "$work/g.folded" &&
        python3 /lab/result.py stacks g 40 'vcpu[01];(user|syscalls);.*' "$work/g.folded"
}

# lists_tasks VCPUS: the lists of tasks and the log are those of the guest; each vCPU has had a task
lists_tasks()
{
    local try
    for ((try = 0; try < 10; try++)); do
        profile 0 ps "${patient[@]}" --json g
        mv "$work/out" "$work/$try.ps"
        grep -o '"vcpu": [0-9]*' "$work/$try.ps" >>"$work/vcpus" || true
        [ "$(sort -u "$work/vcpus" | wc -l)" != "$1" ] || break
    done
    [ "$(sort -u "$work/vcpus" | wc -l)" = "$1" ] || fail "no task on each vCPU: $(sort "$work/vcpus" | uniq -c)"
    profile 0 dump --tasks "${patient[@]}" --json g
    console_of g >"$work/console"
    python3 /lab/listed.py "$work/console" "$work/$try.ps" "$work/out" "$1" || fail 'other tasks'
    profile 0 dmesg "${patient[@]}" --json g
    mv "$work/out" "$work/log.json"
    profile 0 dmesg "${patient[@]}" g
    python3 /lab/kernel_log.py "$work/log.json" "$work/out" "$work/console" 100 || fail 'another log'
}

# linux KIND VCPUS: stacks, tasks and log of Debian's kernel, which is at its link addresses, as the kernel of dom0 is.
# On a busy machine the guest makes up for missed timer ticks, and a kernel thread may then have the
# vCPU for seconds. So the guest is sampled until the samples show the loads.
linux()
{
    boot_debian "$1" "$2" 'user syscalls tasks log' 256
    wait_until 120 shows_loads "$2" || fail 'few samples are in the loads'
    lists_tasks "$2"
    must_run "$domid"
}

# paused: a domain that somebody else has paused stays paused and is not sampled
paused()
{
    local profiler
    boot g pvh
    xl pause "$domid"
    touch "$work/paused-$domid"
    profile 3 -d 1 g
    says "is paused, not by virt-uprof"
    profile 0 dump g
    grep -q guest_main "$work/out"
    is_in_state "$domid" paused
    xl unpause "$domid"

    # The pause comes in mid-run, while the run holds the domain as often as possible.
    virt-uprof -F 20000 --budget 100 -d 600 -o "$work/g.folded" -o "$work/run.meta.json" g \
        >"$work/out" 2>"$work/err" &
    profiler=$!
    wait_until 60 grep -q 'access xen' "$work/err"
    xl pause "$domid"
    wait_until 20 grep -q 'not by virt-uprof' "$work/err"
    is_in_state "$domid" paused
    kill -TERM "$profiler"
    wait "$profiler"
    is_in_state "$domid" paused
    result sidecar "$work/run.meta.json" "ended_by == 'signal'" "ticks['busy'] > 0" \
        "samples['total'] > 0"
    xl unpause "$domid"
    rm "$work/paused-$domid"
    must_run "$domid"

    # Both xl and virsh have paused the domain.
    virsh -q suspend g
    touch "$work/paused-$domid"
    profile 3 -d 1 g
    is_in_state "$domid" paused
    virsh -q resume g
    rm "$work/paused-$domid"
    must_run "$domid"
}

# gone: a domain that somebody ends in mid-run leaves no page behind, and the run goes on with the
# other domain
gone()
{
    local other
    boot other pv
    other=$domid
    boot g pvh
    virt-uprof -F 200 -d 600 -o "$work/%d.folded" -o "$work/%d.meta.json" g other >"$work/out" 2>"$work/err" &
    wait_until 60 grep -q 'access xen' "$work/err"
    virsh -q destroy g
    wait_until 30 is_in_state "$domid" gone || fail "it is $(state_of "$domid"): $(xl list)"
    if xl list | grep null; then
        fail 'a dead domain is still there'
    fi
    sleep 1
    kill -INT $!
    wait $! || fail "virt-uprof exited with $?"
    says 'the domain ended during the run; its samples are kept'
    [ -s "$work/g.folded" ]
    [ -s "$work/other.folded" ]
    result sidecar "$work/other.meta.json" "ended_by == 'signal'"
    must_run "$other"
}

# saved: a domain that is saved in mid-run, with the help of its kernel, is saved completely and
# runs on when it is restored
saved()
{
    local before profiler status=0
    boot_debian pvh 1 user 128
    before=$domid
    virt-uprof -F 200 -d 600 -o "$work/g.folded" g >"$work/out" 2>"$work/err" &
    profiler=$!
    wait_until 60 grep -q 'access xen' "$work/err"
    # On the emulated processor virsh crashed here once. The daemon then finishes the save.
    virsh -q save g "$work/saved" || [ $? -ge 128 ]
    wait_until 60 is_in_state "$before" gone || fail "it is $(state_of "$before"): $(xl list)"
    wait "$profiler" || status=$?
    says 'the domain ended during the run; its samples are kept'
    # On a busy machine the save begins before the first sample.
    if [ "$status" = 5 ]; then
        says 'no sample was taken'
    else
        [ "$status" = 0 ] || fail "virt-uprof exited with $status"
        [ -s "$work/g.folded" ]
    fi
    virsh -q restore "$work/saved"
    domid=$(virsh -q domid g)
    must_run "$domid"
    profile 0 -F 200 -d 1 -o "$work/g.folded" g
}

# is_destroyed: the domain is gone. After a reboot it exists again, with another number.
is_destroyed()
{
    virsh -q destroy g >/dev/null 2>&1 || true
    no_domains
}

# ends_itself: a guest stops or reboots by itself while it is sampled from its start on
ends_itself()
{
    local word
    for word in stop reboot; do
        rm -f "$work/g.folded"
        virt-uprof --wait -F 200 -d 60 -o "$work/g.folded" g >"$work/out" 2>"$work/err" &
        wait_until 20 grep -q "waiting for 'g'" "$work/err"
        boot g pv "$word=6"
        wait $! || fail "virt-uprof exited with $?"
        says 'the domain ended during the run; its samples are kept'
        result stacks g 100 '(_start|guest_entry)(;.*)?|\[truncated\];.*' "$work/g.folded"
        [ "$word" = reboot ] || wait_until 10 is_in_state "$domid" gone
        wait_until 30 is_destroyed || fail "it is still there: $(xl list)"
    done
}

# storm WAY ROUNDS KIND: runs are killed, in holds and outside of them
storm()
{
    local uuid
    boot g "$3"
    uuid=$(virsh -q domuuid g)
    # The first run makes the marker.
    profile 0 -d 100ms g
    lab-tool storm "$1" "$2" "$domid" "/run/virt-uprof/$uuid" \
        virt-uprof -q -F 20000 --budget 100 -d 60 -o "$work/g.folded" g 2>"$work/err" ||
        fail "storm $*"
    must_run "$domid"
    # `check --heal` does not resume a domain that a user has paused meanwhile.
    xl pause "$domid"
    touch "$work/paused-$domid"
    profile 0 check --heal
    is_in_state "$domid" paused
    xl unpause "$domid"
    rm "$work/paused-$domid"
}

# domid: a domain of xl, which libvirt does not know, is sampled by its name and its number, with the
# symbols of its configuration's kernel. Without the module for domains of xl, the number is enough.
domid()
{
    local module row kernel=$guests/guestpvtick.elf
    cp "$kernel" "$work/kernel.elf"
    virt-uprof --wait -F 200 -d 500ms -o "$work/waited.folded" of-xl >"$work/out" 2>"$work/err" &
    wait_until 20 grep -q "waiting for 'of-xl'" "$work/err"
    create_by_xl pv 64 "kernel = \"$work/kernel.elf\"" 'cmdline = "ticks unit=60000"'
    wait $! || fail "virt-uprof --wait exited with $?"
    [ -s "$work/waited.folded" ]
    profile 0 list
    cat "$work/out"
    row=$(grep -A 1 '^of-xl ' "$work/out")
    [[ $row = *" xen "*"$work/kernel.elf"*"not libvirt's domain, but made by xl"* ]]
    await_word of-xl 'virt-uprof guest: ticks'
    check_ticks of-xl _start
    profile 0 --all -F 100 -d 1 -o "$work/%d.all.folded"
    [ -s "$work/of-xl.all.folded" ]
    profile 0 check of-xl
    profile 5 configure of-xl
    says 'xl made this domain'
    echo '<virt-uprof><collect domains="of-*"/><store minFreeMegabytes="0"/></virt-uprof>' >"$work/config.xml"
    profile 0 collect --config "$work/config.xml" --store "$work/store" -d 1s
    says '^of-xl \(.*\): ok: '

    # Its kernel is not there any more.
    rm "$work/kernel.elf"
    profile 0 dump of-xl
    says "of-xl: cannot open symbol file '$work/kernel.elf'.* give its symbols with -s"
    grep -q '#0 .* 0x' "$work/out"

    module=$(echo /usr/local/lib/*/virt-uprof/xl.so)
    mv "$module" "$module.away"
    profile 3 -d 1 of-xl
    says "no domain 'of-xl' .* domains that xl made are not known here: .* is missing .*virt-uprof-xen"
    profile 0 collect --config "$work/config.xml" --store "$work/store" -d 1s
    says 'domains that xl made are not known here: '
    profile 0 dump -s "$kernel" --domid "$domid"
    says 'of-xl: libvirt does not know domain'
    grep -q guest_main "$work/out"
    mv "$module.away" "$module"
    is_in_state "$domid" running
}

# bad_input: errors have clear messages and the documented exit codes
bad_input()
{
    local module
    boot g pvh
    profile 5 dump Domain-0
    says 'it is dom0, in which virt-uprof itself runs'
    profile 5 dump --domid 0
    says 'it is dom0'
    profile 3 dump --domid 32000
    says 'Xen has no domain of number 32000; see: xl list'
    profile 2 dump --domid 32752
    says "--domid '32752' is not"
    profile 2 dump --access monitor g
    says "no access 'monitor' to a domain of Xen"
    profile 2 dump --no-pause g
    says '--no-pause is for KVM'
    profile 3 dump nobody
    says "no domain 'nobody' on xen:///system"
    profile 0 list
    grep -q 'g .*xen ' "$work/out"
    profile 0 check g
    cat "$work/out"
    grep -q 'ok    access         xen: ' "$work/out"

    # libvirt itself refuses users other than root.
    if setpriv --reuid 65534 --regid 65534 --clear-groups \
        /usr/local/bin/virt-uprof dump g >"$work/out" 2>"$work/err"; then
        fail "not root, and yet it works"
    fi
    says 'no connection to'

    # The module is missing, then broken, then writable by others than root.
    module=$(echo /usr/local/lib/*/virt-uprof/xen.so)
    mv "$module" "$module.away"
    profile 5 dump g
    says 'the module for Xen domains is missing .*install the package virt-uprof-xen'
    profile 0 list
    grep -q 'virt-uprof-xen' "$work/out"
    profile 5 check
    grep -q 'FAIL  module .*virt-uprof-xen' "$work/out"
    echo nothing >"$module"
    profile 5 dump g
    says 'the module for Xen domains cannot be loaded'
    cp "$module.away" "$module"
    chmod 666 "$module"
    profile 5 dump g
    says 'users other than root may write it'
    mv "$module.away" "$module"
    profile 0 dump g
}

# capture: the report of a capture has the same bytes as the run
capture()
{
    boot g pv
    profile 0 "${fast[@]}" -d 2 -o "$work/live.folded" -f folded --capture "$work/g.capture" g
    profile 0 report -o "$work/again.folded" "$work/g.capture"
    cmp "$work/live.folded" "$work/again.folded"
    result stacks g 85 "guest_entry;guest_main;main_loop;function_[123];work" \
        "$work/again.folded"
}

# all: one run samples domains of both kinds, but not dom0
all()
{
    local one
    boot one pvh
    one=$domid
    boot other pv
    profile 0 --all -F 100 -d 3 -o "$work/%d.folded"
    [ -s "$work/one.folded" ]
    [ -s "$work/other.folded" ]
    [ ! -e "$work/Domain-0.folded" ]
    must_run "$one"
    must_run "$domid"

    # Xen answers for a number that is free with the domain of the next larger number.
    virsh -q destroy one
    wait_until 30 is_in_state "$one" gone
    profile 3 dump --domid "$one"
    says "Xen has no domain of number $one; see: xl list"
}

# metadata: a round follows the settings that virsh and the program wrote to a domain
metadata()
{
    local found part namespace=https://virt-uprof.org/xmlns/domain/1.0
    boot g pvh
    echo '<virt-uprof><store minFreeMegabytes="0"/></virt-uprof>' >"$work/config.xml"
    virsh -q metadata g "$namespace" --key uprof --live --set '<profile enabled="no" rate="77"/>'
    profile 0 configure --config "$work/config.xml" g
    grep -qE '^  rate +77 Hz +metadata$' "$work/out" || fail "$(cat "$work/out")"
    profile 0 enable --config "$work/config.xml" -d 2s g
    found=$(virsh -q metadata g "$namespace")
    for part in 'enabled="yes"' 'rate="77"' 'duration="2s"'; do
        [[ $found = *"$part"* ]] || fail "no $part in: $found"
    done
    profile 0 collect --config "$work/config.xml" --store "$work/store"
    cat "$work/err"
    says '^g \(.*\): ok: '
    result sidecar "$work"/store/data/g/*.meta.json "access == 'xen'" "samples['total'] > 0" \
        "rate['asked_millihertz'] == 77000"
    gzip -dc "$work"/store/data/g/*.folded.gz >"$work/g.folded"
    result stacks g 85 "guest_entry;guest_main;main_loop;function_[123];work" "$work/g.folded"
    must_run "$domid"
}

# run_xenctx: writes the stack that xenctx sees to $work/xenctx. xenctx shows no stack of code below
# the address at which it expects a kernel.
run_xenctx()
{
    /usr/lib/xen-4.17/bin/xenctx --frame-pointers --stack-trace --kernel-start 0x100000 \
        "$domid" 0 >"$work/xenctx" 2>&1 || fail "xenctx: $(cat "$work/xenctx")"
}

# xenctx_shows_stack: xenctx sees a stack. At the beginning of a function it misses frames.
xenctx_shows_stack()
{
    run_xenctx
    [ "$(grep -c '^[0-9a-f]*: | \[<' "$work/xenctx")" -ge 3 ]
}

# bench: the time of a hold, and the time of a run of xenctx on the same guest
bench()
{
    local costs call_ns bare_ns began now n=0 kind
    for kind in pvh pv; do
        boot g "$kind"
        costs=$(lab-tool costs "$domid" 300)
        call_ns=${costs% *}
        bare_ns=${costs#* }
        profile 0 -F 20000 --budget 100 -d 5 -o "$work/g.folded" -o "$work/run.meta.json" g
        n=0
        began=$(date +%s%N)
        now=$began
        while [ $((now - began)) -lt 3000000000 ]; do
            run_xenctx
            n=$((n + 1))
            now=$(date +%s%N)
        done
        wait_until 20 xenctx_shows_stack || fail "$(cat "$work/xenctx")"
        python3 /lab/bench.py "$kind" "$work/run.meta.json" "$call_ns" "$bare_ns" \
            "$n" $((now - began)) | tee -a /lab/bench.txt
        must_run "$domid"
        xl destroy "$domid"
        wait_until 20 is_in_state "$domid" gone
    done
}

# rates KIND: samples a second, CPU time for a sample, and holds, beside a bare loop of Xen's calls
rates()
{
    local symbols=$guests/guest64.elf
    if [ "$1" = hvm ]; then
        create_by_xl hvm 64 "kernel = \"$symbols\"" 'cmdline = "split unit=500"' 'vga = "none"'
        python3 /lab/rates.py hvm of-xl "$domid" "$symbols" "$rounds" | tee -a /lab/bench.txt
    else
        symbols=$(guest_image "$1")
        boot g "$1"
        python3 /lab/rates.py "$1" g "$domid" "$symbols" "$rounds" | tee -a /lab/bench.txt
    fi
    must_run "$domid"
}

lab_tests=(
    'shares-pvh     shares pvh'
    'shares-pv      shares pv'
    'stacks-leaf    stacks pvh guestleaf'
    'stacks-tables  stacks pvh guesttables'
    'stacks-bare    stacks pvh guestbare'
    'stacks-pv      stacks pv guestpvbare'
    'ticks          ticks'
    'deep-pv        deep pv'
    'high           high high'
    'idle-pvh       idle pvh'
    'idle-pv        idle pv'
    'hostile        hostile'
    'grub-pv        foreign_grub pv x86_64-xen'
    'hvm            foreign_hvm'
    'grub-pvh32     foreign_grub pvh i386-xen_pvh'
    'linux-pvh      linux pvh 1'
    'linux-pv       linux pv 2'
    'paused         paused'
    'gone           gone'
    'ends-itself    ends_itself'
    'saved          saved'
    'domid          domid'
    'bad-input      bad_input'
    'capture        capture'
    'all            all'
    'metadata       metadata'
    'storm-pv       storm kill 5 pv'
    'storm-pvh      storm kill 25 pvh'
    'storm-group    storm group 3 pvh'
    'storm-term     storm term 3 pvh'
    'storm-guardian storm guardian 3 pvh'
    'storm-spawner  storm spawner 3 pvh'
    'storm-worker   storm worker 3 pvh'
    'storm-stop     storm stop 2 pvh'
)
lab_measurements=(
    'bench          bench'
    'rates-pv       rates pv'
    'rates-pvh      rates pvh'
    'rates-hvm      rates hvm'
)
