# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# guests.sh - Linux guests of tests: Debian's kernel, and an initial file system of ours
#
# To be sourced behind setup.sh, cache.sh and kernels.sh. $linux_initrd is the path of
# what the build made (tests/linux/meson.build).

# From the firmware's first word to READY, on a slow machine that has other things to do.
linux_seconds=${linux_seconds:-400}
linux_mib=${linux_mib:-256}
linux_initrd=${linux_initrd:-}
# All that the emulator can do, five levels of page tables among it, but for one: as QEMU
# 7.2 emulates CMPXCHG16B, every other boot of Linux 6.12 dies of flags that it spoils.
linux_cpu=${linux_cpu:-max,-cx16}

# For every kernel. What a boot need not do is not done; nothing here changes the kernel's
# code or where it lies. Whether the timer ticks is not asked: on a busy machine it does not yet.
linux_words='no_timer_check console=ttyS0 quiet loglevel=3 random.trust_cpu=on'

# start_linux NAME RELEASE TCG|KVM WORDS VCPUS [CPU]: starts a guest and does not wait.
# WORDS are the kernel's (pti=on, no5lvl), and behind ' -- ' what its process 1 does
# (tests/linux/init.c): 'pti=on no5lvl -- kallsyms user'. CPU as for cpu_xml;
# without it, $linux_cpu.
start_linux()
{
    local asked=$4
    [[ $asked == *' --'* ]] || asked+=' --'
    create_guest "$1" "$3" "$(linux_kernel "$2")" "$linux_words $asked listen" "$5" \
        "${6:-$linux_cpu}" "$linux_mib" "$linux_initrd"
}

# last_words NAME: what it says of its end, or what else it has said last
last_words()
{
    grep -aE 'FAILED|BUG:|Oops:|RIP:|panic' "$(guest_serial "$1")" ||
        tail -n 5 "$(guest_serial "$1")"
}

# await_linux NAME: returns when the guest says READY
await_linux()
{
    guest_word='^READY|^FAILED|Kernel panic' await_guest "$1" "$linux_seconds" || return 1
    if [ -n "$(console_lines "$1" FAILED)" ] || ! has_console_line "$1" READY; then
        complain "guest '$1' is not well: $(last_words "$1")"
        return 1
    fi
}

# boot_linux NAME RELEASE TCG|KVM WORDS VCPUS [CPU]
boot_linux()
{
    start_linux "$@" && await_linux "$1"
}

# tell_linux NAME WORDS: has process 1 do that, as if it had stood on the command line, and
# prints the lines that it says meanwhile
tell_linux()
{
    local serial before number
    serial=$(guest_serial "$1")
    before=$(wc -l <"$serial")
    number=$(($(grep -ac '^DONE ' "$serial" || true) + 1))
    printf '%s\n' "$2" >"${guest_folders[$1]}/words.in"
    if ! guest_word="^DONE $number\b|^FAILED|Kernel panic" await_guest "$1" "$linux_seconds" ||
        ! has_console_line "$1" "DONE $number"; then
        complain "guest '$1' does not do '$2': $(last_words "$1")"
        return 1
    fi
    tr -d '\r' <"$serial" | tail -n "+$((before + 1))" | sed '/^DONE /d'
}

# console_lines NAME WORD: what stands behind WORD in the lines that begin with it
console_lines()
{
    tr -d '\r' <"$(guest_serial "$1")" | sed -n "s/^$2 //p"
}

# has_console_line NAME LINE
has_console_line()
{
    grep -qaxE -- "$2"$'\r?' "$(guest_serial "$1")"
}

# console_value NAME WORD: the same of the only such line; false if it is not there once
console_value()
{
    local lines
    lines=$(console_lines "$1" "$2")
    if [ -z "$lines" ] || [[ $lines == *$'\n'* ]]; then
        complain "guest '$1' does not say '$2' once: '$lines'"
        return 1
    fi
    printf '%s\n' "$lines"
}
