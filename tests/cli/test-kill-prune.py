#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-kill-prune.py PROGRAM - a killed `prune` damages no file, and no sample is lost or counted twice

Each round adds late slices, starts `prune`, kills it at a random time, and then reads
every file. The first test has enough room on the disk. The second test leaves too little
room, a different amount in each round; it needs root to mount a file system. Prints TAP.
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from pruning import Rounds, check_files, fill_disk  # noqa: E402

KILLS, KILLS_FULL = 50, 25


def kill_prune(program, folder, rng):
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


def kill_prune_on_full_disk(program, folder, rng):
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
    tests = (("kill-prune", kill_prune), ("kill-prune-full", kill_prune_on_full_disk))
    for number, (name, test) in enumerate(tests, 1):
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
