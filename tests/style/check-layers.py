#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
check-layers.py [ROOT] - modules include what src/modules.ini allows, and all of it

Reads the table and every source file of src/ and include/uprof, and prints one
line for each fault. Exits 0 if there is no fault, 1 if there is one, 2 if the table
cannot be read. A comment at the top of the table explains its keys.
"""

import configparser
import pathlib
import posixpath
import re
import sys

import csource

TABLE = "src/modules.ini"
PUBLIC = "include/uprof"
# Sections of the table that are not modules
SHARED = "shared"
EVERYWHERE = "everywhere"

INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include|include_next|import)\b[ \t]*(.*?)[ \t]*$", re.M)
ARGUMENT = re.compile(r'(?:"(?P<quoted>[^"]+)"|<(?P<angled>[^>]+)>)$')


class Module:
    """One section of the table."""

    def __init__(self, name, section):
        self.name = name
        self.uses = section.get("uses", "").split()
        self.keeps = section.get("keeps", "").split()
        self.headers = section.get("headers", "").split()
        self.sources = [
            source
            for key, words in section.items()
            if key.split()[0] == "sources"
            for source in words.split()
        ]


class Table:
    """The content of modules.ini, which check_table() checks."""

    def __init__(self, path):
        # Keys of [shared] are names of headers, so the parser must not change their case.
        ini = configparser.ConfigParser(delimiters=("=",), interpolation=None)
        ini.optionxform = str
        with open(path, encoding="utf-8") as file:
            ini.read_file(file)
        self.modules = {
            name: Module(name, ini[name])
            for name in ini.sections()
            if name not in (SHARED, EVERYWHERE)
        }
        self.shared = (
            {header: modules.split() for header, modules in ini[SHARED].items()}
            if ini.has_section(SHARED)
            else {}
        )
        self.everywhere = ini.get(EVERYWHERE, "headers", fallback="").split()

    def keepers(self, header):
        """Returns the modules that keep or share the external @header."""
        keepers = {
            module.name
            for module in self.modules.values()
            if any(matches(pattern, header) for pattern in module.keeps)
        }
        for pattern, modules in self.shared.items():
            if matches(pattern, header):
                keepers.update(modules)
        return keepers

    def is_everywhere(self, header):
        return any(matches(pattern, header) for pattern in self.everywhere)


def matches(pattern, header):
    """Matches @header with a word of `keeps`, which is a name or a prefix."""
    if pattern.endswith("*"):
        return header.startswith(pattern[:-1])
    if pattern.endswith("/"):
        return header.startswith(pattern)
    return header == pattern


def find_cycle(modules, start):
    """Returns the names on a path along `uses` from @start back to @start, or None."""
    paths = [[start]]
    seen = set()
    while paths:
        path = paths.pop()
        for used in modules[path[-1]].uses if path[-1] in modules else []:
            if used == start:
                return path + [start]
            if used not in seen:
                seen.add(used)
                paths.append(path + [used])
    return None


def check_table(table):
    """Yields faults of the table itself, which must be a layering."""
    names = list(table.modules)
    for position, module in enumerate(table.modules.values()):
        for used in module.uses:
            if used not in table.modules:
                yield f"{TABLE}: [{module.name}] uses '{used}', which is not a module of the table"
            elif used not in names[:position]:
                yield (
                    f"{TABLE}: [{module.name}] uses '{used}', which does not stand above it; "
                    "modules use only those above"
                )
        cycle = find_cycle(table.modules, module.name)
        # Each cycle is reported once, for its first module in the table.
        if cycle and module.name == min(cycle, key=names.index):
            yield f"{TABLE}: cycle: {' -> '.join(cycle)}"
    for header, modules in table.shared.items():
        for name in modules:
            if name not in table.modules:
                yield f"{TABLE}: '{header}' is shared by '{name}', which is not a module of the table"


def module_of(root, path):
    """Returns the folder of src/ that contains @path, or None for src/ itself."""
    parts = path.relative_to(root / "src").parts
    return parts[0] if len(parts) > 1 else None


def sources_of(root):
    return sorted(path for path in (root / "src").rglob("*.[ch]") if path.is_file())


def check_folders(root, table):
    """Yields faults of src/: folders and files that belong to no section of the table."""
    for folder in sorted(path for path in (root / "src").glob("*") if path.is_dir()):
        if folder.name not in table.modules:
            yield f"src/{folder.name}/: not in {TABLE}; add it there, in order"
    for path in sources_of(root):
        shown = path.relative_to(root)
        if module_of(root, path) is None:
            yield f"{shown}: belongs to no module; move it into a folder of src/"
        elif path.suffix == ".h" and not path.name.endswith("-priv.h"):
            yield (
                f"{shown}: a private header is named *-priv.h; "
                f"declarations for other modules belong to {PUBLIC}/"
            )


def check_sources(root, table):
    """Yields faults of the lists of sources. A file that is not in its list is not built."""
    for module in table.modules.values():
        listed = set(module.sources)
        present = {path.name for path in (root / "src" / module.name).glob("*.c")}
        for source in sorted(listed - present):
            yield f"{TABLE}: [{module.name}] lists '{source}', but there is no src/{module.name}/{source}"
        for source in sorted(present - listed):
            yield f"src/{module.name}/{source}: not in {TABLE}; add it to the sources of [{module.name}]"
        for source in sorted(listed):
            if module.sources.count(source) > 1:
                yield f"{TABLE}: [{module.name}] lists '{source}' twice"


def find_owners(root, table):
    """Returns the modules to which each public header belongs: {name: [module]}.

    A module that lists the header under `headers` comes before modules with a source of
    that name, because two modules can have a source with the name of the header.
    """
    owners = {}
    for path in sorted((root / PUBLIC).rglob("*.h")):
        header = path.relative_to(root / PUBLIC).as_posix()
        listed = [module.name for module in table.modules.values() if header in module.headers]
        named = [
            name for name in table.modules if (root / "src" / name / header).with_suffix(".c").exists()
        ]
        owners[header] = listed or named
    return owners


def check_owners(table, owners):
    """Yields public headers that do not belong to exactly one module."""
    for header, modules in owners.items():
        if not modules:
            yield (
                f"{PUBLIC}/{header}: belongs to no module; there is no src/*/{header[:-2]}.c, "
                f"and no module lists it under `headers` in {TABLE}"
            )
        elif len(modules) > 1:
            yield (
                f"{PUBLIC}/{header}: belongs to two modules, {' and '.join(modules)}; "
                f"list it under `headers` of one in {TABLE}"
            )
    for module in table.modules.values():
        for header in module.headers:
            if header not in owners:
                yield f"{TABLE}: [{module.name}] lists '{header}', but there is no {PUBLIC}/{header}"


def check_public_include(table, owners, name, header):
    """Returns the fault of an include of uprof/@header in module @name, or None."""
    if header not in owners:
        return f"there is no {PUBLIC}/{header}"
    # check_owners() reports a header with no owner or two.
    allowed = {name, *table.modules[name].uses}
    if owners[header] and allowed.isdisjoint(owners[header]):
        return f"{name} may not use {owners[header][0]} ({TABLE})"
    return None


def check_outside_include(table, name, header):
    """Returns the fault of an include of the external @header in module @name, or None."""
    keepers = table.keepers(header)
    if keepers:
        return (
            None
            if name in keepers
            else f"only {' and '.join(sorted(keepers))} may include it, {name} may not ({TABLE})"
        )
    if table.is_everywhere(header):
        return None
    return (
        f"{name} does not keep it, and it is not part of libc or GLib; "
        f"add it to `keeps` of a module or to [{EVERYWHERE}] in {TABLE}"
    )


def check_private_include(root, path, name, header):
    """Returns the fault of an include of a file of src/ in @path of module @name, or None."""
    for start in (path.parent, root / "src", root):
        target = pathlib.Path(posixpath.normpath(start / header))
        if not target.is_file():
            continue
        if root / "src" not in target.parents:
            return "only headers of src/ and include/ may be included"
        if root / "src" not in path.parents:
            return "a private header; a public header must not include it"
        if module_of(root, target) != name:
            return (
                f"a private header of {module_of(root, target)}; "
                f"{name} may use only its headers in {PUBLIC}/"
            )
        return None
    # The name shows that a private header was meant, even if the file is missing.
    if header.endswith("-priv.h"):
        return f"no such private header in src/{name}/"
    return "no such file; include external headers with <>"


def check_include(root, table, owners, path, name, argument):
    """Returns the fault of one #include in @path, a file of module @name, or None."""
    match = ARGUMENT.match(argument)
    if not match:
        return "the name of the file must be a literal; write the header's name"
    header = match["quoted"] or match["angled"]
    if header.startswith("uprof/"):
        return check_public_include(table, owners, name, header.removeprefix("uprof/"))
    if match["quoted"] or header.endswith("-priv.h"):
        return check_private_include(root, path, name, header)
    return check_outside_include(table, name, header)


