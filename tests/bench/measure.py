#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
measure.py PROGRAM URI TCP-URI NAME TCG|KVM SYMBOLS COUNTER WINDOWS RESULT - measures one guest
measure.py --join RESULT FILE... - puts results of several guests together

Prints a row for each access and budget; run says what is measured.
"""

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

WINDOW_S = 4
# After a run has begun: connecting and the trial holds are not what is measured.
SETTLE_S = 2.5
ROW = "{:<4} {:<26} {:>7} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>9}"
HEAD = ("", "access", "budget", "p50 us", "p90 us", "p99 us", "max us", "Hz", "held %", "slower %")

# Label, arguments, whether memory comes by peeks over TCP, KVM only.
ACCESSES = (
    ("monitor", (), False, False),
    ("monitor --no-pause", ("--no-pause",), False, True),
    ("monitor, peeks over TCP", (), True, False),
)
# Label, arguments: as a user would have it, and as much as can be had.
BUDGETS = (
    ("default", ("-F", "99")),
    ("100", ("-F", "1000", "--budget", "100", "--max-pause", "1s")),
)


class Guest:
    def __init__(self, uri, name, address):
        self.command = ["virsh", "-q", "-c", uri, "qemu-monitor-command", name, "--hmp",
                        f"xp/1gx {address}"]

    def count(self):
        """The counter, and the moment at which it was read, as near as we know."""
        before = time.monotonic()
        reply = subprocess.run(
            self.command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        return int(reply.stdout.split()[-1], 16), (before + time.monotonic()) / 2

    def speed(self):
        """Rounds of work in a second, over one window."""
        one, began = self.count()
        time.sleep(WINDOW_S)
        other, ended = self.count()
        return (other - one) / (ended - began)


def measure(program, guest, uri, name, symbols, arguments, windows):
    """Alternating windows; the facts are those of the last run."""
    free, sampled, facts = [], [], None
    with tempfile.TemporaryDirectory() as folder:
        sidecar = pathlib.Path(folder) / "x.meta.json"
        for _ in range(windows):
            free.append(guest.speed())
            run = subprocess.Popen(
                [program, "-q", "-c", uri, "-d", "60", "-s", symbols, "-o", str(sidecar),
                 *arguments, name],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )
            time.sleep(SETTLE_S)
            sampled.append(guest.speed())
            if run.poll() is not None:
                sys.exit(f"measure.py: the run has ended early: {run.returncode}")
            run.terminate()
            if run.wait(timeout=60) != 0:
                sys.exit(f"measure.py: exit {run.returncode}")
            now = json.loads(sidecar.read_text(encoding="utf-8"))
            facts = facts or {"runs": []}
            facts["runs"].append({
                key: now[key]
                for key in ("samples", "rate", "ticks", "stacks", "hold_us", "stopped_us",
                            "held_share_ppm", "profiler_cpu_ms", "duration_ms")
            })
    facts["free_per_s"], facts["sampled_per_s"] = free, sampled
    facts["slower_percent"] = 100 * (1 - statistics.median(sampled) / statistics.median(free))
    return facts


def middle(facts, *keys):
    """The median over runs."""
    values = []
    for value in facts["runs"]:
        for key in keys:
            value = value[key]
        values.append(value)
    return statistics.median(values)


def print_row(way, access, budget, facts):
    hold = [round(middle(facts, "hold_us", key)) for key in ("p50", "p90", "p99")]
    most = max(run["hold_us"]["max"] for run in facts["runs"])
    print(ROW.format(
        way, access, budget, *hold, most,
        f"{middle(facts, 'rate', 'got_millihertz') / 1000:.1f}",
        f"{middle(facts, 'held_share_ppm') / 10000:.1f}",
        f"{facts['slower_percent']:.1f}"), flush=True)


def main(program, uri, tcp, name, way, symbols, address, windows, result):
    guest = Guest(uri, name, address)
    rows = []
    print(ROW.format(*HEAD), flush=True)
    for access, extra, over_tcp, only_kvm in ACCESSES:
        if only_kvm and way != "KVM":
            continue
        for budget, asked in BUDGETS:
            facts = measure(program, guest, tcp if over_tcp else uri, name, symbols,
                            asked + extra, int(windows))
            if not facts["runs"] or not middle(facts, "samples", "total"):
                sys.exit("measure.py: no samples")
            print_row(way, access, budget, facts)
            rows.append({"guest": way, "access": access, "budget": budget, **facts})
    pathlib.Path(result).write_text(json.dumps(rows), encoding="utf-8")


def join(result, *files):
    rows = [row for file in files for row in json.loads(pathlib.Path(file).read_text())]
    facts = {
        "machine": platform.platform(), "cpus": os.cpu_count(), "window_s": WINDOW_S, "rows": rows,
    }
    pathlib.Path(result).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) >= 4 and sys.argv[1] == "--join":
        join(*sys.argv[2:])
    elif len(sys.argv) == 10:
        main(*sys.argv[1:])
    else:
        sys.exit(__doc__)
