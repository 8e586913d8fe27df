# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# lib.sh - functions for the live tests
#
# NAME.sh PROGRAM GUESTS [TCG|KVM|DIRECT] sources this file. PROGRAM is virt-uprof, and GUESTS the
# folder of the guests' images. The last word says what runs the guests and how a run holds them:
#     TCG     emulation; the complete guest is held, by access `monitor`
#     KVM     KVM; the complete guest is held, by access `monitor`
#     DIRECT  KVM; one vCPU at a time is held, by access `direct`
# A test fails (1) by `fail` or by any command that fails. It is skipped (77), with the reason on
# stdout, only if the machine lacks what the test needs.
set -euo pipefail
# The tests compare messages and numbers.
export LC_ALL=C.UTF-8

script_name=live/$(basename "$0" .sh)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
guest_prefix=uprof-live-
# shellcheck source=tests/lib/setup.sh
source "$here/../lib/setup.sh"

if [ $# -lt 2 ]; then
    echo "usage: $0 PROGRAM GUESTS [TCG|KVM|DIRECT]" >&2
    exit 2
fi
program=$(realpath "$1")
guests=$(realpath "$2")
way=${3:-TCG}
guest64=$guests/guest64.elf
# shellcheck disable=SC2034 # setup.sh uses it
guest_nice=10
# Guests and runs get the access method by name, so that virt-uprof never chooses it.
case $way in
DIRECT) machine=KVM access=direct ;;
KVM) machine=KVM access=monitor ;;
*) machine=TCG access=monitor ;;
esac

# After 50 ms a hold copies no stack. Such long holds occur on a busy machine, and no test is about
# them.
# shellcheck disable=SC2034
patient=(--max-pause 1s --access "$access")
# The highest possible rate: the budget lowers it if holds take too long.
# shellcheck disable=SC2034
fast=(-F 1000 --budget 100 "${patient[@]}")

skip()
{
    printf 'SKIP: %s\n' "$*"
    exit 77
}

fail()
{
    trap - ERR
    printf '%s: FAILED: %s\n' "$script_name" "$*" >&2
    [ ! -s "$work/err" ] || sed 's/^/    stderr of the last run: /' "$work/err" >&2
    exit 1
}

trap 'printf "%s: FAILED: line %s: %s\n" "$script_name" "$LINENO" "$BASH_COMMAND" >&2' ERR

[ "$(id -u)" = 0 ] || skip 'only root can start guests'
command -v virsh >/dev/null || skip 'there is no libvirt'
work=$(mktemp -d /var/tmp/uprof-live.XXXXXX)
# Without the folder, no run leaves anything for the next one.
export VIRT_UPROF_CACHE=$work/no-cache
at_exit rm -rf "$work"
: >"$work/err"

# need_daemon: for tests that run guests on the machine's own daemon
need_daemon()
{
    start_libvirtd || skip 'no libvirt daemon can be started'
    if [ "$machine" = KVM ]; then
        kvm_usable "$guest64" || skip 'no guest boots with KVM'
    fi
}

# need_own_daemon [LINE...]: starts a daemon for this test in $work/d, for tests that might hurt the
# daemon or other guests; LINEs as for start_test_libvirtd
# shellcheck disable=SC2120 # most tests need no lines
need_own_daemon()
{
    if [ "$machine" = KVM ]; then
        prepare_kvm || skip 'there is no KVM'
    fi
    start_test_libvirtd "$work/d" "$@" || skip 'no libvirt daemon of our own can be started'
    libvirt_uri=$(test_libvirtd_uri "$work/d")
    # The program uses the same connection.
    export LIBVIRT_DEFAULT_URI=$libvirt_uri
}

# keep_daemon: starts the test's daemon again whenever it has crashed. libvirtd 9.0.0 crashes now
# and then when its clients are killed.
keep_daemon()
{
    while sleep 0.2; do
        if is_gone "$(cat "$work/d/run/libvirtd.pid")"; then
            printf x >>"$work/outages"
            run_test_libvirtd "$work/d"
        fi
    done
}

# start_keeper: runs keep_daemon in the background until the test ends; $work/outages grows by a
# byte for each crash
start_keeper()
{
    : >"$work/outages"
    keep_daemon &
    at_exit kill "$!"
}

# only_collector: waits for other tests of rounds, because the machine has only one lock for rounds
only_collector()
{
    local lock
    exec {lock}>/run/lock/virt-uprof-tests
    flock "$lock"
}

# boot NAME CMDLINE [VCPUS [IMAGE [CPU]]]: boots a guest, and returns when it runs
boot()
{
    local cmdline=$2
    # A slow KVM needs short slices of work, which do no harm on a fast KVM. $UPROF_GUEST_UNIT is
    # their length.
    if [ "$machine" = KVM ] && [[ $cmdline != *unit=* ]]; then
        cmdline+=" unit=${UPROF_GUEST_UNIT:-100}"
    fi
    define_guest "$1" "$machine" "$guests/${4:-guest64}.elf" "$cmdline" "${3:-1}" "${5:-}"
}

# profile STATUS ARGUMENT...: runs the program, which must exit with STATUS; its output goes to
# $work/out and $work/err
profile()
{
    local want=$1 status=0
    shift
    "$program" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    [ "$status" = "$want" ] || fail "virt-uprof $* exits $status, not $want"
}

