#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
check-names.py [ROOT] - readers can search for the names in src/

The name of a static function has at least two words, and no two sources of src/ have
the same file name. Prints one line for each fault. Exits 0 if there is no fault, 1 if
there is one, 2 if there is nothing to check.
"""

import pathlib
import re
import sys

import csource

# In a definition the return type is on the line before the name.
STATIC = re.compile(r"^static\b[^;={}()]*\n(?P<name>\w+)\(", re.M)


def check_functions(root, path):
    code = csource.code_only(csource.read(path))
    for match in STATIC.finditer(code):
        if "_" not in match["name"]:
            line = csource.line_number(code, match.start("name"))
            yield (
                f"{path.relative_to(root)}:{line}: '{match['name']}': one word; say what the "
                "function does to what, as in add_new_domains"
            )


def check_files(root, paths):
    seen = {}
    for path in paths:
        other = seen.setdefault(path.name, path)
        if other is not path:
            yield (
                f"{path.relative_to(root)}: {other.relative_to(root)} has the same file name; "
                "name the file by what it does"
            )


def main(arguments):
    default = pathlib.Path(__file__).parents[2]
    root = pathlib.Path(arguments[1]).resolve() if len(arguments) > 1 else default.resolve()
    paths = sorted((root / "src").glob("*/*.c"))
    faults = [fault for path in paths for fault in check_functions(root, path)]
    faults.extend(check_files(root, paths))

    if not paths:
        print(f"check-names.py: no source below '{root}/src'", file=sys.stderr)
        return 2
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
