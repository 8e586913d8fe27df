# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# lab-init.sh - functions for process 1 of each lab: mount, wait, run, and switch off
#
# A lab's own /lab-init sources this file in the emulated machine. The host shares a folder,
# which is mounted on /lab. Process 1 runs the program `go` of that folder, or a shell if there
# is none. The program writes to the console. At the end, a line LAB-ENDS tells the host the exit
# status of the program. Nothing else prints such a line.

export HOME=/root LC_ALL=C.UTF-8
# The logs that `fail_boot` shows
boot_logs=${boot_logs:-/var/log/libvirt/libvirtd.log}

say()
{
    read -r now _ </proc/uptime
    printf 'lab: %6s s: %s\n' "$now" "$*"
}

# end_lab STATUS: switches the machine off
end_lab()
{
    sync
    printf 'LAB-ENDS %s\n' "$1"
    poweroff -ff
    # The machine takes a while to switch off.
    while :; do sleep 60; done
}

fail_boot()
{
    say "FAILED: $*"
    # shellcheck disable=SC2086 # a list of files, some of which may be missing
    tail -n 20 $boot_logs 2>/dev/null
    end_lab 99
}

# await WHAT SECONDS PID COMMAND...: waits until COMMAND succeeds; the process PID (0: none)
# must not end meanwhile
await()
{
    local what=$1 end=$((SECONDS + $2)) pid=$3
    shift 3
    say "waiting for $what"
    until "$@" >/dev/null 2>&1; do
        [ "$pid" = 0 ] || [ -e "/proc/$pid" ] || fail_boot "$what: its process has ended"
        [ "$SECONDS" -lt "$end" ] || fail_boot "$what: no answer"
        sleep 0.1
    done
}

# mount_system: mounts the file systems that every Linux has
mount_system()
{
    mount -t proc proc /proc
    mountpoint -q /sys || mount -t sysfs sysfs /sys
    mount -t devtmpfs dev /dev 2>/dev/null
    mkdir -p /dev/pts /dev/shm
    mount -t devpts devpts /dev/pts
    mount -t tmpfs tmpfs /run
    mount -t tmpfs tmpfs /tmp
    mount -t tmpfs tmpfs /dev/shm
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mount -o remount,rw /
    ip link set lo up
    hostname lab
}

# mount_lab: mounts the folder that the host shares on /lab
mount_lab()
{
    modprobe 9pnet_virtio
    modprobe 9p
    mkdir -p /lab
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 lab /lab ||
        fail_boot "no shared folder"
}

# run_lab TERMINAL: runs /lab/go or a shell on TERMINAL, then ends the lab
run_lab()
{
    if [ -e /lab/go ]; then
        bash /lab/go
        end_lab $?
    fi
    printf 'The end of this shell ends the lab. The folder that the host shares is /lab.\n'
    setsid -c bash -i <"$1" >"$1" 2>&1
    end_lab 0
}
