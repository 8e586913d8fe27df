#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
tracer.py PID - traces the vCPU threads of a QEMU, as a debugger would

Prints "traced" when all threads are traced. Until SIGTERM the threads run, and get their signals.
After SIGTERM no thread stays stopped, because the kernel detaches all.
"""

import ctypes
import os
import pathlib
import sys
import time

TRIES = 10000
PTRACE_CONT, PTRACE_SEIZE = 7, 0x4206
WALL = 0x40000000  # __WALL, for which Python has no name

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, thread, data=0):
    if libc.ptrace(request, thread, None, data) != 0:
        sys.exit(f"tracer.py: thread {thread}: {os.strerror(ctypes.get_errno())}")


def is_vcpu(task):
    return (task / "comm").read_text().startswith("CPU ")


def main():
    # A profiler may hold the thread now, but only for microseconds.
    for task in filter(is_vcpu, pathlib.Path(f"/proc/{int(sys.argv[1])}/task").iterdir()):
        for _ in range(TRIES):
            if libc.ptrace(PTRACE_SEIZE, int(task.name), None, None) == 0:
                break
            time.sleep(0.0005)
        else:
            sys.exit(f"tracer.py: thread {task.name} cannot be traced")
    print("traced", flush=True)
    while True:
        thread, status = os.waitpid(-1, WALL)
        if not os.WIFSTOPPED(status):
            return
        # An event of ptrace is not a signal for the thread.
        ptrace(PTRACE_CONT, thread, 0 if status >> 16 else os.WSTOPSIG(status))


if __name__ == "__main__":
    main()
