#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-check-grep.py - check-grep.py finds one bad line for each rule, and accepts
similar good lines
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check-grep.py")
SPDX = "/* SPDX-License-Identifier: LGPL-2.1-or-later */\n"
HEADER = SPDX + "/*\n * x.h - a header\n */\n"

# Name: path, third line of the file, and a part of the expected message about that line
BAD_LINES = {
    "with": ("src/cli/main.c", "#ifdef WITH_XEN", "'WITH_XEN': only src/run/access.c decides"),
    "with-if-defined": ("src/base/x.c", "#if defined(WITH_QEMU)", "'WITH_QEMU'"),
    "printf": ("src/base/x.c", 'printf("x");', "'printf': return it, set a GError"),
    "printf-in-output": ("src/output/x.c", 'printf("x");', "'printf': return it"),
    "stderr": ("src/run/x.c", "FILE *f = stderr;", "'stderr': send a notice"),
    "options-in-library": ("src/run/x.c", "UprofOptions *options;", "'UprofOptions': take a settings"),
    "exit-code-in-library": ("src/load/x.c", "return UPROF_EXIT_OK;", "'UPROF_EXIT_OK': return a"),
    "exit-function-in-library": ("src/load/x.c", "uprof_exit_worse(a, b);", "'uprof_exit_worse'"),
    "fprintf": ("src/base/x.c", 'fprintf (file, "x");', "'fprintf'"),
    "g_print": ("src/base/x.c", 'g_print("x");', "'g_print'"),
    "g_printerr": ("src/base/x.c", 'g_printerr("x");', "'g_printerr'"),
    "g_error": ("src/base/x.c", 'g_error("x");', "'g_error': return it, set a GError"),
    "g_warning": ("src/base/x.c", 'g_warning ("x");', "'g_warning'"),
    "g_log_structured": ("src/base/x.c", 'g_log_structured("x");', "'g_log_structured'"),
    "g_return_val_if_fail": ("src/base/x.c", "g_return_val_if_fail(x, 0);", "'g_return_val_if_fail'"),
    "stderr-by-number": ("src/run/x.c", "write(STDERR_FILENO, text, 1);", "'STDERR_FILENO': send a notice"),
    "exit-success": ("src/live/x.c", "return EXIT_SUCCESS;", "'EXIT_SUCCESS': return a UprofErrorCode"),
    "exit-failure": ("src/live/x.c", "return a ? EXIT_FAILURE : 0;", "'EXIT_FAILURE'"),
    "exit-of-sysexits": ("src/live/x.c", "return EX_TEMPFAIL;", "'EX_TEMPFAIL'"),
    "puts": ("src/base/x.c", 'puts("x");', "'puts'"),
    "exit": ("src/base/x.c", "exit(1);", "'exit': return false and set a GError"),
    "strcpy": ("src/cli/x.c", "strcpy(a, b);", "'strcpy': use g_strlcpy()"),
    "strcpy-pointed-at": ("src/cli/x.c", "copy = strcpy;", "'strcpy'"),
    "strcat": ("src/cli/x.c", "strcat(a, b);", "'strcat': use GString"),
    "sprintf": ("src/cli/x.c", 'sprintf(a, "x");', "'sprintf': use g_snprintf()"),
    "vsprintf": ("src/cli/x.c", 'vsprintf(a, "x", b);', "'vsprintf': use g_snprintf()"),
    "strtok": ("src/cli/x.c", 'strtok(a, ",");', "'strtok': use the cursor of uprof/scan.h"),
    "sscanf": ("src/cli/x.c", 'sscanf(a, "%d", &b);', "'sscanf': use the cursors"),
    "atoi": ("src/cli/x.c", "atoi(a);", "'atoi': use the number readers"),
    "strtol": ("src/cli/x.c", "strtol(a, NULL, 0);", "'strtol': use the number readers"),
    "strtoull": ("src/cli/x.c", "strtoull(a, NULL, 0);", "'strtoull': use the number readers"),
    "alloca": ("src/cli/x.c", "alloca(9);", "'alloca': use a fixed array"),
    "goto": ("src/cli/x.c", "goto out;", "'goto': use g_autoptr"),
    "in-public-header": ("include/uprof/x.h", "int n = atoi(a);", "'atoi'"),
    "in-private-header": ("src/base/x.h", "int n = atoi(a);", "'atoi'"),
    "line-comment": ("src/base/x.c", "int n; // why", "'//': use /* */"),
    "line-comment-in-test": ("tests/unit/x.c", "// why", "'//': use /* */"),
    "after-string": ("src/base/x.c", '"/*"; goto out; "*/";', "'goto'"),
    "after-quotes": ("src/base/x.c", "'\"'; goto out; '\"';", "'goto'"),
    "after-escape": ("src/base/x.c", '"\\""; goto out;', "'goto'"),
    "after-lone-quote": ("src/base/x.c", "#error don't\ngoto out;", "'goto'"),
}

