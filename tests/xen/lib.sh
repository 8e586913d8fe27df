# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# lib.sh - functions for the tests in the Xen lab; runs in the lab's dom0

# shellcheck source=tests/lib/lab-tests.sh
source /lab/lab-tests.sh

export LIBVIRT_DEFAULT_URI=xen:///system
guests=/lab/guests

# all_is_well: destroys all domains but dom0 after each test. Fails if a domain is paused that the
# test has not paused itself, or if a dead domain still exists after 20 s.
all_is_well()
{
    local id ids paused=()
    ids=$(lab-tool list)
    for id in $ids; do
        if [ "$(state_of "$id")" = paused ] && [ ! -e "$work/paused-$id" ]; then
            paused+=("$id")
        fi
    done
    # virsh comes first, because libvirt is slow to notice domains that other tools destroy.
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

# state_of DOMID: prints running, paused, shutdown, dying or gone, as Xen says
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

# has_run DOMID NS: the domain has had NS nanoseconds of CPU time
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

# create NAME KIND KERNEL ...: creates a domain, with the arguments of domain_xml; sets $domid.
# Returns when the domain has had $started_ns of CPU time.
create()
{
    local before
    before=$(lab-tool list)
    rm -f "/var/log/xen/guest-$1.log"
    domain_xml "$@" >"$work/$1.xml"
    # Each start of virsh takes a second here. virsh goes on after a command that has failed.
    domid=$(virsh -q "create $work/$1.xml; domid $1")
    ! grep -qx "$domid" <<<"$before" || fail "'$1' is not new: domain $domid"
    wait_until 60 has_run "$domid" "${started_ns:-200000000}" || fail "'$1' does not run: $(xl list)"
}

# console_of NAME: prints what the guest has written to its console
console_of()
{
    cat "/var/log/xen/guest-$1.log" 2>/dev/null || true
}

console_says()
{
    grep -qaE -- "$2" "/var/log/xen/guest-$1.log" 2>/dev/null
}

# await_word NAME PATTERN: waits for the pattern on the guest's console
await_word()
{
    pause=2 wait_until 240 console_says "$1" "$2" ||
        fail "'$1' does not say '$2': $(console_of "$1" | tail -n 5)"
}

# profile STATUS ARGUMENT...: runs the program, which must exit with STATUS; its output goes to
# $work/out and $work/err
profile()
{
    local want=$1 status=0
    shift
    timeout -k 5 120 virt-uprof "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    [ "$status" = "$want" ] || fail "virt-uprof $* exits $status, not $want"
}

# must_run DOMID: the domain runs and gets CPU time
must_run()
{
    local before
    wait_until 20 is_in_state "$1" running || fail "domain $1 is $(state_of "$1")"
    before=$(cpu_ns_of "$1")
    wait_until 20 has_run "$1" "$before" || fail "domain $1 runs, but does no work"
}