def find_includes(root, table, owners):
    """Yields the #include lines in src/ and in public headers: (path, line, module, argument)."""
    files = [(path, module_of(root, path)) for path in sources_of(root)]
    for header, modules in owners.items():
        files.extend((root / PUBLIC / header, name) for name in modules[:1])
    for path, name in files:
        if name not in table.modules:
            continue  # check_folders() reports this file
        text = csource.without_comments(csource.read(path))
        for match in INCLUDE.finditer(text):
            yield path, csource.line_number(text, match.start(1)), name, match[1]


def check_includes(root, table, owners):
    """Yields faults of #include lines."""
    for path, line, name, argument in find_includes(root, table, owners):
        fault = check_include(root, table, owners, path, name, argument)
        if fault:
            yield f"{path.relative_to(root)}:{line}: {argument}: {fault}"


def check_surplus(root, table, owners):
    """Yields permissions of the table that no #include line needs."""
    included = {name: set() for name in table.modules}
    for _, _, name, argument in find_includes(root, table, owners):
        match = ARGUMENT.match(argument)
        if match:
            included[name].add(match["quoted"] or match["angled"])
    for position, module in enumerate(table.modules.values()):
        headers = included[module.name]
        used = {
            owner
            for header in headers
            if header.startswith("uprof/")
            for owner in owners.get(header.removeprefix("uprof/"), ())
        }
        # check_table() reports a module that does not stand above this one.
        for name in sorted(set(list(table.modules)[:position]) & set(module.uses) - used):
            yield f"{TABLE}: [{module.name}] uses '{name}', but includes none of its headers"
        for pattern in module.keeps:
            if not any(matches(pattern, header) for header in headers):
                yield f"{TABLE}: [{module.name}] keeps '{pattern}', but does not include it"
    for pattern, modules in table.shared.items():
        for name in modules:
            if name in included and not any(matches(pattern, header) for header in included[name]):
                yield f"{TABLE}: '{pattern}' is shared by '{name}', which does not include it"


