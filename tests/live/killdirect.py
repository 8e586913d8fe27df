#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
killdirect.py PROGRAM URI FOLDER OUTAGES COUNTER KILLS PID NAME... - kills runs that hold vCPUs

KILLS is the number of runs over all guests. Each guest is a pair PID NAME: its QEMU and its
domain. Each run holds vCPUs up to 5000 times a second and is killed at a random time. Right
afterwards no thread of QEMU is traced or stopped, and the guest's counter advances. COUNTER is the
counter's physical address; the script reads it directly from QEMU's memory. For guests without a
counter, COUNTER is "threads", which stands for the processor time of the vCPUs' threads.

Every second run is stopped before it is killed, so that the script can see if it is in a hold.
After each 20 runs, one run ends by itself. It must have samples, and it must restore kvm_valid_regs,
which killed runs have left changed in the page that KVM shares with QEMU. After each 33 runs, one
run is only stopped: the guardian must kill it if it holds a vCPU, and must not kill it otherwise.

FOLDER is empty and gets the outputs. The file OUTAGES grows whenever the daemon was started again.
Runs that could not begin because of that are repeated.
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

# The time limits are for a busy machine, and for an emulated one.
START_S = 120
COUNT_S = 20
WHOLE_RUNS = 20
WHOLE_RUN_TIME = "3s"
STOPPED_RUNS = 33
STUCK_S = 8  # the guardian treats a run as stuck after 2 s
STOP_TRIES = 5
NO_SAMPLE = 5  # exit code
RUN_OFFSET = 288  # offset of kvm_valid_regs in struct kvm_run; kvm_dirty_regs is the next word
WORD = 8

PROGRAM, URI, FOLDER, OUTAGES, COUNTER, KILLS, *GUESTS = sys.argv[1:]
problems = []
numbers = {"stops": 0, "freed": 0, "kills": 0, "held": 0, "left": 0, "whole": 0, "slowest_ms": 0}
lock = threading.Lock()


def outages():
    return os.path.getsize(OUTAGES)


def add(name, number):
    with lock:
        numbers[name] += number


def monitor(name, command):
    return subprocess.run(
        ["virsh", "-q", "-c", URI, "qemu-monitor-command", name, "--hmp", command],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
        env={**os.environ, "LC_ALL": "C"},
    ).stdout


class Qemu:
    """A QEMU process, read from outside without its help."""

    def __init__(self, pid, name):
        self.pid, self.name = pid, name
        if COUNTER == "threads":
            self.threads = [task for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                            if re.fullmatch("CPU [0-9]+/KVM\n", (task / "comm").read_text())]
        else:
            found = re.search("is (0x[0-9a-f]+)", monitor(name, f"gpa2hva {COUNTER}"))
            self.counter_at = int(found[1], 16)
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        self.pages = [int(line.split("-")[0], 16) for line in maps.splitlines()
                      if "anon_inode:kvm-vcpu" in line]
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)

    def word(self, address):
        return int.from_bytes(os.pread(self.memory, WORD, address), "little")

    def count(self):
        if COUNTER == "threads":
            return sum(int((task / "schedstat").read_text().split()[0]) for task in self.threads)
        return self.word(self.counter_at)

    def valid_regs(self):
        return [self.word(page + RUN_OFFSET) for page in self.pages]

    def dirty_regs(self):
        return [self.word(page + RUN_OFFSET + WORD) for page in self.pages]

    def held(self):
        """The threads that are traced or stopped."""
        held = []
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            status = (task / "status").read_text()
            if re.search(r"^TracerPid:\s*[1-9]|^State:\s*[tT]", status, re.M):
                held.append(task.name)
        return held


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
        before = self.qemu.count()
        # A released thread may wait for a processor, but it must not be held.
        if not wait_for(1, lambda: not self.qemu.held()):
            self.complain(f"still traced or stopped: {self.qemu.held()}")
        if not wait_for(COUNT_S, lambda: self.qemu.count() != before):
            self.complain("the guest's counter stands still")
        with lock:
            numbers["kills"] += 1
            numbers["slowest_ms"] = max(numbers["slowest_ms"],
                                        int((time.monotonic() - began) * 1000))
            numbers["left"] += any(self.qemu.valid_regs())
        if any(self.qemu.dirty_regs()):
            self.complain(f"kvm_dirty_regs: {self.qemu.dirty_regs()}")
        if self.output.exists():
            self.complain("there is an output of a killed run")

    def stop(self):
        """Stops the run. Returns false if it was stopped before its first sample, which tests nothing."""
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
            self.complain("no whole output")
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


def storm(pid, name, kills):
    qemu = Qemu(pid, name)
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
    threads = [threading.Thread(target=storm, args=(pid, name, share)) for pid, name in guests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    print("kill: {kills} runs, {held} of them certainly in a hold, {left} left kvm_valid_regs set; guests "
          "ran again after {slowest_ms} ms at most; {stops} were stopped, {freed} of them in a hold; {whole} "
          "runs ended by themselves".format(**numbers)
          + f"; {outages()} crashes of the daemon")
    if numbers["kills"] != share * len(guests):
        problems.append(f"only {numbers['kills']} were killed")
    # About a tenth of the stopped runs are in a hold. The chance that none is, is 1 in 200 for 50
    # stopped runs, and 1 in 40000 for 100.
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
