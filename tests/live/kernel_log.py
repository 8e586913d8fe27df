#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
kernel_log.py JSON TEXT SAID MIN - compares the log of `virt-uprof dmesg`, with --json and without, with the
guest's own

SAID has the lines "LOG RECORD" that the guest printed before. Each record of the guest must be the same
in JSON, and TEXT must have the same lines, byte for byte. There must be at least MIN records. JSON and TEXT
may have newer records.
"""

import json
import re
import sys
import unicodedata

LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")


def clean(text):
    """Returns what virt-uprof prints of a text in which the guest's kernel has escaped bytes."""
    raw = re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    lines = raw.decode(errors="replace").split("\n")
    return "\n".join("".join("?" if unicodedata.category(c) == "Cc" else c for c in line) for line in lines)


def guest_records(said):
    for line in said:
        if line.startswith("LOG "):
            head, _, text = line[4:].rstrip("\n").partition(";")
            priority, number, us = (int(word) for word in head.split(",")[:3])
            yield number, (priority >> 3, LEVELS[priority & 7], us, clean(text))


def make_lines(expected):
    """Returns the lines of text of the records, in their order."""
    lines = []
    for number in sorted(expected):
        _, _, us, text = expected[number]
        lines += [f"[{us // 10**6:5}.{us % 10**6:06}] {line}" for line in text.split("\n")]
    return lines


def compare_text(expected, path):
    """Returns the first line that differs, or None."""
    with open(path, encoding="utf-8", newline="\n") as file:
        found = file.read().split("\n")
    if found[0].endswith("overwritten]"):
        del found[0]
    for ours, theirs in zip(found, make_lines(expected), strict=False):
        if ours != theirs:
            return f"{ours!r} is not {theirs!r}"
    return None if len(found) > len(make_lines(expected)) else f"only {len(found)} lines"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = {r["sequence"]: (r["facility"], r["level"], r["time_ns"] // 1000, r.get("text")) for r in json.load(file)}
    with open(sys.argv[3], encoding="utf-8", errors="replace") as file:
        expected = dict(guest_records(file))
    wrong = [(number, record, found.get(number)) for number, record in expected.items() if found.get(number) != record]
    older = [number for number in found if number < min(expected, default=0)]
    print(f"{len(expected)} records of the guest, {len(found)} found, {len(wrong)} differ")
    for line in wrong[:5]:
        print(*line)
    difference = compare_text(expected, sys.argv[2])
    if difference:
        print(difference)
    return bool(wrong or older or difference) or len(expected) < int(sys.argv[4])


if __name__ == "__main__":
    sys.exit(main())
