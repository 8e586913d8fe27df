#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
interrupt.py COMMAND... - runs a command that samples while a child runs, and types Ctrl-C

The command gets a terminal of its own, and this script as its child (argument --child). The terminal sends SIGINT
to all processes in the foreground. The child must not get a second one from the command: the kernel tells who has
sent a signal. Exits with the status of the command, or 1 with the reason.
"""

import os
import pty
import select
import signal
import sys
import time

CTRL_C = b"\x03"
SECONDS_MAX = 60
AGAIN_S = 2  # in which a second signal would come
STATUS = 9  # of the child, if the terminal was the only sender


def run_child():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    print("the child waits", flush=True)
    senders = [signal.sigwaitinfo([signal.SIGINT]).si_pid]
    while again := signal.sigtimedwait([signal.SIGINT], AGAIN_S):
        senders.append(again.si_pid)
    print(f"senders: {senders}", flush=True)
    sys.exit(STATUS if senders == [0] else 1)  # 0: the kernel


def main():
    command = [*sys.argv[1:], "--", sys.executable, os.path.abspath(__file__), "--child"]
    pid, leader = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    end, is_typed, text = time.monotonic() + SECONDS_MAX, False, b""
    while time.monotonic() < end:
        if not is_typed and b"the child waits" in text and b", access " in text:
            time.sleep(1)  # the run takes samples
            os.write(leader, CTRL_C)
            is_typed = True
        if not select.select([leader], [], [], 0.05)[0]:
            continue
        try:
            text += os.read(leader, 65536)
        except OSError:  # the terminal has no process any more
            break
    else:
        sys.exit(f"not within {SECONDS_MAX} s: {text!r}")
    sys.stdout.write(text.decode(errors="replace").replace("\r\n", "\n"))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if sys.argv[1:] == ["--child"]:
    run_child()
main()
