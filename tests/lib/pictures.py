# SPDX-License-Identifier: LGPL-2.1-or-later
"""
pictures.py - checks that flame graphs are XML, and reads their tables
"""

import subprocess
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
TABLES = "{https://virt-uprof.org/xmlns/flamegraph/2.0}"


def lint(folder):
    """Returns the errors of xmllint for all pictures below a folder. No picture is an error."""
    paths = sorted(str(path) for path in folder.rglob("*.svg"))
    if not paths:
        return ["no picture in %s" % folder]
    faults = []
    for path in paths:
        done = subprocess.run(["xmllint", "--nonet", "--noout", path], capture_output=True, check=False)
        if done.returncode != 0 or done.stderr:
            faults.append("%s: %s" % (path, done.stderr[-300:]))
    print("# xmllint: %d pictures" % len(paths))
    return faults


DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def read_numbers(text):
    """Yields the numbers of a table: src/output/digits-priv.h has their format."""
    value = shift = 0
    for digit in map(DIGITS.index, text):
        value |= (digit & 31) << shift
        shift += 5
        if digit < 32:
            yield value
            value = shift = 0


def read_names(text):
    """Returns the names: each has the beginning of the name before it."""
    names = [""]
    for line in text.split("\n")[:-1]:
        names.append(names[-1][: DIGITS.index(line[3])] + line[4:])
    return names[1:]


def read_table(data):
    """
    Reads the table of frames: returns faults, and (names below the root, weight) of each stack

    Works for pictures of one profile in which the table has all frames.
    """
    root = xml.etree.ElementTree.fromstring(data)
    faults = []
    if len(root.findall(".//%sscript" % SVG)) != 1:
        faults.append("not one script")
    graph = root.find(".//%sgraph" % TABLES)
    if graph.get("all") != graph.get("sent"):
        faults.append("not all frames were sent")
    names = read_names(root.find(".//%snames" % TABLES).text)
    numbers = read_numbers(root.find(".//%sframes" % TABLES).text)
    stacks, path = [], []
    for name in numbers:
        up, rest = next(numbers), next(numbers)
        if up % 2:
            faults.append("hidden frames: %d below %s" % (next(numbers), names[name]))
        if up > 1:
            del path[-(up // 2) :]
        path.append(names[name])
        if rest > 0:
            stacks.append((path[1:], rest))
    return faults, stacks


def read_history(data):
    """
    Reads the picture of a history: returns the days, and a dict of the slots that are not empty

    A slot is (day, hour): (running, idle, hottest function or None, its samples, failed rounds, is joined).
    """
    root = xml.etree.ElementTree.fromstring(data)

    def text(name):
        return root.find(".//%s%s" % (TABLES, name)).text or ""

    days, hottest = text("days").split("\n")[:-1], text("hottest").split("\n")
    numbers, more = read_numbers(text("time").split("\n")[1]), read_numbers(text("slots").strip())
    slots = {}
    for day in days:
        for hour in range(24):
            running = next(numbers)
            idle = next(numbers) if running % 2 else 0
            name, own, failed, is_joined = (next(more) for _ in range(4))
            if running or idle or failed:
                found = hottest[name - 1] if name else None
                slots[day, hour] = (running // 2, idle, found, own, failed, bool(is_joined))
    return days, slots