def check_parsers(root):
    """Yields parsers that have no test or no fuzz target."""
    for path in sorted((root / "src/parse").glob("*.c")):
        for needed in (f"tests/unit/parse/test-{path.stem}.c", f"tests/fuzz/fuzz-{path.stem}.c"):
            if not (root / needed).is_file():
                yield f"src/parse/{path.name}: no {needed}"


def check_fuzz_targets(root):
    """Yields fuzz targets that have no dictionary or no corpus."""
    for path in sorted((root / "tests/fuzz").glob("fuzz-*.c")):
        stem = path.stem.removeprefix("fuzz-")
        corpus = root / "tests/fuzz/corpus" / stem
        if not (root / f"tests/fuzz/dict/{stem}.dict").is_file():
            yield f"tests/fuzz/{path.name}: no tests/fuzz/dict/{stem}.dict"
        if not corpus.is_dir() or not any(entry.is_file() for entry in corpus.iterdir()):
            yield f"tests/fuzz/{path.name}: no file in tests/fuzz/corpus/{stem}/"


def check(root):
    """Returns all faults of the tree at @root, one line each."""
    table = Table(root / TABLE)
    owners = find_owners(root, table)
    return [
        *check_table(table),
        *check_folders(root, table),
        *check_sources(root, table),
        *check_owners(table, owners),
        *check_includes(root, table, owners),
        *check_surplus(root, table, owners),
        *check_parsers(root),
        *check_fuzz_targets(root),
    ]


def main(arguments):
    default = pathlib.Path(__file__).parents[2]
    root = pathlib.Path(arguments[1]).resolve() if len(arguments) > 1 else default.resolve()
    try:
        faults = check(root)
    except (OSError, configparser.Error) as error:
        print(f"check-layers.py: {error}", file=sys.stderr)
        return 2
    for fault in faults:
        print(fault)
    if faults:
        print(f"check-layers.py: {len(faults)} faults", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
