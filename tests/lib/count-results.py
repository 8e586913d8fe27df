#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
count-results.py BUILD TESTLOG - what a `meson test` came to

Reads meson's testlog.json. Prints, on stderr, each failed test with the end of
its output and each skipped one with its reason, and on stdout one line
"PASSED FAILED SKIPPED". A test is what meson calls one; parts of a passed test
that were skipped are named but not counted.
"""

import json
import re
import sys

LINES_SHOWN = 60

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}

# Of a script that ends with 77, and of TAP.
SKIP_LINE = re.compile(r"^SKIP: (?P<reason>.+)$", re.M)
TAP_PLAN = re.compile(r"^1\.\.0\b\s*#\s*SKIP\S*\s*(?P<reason>.*)$", re.M | re.I)
TAP_PART = re.compile(
    r"^\s*ok\b\s*\d*\s*-?\s*(?P<part>[^#\n]*?)\s*#\s*SKIP\S*\s*(?P<reason>.*)$", re.M | re.I
)
TAP_RESULT = re.compile(r"^\s*(not )?ok\b")
PART_LINES_SHOWN = 20

NO_REASON = "no reason given"


def output_of(test):
    return (test.get("stdout") or "") + (test.get("stderr") or "")


def skip_reason(output):
    """Why a test was skipped as a whole."""
    for pattern in (SKIP_LINE, TAP_PLAN, TAP_PART):
        match = pattern.search(output)
        if match and match["reason"].strip():
            return match["reason"].strip()
    return NO_REASON


def skipped_parts(output):
    """The parts of a test that were skipped, each with its reason."""
    return [
        (match["part"] or "a part", match["reason"].strip() or NO_REASON)
        for match in TAP_PART.finditer(output)
    ]


def failed_parts(lines):
    """Of TAP, the parts that failed, each with the end of what was said behind it."""
    part = None
    for line in [*lines, "ok"]:
        result = TAP_RESULT.match(line)
        if result and part:
            yield part[:1] + part[1:][-PART_LINES_SHOWN:]
        if result:
            part = [line] if result[1] and "# TODO" not in line else None
        elif part:
            part.append(line)


def report_failure(name, test, out):
    lines = output_of(test).rstrip().split("\n")
    print(f"FAILED {name} ({test['result']}, {test['duration']:.1f} s)", file=out)
    for part in failed_parts(lines):
        for line in part:
            print(f"    {line}", file=out)
    if len(lines) > LINES_SHOWN:
        print(f"    [{len(lines) - LINES_SHOWN} lines before]", file=out)
    for line in lines[-LINES_SHOWN:]:
        print(f"    {line}", file=out)


def count(build, tests, out):
    """How many @tests passed, failed, were skipped; says on @out what it should."""
    passed = failed = skipped = 0
    for test in tests:
        name = f"{build}: {test['name']}"
        if test["result"] in PASSED:
            passed += 1
            for part, reason in skipped_parts(output_of(test)):
                print(f"skipped in {name}: {part}: {reason}", file=out)
        elif test["result"] in SKIPPED:
            skipped += 1
            print(f"skipped {name}: {skip_reason(output_of(test))}", file=out)
        else:
            failed += 1
            report_failure(name, test, out)
    return passed, failed, skipped


def main(arguments):
    if len(arguments) != 3:
        print("usage: count-results.py BUILD TESTLOG", file=sys.stderr)
        return 2
    # Tests may print anything.
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        with open(arguments[2], encoding="utf-8", errors="replace") as file:
            tests = [json.loads(line) for line in file if line.strip()]
    except (OSError, ValueError) as error:
        print(f"FAILED {arguments[1]}: cannot read what meson wrote: {error}", file=sys.stderr)
        print("0 1 0")
        return 0
    if not tests:
        print(f"FAILED {arguments[1]}: no test ran", file=sys.stderr)
        print("0 1 0")
        return 0
    print(*count(arguments[1], tests, sys.stderr))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
