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
# sudo runs programs and no functions: use virt-uprof behind it. Behind `uprof` words are
# completed as behind virt-uprof; in zsh, if its completion was initialized before this.
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
