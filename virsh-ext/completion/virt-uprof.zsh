#compdef virt-uprof
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion of virt-uprof for zsh, as _virt-uprof in a folder of $fpath. What there is
# to offer only the program knows: virt-uprof --complete WORD... says it, a line each.
# compadd quotes what it inserts; no word is ever expanded again.

local -a before found
local word
before=("${(@Q)words[2,CURRENT-1]}")
word=${(Q)PREFIX}
found=("${(@f)$(command virt-uprof --complete "${before[@]}" "$word" 2>/dev/null </dev/null)}")
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
