#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
tasks.py PROGRAM NAME TIMES few|many - measures `ps` and `dump --tasks` of a Linux guest

Prints the median and the range of the seconds that each command takes, and the highest memory (RSS) of any
of its processes, in MiB. Fails if a list of many tasks lacks some.
"""

import json
import os
import statistics
import sys
import time

MANY = 10000


def run(words):
    """Returns the output, the seconds, and the highest memory of a process in MiB."""
    read, write = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.close(read)
        os.execv(words[0], words)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        output = file.read()
    _, status, usage = os.wait4(child, 0)
    seconds = time.monotonic() - began
    if status:
        sys.exit(f"{words} fails: {status}")
    return output, seconds, usage.ru_maxrss / 1024


def measure(name, words, times):
    results = [run(words) for _ in range(times)]
    seconds = sorted(result[1] for result in results)
    print(f"{name:24} {statistics.median(seconds):.3f} s ({seconds[0]:.3f} to {seconds[-1]:.3f}), "
          f"{max(result[2] for result in results):.1f} MiB")  # fmt: skip
    return results[-1][0]


def main():
    program, name, times, how = sys.argv[1:]
    measure("dump", [program, "dump", "--json", name], int(times))
    listed = json.loads(measure("ps", [program, "ps", "--json", name], int(times)))
    dump = json.loads(measure("dump --tasks", [program, "dump", "--tasks", "--json", name], int(times)))
    print(f"{how}: {len(listed['tasks'])} tasks, {len(dump['stacks'])} stacks")
    if how == "many" and (len(listed["tasks"]) < MANY or not listed["complete"]):
        sys.exit(f"only {len(listed['tasks'])} tasks")


if __name__ == "__main__":
    sys.exit(main())
