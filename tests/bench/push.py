#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
push.py PROGRAM [DOMAINS [RUNS]] - measures what `push` costs for a round of DOMAINS (20) domains

Each round has the samples that `collect` takes by default (20 s at 99 Hz of two vCPUs, about 300
different stacks). The receiver is the strict one of tests/push, with TLS. Prints the processor time and
the most memory (PSS) of the program with all its processes. Fails above 1 s or 32 MiB.
"""

import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "push"), str(TESTS / "lib")]
import receiver as engine  # noqa: E402
import storing  # noqa: E402
from pushing import World, destination  # noqa: E402

CPU_S_MAX, MIB_MAX = 1, 32
STEP_S = 0.005


def processes_of(pid):
    """Returns @pid and its descendants."""
    found = [pid]
    for one in found:
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                text = pathlib.Path(f"/proc/{one}/task/{task}/children").read_text(encoding="ascii")
                found += [int(word) for word in text.split()]
        except OSError:
            pass  # it has ended
    return found


def memory_of(pid):
    """Returns the PSS of a process and its descendants, in MiB."""
    total = 0
    for one in processes_of(pid):
        try:
            lines = pathlib.Path(f"/proc/{one}/smaps_rollup").read_text(encoding="ascii").splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except OSError:
            pass
    return total / 1024


def watch_memory(pid, most, is_over):
    while not is_over.is_set():
        most[0] = max(most[0], memory_of(pid))
        time.sleep(STEP_S)


def cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def push_once(world):
    """Returns the processor time in seconds, the most memory in MiB, and the time in seconds."""
    before, began, most, is_over = cpu_s(), time.monotonic(), [0], threading.Event()
    words = [world.program, "push", "--config", world.config]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        watcher = threading.Thread(target=watch_memory, args=(run.pid, most, is_over))
        watcher.start()
        said = run.communicate()[1]
        is_over.set()
        watcher.join()
    assert run.returncode == 0, said
    return cpu_s() - before, most[0], time.monotonic() - began, said.strip()


def main(program, domains="20", runs="5"):
    world, rows = World(os.path.abspath(program)), []
    authority = engine.make_authority(world.folder, "authority")
    receiver = world.receive(tls=engine.make_context(engine.make_certificate(world.folder, "server", authority)))
    world.configure(destination(receiver, caFile=authority[0]))
    now = int(time.time())
    for i in range(int(runs)):
        for number in range(1, int(domains) + 1):
            stacks = storing.Program(number).stacks(random.Random(number * 100 + i))
            functions = sorted({frame for stack in stacks for frame in stack.split(";") if frame[0] != "["})
            lines = "".join(f"{name}\tlib{len(name)}.so\t/usr/src/{name}.c\t{len(name)}\n" for name in functions)
            world.put(f"web-{number}", number, now - 600 + i, stacks, lines)
        rows.append(push_once(world))
        assert len(receiver.accepted) == int(domains) * (i + 1) and not receiver.faults, receiver.faults
    world.close()
    cpu, memory, taken = ([row[i] for row in rows] for i in range(3))
    print(f"{domains} domains, {runs} rounds ({rows[0][3]}): processor time {statistics.median(cpu):.2f} s "
          f"({min(cpu):.2f} to {max(cpu):.2f}), memory {max(memory):.1f} MiB at most, "
          f"{statistics.median(taken):.2f} s a round", flush=True)  # fmt: skip
    sys.exit(max(cpu) > CPU_S_MAX or max(memory) > MIB_MAX)


if __name__ == "__main__":
    main(*sys.argv[1:])
