#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
killstorm.py PROGRAM URI FOLDER OUTAGES COUNTER WAY ROUNDS NAME... - kills the processes of runs

Makes ROUNDS runs over the guests NAME. Guests are sampled at the same time, the runs over one guest
one after the other. Each run gets a signal at a random time, as WAY says. Within a second the guest
must run, and it must still run a second later. No process of the run may be left. COUNTER is the
physical address of the guest's counter, which must advance. FOLDER is empty and gets the outputs.

OUTAGES is a file that grows whenever the daemon was started again, because libvirtd 9.0.0 crashes
now and then when its clients are killed. The guests must run within a second after the daemon is
back, too. All other faults of such a round are ignored.

WAY       action                           required result
kill      SIGKILL to the profiler          no output; most kills come in a hold
group     SIGKILL to its process group     as for kill: the guardian has its own group
term      SIGTERM                          exit code 0, and an output
int       SIGINT                           as for term
hangup    the terminal is closed           as for term
stop      SIGSTOP, SIGCONT after 4 s       the guest runs within 3.5 s; the guardian has
                                           killed the profiler, if it held the guest
guardian  SIGKILL to the guardian          the profiler ends with exit code 1
spawner   SIGKILL to the spawner, then     the profiler says so, and its output is complete or missing
          SIGTERM to the profiler
worker    SIGKILL to a worker, up to       as for spawner
          three times, then SIGTERM
"""

import json
import mmap
import os
import pathlib
import pty
import random
import re
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from processes import check_loss, find_process  # noqa: E402

MARKERS = pathlib.Path("/run/virt-uprof")
NOT_HELD, ASKED, HELD = range(3)
WITHIN_S = {"stop": 3.5}  # the guardian treats a run as stuck after 2 s
START_S = 30
# The share of kills that wait for a hold; the other kills come at random times.
IN_HOLD_SHARE = 0.7
HOLD_S = 0.008
# The time between kills of workers, and from the last kill to SIGTERM.
BETWEEN_S = 0.5
WORKERS = 3
# A run begins with at most this many trial holds, which give no samples.
PROBE_HOLDS = 9

PROGRAM, URI, FOLDER, OUTAGES, COUNTER, WAY, ROUNDS, *NAMES = sys.argv[1:]
problems = []
numbers = {"held": 0, "asked": 0, "rounds": 0, "survived": 0, "slowest_ms": 0}
lock = threading.Lock()


def virsh(*arguments):
    done = subprocess.run(
        ["virsh", "-q", "-c", URI, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def status_of(name):
    """The status that QEMU reports; "?" if QEMU cannot be asked."""
    reply = virsh("qemu-monitor-command", name, '{"execute":"query-status"}')
    return json.loads(reply)["return"]["status"] if reply else "?"


def count_of(name):
    reply = virsh("qemu-monitor-command", name, "--hmp", f"xp/1gx {COUNTER}")
    return reply.split()[-1] if reply else ""


def outages():
    return os.path.getsize(OUTAGES)


class Marker:
    """The domain's marker, in which the profiler flags a hold before the call that stops."""

    def __init__(self, uuid):
        self.path = MARKERS / uuid
        self.page = None

    def read(self):
        """The state, and the time of the last hold."""
        if not self.page:
            try:
                with open(self.path, "rb") as file:
                    self.page = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)
            except (OSError, ValueError):
                return NOT_HELD, 0
        return struct.unpack_from("<4xiQ", self.page)

    def held(self):
        return self.read()[0]

    def count_holds(self, seen):
        """Adds the present hold to @seen. Returns the number of holds in @seen."""
        held, since = self.read()
        if held != NOT_HELD:
            seen.add(since)
        return len(seen)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


