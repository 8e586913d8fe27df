#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
compare.py record OLD NEW ROUNDS FOLDER URI DOMAIN ACCESS... - two builds sample one domain in turns
compare.py files OLD NEW ROUNDS FOLDER - two builds report a profile and close a store in turns

Prints for each figure the medians of both builds, and the median, the least and the greatest of the ratios
NEW / OLD of the same round.
"""

import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import storing  # noqa: E402
from storing import DAY  # noqa: E402

RECORD_S = 8
STACKS = 100000
DOMAINS, SLICES = 4, 40
ROW = "{:<28} {:>11} {:>11} {:>7} {:>7} {:>7}"


def run(command):
    """Returns: the seconds of CPU time of @command and all of its processes"""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    text = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if status:
        sys.exit(f"{command} exits {child.returncode}: {text}")
    return usage.ru_utime + usage.ru_stime


def print_rows(what, pairs):
    """@pairs: for each round the figures of OLD and of NEW"""
    for figure in pairs[0][0]:
        olds, news = ([pair[i][figure] for pair in pairs] for i in range(2))
        ratios = [new / old for old, new in zip(olds, news) if old]
        if ratios:
            print(ROW.format(f"{what}: {figure}", f"{statistics.median(olds):.4g}", f"{statistics.median(news):.4g}",
                             f"{statistics.median(ratios):.3f}", f"{min(ratios):.3f}", f"{max(ratios):.3f}"))  # fmt: skip


def compare(what, programs, rounds, measure):
    pairs = []
    for i in range(int(rounds) + 1):
        order = (0, 1) if i % 2 else (1, 0)
        figures = {which: measure(programs[which]) for which in order}
        pairs.append((figures[0], figures[1]))
    print_rows(what, pairs[1:])  # the first round warms up


def compare_record(programs, rounds, folder, uri, domain, accesses):
    sidecar = folder / "x.meta.json"

    def measure(program):
        cpu = run([program, "-q", "-c", uri, "record", "--access", access, "--budget", "50", "--max-pause", "1s",
                   "-d", str(RECORD_S), "-o", folder / "x.folded", "-o", sidecar, domain])  # fmt: skip
        facts = json.loads(sidecar.read_text())
        holds = facts["hold_us"]
        return {
            "CPU us a sample": cpu * 1e6 / facts["samples"]["total"],
            "samples a second": facts["rate"]["got_millihertz"] / 1000,
            "hold p50 us": holds["p50"],
            "hold p99 us": holds["p99"],
        }

    for access in accesses:
        compare(access, programs, rounds, measure)


def compare_report(programs, rounds, folder):
    with open(folder / "large", "w") as out:
        for i in range(STACKS):
            path = ("function_%d" % (i // 6 ** (7 - level)) for level in range(8))
            out.write("vm;%s;leaf_%d %d\n" % (";".join(path), i, 1 + i % 19))
    for ending in ("folded", "svg"):
        output = folder / ("large." + ending)
        compare("report " + ending, programs, rounds,
                lambda program: {"CPU s": run([program, "report", "-q", "-o", output, folder / "large"])})  # fmt: skip


def compare_prune(programs, rounds, folder):
    """Two builds write days in different ways, so each run gets a new store."""
    today = storing.day_of(int(time.time()))
    model = folder / "model"
    for number in range(DOMAINS):
        rng, stacks = random.Random(number), storing.Program(number)
        for i in range(SLICES):
            storing.put_slice(model, f"domain-{number}", storing.uuid_of(number), today - DAY + i * 600, stacks.stacks(rng))
    config = folder / "config.xml"
    store = folder / "store"
    config.write_text(f'<virt-uprof><store directory="{store}" minFreeMegabytes="0"/></virt-uprof>\n')
    config.chmod(0o644)

    def measure(program):
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(model, store)
        return {"CPU s": run([program, "prune", "-q", "--config", config])}

    compare("prune", programs, rounds, measure)


def main():
    what, old, new, rounds, folder = sys.argv[1:6]
    folder = pathlib.Path(folder)
    print(ROW.format("", "old", "new", "ratio", "least", "most"))
    if what == "record":
        compare_record((old, new), rounds, folder, sys.argv[6], sys.argv[7], sys.argv[8:])
    else:
        compare_report((old, new), rounds, folder)
        compare_prune((old, new), rounds, folder)


if __name__ == "__main__":
    main()
