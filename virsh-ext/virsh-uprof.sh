# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# `virsh uprof ...` in your shell. virsh loads no plug-ins, so this is a shell
# function, and you opt in by sourcing it from ~/.bashrc or ~/.zshrc:
#
#     . /usr/share/virt-uprof/virsh-uprof.sh
#
# Options of virsh that say which connection hold for it too, as in
# `virsh -c xen:///system uprof list`. Everything else goes to virsh unchanged.
# sudo runs programs and no functions: use virt-uprof behind it.
virsh()
{
    local uri=${VIRSH_DEFAULT_CONNECT_URI:-${LIBVIRT_DEFAULT_URI-}} word expected='' n=0
    for word in "$@"; do
        n=$((n + 1))
        if [ -n "$expected" ]; then
            uri=$word expected=''
            continue
        fi
        case $word in
        -c | --connect) expected=yes ;;
        --connect=*) uri=${word#--connect=} ;;
        -c?*) uri=${word#-c} ;;
        -q | --quiet) ;;
        uprof)
            shift "$n"
            if [ -n "$uri" ]; then
                LIBVIRT_DEFAULT_URI=$uri command virt-uprof "$@"
            else
                command virt-uprof "$@"
            fi
            return
            ;;
        *) break ;;
        esac
    done
    command virsh "$@"
}
