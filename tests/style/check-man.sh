#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# check-man.sh - the manual page and --help have the same options, commands and exit codes
# usage: check-man.sh PROGRAM MAN_PAGE
set -u

program=$1
page=$2
failed=0

complain()
{
    echo "$page: $*"
    failed=1
}

help=$("$program" --help) || complain "--help fails"
commands=$(printf '%s\n' "$help" | sed -n '/^Commands:/,/^$/p' |
    sed -nE 's/^  ([a-z]+) .*/\1/p' | sort)
# Each command shows its own options.
options=$(for command in $commands; do "$program" help "$command" | tail -n +3; done |
    grep -oE '\-\-[a-z][a-z-]*' | grep -v '^--version$' | sort -u)
[ "$(printf '%s\n' "$options" | wc -l)" -ge 20 ] || complain "--help lists fewer than 20 options"
for option in $options; do
    grep -qE "Fl Fl ${option#--}( |\$)" "$page" || complain "$option is in --help only"
done
# Options of the page must be in --help, too. Only the page has the alternative spellings.
for option in $(grep -oE 'Fl Fl [a-z-]+' "$page" | sed 's/Fl Fl //' | sort -u); do
    case $option in frequency | version) continue ;; esac
    printf '%s\n' "$options" | grep -qx -- "--$option" || complain "--$option is in the page only"
done

# Both must have the same commands.
in_page=$(sed -n '/^\.Ss Commands/,/^\.Ss Options/p' "$page" | grep '^\.It Cm ' |
    grep -oE 'Cm [a-z]+' | sed 's/Cm //' | sort)
[ "$(printf '%s\n' "$commands" | wc -l)" -ge 5 ] || complain "--help lists fewer than 5 commands"
[ "$commands" = "$in_page" ] || {
    complain "the commands differ from those of --help:"
    diff <(printf '%s\n' "$commands") <(printf '%s\n' "$in_page")
}

from_help=$(printf '%s\n' "$help" | sed -n '/^Exit codes:/,$p' | tail -n +2 |
    sed -E 's/^ +([0-9]+) +/\1 /')
from_page=$(sed -n '/^\.Sh EXIT STATUS/,/^\.El/p' "$page" |
    awk '/^\.It / { code = $2; next } code != "" { print code, $0; code = "" }' | grep -v '^ ')
[ "$from_help" = "$from_page" ] || {
    complain "EXIT STATUS differs from --help:"
    diff <(printf '%s\n' "$from_help") <(printf '%s\n' "$from_page")
}

if command -v mandoc >/dev/null; then
    mandoc -Tlint -Wwarning "$page" || complain "mandoc reports faults"
else
    echo 'SKIP: mandoc is not installed'
    [ "$failed" = 0 ] && exit 77
fi
exit "$failed"
