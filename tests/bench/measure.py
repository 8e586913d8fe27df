#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
measure.py PROGRAM URI TCP-URI NAME TCG|KVM SYMBOLS COUNTER WINDOWS RESULT - measures one guest
measure.py --head many|one - prints the head of a table
measure.py --many PROGRAM URI IDLE BUSY RESULT - measures the profiler while it samples all
    domains of URI; IDLE and BUSY are the numbers of idle and busy domains
measure.py --join RESULT FILE... - joins result files

Prints a row for each access method; tests/bench/run describes the columns.
"""

import contextlib
import json
import os
import pathlib
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

WINDOW_S = 4
# The wait after the start of a run: connecting and trial holds are not measured.
SETTLE_S = 2.5
# The windows of a run that is stopped and continued.
SHORT_S = 0.25
SHORT_SETTLE_S = 0.05
SHORT_PER_WINDOW = 20
ROW = "{:<4} {:<26} {:>8} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7} {:>9} {:>6}"
HEAD = ("", "access", "asked Hz", "budget", "p50 us", "p90 us", "p99 us", "max us", "got Hz",
        "held %", "cpu us", "slower %", "noise")
MANY_ROW = "{:>7} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}"
MANY_HEAD = ("idle", "busy", "cpu %", "MiB", "later", "p50 us", "p99 us", "late %")
MANY_S = 20

# A row is a label, the rate, the budget (None: the default), arguments, true for memory reads by
# peeks over TCP, and true if the row needs KVM.
WAYS = (
    ("direct", 99, None, ("--access", "direct"), False, True),
    ("direct", 1000, None, ("--access", "direct"), False, True),
    ("direct", 5000, 100, ("--access", "direct"), False, True),
    ("direct", 20000, 100, ("--access", "direct"), False, True),
    ("monitor", 99, None, ("--access", "monitor"), False, False),
    ("monitor", 1000, 100, ("--access", "monitor", "--max-pause", "1s"), False, False),
    ("monitor --no-pause", 99, None, ("--access", "monitor", "--no-pause"), False, True),
    ("monitor --no-pause", 1000, 100, ("--access", "monitor", "--no-pause"), False, True),
    ("monitor, peeks over TCP", 99, None, ("--access", "monitor"), True, False),
)


class Guest:
    """Reads the guest's counter from QEMU's memory, without any effect on the guest."""

    def __init__(self, uri, name, address):
        info = subprocess.run(
            ["virsh", "-q", "-c", uri, "dominfo", name], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"},
        ).stdout
        size = 1024 * int(re.search(r"^Max memory:\s+(\d+) KiB$", info, re.M)[1])
        process = self.find_process(name)
        for line in (process / "maps").read_text(encoding="utf-8").splitlines():
            first, last = (int(part, 16) for part in line.split()[0].split("-"))
            if last - first == size:
                break
        else:
            sys.exit(f"measure.py: QEMU of '{name}' has no {size} bytes in one piece")
        self.place = first + int(address, 16)
        self.memory = (process / "mem").open("rb", buffering=0)

    @staticmethod
    def find_process(name):
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if f"\0guest={name},".encode() in path.read_bytes():
                    return path.parent
        sys.exit(f"measure.py: no QEMU of '{name}'")

    def count(self):
        self.memory.seek(self.place)
        return int.from_bytes(self.memory.read(8), "little"), time.monotonic()

    def speed(self, seconds=WINDOW_S):
        """The rounds of work per second, over one window."""
        one, began = self.count()
        time.sleep(seconds)
        other, ended = self.count()
        return (other - one) / (ended - began)


def compare(free, sampled):
    """Returns the slowdown of the guest in percent, and the difference between two halves of the
    free windows."""
    def slower(one, other):
        return 100 * (1 - statistics.median(one) / statistics.median(other))
    return {"free_per_s": free, "sampled_per_s": sampled,
            "slower_percent": slower(sampled, free),
            "noise_percent": abs(slower(free[::2], free[1::2]))}


def alternate(guest, run, windows):
    """Stops and continues one run in turns, in many short windows, because a machine's speed
    drifts by more than sampling costs. Only for accesses that have no effect on the guest
    between two holds."""
    free, sampled = [], []
    for window in range(windows * SHORT_PER_WINDOW):
        # Windows with and without sampling come first equally often.
        for is_sampled in (True, False) if window % 2 else (False, True):
            run.send_signal(signal.SIGCONT if is_sampled else signal.SIGTSTP)
            time.sleep(SHORT_SETTLE_S)
            (sampled if is_sampled else free).append(guest.speed(SHORT_S))
    run.send_signal(signal.SIGCONT)
    return compare(free, sampled)


def measure(program, guest, uri, name, symbols, arguments, windows):
    """Measures windows with and without sampling in turns. The lengths of holds are from runs that
    are not stopped."""
    facts = {"runs": []}
    free, sampled = [], []

    def begin():
        run = subprocess.Popen(
            [program, "-q", "-c", uri, "-d", "0", "-s", symbols, "-o", str(sidecar), *arguments,
             name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(SETTLE_S)
        return run

    def end(run):
        if run.poll() is not None:
            sys.exit(f"measure.py: the run has ended early: {run.returncode}")
        run.terminate()
        if run.wait(timeout=60) != 0:
            sys.exit(f"measure.py: exit {run.returncode}")

    with tempfile.TemporaryDirectory() as folder:
        sidecar = pathlib.Path(folder) / "x.meta.json"
        for _ in range(windows):
            free.append(guest.speed())
            run = begin()
            sampled.append(guest.speed())
            end(run)
            now = json.loads(sidecar.read_text(encoding="utf-8"))
            facts["runs"].append({
                key: now[key]
                for key in ("samples", "rate", "ticks", "stacks", "hold_us", "stopped_us",
                            "held_share_ppm", "profiler_cpu_ms", "duration_ms")
            })
        if "direct" in arguments:
            run = begin()
            facts |= alternate(guest, run, windows)
            end(run)
        else:
            facts |= compare(free, sampled)
    return facts


def middle(facts, *keys):
    """The median over all runs of one value."""
    values = []
    for value in facts["runs"]:
        for key in keys:
            value = value[key]
        values.append(value)
    return statistics.median(values)


def print_row(way, access, rate, budget, facts):
    hold = [round(middle(facts, "hold_us", key)) for key in ("p50", "p90", "p99")]
    most = max(run["hold_us"]["max"] for run in facts["runs"])
    cpu = [1000 * run["profiler_cpu_ms"] / run["samples"]["total"] for run in facts["runs"]]
    print(ROW.format(
        way, access, rate, budget or "default", *hold, most,
        f"{middle(facts, 'rate', 'got_millihertz') / 1000:.1f}",
        f"{middle(facts, 'held_share_ppm') / 10000:.1f}",
        f"{statistics.median(cpu):.0f}",
        f"{facts['slower_percent']:.1f}", f"{facts['noise_percent']:.1f}"), flush=True)


def main(program, uri, tcp, name, way, symbols, address, windows, result):
    guest = Guest(uri, name, address)
    rows = []
    for access, rate, budget, arguments, over_tcp, only_kvm in WAYS:
        if only_kvm and way != "KVM":
            continue
        asked = ("-F", str(rate)) + (("--budget", str(budget)) if budget else ())
        facts = measure(program, guest, tcp if over_tcp else uri, name, symbols,
                        asked + arguments, int(windows))
        if not facts["runs"] or not middle(facts, "samples", "total"):
            sys.exit("measure.py: no samples")
        print_row(way, access, rate, budget, facts)
        rows.append({"guest": way, "access": access, "rate": rate, "budget": budget, **facts})
    pathlib.Path(result).write_text(json.dumps(rows), encoding="utf-8")


def usage(pid):
    """The CPU seconds and the resident MiB of a process."""
    times = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return ((int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"),
            pages * os.sysconf("SC_PAGE_SIZE") / 1048576)


def many(program, uri, idle, busy, result):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.Popen(
            [program, "-q", "-c", uri, "-F", "99", "-d", "0", "--all", "-o",
             f"{folder}/%d.meta.json"], stdin=subprocess.DEVNULL)
        # The opening of fifty domains is not measured.
        time.sleep(5 + int(idle) / 5)
        began, (cpu, memory) = time.monotonic(), usage(run.pid)
        time.sleep(MANY_S)
        ended, (cpu_later, memory_later) = time.monotonic(), usage(run.pid)
        run.terminate()
        if run.wait(timeout=120) != 0:
            sys.exit(f"measure.py: exit {run.returncode}")
        facts = [json.loads(path.read_text(encoding="utf-8"))
                 for path in pathlib.Path(folder).iterdir()]
    if len(facts) != int(idle) + int(busy) or any(one["access"] != "direct" for one in facts):
        sys.exit("measure.py: not all domains were sampled by direct access")
    hold = max(facts, key=lambda one: one["hold_us"]["count"])["hold_us"]
    late = sum(one["ticks"]["late"] for one in facts)
    ticks = late + sum(one["samples"]["total"] for one in facts)
    row = {"idle": int(idle), "busy": int(busy),
           "cpu_percent": 100 * (cpu_later - cpu) / (ended - began), "mib": memory,
           "mib_later": memory_later, "hold_us": hold, "late": late, "ticks": ticks}
    print(MANY_ROW.format(idle, busy, f"{row['cpu_percent']:.1f}", f"{memory:.1f}",
                          f"{memory_later:.1f}", hold["p50"], hold["p99"],
                          f"{100 * late / ticks:.1f}"), flush=True)
    pathlib.Path(result).write_text(json.dumps([row]), encoding="utf-8")


def join(result, *files):
    rows = [row for file in files for row in json.loads(pathlib.Path(file).read_text())]
    facts = {
        "machine": platform.platform(), "cpus": os.cpu_count(), "window_s": WINDOW_S, "rows": rows,
    }
    pathlib.Path(result).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) >= 4 and sys.argv[1] == "--join":
        join(*sys.argv[2:])
    elif sys.argv[1:2] == ["--head"]:
        print(MANY_ROW.format(*MANY_HEAD) if sys.argv[2] == "many" else ROW.format(*HEAD))
    elif len(sys.argv) == 7 and sys.argv[1] == "--many":
        many(*sys.argv[2:])
    elif len(sys.argv) == 10:
        main(*sys.argv[1:])
    else:
        sys.exit(__doc__)
