#compdef virt-uprof
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion of virt-uprof for zsh. Install this file as _virt-uprof in a folder of $fpath. The
# candidates come from the program: virt-uprof --complete WORD... prints one per line.
# compadd quotes them, and the script never expands a word a second time.

local -a before found
local word i=2 uri=${LIBVIRT_DEFAULT_URI-}

# For shells with `virsh uprof`. Reads the words like the function in virsh-uprof.sh, and leaves
# other commands of virsh to other completions.
if [[ $service == virsh ]]; then
    uri=${VIRSH_DEFAULT_CONNECT_URI:-$uri}
    while ((i < CURRENT)) && [[ ${(Q)words[i]} != uprof ]]; do
        case ${(Q)words[i]} in
        -c | --connect) ((i++)); uri=${(Q)words[i]} ;;
        --connect=*) uri=${${(Q)words[i]}#--connect=} ;;
        -c?*) uri=${${(Q)words[i]}#-c} ;;
        -q | --quiet) ;;
        *) i=$CURRENT ;;
        esac
        ((i++))
    done
    if ((i >= CURRENT)); then
        ((i > CURRENT)) || compadd uprof
        (( $+functions[_libvirt] )) && _libvirt
        return
    fi
    ((i++))
fi
before=("${(@Q)words[i,CURRENT-1]}")
word=${(Q)PREFIX}
found=("${(@f)$(LIBVIRT_DEFAULT_URI=$uri command virt-uprof --complete "${before[@]}" "$word" 2>/dev/null </dev/null)}")
case $found[1] in
'') return 1 ;;
/files*)
    compset -P "${(b)${found[1]#/files }}"
    _files
    ;;
/folders*)
    compset -P "${(b)${found[1]#/folders }}"
    _files -/
    ;;
*) compadd -a found ;;
esac
