#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test-check-names.py - check-names.py reports each kind of fault, and accepts similar code"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check-names.py")
GOOD = {"src/mem/mem.c": "static int\nread_word(int a)\n{\n    return a;\n}\n\nint\nmain(void)\n{\n}\n"}


def run_check(files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, CHECK, root], capture_output=True, text=True, check=False
        )
    return done.returncode, done.stdout.splitlines()


class CheckNames(unittest.TestCase):
    def expect_fault(self, changes, expected):
        code, lines = run_check({**GOOD, **changes})
        self.assertEqual(code, 1)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(expected, lines[0])

    def test_good_tree_passes(self):
        self.assertEqual(run_check(GOOD), (0, []))

    def test_function_of_one_word(self):
        self.expect_fault(
            {"src/sym/sym.c": "\nstatic const char *\nfind(void)\n{\n}\n"}, "src/sym/sym.c:3: 'find'"
        )

    def test_attribute_before_the_name(self):
        self.expect_fault(
            {"src/sym/sym.c": "static G_GNUC_NORETURN void\nrun(void)\n{\n}\n"}, "'run'"
        )

    def test_comment_and_variable_pass(self):
        text = "/*\nstatic int\nrun(void)\n*/\nstatic int count = 3;\nstatic int run(void);\n"
        self.assertEqual(run_check({**GOOD, "src/sym/sym.c": text}), (0, []))

    def test_same_file_name(self):
        self.expect_fault({"src/sym/mem.c": ""}, "src/sym/mem.c: src/mem/mem.c has the same")

    def test_nothing_to_check(self):
        self.assertEqual(run_check({"README.md": ""})[0], 2)


if __name__ == "__main__":
    unittest.main()
