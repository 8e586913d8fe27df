#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
faults.py COMMAND NUMBER PROGRAM LIBRARY URI FOLDER OUTAGES ACCESS COUNTER PID NAME PID NAME

System calls fail while `record` or `collect` (COMMAND) samples guests. tests/lib/faults.py says
which calls fail. NUMBER is the number of faults, unless UPROF_TEST_FAULTS is set. The first pair
PID NAME is the QEMU and the domain of a guest that runs. The second pair is a guest that its
administrator has paused. After each run the first guest runs, is held by nobody and does work; the
second guest is still paused. The outputs are old or complete, no temporary file is left, a run that
fails prints a line, and the exit code is documented.

COUNTER is the physical address of the guests' counter. FOLDER is empty. The file OUTAGES grows
whenever the daemon was started again. Runs with an outage are repeated.
"""

import json
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from faults import DONE, Outputs, Runs, wait_until  # noqa: E402
from pruning import check_files  # noqa: E402
from qemu import Qemu, virsh  # noqa: E402

COMMAND, NUMBER, PROGRAM, LIBRARY, URI, FOLDER, OUTAGES, ACCESS, COUNTER, *GUESTS = sys.argv[1:]
PATIENCE_S = 60
END_S = 90
QUERY = '{"execute":"query-status"}'


class Guest:
    """A domain and its QEMU."""

    def __init__(self, pid, name):
        self.qemu, self.name = Qemu(int(pid), name, URI, COUNTER), name
        self.marker = pathlib.Path("/run/virt-uprof", virsh(URI, "domuuid", name).strip())
        self.state = ()

    def is_in(self, state):
        """Returns true if libvirt and QEMU both report @state."""
        words = virsh(URI, f"domstate {self.name}; qemu-monitor-command {self.name} '{QUERY}'").split("\n", 1)
        found = re.search('"status":"([a-z-]+)"', words[-1])
        self.state = words[0].strip(), found[1] if found else "?"
        return self.state == (state, state)

    def is_flagged(self):
        """Returns true if the marker says that a run holds the guest."""
        try:
            return self.marker.read_bytes()[4:8] != bytes(4)
        except FileNotFoundError:
            return False


class Guests:
    """The guest that runs, and the guest that is paused."""

    def __init__(self):
        self.running, self.paused = (Guest(*GUESTS[at : at + 2]) for at in (0, 2))
        self.stands_at = self.paused.qemu.count()

    def check(self):
        faults = []
        if not wait_until(PATIENCE_S, lambda: self.running.is_in("running")):
            faults.append(f"'{self.running.name}' does not run: {self.running.state}")
        if not wait_until(PATIENCE_S, lambda: not self.running.qemu.held()):
            faults.append(f"threads of '{self.running.name}' are traced or stopped: {self.running.qemu.held()}")
        before = self.running.qemu.count()
        if not wait_until(PATIENCE_S, lambda: self.running.qemu.count() != before):
            faults.append(f"'{self.running.name}' does no work")
        # the daemon may be down for a moment
        if not wait_until(PATIENCE_S, lambda: self.paused.is_in("paused") or "running" in self.paused.state):
            faults.append(f"'{self.paused.name}': {self.paused.state}")
        if "running" in self.paused.state or self.paused.qemu.count() != self.stands_at:
            faults.append(f"'{self.paused.name}' was resumed: {self.paused.state}")
        return faults + [f"'{guest.name}' is still flagged" for guest in (self.running, self.paused) if guest.is_flagged()]


class Store:
    """The store of `collect`, which is empty before each run."""

    def __init__(self, folder):
        self.path = folder / "store"
        self.config = folder / "config.xml"
        self.config.write_text(f'<virt-uprof><profile rate="200" duration="500ms" budget="100"/>'
                               f'<collect connect="{URI}" domains="*"/>'
                               f'<limits rate="500" duration="60s" budget="100"/>'
                               f'<store directory="{self.path}" minFreeMegabytes="0"/></virt-uprof>\n')  # fmt: skip
        self.config.chmod(0o644)

    def check(self, runs):
        faults = []
        try:
            check_files(self.path)
        except (AssertionError, OSError, ValueError, EOFError) as error:
            faults.append(f"{type(error).__name__}: {error}")
        # if flock() says that another run has the domain, the round skips it
        if runs.code == DONE and runs.fault.kind != "flock" and not list(self.path.glob("data/*/*.meta.json")):
            faults.append("nothing was stored, and the exit code is 0")
        left = [path.name for path in self.path.rglob(".*")]
        if runs.fault.kind == "remove":
            left = [name for name in left if not re.fullmatch(r"\.virt-uprof-[0-9a-f]{8}\.tmp", name)]
        shutil.rmtree(self.path, ignore_errors=True)
        return faults + [f"left behind: {name}" for name in left]


def prepare(folder):
    """Returns: the command, a pattern for the beginning of lines on stderr, and a checker of
    files"""
    if COMMAND == "collect":
        store = Store(folder)
        # domains are sampled in turn, and a failure has a line with the domain's name
        return ["collect", "-q", "--config", store.config], r"virt-uprof: |\S+ \([0-9a-f-]{36}\): failed: ", store
    suffixes = (".folded", ".meta.json", ".svg")
    outputs = Outputs(folder, [GUESTS[1] + suffix for suffix in suffixes])
    words = ["record", "-q", "-c", URI, "--access", ACCESS, "--max-pause", "1s", "-F", "200", "--budget", "100",
             "-d", "500ms", *(word for suffix in suffixes for word in ("-o", "%d" + suffix)), "--all"]  # fmt: skip
    return words, "virt-uprof: ", outputs


def main():
    folder = pathlib.Path(FOLDER)
    guests = Guests()
    command, line, files = prepare(folder)
    runs = Runs(LIBRARY, folder, [PROGRAM, *command])
    runs.line, runs.end_s = line, END_S
    runs.disturbances = lambda: os.path.getsize(OUTAGES)
    runs.on_wrong = lambda text: print(text.replace("\n", "\\n"), file=sys.stderr, flush=True)
    wrong = runs.test_all(lambda runs: guests.check() + files.check(runs), number=int(NUMBER))
    if not runs.counts:
        print(*wrong, sep="\n", file=sys.stderr)
    print(f"{COMMAND}: {runs.n_done} runs, {runs.n_reached} with a failed call, {len(wrong)} wrong; the longest took "
          f"{runs.longest_s:.1f} s: {runs.longest}; {os.path.getsize(OUTAGES)} crashes of the daemon; calls: "
          + json.dumps({f"{process} {kind}": n for (process, kind), n in runs.counts.items() if n}))  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
