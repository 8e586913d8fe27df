#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-check-scripts.py - check-xml-man.py and the style checks in shell find their faults
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
CC = os.environ.get("CC", "cc").split()


def run(*command, **options):
    """Returns the exit code and all output of @command."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    return done.returncode, done.stdout


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def check(self, script, *arguments, **options):
        return run(HERE / script, *arguments, **options)

    def assert_fails(self, result, code, expected):
        self.assertEqual(result[0], code, result[1])
        self.assertIn(expected, result[1])

    def assert_passes(self, result):
        self.assertEqual(result, (0, ""))

    # check-man.sh

    def test_man(self):
        options = ["option-%s" % letter for letter in "abcdefghijklmnopqrstu"]
        commands = ["add", "bend", "cut", "draw", "eat"]
        text = "program\n\nCommands:\n%s\nOptions:\n%s\nExit codes:\n  0   done\n  75  locked\n" % (
            "".join("  %-8s FILE  what it does\n" % name for name in commands),
            "".join("      --%s=N  what it does\n" % name for name in options),
        )
        program = self.write("program", "#!/bin/sh\ncat <<'END'\n%sEND\n" % text)
        program.chmod(0o755)
        page = ".Dd November 22, 2026\n.Dt PROGRAM 1\n.Os\n.Sh NAME\n.Nm program\n.Nd does\n.Sh DESCRIPTION\n"
        page += ".Ss Commands\n.Bl -tag -width Ds\n%s.El\n" % "".join(".It Cm %s\nDoes.\n" % n for n in commands)
        page += ".Ss Options\n.Bl -tag -width Ds\n%s.El\n" % "".join(".It Fl Fl %s Ar n\nIs.\n" % n for n in options)
        page += ".Sh EXIT STATUS\n.Bl -tag -width Ds\n.It 0\ndone\n.It 75\nlocked\n.El\n"
        if shutil.which("mandoc"):
            self.assert_passes(self.check("check-man.sh", program, self.write("page", page)))
        for old, new, expected in (
            (".It Fl Fl option-b", ".It Fl Fl option-bb", "--option-b is in --help only"),
            (".It Fl Fl option-b", ".It Fl Fl option-bb", "--option-bb is in the page only"),
            (".It Cm bend", ".It Cm break", "the commands differ from those of --help"),
            ("\nlocked\n", "\nopen\n", "EXIT STATUS differs from --help"),
        ):
            bad = self.write("bad-page", page.replace(old, new))
            self.assert_fails(self.check("check-man.sh", program, bad), 1, expected)

    # check-xml-man.py

    def test_xml_man(self):
        shutil.copytree(HERE.parents[1] / "xml", self.root / "xml")
        page = self.root / "xml/virt-uprof.xml.5"
        text = page.read_text(encoding="utf-8")
        if shutil.which("mandoc"):
            self.assert_passes(self.check("check-xml-man.py", self.root))
        for old, new, expected in (
            ("= Dq 99\n", "= Dq 98\n", "default of profile/@rate: '98' in the page, '99' in virt-uprof.xml"),
            ("Cm store/@sliceDays", "Cm store/@slices", "store/@sliceDays is in the schema only"),
            ("Cm store/@sliceDays", "Cm store/@slices", "store/@slices is in the page only"),
            ("Cm symbols/@file", "Cm symbols/@path", "DOMAIN METADATA: symbols/@file is in the schema only"),
        ):
            page.write_text(text.replace(old, new), encoding="utf-8")
            self.assert_fails(self.check("check-xml-man.py", self.root), 1, expected)

    # check-size.sh

    def test_size(self):
        self.assert_fails(self.check("check-size.sh", self.root), 2, "no C file")
        self.write("src/cli/one.c", "line\n" * 5000)
        self.write("src/cli/one-priv.h", "line\n" * 500)
        self.write("src/run/other.c", "line\n" * 5000)
        self.assert_passes(self.check("check-size.sh", self.root))
        self.write("src/cli/two.c", "line\n")
        self.assert_fails(self.check("check-size.sh", self.root), 1, "5501 lines, more than 5500")

    # check-headers.sh

    def test_headers(self):
        self.write("include/uprof/good.h", "#include <glib.h>\ngboolean good(void);\n")
        self.assert_passes(self.check("check-headers.sh", self.root))
        self.write("include/uprof/bad.h", "#pragma once\nuint64_t bad(void);\n")
        self.assert_fails(
            self.check("check-headers.sh", self.root), 1, "include/uprof/bad.h does not compile alone"
        )

    def test_headers_missing(self):
        self.write("include/uprof/readme", "")
        self.assert_fails(self.check("check-headers.sh", self.root), 2, "no header")

    # check-linkage.sh

    def link(self, name, *options):
        """Links an ELF file that exports only a function with its own name."""
        symbol = name.replace(".", "_").replace("-", "_")
        source = self.write(f"{name}.c", f"int {symbol}(void); int {symbol}(void) {{ return 0; }}\n")
        output = self.root / name
        code, text = run(
            *CC, source, "-o", output, f"-L{self.root}", f"-Wl,-rpath,{self.root}",
            "-Wl,--no-as-needed", *options,
        )  # fmt: skip
        self.assertEqual(code, 0, text)
        return output

    def library(self, name, *options):
        return self.link(f"lib{name}.so", "-shared", "-fPIC", f"-Wl,-soname,lib{name}.so", *options)

    def test_linkage(self):
        for name in ("xenfoo", "xlutil", "xenlight", "virt"):
            self.library(name)
        # Each of these libraries needs another library.
        self.library("helper", "-lxenfoo")
        self.library("other", "-lvirt")
        shared = ("-shared", "-fPIC")
        with_virt = self.link("with-virt", *shared, "-lvirt")
        with_xen = self.link("with-xen", *shared, "-lxenfoo")
        with_xl = self.link("with-xl", *shared, "-lxlutil")
        with_light = self.link("with-light", *shared, "-lxenlight")
        by_helper = self.link("by-helper", *shared, "-lhelper")
        by_other = self.link("by-other", *shared, "-lother")
        check = "check-linkage.sh"
        self.assert_passes(self.check(check, with_virt))
        self.assert_passes(self.check(check, with_virt, with_xen))
        self.assert_passes(self.check(check, with_virt, with_xen, with_light))
        self.assert_fails(self.check(check, with_virt, with_light), 1, "needs libxenlight.so; the")
        self.assert_fails(self.check(check, with_virt, with_xen, with_virt), 1, "needs libvirt.so")
        self.assert_fails(self.check(check, with_xen), 1, "'with-xen' needs libxenfoo.so; only")
        self.assert_fails(self.check(check, with_xl), 1, "needs libxlutil.so")
        self.assert_fails(self.check(check, by_helper), 1, "needs libxenfoo.so")
        self.assert_fails(self.check(check, with_virt, with_virt), 1, "needs libvirt.so; the Xen")
        self.assert_fails(self.check(check, with_virt, by_other), 1, "needs libvirt.so")

    def test_linkage_of_other_file(self):
        self.assert_fails(self.check("check-linkage.sh", self.write("script", "#!/bin/sh\n")), 2, "not an ELF file")
        self.assert_fails(self.check("check-linkage.sh", self.root / "nothing"), 2, "not an ELF file")

    # check-format.sh

    def test_format(self):
        if not shutil.which("clang-format"):
            self.skipTest("clang-format is not installed")
        shutil.copy(HERE.parents[1] / ".clang-format", self.root)
        self.write("src/good.c", "int\ngood(void)\n{\n    return 0;\n}\n")
        self.assert_passes(self.check("check-format.sh", self.root))
        self.write("tests/unit/bad.c", "int bad(void) { return 0; }\n")
        self.assert_fails(self.check("check-format.sh", self.root), 1, "tests/unit/bad.c:1:")

    def test_format_is_skipped_with_a_reason(self):
        environment = {**os.environ, "CLANG_FORMAT": "no-such-program"}
        self.assertEqual(
            self.check("check-format.sh", self.root, env=environment),
            (77, "SKIP: 'no-such-program' is not installed\n"),
        )

    # check-paths.sh

    def checkout(self, text):
        run("git", "init", "-q", self.root)
        self.write("file", text)
        run("git", "-C", self.root, "add", "file")
        return self.check("check-paths.sh", self.root)

    @unittest.skipUnless(shutil.which("git"), "git is not installed")
    def test_paths(self):
        # The paths are put together here, because check-paths.sh also reads this file.
        home, work, root = (f"/{tree}" + "/x" for tree in ("home/joe", "work", "root"))
        for text in (home, f"at {work}", f'"{root}"', f"-I{work}", f"path={home}", f"({root})"):
            with self.subTest(text):
                self.assert_fails(self.checkout(text + "\n"), 1, "write paths relative")
        for text in (f"src{work}", "${dir}" + work, "/root", f"https://example.org{home}", "/homepage/x"):
            with self.subTest(text):
                self.assert_passes(self.checkout(text + "\n"))

    @unittest.skipUnless(shutil.which("git"), "git is not installed")
    def test_hosts(self):
        for host in ("mirror.example.org", "deb.example.org", "registry.example.net"):
            with self.subTest(host):
                self.assert_fails(self.checkout("https:/" + f"/{host}/x\n"), 1, "name packages")
        self.assert_passes(self.checkout("https://www.example.org/x https://virt-uprof.org/\n"))

    @unittest.skipUnless(shutil.which("git"), "git is not installed")
    def test_paths_outside_a_checkout(self):
        self.assert_fails(self.check("check-paths.sh", self.root), 77, "SKIP: ")


if __name__ == "__main__":
    unittest.main()
