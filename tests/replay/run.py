#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
run.py PROGRAM MAKE-CAPTURE CASE-FOLDER - replays one capture with `virt-uprof report`

The folder of a case has these files:
    command          arguments after "report"; CAPTURE and APP stand for the files that
                     make-capture writes, APP@BASE for APP at another load address
    expected.folded  the exact bytes of stdout
    expected.stderr  a pattern for each line of stderr (default: no line)
    expected.exit    the exit code (default: 0)
    expected.memory  the maximal memory in MiB, without the size of the capture (default: any)
The test runs the program twice in each locale. The same input must give the same bytes.
"""

import fnmatch
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

COMMA_LOCALES = ("fr_FR.utf8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE.UTF-8", "fr_FR", "de_DE")


def read(case, name, default):
    path = case / name
    return path.read_text() if path.exists() else default


def find_locales():
    there = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout
    return ["C"] + [name for name in COMMA_LOCALES if name in there.split()][:1]


def is_sanitized(program):
    return b"__asan_init" in pathlib.Path(program).read_bytes()


def run(command, locale, folder):
    """Runs @command. Returns the exit code, stdout, stderr and the peak memory in MiB."""
    environment = dict(os.environ, LC_ALL=locale)
    with open(folder / "out", "w+b") as out, open(folder / "err", "w+b") as err:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return child.returncode, out.read(), err.read(), usage.ru_maxrss / 1024


def check_stderr(text, patterns):
    lines = text.decode("utf-8").splitlines()
    if any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for line in lines for char in line):
        return ["control characters on stderr: %r" % text]
    if len(lines) != len(patterns):
        return ["%d lines on stderr, not %d: %r" % (len(lines), len(patterns), text)]
    return [
        "stderr %r does not match %r" % (line, pattern)
        for line, pattern in zip(lines, patterns)
        if not fnmatch.fnmatchcase(line, pattern)
    ]


def main():
    program, make_capture, case = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    faults = []
    with tempfile.TemporaryDirectory(prefix="uprof-replay-") as name:
        folder = pathlib.Path(name)
        subprocess.run([make_capture, case.name, name], check=True)
        files = {"CAPTURE": str(folder / "guest.capture"), "APP": str(folder / "app")}
        words = []
        for word in read(case, "command", "").split():
            name, at, base = word.partition("@")
            words.append(files.get(name, name) + at + base)
        expected = (case / "expected.folded").read_bytes()
        patterns = read(case, "expected.stderr", "").splitlines()
        code = int(read(case, "expected.exit", "0"))
        memory_max = int(read(case, "expected.memory", "0"))
        capture_mib = os.path.getsize(files["CAPTURE"]) / (1 << 20)
        for locale in find_locales() * 2:
            got = run([program, "report"] + words, locale, folder)
            if got[0] != code:
                faults.append("exit code %d, not %d (%r)" % (got[0], code, got[2]))
            if got[1] != expected:
                faults.append("stdout is\n%s\nand not\n%s" % (got[1], expected))
            faults += check_stderr(got[2], patterns)
            if memory_max and not is_sanitized(program) and got[3] - capture_mib > memory_max:
                faults.append("%d MiB besides a capture of %d MiB" % (got[3] - capture_mib, capture_mib))
    for fault in faults:
        print("%s: %s" % (case.name, fault), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    # A program that loops must not keep a processor of the host busy.
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
    sys.exit(main())
