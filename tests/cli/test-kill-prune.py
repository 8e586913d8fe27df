#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-kill-prune.py PROGRAM - `prune` killed again and again: no damaged file, no count lost or twice

Each round makes slices come late, starts `prune`, and kills it after a random
time, up to as long as one takes; then every file is read. Once with room enough, and
once on a disk on which there is too little, more or less, in each round; that needs
root. Prints TAP.
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

KILLS, KILLS_FULL = 100, 40
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


class Rounds:
    """A store that slices come to, and that is pruned."""

    def __init__(self, program, folder, rng):
        self.program, self.rng = program, rng
        self.path = pathlib.Path(folder, "store")
        self.path.mkdir(mode=0o750, exist_ok=True)
        self.config = pathlib.Path(folder, "config.xml")
        # old slices go while others come
        self.config.write_text(f'<virt-uprof><store directory="{self.path}" sliceDays="3" mergedDays="30"/></virt-uprof>\n')
        self.config.chmod(0o644)
        self.paths = storing.Program(1, 60)
        self.expected = [0] * DOMAINS
        self.used = set()
        self.longest = 0.0
        self.n_full = 0

    def add(self):
        number, day = self.rng.randrange(DOMAINS), self.rng.randint(1, DAYS)
        at = TODAY - day * DAY + self.rng.randrange(DAY)
        if (number, at) in self.used:
            return
        self.used.add((number, at))
        stacks = self.paths.stacks(self.rng, 50)
        put_slice(self.path, f"web-{number}", uuid_of(number), at, stacks)
        self.expected[number] += sum(stacks.values())

    def prune(self, seconds=None, may_be_full=False):
        """Returns whether it was killed."""
        process = subprocess.Popen([self.program, "prune", "-q", "--config", self.config], stderr=subprocess.PIPE)
        try:
            _, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return True
        if may_be_full and process.returncode == 1:
            lines = err.decode().splitlines()
            assert lines and all("No space left on device" in line for line in lines), err
            self.n_full += 1
        else:
            assert process.returncode == 0 and err == b"", (process.returncode, err)
        return False

    def prune_and_kill(self, may_be_full=False):
        """After a time within that of whole ones. Returns whether it was killed."""
        started = time.monotonic()
        if self.prune(self.rng.uniform(0, self.longest), may_be_full):
            self.longest *= 1.05
            return True
        self.longest = max(0.005, 0.5 * self.longest + 0.5 * (time.monotonic() - started))
        return False

    def count_all(self, why):
        for number in range(DOMAINS):
            found = count(self.program, self.path, uuid_of(number))
            assert found == self.expected[number], (why, number, found, self.expected[number])

    def begin(self):
        for _ in range(120):
            self.add()
        started = time.monotonic()
        assert not self.prune()
        self.longest = time.monotonic() - started

    def end(self):
        """All that was begun is ended, and nothing is left of it."""
        assert not self.prune()
        check_files(self.path)
        self.count_all("at the end")
        left = [path.name for path in self.path.rglob("*") if path.name.endswith(".pending")]
        assert not left, left
        # what was left of writing has no name of ours, and goes when it is a day old
        for path in self.path.rglob(".virt-uprof-*.tmp"):
            os.utime(path, (1, 1))
        assert not self.prune()
        foreign = [path.name for path in self.path.glob("*/*/*") if not re.fullmatch(
            r"web-\d-\d{8}(T\d{6}Z)?\.(folded\.gz|meta\.json)", path.name)]
        assert not foreign, foreign


def run(program, folder, rng):
    rounds = Rounds(program, folder, rng)
    rounds.begin()
    n_killed = n_rounds = 0
    while n_killed < KILLS:
        n_rounds += 1
        assert n_rounds < 20 * KILLS, f"only {n_killed} of {n_rounds} were killed"
        for _ in range(3):
            rounds.add()
        n_killed += rounds.prune_and_kill()
        check_files(rounds.path)
        if n_rounds % 5 == 0:
            rounds.count_all(n_rounds)
    rounds.end()
    print(f"# {n_killed} killed of {n_rounds}")


def fill_disk(path, spare):
    """A file that leaves so many bytes free."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(65536))
        except OSError:
            pass
    os.truncate(path, max(0, path.stat().st_size - spare))


def run_full(program, folder, rng):
    store = pathlib.Path(folder, "store")
    store.mkdir(mode=0o750)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=750", "tmpfs", store],
                                           capture_output=True).returncode != 0:
        return "a small file system cannot be mounted here"
    try:
        rounds = Rounds(program, folder, rng)
        rounds.begin()
        filler = store / "filler"
        n_killed = n_rounds = 0
        while n_killed < KILLS_FULL or rounds.n_full < 3:
            n_rounds += 1
            assert n_rounds < 20 * KILLS_FULL, f"{n_killed} of {n_rounds} were killed, {rounds.n_full} had no room"
            filler.unlink(missing_ok=True)
            for _ in range(3):
                rounds.add()
            fill_disk(filler, rng.randrange(6) * 4096)
            n_killed += rounds.prune_and_kill(may_be_full=True)
            check_files(store)
            if n_rounds % 5 == 0:
                rounds.count_all(n_rounds)
        filler.unlink()
        rounds.end()
        print(f"# {n_killed} killed of {n_rounds}, {rounds.n_full} others had no room")
    finally:
        subprocess.run(["umount", "-l", store], check=True)
    return None


def main():
    program = os.path.abspath(sys.argv[1])
    seed = int(os.environ.get("SEED", time.time_ns()))
    failed = False
    print("1..2")
    for number, (name, test) in enumerate((("kill-prune", run), ("kill-prune-full", run_full)), 1):
        try:
            with tempfile.TemporaryDirectory(prefix="virt-uprof-kill-") as folder:
                skipped = test(program, folder, random.Random(seed))
            print(f"ok {number} {name}" + (f" # SKIP {skipped}" if skipped else ""))
        except AssertionError as error:
            failed = True
            line = error.__traceback__
            while line.tb_next:
                line = line.tb_next
            print(f"not ok {number} {name}\n# seed {seed}, line {line.tb_lineno}: {error}")
        sys.stdout.flush()
    sys.exit(failed)


main()
