# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # a lab's own script sets the names below
#
# lab.sh - functions for tests/xen-lab and tests/kvm-lab: they run a machine that QEMU emulates, and
# tests inside that machine
#
# Scripts source this file after setup.sh, cache.sh, lab-image.sh and the lab's image.sh. They
# set:
#     lab_name        the machine in messages, such as "Xen"
#     lab_seconds     how long a machine may run
#     lab_not_shown   a pattern of lines of the console that are not shown
# and define:
#     machine_of FOLDER SECONDS SERIAL  sets $machine, the command that runs the machine with
#                                       FOLDER shared and its console at SERIAL
#     prepare_folder BUILD FOLDER       copies the files of BUILD that the tests need to FOLDER

# Both labs switch the same features off.
# SMAP, SMEP, MONITOR: if the emulated processor has these, dom0 or a guest of Xen dies.
# AVX: QEMU 7.2 is the first that emulates AVX. With AVX, and guests that use SVM, about one of
# thirty tests saw a program crash in dom0 or in a guest.
lab_cpu=EPYC,-smap,-smep,-monitor,-avx,-avx2,-xsave,-xsaveopt,-xsavec,-xgetbv1,+svm,+npt

# share_arguments FOLDER: sets $share, the arguments of QEMU for the disk and the shared folder
share_arguments()
{
    share=(
        -drive "file=$(image_folder)/lab.img,if=virtio,format=raw,snapshot=on"
        -fsdev "local,id=lab,path=$1,security_model=none"
        -device virtio-9p-pci,fsdev=lab,mount_tag=lab
    )
}

# A machine is ended if its console and its test say nothing for so many seconds, because an emulated
# host sometimes stands still.
lab_silence=${UPROF_LAB_SILENCE:-300}

# A machine is also ended if its kernel panics, or prints so many messages about processors that stand still, and
# nothing else is printed.
lab_stalls=4

# After that it boots again, up to so many times in all.
lab_boots=3

# count_stalls FOLDER: prints the number of such messages
count_stalls()
{
    grep -cE 'soft lockup - CPU|detected (expedited )?stalls' "$1/console.log" 2>/dev/null || true
}

# has_panicked FOLDER: the machine's own kernel has panicked; lines about its guests begin differently
has_panicked()
{
    grep -qE '^\[ *[0-9]+\.[0-9]+\] Kernel panic - not syncing' "$1/console.log" 2>/dev/null
}

# watch_output FOLDER PID: ends the machine if it has stopped. Messages of the kernel and of Xen do not count as
# output: a machine whose tests stand still may go on to print them. If the kernel has panicked or says that its
# processors stand still, this makes FOLDER/stands-still.
watch_output()
{
    local n last='' since=$SECONDS stalls=0
    while kill -0 "$2" 2>/dev/null; do
        sleep 5
        n=$(cat "$1/console.log" "$1/test.log" 2>/dev/null | grep -cvE '^(\[ |\(XEN\))' || true)
        if [ "$n" != "$last" ]; then
            last=$n
            since=$SECONDS
            stalls=$(count_stalls "$1")
        elif [ $(($(count_stalls "$1") - stalls)) -ge "$lab_stalls" ]; then
            complain "the processors of the emulated host stand still"
            : >"$1/stands-still"
            kill "$2" 2>/dev/null
            return
        elif has_panicked "$1"; then
            complain "the kernel of the emulated host has panicked"
            grep -aE 'RIP:|Kernel panic' "$1/console.log" >&2 || true
            : >"$1/stands-still"
            kill "$2" 2>/dev/null
            return
        elif [ $((SECONDS - since)) -gt "$lab_silence" ]; then
            complain "the lab has said nothing for $((SECONDS - since)) s"
            kill "$2" 2>/dev/null
            return
        fi
    done
}

# end_machine PID: ends the machine if it still runs
end_machine()
{
    kill "$1" 2>/dev/null && wait "$1"
}