# The longest run of sample(), in seconds.
sample_seconds=150

# sample N FILE ARGUMENT...: writes FILE.folded and FILE.meta.json by a run that ends after N samples. On a
# busy machine, it may end before.
sample()
{
    local file=$2 options=("${fast[@]}" -d "$sample_seconds" --samples "$1")
    profile 0 "${options[@]}" -o "$file.folded" -o "$file.meta.json" "${@:3}"
}

# finish STATUS SECONDS: the run in the background, $profiler, ends with STATUS within SECONDS
finish()
{
    local status=0
    wait_until "$2" is_gone "$profiler" || fail "the run does not end within $2 s"
    wait "$profiler" || status=$?
    [ "$status" = "$1" ] || fail "exit $status, not $1"
    no_leftovers "$work"
}

# is_sampled NAME: a run has locked the guest's marker. Trying the lock would disturb the run.
is_sampled()
{
    local inode
    inode=$(stat -c %i "/run/virt-uprof/${guest_uuids[$1]}" 2>/dev/null) && grep -q "FLOCK.*:$inode " /proc/locks
}

# await_sampling [N]: returns when the run in the background samples its domain, or N domains. Tests
# must not sleep instead, because the start of a run may take many seconds on a busy machine.
await_sampling()
{
    wait_until 120 samples_domains "${1:-1}" || fail 'the run does not begin to sample'
}

samples_domains()
{
    [ -e "$work/err" ] && [ "$(grep -c ', access ' "$work/err")" -ge "$1" ]
}

# says PATTERN: fails unless the last run's stderr has such a line
says()
{
    grep -qE -- "$1" "$work/err" || fail "no '$1' on stderr"
}

# qemu_status NAME: prints what QEMU says: running, paused, ...
qemu_status()
{
    quiet_virsh qemu-monitor-command "$1" '{"execute":"query-status"}' 2>/dev/null |
        sed -n 's/.*"status":"\([a-z-]*\)".*/\1/p'
}

# runs NAME: libvirt and QEMU both say that the guest runs
runs()
{
    [ "$(quiet_virsh domstate "$1" 2>/dev/null)" = running ] && [ "$(qemu_status "$1")" = running ]
}

# must_run NAME: the guest runs, and its counter goes on
must_run()
{
    local before
    wait_until 3 runs "$1" || fail "'$1' does not run: $(quiet_virsh domstate "$1" --reason), QEMU: $(qemu_status "$1")"
    before=$(counter "$1")
    wait_until 60 counts_on "$1" "$before" || fail "'$1' runs, but does no work"
}

# counts_on NAME BEFORE [SYMBOL]: the counter differs from BEFORE
counts_on()
{
    local now
    now=$(counter "$1" "${3:-}")
    [ -n "$now" ] && [ "$now" != "$2" ]
}

# must_be_paused NAME
must_be_paused()
{
    [ "$(quiet_virsh domstate "$1")" = paused ] || fail "libvirt says that '$1' is not paused"
    [ "$(qemu_status "$1")" = paused ] || fail "QEMU says that '$1' is not paused"
}

# counter NAME [SYMBOL]: prints how many rounds of work the guest has done
counter()
{
    local address
    address=$(nm "${guest_folders[$1]}/kernel" | awk -v name="${2:-uprof_counter}" '$3 == name { print $1 }')
    quiet_virsh qemu-monitor-command "$1" --hmp "xp/1gx 0x$address" | tr -d '\r' | awk '{ print $2 }'
}

# guardian_of PID: prints the guardian of a run, the only child of its process with that name
guardian_of()
{
    local child children=() guardians=()
    read -ra children <"/proc/$1/task/$1/children" || true # the file has no line end
    for child in "${children[@]}"; do
        [ "$(cat "/proc/$child/comm")" != uprof-guardian ] || guardians+=("$child")
    done
    [ "${#guardians[@]}" = 1 ] || fail "guardians of the run: '${guardians[*]}'"
    echo "${guardians[0]}"
}

# second_vcpu_works NAME: the guest's second vCPU has begun to work
second_vcpu_works()
{
    (($(counter "$1" uprof_counter_ap) > 0))
}

# qemu_pid NAME
qemu_pid()
{
    pgrep -o -f "^[^ ]*qemu-system.* -uuid ${guest_uuids[$1]}( |$)"
}

# must_be_free NAME: nobody traces a thread of the guest's QEMU, and no thread is stopped
must_be_free()
{
    local held
    held=$(grep -HE '^TracerPid:[[:space:]]*[1-9]|^State:[[:space:]]*[tT]' \
        "/proc/$(qemu_pid "$1")"/task/*/status || true)
    [ -z "$held" ] || fail "threads of '$1' are stopped, or traced: $held"
}

# result COMMAND ARGUMENT...: runs result.py, which reports faults
result()
{
    python3 "$here/result.py" "$@" || fail "result.py $*"
}

# no_leftovers FOLDER: the folder has no temporary files
no_leftovers()
{
    local found
    found=$(find "$1" -name '.virt-uprof-*')
    [ -z "$found" ] || fail "left behind: $found"
}
