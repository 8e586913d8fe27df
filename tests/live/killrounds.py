#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
killrounds.py PROGRAM URI FOLDER NAME... - kills `collect` and `prune` again and again, over one store

FOLDER is an empty small file system. Every third time it has little free space, or none. NAMEs are
domains that run. `collect` samples one of them, or all. `prune` merges late slices of other
domains. Sometimes both run at the same time. Each process is killed at a random time within its
usual duration. Sometimes only one step of a round is killed, and the round continues.

After each kill, no process of the killed command is left, both locks are free, every guest runs and
is not traced, and every file is complete. Stored slices do not change. Now and then, and at the
end, the script counts the stored samples, none of which may be lost.
"""

import fcntl
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from pruning import DAY, Rounds, check_files, fill_disk  # noqa: E402

# The environment variable UPROF_LIVE_KILLS is the number of kills.
KILLS = int(os.environ.get("UPROF_LIVE_KILLS", "40"))
KILLS_OF_EACH = KILLS // 3
STEPS = 3
SECONDS = 30  # a guest must run again within this time, even on a busy machine
AWAY_SECONDS = 30
UNREACHED = 4
ROUND_SECONDS = 300
LOCK = pathlib.Path("/run/virt-uprof/collect.lock")
BLOCK = 4096

PROGRAM, URI, FOLDER, *NAMES = sys.argv[1:]
CONFIGURATION = (f'<profile rate="500" duration="50ms" budget="50"/><collect connect="{URI}" domains="*"/>'
                 '<limits rate="500" duration="60s" budget="50"/>'
                 '<destination name="engine" type="parca" url="http://127.0.0.1:9"/>')


def virsh(*words):
    """Runs virsh, and again while the daemon is down: killed clients make it crash now and then."""
    end = time.monotonic() + AWAY_SECONDS
    while True:
        done = subprocess.run(["virsh", "-q", "-c", URI, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, env={**os.environ, "LC_ALL": "C"})
        if done.returncode == 0:
            return done.stdout
        assert time.monotonic() < end, (words, done.stderr)
        time.sleep(0.5)


def wait_until(condition, why, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, why
        time.sleep(0.02)


def is_free(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def find_processes(*words):
    """The numbers of all processes whose command line has all @words."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if all(word in line for word in words):
            found.append(int(path.parent.name))
    return found


class Guest:
    """A domain that must run."""

    def __init__(self, name):
        self.name = name
        self.uuid = virsh("domuuid", "--", name).strip()
        self.pid = find_processes("qemu-system", f"-uuid\0{self.uuid}")[0]

    def is_free(self):
        """No thread of its QEMU is stopped or traced."""
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            status = (task / "status").read_text()
            if "TracerPid:\t0\n" not in status or "State:\tt" in status or "State:\tT" in status:
                return False
        return True


