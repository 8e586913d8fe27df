#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
listed.py CONSOLE PS DUMP VCPUS - compares `ps --json` and `dump --tasks --json` with what a guest printed

CONSOLE has the guest's lines "TASK PID NAME" and "THREAD TID PID NAME" (tests/linux/reports.c). All of these
tasks must be listed under their names; workers of the kernel come and go. Tasks that run are on one of the
VCPUS. At least STACKS_MIN stacks must be complete. Complete stacks must be at least 95 % of the copied stacks.

Prints one line for each fault, and at the end the numbers. Exits 0 if there is no fault.
"""

import json
import re
import sys

TASKS_MIN, STACKS_MIN = 40, 30


def read_tasks(path):
    """Returns what the guest printed: {tid: (pid, name)}."""
    tasks = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            found = re.match(r"(?:TASK|THREAD (\d+)) (\d+) (.*?)\r?$", line)
            if found:
                tasks[int(found[1] or found[2])] = (int(found[2]), found[3])
    return tasks


def main():
    console, ps, dump, n_vcpus = sys.argv[1:]
    with open(ps, encoding="utf-8") as file:
        listed = json.load(file)
    with open(dump, encoding="utf-8") as file:
        stacks = json.load(file)["stacks"]
    rows = {task["tid"]: task for task in listed["tasks"]}
    tasks, faults = read_tasks(console), []
    for tid, (pid, name) in tasks.items():
        row = rows.get(tid, {"pid": 0, "name": ""})
        # the guest's lines have the first 15 characters of names
        if not name.startswith("kworker/") and (row["pid"], row["name"][:15]) != (pid, name):
            faults.append(f"{tid}: not {name} of {pid}: {row}")
    running = [task["vcpu"] for task in listed["tasks"] if task["state_name"] == "running"]
    # the guest runs while it is read, so two tasks may be seen on one vCPU in turn
    if not set(running) <= set(range(int(n_vcpus))):
        faults.append(f"tasks on the vCPUs {running}")
    copied = [task for stack in stacks if stack["frames"] for task in stack["tasks"]]
    complete = [task for stack in stacks if stack["complete"] for task in stack["tasks"]]
    if not listed["complete"] or len(tasks) < TASKS_MIN:
        faults.append(f"{len(tasks)} tasks, complete: {listed['complete']}")
    if len(complete) < STACKS_MIN or len(complete) < len(copied) * 0.95:
        faults.append(f"{len(complete)} of {len(copied)} stacks are complete")
    for fault in faults:
        print(fault)
    print(f"{len(tasks)} tasks, {len(rows)} listed, {len(complete)} stacks complete, on vCPUs {sorted(running)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
