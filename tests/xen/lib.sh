# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# lib.sh - what the tests in the lab have in common; runs in its dom0
#
# A test is a function. It fails by `fail` or by any command that fails; its words
# are shown then. After each test all domains are destroyed, and it has failed if
# Xen says of any but dom0 that it is paused, or of a dead one that it is still there.

export LIBVIRT_DEFAULT_URI=xen:///system
guests=/lab/guests
results=/lab/results.tap
work=/tmp/work
n_tests=0
n_failed=0

say()
{
    read -r now _ </proc/uptime
    printf 'lab: %6s s: %s\n' "$now" "$*"
}

fail()
{
    printf 'FAILED: %s\n' "$*"
    [ ! -s "$work/err" ] || sed 's/^/    stderr of the last run: /' "$work/err"
    exit 1
}

# wait_until SECONDS COMMAND [ARGUMENT...]: asks COMMAND five times a second, or every
# $pause seconds: dom0 comes first on the one CPU, and who asks all the time starves guests
wait_until()
{
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep "${pause:-0.2}"
    done
}

# check NAME FUNCTION [ARGUMENT...]: one test
check()
{
    local name=$1 status=0 began=$SECONDS line
    shift
    n_tests=$((n_tests + 1))
    rm -rf "$work"
    mkdir -p "$work"
    say "test: $name"
    # Not in a condition: `set -e` would be off in it.
    (
        set -eE
        trap 'printf "FAILED: line %s: %s\n" "$LINENO" "$BASH_COMMAND"' ERR
        # a run that was left in the background would sample the next test's guest
        trap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT
        "$@"
    ) >"$work.log" 2>&1 &
    wait $! || status=1
    (
        set -e
        all_is_well
    ) >>"$work.log" 2>&1 &
    wait $! || status=1
    if [ "$status" = 0 ]; then
        printf 'ok %d - %s\n' "$n_tests" "$name" >>"$results"
    else
        n_failed=$((n_failed + 1))
        printf 'not ok %d - %s\n' "$n_tests" "$name" >>"$results"
        say "FAILED: $name"
    fi
    while IFS= read -r line; do
        printf '# %s\n' "$line"
    done <"$work.log" >>"$results"
    sed 's/^/    /' "$work.log"
    say "took $((SECONDS - began)) s"
}

# all_is_well: nothing is left of a test, once what it has paused itself is destroyed
all_is_well()
{
    local id ids paused=()
    ids=$(lab-tool list)
    for id in $ids; do
        if [ "$(state_of "$id")" = paused ] && [ ! -e "$work/paused-$id" ]; then
            paused+=("$id")
        fi
    done
    # by libvirt first, which is not asked for dom0: what is destroyed behind its back it
    # learns of later
    ids=$(virsh -q list --uuid || virsh -q list --uuid)
    for id in $ids; do
        [[ $id = 00000000-* ]] || virsh -q destroy "$id" >/dev/null 2>&1 || true
    done
    ids=$(lab-tool list)
    for id in $ids; do
        xl destroy "$id" >/dev/null 2>&1 || true
    done
    [ "${#paused[@]}" = 0 ] || fail "left paused: domains ${paused[*]}"
    wait_until 20 no_domains || fail "a dead domain is still there: $(xl list)"
}

no_domains()
{
    local ids
    ids=$(lab-tool list) && [ -z "$ids" ] && [ "$(virsh -q list --all --name | grep -c .)" = 1 ]
}

# state_of DOMID: running, paused, shutdown, dying or gone, by Xen's own word
state_of()
{
    local word
    word=$(lab-tool state "$1")
    printf '%s\n' "${word% *}"
}

cpu_ns_of()
{
    local word
    word=$(lab-tool state "$1")
    printf '%s\n' "${word#* }"
}

is_in_state()
{
    [ "$(state_of "$1")" = "$2" ]
}

# has_run DOMID NS: it has had so much CPU time
has_run()
{
    [ "$(cpu_ns_of "$1")" -gt "$2" ]
}

# domain_xml NAME KIND KERNEL [CMDLINE [MIB [INITRD [VCPUS]]]]; KIND is pvh, pv or hvm
domain_xml()
{
    local os
    case $2 in
    pvh) os="<type arch='x86_64' machine='xenpvh'>xenpvh</type>" ;;
    pv) os="<type arch='x86_64' machine='xenpv'>linux</type>" ;;
    hvm) os="<type arch='x86_64' machine='xenfv'>hvm</type><loader type='rom'>$3</loader>" ;;
    esac
    cat <<XML
<domain type='xen'>
  <name>$1</name>
  <memory unit='MiB'>${5:-64}</memory>
  <vcpu>${7:-1}</vcpu>
  <os>
    $os
    $([ "$2" = hvm ] || echo "<kernel>$3</kernel>")
    ${6:+<initrd>$6</initrd>}
    ${4:+<cmdline>$4</cmdline>}
  </os>
  <devices>
    $([ "$2" = hvm ] || echo "<console type='pty'/>")
  </devices>
</domain>
XML
}

# create NAME KIND KERNEL ...: as domain_xml; sets $domid. Returns when it has run, for
# $started_ns if that is set.
create()
{
    local before
    before=$(lab-tool list)
    rm -f "/var/log/xen/guest-$1.log"
    domain_xml "$@" >"$work/$1.xml"
    # each start of virsh takes a second here; it goes on after a command that has failed
    domid=$(virsh -q "create $work/$1.xml; domid $1")
    ! grep -qx "$domid" <<<"$before" || fail "'$1' is not new: domain $domid"
    wait_until 60 has_run "$domid" "${started_ns:-200000000}" || fail "'$1' does not run: $(xl list)"
}

# console_of NAME: what the guest has said
console_of()
{
    cat "/var/log/xen/guest-$1.log" 2>/dev/null || true
}

console_says()
{
    grep -qaE -- "$2" "/var/log/xen/guest-$1.log" 2>/dev/null
}

# await_word NAME PATTERN: on its console
await_word()
{
    pause=2 wait_until 240 console_says "$1" "$2" ||
        fail "'$1' does not say '$2': $(console_of "$1" | tail -n 5)"
}

# profile STATUS ARGUMENT...: runs the program, which must exit so; its output is
# in $work/out and $work/err
profile()
{
    local want=$1 status=0
    shift
    timeout -k 5 120 virt-uprof "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    [ "$status" = "$want" ] || fail "virt-uprof $* exits $status, not $want"
}

# says PATTERN: whether the last run's stderr has a line of that form
says()
{
    grep -qE -- "$1" "$work/err" || fail "no '$1' on stderr"
}

# result COMMAND ARGUMENT...: asks result.py, which fails with words
result()
{
    python3 -IS /lab/result.py "$@" || fail "result.py $*"
}

# must_run DOMID: now, and it gets CPU time
must_run()
{
    local before
    wait_until 20 is_in_state "$1" running || fail "domain $1 is $(state_of "$1")"
    before=$(cpu_ns_of "$1")
    wait_until 20 has_run "$1" "$before" || fail "domain $1 runs, but does no work"
}
