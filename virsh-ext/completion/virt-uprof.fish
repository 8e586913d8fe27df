# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion of virt-uprof for fish. The candidates come from the program:
# virt-uprof --complete WORD... prints one per line. fish quotes them, and the script never
# expands a word a second time.

function __virt_uprof_complete
    set -l before (commandline -opc)
    set -l raw (commandline -ct)
    # Remove the quotes from the word. The last quote can still be open.
    set -l word (string unescape -- $raw; or string unescape -- $raw\"; or string unescape -- $raw\')
    test (count $word) -eq 1; or set word ''
    set -l found (command virt-uprof --complete $before[2..-1] $word 2>/dev/null </dev/null)
    set -l head (string match -r -g '^/(?:files|folders) (.*)$' -- $found[1])
    if test $status -ne 0
        test (count $found) -eq 0; or printf '%s\n' $found
        return
    end
    set -l tail (string sub -s (math (string length -- $head) + 1) -- $word)
    if string match -q '/files*' -- $found[1]
        set found (__fish_complete_path $tail)
    else
        set found (__fish_complete_directories $tail)
    end
    test (count $found) -eq 0; or printf '%s\n' $head$found
end

complete -c virt-uprof -f -a '(__virt_uprof_complete)'