class Round:
    def __init__(self, name, number, marker):
        self.name, self.number, self.marker = name, number, marker
        self.output = pathlib.Path(FOLDER) / f"{name}-{number}.folded"
        self.errors = pathlib.Path(FOLDER) / f"{name}-{number}.err"
        self.terminal = None
        self.process = None
        self.faults = []

    def complain(self, what, of_guest=False):
        self.faults.append((f"{WAY} {self.name} round {self.number}: {what}", of_guest))

    def start(self):
        command = [PROGRAM, "-c", URI, "--access", "monitor", "-F", "1000", "--budget", "100", "-d", "60",
                   "-o", str(self.output), self.name]
        if WAY == "hangup":
            pid, self.terminal = pty.fork()
            if pid == 0:
                os.execv(PROGRAM, command)
            self.pid = pid
            return
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                start_new_session=True,
            )
        self.pid = self.process.pid

    def wait_for_moment(self):
        """Waits for a random time, in most rounds for a time in a hold."""
        # A run that is killed needs only one hold. A run that saves its samples needs some samples.
        wanted = 1 if WAY in ("kill", "group") else PROBE_HOLDS + 2
        seen = set()
        if not wait_for(START_S, lambda: self.marker.count_holds(seen) >= wanted):
            self.complain("it does not begin to sample")
        time.sleep(random.uniform(0, 0.4))
        if random.random() < IN_HOLD_SHARE:
            wait_for(1, lambda: self.marker.held() == NOT_HELD)
            wait_for(1, lambda: self.marker.held() != NOT_HELD)
            time.sleep(random.uniform(0, HOLD_S) * random.choice((0.1, 1)))

    def act(self):
        if WAY == "kill":
            os.kill(self.pid, signal.SIGKILL)
        elif WAY == "group":
            os.killpg(self.pid, signal.SIGKILL)
        elif WAY in ("term", "int"):
            os.kill(self.pid, signal.SIGTERM if WAY == "term" else signal.SIGINT)
        elif WAY == "stop":
            os.kill(self.pid, signal.SIGSTOP)
        elif WAY == "guardian":
            os.kill(self.guardian, signal.SIGKILL)
        elif WAY == "spawner":
            os.kill(find_process(self.pid, WAY), signal.SIGKILL)
        elif WAY == "worker":
            self.kill_workers()
        elif WAY == "hangup":
            os.close(self.terminal)
        else:
            sys.exit(__doc__)

    def kill_workers(self):
        for _ in range(random.randint(1, WORKERS)):
            victim = find_process(self.pid, WAY)
            if victim:  # the run may have ended, or may not have replaced its last worker yet
                os.kill(victim, signal.SIGKILL)
            time.sleep(random.uniform(0, BETWEEN_S))

    def end_of_process(self, seconds):
        """The exit code; negative if a signal has killed the process, None if the process still runs."""
        box = []

        def reap():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                box.append(os.waitstatus_to_exitcode(status))
            return pid != 0

        if not wait_for(seconds, reap):
            return None
        if self.process:
            self.process.returncode = box[0]
        return box[0]

    def check_runs(self, since, may_be_held):
        """Checks that the guest runs within WITHIN_S after @since. @may_be_held: a living run may hold it now"""
        within = WITHIN_S.get(WAY, 1)
        last_paused = 0
        give_up = since + START_S
        while (now := time.monotonic()) < min(since + within + 1, give_up):
            state = status_of(self.name)
            if state == "?":
                since = time.monotonic()  # the daemon is down
            elif state != "running" and not may_be_held():
                last_paused = now - since
            time.sleep(0.05)
        with lock:
            numbers["slowest_ms"] = max(numbers["slowest_ms"], int(last_paused * 1000))
        if last_paused > within:
            self.complain(f"the guest was still paused after {last_paused:.2f} s", True)
        state, known = status_of(self.name), virsh("domstate", self.name)
        if not may_be_held() and (state, known) != ("running", "running"):
            self.complain(f"QEMU says {state!r}, libvirt {known!r}", True)

    def check_advances(self):
        before = count_of(self.name)
        if not wait_for(20, lambda: count_of(self.name) != before):
            self.complain("the guest's counter stands still", True)

    def check_output(self, code):
        if WAY in ("term", "int", "hangup"):
            if code != 0:
                self.complain(f"exit {code}, not 0: {self.read_errors()}")
            elif not self.output.exists() or not self.output.read_bytes().endswith(b"\n"):
                self.complain("the output is incomplete")
        elif WAY == "guardian":
            if code != 1:
                self.complain(f"exit {code}, not 1: {self.read_errors()}")
            if "guardian" not in self.read_errors():
                self.complain("no word of the guardian's death")
        elif WAY in ("spawner", "worker"):
            fault = check_loss(code, self.output, self.read_errors())
            if fault:
                self.complain(fault)
        elif self.output.exists():
            self.complain("there is an output of a killed run")

    def read_errors(self):
        return self.errors.read_text() if self.errors.exists() else ""

    def run(self):
        self.start()
        if not wait_for(START_S, lambda: find_process(self.pid, "guardian")):
            self.complain(f"no guardian: {self.read_errors()}")
            self.end_of_process(START_S)
            return
        self.guardian = find_process(self.pid, "guardian")
        self.wait_for_moment()
        held = self.marker.held()
        self.act()
        at = time.monotonic()
        if WAY == "stop":
            time.sleep(0.02)  # now all threads of the run are stopped, and the marker does not change
            held = self.marker.held()
        with lock:
            numbers["rounds"] += 1
            numbers["held"] += held != NOT_HELD
            numbers["asked"] += held == ASKED

        if WAY == "stop":
            # A run that held nothing survives, and continues after SIGCONT.
            self.check_runs(at, lambda: False)
            code = self.end_of_process(0)
            if code is None:
                with lock:
                    numbers["survived"] += 1
                os.kill(self.pid, signal.SIGCONT)
                time.sleep(0.3)
                os.kill(self.pid, signal.SIGTERM)
                code = self.end_of_process(10)
                if code != 0:
                    self.complain(f"exit {code} after SIGCONT and SIGTERM")
                if held != NOT_HELD:
                    self.complain("it survived SIGSTOP in a hold")
            elif code != -signal.SIGKILL:
                self.complain(f"exit {code}, not by SIGKILL")
        elif WAY in ("kill", "group"):
            self.check_runs(at, lambda: False)
            code = self.end_of_process(1)
            if code != -signal.SIGKILL:
                self.complain(f"exit {code}")
            self.check_output(code)
        else:
            if WAY in ("spawner", "worker"):
                time.sleep(random.uniform(0, BETWEEN_S))
                os.kill(self.pid, signal.SIGTERM)
            # The run may take some time to write its files, and may hold the guest until it ends.
            code = self.end_of_process(20)
            if code is None:
                self.complain("it does not end")
                os.kill(self.pid, signal.SIGKILL)
            self.check_runs(time.monotonic(), lambda: False)
            self.check_output(code)
        if not wait_for(10, lambda: not is_alive(self.guardian)):
            self.complain("the guardian lives on", True)
        self.check_advances()
        if self.marker.held() != NOT_HELD:
            self.complain("the marker is still flagged", True)

    def settle(self, outages_before):
        """Reports all faults. If the daemon crashed, only faults of the guest count."""
        was_away = outages() != outages_before
        with lock:
            for text, of_guest in self.faults:
                print(text + (" (the daemon crashed meanwhile)" if was_away else ""),
                      file=sys.stderr, flush=True)
                if of_guest or not was_away:
                    problems.append(text)