GOOD_LINES = {
    "with-in-access": ("src/run/access.c", "#ifdef WITH_XEN"),
    "printf-in-cli": ("src/cli/x.c", 'printf("x"); g_printerr("x"); exit(1);'),
    "options-in-cli": ("src/cli/x.c", "UprofOptions *options; return UPROF_EXIT_OK; fputs(a, stderr);"),
    "codes-in-cli": ("src/cli/x.c", "write(STDERR_FILENO, a, 1); return EXIT_FAILURE;"),
    "no-memory": ("src/snapshot/ring.c", 'g_error("x");'),
    "descriptors": ("src/base/spawner.c", "channel = STDERR_FILENO + 1; _exit(EXIT_UNSAFE);"),
    "helper": ("src/fetch/debuginfod-helper.c", "write(STDERR_FILENO, text, 1);"),
    "similar-logs": ("src/base/x.c", 'g_error_new(a); my_g_error(a); g_set_error(a); g_warning_x(a);'),
    "printf-in-test": ("tests/unit/x.c", 'printf("x"); exit(1); goto out;'),
    "bounded-printf": ("src/base/x.c", 'snprintf(a, 1, "x"); g_snprintf(a, 1, "x"); g_strdup_printf("x");'),
    "printf-attribute": ("src/base/x.c", "G_GNUC_PRINTF(1, 2) __attribute__((format(printf, 1, 2)))"),
    "member": ("src/base/x.c", "ops->exit(guest); ops.puts(x); uprof_puts(x); exit_code = 1; _exit(1);"),
    "longer-name": ("src/base/x.c", "xalloca(9); goto_next(); strcpy_s(a); my_WITH_X;"),
    "in-comment": ("src/base/x.c", "/* never strcpy(), never goto // */"),
    "in-string": ("src/base/x.c", '"strcpy() // WITH_XEN goto";'),
    "address": ("src/base/x.c", '"https://example.org/";'),
}


def run_check(path, text):
    """Checks a tree of one file, and returns the exit code and the lines of output."""
    with tempfile.TemporaryDirectory() as root:
        file = pathlib.Path(root, path)
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, CHECK, root], capture_output=True, text=True, check=False
        )
    return done.returncode, done.stdout.splitlines()


def begin(path):
    """Returns valid first lines for the file at @path."""
    return HEADER if path.endswith(".h") else SPDX + "\n"


class CheckGrep(unittest.TestCase):
    def assert_one_fault(self, path, text, line, expected):
        code, lines = run_check(path, text)
        self.assertEqual(code, 1, lines)
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(f"{path}:{line}: "), lines[0])
        self.assertIn(expected, lines[0])

    def test_bad_lines(self):
        for name, (path, text, expected) in BAD_LINES.items():
            with self.subTest(name):
                start = begin(path)
                line = start.count("\n") + 1 + text.count("\n")
                self.assert_one_fault(path, start + text + "\n", line, expected)

    def test_good_lines(self):
        for name, (path, text) in GOOD_LINES.items():
            with self.subTest(name):
                self.assertEqual(run_check(path, begin(path) + text + "\n"), (0, []))

    def test_license(self):
        for path in ("src/base/x.c", "tests/unit/x.c"):
            for text in ("", "\n" + SPDX, SPDX.replace("LGPL", "GPL"), "/* */ " + SPDX):
                with self.subTest(path=path, text=text):
                    self.assert_one_fault(path, text, 1, "the first line must be: /* SPDX")

    def test_header_comment(self):
        for path in ("src/base/x.h", "include/uprof/x.h"):
            for text in ("", "#pragma once\n", "/*\n * y.h - a header\n */\n", "/*\n * x.h\n */\n"):
                with self.subTest(path=path, text=text):
                    self.assert_one_fault(path, SPDX + text, 2, "must begin: ' * x.h - '")
        self.assertEqual(run_check("tests/lib/x.h", SPDX), (0, []))

    def test_empty_tree(self):
        with tempfile.TemporaryDirectory() as root:
            done = subprocess.run([sys.executable, CHECK, root], stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
