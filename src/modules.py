#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
modules.py TABLE [GROUP...] - print the rows of modules.ini for meson

Prints one line for each module: its name, the modules it uses, its outside
libraries and its source files, separated by '|'; items are separated by
blanks. GROUPs name the optional sources and libraries that are built.
The groups `xen-module`, `xl-module`, `debuginfod-helper`, `push-helper` and `disk-helper` are
printed as modules of that name.
"""

import configparser
import sys

NOT_MODULES = ("shared", "everywhere")
OWN_PROGRAMS = ("xen-module", "xl-module", "debuginfod-helper", "push-helper", "disk-helper")


def read_table(path):
    ini = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    ini.optionxform = str
    with open(path, encoding="utf-8") as file:
        ini.read_file(file)
    return {name: ini[name] for name in ini.sections() if name not in NOT_MODULES}


def items_of(section, key, groups):
    """The words of @key and of its variants for @groups."""
    keys = [key] + [f"{key} {group}" for group in groups]
    return [word for key in keys for word in section.get(key, "").split()]


def print_row(folder, name, section, sources, groups):
    uses = section.get("uses", "").split()
    libraries = items_of(section, "libraries", groups)
    paths = [f"{folder}/{source}" for source in sources]
    print("|".join([name, " ".join(uses), " ".join(libraries), " ".join(paths)]))


def main(arguments):
    groups = arguments[2:]
    for name, section in read_table(arguments[1]).items():
        print_row(name, name, section, items_of(section, "sources", groups), groups)
        for own in OWN_PROGRAMS:
            of_own = section.get(f"sources {own}", "").split()
            if of_own:
                print_row(name, own, section, of_own, [])


if __name__ == "__main__":
    main(sys.argv)
