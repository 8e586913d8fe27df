#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
check-grep.py [ROOT] - names that C files may not use, and what to use instead

Reads one table of rules; each message names the alternative. Ignores comments and
literals. Prints one line for each fault. Exits 0 if there is no fault, 1 if there is one,
2 if there is nothing to check.
"""

import pathlib
import re
import sys
from typing import NamedTuple

import csource

PRODUCT = ("src/", "include/")
SPDX = "/* SPDX-License-Identifier: LGPL-2.1-or-later */"
PROGRAM = ("src/cli/",)
# Files that end the program without memory, like g_malloc()
MEMORY = ("src/output/deflate.c", "src/snapshot/ring.c")
# Files that close or move the descriptors beyond the three standard streams
DESCRIPTORS = ("src/base/confine.c", "src/base/spawner.c", "src/fetch/fetcher.c", "src/guest/guardian.c")
# A program of its own, whose parent reads its streams
HELPER = ("src/fetch/debuginfod-helper.c",)


class Rule(NamedTuple):
    """A pattern of names that code may not use."""

    pattern: str
    except_in: tuple  # prefixes of the paths where code may use them
    instead: str


def calls(names):
    """Returns a pattern for calls of these functions, but not of members with the same names."""
    return rf"(?<![\w.])(?<!->)(?:{names})(?=\s*\()"


def words(names):
    """Returns a pattern for any use of these names, except members with the same names."""
    return rf"(?<![\w.])(?<!->)(?:{names})(?!\w)"


# fmt: off
RULES = (
    Rule(words(r"WITH_\w+"), ("src/run/access.c",),
         "only src/run/access.c decides what a build contains; add a row to its table"),
    Rule(calls(r"v?f?printf|v?dprintf|g_v?f?printf|g_print|g_printerr|f?puts|f?putc|putchar|perror"), PROGRAM,
         "return it, set a GError or send a notice (uprof/notice.h); only src/cli prints"),
    Rule(calls(r"g_(?:error|critical|warning|message|info|debug|log\w*|warn_if_\w+|return_\w*if_fail)"),
         PROGRAM + MEMORY,
         "return it, set a GError or send a notice (uprof/notice.h); only src/cli prints"),
    Rule(words(r"STDERR_FILENO"), PROGRAM + DESCRIPTORS + HELPER,
         "send a notice (uprof/notice.h); only src/cli uses the terminal"),
    Rule(words(r"EXIT_SUCCESS|EXIT_FAILURE|EX_\w+"), PROGRAM,
         "return a UprofErrorCode; only src/cli knows exit codes"),
    Rule(words(r"stdout|stderr"), PROGRAM,
         "send a notice (uprof/notice.h) or write to a UprofFile; only src/cli uses the terminal"),
    Rule(calls(r"exit|quick_exit"), PROGRAM,
         "return false and set a GError; only src/cli ends the program"),
    Rule(words(r"UprofOptions"), PROGRAM,
         "take a settings structure of your own; only src/cli knows the command line"),
    Rule(words(r"UPROF_EXIT_\w+|uprof_exit_\w+"), PROGRAM,
         "return a UprofErrorCode or set a GError; only src/cli knows exit codes"),
    Rule(words(r"strcpy|stpcpy"), (),
         "use g_strlcpy() for a fixed buffer, g_strdup() for a new string"),
    Rule(words(r"strcat|strncat"), (),
         "use GString, or g_strlcat() for a fixed buffer"),
    Rule(words(r"v?sprintf"), (),
         "use g_snprintf() for a fixed buffer, g_strdup_printf() for a new string"),
    Rule(words(r"strtok|strtok_r"), (),
         "use the cursor of uprof/scan.h"),
    Rule(words(r"v?f?scanf|v?sscanf"), (),
         "use the cursors of uprof/scan.h and uprof/bytes.h"),
    Rule(words(r"ato[fil]|atoll|strto[fdl]|strtold|strtoll|strtoul|strtoull|strto[iu]max"), (),
         "use the number readers of uprof/scan.h, which have a base and a range"),
    Rule(words(r"alloca|g_alloca|g_newa0?"), (),
         "use a fixed array with a named bound, or the heap with g_autofree"),
    Rule(words(r"goto"), (),
         "use g_autoptr and return early, or make the part a function"),
)
# fmt: on


def files_of(root):
    return sorted(
        path
        for folder in ("src", "include", "tests")
        for path in (root / folder).rglob("*.[ch]")
        if path.is_file()
    )


def check_first_lines(shown, text):
    """Yields faults of the first lines: the license, and the name of a header of the project."""
    lines = text.split("\n")
    if lines[0] != SPDX:
        yield 1, f"the first line must be: {SPDX}"
    if not shown.startswith(PRODUCT) or not shown.endswith(".h"):
        return
    name = shown.rpartition("/")[2]
    if len(lines) < 3 or lines[1] != "/*" or not lines[2].startswith(f" * {name} - "):
        yield 2, f"the header's comment must begin: ' * {name} - ' and one clause about it"


def check_rules(shown, text):
    """Yields faults against the table of rules."""
    code = csource.code_only(text)
    for rule in RULES:
        if shown.startswith(rule.except_in):
            continue
        for match in re.finditer(rule.pattern, code):
            yield csource.line_number(code, match.start()), f"'{match[0]}': {rule.instead}"


def check_file(shown, text):
    """Returns the faults of one file as (line, message), sorted by line."""
    faults = list(check_first_lines(shown, text))
    for position in csource.line_comments(text):
        faults.append((csource.line_number(text, position), "'//': use /* */"))
    if shown.startswith(PRODUCT):
        faults.extend(check_rules(shown, text))
    return sorted(faults)


def main(arguments):
    default = pathlib.Path(__file__).parents[2]
    root = pathlib.Path(arguments[1]).resolve() if len(arguments) > 1 else default.resolve()
    files = files_of(root)
    if not files:
        print(f"check-grep.py: no C file below '{root}'", file=sys.stderr)
        return 2

    n_faults = 0
    for path in files:
        shown = path.relative_to(root).as_posix()
        for line, message in check_file(shown, csource.read(path)):
            print(f"{shown}:{line}: {message}")
            n_faults += 1
    if n_faults:
        print(f"check-grep.py: {n_faults} faults", file=sys.stderr)
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
