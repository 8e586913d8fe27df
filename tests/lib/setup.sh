# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# shellcheck disable=SC2034 # most names are for those who source this
#
# setup.sh - prepares packages, a libvirt daemon, /dev/kvm and guests for the demo, tests and
# benchmarks
#
# Bash scripts source this file. When the script ends, for any reason, all that it has started is
# ended, and all that it has changed is restored. Functions report errors on stderr and return 1;
# none of them exits.

# Each message begins with this word.
script_name=${script_name:-${0##*/}}
# The connection on which guests start.
libvirt_uri=${libvirt_uri:-qemu:///system}
# Names of guests begin with this word. stop_libvirtd destroys such guests.
guest_prefix=${guest_prefix:-uprof-}
# The time that a daemon or a guest may take to answer. Firmware alone takes seconds if KVM is
# itself emulated.
daemon_seconds=${daemon_seconds:-60}
guest_seconds=${guest_seconds:-120}

# tests/demo needs these packages to build virt-uprof, and the next ones to run a guest.
build_packages=(
    meson ninja-build pkg-config gcc g++ libc6-dev binutils
    libvirt-dev libglib2.0-dev libjson-glib-dev libxml2-dev libpopt-dev libelf-dev libdw-dev zlib1g-dev liblzma-dev
    libiberty-dev libseccomp-dev libzydis-dev libdebuginfod-dev libcurl4-openssl-dev
)
# The packages for aarch64 build its guests, run them, and show their stacks.
live_packages=(libvirt-daemon-system libvirt-clients qemu-system-x86 util-linux mount procps python3 gdb debuginfod
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm gdb-multiarch)
# The first package builds the module for Xen. The others make the images of both labs.
xen_packages=(libxen-dev libc6-dev)
lab_packages_here=(mmdebstrap e2fsprogs gzip util-linux qemu-system-x86)
# tests/all also needs the other compiler with its sanitizers, tools for style checks, locales, a
# browser for pictures, readers of the formats that virt-uprof writes, shells with completion,
# tools that build and check packages, and libguestfs, which needs some hundred packages.
check_packages=(
    clang lld libclang-rt-14-dev clang-format git mandoc libxml2-utils locales
    chromium chromium-driver fonts-dejavu-core
    protobuf-compiler golang-github-google-pprof-dev golang-go libdevel-nytprof-perl openssl
    bash-completion zsh fish systemd curl
    debhelper dpkg-dev lintian
    libguestfs-dev
    ccache
)
# npm fetches speedscope. Packages of Node.js that are not from Debian contain npm, and conflict with
# Debian's package npm.
command -v npm >/dev/null || check_packages+=(npm)
# Tests are skipped without these tools.
check_tools=(
    aarch64-linux-gnu-gcc qemu-system-aarch64 gdb-multiarch
    clang ld.lld clang-format git mandoc xmllint localedef chromium chromedriver protoc npm perl zsh fish systemd-analyze curl dh lintian ccache
    /usr/include/guestfs.h
    /usr/share/bash-completion/bash_completion
    /usr/share/gocode/src/github.com/google/pprof/proto/profile.proto
    /usr/share/perl5/Devel/NYTProf/flamegraph.pl
)

say()
{
    printf '%s: %s\n' "$script_name" "$*"
}

complain()
{
    printf '%s: %s\n' "$script_name" "$*" >&2
}

# ---- The end of the script ----

exit_commands=()

# at_exit COMMAND [ARGUMENT...]: runs COMMAND when the script ends; the last command runs first
at_exit()
{
    exit_commands+=("$(printf '%q ' "$@")")
}

# run_exit_commands: runs the commands of at_exit now instead of at the end
run_exit_commands()
{
    local i
    end_group
    for ((i = ${#exit_commands[@]} - 1; i >= 0; i--)); do
        eval "${exit_commands[i]}" || true
    done
    exit_commands=()
}

end_script()
{
    local status=$?
    # A second Ctrl-C must not leave a guest or a daemon behind.
    trap '' INT TERM HUP
    trap - EXIT
    set +e
    run_exit_commands
    exit "$status"
}

trap end_script EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# after_death COMMAND [ARGUMENT...]: runs COMMAND after the script has ended, also if it was killed. Meson kills
# a test after its timeout, and gives it half a second for its commands of at_exit. A guest that is left
# behind would take a processor from all tests that follow.
after_death()
{
    # No file of the script may stay open, such as the end of a pipe.
    # shellcheck disable=SC2016 # the variables belong to the inner shell
    (setsid bash -c '
        for file in /proc/self/fd/*; do
            ((${file##*/} <= 2)) || eval "exec ${file##*/}>&-"
        done
        tail --pid="$1" -f /dev/null
        shift
        "$@"' - "$$" "$@" >/dev/null 2>&1 </dev/null &)
}

# wait_until SECONDS COMMAND [ARGUMENT...]: runs COMMAND ten times a second until it succeeds; false
# if it has not succeeded within SECONDS
wait_until()
{
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}

# The process group of run_group's command, while there is one.
group=

# run_group COMMAND [ARGUMENT...]: runs COMMAND. A signal ends the script at once, with COMMAND and
# its children. Bash would otherwise handle the signal only after COMMAND has ended.
run_group()
{
    local status=0
    set -m
    "$@" </dev/null &
    group=$!
    set +m
    wait "$group" || status=$?
    group=
    return "$status"
}

# end_group: ends run_group's command, if it runs
end_group()
{
    [ -n "$group" ] || return 0
    kill -TERM -- "-$group" 2>/dev/null
    wait_until 20 is_gone "$group" || kill -KILL -- "-$group" 2>/dev/null
    group=
}

# is_gone PID: the process has ended; its parent may not have waited for it yet
is_gone()
{
    local state
    state=$(awk '$1 == "State:" { print $2 }' "/proc/$1/status" 2>/dev/null) || return 0
    [ -z "$state" ] || [ "$state" = Z ]
}

# ---- Packages ----

# try_often COMMAND [ARGUMENT...]: runs COMMAND until it succeeds, at most four times. A package
# server may be in the middle of a change.
try_often()
{
    local pause
    for pause in 10 30 60; do
        "$@" && return 0
        complain "$1 has failed; again in $pause s"
        sleep "$pause"
    done
    "$@"
}

# fetch_packages PACKAGE...: installs Debian packages. No service starts if systemd does not run.
fetch_packages()
{
    DEBIAN_FRONTEND=noninteractive apt-get -q update &&
        DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"
}

# install_packages PACKAGE...: installs the missing ones of the Debian packages. If none is missing,
# asks no package server.
install_packages()
{
    local package missing=()
    if ! command -v apt-get >/dev/null; then
        complain "this system has no apt-get; install by hand what is missing of: $*"
        return 1
    fi
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0

    if [ "$(id -u)" != 0 ]; then
        complain "only root can install packages; run as root: apt-get install ${missing[*]}"
        return 1
    fi
    say "installing ${missing[*]}"
    if ! try_often fetch_packages "${missing[@]}" >&2 </dev/null; then
        complain "cannot install ${missing[*]}"
        return 1
    fi
}

# ---- Daemons ----

# quiet_virsh ARGUMENT...: runs virsh on $libvirt_uri, with messages in English
quiet_virsh()
{
    LC_ALL=C virsh -q -c "$libvirt_uri" "$@" </dev/null
}

libvirt_answers()
{
    quiet_virsh version >/dev/null 2>&1
}

# end_by_pid_file FILE NAME [SIGNAL]: ends the process whose number is in FILE and waits for its end
end_by_pid_file()
{
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 0
    # Another process may have the number by now.
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ] || return 0
    kill -s "${3:-TERM}" "$pid" || return 0
    if ! wait_until 20 is_gone "$pid"; then
        complain "'$2' ($pid) does not end; killing it"
        kill -KILL "$pid"
    fi
    rm -f "$1"
}

# The folder of the pid files of start_libvirtd; empty if it has started nothing.
libvirtd_folder=

# start_libvirtd: makes sure that qemu:///system answers. If no daemon answers, starts one, which
# ends with the script unless systemd runs it.
start_libvirtd()
{
    local libvirt_uri=qemu:///system
    libvirt_answers && return 0

    if [ -d /run/systemd/system ]; then
        # The daemon belongs to the machine and stays.
        systemctl start libvirtd && wait_until "$daemon_seconds" libvirt_answers && return 0
        complain "libvirt does not answer on $libvirt_uri; see: systemctl status libvirtd"
        return 1
    fi
    if [ "$(id -u)" != 0 ]; then
        complain "libvirt does not answer on $libvirt_uri, and only root can start it"
        return 1
    fi

    libvirtd_folder=$(mktemp -d) || return 1
    at_exit stop_libvirtd
    mkdir -p /run/libvirt/qemu /run/lock /var/log/libvirt
    keep_states_in_memory
    # Without virtlogd, libvirtd starts no guest.
    if ! virt-admin -q -c virtlogd:///system srv-list >/dev/null 2>&1; then
        virtlogd -d -p "$libvirtd_folder/virtlogd.pid" || return 1
    fi
    if ! libvirtd -d -p "$libvirtd_folder/libvirtd.pid" ||
        ! wait_until "$daemon_seconds" libvirt_answers; then
        complain "libvirtd does not answer on $libvirt_uri within $daemon_seconds s"
        return 1
    fi
}

# keep_states_in_memory: mounts a tmpfs for the states of guests. libvirtd writes and syncs a guest's
# state for each query of its monitor. If /run is on a disk, as on machines without systemd, these
# writes would take most of the time of each hold.
keep_states_in_memory()
{
    [ "$(stat -f -c %T /run/libvirt/qemu)" != tmpfs ] || return 0
    if mount -t tmpfs -o mode=755 tmpfs /run/libvirt/qemu 2>/dev/null; then
        at_exit umount -l /run/libvirt/qemu
    else
        say "cannot mount a tmpfs on /run/libvirt/qemu: holds will be longer"
    fi
}

# stop_libvirtd: ends the daemons that start_libvirtd has started, if any. Destroys the tests' guests
# before, because guests survive their daemon.
stop_libvirtd()
{
    [ -n "$libvirtd_folder" ] || return 0
    libvirt_uri=qemu:///system destroy_guests "$guest_prefix"
    end_by_pid_file "$libvirtd_folder/libvirtd.pid" libvirtd
    end_by_pid_file "$libvirtd_folder/virtlogd.pid" virtlogd
    rm -rf "$libvirtd_folder"
    libvirtd_folder=
}

# free_tcp_port: prints a TCP port that nobody listens on
free_tcp_port()
{
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# test_libvirtd_uri DIR: the URI of start_test_libvirtd's daemon
test_libvirtd_uri()
{
    printf 'qemu+unix:///system?socket=%s/run/libvirt/libvirt-sock\n' "$1"
}

# start_test_libvirtd DIR [LINE...]: starts a second daemon beside the machine's, for tests that
# restart it, or that need LINEs in its libvirtd.conf, such as
#     'listen_tcp = 1' 'auth_tcp = "none"' "tcp_port = \"$(free_tcp_port)\""
#     'auth_unix_rw = "none"' 'unix_sock_group = "users"' 'unix_sock_rw_perms = "0770"'
#
# DIR must be missing, or have no file but the one below. It must not be below /run or
# /var/lib/libvirt. Its path must be short, because DIR holds sockets. The user libvirt-qemu must be
# able to search DIR, so it is not below /root. Two privileged daemons would use the same folders. In
# the mount namespace of this daemon, DIR is therefore mounted over these folders, so that the daemon
# writes everything to DIR.
#
# Migration between two daemons needs two names of hosts. If the file DIR/hostname exists, the daemon
# has this name.
#
# The daemon and its guests end with the script.
start_test_libvirtd()
{
    local dir=$1 line
    shift
    if [ "$(id -u)" != 0 ]; then
        complain "only root can start a libvirtd for qemu:///system"
        return 1
    fi
    # A path of a socket has at most 107 bytes.
    if [ $((${#dir} + 40)) -gt 107 ]; then
        complain "'$dir' is too long a path for sockets"
        return 1
    fi

    mkdir -p "$dir"/{run/libvirt,run/lock,etc,lib,log,cache/qemu}
    chmod 755 "$dir" "$dir"/{run,run/libvirt,etc,lib,log,cache,cache/qemu}
    # Finding out what QEMU can do takes seconds, and the machine's daemon has already done this.
    cp -a /var/cache/libvirt/qemu/capabilities "$dir/cache/qemu/" 2>/dev/null
    # The first setting makes virtlogd unnecessary. The second lets a guest migrate to another daemon
    # of this machine, which uses the same files.
    printf '%s\n' 'stdio_handler = "file"' 'remember_owner = 0' >"$dir/etc/qemu.conf"
    echo 'listen_tls = 0' >"$dir/etc/libvirtd.conf"
    for line in "$@"; do
        printf '%s\n' "$line" >>"$dir/etc/libvirtd.conf"
    done

    at_exit stop_test_libvirtd "$dir"
    after_death pkill -KILL -F "$dir/run/libvirtd.pid" libvirtd
    run_test_libvirtd "$dir"
}

# run_test_libvirtd DIR: starts the daemon again after end_test_libvirtd
run_test_libvirtd()
{
    local dir=$1 listen=() libvirt_uri
    libvirt_uri=$(test_libvirtd_uri "$dir")
    if grep -q '^listen_tcp *= *1' "$dir/etc/libvirtd.conf"; then
        listen=(--listen)
    fi
    # shellcheck disable=SC2016 # $0 and $@ belong to the inner shell
    if ! unshare -m -u --propagation private bash -ec '
        [ ! -e "$0/hostname" ] || hostname -F "$0/hostname"
        for pair in etc:/etc/libvirt lib:/var/lib/libvirt log:/var/log/libvirt \
            cache:/var/cache/libvirt run:/run; do
            mkdir -p "${pair#*:}"
            mount --bind "$0/${pair%%:*}" "${pair#*:}"
        done
        exec libvirtd -d -p /run/libvirtd.pid -f /etc/libvirt/libvirtd.conf "$@"
    ' "$dir" "${listen[@]}" </dev/null || ! wait_until "$daemon_seconds" libvirt_answers; then
        complain "the libvirtd of '$dir' does not answer within $daemon_seconds s"
        return 1
    fi
}

# end_test_libvirtd DIR [SIGNAL]: ends only the daemon; its guests run on
end_test_libvirtd()
{
    end_by_pid_file "$1/run/libvirtd.pid" libvirtd "${2:-TERM}"
}

# stop_test_libvirtd DIR: ends all guests and the daemon, and removes DIR
stop_test_libvirtd()
{
    [ -d "$1/run" ] || return 0
    # Only a running daemon can destroy the guests.
    [ -e "$1/run/libvirtd.pid" ] || run_test_libvirtd "$1"
    libvirt_uri=$(test_libvirtd_uri "$1") destroy_guests ''
    end_test_libvirtd "$1"
    rm -rf "$1"
}

# ---- KVM ----

# kvm_answers: /dev/kvm exists and has version 12 of the API
kvm_answers()
{
    python3 - 2>/dev/null <<'PYTHON'
import fcntl, os, sys
KVM_GET_API_VERSION = 0xAE00
kvm = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
sys.exit(fcntl.ioctl(kvm, KVM_GET_API_VERSION) != 12)
PYTHON
}

# prepare_kvm: lets libvirt's QEMU open /dev/kvm until the script ends, if only root may; false if
# there is no KVM
prepare_kvm()
{
    kvm_answers || return 1
    [ "$(stat -c '%a %U' /dev/kvm)" = '600 root' ] || return 0
    at_exit chown "$(stat -c '%u:%g' /dev/kvm)" /dev/kvm
    at_exit chmod 600 /dev/kvm
    chgrp kvm /dev/kvm && chmod 660 /dev/kvm
}

# The answer of kvm_usable: yes, no, or empty before the first call. If KVM is known to run guests,
# as in tests/kvm-lab, the environment says so, and kvm_usable boots no guest to find out.
kvm_found=${UPROF_KVM_USABLE:-}

# kvm_usable KERNEL: a guest boots with KVM. Boots one the first time, and says why if it fails. A
# device that answers does not prove that guests boot.
kvm_usable()
{
    local name="${guest_prefix}kvm-$$" why
    why=$(mktemp) || return 1
    if [ -z "$kvm_found" ]; then
        kvm_found=no
        if ! prepare_kvm; then
            say "no KVM: /dev/kvm is missing or does not answer"
        elif define_guest "$name" KVM "$1" '' 1 2>"$why"; then
            kvm_found=yes
        else
            say "KVM answers, but no guest boots with it: $(cat "$why")"
        fi
        destroy_guest "$name"
    fi
    rm -f "$why"
    [ "$kvm_found" = yes ]
}

# ---- Guests ----

# The UUID of each guest, its folder, and the URI on which it started, by the guest's name.
declare -gA guest_uuids guest_folders guest_uris

# xml_escape TEXT: prints TEXT for an element or an attribute
xml_escape()
{
    # Since bash 5.2 an unquoted & means the matched text.
    local text=${1//&/"&amp;"}
    text=${text//</"&lt;"}
    text=${text//>/"&gt;"}
    text=${text//\"/"&quot;"}
    printf '%s' "${text//\'/"&apos;"}"
}

# cpu_xml CPU: prints the <cpu> element for a model with features: 'max', 'qemu64,+la57,-avx'
cpu_xml()
{
    local words word
    IFS=, read -ra words <<<"$1"
    if [ "${words[0]}" = max ]; then
        echo "<cpu mode='maximum' check='none'>"
    else
        echo "<cpu mode='custom' match='exact' check='none'>"
        echo "<model fallback='forbid'>$(xml_escape "${words[0]}")</model>"
    fi
    for word in "${words[@]:1}"; do
        case $word in
        -*) echo "<feature policy='disable' name='$(xml_escape "${word#-}")'/>" ;;
        *) echo "<feature policy='require' name='$(xml_escape "${word#+}")'/>" ;;
        esac
    done
    echo "</cpu>"
}

# A file that new guests get as their disk. Each guest gets a copy of its own. Empty: none.
guest_disk=${guest_disk:-}
# The same for an NVMe disk, for which Debian's cloud kernel needs no module. libvirt has no words for it.
guest_nvme=${guest_nvme:-}
guest_nvme_options=${guest_nvme_options:-} # of QEMU's -drive, behind a comma

# yes: new guests have a device by which they can tell that they have crashed; their memory stays then.
guest_panics=${guest_panics:-}

# The architecture of new guests: x86_64 or aarch64, which needs a CPU.
guest_arch=x86_64

# guest_xml NAME UUID TYPE FOLDER CMDLINE VCPUS CPU MEM_MIB [INITRD]: prints the smallest domain that
# libvirt allows. VCPUS and MEM_MIB are numbers, or N/MAX if more can be plugged. A domain with an
# INITRD has a second serial line, on which it gets commands.
guest_xml()
{
    local mib=${8%/*} slots='' numa='' board=pc features='<acpi/><apic/>' lines=''
    if [ "$guest_arch" = aarch64 ]; then
        # The machine itself has one serial line.
        board=virt
        features=''
        lines="<target type='pci-serial'/>"
    fi
    # libvirt plugs memory only into a domain with a NUMA node
    if [[ $8 = */* ]]; then
        slots="<maxMemory slots='4' unit='MiB'>${8#*/}</maxMemory>"
        numa="<cpu><numa><cell id='0' cpus='0-$((${6#*/} - 1))' memory='$mib' unit='MiB'/></numa></cpu>"
    fi
    cat <<XML
<domain type='$3' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>$(xml_escape "$1")</name>
  <uuid>$2</uuid>
  <title>virt-uprof test guest</title>
  $slots
  <memory unit='MiB'>$mib</memory>
  <vcpu current='${6%/*}'>${6#*/}</vcpu>
  <os>
    <type arch='$guest_arch' machine='$board'>hvm</type>
    <kernel>$(xml_escape "$4/kernel")</kernel>
    ${9:+<initrd>$(xml_escape "$9")</initrd>}
    <cmdline>$(xml_escape "$5")</cmdline>
  </os>
  ${features:+<features>$features</features>}
  ${guest_panics:+<on_crash>preserve</on_crash>}
  ${7:+$(cpu_xml "$7")}$numa
  <devices>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    ${guest_panics:+<panic model='isa'/>}
    <serial type='file'><source path='$(xml_escape "$4/serial")' append='off'/></serial>
    ${9:+<serial type='pipe'><source path='$(xml_escape "$4/words")'/>$lines</serial>}
    ${guest_disk:+<disk type='file'><driver name='qemu' type='raw' cache='unsafe'/><source file='$(xml_escape "$4/disk")'/><target dev='vda' bus='virtio'/></disk>}
  </devices>
  ${guest_nvme:+<qemu:commandline>
    <qemu:arg value='-drive'/><qemu:arg value='$(xml_escape "file=$4/nvme,if=none,id=nvme,format=raw,cache=unsafe$guest_nvme_options")'/>
    <qemu:arg value='-device'/><qemu:arg value='nvme,drive=nvme,serial=1,addr=0x1e'/>
  </qemu:commandline>}
</domain>
XML
}

# A pattern of the line that a guest writes to its serial line when it runs.
guest_word='virt-uprof guest:'

# guest_spoke_or_ended NAME: the guest has said that it runs, or has ended
guest_spoke_or_ended()
{
    guest_spoke "$1" || ! guest_runs "$1"
}

guest_spoke()
{
    grep -qaE "$guest_word" "${guest_folders[$1]}/serial" 2>/dev/null
}

guest_runs()
{
    libvirt_uri=${guest_uris[$1]} quiet_virsh domid "${guest_uuids[$1]}" >/dev/null 2>&1
}

# guest_serial NAME: prints the path of the file with the output of the guest's serial line
guest_serial()
{
    printf '%s\n' "${guest_folders[$1]}/serial"
}

# The nice value of the vCPUs of new guests. Live tests set it. Their guests compute all the time, and
# would take the processors from the tests that run at the same time.
guest_nice=0

# lower_priority UUID: gives the vCPUs of a running guest the nice value $guest_nice, and its session half of
# it: a kernel may share the processors among sessions first (man 7 sched, "autogroup"), and QEMU has one
# of its own
lower_priority()
{
    local qemu task
    qemu=$(pgrep -o -f "^[^ ]*qemu-system.* -uuid $1( |$)") || return 0
    { printf '%d\n' "$((guest_nice / 2))" >"/proc/$qemu/autogroup"; } 2>/dev/null || true
    for task in "/proc/$qemu/task"/*; do
        # A guest may end at any time.
        if [[ $(cat "$task/comm" 2>/dev/null) == CPU\ * ]]; then
            renice -n "$guest_nice" -p "${task##*/}" >/dev/null 2>&1 || true
        fi
    done
}

# create_guest NAME KVM|TCG KERNEL CMDLINE VCPUS [CPU [MEM_MIB [INITRD]]]: starts a
# transient domain on $libvirt_uri. It ends with the script, or by destroy_guest.
create_guest()
{
    local name=$1 way=$2 kernel=$3 cmdline=$4 vcpus=$5 cpu=${6:-} mem_mib=${7:-128}
    local initrd=${8:-} type folder
    case $way in
    KVM) type=kvm ;;
    TCG) type=qemu ;;
    *)
        complain "create_guest: '$way' is neither KVM nor TCG"
        return 1
        ;;
    esac

    destroy_leftover "$name" || return 1
    # QEMU's user often cannot read the build folder.
    folder=$(mktemp -d /var/tmp/uprof-guest.XXXXXX) || return 1
    guest_folders[$name]=$folder
    guest_uris[$name]=$libvirt_uri
    guest_uuids[$name]=$(cat /proc/sys/kernel/random/uuid)
    at_exit destroy_guest "$name"
    chmod 755 "$folder"
    copy_for_guest "$name" "$kernel" kernel || return 1
    if [ -n "$initrd" ]; then
        copy_for_guest "$name" "$initrd" initrd && mkfifo "$folder"/words.{in,out} || return 1
    fi
    [ -z "$guest_disk" ] || copy_for_guest "$name" "$guest_disk" disk || return 1
    [ -z "$guest_nvme" ] || copy_for_guest "$name" "$guest_nvme" nvme || return 1
    : >"$folder/serial"
    guest_xml "$name" "${guest_uuids[$name]}" "$type" "$folder" "$cmdline" "$vcpus" "$cpu" \
        "$mem_mib" "${initrd:+$folder/initrd}" >"$folder/domain.xml"

    if ! quiet_virsh create "$folder/domain.xml" >/dev/null; then
        complain "libvirt does not start guest '$name' ($way)"
        return 1
    fi
    after_death pkill -KILL -f "^[^ ]*qemu-system.* -uuid ${guest_uuids[$name]}( |\$)"
    [ "$guest_nice" = 0 ] || lower_priority "${guest_uuids[$name]}"
}

# copy_for_guest NAME FILE AS: copies FILE into the guest's folder, where QEMU can read it
copy_for_guest()
{
    if ! cp --sparse=always "$2" "${guest_folders[$1]}/$3"; then
        complain "no $3 '$2' for guest '$1'"
        return 1
    fi
    chmod 666 "${guest_folders[$1]}/$3"
}

# await_guest NAME [SECONDS]: returns when the guest's serial line has $guest_word
await_guest()
{
    local seconds=${2:-$guest_seconds} serial=${guest_folders[$1]}/serial
    if ! wait_until "$seconds" guest_spoke_or_ended "$1"; then
        complain "guest '$1' does not say '$guest_word' within $seconds s; its serial line: '$(tail -c 300 "$serial")'"
        return 1
    fi
    if ! guest_spoke "$1"; then
        complain "guest '$1' ended without a word"
        return 1
    fi
}

# define_guest NAME KVM|TCG KERNEL CMDLINE VCPUS [CPU [MEM_MIB]]: creates a guest, and returns when
# the guest says on its serial line that it runs
define_guest()
{
    create_guest "$@" && await_guest "$1"
}

# destroy_leftover NAME: ends a guest that a killed test has left behind. It is an error if a domain
# of that name is not of a test.
destroy_leftover()
{
    local title folder
    title=$(quiet_virsh desc --domain "$1" --title 2>/dev/null) || return 0
    if [ "$title" != 'virt-uprof test guest' ]; then
        complain "there is a domain '$1' on $libvirt_uri, and not by us"
        return 1
    fi
    folder=$(quiet_virsh dumpxml --domain "$1" | grep -oEm1 '/var/tmp/uprof-guest\.[A-Za-z0-9]{6}')
    quiet_virsh destroy --domain "$1" >/dev/null
    [ -z "$folder" ] || rm -rf "$folder"
}

# destroy_guest NAME: ends a guest of define_guest, if it has not ended itself, and removes its
# folder
destroy_guest()
{
    [ -n "${guest_folders[$1]:-}" ] || return 0
    if guest_runs "$1"; then
        # If the guest ends just now, virsh fails.
        libvirt_uri=${guest_uris[$1]} quiet_virsh destroy "${guest_uuids[$1]}" >/dev/null ||
            ! guest_runs "$1" || return 1
    fi
    rm -rf "${guest_folders[$1]}"
    # `unset` would run the command in a name like '$(id)'.
    guest_folders[$1]=
}

# destroy_guests PREFIX: ends all domains on $libvirt_uri whose names begin with PREFIX
destroy_guests()
{
    local uuid
    for uuid in $(quiet_virsh list --uuid 2>/dev/null); do
        if [[ $(quiet_virsh domname "$uuid" 2>/dev/null) == "$1"* ]]; then
            quiet_virsh destroy "$uuid" >/dev/null 2>&1
        fi
    done
}
