#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-kill-prune.py PROGRAM - `prune` killed a hundred times: no damaged file, no count lost or twice

Each round makes slices come late, starts `prune`, and kills it after a random
time, up to as long as one takes; then every file is read. Prints TAP.
"""

import gzip
import hashlib
import json
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

ROUNDS = 100
DOMAINS = 3
DAYS = 9
TODAY = storing.day_of(int(time.time()))


def check_files(store):
    """Every file with a commit mark is whole, whatever else is there."""
    for sidecar in store.glob("data/*/*.meta.json"):
        facts = json.loads(sidecar.read_text())
        profile = sidecar.with_name(sidecar.name.replace(".meta.json", ".folded.gz"))
        packed = profile.read_bytes()
        text = gzip.decompress(packed).decode()
        total = sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())
        if "slices" not in facts:
            assert total == facts["samples"]["running"], sidecar
            continue
        pending = sidecar.with_name(sidecar.name.replace(".meta.json", ".pending"))
        known = [facts] + ([json.loads(pending.read_text())] if pending.exists() else [])
        digest = hashlib.sha256(packed).hexdigest()
        found = [one for one in known if one["profile_sha256"] == digest]
        assert len(found) == 1, f"{sidecar}: of another profile"
        assert total == found[0]["samples"]["running"], sidecar
        assert len(set(found[0]["slices"])) == len(found[0]["slices"]), sidecar
    for summary in store.glob("summary/*.txt"):
        assert summary.read_text().endswith("\n") and " UTC: " in summary.read_text(), summary


def count(program, store, uuid):
    done = subprocess.run([program, "report", "-q", "-f", "folded", "--since", "40d", "--store", store, uuid],
                          capture_output=True, timeout=60)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return sum(int(line.rsplit(" ", 1)[1]) for line in done.stdout.decode().splitlines())


def prune(program, config, seconds=None):
    """Returns whether it was killed."""
    process = subprocess.Popen([program, "prune", "-q", "--config", config], stderr=subprocess.PIPE)
    try:
        _, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True
    assert process.returncode == 0 and err == b"", (process.returncode, err)
    return False


def run(program):
    rng = random.Random(int(os.environ.get("SEED", time.time_ns())))
    program_of = storing.Program(1, 60)
    expected = [0] * DOMAINS
    used = set()

    def add(store):
        number, day = rng.randrange(DOMAINS), rng.randint(1, DAYS)
        at = TODAY - day * DAY + rng.randrange(DAY)
        if (number, at) in used:
            return
        used.add((number, at))
        stacks = program_of.stacks(rng, 50)
        put_slice(store, f"web-{number}", uuid_of(number), at, stacks)
        expected[number] += sum(stacks.values())

    with tempfile.TemporaryDirectory(prefix="virt-uprof-kill-") as folder:
        store = pathlib.Path(folder, "store")
        store.mkdir(mode=0o750)
        config = pathlib.Path(folder, "config.xml")
        # old slices go while others come
        config.write_text(f'<virt-uprof><store directory="{store}" sliceDays="3" mergedDays="30"/></virt-uprof>\n')
        config.chmod(0o644)
        for _ in range(120):
            add(store)
        started = time.monotonic()
        assert not prune(program, config)
        longest, n_killed, n_rounds = time.monotonic() - started, 0, 0
        while n_killed < ROUNDS:
            n_rounds += 1
            assert n_rounds < 20 * ROUNDS, f"only {n_killed} of {n_rounds} were killed"
            for _ in range(3):
                add(store)
            started = time.monotonic()
            if prune(program, config, rng.uniform(0, longest)):
                n_killed += 1
                longest *= 1.05
            else:
                longest = max(0.005, 0.5 * longest + 0.5 * (time.monotonic() - started))
            check_files(store)
            if n_rounds % 5 == 0:
                for number in range(DOMAINS):
                    found = count(program, store, uuid_of(number))
                    assert found == expected[number], (n_rounds, number, found, expected[number])
        assert not prune(program, config)
        check_files(store)
        for number in range(DOMAINS):
            assert count(program, store, uuid_of(number)) == expected[number], number
        left = [path.name for path in store.rglob("*") if path.name.endswith(".pending")]
        assert not left, left
        # what was left of writing has no name of ours, and goes when it is a day old
        for path in store.rglob(".virt-uprof-*.tmp"):
            os.utime(path, (1, 1))
        assert not prune(program, config)
        foreign = [path.name for path in store.glob("*/*/*") if not re.fullmatch(
            r"web-\d-\d{8}(T\d{6}Z)?\.(folded\.gz|meta\.json)", path.name)]
        assert not foreign, foreign
        print(f"# {n_killed} killed of {n_rounds}")


print("1..1")
try:
    run(os.path.abspath(sys.argv[1]))
    print("ok 1 kill-prune")
except AssertionError as error:
    line = error.__traceback__
    while line.tb_next:
        line = line.tb_next
    print(f"not ok 1 kill-prune\n# line {line.tb_lineno}: {error}")
    sys.exit(1)
