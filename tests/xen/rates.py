#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
rates.py KIND NAME DOMID SYMBOLS ROUNDS - compares samples of Xen with a bare loop of three calls

The loop (lab-tool) sleeps, pauses the domain, reads the registers, and unpauses the domain. Loop and program
run in turns on the domain NAME, for each rate. The program's CPU time for a sample is that of all its
processes, and the difference of a long and a short run, so that its start and its end do not count. Prints
the medians of all rounds. The lab is emulated, so only ratios of times of one run are meaningful.
"""

import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

RATES = (99, 1000, 5000)
SHORT_S, LONG_S = 2, 10
ROW = "{:<4} {:>6} {:>12} {:>12} {:>6} {:>15} {:>15} {:>6} {:>11} {:>11} {:>6} {:>9} {:>9}"
HEAD = ("", "Hz", "samples/s", "bare loop", "ratio", "CPU us (u+s)", "bare loop", "ratio", "hold p50 us",
        "bare loop", "ratio", "p99 us", "bare loop")


def run_loop(domid, rate):
    done = subprocess.run(["lab-tool", "loop", domid, str(rate), str(LONG_S)], capture_output=True, text=True,
                          check=True)
    found = json.loads(done.stdout)
    return {"rate": found["samples"] / LONG_S, "user": found["user_us"], "system": found["system_us"],
            "p50": found["p50_us"], "p99": found["p99_us"]}


def run_program(name, symbols, rate, seconds):
    """Returns the sidecar, and the CPU time of all processes in user mode and in the kernel, in microseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        sidecar = pathlib.Path(folder) / "x.meta.json"
        subprocess.run(["virt-uprof", "-q", "-F", str(rate), "-d", str(seconds), "--budget", "100",
                        "--max-pause", "1s", "-s", symbols, "-o", sidecar, name],
                       stdin=subprocess.DEVNULL, check=True)
        run = json.loads(sidecar.read_text())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return run, 1e6 * (after.ru_utime - before.ru_utime), 1e6 * (after.ru_stime - before.ru_stime)


def measure_program(name, symbols, rate):
    short, long = (run_program(name, symbols, rate, seconds) for seconds in (SHORT_S, LONG_S))
    samples = long[0]["samples"]["total"] - short[0]["samples"]["total"]
    return {"rate": long[0]["samples"]["total"] * 1000 / long[0]["duration_ms"],
            "user": (long[1] - short[1]) / samples, "system": (long[2] - short[2]) / samples,
            "p50": long[0]["hold_us"]["p50"], "p99": long[0]["hold_us"]["p99"]}


def median_of(rounds, key):
    return statistics.median(found[key] for found in rounds)


def show_row(kind, rate, ours, bare):
    cpu, bare_cpu = (median_of(rounds, "user") + median_of(rounds, "system") for rounds in (ours, bare))
    row = [kind, rate]
    row += [f"{median_of(ours, 'rate'):.0f}", f"{median_of(bare, 'rate'):.0f}",
            f"{median_of(ours, 'rate') / median_of(bare, 'rate'):.2f}"]
    for rounds, total in ((ours, cpu), (bare, bare_cpu)):
        row.append(f"{total:.0f} ({median_of(rounds, 'user'):.0f}+{median_of(rounds, 'system'):.0f})")
    row.append(f"{cpu / bare_cpu:.2f}")
    row += [f"{median_of(ours, 'p50'):.0f}", f"{median_of(bare, 'p50'):.0f}",
            f"{median_of(ours, 'p50') / median_of(bare, 'p50'):.2f}"]
    row += [f"{median_of(ours, 'p99'):.0f}", f"{median_of(bare, 'p99'):.0f}"]
    print(ROW.format(*row), flush=True)


def main():
    kind, name, domid, symbols, n_rounds = sys.argv[1:]
    print(ROW.format(*HEAD))
    for rate in RATES:
        ours, bare = [], []
        for _ in range(int(n_rounds)):
            bare.append(run_loop(domid, rate))
            ours.append(measure_program(name, symbols, rate))
        show_row(kind, rate, ours, bare)


if __name__ == "__main__":
    main()
