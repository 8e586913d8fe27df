# SPDX-License-Identifier: LGPL-2.1-or-later
"""
pictures.py - checks that flame graphs are XML, and reads their tables
"""

import subprocess
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
TABLES = "{https://virt-uprof.org/xmlns/flamegraph/1.0}"


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
    names = [line[3:] for line in root.find(".//%snames" % TABLES).text.split("\n")[:-1]]
    stacks, path = [], []
    for row in root.find(".//%sframes" % TABLES).text.split("\n")[:-1]:
        name, up, rest, *hidden = (int(value, 36) for value in row.split(" "))
        if any(hidden):
            faults.append("hidden frames: %s" % row)
        if up > 0:
            del path[-up:]
        path.append(names[name])
        if rest > 0:
            stacks.append((path[1:], rest))
    return faults, stacks
