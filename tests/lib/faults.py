# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes system calls of a kind fail in one process of a run, and checks how the run ends.

tests/lib/fail-call.c is the library that makes calls fail. It must have the same order of PROCESSES
and KINDS, and the same layout of the page.

The environment variable UPROF_TEST_FAULTS says which faults are tested:
    all     the complete list: many calls of each kind, each with every error; takes hours
    K/N     a part of the complete list: every Nth fault, from the Kth on
    NUMBER  so many faults of the complete list
    unset   the test's own number of faults of the complete list, or the short list: some calls of
            each kind, with the errors in turn
The variable SEED is the seed of all choices.
"""

import errno
import json
import gzip
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import time

PROCESSES = ("program", "guardian", "spawner", "worker")
ONCE, ALWAYS = False, True
# For each kind of call, errors that the kernel can give. ALWAYS: all later calls of the kind in the
# process fail, too. Error 0: the call does not fail, but transfers only half of the bytes.
KINDS = {
    "open": ((errno.EMFILE, ONCE), (errno.EACCES, ONCE), (errno.EMFILE, ALWAYS), (errno.ENOENT, ONCE)),
    "read": ((errno.EIO, ONCE), (0, ONCE), (errno.EINTR, ONCE)),
    "write": ((errno.ENOSPC, ONCE), (0, ONCE), (errno.ENOSPC, ALWAYS), (errno.EINTR, ONCE)),
    "sync": ((errno.EIO, ONCE), (errno.ENOSPC, ALWAYS)),
    "rename": ((errno.ENOSPC, ONCE), (errno.EACCES, ALWAYS)),
    "remove": ((errno.EACCES, ONCE), (errno.EROFS, ALWAYS)),
    "stat": ((errno.EIO, ONCE), (errno.EACCES, ONCE)),
    "mmap": ((errno.ENOMEM, ONCE), (errno.ENOMEM, ALWAYS)),
    "ptrace": ((errno.ESRCH, ONCE), (errno.EPERM, ONCE), (errno.EIO, ONCE)),
    "wait": ((errno.ECHILD, ONCE), (errno.EINTR, ONCE)),
    "poll": ((errno.ENOMEM, ONCE), (errno.EINTR, ONCE)),
    "fork": ((errno.EAGAIN, ONCE), (errno.ENOMEM, ALWAYS)),
    "thread": ((errno.EAGAIN, ONCE), (errno.EAGAIN, ALWAYS)),
    "socket": ((errno.EMFILE, ONCE), (errno.EMFILE, ALWAYS)),
    "send": ((errno.EPIPE, ONCE), (errno.ENOBUFS, ONCE), (errno.EINTR, ONCE)),
    "receive": ((errno.ECONNRESET, ONCE), (errno.EIO, ONCE), (errno.EINTR, ONCE)),
    "mkdir": ((errno.EROFS, ONCE), (errno.ENOSPC, ONCE)),
    "flock": ((errno.ENOLCK, ONCE), (errno.EWOULDBLOCK, ONCE)),
    "descriptor": ((errno.EMFILE, ONCE), (errno.ENFILE, ALWAYS)),
    "duplicate": ((errno.EMFILE, ONCE), (errno.EMFILE, ALWAYS)),
    "rights": ((errno.EPERM, ONCE), (errno.EPERM, ALWAYS)),
    "timer": ((errno.EAGAIN, ONCE), (errno.EINVAL, ALWAYS)),
}
HEAD = struct.Struct("=6I")
COUNTS = struct.Struct(f"={len(PROCESSES) * len(KINDS)}I")
PAGE_BYTES = 8192
FOREVER = 2**32 - 1
# exit codes of virt-uprof(1)
DONE, FAILED, LEFT_HELD = 0, 1, 10
LOCKED = 75  # -q hides the line
CODES = (DONE, FAILED, 3, 4, 5, 6, LEFT_HELD, LOCKED)
END_S = 30
REST_S = 10  # within which the other processes of a run must end

WANTED = os.environ.get("UPROF_TEST_FAULTS", "")
# How many of the first calls of a kind and of the later ones fail: complete list, short list.
ALL_CALLS, SOME_CALLS = (30, 20), (3, 4)
TRIES = 5  # of a run that is disturbed, as by a crash of the daemon


class Fault:
    """Call number @first of a kind fails in a process. @is_lasting: all later calls fail, too."""

    def __init__(self, process, kind, first, code, is_lasting):
        self.process, self.kind, self.first, self.code, self.is_lasting = process, kind, first, code, is_lasting

    def __str__(self):
        how = "transfers half of the bytes" if self.code == 0 else f"fails with {errno.errorcode[self.code]}"
        return f"{self.kind} {self.first} of the {self.process} {how}{' and so do all later' if self.is_lasting else ''}"

    def pack(self):
        last = FOREVER if self.is_lasting else self.first
        return HEAD.pack(PROCESSES.index(self.process), list(KINDS).index(self.kind), self.first, last, self.code, 0)


NO_FAULT = Fault("program", "open", 0, 0, False)


class Page:
    """The file that tests/lib/fail-call.c maps in each process."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def write(self, fault):
        head = fault.pack() if fault is not NO_FAULT else HEAD.pack(0, 0, 0, 0, 0, 0)
        self.path.write_bytes(head.ljust(PAGE_BYTES, b"\0"))

    def read(self):
        """Returns the number of failed calls, the counts of all calls by (process, kind), and the
        callers of the first failed call."""
        data = self.path.read_bytes()
        numbers = COUNTS.unpack_from(data, HEAD.size)
        keys = [(process, kind) for process in PROCESSES for kind in KINDS]
        callers = data[HEAD.size + COUNTS.size :].split(b"\0")[0].decode(errors="replace")
        return HEAD.unpack_from(data)[5], dict(zip(keys, numbers)), callers


