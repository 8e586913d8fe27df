#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
as-unit.py UNIT FOLDER... -- COMMAND... - runs a command with the restrictions of a service unit,
where no systemd runs

The script applies these settings of UNIT: capabilities, no new privileges, system calls (by the
sets of the installed systemd), address families, namespaces, network, read-only and hidden parts of
the file system, a private /dev, umask, niceness, and the limit of locked memory. /tmp and /var/tmp
stay, because tests run there. COMMAND may write to FOLDERs, and to the unit's own folders. An
unknown setting in UNIT is an error, so that nobody forgets to add it here. Needs root. Exits 77 if
the machine does not permit namespaces.
"""

import ctypes
import os
import pathlib
import platform
import re
import resource
import struct
import subprocess
import sys

CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWUTS = 0x20000, 0x40000000, 0x4000000
CLONE_NEW_ALL = 0x7E020080
MS_REC, MS_PRIVATE, MS_BIND = 0x4000, 0x40000, 0x1000
AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = -100, 0x8000, 1
SYS_MOUNT_SETATTR = 442
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_FILTER = 24, 38, 22, 2
RET_ALLOW, RET_EPERM, RET_ENOSYS = 0x7FFF0000, 0x50001, 0x50026
AUDIT_ARCH = 0xC000003E
CAPABILITIES = {"CAP_DAC_READ_SEARCH": 2, "CAP_SETGID": 6, "CAP_SETUID": 7, "CAP_SYS_PTRACE": 19}
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
LAST_CAPABILITY = int(pathlib.Path("/proc/sys/kernel/cap_last_cap").read_text())
TUNABLES = ("/proc/sys", "/proc/sysrq-trigger", "/proc/acpi", "/proc/fs", "/proc/irq", "/proc/bus", "/sys")

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def mount(source, target, kind, flags, data=None):
    words = [word.encode() if word else None for word in (source, target, kind)]
    check(libc.mount(*words, ctypes.c_ulong(flags), data.encode() if data else None), f"mount {target}")


def set_read_only(path, on):
    attributes = struct.pack("=QQQQ", *((MOUNT_ATTR_RDONLY, 0) if on else (0, MOUNT_ATTR_RDONLY)), 0, 0)
    check(libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), AT_RECURSIVE, attributes, len(attributes)),
          f"mount_setattr {path}")


def bind(path):
    mount(path, path, None, MS_BIND | MS_REC)


def hide(path):
    if os.path.isdir(path):
        mount("tmpfs", path, "tmpfs", 0, "size=4k,mode=0")
        set_read_only(path, True)


# ---- Settings of the unit; main() applies them in this order ----

def make_namespaces(unit):
    flags = CLONE_NEWNS
    flags |= CLONE_NEWNET if unit.is_on("PrivateNetwork") else 0
    flags |= CLONE_NEWUTS if unit.is_on("ProtectHostname") else 0
    if libc.unshare(flags) != 0:
        print("SKIP: no namespaces can be made here")
        sys.exit(77)
    mount(None, "/", None, MS_REC | MS_PRIVATE)


def protect_files(unit, folders):
    assert unit.get("ProtectSystem") == "strict"
    settings = (("/var/lib", "StateDirectory"), ("/var/cache", "CacheDirectory"), ("/run", "RuntimeDirectory"))
    own = [f"{parent}/{unit.values[name]}" for parent, name in settings if name in unit.values]
    # systemd would make missing folders; this script leaves no new folders behind
    writable = [*filter(os.path.isdir, own), *map(os.path.realpath, folders)]
    for path in writable:
        bind(path)
    set_read_only("/", True)
    for path in ("/dev", "/proc", "/sys", *writable):
        set_read_only(path, False)
    read_only = TUNABLES if unit.is_on("ProtectKernelTunables") else ()
    read_only += ("/sys/fs/cgroup",) if unit.is_on("ProtectControlGroups") else ()
    for path in filter(os.path.exists, read_only):
        bind(path)
        set_read_only(path, True)
    hidden = ("/home", "/root", "/run/user") if unit.is_on("ProtectHome") else ()
    hidden += ("/usr/lib/modules",) if unit.is_on("ProtectKernelModules") else ()
    for path in hidden:
        hide(path)
    if unit.is_on("PrivateDevices"):
        mount("tmpfs", "/dev", "tmpfs", 0, "mode=755")
        for name, number in (("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)):
            os.mknod(f"/dev/{name}", 0o20666, os.makedev(1, number))
            os.chmod(f"/dev/{name}", 0o666)


def drop_capabilities(unit):
    kept = {CAPABILITIES[name] for name in unit.get("CapabilityBoundingSet").split()}
    for number in range(LAST_CAPABILITY + 1):
        if number not in kept:
            check(libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), "PR_CAPBSET_DROP")


# ---- System calls ----

def read_numbers():
    text = pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").read_text()
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", text)}


def names_of(group):
    if not group.startswith("@"):
        return {group}
    done = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, check=True)
    names = set()
    for word in done.stdout.decode().splitlines()[1:]:
        word = word.strip()
        if word.startswith("@"):
            names |= names_of(word)
        elif word and not word.startswith("#"):
            names.add(word)
    return names


def statement(code, value, yes=0, no=0):
    return struct.pack("=HBBI", code, yes, no, value)


def load(offset):
    return statement(0x20, offset)


def if_equal(value, skip_if_not):
    return statement(0x15, value, 0, skip_if_not)


def if_any_bit(value, skip_if_not):
    return statement(0x45, value, 0, skip_if_not)


def give(value):
    return statement(0x06, value)


def make_filter(unit):
    numbers = read_numbers()
    allowed = set().union(*map(names_of, unit.get("SystemCallFilter").split()))
    families = [FAMILIES[name] for name in unit.get("RestrictAddressFamilies").split() if name != "none"]
    program = [load(4), statement(0x15, AUDIT_ARCH, 1, 0), give(RET_EPERM), load(0)]
    if unit.is_on("RestrictNamespaces"):
        # a filter cannot follow the pointer to the flags of clone3; after ENOSYS, libc calls clone
        program += [if_equal(numbers["clone3"], 1), give(RET_ENOSYS)]
        program += [if_equal(numbers["setns"], 1), give(RET_EPERM)]
        for name in ("clone", "unshare"):
            program += [if_equal(numbers[name], 4), load(16), if_any_bit(CLONE_NEW_ALL, 1), give(RET_EPERM), load(0)]
    if unit.is_on("RestrictSUIDSGID"):
        # a filter cannot read the mode of openat2 either
        program += [if_equal(numbers["openat2"], 1), give(RET_ENOSYS)]
    allow_families = [part for family in families for part in (if_equal(family, 1), give(RET_ALLOW))]
    program += [if_equal(numbers["socket"], len(allow_families) + 2), load(16), *allow_families, give(RET_EPERM)]
    for number in sorted(numbers[name] for name in allowed if name in numbers):
        program += [if_equal(number, 1), give(RET_ALLOW)]
    return b"".join([*program, give(RET_EPERM)])


def forbid_calls(code):
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    check(libc.prctl(PR_SET_SECCOMP, SECCOMP_FILTER, program, 0, 0), "PR_SET_SECCOMP")


# ---- The unit ----

class Unit:
    """The section [Service] of a unit file."""

    # settings that are applied, then settings that have no effect on one run or would hinder tests
    known = set("""
        CapabilityBoundingSet NoNewPrivileges SystemCallFilter SystemCallErrorNumber SystemCallArchitectures
        PrivateNetwork RestrictAddressFamilies ProtectSystem ProtectHome PrivateTmp PrivateDevices
        ProtectControlGroups ProtectHostname ProtectKernelModules ProtectKernelTunables RestrictNamespaces
        RestrictSUIDSGID
        StateDirectory StateDirectoryMode CacheDirectory RuntimeDirectory RuntimeDirectoryMode RuntimeDirectoryPreserve
        UMask Nice LimitMEMLOCK
        Type WantedBy ExecStart ExecStopPost TimeoutStartSec TimeoutStopSec KillMode OOMPolicy SuccessExitStatus
        MemoryMax TasksMax IOSchedulingClass
        ProtectClock ProtectKernelLogs ProtectProc LockPersonality RestrictRealtime
        """.split())

    def __init__(self, path):
        text = pathlib.Path(path).read_text().partition("[Service]")[2]
        self.values = dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
        unknown = set(self.values) - self.known
        assert not unknown, f"nobody knows {unknown}"

    def get(self, name):
        return self.values[name]

    def is_on(self, name):
        return self.values.get(name) == "yes"


def main():
    at = sys.argv.index("--")
    unit, folders, command = Unit(sys.argv[1]), sys.argv[2:at], sys.argv[at + 1:]
    if os.geteuid() != 0 or platform.machine() != "x86_64":
        print("SKIP: this takes root, and an x86_64")
        sys.exit(77)
    code = make_filter(unit)
    make_namespaces(unit)
    protect_files(unit, folders)
    os.nice(int(unit.values.get("Nice", 0)))
    os.umask(int(unit.get("UMask"), 8))
    if "LimitMEMLOCK" in unit.values:
        most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
        limit = int(unit.get("LimitMEMLOCK").rstrip("M")) << 20
        limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
    drop_capabilities(unit)
    assert unit.is_on("NoNewPrivileges")
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
    forbid_calls(code)
    os.execvp(command[0], command)


main()
