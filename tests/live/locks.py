#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
locks.py SAID DUMP PS - compares the locks of `dump --blocked --json` and `ps --json` with the guest's own

SAID has the lines LOCK that the guest has printed (tests/linux/locks.c). All tasks there must have the lock,
with the owner; tasks that wait for the same lock must have it at the same address.

Prints one line for each fault, and at the end the number of locks. Exits 0 if there is no fault.
"""

import json
import sys

LOCKS_MIN = 25


def read_said(path):
    said = {}
    for line in open(path, encoding="utf-8", errors="replace"):
        word, *rest = line.split()
        if word == "LOCK":
            said[int(rest[0])] = (rest[1], int(rest[2]))
    return said


def find_faults(said, tasks, what):
    faults, addresses = [], {}
    for tid, (kind, owner) in said.items():
        lock = tasks.get(tid, {}).get("lock")
        if not lock:
            faults.append(f"{what}: task {tid} has no lock: {tasks.get(tid)}")
            continue
        found = (lock["kind"], lock.get("owner", {}).get("tid", 0))
        if found != (kind, owner):
            faults.append(f"{what}: task {tid} waits for {lock}, not {kind} of {owner}")
        if kind == "percpu-rwsem" and (lock.get("frozen_type"), lock.get("frozen_device")) != ("ext4", "nvme0n1"):
            faults.append(f"{what}: task {tid} waits for no file system: {lock}")
        if lock["holder"] == "readers" and lock["readers"] != 1:
            faults.append(f"{what}: task {tid}: {lock['readers']} readers")
        # the lock for a folder has waiters that read, and others that write
        addresses.setdefault((kind.split("-")[0], owner), set()).add(lock["address"])
    faults += [f"{what}: {key} at {places}" for key, places in addresses.items() if len(places) > 1]
    others = [task["tid"] for task in tasks.values() if "lock" in task and task["tid"] not in said]
    if others:
        faults.append(f"{what}: other tasks with locks: {others}")
    return faults


def main():
    said = read_said(sys.argv[1])
    dump, listed = (json.load(open(path, encoding="utf-8")) for path in sys.argv[2:4])
    blocked = {task["tid"]: task for stack in dump["stacks"] for task in stack["tasks"]}
    faults = find_faults(said, blocked, "dump")
    faults += find_faults(said, {task["tid"]: task for task in listed["tasks"]}, "ps")
    if len(said) < LOCKS_MIN:
        faults.append(f"only {len(said)} locks")
    for fault in faults:
        print(fault)
    print(f"{len(said)} tasks that wait for locks, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
