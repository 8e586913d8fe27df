# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# lib.sh - functions for the tests in the KVM lab; runs in the lab's host

# shellcheck source=tests/lib/lab-tests.sh
source /lab/lab-tests.sh

export LIBVIRT_DEFAULT_URI=qemu:///system
live=/opt/uprof/tests/live
guests=/opt/uprof/build/tests/guests
result_py=$live/result.py

# all_is_well: the test has left no domain, no QEMU, and no run of virt-uprof
all_is_well()
{
    local names
    names=$(virsh -q list --all --name)
    if [ -n "$names" ]; then
        for name in $names; do
            virsh -q destroy "$name" >/dev/null 2>&1 || true
            virsh -q undefine "$name" >/dev/null 2>&1 || true
        done
        fail "left behind: domains $names"
    fi
    ! pgrep -a virt-uprof || fail 'a run of virt-uprof is left behind'
    wait_until 20 no_qemu || fail 'a QEMU is left behind'
}

no_qemu()
{
    ! pgrep -f '^[^ ]*qemu-system.* -uuid ' >/dev/null
}
