#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
check-docs.py [ROOT] - links and paths in the documentation exist

Reads README.md, CONTRIBUTING.md, SECURITY.md and doc/*.md. README.md has at most 120
lines. Every relative link and picture leads to a file of the project, and every anchor
to a heading. Every path in back quotes that begins with a folder of the project exists;
NAME in a path stands for any name. Prints one line for each fault. Exits 0 if there is
no fault, 1 if there is one, 2 if there is nothing to check.
"""

import pathlib
import re
import sys

PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
README_LINES_MAX = 120

# [text](target), [text](target "title"), and a line "[text]: target"
LINK = re.compile(r"\[[^]\[]*\](?:\(\s*|:[ \t]+(?=\S+$))(?P<target>[^()\s]*)", re.M)
SPAN = re.compile(r"(`+)(.+?)\1", re.S)
HEADING = re.compile(r"#{1,6} +(.*?)[ #]*$")
FENCE = re.compile(r" {0,3}(```+|~~~+)")
OUTSIDE = re.compile(r"[a-z][a-z+.-]*:")
PROJECT_PATH = re.compile(r"(?:src|include|tests|doc|xml|data|debian|virsh-ext)/[\w./@+-]*")


def find_pages(root):
    pages = [root / name for name in PAGES] + sorted((root / "doc").glob("*.md"))
    return [page for page in pages if page.is_file()]


def without_fences(text):
    """Returns @text with empty lines instead of code blocks, so that line numbers stay the same."""
    lines, fence = [], None
    for line in text.split("\n"):
        match = FENCE.match(line)
        if fence:
            lines.append("")
            if match and match[1].startswith(fence):
                fence = None
        elif match:
            lines.append("")
            fence = match[1]
        else:
            lines.append(line)
    return "\n".join(lines)


def without_spans(text):
    """Returns @text with blanks instead of code spans."""
    return SPAN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def anchor_of(heading):
    """Returns the anchor that GitHub and GitLab give to a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors_of(page):
    found, counts = set(), {}
    for line in without_fences(page.read_text(encoding="utf-8")).split("\n"):
        match = HEADING.match(line)
        if not match:
            continue
        anchor = anchor_of(match[1])
        number = counts.get(anchor, 0)
        counts[anchor] = number + 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def check_link(root, page, target):
    """Returns the fault of the link to @target, or None."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.is_relative_to(root):
        return f"the link '{target}' leads out of the project"
    if not file.exists():
        return f"the link '{target}' leads to no file"
    if not anchor:
        return None
    if file.suffix != ".md" or anchor not in anchors_of(file):
        return f"the link '{target}' leads to no heading"
    return None


def check_links(root, page, text):
    plain = without_spans(text)
    for match in LINK.finditer(plain):
        if OUTSIDE.match(match["target"]):
            continue
        fault = check_link(root, page, match["target"])
        if fault:
            yield plain.count("\n", 0, match.start()) + 1, fault


def exists(root, path):
    if "NAME" not in path:
        return (root / path).exists()
    return (root / path.split("NAME")[0].rpartition("/")[0]).is_dir()


def check_paths(root, text):
    for match in SPAN.finditer(text):
        for word in match[2].split()[:1]:
            if PROJECT_PATH.fullmatch(word) and not exists(root, word):
                line = text.count("\n", 0, match.start()) + 1
                yield line, f"'{word}' does not exist"


def check_page(root, page):
    text = page.read_text(encoding="utf-8")
    if page == root / "README.md" and text.count("\n") > README_LINES_MAX:
        yield README_LINES_MAX + 1, (
            f"README.md has {text.count(chr(10))} lines, more than {README_LINES_MAX}: "
            "move what not every reader needs to doc/"
        )
    plain = without_fences(text)
    yield from check_links(root, page, plain)
    yield from check_paths(root, plain)


def main(arguments):
    default = pathlib.Path(__file__).parents[2]
    root = pathlib.Path(arguments[1] if len(arguments) > 1 else default).resolve()
    pages = find_pages(root)
    if not pages:
        print(f"check-docs.py: no page in '{root}'", file=sys.stderr)
        return 2

    n_faults = 0
    for page in pages:
        for line, fault in sorted(check_page(root, page)):
            print(f"{page.relative_to(root)}:{line}: {fault}")
            n_faults += 1
    if n_faults:
        print(f"check-docs.py: {n_faults} faults", file=sys.stderr)
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
