#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-check-layers.py - check-layers.py reports each kind of fault

Each case starts from a tree that passes, changes one thing, and expects exactly one
fault, so that a missing message and a superfluous one are both failures.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check-layers.py")

TABLE = """
[base]
uses =
sources = bytes.c
keeps =

[parse]
uses = base
sources = elf.c
headers = image.h
keeps = libelf.h libxml/

[mem]
uses = base
sources = mem.c
keeps =

[backend]
uses = base parse
sources = host.c
keeps = xen* linux/kvm.h

[shared]
zlib.h = parse backend

[everywhere]
headers = glib.h stdint.h linux/
"""

GOOD = {
    "src/modules.ini": TABLE,
    "include/uprof/bytes.h": "#include <stdint.h>\n",
    "include/uprof/elf.h": '#include "uprof/bytes.h"\n',
    "include/uprof/image.h": '#include "uprof/bytes.h"\n',
    "include/uprof/mem.h": "",
    "include/uprof/host.h": '#include "uprof/image.h"\n',
    "src/base/bytes.c": '#include "uprof/bytes.h"\n#include <glib.h>\n#include <linux/types.h>\n',
    "src/parse/elf.c": '#include "uprof/elf.h"\n#include "elf-priv.h"\n#include <libelf.h>\n'
    "#include <libxml/tree.h>\n#include <zlib.h>\n",
    "src/parse/elf-priv.h": '#include "uprof/bytes.h"\n',
    "src/mem/mem.c": '#include "uprof/mem.h"\n',
    "src/mem/mem-priv.h": '#include "uprof/bytes.h"\n',
    "src/backend/host.c": '#include "uprof/host.h"\n#include <xenctrl.h>\n#include <linux/kvm.h>\n'
    "/* #include <popt.h> */\n",
    "src/backend/host-priv.h": '#include "uprof/bytes.h"\n#include "uprof/elf.h"\n#include <xenctrl.h>\n'
    "#include <linux/kvm.h>\n#include <zlib.h>\n",
    "tests/unit/parse/test-elf.c": "",
    "tests/fuzz/fuzz-elf.c": "",
    "tests/fuzz/corpus/elf/empty": "",
    "tests/fuzz/dict/elf.dict": "",
}

