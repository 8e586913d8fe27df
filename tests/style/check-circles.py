#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
check-circles.py ROOT BUILD [GROUP...] - no two files or folders of src/ depend on each other

A source depends on another source if its object uses a function or variable that the
other object defines, according to nm(1). BUILD is the build folder with the objects. A
header depends on the headers that it includes. A folder depends on another folder if one
of its sources depends on a source there or includes a header there.

GROUPs name the optional sources of src/modules.ini that the build contains. The check needs an
object for each built source, because a source without an object has no dependencies.

Prints each circle with the names of its files, and each source without an object. Exits 0 if
there is nothing to print, 1 if there is, 2 if the objects show no dependency at all.
"""

import configparser
import pathlib
import re
import subprocess
import sys

import csource

TABLE = "src/modules.ini"

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+[<"]([^">]+)[">]', re.M)
# Meson names objects FOLDER_STEM.c.o, in a folder NAME.p/.
OBJECT = re.compile(r"(?P<folder>\w+)_(?P<stem>[\w-]+)\.c\.o$")


def find_files(root):
    """Returns all sources as FOLDER/STEM."""
    return {f"{path.parent.name}/{path.stem}" for path in (root / "src").glob("*/*.c")}


def find_built(root, groups):
    """Returns the sources that a build with @groups contains, as FOLDER/STEM."""
    ini = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    ini.read(root / TABLE, encoding="utf-8")
    keys = ("sources", *(f"sources {group}" for group in groups))
    return {
        f"{module}/{source.removesuffix('.c')}"
        for module in ini.sections()
        for key in keys
        for source in ini[module].get(key, "").split()
    }


def includes_of(root, path):
    """Yields the headers of the project that @path includes."""
    for name in INCLUDE.findall(csource.without_comments(csource.read(path))):
        for folder in (path.parent, root / "src", root / "include"):
            if (folder / name).is_file():
                yield (folder / name).resolve()
                break


def find_header_edges(root):
    """Returns the headers that each header includes: {path: {path}}."""
    headers = [*(root / "src").glob("*/*.h"), *(root / "include/uprof").glob("*.h")]
    return {
        path.relative_to(root).as_posix(): {
            header.relative_to(root).as_posix() for header in includes_of(root, path)
        }
        for path in headers
    }


def read_symbols(paths):
    """Returns {path: (defined, used)}: the global names that each object defines, or only uses."""
    symbols = {str(path): (set(), set()) for path in paths}
    done = subprocess.run(["nm", "-g", "-A", *symbols], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        path, rest = line.split(":", 1)
        kind, name = rest.split()[-2:]
        symbols[path][kind in "Uwv"].add(name)
    return symbols


def find_object_edges(build, files):
    """Returns the sources that each source uses: {FOLDER/STEM: {FOLDER/STEM}}, with an entry for each object."""
    owners, users, objects = {}, {}, {}
    for path in sorted(build.glob("src/**/*.c.o")):
        match = OBJECT.search(path.name)
        file = f"{match['folder']}/{match['stem']}" if match else None
        if file in files:
            objects[str(path)] = file
    for path, (defined, used) in read_symbols(objects).items() if objects else ():
        users[objects[path]] = used
        owners.update({name: objects[path] for name in defined})
    return {
        user: {owners[name] for name in names if name in owners} - {user}
        for user, names in users.items()
    }


def find_folder_edges(root, object_edges):
    """Returns the folders of src/ that each folder uses, by calls and by private headers."""
    edges = {}
    for user, targets in object_edges.items():
        for used in targets:
            edges.setdefault(user.split("/")[0], set()).add(used.split("/")[0])
    for path in (root / "src").glob("*/*.[ch]"):
        for header in includes_of(root, path):
            if header.parent.parent == root / "src":
                edges.setdefault(path.parent.name, set()).add(header.parent.name)
    return {user: targets - {user} for user, targets in edges.items()}


def find_circles(edges):
    """Returns the strongly connected sets of more than one node (Tarjan's algorithm, without recursion)."""
    index, low, stack, on_stack, circles = {}, {}, [], set(), []
    for root in sorted(edges):
        work = [(root, iter(sorted(edges.get(root, ()))))] if root not in index else []
        if work:
            index[root] = low[root] = len(index)
            stack.append(root)
            on_stack.add(root)
        while work:
            node, successors = work[-1]
            following = next(successors, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    circle = []
                    while not circle or circle[-1] != node:
                        circle.append(stack.pop())
                        on_stack.discard(circle[-1])
                    if len(circle) > 1:
                        circles.append(sorted(circle))
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(sorted(edges.get(following, ())))))
            elif following in on_stack:
                low[node] = min(low[node], index[following])
    return sorted(circles)


def describe_circle(circle, edges):
    lines = [f"circle of {len(circle)}: {', '.join(circle)}"]
    for user in circle:
        for used in sorted(edges.get(user, set()) & set(circle)):
            lines.append(f"    {user} uses {used}")
    return "\n".join(lines)


def main(arguments):
    root = pathlib.Path(arguments[1]).resolve()
    object_edges = find_object_edges(pathlib.Path(arguments[2]), find_files(root))
    found = 0

    if not any(object_edges.values()):
        print(f"check-circles.py: no dependency in '{arguments[2]}/src'", file=sys.stderr)
        return 2
    for file in sorted(find_built(root, arguments[3:]) - set(object_edges)):
        found += 1
        print(f"src/{file}.c: no object in the build")
    for edges in (object_edges, find_header_edges(root), find_folder_edges(root, object_edges)):
        for circle in find_circles(edges):
            found += 1
            print(describe_circle(circle, edges))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
