#compdef virt-uprof
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion of virt-uprof for zsh, as _virt-uprof in a folder of $fpath. What there is
# to offer only the program knows: virt-uprof --complete WORD... says it, a line each.
# compadd quotes what it inserts; no word is ever expanded again.

local -a before found
local word i=2 uri=${LIBVIRT_DEFAULT_URI-}

# In shells that have `virsh uprof` (virsh-uprof.sh), which reads its words as this does;
# what else virsh can do others complete.
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
