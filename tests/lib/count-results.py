#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
count-results.py BUILD TESTLOG [RETRYLOG...] - counts the results of a `meson test`
count-results.py --to-retry TESTLOG          - prints the names of the tests to run once more
count-results.py --longest N TESTLOG...      - prints the N longest tests with their seconds

Reads meson's testlog.json. Prints each failed test with the end of its output, and each skipped
test with its reason, on stderr. Prints one line "PASSED FAILED SKIPPED" on stdout. The numbers are of
meson's tests, and of the skipped parts of tests that passed.

A RETRYLOG is the log of one failed test that was run once more. The test then counts as
passed only if the retry passes. A line "retried: NAME" on stderr names each retried test.

Only tests of live suites are run once more, because a busy machine may be too slow for them.
--to-retry prints the names of the live tests that failed, one in each line. The name of a lab whose
parts do not depend on each other is followed by the names of its failed parts.
"""

import json
import re
import sys

LINES_SHOWN = 60

# Suites whose tests need guests that run, or packages from a server.
LIVE_SUITES = {"live", "xen-lab", "kvm-lab", "packages"}

# Labs whose parts do not depend on each other.
LOOSE_LABS = {"lab-1", "lab-2", "kvm-lab-guests"}

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}

# The lines that give the reason of a skip, in scripts that exit with 77 and in TAP.
SKIP_LINE = re.compile(r"^SKIP: (?P<reason>.+)$", re.M)
TAP_PLAN = re.compile(r"^1\.\.0\b\s*#\s*SKIP\S*\s*(?P<reason>.*)$", re.M | re.I)
TAP_PART = re.compile(
    r"^\s*ok\b\s*\d*\s*-?\s*(?P<part>[^#\n]*?)\s*#\s*SKIP\S*\s*(?P<reason>.*)$", re.M | re.I
)
TAP_RESULT = re.compile(r"^\s*(not )?ok\b")
TAP_PARTS = re.compile(r"^(not ok|ok) \d+ - ([a-z0-9-]+)$", re.M)
TAP_COUNT = re.compile(r"^1\.\.(\d+)$", re.M)
PART_LINES_SHOWN = 20

NO_REASON = "no reason given"


def split_name(test):
    """Returns the suites and the name of a test, from "PROJECT:SUITE+SUITE / NAME"."""
    where, _, name = test["name"].rpartition(" / ")
    return set(where.partition(":")[2].split("+")), name


def is_failed(test):
    return test["result"] not in PASSED | SKIPPED


def parts_to_retry(test):
    """The names of the failed parts of a test; none if some parts have no result."""
    output = output_of(test)
    parts, count = TAP_PARTS.findall(output), TAP_COUNT.search(output)
    if not count or int(count[1]) != len(parts):
        return []
    return [part for result, part in parts if result == "not ok"]


def names_to_retry(tests):
    """The names of failed tests of live suites, with the failed parts of loose labs."""
    names = []
    for test in tests:
        suites, name = split_name(test)
        if not is_failed(test) or not suites & LIVE_SUITES:
            continue
        parts = parts_to_retry(test) if name in LOOSE_LABS else []
        names.append(" ".join([name, *parts]))
    return names


def replace_retried(build, tests, retries, out):
    """Returns @tests with the result of its retry in place of each failed test that was retried."""
    again = {test["name"]: test for test in retries}
    replaced = []
    for test in tests:
        if is_failed(test) and test["name"] in again:
            report_failure(f"{build}: {test['name']}", test, out, "failed at first")
            print(f"retried: {build}: {split_name(test)[1]}", file=out)
            # A retry that was skipped does not show that the test passes.
            test = again[test["name"]]
            if test["result"] in SKIPPED:
                test = {**test, "result": "ERROR"}
        replaced.append(test)
    return replaced


def output_of(test):
    return (test.get("stdout") or "") + (test.get("stderr") or "")


def skip_reason(output):
    """Returns the reason for which a complete test was skipped."""
    for pattern in (SKIP_LINE, TAP_PLAN, TAP_PART):
        match = pattern.search(output)
        if match and match["reason"].strip():
            return match["reason"].strip()
    return NO_REASON


def skipped_parts(output):
    """Returns the skipped parts of a test, each with its reason."""
    return [
        (match["part"] or "a part", match["reason"].strip() or NO_REASON)
        for match in TAP_PART.finditer(output)
    ]


def failed_parts(lines):
    """The failed parts of a test that writes TAP, each with the end of its output."""
    part = None
    for line in [*lines, "ok"]:
        result = TAP_RESULT.match(line)
        if result and part:
            yield part[:1] + part[1:][-PART_LINES_SHOWN:]
        if result:
            part = [line] if result[1] and "# TODO" not in line else None
        elif part:
            part.append(line)


def report_failure(name, test, out, word="FAILED"):
    lines = output_of(test).rstrip().split("\n")
    print(f"{word} {name} ({test['result']}, {test['duration']:.1f} s)", file=out)
    for part in failed_parts(lines):
        for line in part:
            print(f"    {line}", file=out)
    if len(lines) > LINES_SHOWN:
        print(f"    [{len(lines) - LINES_SHOWN} lines before]", file=out)
    for line in lines[-LINES_SHOWN:]:
        print(f"    {line}", file=out)


def count(build, tests, out):
    """The numbers of passed, failed and skipped @tests; prints the report on @out."""
    passed = failed = skipped = 0
    for test in tests:
        name = f"{build}: {test['name']}"
        if test["result"] in PASSED:
            passed += 1
            for part, reason in skipped_parts(output_of(test)):
                skipped += 1
                print(f"skipped in {name}: {part}: {reason}", file=out)
        elif test["result"] in SKIPPED:
            skipped += 1
            print(f"skipped {name}: {skip_reason(output_of(test))}", file=out)
        else:
            failed += 1
            report_failure(name, test, out)
    return passed, failed, skipped


def read_log(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return [json.loads(line) for line in file if line.strip()]


def count_log(build, path, retry_paths):
    """The counts of a log and of the logs of retries; an unreadable log counts as one failure."""
    try:
        tests = read_log(path)
    except (OSError, ValueError) as error:
        print(f"FAILED {build}: cannot read what meson wrote: {error}", file=sys.stderr)
        return 0, 1, 0
    if not tests:
        print(f"FAILED {build}: no test ran", file=sys.stderr)
        return 0, 1, 0
    retries = []
    for retry_path in retry_paths:
        try:
            retries += read_log(retry_path)
        except (OSError, ValueError) as error:
            print(f"{build}: cannot read the log of a retry: {error}", file=sys.stderr)
    return count(build, replace_retried(build, tests, retries, sys.stderr), sys.stderr)


def longest_tests(n, paths):
    tests = sorted((test for path in paths for test in read_log(path)), key=lambda test: -test["duration"])
    return ", ".join(f"{split_name(test)[1]} {test['duration']:.0f} s" for test in tests[:n])


def main(arguments):
    # Tests may print anything.
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    if len(arguments) == 3 and arguments[1] == "--to-retry":
        try:
            print("\n".join(names_to_retry(read_log(arguments[2]))))
        except (OSError, ValueError):
            pass  # the count says that there is no log
        return 0
    if len(arguments) > 3 and arguments[1] == "--longest":
        try:
            print(longest_tests(int(arguments[2]), arguments[3:]))
        except (OSError, ValueError):
            print("no log")
        return 0
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    print(*count_log(arguments[1], arguments[2], arguments[3:]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
