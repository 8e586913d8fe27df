# SPDX-License-Identifier: LGPL-2.1-or-later
"""Adds late slices of made-up domains to a store, and kills `prune`. The checks find damaged files,
lost samples, and samples that count twice.
"""

import gzip
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time

import storing
from storing import DAY, put_slice, uuid_of

DOMAINS = 3
DAYS = 9
TODAY = storing.day_of(int(time.time()))


def state_of(path):
    info = path.stat()
    return info.st_ino, info.st_mtime_ns, info.st_size


def check_functions(sidecar, facts):
    """Checks that the list of functions is complete, if the sidecar names one."""
    functions = sidecar.with_name(sidecar.name.replace(".meta.json", ".functions.gz"))
    assert functions.exists() == (functions.name in facts.get("files", [])), sidecar
    if functions.exists():
        for line in gzip.decompress(functions.read_bytes()).decode().splitlines():
            assert len(line.split("\t")) == 4 and line.split("\t")[3].isdigit(), (functions, line)


def check_files(store, seen=None):
    """Checks that every file with a commit mark is complete. @seen: states of files that need no second check"""
    seen = set() if seen is None else seen
    for sidecar in store.glob("data/*/*.meta.json"):
        profile = sidecar.with_name(sidecar.name.replace(".meta.json", ".folded.gz"))
        state = state_of(sidecar) + state_of(profile)
        if state in seen:
            continue
        seen.add(state)
        facts = json.loads(sidecar.read_text())
        check_functions(sidecar, facts)
        packed = profile.read_bytes()
        text = gzip.decompress(packed).decode()
        total = sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())
        if "slices" not in facts:
            # a sample of a real run may stand for several ticks, if the rate was lowered
            is_real = not sidecar.name.startswith("web-")
            assert total == facts["samples"]["running"] or (is_real and total > facts["samples"]["running"]), sidecar
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
    """A store to which slices are added, and which `prune` works on."""

    def __init__(self, program, folder, rng, configuration=""):
        """@configuration: more elements of the configuration file"""
        self.program, self.rng = program, rng
        self.path = pathlib.Path(folder, "store")
        self.path.mkdir(mode=0o750, exist_ok=True)
        self.config = pathlib.Path(folder, "config.xml")
        # with 3 days, `prune` deletes slices while new ones are added
        self.config.write_text(f'<virt-uprof>{configuration}<store directory="{self.path}" sliceDays="3" '
                               'mergedDays="30" minFreeMegabytes="0"/></virt-uprof>\n')
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

    def start(self, *words):
        return subprocess.Popen([self.program, *words, "-q", "--config", self.config], stdin=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)

    def prune(self, seconds=None, may_be_full=False):
        """Kills `prune` after @seconds. Returns true if it had not ended."""
        process = self.start("prune")
        try:
            _, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return True
        self.check_prune(process.returncode, err.decode(), may_be_full)
        return False

    def check_prune(self, code, said, may_be_full):
        """Checks the result of a `prune` that has ended by itself."""
        if may_be_full and code == 1:
            lines = said.splitlines()
            assert lines and all("No space left on device" in line for line in lines), said
            self.n_full += 1
        else:
            assert code == 0 and said == "", (code, said)

    def prune_and_kill(self, may_be_full=False):
        """Kills `prune` at a random time of its usual length. Returns true if it had not ended."""
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
        """Checks that a last `prune` completes interrupted work and leaves no temporary files."""
        assert not self.prune()
        check_files(self.path)
        self.count_all("at the end")
        left = [path.name for path in self.path.rglob("*") if path.name.endswith(".pending")]
        assert not left, left
        # `prune` removes temporary files when they are a day old
        for path in self.path.rglob(".virt-uprof-*.tmp"):
            os.utime(path, (1, 1))
        assert not self.prune()
        foreign = [path.name for path in self.path.glob("*/*/*") if not re.fullmatch(
            re.escape(path.parent.name) + r"-\d{8}(T\d{6}Z)?\.(folded\.gz|functions\.gz|meta\.json|failures)", path.name)]
        assert not foreign, foreign


def fill_disk(path, spare):
    """Fills the disk with a file, except for @spare bytes."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(65536))
        except OSError:
            pass
    os.truncate(path, max(0, path.stat().st_size - spare))
