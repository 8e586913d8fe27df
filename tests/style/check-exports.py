#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
check-exports.py [ROOT] - include/uprof declares only functions that other modules use

A function in a public header must be used by another public header, or by a source or private
header of a module other than its own. Functions that free or clear a public type belong to the
type, and are not checked. Uses by tests do not count.

Prints one line for each fault. Exits 0 if there is no fault, 1 if there is one, 2 if there is
nothing to check.
"""

import pathlib
import re
import sys

import csource

DECLARATION = re.compile(r"^(?!typedef|#)\w[\w \t*]*?\b(?P<name>uprof_\w+)\(", re.M)
DEFINITION = re.compile(r"^(?P<name>uprof_\w+)\(", re.M)
WORD = re.compile(r"\buprof_\w+")
# Functions that end a value of a type. Modules that use the type call them through
# G_DEFINE_AUTOPTR_CLEANUP_FUNC and g_auto().
CLEANUP = re.compile(r"_(free|clear|ref|unref|quark)$")


def read_code(path):
    return csource.code_only(csource.read(path))


def find_uses(root):
    """Returns the modules that use each name, and the module that defines it:
    ({name: {module}}, {name: module})."""
    users, owners = {}, {}
    for path in sorted((root / "src").glob("*/*.[ch]")):
        code, module = read_code(path), path.parent.name
        for name in WORD.findall(code):
            users.setdefault(name, set()).add(module)
        if path.suffix == ".c":
            owners.update({match["name"]: module for match in DEFINITION.finditer(code)})
    return users, owners


def check_headers(root):
    users, owners = find_uses(root)
    headers = {path: read_code(path) for path in sorted((root / "include/uprof").glob("*.h"))}
    for path, code in headers.items():
        for match in DECLARATION.finditer(code):
            name = match["name"]
            is_in_header = sum(
                len(re.findall(rf"\b{name}\b", text)) for text in headers.values()
            ) > 1
            others = users.get(name, set()) - {owners.get(name)}
            if not CLEANUP.search(name) and not is_in_header and not others:
                line = csource.line_number(code, match.start("name"))
                yield (
                    f"{path.relative_to(root)}:{line}: no other module uses '{name}'; make it "
                    "static, or declare it in a -priv.h"
                )


def main(arguments):
    default = pathlib.Path(__file__).parents[2]
    root = pathlib.Path(arguments[1]).resolve() if len(arguments) > 1 else default.resolve()

    if not list((root / "include/uprof").glob("*.h")):
        print(f"check-exports.py: no header below '{root}/include/uprof'", file=sys.stderr)
        return 2
    faults = list(check_headers(root))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
