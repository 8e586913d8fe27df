#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test-check-circles.py - check-circles.py finds the circles of small trees"""

import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check-circles.py")
GOOD = {
    "src/modules.ini": "[mem]\nsources =\n    mem.c\n    walk.c\n[sym]\nsources = sym.c\n",
    "include/uprof/mem.h": "int mem(void);\n",
    "src/mem/mem-priv.h": '#include "uprof/mem.h"\nint walk(void);\n',
    "src/mem/mem.c": '#include "mem-priv.h"\nint mem(void) { return walk(); }\n',
    "src/mem/walk.c": '#include "mem-priv.h"\nint walk(void) { return 1; }\n',
    "src/sym/sym.c": '#include "uprof/mem.h"\nint sym(void);\nint sym(void) { return mem(); }\n',
}


def compile_tree(root):
    """Compiles the sources, and names the objects like meson."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    for path in sorted(root.glob("src/*/*.c")):
        folder = root / "build/src" / f"libuprof-{path.parent.name}.a.p"
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{path.parent.name}_{path.name}.o"
        command = [*compiler, "-c", f"-I{root}/include", f"-I{root}/src", path, "-o", target]
        subprocess.run(command, check=True)


def run_check(files, groups=()):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        compile_tree(root)
        command = [sys.executable, CHECK, root, root / "build", *groups]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


class CheckCircles(unittest.TestCase):
    def test_good_tree_passes(self):
        self.assertEqual(run_check(GOOD), (0, []))

    def test_two_sources_that_call_each_other(self):
        walk = "int mem(void);\nint walk(void);\nint walk(void) { return mem(); }\n"
        code, lines = run_check({**GOOD, "src/mem/walk.c": walk})
        self.assertEqual(code, 1)
        self.assertEqual(
            lines,
            [
                "circle of 2: mem/mem, mem/walk",
                "    mem/mem uses mem/walk",
                "    mem/walk uses mem/mem",
            ],
        )

    def test_folders_that_call_each_other(self):
        files = {
            "src/sym/name.c": "int name(void);\nint name(void) { return 2; }\n",
            "src/mem/walk.c": "int name(void);\nint walk(void);\nint walk(void) { return name(); }\n",
        }
        code, lines = run_check({**GOOD, **files})
        self.assertEqual((code, lines[0]), (1, "circle of 2: mem, sym"))

    def test_headers_that_include_each_other(self):
        files = {
            "include/uprof/mem.h": '#pragma once\n#include "uprof/sym.h"\nint mem(void);\n',
            "include/uprof/sym.h": '#pragma once\n#include "uprof/mem.h"\n',
        }
        code, lines = run_check({**GOOD, **files})
        self.assertEqual(code, 1)
        self.assertEqual(lines[0], "circle of 2: include/uprof/mem.h, include/uprof/sym.h")

    def test_private_header_of_another_folder(self):
        files = {
            "src/mem/walk.c": '#include "../sym/sym-priv.h"\nint walk(void);\nint walk(void) { return 1; }\n',
            "src/sym/sym-priv.h": "",
        }
        code, lines = run_check({**GOOD, **files})
        self.assertEqual((code, lines[0]), (1, "circle of 2: mem, sym"))

    def test_source_without_object(self):
        table = GOOD["src/modules.ini"] + "    lines.c\nsources extra =\n    extra.c\n"
        missing = ["src/sym/lines.c: no object in the build"]
        self.assertEqual(run_check({**GOOD, "src/modules.ini": table}), (1, missing))
        extra = ["src/sym/extra.c: no object in the build", *missing]
        self.assertEqual(run_check({**GOOD, "src/modules.ini": table}, ["extra"]), (1, extra))

    def test_objects_without_dependencies(self):
        walk = "int walk(void);\nint walk(void) { return 1; }\n"
        table = "[mem]\nsources = walk.c\n"
        self.assertEqual(run_check({"src/modules.ini": table, "src/mem/walk.c": walk}), (2, []))

    def test_nothing_to_check(self):
        self.assertEqual(run_check({"src/mem/mem.h": ""})[0], 2)


if __name__ == "__main__":
    unittest.main()