# Changed files (None: the file is missing), and a part of the expected message
CASES = {
    "include-of-module-not-in-row": (
        {"src/mem/mem.c": '\n#include "uprof/elf.h"\n'},
        'src/mem/mem.c:2: "uprof/elf.h": mem may not use parse',
    ),
    "include-in-angle-brackets": (
        {"src/mem/mem.c": "#include <uprof/elf.h>\n"},
        "src/mem/mem.c:1: <uprof/elf.h>: mem may not use parse",
    ),
    "include-with-blanks": (
        {"src/mem/mem.c": '  #  include   "uprof/elf.h" /* why */\n'},
        "mem may not use parse",
    ),
    "include-after-quote-in-comment": (
        {"src/mem/mem.c": '/* don\'t */\n#include "uprof/elf.h"\n'},
        "src/mem/mem.c:2:",
    ),
    "include-by-listed-name": (
        {"src/mem/mem.c": '#include "uprof/image.h"\n'},
        "mem may not use parse",
    ),
    "include-of-module-below": (
        {"src/base/bytes.c": '#include "uprof/mem.h"\n'},
        "base may not use mem",
    ),
    "include-in-public-header": (
        {"include/uprof/mem.h": '#include "uprof/elf.h"\n'},
        'include/uprof/mem.h:1: "uprof/elf.h": mem may not use parse',
    ),
    "include-of-missing-public-header": (
        {"src/mem/mem.c": '#include "uprof/nothing.h"\n'},
        "there is no include/uprof/nothing.h",
    ),
    "include-by-macro": ({"src/mem/mem.c": "#include HEADER\n"}, "the name of the file must be a literal"),
    "kept-header": (
        {"src/mem/mem.c": "#include <libelf.h>\n"},
        "<libelf.h>: only parse may include it, mem may not",
    ),
    "kept-prefix-with-slash": (
        {"src/mem/mem.c": "#include <libxml/parser.h>\n"},
        "only parse may include it",
    ),
    "kept-prefix-with-star": (
        {"src/mem/mem.c": "#include <xen/xen.h>\n"},
        "only backend may include it",
    ),
    "kept-before-everywhere": (
        {"src/mem/mem.c": "#include <linux/kvm.h>\n"},
        "only backend may include it",
    ),
    "kept-header-in-public-header": (
        {"include/uprof/mem.h": "#include <libelf.h>\n"},
        "include/uprof/mem.h:1: <libelf.h>: only parse",
    ),
    "shared-header": (
        {"src/mem/mem.c": "#include <zlib.h>\n"},
        "only backend and parse may include it",
    ),
    "external-header-that-no-module-keeps": (
        {"src/mem/mem.c": "#include <curl/curl.h>\n"},
        "mem does not keep it, and it is not part of libc or GLib",
    ),
    "private-header-of-another-module": (
        {"src/backend/host.c": '#include "../parse/elf-priv.h"\n'},
        'src/backend/host.c:1: "../parse/elf-priv.h": a private header of parse',
    ),
    "private-header-by-path-from-src": (
        {"src/mem/mem.c": '#include "parse/elf-priv.h"\n'},
        "a private header of parse",
    ),
    "missing-private-header": (
        {"src/mem/mem.c": '#include "elf-priv.h"\n'},
        "no such private header in src/mem/",
    ),
    "private-header-in-public-header": (
        {"include/uprof/elf.h": '#include "../../src/parse/elf-priv.h"\n'},
        "include/uprof/elf.h:1: \"../../src/parse/elf-priv.h\": a private header; a public header must not",
    ),
    "quoted-external-header": ({"src/mem/mem.c": '#include "glib.h"\n'}, "no such file"),
    "include-of-a-test": (
        {"src/mem/mem.c": '#include "../../tests/fuzz/fuzz-elf.c"\n'},
        "only headers of src/ and include/",
    ),
    "private-header-with-public-name": ({"src/mem/walk.h": ""}, "is named *-priv.h"),
    "file-in-no-module": ({"src/main.c": ""}, "src/main.c: belongs to no module"),
    "folder-not-in-table": ({"src/extra/x.c": ""}, "src/extra/: not in src/modules.ini"),
    "source-not-in-table": (
        {"src/mem/walk.c": ""},
        "src/mem/walk.c: not in src/modules.ini; add it to the sources of [mem]",
    ),
    "listed-source-missing": (
        {"src/modules.ini": TABLE.replace("sources = mem.c", "sources = mem.c walk.c")},
        "[mem] lists 'walk.c', but there is no src/mem/walk.c",
    ),
    "source-listed-twice": (
        {"src/modules.ini": TABLE.replace("sources = mem.c", "sources = mem.c\nsources qemu = mem.c")},
        "[mem] lists 'mem.c' twice",
    ),
    "header-without-module": ({"include/uprof/orphan.h": ""}, "orphan.h: belongs to no module"),
    "header-of-two-by-name": (
        {
            "src/backend/mem.c": "",
            "src/modules.ini": TABLE.replace("sources = host.c", "sources = host.c mem.c"),
        },
        "mem.h: belongs to two modules, mem and backend",
    ),
    "header-of-two-by-listing": (
        {
            "src/modules.ini": TABLE.replace(
                "[mem]\nuses = base\n", "[mem]\nuses = base\nheaders = image.h\n"
            )
        },
        "image.h: belongs to two modules, parse and mem",
    ),
    "listed-header-missing": (
        {"src/modules.ini": TABLE.replace("image.h", "image.h gone.h")},
        "[parse] lists 'gone.h', but there is no",
    ),
    "table-uses-unknown-module": (
        {"src/modules.ini": TABLE.replace("[mem]\nuses = base", "[mem]\nuses = base disk")},
        "[mem] uses 'disk', which is not a module",
    ),
    "table-uses-module-below": (
        {"src/modules.ini": TABLE.replace("[mem]\nuses = base", "[mem]\nuses = base backend")},
        "[mem] uses 'backend', which does not stand above it",
    ),
    "table-shares-with-unknown": (
        {"src/modules.ini": TABLE.replace("parse backend\n", "parse backend disk\n")},
        "'zlib.h' is shared by 'disk'",
    ),
    "use-that-nothing-needs": (
        {"src/mem/mem-priv.h": "/* #include \"uprof/bytes.h\" */\n"},
        "[mem] uses 'base', but includes none of its headers",
    ),
    "kept-header-that-nothing-includes": (
        {"src/modules.ini": TABLE.replace("keeps = xen*", "keeps = popt.h xen*")},
        "[backend] keeps 'popt.h', but does not include it",
    ),
    "kept-prefix-that-nothing-includes": (
        {"src/modules.ini": TABLE.replace("keeps = xen*", "keeps = libxl* xen*")},
        "[backend] keeps 'libxl*', but does not include it",
    ),
    "shared-header-that-nothing-includes": (
        {"src/modules.ini": TABLE.replace("parse backend\n", "parse backend mem\n")},
        "'zlib.h' is shared by 'mem', which does not include it",
    ),
    "parser-without-test": ({"tests/unit/parse/test-elf.c": None}, "no tests/unit/parse/test-elf.c"),
    "parser-without-fuzz-target": ({"tests/fuzz/fuzz-elf.c": None}, "no tests/fuzz/fuzz-elf.c"),
    "parser-without-dictionary": ({"tests/fuzz/dict/elf.dict": None}, "no tests/fuzz/dict/elf.dict"),
    "parser-without-corpus": ({"tests/fuzz/corpus/elf/empty": None}, "no file in tests/fuzz/corpus/elf/"),
}


