#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
check-xml-man.py SOURCE-ROOT - virt-uprof.xml(5) agrees with the schema and the defaults

The page has an item for each attribute of the schema, and for no other attribute. The
item is in the section about the metadata or in the section about the configuration file.
Defaults in the page are those of xml/virt-uprof.xml. An element that a configuration can repeat
has no defaults there.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

RNG = "{http://relaxng.org/ns/structure/1.0}"


def local_name(name):
    return name.rpartition(":")[2]


def attributes_of(node, defines, element, found):
    """Adds 'element/@attribute' for each attribute below @node."""
    for child in node:
        if child.tag == RNG + "ref":
            attributes_of(defines[child.get("name")], defines, element, found)
        elif child.tag == RNG + "element":
            attributes_of(child, defines, local_name(child.get("name")), found)
        elif child.tag == RNG + "attribute":
            found.add("%s/@%s" % (element, child.get("name")))
        else:
            attributes_of(child, defines, element, found)


def repeated_of(defines, node, is_repeated, found):
    """Adds the attributes of elements that can be repeated below @node."""
    for child in node:
        repeats = is_repeated or child.tag == RNG + "zeroOrMore"
        if child.tag == RNG + "ref":
            repeated_of(defines, defines[child.get("name")], is_repeated, found)
        elif child.tag == RNG + "element" and repeats:
            attributes_of(child, defines, local_name(child.get("name")), found)
        else:
            repeated_of(defines, child, repeats, found)


def read_schema(path):
    """Returns the attributes of the metadata, those of the configuration, and the repeated ones of these."""
    root = ET.parse(path).getroot()
    defines = {define.get("name"): define for define in root.findall(RNG + "define")}
    metadata, configuration = set(), set()
    for start in root.find(RNG + "start").find(RNG + "choice"):
        wrapper = ET.Element("start")
        wrapper.append(start)
        attributes_of(wrapper, defines, None, configuration if start.tag == RNG + "ref" else metadata)
    repeated = set()
    repeated_of(defines, defines["configuration"], False, repeated)
    return metadata, configuration, repeated


def read_page(text, title):
    """Returns the items of a section: {name: quoted default, or None}."""
    section = re.search(r"^\.Sh %s\n(.*?)^\.Sh " % title, text, re.M | re.S)
    items = re.findall(r"^\.It Cm (\S+/@\S+)(?: No = Dq ?(.*))?$", section[1], re.M)
    return {name: value for name, value in items}


def main(arguments):
    root = pathlib.Path(arguments[1])
    page = root / "xml/virt-uprof.xml.5"
    text = page.read_text()
    faults = []

    metadata, configuration, repeated = read_schema(root / "xml/virt-uprof.rng")
    in_file = {}
    for element in ET.parse(root / "xml/virt-uprof.xml").getroot():
        for name, value in element.attrib.items():
            in_file["%s/@%s" % (element.tag, name)] = value
    if len(metadata) < 5 or len(configuration) < 10:
        faults.append("the schema could not be read")
    for title, expected in (("DOMAIN METADATA", metadata), ("CONFIGURATION FILE", configuration)):
        items = set(read_page(text, title))
        faults += ["%s: %s is in the schema only" % (title, name) for name in sorted(expected - items)]
        faults += ["%s: %s is in the page only" % (title, name) for name in sorted(items - expected)]
    faults += ["%s is in the schema only, and not in virt-uprof.xml" % n for n in sorted(configuration - repeated - set(in_file))]
    for name, value in read_page(text, "CONFIGURATION FILE").items():
        if name not in repeated and value != in_file.get(name):
            faults.append("default of %s: '%s' in the page, '%s' in virt-uprof.xml" % (name, value, in_file.get(name)))
    if shutil.which("mandoc"):
        done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", str(page)], capture_output=True, text=True, check=False)
        faults += done.stdout.splitlines()
    elif not faults:
        print("SKIP: mandoc is not installed")
        return 77

    for fault in faults:
        print("%s: %s" % (page, fault))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
