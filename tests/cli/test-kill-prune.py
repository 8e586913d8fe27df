#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-kill-prune.py PROGRAM - a killed `prune` damages no file, and no sample is lost or counted twice

Each round adds late slices, starts `prune`, kills it at a random time, and then reads
every file. The first test has enough room on the disk. The second test leaves too little
room, a different amount in each round; it needs root to mount a file system. The third test kills
the process that parses. Prints TAP.
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from pruning import Rounds, check_files, fill_disk  # noqa: E402

KILLS, KILLS_FULL, KILLS_WORKER = 50, 25, 10


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


def find_worker(spawned_by):
    """Returns the process without rights of a `prune`, a child of its spawner, or None."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = int(stat.parent.name), stat.read_text().rsplit(")", 1)
            parent = int(rest[1].split()[1])
            if "(uprof-worker" in rest[0] and "(uprof-spawner" in pathlib.Path(f"/proc/{parent}/stat").read_text():
                if int(pathlib.Path(f"/proc/{parent}/stat").read_text().rsplit(")", 1)[1].split()[1]) == spawned_by:
                    return pid
        except (FileNotFoundError, ProcessLookupError):
            continue
    return None


def check_rights(pid):
    """Checks the rights of the process that parses. Returns false if it is too early or too
    late."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        links = [os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return False
    if "\nState:\tZ" in status or "\nSeccomp:\t0" in status:
        return False  # it has ended, or has not given up its rights yet and has read nothing
    assert "\nSeccomp:\t2" in status and "\nCapPrm:\t0000000000000000" in status, status
    assert "\nUid:\t0\t" not in status or os.geteuid() != 0, status
    files = [link for link in links if not link.startswith(("socket:", "/dev/null"))]
    assert all("/data/web-" in link or "(deleted)" in link for link in files) and len(files) <= 2, links
    return True


def kill_worker(program, folder, rng):
    """If the process that parses dies, `prune` says so, and the next `prune` completes the work."""
    rounds = Rounds(program, folder, rng)
    rounds.begin()
    n_killed = n_checked = n_rounds = 0
    while n_killed < KILLS_WORKER or n_checked < KILLS_WORKER:
        n_rounds += 1
        assert n_rounds < 20 * KILLS_WORKER, (n_killed, n_checked)
        for _ in range(30):
            rounds.add()
        process = rounds.start("prune")
        worker = None
        while worker is None and process.poll() is None:
            worker = find_worker(process.pid)
        if worker is not None:
            n_checked += check_rights(worker)
            try:
                os.kill(worker, signal.SIGKILL)
            except ProcessLookupError:
                pass
        said = process.communicate(timeout=60)[1].decode()
        assert process.returncode in (0, 1), (process.returncode, said)
        if process.returncode == 1:
            n_killed += 1
            assert re.search("(data/web-[0-9]'|no summary of [0-9-]+): the process that reads the files has failed: "
                             "it died of signal 9", said), said
        check_files(rounds.path)
        rounds.count_all(n_rounds)
    rounds.end()
    print(f"# {n_killed} killed of {n_rounds}")


def main():
    program = os.path.abspath(sys.argv[1])
    seed = int(os.environ.get("SEED", time.time_ns()))
    failed = False
    tests = (("kill-prune", kill_prune), ("kill-prune-full", kill_prune_on_full_disk), ("kill-worker", kill_worker))
    print(f"1..{len(tests)}")
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
