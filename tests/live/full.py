#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
full.py PROGRAM URI FOLDER CAPTURE NAME - the disk is full while `record`, `collect` and `report` write

FOLDER is an empty small file system, in which each run has more room than the run before. Without
enough room a command says so and fails, and each file is the old one or complete. With enough room
the command succeeds. NAME is a domain that runs. CAPTURE is a capture of NAME, outside of FOLDER.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from faults import DONE, FAILED, Outputs  # noqa: E402
from pruning import check_files, fill_disk  # noqa: E402

PROGRAM, URI, FOLDER, CAPTURE, NAME = sys.argv[1:]
PAGE = 4096
# in pages of a file system in memory; the last value is enough for all outputs
ROOMS = (0, 1, 2, 3, 5, 8, 16, 64, 3072)
NO_ROOM = "No space left on device"
USELESS = 5  # the exit code of a round whose only domain has failed
OUTPUTS = ("x.folded", "x.meta.json", "x.svg")
SECONDS = 120
KEPT = pathlib.Path(CAPTURE).with_name("kept")  # the folder for temporary files, on another disk


class Run:
    """Runs a command. Outputs.check() reads the kind of its fault, and its exit code."""

    class fault:
        kind = "write"

    def __init__(self, folder, words):
        done = subprocess.run([PROGRAM, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=dict(os.environ, TMPDIR=str(KEPT)), timeout=SECONDS, check=False)  # fmt: skip
        self.code, self.said = done.returncode, done.stderr

    def check(self, codes):
        """Checks that it failed with one of @codes and a line, or succeeded without a line."""
        if self.code == DONE:
            return [] if not self.said else [f"exit 0, and it says {self.said!r}"]
        lines = self.said.splitlines()
        if self.code not in codes or not lines or not any(NO_ROOM in line for line in lines):
            return [f"exit {self.code}: {self.said!r}"]
        return []


def write_files(folder, filler, names, command, *words):
    """Runs @command with more and more room. @names: its outputs. Returns a list of faults."""
    outputs = Outputs(folder, names)
    outputs.inputs.add(filler.name)
    codes, faults = [], []
    for room in ROOMS:
        filler.unlink(missing_ok=True)
        outputs.prepare()
        fill_disk(filler, room * PAGE)
        run = Run(folder, [command, "-q", *(word for name in names for word in ("-o", name)), *words])
        codes.append(run.code)
        filler.unlink()
        faults += [f"{command} with {room} pages: {fault}" for fault in run.check((FAILED,)) + outputs.check(run)]
    for path in outputs.paths:
        path.unlink()
    return faults + check_codes(command, codes)


def check_codes(command, codes):
    if codes[0] != DONE and codes[-1] == DONE:
        return []
    return [f"{command}: the exit codes are {codes}"]


def record(folder, filler):
    words = ["-c", URI, "--max-pause", "1s", "-F", "200", "--budget", "100", "-d", "300ms", NAME]
    faults = write_files(folder, filler, (*OUTPUTS, "x.capture"), "record", *words)
    # The stacks of a run whose disk was full are kept elsewhere.
    kept = list(KEPT.iterdir())
    if not kept or not all(path.name.startswith(NAME) and path.suffix == ".folded" and path.stat().st_size for path in kept):
        faults.append(f"kept are {[path.name for path in kept]}")
    fill_disk(filler, 0)
    run = Run(folder, ["record", "-o", OUTPUTS[0], *words])
    filler.unlink()
    said = re.search(rf"^virt-uprof: {re.escape(NAME)}: its stacks are kept in '(.*)'$", run.said, re.M)
    if run.code != FAILED or not said or pathlib.Path(said[1]).parent != KEPT or not os.path.getsize(said[1]):
        faults.append(f"exit {run.code}: {run.said!r}")
    return faults


def report(folder, filler):
    return write_files(folder, filler, OUTPUTS, "report", CAPTURE)


def collect(folder, filler):
    store, config = folder / "store", pathlib.Path(CAPTURE).with_name("full.xml")
    config.write_text(f'<virt-uprof><profile rate="200" duration="300ms" budget="100"/>'
                      f'<collect connect="{URI}" domains="*"/><limits rate="500" duration="60s" budget="100"/>'
                      f'<store directory="{store}" minFreeMegabytes="0"/></virt-uprof>\n')  # fmt: skip
    config.chmod(0o644)
    codes, faults = [], []
    for room in ROOMS:
        shutil.rmtree(store, ignore_errors=True)
        store.mkdir(mode=0o750)
        fill_disk(filler, room * PAGE)
        run = Run(folder, ["collect", "-q", "--config", config, NAME])
        codes.append(run.code)
        filler.unlink()
        wrong = run.check((FAILED, USELESS))
        try:
            check_files(store)
        except (AssertionError, OSError, ValueError, EOFError) as error:
            wrong.append(f"{type(error).__name__}: {error}")
        wrong += [f"left behind: {path.name}" for path in store.rglob(".*")]
        if run.code == DONE and len(list(store.glob("data/*/*.meta.json"))) != 1:
            wrong.append("it succeeds without a profile")
        faults += [f"collect with {room} pages: {fault}" for fault in wrong]
    return faults + check_codes("collect", codes)


def main():
    folder = pathlib.Path(FOLDER)
    KEPT.mkdir()
    faults = []
    for test in (record, report, collect):
        faults += test(folder, folder / "filler")
    print(*faults, sep="\n", file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
