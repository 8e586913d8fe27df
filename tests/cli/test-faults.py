#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-faults.py PROGRAM MAKE-CAPTURE LIBRARY - system calls fail while `report`, `diff` and `prune` work

Prints TAP. Needs no hypervisor and no privilege. tests/lib/faults.py says which calls fail. After
each run every output is the old file or a complete new one, and no temporary file is left. A run
that fails prints a line.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import storing  # noqa: E402
from faults import DONE, Outputs, Runs  # noqa: E402
from pruning import TODAY, check_files, count  # noqa: E402
from storing import DAY, put_slice, uuid_of  # noqa: E402

DOMAINS, DAYS, SLICES = 1, 3, 3


def test_report(program, make_capture, library, folder):
    subprocess.run([make_capture, "many", folder], check=True)
    names = ("out.folded.gz", "out.svg", "out.json")
    outputs = Outputs(folder, names)
    command = [program, "report", "-q", "-s", "app", *(word for name in names for word in ("-o", name)), "guest.capture"]
    runs = Runs(library, folder, command)
    return runs, runs.test_all(outputs.check)


def test_diff(program, _, library, folder):
    for name, last in (("old", 1), ("new", 900)):
        (folder / name).write_text(f"vm;main;a 100\nvm;main;b {last}\n")
    outputs = Outputs(folder, ("out.svg",))
    runs = Runs(library, folder, [program, "diff", "-q", "-o", "out.svg", "old", "new"])
    return runs, runs.test_all(outputs.check)


class Store:
    """A store that is made again for each run."""

    def __init__(self, program, folder):
        self.program, self.path, self.source = program, folder / "store", folder / "source"
        self.source.mkdir(mode=0o750)
        rng = random.Random(1)
        paths = storing.Program(1, 20)
        self.expected = [0] * DOMAINS
        for number in range(DOMAINS):
            for slot in range(DAYS * SLICES):
                stacks = paths.stacks(rng, 10)
                put_slice(self.source, f"web-{number}", uuid_of(number), TODAY - DAY * (1 + slot % DAYS) + slot, stacks)
                self.expected[number] += sum(stacks.values())
        self.config = folder / "config.xml"
        self.config.write_text(f'<virt-uprof><store directory="{self.path}" sliceDays="2" mergedDays="30" '
                               'minFreeMegabytes="0"/></virt-uprof>\n')
        self.config.chmod(0o644)
        self.prepare()

    def prepare(self):
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(self.source, self.path)

    def command(self):
        return [self.program, "prune", "-q", "--config", self.config]

    def check(self, runs):
        """Checks that no file is damaged, and that the next `prune` completes the work."""
        faults = []
        try:
            check_files(self.path)
            self.check_counts()
            done = subprocess.run(self.command(), capture_output=True, timeout=60, check=False)
            assert (done.returncode, done.stderr) == (DONE, b""), f"the next prune: {done}"
            check_files(self.path)
            self.check_counts()
            self.check_leftovers()
        except (AssertionError, OSError, ValueError, EOFError) as error:
            faults.append(f"{type(error).__name__}: {error}")
        self.prepare()
        return faults

    def check_counts(self):
        for number in range(DOMAINS):
            found = count(self.program, self.path, uuid_of(number))
            assert found == self.expected[number], f"{number}: {found} samples, not {self.expected[number]}"

    def check_leftovers(self):
        """Checks that `prune` removes temporary files that are a day old."""
        temporary = list(self.path.rglob(".virt-uprof-*.tmp"))
        for path in temporary:
            os.utime(path, (1, 1))
        if temporary:
            subprocess.run(self.command(), check=True, timeout=60)
        left = [path.name for path in self.path.rglob("*") if path.name.endswith((".tmp", ".pending"))]
        assert not left, left


def test_prune(program, _, library, folder):
    store = Store(program, folder)
    runs = Runs(library, folder, store.command())
    return runs, runs.test_all(store.check)


def main():
    program, make_capture, library = (os.path.abspath(path) for path in sys.argv[1:4])
    if b"__asan_init" in pathlib.Path(program).read_bytes():
        print("1..0 # SKIP a program with sanitizers takes no library before its own")
        return 0
    tests = {"report": test_report, "diff": test_diff, "prune": test_prune}
    wanted = sys.argv[4:] or list(tests)
    failed = False
    print(f"1..{len(wanted)}")
    for number, name in enumerate(wanted, 1):
        with tempfile.TemporaryDirectory(prefix="uprof-faults-") as folder:
            runs, wrong = tests[name](program, make_capture, library, pathlib.Path(folder))
        failed |= bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} {name}\n# {runs.n_done} runs, {runs.n_reached} with a failed "
              f"call; the longest took {runs.longest_s:.1f} s: {runs.longest}")
        for line in wrong:
            print("# " + line.replace("\n", "\\n"))
        sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(main())
