#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
embed.py OUT STYLE SCRIPT... - writes the style sheet and the script of pictures as C strings

The scripts become one function, in the given order, which the browser calls when it has read
the picture. Indentation, empty lines and
comment lines are left out, because each picture contains the text.
"""

import pathlib
import sys

# Hides the static picture before the browser lays it out, which takes as long as the script. An
# error shows the static picture again.
BEGIN = (
    "{",
    "const page = document.documentElement;",
    "if (page.namespaceURI === 'http://www.w3.org/2000/svg') page.classList.add('live');",
    "window.addEventListener('error', () => page.classList.remove('live'));",
    "}",
    "document.addEventListener('DOMContentLoaded', () => {",
    "'use strict';",
)


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
    return '    "%s\\n"' % text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")


def define(name, lines):
    """Returns the definition of a constant string."""
    return "const char %s[] =\n%s;" % (name, "\n".join(map(quote, lines)))


def main(out, style, *scripts):
    script = [line for name in scripts for line in lines_of(pathlib.Path(name))]
    text = [
        "/* SPDX-License-Identifier: LGPL-2.1-or-later */",
        '#include "svg-files-priv.h"',
        define("uprof_svg_css", lines_of(pathlib.Path(style))),
        define("uprof_svg_js", [*BEGIN, *script, "});"]),
    ]
    pathlib.Path(out).write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
