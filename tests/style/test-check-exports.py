#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test-check-exports.py - what check-exports.py reports, and what it accepts"""

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
    def expect_fault(self, changes, line=1):
        code, lines = run_check({**GOOD, **changes})
        self.assertEqual(code, 1)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(f"include/uprof/mem.h:{line}: no other module uses 'uprof_mem_read'", lines[0])

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

    def test_return_type_on_its_own_line(self):
        self.expect_fault(
            {
                "include/uprof/mem.h": "struct x *\nuprof_mem_read(int a);\n",
                "src/sym/sym.c": "",
            },
            line=2,
        )

    def expect_constant(self, header, line, **changes):
        files = {**GOOD, "include/uprof/walk.h": header, "src/mem/walk.c": "int n = UPROF_N_MAX;\n"}
        code, lines = run_check({**files, **changes})
        if line is None:
            self.assertEqual((code, lines), (0, []))
        else:
            expected = f"include/uprof/walk.h:{line}: no other module uses 'UPROF_N_MAX'; move it"
            self.assertEqual((code, len(lines)), (1, 1), lines)
            self.assertIn(expected, lines[0])

    def test_constant_of_one_module(self):
        self.expect_constant("enum {\n    UPROF_N_MAX = 3, /* UPROF_N_MAX */\n};\n", 2)
        self.expect_constant("enum { UPROF_N_MAX = 3 };\n", 1)
        self.expect_constant("#define UPROF_N_MAX 3\n", 1)
        self.expect_constant("#define UPROF_N_MAX(x) \\\n    ((x) + 3)\n", 1)

    def test_constants_that_need_each_other(self):
        header = "enum { UPROF_N_MAX = 3, UPROF_M_MAX = UPROF_N_MAX };\n"
        code, lines = run_check({**GOOD, "include/uprof/walk.h": header})
        self.assertEqual((code, len(lines)), (1, 2), lines)
        use = {"src/sym/sym.c": "int m = UPROF_M_MAX;\nint r = uprof_mem_read(1);\n"}
        self.assertEqual(run_check({**GOOD, "include/uprof/walk.h": header, **use}), (0, []))

    def test_constant_that_others_need(self):
        enum = "enum { UPROF_N_MAX = 3 };\n"
        self.expect_constant(enum + "struct x {\n    char name[UPROF_N_MAX];\n};\n", None)
        self.expect_constant(enum + "/* up to %UPROF_N_MAX */\nint uprof_mem_read(int n);\n", None)
        self.expect_constant(enum, None, **{"src/sym/x.c": "int m = UPROF_N_MAX;\n"})
        self.expect_constant("typedef enum { UPROF_N_MAX } UprofKind;\n", None)
        self.expect_constant("enum kind { UPROF_N_MAX };\n", None)
        listed = {"src/modules.ini": "[sym]\nheaders = walk.h\n", "src/mem/walk.c": ""}
        self.expect_constant(enum, 1, **listed, **{"src/sym/x.c": "int m = UPROF_N_MAX;\n"})

    def test_nothing_to_check(self):
        self.assertEqual(run_check({"README.md": ""})[0], 2)


if __name__ == "__main__":
    unittest.main()
