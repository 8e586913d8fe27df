# SPDX-License-Identifier: LGPL-2.1-or-later
"""C source as the style checks see it: comments and literals told from code."""

import re

# One token of what is not plain code. A literal ends at the end of its line at
# the latest, so that a lone quote (in #error text) cannot hide the next lines.
_TOKENS = re.compile(
    r"""
      (?P<block>/\*.*?(?:\*/|\Z))
    | (?P<line>//(?:\\\n|[^\n])*)
    | (?P<string>"(?:\\.|[^"\\\n])*"?)
    | (?P<char>(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*'?)
    """,
    re.DOTALL | re.VERBOSE,
)


def _blank(text):
    """Blanks of the same length and with the same line ends as @text."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """@text with its comments blanked; literals and line numbers stay."""
    return _TOKENS.sub(
        lambda token: token[0] if token["string"] or token["char"] else _blank(token[0]), text
    )


def code_only(text):
    """@text with comments and literals blanked; line numbers stay."""
    return _TOKENS.sub(lambda token: _blank(token[0]), text)


def line_comments(text):
    """The positions in @text of comments of the // kind."""
    return [token.start() for token in _TOKENS.finditer(text) if token["line"]]


def line_number(text, position):
    return text.count("\n", 0, position) + 1


def read(path):
    """The text of @path; bytes that are no UTF-8 must not end a check."""
    return path.read_text(encoding="utf-8", errors="replace")
