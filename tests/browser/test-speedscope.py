#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-speedscope.py PROGRAM - speedscope reads the output files of virt-uprof

Takes speedscope from npm, opens each format that speedscope reads, exports the result,
and compares the time of each function with the folded file. Prints TAP. Skips if npm is
missing or cannot reach its registry.
"""

import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import npm
from driver import Browser

VERSION = "1.25.0"
SECONDS = 60  # to import a file
# The export goes to a variable that the test can read.
CATCH = """
    window.caught = null;
    URL.createObjectURL = (blob) => { blob.text().then((text) => { window.caught = text; }); return 'data:,'; };
    speedscope.loadFileFromBase64(arguments[0], arguments[1]);
"""
EXPORT = """
    window.dispatchEvent(new KeyboardEvent('keydown', { key: 's', code: 'KeyS', ctrlKey: true, metaKey: true, bubbles: true }));
    return window.caught;
"""
LINES = (
    "web-1;main;function_1;work 281", "web-1;main;function_2;work 562", "web-1;main;function_3 17",
    "web-1;main;copy_user_[k] 40", "web-1;[truncated];lost 3", "web-1;[unknown] 5", "web-1;main;a<b>(int, char) 9",
    "web-1;main;recursive;recursive;recursive 4", "web-1;\u6f22\u5b57;(anonymous namespace)::f 11",
)  # fmt: skip


def fetch(folder):
    """Returns the path of speedscope's page."""
    if not shutil.which("chromedriver"):
        raise npm.CannotRun("no chromedriver")
    return npm.fetch("speedscope@" + VERSION, folder) / "dist/release/index.html"


def totals_of_folded(text):
    totals = {}
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        for name in set(stack.split(";")[1:]):
            totals[name] = totals.get(name, 0) + int(count)
    return totals


def totals_of_sampled(names, profile):
    for sample, weight in zip(profile["samples"], profile["weights"]):
        for name in {names[frame] for frame in sample}:
            yield name, weight


def totals_of_evented(names, profile):
    """Yields the times of each function. Recursive calls of a function count once."""
    opened = {}
    for event in profile["events"]:
        name = names[event["frame"]]
        depth, since = opened.get(name, (0, 0))
        if event["type"] == "O":
            opened[name] = (depth + 1, since if depth else event["at"])
        else:
            opened[name] = (depth - 1, since)
            if depth == 1:
                yield name, event["at"] - since


def totals_of_export(text):
    document = json.loads(text)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    totals = {}
    for profile in document["profiles"]:
        read = totals_of_sampled if profile["type"] == "sampled" else totals_of_evented
        for name, weight in read(names, profile):
            totals[name] = totals.get(name, 0) + weight
    return totals


def read_in_speedscope(browser, page, path):
    """Returns the time of each function in speedscope."""
    empty = path.parent / "empty.js"
    empty.write_text("")
    browser.open("about:blank")
    browser.open("%s#localProfilePath=%s" % (page.as_uri(), str(empty).lstrip("/")))
    browser.run(CATCH, path.name, base64.b64encode(path.read_bytes()).decode())
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        text = browser.run(EXPORT)
        if text:
            return totals_of_export(text)
        time.sleep(0.1)
    return {}


def plain(name):
    """A name as speedscope reads it from the perf format."""
    name = name.replace("(anonymous namespace)", "{anonymous}").removesuffix("_[k]")
    return "??? ([unknown])" if name == "[unknown]" else name


def compare(got, wanted, unit, tolerance):
    return [
        "%s: %s and not %s" % (name, got.get(name, 0) / unit, count)
        for name, count in wanted.items()
        if abs(got.get(name, 0) - count * unit) > tolerance * unit
    ]


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="uprof-speedscope-") as name:
        folder = pathlib.Path(name)
        try:
            page = fetch(folder)
        except npm.CannotRun as why:
            print("1..0 # SKIP %s" % why)
            return 0
        text = "".join(line + "\n" for line in sorted(LINES))
        (folder / "x.folded").write_text(text, encoding="utf-8")
        wanted = totals_of_folded(text)
        # File, unit of its weights, tolerance: the last sample of the perf format has no duration.
        files = (("y.folded", 1, 0), ("y.folded.gz", 1, 0), ("y.json", 1, 0), ("y.pb.gz", 10_000_000, 0),
                 ("y.perf", 0.010, 2))  # fmt: skip
        failed = 0
        with Browser() as browser:
            for number, (file, unit, tolerance) in enumerate(files, 1):
                path = folder / file
                subprocess.run([program, "report", "-q", "-o", path, folder / "x.folded"], check=True)
                got = read_in_speedscope(browser, page, path)
                expected = {plain(n): c for n, c in wanted.items()} if file == "y.perf" else wanted
                faults = compare(got, expected, unit, tolerance) if got else ["nothing was understood"]
                faults += [m for m in browser.messages() if "SEVERE" in m and "favicon" not in m]
                failed += bool(faults)
                print("%s %d %s" % ("not ok" if faults else "ok", number, file))
                for fault in faults:
                    print("# " + fault)
        print("1..%d" % len(files))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