class Kills(Rounds):
    """The kills, and the checks after each kill."""

    def __init__(self, rng):
        super().__init__(PROGRAM, FOLDER, rng, CONFIGURATION)
        self.guests = [Guest(name) for name in NAMES]
        self.filler = pathlib.Path(FOLDER, "filler")
        self.stored = {}
        self.seen = set()
        self.lengths = {"collect": 2.0, "prune": 0.5}
        self.killed = {"collect": 0, "prune": 0}
        self.n_steps = self.n_both = self.n_with_full = 0
        self.is_full = False

    def find_stored(self):
        """The files of all slices that rounds have stored with a commit mark."""
        found = {}
        for sidecar in self.path.glob("data/*/*Z.meta.json"):
            if not sidecar.name.startswith("web-"):
                files = [sidecar.with_name(sidecar.name.replace(".meta.json", ending))
                         for ending in (".meta.json", ".folded.gz", ".functions.gz")]  # fmt: skip
                found[sidecar] = [file.read_bytes() for file in files]
        return found

    def check(self):
        wait_until(lambda: not find_processes(PROGRAM, str(self.config)), "something of it lives on", AWAY_SECONDS)
        for path in (LOCK, self.path):
            assert is_free(path), f"'{path}' is locked"
        wait_until(lambda: {guest.uuid for guest in self.guests} <= set(virsh("list", "--uuid", "--state-running").split()),
                   "a guest was left stopped")
        for guest in self.guests:
            wait_until(guest.is_free, f"'{guest.name}' is traced, or a thread of it is stopped")
        check_files(self.path, self.seen)
        now = self.find_stored()
        assert all(now.get(path) == files for path, files in self.stored.items()), "what was stored has changed"
        self.stored = now

    def check_collect(self, code, said):
        """Checks the result of a round that was not killed itself."""
        assert code in (0, 4, 5, 6), (code, said)
        full = [line for line in said.splitlines() if "No space left on device" in line]
        assert self.is_full or not full, said
        self.n_full += bool(full)

    def fill(self):
        self.filler.unlink(missing_ok=True)
        for _ in range(2):
            self.add()
        self.is_full = self.rng.randrange(3) == 0
        if self.is_full:
            fill_disk(self.filler, self.rng.randrange(5) * BLOCK)

    def begin_one(self, command):
        words = []
        if command == "collect" and self.rng.randrange(5) > 0:
            words = [self.rng.choice(self.guests).uuid]
        return self.start(command, *words)

    def kill(self, *commands):
        """Starts the commands together, and kills each at its own random time."""
        now = time.monotonic()
        running = [[now + self.rng.uniform(0, self.lengths[command]), command, self.begin_one(command)]
                   for command in commands]
        killed = 0
        for when, command, process in sorted(running, key=lambda row: row[0]):
            try:
                said = process.communicate(timeout=max(0, when - time.monotonic()))[1].decode()
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                self.lengths[command] *= 1.05
                self.killed[command] += 1
                killed += 1
                continue
            self.lengths[command] = max(0.02, 0.5 * self.lengths[command] + 0.5 * (time.monotonic() - now))
            if command == "prune":
                self.check_prune(process.returncode, said, self.is_full)
            else:
                self.check_collect(process.returncode, said)
        self.n_with_full += killed if self.is_full else 0
        self.n_both += killed == 2

    def kill_step(self):
        """Kills one step of a round, if a step runs at that time."""
        process = self.begin_one("collect")
        time.sleep(self.rng.uniform(0, self.lengths["collect"]))
        try:
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for pid in children[:1]:
                os.kill(int(pid), 9)
        except (FileNotFoundError, ProcessLookupError):
            children = []
        said = process.communicate(timeout=ROUND_SECONDS)[1].decode()
        self.check_collect(process.returncode, said)
        self.n_steps += bool(children)

    def go_round(self):
        """Runs a round that is not killed. Repeats it once if the daemon was down, or if QEMU did
        not answer its monitor for a long time, which happens on a busy machine."""
        for _ in range(2):
            process = self.start("collect", "-d", "2s")
            said = process.communicate(timeout=ROUND_SECONDS)[1].decode()
            if process.returncode != UNREACHED and (process.returncode != 6
                                                    or "its run took too long and was ended" not in said):
                break
            virsh("list")
        assert process.returncode == 0, (process.returncode, said)
        self.check()

    def n_killed(self):
        return sum(self.killed.values())

    def is_done(self):
        return (self.n_killed() >= KILLS and min(self.killed.values()) >= KILLS_OF_EACH and self.n_steps >= STEPS
                and self.n_with_full >= KILLS // 5 and self.n_full > 0 and self.n_both > 0)


def run(kills):
    kills.begin()
    kills.go_round()
    ways = [("collect",)] * 2 + [("prune",)] * 3 + [("collect", "prune")] * 4 + [()]
    n_rounds = 0
    while not kills.is_done():
        n_rounds += 1
        assert n_rounds < 10 * KILLS, vars(kills)
        kills.fill()
        commands = kills.rng.choice(ways)
        if commands:
            kills.kill(*commands)
        else:
            kills.kill_step()
        kills.check()
        if n_rounds % 10 == 0:
            kills.count_all(n_rounds)
    kills.filler.unlink(missing_ok=True)
    before = len(kills.stored)
    kills.go_round()
    assert len(kills.stored) >= before + len(NAMES), "a round has not stored all"
    kills.end()
    print(f"{kills.killed} killed in {n_rounds} rounds, {kills.n_both} times both, {kills.n_with_full} times while it "
          f"was full, and {kills.n_steps} steps; {kills.n_full} others had no room; {len(kills.stored)} slices are whole")


def main():
    if DAY - int(time.time()) % DAY < 300:
        time.sleep(301)  # the day must not end during the test
    seed = int(os.environ.get("SEED", time.time_ns()))
    try:
        run(Kills(random.Random(seed)))
    except AssertionError as error:
        line = error.__traceback__
        while line.tb_next:
            line = line.tb_next
        sys.exit(f"killrounds.py: seed {seed}, line {line.tb_lineno}: {error}")


main()
