# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads the QEMU process of a guest from outside."""

import os
import pathlib
import re
import subprocess

RUN_OFFSET = 288  # offset of kvm_valid_regs in struct kvm_run; kvm_dirty_regs is the next word
WORD = 8


def virsh(uri, *words):
    """Returns the output of virsh; "" if it fails, as while the daemon is down."""
    done = subprocess.run(
        ["virsh", "-q", "-c", uri, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else ""


def is_held(task):
    """Returns true if the thread is traced or stopped."""
    return re.search(r"^TracerPid:\s*[1-9]|^State:\s*[tT]", (task / "status").read_text(), re.M)


class Qemu:
    """@counter: the physical address of the guest's counter; or "threads" for a guest without a
    counter: count() then gives the processor time of the vCPUs' threads"""

    def __init__(self, pid, name, uri, counter):
        self.pid, self.name, self.counter_at = pid, name, None
        if counter == "threads":
            self.threads = [task for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                            if re.fullmatch("CPU [0-9]+/KVM\n", (task / "comm").read_text())]  # fmt: skip
        else:
            found = re.search("is (0x[0-9a-f]+)", virsh(uri, "qemu-monitor-command", name, "--hmp", f"gpa2hva {counter}"))
            self.counter_at = int(found[1], 16)
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        self.pages = [int(line.split("-")[0], 16) for line in maps.splitlines() if "anon_inode:kvm-vcpu" in line]
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)

    def word(self, address):
        return int.from_bytes(os.pread(self.memory, WORD, address), "little")

    def count(self):
        if self.counter_at is None:
            return sum(int((task / "schedstat").read_text().split()[0]) for task in self.threads)
        return self.word(self.counter_at)

    def valid_regs(self):
        return [self.word(page + RUN_OFFSET) for page in self.pages]

    def dirty_regs(self):
        return [self.word(page + RUN_OFFSET + WORD) for page in self.pages]

    def held(self):
        """Returns the tids of threads that are traced or stopped."""
        held = []
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            try:
                if is_held(task):
                    held.append(task.name)
            except OSError:  # the thread has ended
                continue
        return held