def storm(name, rounds):
    marker = Marker(virsh("domuuid", name))
    for number in rounds:
        if not wait_for(START_S, lambda: status_of(name) == "running"):
            with lock:
                problems.append(f"{name} does not run before round {number}")
        before = outages()
        one = Round(name, number, marker)
        try:
            one.run()
        except OSError as error:
            one.complain(f"{error}")
        one.settle(before)


def main():
    random.seed()
    threads = [
        threading.Thread(target=storm, args=(name, range(i, int(ROUNDS), len(NAMES))))
        for i, name in enumerate(NAMES)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # A killed run cannot remove its temporary file, which is hidden and beside the output.
    left = [path for path in pathlib.Path(FOLDER).iterdir() if path.suffix == ".tmp"]
    print(f"{WAY}: {numbers['rounds']} rounds, {numbers['held']} in a hold, of those "
          f"{numbers['asked']} while it was asked for; guests ran after "
          f"{numbers['slowest_ms']} ms at most; {numbers['survived']} survived; "
          f"{len(left)} temporary files; {outages()} crashes of the daemon so far")
    if numbers["rounds"] + outages() < int(ROUNDS):
        problems.append(f"only {numbers['rounds']} rounds")
    # Most kills must come in a hold. If there are only a few rounds, this depends on chance.
    if numbers["rounds"] >= 50 and numbers["held"] * 2 <= numbers["rounds"]:
        problems.append(f"only {numbers['held']} of {numbers['rounds']} were in a hold")
    if left and WAY not in ("kill", "group", "stop"):
        problems.append(f"left behind: {left}")
    if not all(re.fullmatch(r"\.virt-uprof-[0-9a-f]{8}\.tmp", path.name) for path in left):
        problems.append(f"left behind: {left}")
    for path in pathlib.Path(FOLDER).iterdir():
        path.unlink()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
