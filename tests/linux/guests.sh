# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# guests.sh - Linux guests of tests: Debian's kernel with the tests' own initial file system
#
# Scripts source this file after setup.sh, cache.sh and kernels.sh. $linux_initrd is the path of
# the initial file system, which tests/linux/meson.build makes.

# The time that a guest may take from its start to READY, on a slow and busy machine.
linux_seconds=${linux_seconds:-400}
linux_mib=${linux_mib:-256}
linux_initrd=${linux_initrd:-}
# The processor has all features that the emulator knows, such as five levels of page tables, except
# CMPXCHG16B: as QEMU 7.2 emulates it, it spoils flags, and every other boot of Linux 6.12 crashes.
linux_cpu=${linux_cpu:-max,-cx16}

# The command line of every kernel. These words make the boot short, and change neither the kernel's
# code nor its address. The kernel does not check that the timer ticks, because on a busy machine
# the timer may not tick in time.
linux_words='no_timer_check console=ttyS0 quiet loglevel=3 random.trust_cpu=on'

# start_linux NAME RELEASE TCG|KVM WORDS VCPUS [CPU]: starts a guest and does not wait for it. WORDS
# are the kernel's (pti=on, no5lvl), and behind ' -- ' the words for process 1 (tests/linux/init.c),
# such as 'pti=on no5lvl -- kallsyms user'. CPU is as for cpu_xml (default: $linux_cpu).
start_linux()
{
    local asked=$4
    [[ $asked == *' --'* ]] || asked+=' --'
    create_guest "$1" "$3" "$(linux_kernel "$2")" "$linux_words $asked listen" "$5" \
        "${6:-$linux_cpu}" "$linux_mib" "$linux_initrd"
}

# last_words NAME: prints why the guest has ended, or else the last lines of its console
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

# tell_linux NAME WORDS: gives process 1 words, as on the command line, and prints the lines that it
# writes meanwhile
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

# ask_linux NAME WORD: prints the lines that process 1 writes for WORD, which come by its NVMe disk
ask_linux()
{
    local len
    len=$(tell_linux "$1" "disk:$2" | sed -n 's/^REPORT //p') && [ -n "$len" ] || return 1
    # REPORT_AT of tests/linux/init.c
    dd if="${guest_folders[$1]}/nvme" bs=1M skip=4 count="$len" iflag=count_bytes status=none
}

# console_lines NAME WORD: prints the rest of each line that begins with WORD
console_lines()
{
    tr -d '\r' <"$(guest_serial "$1")" | sed -n "s/^$2 //p"
}

# has_console_line NAME LINE
has_console_line()
{
    grep -qaxE -- "$2"$'\r?' "$(guest_serial "$1")"
}

# console_value NAME WORD: prints the rest of the only line that begins with WORD; false if there is
# not exactly one
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
