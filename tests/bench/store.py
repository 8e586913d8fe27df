#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
store.py PROGRAM [DAYS [DOMAINS [ROUNDS]]] - measures the size of periodic profiles on disk, and the
times of `prune`, `summary`, `history` and `report --since`

Makes the slices of 30 days for 20 domains, 144 slices a day, as `collect` writes them by default
(20 s at 99 Hz of two vCPUs: 1980 samples, about 300 different stacks). Each domain has 60 different
slices, which repeat. Then closes all days at once, as if the host had been off until today, and
measures. Fails if `summary` takes 5 s, or if the store is larger than doc/cost.md says.
"""

import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import storing  # noqa: E402
from storing import DAY, put_slice, uuid_of  # noqa: E402

VARIANTS = 60
SUMMARY_S_MAX = 5
BLOCK = 4096


def make_domain(store, number, days, rounds, today):
    name, rng = f"domain-{number:02d}", random.Random(number)
    program = storing.Program(number)
    first = put_slice(store, name, uuid_of(number), today - DAY, program.stacks(rng))
    folder = pathlib.Path(store, "data", name)
    sidecar = (folder / (first + ".meta.json")).read_bytes()
    variants = []
    for _ in range(VARIANTS):
        stem = put_slice(store, name, uuid_of(number), today - DAY, program.stacks(rng))
        variants.append((folder / (stem + ".folded.gz")).read_bytes())
    for ending in (".folded.gz", ".meta.json"):
        (folder / (first + ending)).unlink()
    stamp = storing.stamp(today - DAY).encode()
    for day in range(1, days + 1):
        for i in range(rounds):
            at = today - day * DAY + i * DAY // rounds + number
            stem = folder / f"{name}-{storing.stamp(at)}"
            started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)).encode()
            text = re.sub(rb'"started": "[^"]*"', b'"started": "' + started + b'"', sidecar)
            pathlib.Path(f"{stem}.folded.gz").write_bytes(rng.choice(variants))
            pathlib.Path(f"{stem}.meta.json").write_bytes(text.replace(stamp, storing.stamp(at).encode()))


def measure(store):
    """The bytes, bytes in blocks, and number of files, of slices, days and summaries."""
    kinds = {"slices": [0, 0, 0], "days": [0, 0, 0], "summaries": [0, 0, 0]}
    for path in store.rglob("*"):
        if not path.is_file():
            continue
        size = path.stat().st_size
        kind = "summaries" if path.suffix == ".txt" else "slices" if "Z." in path.name else "days"
        for i, value in enumerate((size, -(-size // BLOCK) * BLOCK, 1)):
            kinds[kind][i] += value
    return kinds


def take_time(words):
    """Runs a command. Returns seconds, seconds of CPU, the peak of memory in MB, and the output."""
    with tempfile.TemporaryFile() as out:
        started, most = time.monotonic(), 0
        with subprocess.Popen(words, stdout=out) as process:
            status = pathlib.Path(f"/proc/{process.pid}/status")
            while True:
                found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
                most = max(most, int(found.group(1)) if found else 0)
                pid, code, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                time.sleep(0.002)
            process.returncode = os.waitstatus_to_exitcode(code)
        seconds = time.monotonic() - started
        assert process.returncode == 0, (words, process.returncode)
        out.seek(0)
        return seconds, usage.ru_utime + usage.ru_stime, most * 1024 / 1e6, out.read()


def tell(what, seconds, cpu_seconds, memory, more=""):
    print(f"  {what:<26}{seconds:8.2f} s, {cpu_seconds:8.2f} s of CPU, {memory:6.1f} MB of memory{more}", flush=True)


def find_documented(page):
    """The MB of 20 domains and 30 days in doc/cost.md: the size of the files, and the size in blocks."""
    found = re.search(r"(\d+) MB\s+\((\d+) MB\s+in\s+blocks\s+of\s+4\s+KiB\)", page)
    assert found, "doc/cost.md does not say the size"
    return int(found.group(1)), int(found.group(2))


def main():
    program = os.path.abspath(sys.argv[1])
    days, domains, rounds = [int(word) for word in sys.argv[2:]] + [30, 20, 144][len(sys.argv) - 2:]
    page = (pathlib.Path(__file__).resolve().parent.parent.parent / "doc/cost.md").read_text()
    today = storing.day_of(int(time.time()))
    with tempfile.TemporaryDirectory(prefix="virt-uprof-bench-") as folder:
        store = pathlib.Path(folder, "store")
        store.mkdir(mode=0o750)
        for number in range(domains):
            make_domain(store, number, days, rounds, today)
        before = measure(store)
        words = ["--store", store]
        print(f"{days} days of {domains} domains, {rounds} rounds a day")
        print(f"  a slice: {before['slices'][0] / (before['slices'][2] / 2):.0f} bytes in two files")
        for what in ("prune of all days:", "prune, nothing new:"):
            tell(what, *take_time([program, "prune", "-q", *words])[:3])
        *found, text = take_time([program, "summary", *words])
        summary_s = found[0]
        tell("summary:", *found, f", {len(text.splitlines())} lines")
        for since in ("yesterday", "7d", f"{days}d"):
            found = take_time([program, "report", "-q", "--since", since, *words, "domain-00"])
            tell(f"report --since {since}:", *found[:3])
        for shown, more in (
            ("history", []),
            ("history DOMAIN", ["domain-00"]),
            ("history -o FILE", ["domain-00", "-o", pathlib.Path(folder, "history.svg")]),
        ):
            found = take_time([program, "history", *words, *more])
            tell(f"{shown}:", *found[:3])
        after = measure(store)
        total = [sum(kind[i] for kind in after.values()) for i in range(2)]
        for name, (size, used, n) in after.items():
            print(f"  {name:<10} {n:7d} files {size / 1e6:8.1f} MB, in blocks of 4 KiB {used / 1e6:8.1f} MB")
        print(f"  together                {total[0] / 1e6:12.1f} MB, in blocks of 4 KiB {total[1] / 1e6:8.1f} MB")
    failed = summary_s >= SUMMARY_S_MAX
    if (days, domains, rounds) == (30, 20, 144):
        limits = find_documented(page)
        print(f"  doc/cost.md says        {limits[0]:12.1f} MB, in blocks of 4 KiB {limits[1]:8.1f} MB")
        failed = failed or any(size / 1e6 > limit for size, limit in zip(total, limits))
    sys.exit(failed)


if __name__ == "__main__":
    main()
