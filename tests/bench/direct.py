#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
direct.py PROGRAM HOLD-LOOP NAME SYMBOLS ROUNDS - compares samples of `direct` with a bare loop of holds

Both run in turns on the domain NAME, for each rate. The program's CPU time for a sample is that of all its
threads in the middle of a run, so that its start and its end do not count. Prints the medians of all rounds
with the lowest and the highest.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

RATES = (99, 1000, 5000)
BEGIN_S, TURN_S = 3, 5  # of a run: until it is measured, and while it is
RAM_BYTES_MIN = 16 << 20
ROW = "{:>8} {:>22} {:>22} {:>7} {:>20} {:>20} {:>7}"
HEAD = ("asked Hz", "CPU us a sample", "CPU us, bare loop", "ratio", "hold p50 us", "p50, bare loop", "ratio")


def find_qemu(name):
    """Returns the process, its vCPU thread, and an address of guest memory."""
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"\0guest={name},".encode() not in (path / "cmdline").read_bytes():
                continue
        except OSError:
            continue
        thread = next(task for task in (path / "task").iterdir() if (task / "comm").read_text().startswith("CPU 0/"))
        for line in (path / "maps").read_text().splitlines():
            first, last = (int(part, 16) for part in line.split()[0].split("-"))
            if last - first >= RAM_BYTES_MIN and " rw-" in line:
                return path.name, thread.name, first
    sys.exit(f"direct.py: no QEMU of '{name}'")


def run_loop(loop, qemu, rate):
    process, thread, address = qemu
    done = subprocess.run([loop, process, thread, str(address), str(rate), str(TURN_S)],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def list_processes(process):
    """Returns the numbers of a process and of all its descendants."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[path.name] = (path / "stat").read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
    found = [str(process)]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def sum_cpu_time(processes):
    """Returns the CPU time of all threads of the processes so far, in microseconds."""
    return sum(int((thread / "schedstat").read_text().split()[0]) / 1000
               for process in processes for thread in pathlib.Path("/proc", process, "task").iterdir())  # fmt: skip


def cost_of_samples(program, name, symbols, rate):
    """Returns the CPU time for one sample, and the median hold, in microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        sidecar = pathlib.Path(folder) / "x.meta.json"
        command = [program, "-q", "-F", str(rate), "-d", str(BEGIN_S + TURN_S + 1), "--budget", "100", "--access", "direct",
                   "-s", symbols, "-o", sidecar, name]  # fmt: skip
        with subprocess.Popen(command, stdin=subprocess.DEVNULL) as run:
            time.sleep(BEGIN_S)
            processes = list_processes(run.pid)
            first, began = sum_cpu_time(processes), time.monotonic()
            time.sleep(TURN_S)
            taken, seconds = sum_cpu_time(processes) - first, time.monotonic() - began
        if run.returncode:
            sys.exit(f"direct.py: the program exits {run.returncode}")
        facts = json.loads(sidecar.read_text())
    return taken / (facts["samples"]["total"] * 1000 / facts["duration_ms"] * seconds), facts["hold_us"]["p50"]


def show(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def main():
    program, loop, name, symbols, rounds = sys.argv[1:]
    qemu = find_qemu(name)
    print(ROW.format(*HEAD))
    for rate in RATES:
        cpu, hold, bare_cpu, bare_hold = [], [], [], []
        for _ in range(int(rounds)):
            bare = run_loop(loop, qemu, rate)
            bare_cpu.append(bare["cpu_us"])
            bare_hold.append(bare["p50_us"])
            ours = cost_of_samples(program, name, symbols, rate)
            cpu.append(ours[0])
            hold.append(ours[1])
        print(ROW.format(
            rate, show(cpu), show(bare_cpu), f"{statistics.median(cpu) / statistics.median(bare_cpu):.2f}",
            show(hold), show(bare_hold), f"{statistics.median(hold) / statistics.median(bare_hold):.2f}"), flush=True)


if __name__ == "__main__":
    main()
