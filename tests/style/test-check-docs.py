#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-check-docs.py - check-docs.py finds links and paths that lead nowhere, and reports
no others
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check-docs.py")

# Name: page, its text, the line of the fault, and a part of the expected message
BAD = {
    "file": ("README.md", "# a\n\n[x](doc/none.md)\n", 3, "'doc/none.md' leads to no file"),
    "picture": ("README.md", "![x](doc/none.png)\n", 1, "'doc/none.png' leads to no file"),
    "after-link": ("README.md", "[x](doc/guide.md) [y](none)\n", 1, "'none' leads to no file"),
    "title": ("README.md", '[x](none "a title")\n', 1, "'none' leads to no file"),
    "reference": ("README.md", "[x][y]\n\n[y]: none\n", 3, "'none' leads to no file"),
    "two-lines": ("README.md", "a [x\ny](none)\n", 1, "'none' leads to no file"),
    "relative-to-page": ("doc/guide.md", "[x](doc/guide.md)\n", 1, "'doc/guide.md' leads to no file"),
    "outside": ("README.md", "[x](../README.md)\n", 1, "leads out of the project"),
    "anchor": ("README.md", "[x](doc/guide.md#none)\n", 1, "'doc/guide.md#none' leads to no heading"),
    "anchor-of-same-page": ("README.md", "# A\n[x](#b)\n", 2, "'#b' leads to no heading"),
    "anchor-in-code": ("README.md", "```\n# a\n```\n[x](#a)\n", 4, "'#a' leads to no heading"),
    "second-heading": ("README.md", "# a\n[x](#a-1)\n", 2, "'#a-1' leads to no heading"),
    "anchor-of-file": ("README.md", "[x](src/a.c#a)\n", 1, "leads to no heading"),
    "source": ("CONTRIBUTING.md", "see `src/none.c`.\n", 1, "'src/none.c' does not exist"),
    "test": ("SECURITY.md", "`tests/none`\n", 1, "'tests/none' does not exist"),
    "header": ("doc/guide.md", "`include/none.h`\n", 1, "'include/none.h' does not exist"),
    "folder": ("doc/guide.md", "`src/none/`\n", 1, "'src/none/' does not exist"),
    "command": ("doc/guide.md", "a\n`tests/none GUESTS`\n", 2, "'tests/none' does not exist"),
    "folder-of-name": ("doc/guide.md", "`src/none/NAME.c`\n", 1, "'src/none/NAME.c' does not exist"),
}

GOOD = {
    "links": "# A page\n[x](doc/guide.md) ![y](doc/a.png) [z](#a-page) [g](doc/guide.md#first-task-1)\n",
    "folder": "[x](src) [y](src/) `src/` `tests`\n",
    "elsewhere": "[x](https://example.org/none) [y](mailto:a@example.org)\n",
    "code": "```\n[x](none) `src/none.c`\n```\n`[x](none)`\n",
    "tildes": "~~~ text\n```\n[x](none)\n~~~\n",
    "paths": "`src/a.c` `src/NAME.c` `src/a.c --all` `build/src/none` `/src/none` src/none\n",
    "heading-with-code": "# The `a` of b, c!\n[x](#the-a-of-b-c)\n",
    "heading-with-link": "# [a](src/a.c)\n[x](#a)\n",
    "not-a-link": "a[1]: none of them; [x] (none)\n",
    "long": "\n" * 120,
}


class Docs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("doc/guide.md", "# First task\n# First task\n")
        self.write("doc/a.png", "")
        self.write("src/a.c", "")
        self.write("tests/all", "")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def check(self):
        done = subprocess.run(
            [sys.executable, str(CHECK), str(self.root)], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    def test_bad(self):
        for name, (page, text, line, expected) in BAD.items():
            with self.subTest(name):
                self.setUp()
                self.write(page, text)
                code, out, err = self.check()
                self.assertEqual(code, 1, out)
                self.assertRegex(out, rf"\A{page}:{line}: .*\n\Z")
                self.assertIn(expected, out)
                self.assertIn("1 faults", err)

    def test_good(self):
        for name, text in GOOD.items():
            with self.subTest(name):
                self.write("README.md", text)
                self.assertEqual(self.check(), (0, "", ""))

    def test_long_readme(self):
        self.write("README.md", "\n" * 121)
        code, out, _ = self.check()
        self.assertEqual(code, 1)
        self.assertIn("README.md:121: README.md has 121 lines, more than 120", out)
        self.write("README.md", "\n")
        self.write("doc/guide.md", "\n" * 200)
        self.assertEqual(self.check(), (0, "", ""))

    def test_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, str(CHECK), folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no page in", done.stderr)


if __name__ == "__main__":
    unittest.main()
