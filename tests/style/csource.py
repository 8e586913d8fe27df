# SPDX-License-Identifier: LGPL-2.1-or-later
"""Separates comments and literals from code in C source, for the style checks."""

import re

# A comment or a literal. A literal ends at the end of its line at the latest, so that a
# single quote (as in the text of #error) cannot hide the next lines.
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
    """Returns blanks with the length and the line ends of @text."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """Returns @text with blanks instead of comments. Literals and line numbers stay."""
    return _TOKENS.sub(
        lambda token: token[0] if token["string"] or token["char"] else _blank(token[0]), text
    )


def code_only(text):
    """Returns @text with blanks instead of comments and literals. Line numbers stay."""
    return _TOKENS.sub(lambda token: _blank(token[0]), text)


def line_comments(text):
    """Returns the positions of // comments in @text."""
    return [token.start() for token in _TOKENS.finditer(text) if token["line"]]


def line_number(text, position):
    return text.count("\n", 0, position) + 1


def read(path):
    """Returns the text of @path. Bytes that are not UTF-8 do not end the check."""
    return path.read_text(encoding="utf-8", errors="replace")
