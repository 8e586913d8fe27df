# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Completion of virt-uprof for bash. The candidates come from the program:
# virt-uprof --complete WORD... prints one per line. Names of domains can contain any
# character, so the script never expands a word a second time: no eval, no compgen -W.

# _virt_uprof_split TEXT: splits TEXT, a command line up to the cursor, as bash would.
# Sets $words (without quotes), $raw (the last word with its quotes) and $mode: the
# quote that is open at the end, which is ', " or nothing.
_virt_uprof_split()
{
    local text=$1 i c next word='' is_word=''
    words=() raw='' mode=''
    for ((i = 0; i < ${#text}; i++)); do
        c=${text:i:1} next=${text:i+1:1}
        if [[ $mode == "'" || $mode == '"' ]] && [[ $c == "$mode" ]]; then
            mode=''
        elif [[ $mode == "'" ]]; then
            word+=$c
        elif [[ $c == "\\" && ($mode == '' || $next == [\"\\\$\`]) ]]; then
            word+=$next raw+=$c c=$next i=$((i + 1))
        elif [[ $mode == '"' ]]; then
            word+=$c
        elif [[ $c == "'" || $c == '"' ]]; then
            mode=$c
        elif [[ $c == [$' \t\n'] ]]; then
            [[ -z $is_word ]] || words+=("$word")
            word='' raw='' is_word=''
            continue
        else
            word+=$c
        fi
        raw+=$c is_word=yes
    done
    words+=("$word")
}

# _virt_uprof_quote TEXT: sets $quoted to TEXT, quoted for the open quote $mode
_virt_uprof_quote()
{
    quoted=$1
    case $mode in
    "'") quoted=${quoted//\'/"'\\''"} ;;
    '"')
        quoted=${quoted//\\/\\\\}
        quoted=${quoted//\"/\\\"}
        quoted=${quoted//\$/\\\$}
        quoted=${quoted//\`/\\\`}
        ;;
    *) [[ -z $quoted ]] || printf -v quoted %q "$quoted" ;;
    esac
}

# _virt_uprof_common WORD...: sets $common to the longest prefix that all words share
_virt_uprof_common()
{
    local word
    common=$1
    for word in "$@"; do
        while [[ ${word:0:${#common}} != "$common" ]]; do
            common=${common:0:${#common}-1}
        done
    done
}

# _virt_uprof_offer N CURRENT: sets $COMPREPLY for the program's words, which follow the
# first N words of the line; CURRENT is the last word as bash splits it
_virt_uprof_offer()
{
    local words raw mode quoted common found=() i head cut
    COMPREPLY=()
    _virt_uprof_split "${COMP_LINE:0:COMP_POINT}"
    mapfile -t found < <(command virt-uprof --complete "${words[@]:$1}" 2>/dev/null </dev/null)
    [[ ${#found[@]} -gt 0 ]] || return 0
    case ${found[0]} in
    /files*) compopt -o default && return 0 ;;
    /folders*) compopt -o dirnames && return 0 ;;
    esac

    # bash replaces only the part after a quote, '=' or ':', which is $2.
    head=${raw%"$2"}
    [[ $2 != [=:] ]] || head=$raw
    _virt_uprof_split "x $head"
    cut=${#words[1]}
    _virt_uprof_common "${found[@]}"
    # A common prefix is inserted first, without a blank after it. It is computed from the
    # unquoted words, because the common prefix of the quoted ones can end inside a quote.
    _virt_uprof_split "${COMP_LINE:0:COMP_POINT}"
    if [[ ${#found[@]} -gt 1 && ${#common} -gt ${#words[-1]} ]]; then
        compopt -o nospace
        found=("$common")
    fi
    _virt_uprof_split "x $head"
    for ((i = 0; i < ${#found[@]}; i++)); do
        _virt_uprof_quote "${found[i]:cut}"
        COMPREPLY+=("$quoted")
    done
    if [[ ${#found[@]} -gt 1 ]]; then
        _virt_uprof_common "${COMPREPLY[@]}"
        # With an extra entry, a blank, bash lists the candidates and inserts nothing.
        [[ $common == "$2" ]] || COMPREPLY+=(' ')
    fi
}

_virt_uprof()
{
    _virt_uprof_offer 1 "$2"
}

# _virsh_uprof_virsh ARGUMENT...: runs virsh's own completion, if it is installed
_virsh_uprof_virsh()
{
    if ! declare -F _virsh_complete >/dev/null && declare -F _completion_loader >/dev/null; then
        _completion_loader virsh
        complete -F _virsh_uprof virsh # The loader has replaced this completion.
    fi
    declare -F _virsh_complete >/dev/null || return 0
    compopt -o default -o filenames
    _virsh_complete "$@"
}

# For shells with `virsh uprof`. Reads the words like the function in virsh-uprof.sh.
_virsh_uprof()
{
    local words raw mode i last uri=${VIRSH_DEFAULT_CONNECT_URI:-${LIBVIRT_DEFAULT_URI-}}
    _virt_uprof_split "${COMP_LINE:0:COMP_POINT}"
    last=$((${#words[@]} - 1))
    for ((i = 1; i < last; i++)); do
        case ${words[i]} in
        -c | --connect) i=$((i + 1)) uri=${words[i]} ;;
        --connect=*) uri=${words[i]#--connect=} ;;
        -c?*) uri=${words[i]#-c} ;;
        -q | --quiet) ;;
        uprof)
            LIBVIRT_DEFAULT_URI=$uri _virt_uprof_offer $((i + 1)) "$2"
            return
            ;;
        *)
            _virsh_uprof_virsh "$@"
            return
            ;;
        esac
    done
    if [[ $i -gt $last ]]; then
        _virt_uprof_offer 1 "$2" # The word is the URI of a connection.
        return
    fi
    COMPREPLY=()
    _virsh_uprof_virsh "$@"
    [[ -z $2 || uprof != "$2"* ]] || COMPREPLY+=(uprof)
}

complete -F _virt_uprof virt-uprof
