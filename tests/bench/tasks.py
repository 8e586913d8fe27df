#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
tasks.py PROGRAM NAME TIMES few|many - measures `ps` and `dump --tasks` of a Linux guest

Prints the median and the range of the seconds that each command takes, and the highest memory (RSS) of any
of its processes, in MiB; and the processor time of samples with and without --waits, in turns, as a share of
one processor. Fails if a list of many tasks lacks some.
"""

import json
import os
import statistics
import sys
import time

MANY = 10000
BY_PEEKS = ["setpriv", "--bounding-set", "-sys_ptrace"]  # without the right to read QEMU's memory
ROUNDS, SECONDS = 3, 10  # of samples


def run(words):
    """Returns the output, the seconds, the highest memory of a process in MiB, and its processor time."""
    read, write = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.close(read)
        os.execvp(words[0], words)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        output = file.read()
    _, status, usage = os.wait4(child, 0)
    seconds = time.monotonic() - began
    if status:
        sys.exit(f"{words} fails: {status}")
    return output, seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def measure(name, words, times):
    results = [run(words) for _ in range(times)]
    seconds = sorted(result[1] for result in results)
    print(f"{name:24} {statistics.median(seconds):.3f} s ({seconds[0]:.3f} to {seconds[-1]:.3f}), "
          f"{max(result[2] for result in results):.1f} MiB")  # fmt: skip
    return results[-1][0]


def measure_waits(program, name):
    """Compares runs with and without --waits, in turns."""
    shares = {"record": [], "record --waits": []}
    for _ in range(ROUNDS):
        for words, found in shares.items():
            command = [program, *words.split(), "-q", "-d", f"{SECONDS}s", "-o", "/dev/null", "--format", "folded", name]
            found.append(run(command)[3] / SECONDS * 100)
    for words, found in shares.items():
        print(f"{words:24} {statistics.median(found):.1f} % of a processor ({min(found):.1f} to {max(found):.1f})")


def main():
    program, name, times, how = sys.argv[1:]
    measure("dump", [program, "dump", "--json", name], int(times))
    listed = json.loads(measure("ps", [program, "ps", "--json", name], int(times)))
    peeked = json.loads(measure("ps by peeks", [*BY_PEEKS, program, "ps", "--json", "--access", "monitor", name], 1))
    dump = json.loads(measure("dump --tasks", [program, "dump", "--tasks", "--json", name], int(times)))
    measure_waits(program, name)
    print(f"{how}: {len(listed['tasks'])} tasks, {len(dump['stacks'])} stacks")
    for tasks in (listed, peeked):
        if how == "many" and (len(tasks["tasks"]) < MANY or not tasks["complete"]):
            sys.exit(f"only {len(tasks['tasks'])} tasks")


if __name__ == "__main__":
    sys.exit(main())
