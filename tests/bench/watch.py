#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
watch.py PROGRAM URI WAY DOMAINS SECONDS FOLDER - measures `watch` on all domains of URI

Prints the CPU time of the program and its workers in percent of one core for each domain, and their
memory (PSS) after a minute and at the end. Then asks for a profile of each domain. Fails if a domain
takes more than 1 % of a core, or if a profile does not have the samples of the time that `watch` keeps.
"""

import atexit
import json
import os
import pathlib
import re
import subprocess
import sys
import time

CPU_PERCENT_MAX = 1
KEEP_S = 300
OPEN_S = 60  # the opening of the domains is not measured
TICKS = os.sysconf("SC_CLK_TCK")


def stat_of(pid):
    """The parent of a process, and the CPU seconds of the process and of its ended children."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(words[1]), sum(int(word) for word in words[11:15]) / TICKS


def processes_of(root):
    """The process and its descendants, each with its CPU seconds."""
    stats = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stats[int(path.name)] = stat_of(path.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    found = {root: stats[root][1]}
    while True:
        more = {pid: cpu for pid, (parent, cpu) in stats.items() if parent in found and pid not in found}
        if not more:
            return found
        found.update(more)


def usage(root):
    """The CPU seconds and the MiB of a process with all its descendants."""
    processes, kib = processes_of(root), 0
    for pid in processes:
        found = re.search(r"^Pss:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
        kib += int(found.group(1))
    return sum(processes.values()), kib / 1024


def main(program, uri, way, domains, seconds, folder):
    domains, seconds, out = int(domains), int(seconds), pathlib.Path(folder, "profiles")
    out.mkdir()
    words = [program, "watch", "-q", "-c", uri, "--all", "--keep", f"{KEEP_S}s", "-o", f"{out}/%d.meta.json"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as run:
        atexit.register(run.kill)
        time.sleep(OPEN_S)
        began, (cpu, mib) = time.monotonic(), usage(run.pid)
        time.sleep(seconds)
        taken, (cpu_later, mib_later) = time.monotonic() - began, usage(run.pid)
        names = subprocess.run(["virsh", "-q", "-c", uri, "list", "--name"], check=True, capture_output=True,
                               text=True).stdout.split()
        for name in names:
            subprocess.run([program, "watch", "-q", "--now", name], check=False, stdout=subprocess.DEVNULL)
        run.terminate()
        assert run.wait(timeout=120) == 0, run.returncode
    percent = 100 * (cpu_later - cpu) / taken / domains
    facts = [json.loads(path.read_text(encoding="utf-8")) for path in out.glob("*.meta.json")]
    times = [one["duration_ms"] / 1000 for one in facts]
    samples = sum(one["samples"]["total"] for one in facts)
    print(f"{domains} domains on {way}, {taken:.0f} s: {percent:.2f} % of a core for each domain; memory "
          f"{mib:.0f} MiB after {OPEN_S} s, {mib_later:.0f} MiB at the end; {samples} samples of "
          f"{min(times, default=0):.0f} to {max(times, default=0):.0f} s in {len(facts)} profiles", flush=True)
    kept = min(KEEP_S, seconds)
    sys.exit(percent > CPU_PERCENT_MAX or len(facts) != domains or min(times) < kept * 0.95 or
             max(times) > KEEP_S + 15)


if __name__ == "__main__":
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    main(*sys.argv[1:])
