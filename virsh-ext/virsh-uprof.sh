# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Adds `virsh uprof ...` to your shell. virsh loads no plug-ins, so this is a shell function. To use
# it, source this file from ~/.bashrc or ~/.zshrc:
#
#     . /usr/share/virt-uprof/virsh-uprof.sh
#
# The function obeys virsh's options for the connection, as in `virsh -c xen:///system uprof list`.
# Other commands go to virsh unchanged. sudo cannot run shell functions, so use
# `sudo virt-uprof` instead. The shell completes words after `uprof` like those of virt-uprof. In
# zsh, initialize completion (compinit) before you source this file.
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

if [ -n "${BASH_VERSION-}" ]; then
    if [ -r "${BASH_SOURCE[0]%/*}/../bash-completion/completions/virt-uprof" ]; then
        # shellcheck source=virsh-ext/completion/virt-uprof.bash
        . "${BASH_SOURCE[0]%/*}/../bash-completion/completions/virt-uprof"
        complete -F _virsh_uprof virsh
    fi
elif command -v compdef >/dev/null; then
    compdef _virt-uprof virsh
fi
