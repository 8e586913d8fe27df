#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
check-exports.py [ROOT] - include/uprof declares only what other modules use

A function in a public header must be used by another public header, or by a source or private
header of a module other than its own. Functions that free or clear a public type belong to the
type, and are not checked.

A constant in a public header, a macro or a member of an enum without a name, must be used by a
module other than its own, by a declaration (such as the bound of an array), or by a comment that
names it as %CONSTANT, because callers keep to it. Members of an enum with a name belong to the
type, and are not checked.

Uses by tests do not count.

Prints one line for each fault. Exits 0 if there is no fault, 1 if there is one, 2 if there is
nothing to check.
"""

import configparser
import pathlib
import re
import sys

import csource

TABLE = "src/modules.ini"

DECLARATION = re.compile(r"^(?!typedef|#)\w[\w\s*]*?\b(?P<name>uprof_\w+)\(", re.M)
DEFINITION = re.compile(r"^(?P<name>uprof_\w+)\(", re.M)
WORD = re.compile(r"\b(?:uprof|UPROF)_\w+")
ENUM = re.compile(r"\b(?P<typedef>typedef\s+)?enum\s*(?P<tag>\w*)\s*\{(?P<members>[^{}]*)\}")
MEMBER = re.compile(r"(?P<name>\bUPROF_\w+)(?P<value>[^,]*)")
MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(?P<name>UPROF_\w+)(?P<value>(?:\\\n|[^\n])*)", re.M
)
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


def find_constants(code):
    """Yields (name, position, value) of each constant that @code defines outside of a type."""
    for match in ENUM.finditer(code):
        if not match["typedef"] and not match["tag"]:
            for member in MEMBER.finditer(match["members"]):
                yield member["name"], match.start("members") + member.start(), member["value"]
    for match in MACRO.finditer(code):
        yield match["name"], match.start("name"), match["value"]


def without_constants(code):
    """Returns @code without the definitions that find_constants() finds."""
    code = ENUM.sub(lambda match: match[0] if match["typedef"] or match["tag"] else "", code)
    return MACRO.sub("", code)


def find_owner_of_headers(root):
    """Returns the module of each public header that src/modules.ini or a source's name tells."""
    owners = {path.with_suffix(".h").name: path.parent.name for path in root.glob("src/*/*.c")}
    ini = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    ini.read(root / TABLE, encoding="utf-8")
    for module in ini.sections():
        for header in ini[module].get("headers", "").split():
            owners[header] = module
    return owners


def check_constants(root, headers, users):
    owners = find_owner_of_headers(root)
    constants = [
        (path, code, *constant) for path, code in headers.items() for constant in find_constants(code)
    ]
    needed = set(WORD.findall("\n".join(without_constants(code) for code in headers.values())))
    for path in headers:
        needed.update(re.findall(r"%(UPROF_\w+)", csource.read(path)))
    for path, _, name, _, _ in constants:
        if users.get(name, set()) - {owners.get(path.name)}:
            needed.add(name)
    # The value of a constant that is needed may be computed from others.
    values = {name: set(WORD.findall(value)) for _, _, name, _, value in constants}
    while more := {word for name in needed for word in values.get(name, ())} - needed:
        needed |= more
    for path, code, name, position, _ in constants:
        if name not in needed:
            yield (
                f"{path.relative_to(root)}:{csource.line_number(code, position)}: no other module "
                f"uses '{name}'; move it into the source, or into a -priv.h"
            )


def check_functions(root, headers, users, owners):
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


def check_headers(root):
    users, owners = find_uses(root)
    headers = {path: read_code(path) for path in sorted((root / "include/uprof").glob("*.h"))}
    yield from check_functions(root, headers, users, owners)
    yield from check_constants(root, headers, users)


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
