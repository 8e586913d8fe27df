#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
pauses.py PROGRAM UUID WAY - ends a hold of `ps --pause` of a guest in one way

The hold lasts as long as its worker reads. So this script stops the worker in the hold, which it sees in the
marker of the guest. WAY is what happens then:

bound      nothing: the hold ends when its time is up, and the list is complete once the worker goes on
worker     SIGKILL to the worker: the program releases the guest, and fails
int        SIGINT to the program: the hold ends at once
kill       SIGKILL to the program: the guardian resumes the guest
stop       SIGSTOP to the program: the guardian kills it, and resumes the guest

Prints how long the guest was held from then on. Exits 0 if the end was as it should be; the caller checks that
the guest runs.
"""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import processes  # noqa: E402 (the path is set first)

PROGRAM, UUID, WAY = sys.argv[1:]
MARKER = pathlib.Path("/run/virt-uprof", UUID)
HELD_AT = 4  # offset in the marker: see src/guest/marker.c
BOUND = {"bound": 3}.get(WAY, 10)  # seconds
# The longest time from the end to the release, in seconds. The guardian looks four times a second, waits for 2 s
# before it kills a program, and watches a guest for 1 s.
PATIENCE = {"bound": BOUND + 1, "worker": 1, "int": 1, "kill": 5, "stop": 8}[WAY]
TRIES = 20
# A hold for samples ends by itself, even if the worker is stopped. A hold that lasts this long waits for the worker:
# it is the hold for the tasks.
SETTLE_S = 0.3


def fail(text):
    print(text)
    sys.exit(1)


def is_held():
    """Says whether the marker flags a hold."""
    try:
        with open(MARKER, "rb", buffering=0) as file:
            data = file.read(HELD_AT + 4)
    except OSError:
        return False
    return len(data) == HELD_AT + 4 and struct.unpack_from("=i", data, HELD_AT)[0] != 0


def await_release(seconds, pause=0.01):
    """Returns the time until the hold ends, or None. Looks again after each pause, in seconds."""
    start = time.monotonic()
    while is_held():
        if time.monotonic() - start > seconds:
            return None
        time.sleep(pause)
    return time.monotonic() - start


def start():
    words = [PROGRAM, "ps", "--pause", "--max-pause", f"{BOUND}s", "--access", "monitor", "--json", UUID]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def catch_hold(run):
    """Stops the worker in the hold for the tasks. Returns its pid, or None if the run ends before."""
    worker = None
    while run.poll() is None:
        worker = worker or processes.find_process(run.pid, "worker")
        if not worker or not is_held():
            continue
        os.kill(worker, signal.SIGSTOP)
        if await_release(SETTLE_S, 0.001) is None:
            return worker
        os.kill(worker, signal.SIGCONT)
    return None


def check_bound(run, worker):
    os.kill(worker, signal.SIGCONT)
    out, said = run.communicate(timeout=120)
    if run.returncode != 0 or "before all tasks were read: the others were read while the guest ran" not in said:
        fail(f"exit {run.returncode}: {said}")
    listed = json.loads(out)
    if not BOUND * 10**9 <= listed["held_ns"] <= PATIENCE * 10**9 or not listed["complete"] or not listed["tasks"]:
        fail(f"held for {listed['held_ns']} ns, complete: {listed['complete']}, {len(listed['tasks'])} tasks")


def check_end(run, worker):
    if WAY == "bound":
        check_bound(run, worker)
        return
    try:
        os.kill(worker, signal.SIGCONT)
    except ProcessLookupError:
        pass
    said = run.communicate(timeout=120)[1]
    wanted = {"worker": 1, "kill": -signal.SIGKILL, "stop": -signal.SIGKILL}.get(WAY)
    if wanted is not None and run.returncode != wanted:
        fail(f"exit {run.returncode}: {said}")
    if WAY == "worker" and "the process that analyzes its samples has failed" not in said:
        fail(said)


def main():
    for _ in range(TRIES):
        run = start()
        worker = catch_hold(run)
        if worker:
            break
        run.communicate()
    else:
        fail("no hold for the tasks was met")
    if WAY == "worker":
        os.kill(worker, signal.SIGKILL)
    elif WAY != "bound":
        os.kill(run.pid, {"int": signal.SIGINT, "kill": signal.SIGKILL, "stop": signal.SIGSTOP}[WAY])
    seconds = await_release(PATIENCE)
    if seconds is None:
        fail(f"the guest is still held after {PATIENCE} s")
    check_end(run, worker)
    print(f"{WAY}: held for {seconds:.2f} s more")


if __name__ == "__main__":
    main()
