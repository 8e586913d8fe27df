#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
hostile_kernel.py KERNEL BUILD-ID FOLDER COMMAND... - hostile files as kernel of a domain, and beside it

Puts each file of tests/lib/hostile_files.py at KERNEL and at KERNEL.dbg, and runs COMMAND. COMMAND
must end with a documented exit code within the limits of time and memory, print a line if it fails,
and open no device, pipe or socket. FOLDER is on the file system of KERNEL. BUILD-ID is KERNEL's, in
hex. KERNEL is restored.
"""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import hostile_files  # noqa: E402

CODES = (0, 1, 3, 4, 5, 6)
TIME_MAX_S = 30  # these machines are busy; tests/cli/test-hostile-files.py has the limit of 10 s
MEMORY_MAX_MIB = 512


def run(command):
    started = time.monotonic()
    child = subprocess.Popen(["timeout", "-s", "KILL", "120", *command], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip
    text = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, text, time.monotonic() - started, usage.ru_maxrss >> 10


def place(path, target):
    target.unlink(missing_ok=True)
    if path.is_symlink():
        target.symlink_to(path.parent / os.readlink(path))
    else:
        os.link(path, target, follow_symlinks=False)


def main():
    kernel, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[3])
    command = sys.argv[4:]
    folder.mkdir()
    files = hostile_files.make_files(folder, hostile_files.pack_note(bytes.fromhex(sys.argv[2])))
    watch = hostile_files.Watch(folder)
    saved = folder / "kernel"
    kernel.rename(saved)
    failed = 0
    for kind, path in files.items():
        for target in (kernel, kernel.with_name(kernel.name + ".dbg")):
            place(saved, kernel)
            place(path, target)
            watch.take()
            code, text, seconds, mib = run(command)
            opened = watch.take()
            target.unlink()
            is_bad = code not in CODES or (code and "virt-uprof: " not in text) or opened
            if is_bad or seconds > TIME_MAX_S or mib > MEMORY_MAX_MIB:
                failed += 1
                print(f"{kind} at {target.name}: exit {code}, {seconds:.1f} s, {mib} MiB, opened {opened}: {text!r}")
    kernel.unlink(missing_ok=True)
    saved.rename(kernel)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
