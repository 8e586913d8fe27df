#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test-check-exports.py - functions that check-exports.py reports, and functions that it accepts"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check-exports.py")
GOOD = {
    "include/uprof/mem.h": "int uprof_mem_read(int a);\nvoid uprof_mem_free(int a);\n",
    "src/mem/mem.c": "int\nuprof_mem_read(int a)\n{\n    return a;\n}\n",
    "src/sym/sym.c": "int\nuprof_sym_find(void)\n{\n    return uprof_mem_read(1);\n}\n",
}


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


class CheckExports(unittest.TestCase):
    def expect_fault(self, changes):
        code, lines = run_check({**GOOD, **changes})
        self.assertEqual(code, 1)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("include/uprof/mem.h:1: no other module uses 'uprof_mem_read'", lines[0])

    def test_use_by_another_module_passes(self):
        self.assertEqual(run_check(GOOD), (0, []))

    def test_use_by_a_private_header_passes(self):
        changes = {"src/sym/sym.c": "", "src/sym/x-priv.h": "#define READ() uprof_mem_read(1)\n"}
        self.assertEqual(run_check({**GOOD, **changes}), (0, []))

    def test_use_by_a_public_header_passes(self):
        inline = "static inline int\nread_one(void)\n{\n    return uprof_mem_read(1);\n}\n"
        changes = {"src/sym/sym.c": "", "include/uprof/sym.h": inline}
        self.assertEqual(run_check({**GOOD, **changes}), (0, []))

    def test_no_use(self):
        self.expect_fault({"src/sym/sym.c": ""})

    def test_use_in_its_own_module(self):
        self.expect_fault({"src/sym/sym.c": "", "src/mem/walk.c": "int x = uprof_mem_read(1);\n"})

    def test_use_in_a_comment(self):
        self.expect_fault({"src/sym/sym.c": "/* uprof_mem_read(1) */\n"})

    def test_use_by_a_test(self):
        self.expect_fault({"src/sym/sym.c": "", "tests/unit/t.c": "int x = uprof_mem_read(1);\n"})

    def test_nothing_to_check(self):
        self.assertEqual(run_check({"README.md": ""})[0], 2)


if __name__ == "__main__":
    unittest.main()
