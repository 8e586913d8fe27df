#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
embed.py OUT FILE... - writes text files as C strings

svg.js becomes `uprof_svg_js`. Indentation, empty lines and comment lines are left out,
because each picture contains the text.
"""

import pathlib
import sys


def lines_of(path):
    """Yields the lines of the file without indentation, empty lines and comment lines."""
    in_comment = False
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        in_comment = in_comment or text.startswith("/*")
        if text and not in_comment and not text.startswith("//"):
            yield text
        in_comment = in_comment and not text.endswith("*/")


def quote(text):
    return '"%s\\n"' % text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")


def main(out, *names):
    text = [
        "/* SPDX-License-Identifier: LGPL-2.1-or-later */",
        '#include "svg-files-priv.h"',
    ]
    for name in names:
        path = pathlib.Path(name)
        text.append("const char uprof_%s[] =" % path.name.replace(".", "_"))
        text.append("\n".join("    " + quote(line) for line in lines_of(path)) + ";")
    pathlib.Path(out).write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