def run_check(files):
    """Checks a tree of @files, and returns the exit code and the lines of output."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            if text is None:
                continue
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, CHECK, root], capture_output=True, text=True, check=False
        )
    return done.returncode, done.stdout.splitlines()


class CheckLayers(unittest.TestCase):
    maxDiff = None

    def test_good_tree_passes(self):
        self.assertEqual(run_check(GOOD), (0, []))

    def test_each_fault_is_reported(self):
        for name, (changes, expected) in CASES.items():
            with self.subTest(name):
                code, lines = run_check({**GOOD, **changes})
                self.assertEqual(code, 1)
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(expected, lines[0])

    def test_cycle(self):
        table = TABLE.replace("[base]\nuses =", "[base]\nuses = parse")
        code, lines = run_check({**GOOD, "src/modules.ini": table})
        self.assertEqual(code, 1)
        self.assertEqual(len(lines), 2, lines)
        self.assertIn("[base] uses 'parse', which does not stand above it", lines[0])
        self.assertIn("cycle: base -> parse -> base", lines[1])

    def test_longer_cycle_is_reported_once(self):
        table = TABLE.replace("[base]\nuses =", "[base]\nuses = backend")
        _, lines = run_check({**GOOD, "src/modules.ini": table})
        self.assertEqual(len([line for line in lines if "cycle: base -> " in line]), 1, lines)

    def test_module_that_uses_itself(self):
        table = TABLE.replace("[mem]\nuses = base", "[mem]\nuses = base mem")
        _, lines = run_check({**GOOD, "src/modules.ini": table})
        self.assertTrue(any("cycle: mem -> mem" in line for line in lines), lines)

    def test_listed_header_comes_before_file_name(self):
        files = {
            "include/uprof/elf.h": "",
            "src/modules.ini": TABLE.replace("[base]\nuses =\n", "[base]\nuses =\nheaders = elf.h\n"),
        }
        code, lines = run_check(
            {**GOOD, **files, "src/mem/mem.c": '#include "uprof/elf.h"\n'}
        )
        self.assertEqual((code, lines), (0, []))

    def test_unreadable_table(self):
        self.assertEqual(run_check({**GOOD, "src/modules.ini": None})[0], 2)
        self.assertEqual(run_check({**GOOD, "src/modules.ini": "uses = base\n"})[0], 2)


if __name__ == "__main__":
    unittest.main()
