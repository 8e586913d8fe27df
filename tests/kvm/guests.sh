# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# guests.sh - the live tests of access `direct` that the KVM lab runs; the table at the end
# lists them
#
# Each test runs an unchanged script of tests/live. The environment says how many samples are wanted,
# because a hold takes milliseconds here, a thousand times as long as on a real processor.

# Linux guests get the lab's processor. CMPXCHG16B is left out: as QEMU 7.2 emulates it, every
# other boot of Linux 6.12 crashes.
export linux_cpu=max,-cx16
export XDG_CACHE_HOME=/opt/uprof/cache
# Booting a guest only to see whether KVM works would cost ten seconds in each script.
export UPROF_KVM_USABLE=yes
# The calls and loops around the slices of work take time, too. On an emulated processor, with slices
# as short as the default, this time would exceed the tolerance of the test of shares.
export UPROF_GUEST_UNIT=1000

# live [NAME=VALUE...] SCRIPT [SERIES]: runs a live test, which must pass; a skip counts as a failure
live()
{
    local settings=() status=0
    while [[ $1 == *=* ]]; do
        settings+=("$1")
        shift
    done
    env "${settings[@]}" "$live/$1" "$(command -v virt-uprof)" "$guests" DIRECT "${@:2}" || status=$?
    [ "$status" = 0 ] || fail "$1 exits $status"
}

# live_cells CELLS SCRIPT SERIES: runs a live test with these kinds of guests (separated by commas)
live_cells()
{
    UPROF_LINUX_CELLS=${1//,/ } live "${@:2}"
}

lab_tests=(
    # Five levels of page tables with isolation. The live tests run linux.sh also without isolation,
    # under emulation.
    'linux-6.1     live_cells 5:on linux.sh 6.1'
    # Four levels, two vCPUs, shares, and kills.
    'linux-direct  live UPROF_LINUX_SAMPLES=400 UPROF_LIVE_KILLS=15 linux-direct.sh 6.12'
    'shares        live UPROF_LIVE_SAMPLES=1000 shares.sh'
)
