#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
killdirect.py PROGRAM URI FOLDER OUTAGES COUNTER KILLS OTHERS PID NAME... - kills runs that hold vCPUs

Each guest is a pair PID NAME: its QEMU and its domain. KILLS is the number of runs over all guests
that are killed at a random time. Each run holds vCPUs up to 5000 times a second. OTHERS is the
number of further runs for each of the other processes of a run: the guardian, the spawner and the
worker. Such a run loses this process, and shortly afterwards gets SIGTERM. Immediately after each
run no thread of QEMU is traced or stopped, and the guest's counter advances. COUNTER is the
counter's physical address; the script reads the counter directly from QEMU's memory. For guests
without a counter, COUNTER is "threads": the processor time of the vCPUs' threads must advance.

Every second run is stopped before it is killed, so that the script can see if the run is in a hold.
After each 20 runs, one run ends by itself. This run must have samples, and must restore
kvm_valid_regs, which killed runs have left changed in the page that KVM shares with QEMU. After
each 33 runs, one run is only stopped: the guardian must kill it if it holds a vCPU, and must not
kill it otherwise.

FOLDER is empty and gets the outputs. The file OUTAGES grows whenever the daemon was started again.
Runs that could not begin because of an outage are repeated.
"""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from processes import check_loss, find_process  # noqa: E402
from qemu import Qemu  # noqa: E402

# The time limits are for a busy machine, and for an emulated one.
START_S = 120
COUNT_S = 20
WHOLE_RUNS = 20
WHOLE_RUN_TIME = "3s"
STOPPED_RUNS = 33
STUCK_S = 8  # the guardian treats a run as stuck after 2 s
STOP_TRIES = 5
LOSS_S = 0.5  # from the death of another process to SIGTERM
END_S = 60
OTHER_PROCESSES = ("guardian", "spawner", "worker")
FAILED, NO_SAMPLE = 1, 5  # exit codes

PROGRAM, URI, FOLDER, OUTAGES, COUNTER, KILLS, OTHERS, *GUESTS = sys.argv[1:]
problems = []
numbers = {"stops": 0, "freed": 0, "kills": 0, "held": 0, "left": 0, "whole": 0, "others": 0, "slowest_ms": 0}
lock = threading.Lock()


def outages():
    return os.path.getsize(OUTAGES)


def add(name, number):
    with lock:
        numbers[name] += number


def wait_for(seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


class Run:
    def __init__(self, qemu, number, seconds):
        self.qemu, self.label = qemu, f"{qemu.name} run {number}"
        self.output = pathlib.Path(FOLDER) / f"{qemu.name}-{number}.folded"
        self.errors = pathlib.Path(FOLDER) / f"{qemu.name}-{number}.err"
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [PROGRAM, "-c", URI, "--access", "direct", "-F", "5000", "--budget", "100",
                 "-d", seconds, "-o", str(self.output), qemu.name],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            )

    def complain(self, what):
        with lock:
            problems.append(f"{self.label}: {what}: {self.errors.read_text()}")

    def begins(self):
        return wait_for(START_S, lambda: b"Ctrl-C" in self.errors.read_bytes()
                        or self.process.poll() is not None) and self.process.poll() is None

    def kill(self, is_stopped_first):
        time.sleep(random.uniform(0, 0.2))
        if is_stopped_first:
            self.process.send_signal(signal.SIGSTOP)
            time.sleep(0.002)
            add("held", self.qemu.held() != [])
        self.process.kill()
        if self.process.wait() != -signal.SIGKILL:
            self.complain(f"it had ended, {self.process.returncode}")
        began = time.monotonic()
        self.check_guest()
        with lock:
            numbers["kills"] += 1
            numbers["slowest_ms"] = max(numbers["slowest_ms"],
                                        int((time.monotonic() - began) * 1000))
            numbers["left"] += any(self.qemu.valid_regs())
        if any(self.qemu.dirty_regs()):
            self.complain(f"kvm_dirty_regs: {self.qemu.dirty_regs()}")
        if self.output.exists():
            self.complain("there is an output of a killed run")

    def check_guest(self):
        """Checks after a run that its guest is not held, and does work."""
        before = self.qemu.count()
        # A released thread may wait for a processor, but it must not be held.
        if not wait_for(1, lambda: not self.qemu.held()):
            self.complain(f"still traced or stopped: {self.qemu.held()}")
        if not wait_for(COUNT_S, lambda: self.qemu.count() != before):
            self.complain("the guest's counter stands still")

    def lose(self, name):
        """Kills the process @name of the run, which is then told to end."""
        time.sleep(random.uniform(0, 0.2))
        if not wait_for(START_S, lambda: find_process(self.process.pid, name)):
            self.complain(f"no {name}")
        os.kill(find_process(self.process.pid, name), signal.SIGKILL)
        # a run that holds single vCPUs goes on without its guardian
        time.sleep(random.uniform(0, LOSS_S))
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.complain(f"it does not end without its {name}")
            self.process.kill()
            code = self.process.wait()
        said = self.errors.read_text()
        # the guardian may die before the first sample
        expected = NO_SAMPLE if "no sample was taken\n" in said else FAILED
        if name == "guardian" and (code != expected or name not in said):
            self.complain(f"exit {code}, not {expected}")
        fault = name != "guardian" and check_loss(code, self.output, said)
        if fault:
            self.complain(fault)
        self.check_guest()
        add("others", 1)

    def stop(self):
        """Stops the run. Returns false if it had no sample yet, because this tests nothing."""
        time.sleep(random.uniform(0, 0.2))
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(0.02)  # now all threads of the run are stopped
        is_holding = self.qemu.held() != []
        if not wait_for(STUCK_S, lambda: not self.qemu.held()):
            self.complain("a vCPU is held by a run that is stopped")
        if is_holding:
            add("freed", 1)
            if self.process.wait() != -signal.SIGKILL:
                self.complain(f"exit {self.process.returncode}, not by SIGKILL")
        else:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
            code = self.process.wait()
            # the run was stopped before its first sample
            if code == NO_SAMPLE and "no sample was taken\n" in self.errors.read_text():
                return False
            if code != 0:
                self.complain(f"exit {code} after SIGCONT and SIGTERM")
        add("stops", 1)
        return True

    def end(self):
        if self.process.wait() != 0:
            self.complain(f"exit {self.process.returncode}")
        elif not self.output.read_bytes().endswith(b"\n"):
            self.complain("the output is incomplete")
        if any(self.qemu.valid_regs()):
            self.complain(f"kvm_valid_regs was not put back: {self.qemu.valid_regs()}")
        add("whole", 1)


def begin(qemu, number, seconds):
    while True:
        before = outages()
        run = Run(qemu, number, seconds)
        if run.begins():
            return run
        run.process.kill()
        run.process.wait()
        time.sleep(0.5)  # the time in which an outage is noticed
        if outages() == before:
            raise OSError(f"it does not begin to sample: {run.errors.read_text()}")


def storm(pid, name, kills, others):
    qemu = Qemu(pid, name, URI, COUNTER)
    try:
        for number in range(others):
            for process in OTHER_PROCESSES:
                begin(qemu, f"{number}-{process}", "60").lose(process)
    except OSError as error:
        with lock:
            problems.append(f"{name}: {error}")
    for number in range(kills):
        try:
            begin(qemu, number, "60").kill(number % 2 == 1)
            if number % WHOLE_RUNS == WHOLE_RUNS - 1 or number == kills - 1:
                Run(qemu, f"{number}-whole", WHOLE_RUN_TIME).end()
            if number % STOPPED_RUNS == STOPPED_RUNS - 1:
                for _ in range(STOP_TRIES):
                    if begin(qemu, f"{number}-stopped", "60").stop():
                        break
                else:
                    raise OSError("it never has a sample when it is stopped")
        except OSError as error:
            with lock:
                problems.append(f"{name} run {number}: {error}")
            return


def main():
    random.seed()
    guests = list(zip(GUESTS[::2], GUESTS[1::2]))
    share = int(KILLS) // len(guests)
    others = int(OTHERS) // len(guests)
    threads = [threading.Thread(target=storm, args=(pid, name, share, others)) for pid, name in guests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    print("kill: {kills} runs, {held} of them certainly in a hold, {left} left kvm_valid_regs set; guests "
          "ran again after {slowest_ms} ms at most; {stops} were stopped, {freed} of them in a hold; {whole} "
          "runs ended by themselves; {others} lost another process".format(**numbers)
          + f"; {outages()} crashes of the daemon")
    if numbers["kills"] != share * len(guests):
        problems.append(f"only {numbers['kills']} were killed")
    if numbers["others"] != others * len(guests) * len(OTHER_PROCESSES):
        problems.append(f"only {numbers['others']} lost another process")
    # About a tenth of the stopped runs are in a hold. The chance that no run is in a hold is 1 in
    # 200 for 50 stopped runs, and 1 in 40000 for 100.
    if numbers["kills"] >= 200 and numbers["held"] == 0:
        problems.append(f"only {numbers['held']} were in a hold")
    # A killed run cannot remove its temporary file, which is hidden and beside the output.
    for path in pathlib.Path(FOLDER).iterdir():
        if path.suffix == ".tmp" and not re.fullmatch(r"\.virt-uprof-[0-9a-f]{8}\.tmp", path.name):
            problems.append(f"left behind: {path.name}")
        path.unlink()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
