#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
interrupt.py FILE COMMAND... - runs a command on a terminal of its own, and types Ctrl-C

FILE is written by a child of the command: a line "ready" when it waits, and a line for each SIGINT that it gets.
The terminal sends the signal to all processes in the foreground. If the command passed it on, the child would
have it twice. Prints the output. Exits with the status of the command, or 1 with the reason.
"""

import os
import pathlib
import pty
import select
import sys
import time

FILE, COMMAND = pathlib.Path(sys.argv[1]), sys.argv[2:]
CTRL_C = b"\x03"
SECONDS_MAX = 60


def read_lines():
    return FILE.read_text().splitlines() if FILE.exists() else []


def main():
    pid, leader = pty.fork()
    if pid == 0:
        os.execvp(COMMAND[0], COMMAND)
    end, is_typed, text = time.monotonic() + SECONDS_MAX, False, b""
    while time.monotonic() < end:
        if not is_typed and "ready" in read_lines():
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
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    sys.stdout.write(text.decode(errors="replace").replace("\r\n", "\n"))
    if read_lines() != ["ready", "interrupt"]:
        sys.exit(f"the child has written {read_lines()}")
    sys.exit(status)


main()
