#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
waits.py WAITS FOLDED PPROF SIDECAR - checks where the tasks of a guest have waited

The guest runs the load `waits` (tests/linux/loads.c), and three tasks that spin on one vCPU. All
files are of one run. Prints the faults, and then a summary.
"""

import collections
import gzip
import json
import sys

EACH = 16  # processes in each state (STATES_EACH)
TOLERANCE = 0.03  # of the time
RUN_TOLERANCE = 0.25  # of tasks that run now and then, and wait for the vCPU before
# State, process, number of tasks, and a function in which all of them wait; None: they run now and then
KNOWN = (
    ("[sleeping]", "a-sleep", EACH, "wait_for_time"),
    ("[sleeping]", "a-futex", EACH, "wait_for_futex"),
    ("[sleeping]", "a-poll", EACH, "do_sys_poll_[k]"),
    ("[sleeping]", "a-pipe", EACH, "wait_for_pipe"),
    ("[sleeping]", "a-wait", EACH, "do_wait_[k]"),
    ("[sleeping]", "a-wait", EACH, "wait_for_time"),
    ("[sleeping]", "a-thread", 3 * EACH, "wait_in_thread"),
    ("[sleeping]", "a-vfork", EACH, "wait_for_time"),
    ("[blocked]", "a-vfork", EACH, "kernel_clone_[k]"),
    ("[blocked on I/O]", "a-disk", EACH, None),
    ("[stopped]", "a-stop", EACH, "stop_here"),
    ("[idle]", "kworker/0:0H", 1, "worker_thread_[k]"),
)
SPINNERS, RUNNABLE_MIN, RUNNABLE_MAX = "user", 1.4, 2.1


def read_folded(path):
    """Returns the stacks below the domain, and their microseconds."""
    stacks = collections.Counter()
    with open(path, encoding="utf-8") as file:
        for line in file:
            stack, weight = line.rsplit(" ", 1)
            stacks[tuple(stack.split(";")[1:])] += int(weight)
    return stacks


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def read_fields(data):
    """Yields the number and the value of each field of a message of numbers and bytes."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        value, at = read_varint(data, at)
        if tag & 7 == 2:
            data_end = at + value
            value, at = data[at:data_end], data_end
        yield tag >> 3, value


def read_pprof(path):
    """Returns the names of the values of samples, and the sum of each value."""
    with gzip.open(path) as file:
        fields = list(read_fields(file.read()))
    texts = [value.decode() for number, value in fields if number == 6]
    types = [tuple(texts[i] for _, i in read_fields(value)) for number, value in fields if number == 1]
    sums = [0] * len(types)
    for number, sample in fields:
        if number != 2:
            continue
        values, at = [], 0
        packed = dict(read_fields(sample))[2]
        while at < len(packed):
            value, at = read_varint(packed, at)
            values.append(value)
        sums = [old + new for old, new in zip(sums, values, strict=True)]
    return types, sums


def compare_known(stacks, time_us):
    faults = []
    for state, process, n_tasks, function in KNOWN:
        found = sum(us for stack, us in stacks.items() if stack[:2] == (state, process) and function in (None, *stack))
        if abs(found / time_us - n_tasks) > n_tasks * (TOLERANCE if function else RUN_TOLERANCE):
            faults.append(f"{state} {process} {function}: {found / time_us:.3f} of the time, not {n_tasks}")
    return faults


def main():
    stacks = read_folded(sys.argv[1])
    samples = sum(read_folded(sys.argv[2]).values())
    types, sums = read_pprof(sys.argv[3])
    with open(sys.argv[4], encoding="utf-8") as file:
        facts = json.load(file)
    time_us, total_us = facts["waits"]["time_ms"] * 1000, sum(stacks.values())
    faults = compare_known(stacks, time_us)
    runnable = sum(us for stack, us in stacks.items() if stack[:2] == ("[runnable]", SPINNERS)) / time_us
    if not RUNNABLE_MIN <= runnable <= RUNNABLE_MAX:
        faults.append(f"{SPINNERS} is runnable {runnable:.3f} of the time")
    if types != [("samples", "count"), ("cpu", "nanoseconds"), ("waiting", "nanoseconds")]:
        faults.append(f"pprof has {types}")
    elif sums[0] != samples or sums[2] != total_us * 1000:
        faults.append(f"pprof has {sums}, not {samples} and {total_us} us")
    if total_us != facts["waits"]["total_us"]:
        faults.append(f"{total_us} us, not {facts['waits']}")
    for fault in faults:
        print(fault)
    print(f"waits of {facts['waits']['walks']} walks, {runnable:.2f} runnable spinners, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
