# SPDX-License-Identifier: LGPL-2.1-or-later
#
# `virsh uprof ...` in your shell. virsh loads no plug-ins, so this is a shell
# function, and you opt in by sourcing it from ~/.bashrc or ~/.zshrc:
#
#     . /usr/share/virt-uprof/virsh-uprof.sh
#
# Everything but `virsh uprof` goes to virsh unchanged.
virsh()
{
    if [ "${1-}" = uprof ]; then
        shift
        command virt-uprof "$@"
    else
        command virsh "$@"
    fi
}