def choose_calls(rng, count, n_first, n_later):
    """Chooses from calls 1 to @count: the first @n_first, a random @n_later of the others, and the
    last."""
    first = list(range(1, min(count, n_first) + 1))
    rest = range(n_first + 1, count)
    later = sorted(rng.sample(rest, min(len(rest), n_later)))
    return first + later + ([count] if count > n_first else [])


def plan_faults(rng, counts, is_all):
    """Returns the faults to test. @counts: of a run without a fault. @is_all: the complete list"""
    faults = []
    for (process, kind), count in counts.items():
        ways = KINDS[kind]
        for i, n in enumerate(choose_calls(rng, count, *(ALL_CALLS if is_all else SOME_CALLS))):
            for code, is_lasting in ways if is_all else (ways[i % len(ways)],):
                faults.append(Fault(process, kind, n, code, is_lasting))
    return faults


def sample_faults(rng, counts, number):
    """Returns @number faults of the complete list, from all processes and kinds in turn."""
    groups = {}
    for fault in plan_faults(rng, counts, True):
        groups.setdefault((fault.process, fault.kind), []).append(fault)
    for group in groups.values():
        rng.shuffle(group)
    faults = []
    while groups and len(faults) < number:
        keys = list(groups)
        rng.shuffle(keys)
        for key in keys:
            faults.append(groups[key].pop())
            if not groups[key]:
                del groups[key]
    return faults[:number]


def choose_faults(rng, counts, number):
    """Returns the faults that UPROF_TEST_FAULTS asks for. If it is unset: @number faults; None: the
    short list"""
    if WANTED.isdigit() or (number and not WANTED):
        return sample_faults(rng, counts, int(WANTED or number))
    part, _, n_parts = WANTED.partition("/")
    assert not n_parts or 1 <= int(part) <= int(n_parts), f"UPROF_TEST_FAULTS: no part '{WANTED}'"
    faults = plan_faults(rng, counts, bool(WANTED))
    return faults[int(part) - 1 :: int(n_parts)] if n_parts else faults