# run_machine FOLDER [PREFIX]: boots, shows the console, each line behind PREFIX, and returns the
# exit status of FOLDER/go
run_machine()
{
    local console=$1/console.log status
    say "booting $lab_name; waiting for its end (at most $lab_seconds s)" >&2
    : >"$console"
    machine_of "$1" "$lab_seconds" "file:$console"
    "${machine[@]}" </dev/null 2>"$1/qemu.log" &
    local pid=$!
    at_exit end_machine "$pid"
    watch_output "$1" "$pid" >&2 &
    local watcher=$!
    tail -n +1 -s 0.5 -f --pid="$pid" "$console" |
        sed -u "s/\r//; /$lab_not_shown/d; s/^/${2:-}/"
    wait "$pid" || cat "$1/qemu.log" >&2
    kill "$watcher" 2>/dev/null
    status=$(tr -d '\r' <"$console" | sed -n 's/^LAB-ENDS \([0-9]*\)$/\1/p' | tail -n 1)
    if [ -z "$status" ]; then
        complain "the lab did not come to its end"
        return 1
    fi
    return "$status"
}

# skip REASON: skips all tests, because this machine cannot run the lab
skip()
{
    printf '1..0 # SKIP %s\n' "$*"
    exit 0
}

# need_lab: makes the image, unless it exists
need_lab()
{
    local codename
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    [ "$codename" = "$debian_suite" ] || skip "the lab is of Debian $debian_suite, this is '$codename'"
    [ "$(uname -m)" = x86_64 ] || skip "the lab is an x86_64 machine, this is $(uname -m)"
    if [ ! -e "$(image_folder)/lab.img" ] && [ "$(id -u)" != 0 ]; then
        skip "only root can make the lab's image"
    fi
    install_packages "${lab_packages_here[@]}" >&2 && build_image >&2
}

# install_build BUILD FOLDER: installs BUILD in FOLDER/root, and packs FOLDER/root, because many
# single files in a shared folder would take long to open
install_build()
{
    DESTDIR=$2/root meson install -C "$1" --no-rebuild --strip --quiet && pack_files "$2"
}

# pack_files FOLDER: replaces FOLDER/root by FOLDER/root.tar
pack_files()
{
    tar -C "$1/root" -cf "$1/root.tar" . && rm -rf "$1/root"
}

# run_tests BUILD GO [TEST...]: runs the script GO in the lab; prints TAP. Tests of $UPROF_LAB_TESTS take the
# place of the named ones.
run_tests()
{
    local folder boot build=$1 go=$2 status=0
    shift 2
    [ -z "${UPROF_LAB_TESTS:-}" ] || set -- "$UPROF_LAB_TESTS"
    folder=$(mktemp -d)
    at_exit rm -rf "$folder"
    prepare_folder "$build" "$folder" >&2
    cp "$here/lib/lab-tests.sh" "$folder/"
    cp "$go" "$folder/go"
    printf '%s\n' "$*" >"$folder/which"
    # The emulator may fail before the tests do: on some machines in every other boot. In one panic, the host's
    # kernel faulted in __svm_vcpu_run(), right behind VMRUN.
    for ((boot = 1; boot <= lab_boots; boot++)); do
        [ "$boot" = 1 ] || complain "boot $boot of at most $lab_boots"
        rm -f "$folder"/{stands-still,results.tap,test.log}
        status=0
        # In TAP, lines with this prefix are comments.
        run_machine "$folder" '# ' || status=$?
        [ -e "$folder/stands-still" ] || break
    done
    if ! grep -q '^1\.\.' "$folder/results.tap" 2>/dev/null; then
        [ ! -e "$folder/test.log" ] || sed 's/^/# /' "$folder/test.log"
        printf 'Bail out! the lab has not come to the end of its tests\n'
        return 1
    fi
    cat "$folder/results.tap"
    return "$status"
}

# build_here: builds the project in build-all/lab
build_here()
{
    local build=$root/build-all/lab
    install_packages "${build_packages[@]}" "${xen_packages[@]}" &&
        { [ -e "$build/build.ninja" ] || meson setup -Dxen=enabled "$build" "$root"; } &&
        ninja -C "$build"
} >&2

# open_shell [BUILD]: boots the lab, with the files of BUILD if any, and gives a shell
open_shell()
{
    local folder
    folder=$(mktemp -d)
    at_exit rm -rf "$folder"
    [ -z "${1:-}" ] || prepare_folder "$(realpath "$1")" "$folder"
    machine_of "$folder" 1000000 mon:stdio
    "${machine[@]}"
}