def find_processes(page):
    """Returns the pids of a run's processes, which have the path of @page in their environment."""
    word = f"UPROF_TEST_FAULT={page.path}".encode()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if word in path.read_bytes().split(b"\0") and "State:\tZ" not in (path.parent / "status").read_text():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def wait_until(seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def check_lines(code, said, pattern):
    """Returns faults of the lines on a run's stderr. @pattern: the beginning of each line"""
    lines = said.decode(errors="replace").splitlines()
    faults = []
    if code not in (DONE, LOCKED) and not lines:
        faults.append(f"exit {code} without a line on stderr")
    for line in lines:
        if not re.match(pattern, line) or not line.isprintable():
            faults.append(f"a line on stderr: {line!r}")
    return faults


def is_whole(path):
    """Returns true if the file is complete: each line has a count, or the file has its end."""
    data = path.read_bytes()
    if path.name.endswith(".gz"):
        data = gzip.decompress(data)
    if ".folded" in path.name:
        return data.endswith(b"\n") and all(line.rpartition(b" ")[2].isdigit() for line in data.splitlines())
    if path.name.endswith(".json"):
        json.loads(data)
    if path.name.endswith(".svg"):
        return data.rstrip().endswith(b"</svg>")
    return len(data) > 0


class Outputs:
    """Files that a command replaces: each is the old file or a complete new one."""

    BEFORE = b"before\n"

    def __init__(self, folder, names):
        self.paths = [folder / name for name in names]
        self.folder = folder
        self.inputs = {path.name for path in folder.iterdir()} | {"page"}
        self.prepare()

    def prepare(self):
        for path in self.paths:
            path.write_bytes(self.BEFORE)

    def check(self, runs):
        faults = []
        for path in self.paths:
            is_old = path.read_bytes() == self.BEFORE
            try:
                is_new = not is_old and is_whole(path)
            except (OSError, ValueError, EOFError) as error:
                is_new = False
                faults.append(f"{path.name}: {error}")
            if not is_new and not is_old:
                faults.append(f"{path.name} is damaged")
            if is_old and runs.code == DONE:
                faults.append(f"{path.name} was not written, and the exit code is 0")
        left = {path.name for path in self.folder.iterdir()} - self.inputs - {path.name for path in self.paths}
        for name in left:
            (self.folder / name).unlink()
        if runs.fault.kind == "remove":
            left = {name for name in left if not re.fullmatch(r"\.virt-uprof-[0-9a-f]{8}\.tmp", name)}
        self.prepare()
        return faults + [f"left behind: {name}" for name in sorted(left)]


class Runs:
    """Runs of one command, each with one fault."""

    line = "virt-uprof: "  # a pattern for the beginning of each line on stderr
    end_s = END_S
    disturbances = staticmethod(lambda: 0)  # a number that grows when a run is disturbed
    on_wrong = staticmethod(lambda text: None)  # called with the description of each wrong run

    def __init__(self, library, folder, command):
        """@folder: for the page and the outputs; the command runs there. @command: its words"""
        self.folder = pathlib.Path(folder)
        self.page = Page(self.folder / "page")
        self.command, self.library = command, library
        self.counts = {}
        self.n_done = self.n_reached = 0
        self.longest_s, self.longest = 0, NO_FAULT
        self.fault, self.code, self.said = NO_FAULT, 0, b""

    def run(self, fault):
        """Runs the command with @fault. Returns a list of faults of the run."""
        self.fault = fault
        self.page.write(fault)
        environment = {**os.environ, "LD_PRELOAD": str(self.library), "UPROF_TEST_FAULT": str(self.page.path),
                       "LC_ALL": "C.UTF-8", "TMPDIR": "/nonexistent"}  # fmt: skip
        began = time.monotonic()
        child = subprocess.Popen(self.command, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)  # fmt: skip
        try:
            _, self.said = child.communicate(timeout=self.end_s)
            faults = []
        except subprocess.TimeoutExpired:
            faults = [f"it does not end within {self.end_s} s"]
            for pid in find_processes(self.page):
                os.kill(pid, 9)
            _, self.said = child.communicate()
        self.code = child.returncode
        if time.monotonic() - began > self.longest_s:
            self.longest_s, self.longest = time.monotonic() - began, fault
        if not faults and self.code not in CODES and not self.is_abort_of_glib():
            faults.append(f"exit {self.code}")
        if not faults:
            faults += check_lines(self.code, self.said, self.line)
        if not wait_until(REST_S, lambda: not find_processes(self.page)):
            faults.append(f"processes live on: {find_processes(self.page)}")
        self.n_done += 1
        return faults

    def is_abort_of_glib(self):
        """Returns true if GLib has ended the process, because a main loop got no descriptor. Only
        libvirt makes main loops."""
        return self.code == -signal.SIGTRAP and self.said.startswith(b"virt-uprof: GLib: Creating pipes for GWakeup: ")

    def describe(self, fault, faults):
        n_failed, _, callers = self.page.read()
        return (f"{fault}: exit {self.code} after {n_failed} failed calls: {'; '.join(faults)}; stderr "
                f"{self.said.decode(errors='replace')!r}; called from {callers}")  # fmt: skip

    def test(self, fault, check):
        """Repeats the run while it is disturbed. Returns a list of faults, with those of @check."""
        for _ in range(TRIES):
            before = self.disturbances()
            faults = self.run(fault) + check(self)
            if self.disturbances() == before:
                break
        return faults

    def test_all(self, check, rng=None, number=None):
        """Tests all planned faults. @check: returns further faults after a run. @number: see
        choose_faults(). Returns a description of each wrong run."""
        rng = rng or random.Random(int(os.environ.get("SEED", "1")))
        wrong = []
        for _ in range(2):  # the first run fills caches, so the calls of the second run are counted
            faults = self.test(NO_FAULT, check)
            if faults or self.code != DONE:
                return [self.describe("no fault", faults + [f"exit {self.code}"])]
        _, self.counts, _ = self.page.read()
        for fault in choose_faults(rng, self.counts, number):
            faults = self.test(fault, check)
            self.n_reached += self.page.read()[0] > 0
            if faults:
                wrong.append(self.describe(fault, faults))
                self.on_wrong(wrong[-1])
        return wrong
