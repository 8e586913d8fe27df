#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-svg.py PROGRAM MAKE-PICTURE [FOLDER] - flame graphs in a browser

Loads a picture of a profile with hostile names, one with 120,000 frames, and a
comparison; searches, zooms, inverts and reloads them. The console must stay empty, and
no name may run as a script. Prints TAP, and writes screenshots to FOLDER.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from driver import Browser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import pictures  # noqa: E402
import storing  # noqa: E402

ROW = 18
HOSTILE = (
    "<script>window.pwned=1</script>", "</script><script>window.pwned=1</script>", "]]>",
    "</title><script>window.pwned=1</script>", '"><img src=x onerror="window.pwned=1">',
    "javascript:window.pwned=1", "'onload='window.pwned=1", "${window.pwned=1}", "&lt;b&gt;", "a/b?c#d%2F",
    "operator<< <char, int>(a, b)", "\x1b[31mred", "\u202eevil", "\xff", "\u6f22\u5b57" * 40, "x" * 10000,
    "__proto__", "constructor", "toString", "%", "\\", "-->", "a b  c",
)  # fmt: skip
# Recursion, a function with several callers, a line and a module
FUNCTIONS = (
    "vm;a;leaf (leaf.c:7) 2", "vm;a;leaf (leaf.c:7);inside_[k] 1", "vm;a;[libc.so.6+0x1a2b] 3",
    "vm;b;again;again 1", "vm;b;again;again;leaf (leaf.c:7) 2", "vm;b;again;leaf (leaf.c:7);inside_[k] 1",
)  # fmt: skip
# Returns the position of a frame. A cut label is a prefix of the name.
FRAME = """
    const name = arguments[0];
    const label = [...document.querySelectorAll('.graph text')].find((text) => text.textContent === name ||
        (text.textContent.endsWith('..') && name.startsWith(text.textContent.slice(0, -2))));
    if (!label) return null;
    const box = label.getBoundingClientRect();
    return [box.left + 3, box.top + box.height / 2];
"""
# Returns the middle of a button that is shown.
BUTTON = """
    const button = [...document.querySelectorAll(arguments[0] + ' button')]
        .find((one) => one.textContent === arguments[1] && one.offsetWidth > 0);
    if (!button) return null;
    const box = button.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
"""
# Returns the color in which the browser fills a frame.
FILL = "return getComputedStyle(document.elementFromPoint(arguments[0], arguments[1])).fill"
# Returns what the mark of the picked frame encloses: left side and row.
MARK = "const mark = document.querySelector('.mark.pick'); return ['x', 'y'].map((key) => +mark.getAttribute(key))"
# Returns the number of elements of a view, and the median of five layout times in milliseconds.
VIEWS = """
    const make = document.createElementNS.bind(document), found = [];
    let made = 0;
    document.createElementNS = (...words) => { made++; return make(...words); };
    for (const place of arguments[0]) {
        const times = [];
        for (let i = 0; i < 5; i++) {
            history.replaceState(null, '', '#/main');
            window.dispatchEvent(new HashChangeEvent('hashchange'));
            made = 0;
            const begin = performance.now();
            history.replaceState(null, '', place);
            window.dispatchEvent(new HashChangeEvent('hashchange'));
            document.documentElement.getBoundingClientRect();
            times.push(performance.now() - begin);
        }
        found.push([place, made, times.sort((a, b) => a - b)[2]]);
    }
    document.createElementNS = make;
    return found;
"""


class Test:
    """Counts failures."""

    def __init__(self, browser, program, make_picture, folder):
        self.browser = browser
        self.program = program
        self.make_picture = make_picture
        self.folder = folder
        self.shots = None
        self.count = self.failed = 0

    def say(self, name, got, wanted=True):
        self.count += 1
        if got == wanted:
            print("ok %d %s" % (self.count, name))
            return
        self.failed += 1
        print("not ok %d %s\n# %r and not %r" % (self.count, name, got, wanted))

    def text(self, selector):
        return self.browser.run("return document.querySelector(arguments[0]).textContent", selector)

    def labels(self):
        return self.browser.run("return [...document.querySelectorAll('.graph text')].map((t) => t.textContent)")

    def crumbs(self):
        return self.browser.run(
            "return [...document.querySelectorAll('.crumbs button')].map((b) => b.textContent)"
        )

    def find(self, name):
        return self.browser.run(FRAME, name)

    def push(self, text, inside=".app"):
        """Clicks a button with the mouse."""
        place = self.browser.run(BUTTON, inside, text)
        if place:
            self.browser.click(*place)
        else:
            self.say("button/" + text, "not shown", "shown")

    def distance(self, one, other):
        """Returns by how many rows one frame stands above another."""
        return round((self.find(other)[1] - self.find(one)[1]) / ROW)

    def quiet(self, name):
        self.say(name + "/console", self.browser.messages(), [])
        self.say(name + "/no-script-of-names", self.browser.run("return window.pwned === undefined"))

    def shoot(self, name):
        if self.shots:
            self.browser.shoot(self.shots / (name + ".png"))


def make_svg(program, folder, name, lines):
    """Draws folded stacks."""
    folded = folder / (name + ".folded")
    folded.write_bytes(b"".join(line.encode("utf-8", "surrogateescape") + b"\n" for line in lines))
    svg = folder / (name + ".svg")
    subprocess.run([program, "report", "-q", "-o", svg, folded], check=True)
    return svg


def hostile_lines():
    for i, name in enumerate(HOSTILE):
        clean = name.replace("\n", "?").replace("\xff", "\udcff").replace(";", ":")
        yield "<b>vm</b>;main;%s;leaf %d" % (clean, 50 + i)
    yield "<b>vm</b>;main;f_[k] 9"
    yield "<b>vm</b>;[idle] 40"


def large_lines():
    """About 122,000 frames below functions of different width."""
    for i in range(116000):
        path = ["f%d_%d" % (level, i // 6 ** (6 - level)) for level in range(1, 7)]
        yield "large;main;%s %d" % (";".join(path), 1 + i * i % 23)


def test_hostile(test, svg):
    browser, url = test.browser, svg.as_uri()
    browser.open(url)
    test.quiet("hostile/load")
    test.say("hostile/title", test.text("h1"), "<b>vm</b>")
    test.say("hostile/only-our-elements", browser.run("return document.querySelectorAll('b:not(.app b), img').length"), 0)
    test.say("hostile/one-script", browser.run("return document.querySelectorAll('script').length + document"
        ".getElementsByTagNameNS('http://www.w3.org/1999/xhtml', 'script').length"), 1)
    test.shoot("hostile")

    browser.click(*test.find(HOSTILE[0]))
    test.say("hostile/zoom", test.crumbs(), ["<b>vm</b>", "main", HOSTILE[0], "\u00d7 reset"])
    test.say("hostile/zoom-shows", test.labels().count("leaf"), 1)
    test.say("hostile/details", HOSTILE[0] in test.text(".about"))
    place = browser.run("return location.hash")
    test.say("hostile/hash-is-encoded", "<" in place or '"' in place, False)
    browser.reload()
    test.say("hostile/restore", test.crumbs(), ["<b>vm</b>", "main", HOSTILE[0], "\u00d7 reset"])
    browser.press("Home")
    test.say("hostile/reset", test.crumbs(), ["<b>vm</b>"])
    for i, name in enumerate(HOSTILE[:13]):
        browser.run("location.hash = '#/main/' + encodeURIComponent(arguments[0])", name.replace(";", ":"))
        browser.settle()
        shown = test.crumbs()
        browser.reload()
        test.say("hostile/path-%d" % i, (test.crumbs(), len(test.crumbs())), (shown, 3 if "\x1b" in name or "\u202e" in name else 4))
    for bad in ("#/%", "#/main/%ff%fe", "#?s=%28", "#/a?s=%3Cscript%3Ewindow.pwned%3D1&icicle&nothing", "#//////", "#" + "/x" * 3000):
        browser.run("location.hash = arguments[0]", bad)
        browser.settle()
        browser.reload()
    test.quiet("hostile/after-all")


def test_search(test, svg):
    browser = test.browser
    browser.open(svg.as_uri())
    browser.press("/", "leaf")
    test.say("search/count", test.text(".found").split(" frame")[0], str(len(HOSTILE)))
    test.say("search/marks", browser.run("return document.querySelectorAll('.graph path.hit').length > 0"))
    browser.press("Enter", "Enter")
    test.say("search/next", "leaf" in test.text(".about"))
    browser.press("Escape")
    test.say("search/escape", test.text(".found"), "")
    browser.press("/", "LEAF")
    test.say("search/any-case", test.text(".found").startswith("%d frames" % len(HOSTILE)))
    test.push("Aa", ".seek")
    test.say("search/exact-case", test.text(".found"), "0 frames, 0.0\u00a0% of all")
    test.push("Aa", ".seek")
    browser.press("/", "([")
    test.say("search/bad", (browser.run("return document.querySelector('input').className"), test.text(".found")),
             ("bad", "not a regular expression"))
    browser.press("Escape", "/", "<script>")
    test.say("search/in-address", browser.run("return location.hash"), "#/?s=%3Cscript%3E")
    browser.reload()
    test.say("search/restore", browser.run("return document.querySelector('input').value"), "<script>")
    test.quiet("search")


def test_views(test, svg):
    browser = test.browser
    browser.open(svg.as_uri())
    top = test.find("<b>vm</b>")[1]
    browser.press("i")
    test.say("views/icicle", test.find("<b>vm</b>")[1] < top)
    test.say("views/icicle-first-row", browser.run(
        "return +[...document.querySelectorAll('.graph text')].find((t) => t.textContent === '<b>vm</b>').getAttribute('y') < arguments[0]", ROW))
    test.shoot("icicle")
    browser.press("o")
    test.say("views/invert", test.find("leaf") is not None)
    browser.click(*test.find("leaf"))
    test.say("views/invert-zoom", test.crumbs(), ["<b>vm</b>", "leaf", "\u00d7 reset"])
    browser.reload()
    test.say("views/restore", (test.crumbs()[1], browser.run("return location.hash")), ("leaf", "#/leaf?icicle&invert"))
    browser.press("Home", "o", "i", "h")
    test.say("views/no-idle", test.find("[idle]"), None)
    browser.press("h", "n")
    test.say("views/by-name", browser.run("return document.querySelectorAll('.graph path[style]').length > 2"))
    browser.press("n", "Up", "Up", "Up", "Right", "Left", "Down", "Enter")
    test.say("views/keys", len(test.crumbs()) > 1)
    browser.resize(420, 700)
    browser.settle("window.innerWidth < 600 && document.querySelector('.graph').getBoundingClientRect().width <= window.innerWidth")
    test.say("views/narrow-window", browser.run(
        "return document.querySelector('.graph').getBoundingClientRect().width <= window.innerWidth"))
    test.shoot("narrow")
    browser.resize(1280, 900)
    test.quiet("views")


def read_functions(test):
    """Returns the rows of the table of functions, if it is shown."""
    return test.browser.run("return [...document.querySelectorAll('.functions tbody tr')].filter((tr) => tr.offsetWidth > 0)"
                            ".map((tr) => [...tr.children].map((td) => td.textContent.replace('\u00a0', ' ')))")


def test_functions(test, folder):
    """The table of functions, and one function with all callers and callees."""
    browser = test.browser
    svg = make_svg(test.program, folder, "functions", FUNCTIONS)
    browser.open(svg.as_uri())
    test.say("functions/off", read_functions(test), [])
    browser.press("t")
    test.say("functions/rows", read_functions(test), [
        ["40.0 %", "60.0 %", "leaf (leaf.c:7)"], ["30.0 %", "30.0 %", "[libc.so.6+0x1a2b]"], ["20.0 %", "20.0 %", "inside_[k]"],
        ["10.0 %", "40.0 %", "again"], ["0.0 %", "60.0 %", "a"], ["0.0 %", "40.0 %", "b"],
    ])
    test.push("total", ".functions th")
    test.say("functions/by-total", [row[1] for row in read_functions(test)], ["60.0 %", "60.0 %", "40.0 %", "40.0 %", "30.0 %", "20.0 %"])
    test.push("total \u25be", ".functions th")
    test.say("functions/reversed", [row[1] for row in read_functions(test)][0], "20.0 %")
    test.push("function", ".functions th")
    test.say("functions/by-name", [row[2] for row in read_functions(test)][:2], ["[libc.so.6+0x1a2b]", "a"])
    test.shoot("functions")
    browser.press("/", "again")
    test.say("functions/search", [row[2] for row in read_functions(test)], ["again"])
    browser.press("Escape")

    test.push("leaf (leaf.c:7)", ".functions td")
    test.say("function/crumbs", test.crumbs(), ["leaf (leaf.c:7)", "\u00d7 reset"])
    test.say("function/callers-and-callees", sorted(test.labels()), ["a", "again", "again", "b", "b", "inside_[k]", "leaf (leaf.c:7)"])
    middle = test.find("leaf (leaf.c:7)")[1]
    test.say("function/callers-below", (test.find("again")[1] > middle, test.find("inside_[k]")[1] < middle), (True, True))
    test.shoot("function")
    place = browser.run("return location.hash")
    browser.click(*test.find("again"))
    test.say("function/zoom-to-caller", (test.crumbs()[1], sorted(test.labels())), ("again", ["again", "again", "b", "b", "leaf (leaf.c:7)"]))
    browser.reload()
    test.say("function/restore", (test.crumbs()[:2], place), (["leaf (leaf.c:7)", "again"], "#/?table&function=leaf%20(leaf.c%3A7)"))
    browser.press("Escape")
    browser.press("Down")
    browser.press("Down")
    test.say("function/key-to-caller", test.text(".about b") in ("a", "again"))
    browser.press("Up")
    browser.press("Up")
    test.say("function/key-to-callee", test.text(".about b"), "inside_[k]")
    browser.press("Escape")
    test.say("function/escape", test.crumbs(), ["vm"])
    browser.click(*test.find("b"))
    browser.press("f")
    test.say("function/key", test.crumbs()[0], "b")
    browser.press("Home", "t")
    test.say("functions/off-again", read_functions(test), [])
    browser.resize(1500, 900)
    browser.open("about:blank")
    browser.open(svg.as_uri())
    test.say("functions/in-wide-window", len(read_functions(test)), 6)
    browser.press("t")
    browser.reload()
    test.say("functions/off-in-wide-window", (read_functions(test), browser.run("return location.hash")), ([], "#/?notable"))
    browser.resize(1280, 900)
    browser.open("about:blank")
    browser.open(svg.as_uri())

    browser.hover(*test.find("leaf (leaf.c:7)"))
    tip = test.text(".tip")
    test.say("tip/all", [part for part in ("leaf", "leaf.c:7", "total 30.0\u00a0%", "self 20.0\u00a0%", "2 samples)", "application") if part not in tip], [])
    browser.hover(*test.find("[libc.so.6+0x1a2b]"))
    test.say("tip/module", "module libc.so.6" in test.text(".tip"))
    test.shoot("tip")
    test.quiet("functions")


def test_hot_function(test, folder):
    """A function below more callers than the file can keep: all its samples are in the table of functions."""
    browser = test.browser
    svg = make_svg(test.program, folder, "hot", ["vm;caller%d_%s;hot %d" % (i, "x" * 100, 1 + i % 2) for i in range(10000)])
    browser.open(svg.as_uri() + "#/?table")
    test.say("hot/not-all-frames", "frames are not in this file" in test.text(".narrow"))
    test.say("hot/all-samples", read_functions(test)[0], ["100.0 %", "100.0 %", "hot"])
    browser.press("/", "^hot")
    test.say("hot/search", read_functions(test), [["100.0 %", "100.0 %", "hot"]])
    browser.run("location.hash = '#/?table&hide=caller1_' + 'x'.repeat(100)")
    browser.settle()
    rows = {row[2]: float(row[0].split(" ")[0]) for row in read_functions(test)}
    test.say("hot/filtered-names-the-rest", (rows["[too narrow to be kept]"] > 1, rows["hot"] + rows["[too narrow to be kept]"]), (True, 100))
    test.quiet("hot")


def test_filters(test, folder):
    """Recursion, hidden functions and dropped stacks."""
    browser = test.browser
    svg = make_svg(test.program, folder, "filters", FUNCTIONS)
    browser.open(svg.as_uri())
    test.say("filters/recursion", test.labels().count("again"), 2)
    browser.press("r")
    test.say("filters/no-recursion", (test.labels().count("again"), test.labels().count("leaf (leaf.c:7)")), (1, 2))
    browser.reload()
    test.say("filters/no-recursion-restored", test.labels().count("again"), 1)
    browser.press("r")
    browser.click(*test.find("a"))
    browser.press("x", "t")
    test.say("filters/hidden", ("a" in test.labels(), test.text(".filters"), [row for row in read_functions(test) if row[2] == "a"]),
             (False, "hidden: a  \u00d7", []))
    test.say("filters/time-stays", read_functions(test)[0], ["40.0 %", "60.0 %", "leaf (leaf.c:7)"])
    browser.click(*test.find("b"), modifier="Control")
    test.say("filters/dropped", (read_functions(test)[0], "b" in test.labels()), (["50.0 %", "50.0 %", "[libc.so.6+0x1a2b]"], False))
    browser.reload()
    test.say("filters/restored", test.text(".filters"), "hidden: a  \u00d7dropped: b  \u00d7")
    test.shoot("filters")
    test.push("hidden: a  \u00d7", ".filters")
    test.say("filters/undo", (test.text(".filters"), "a" in test.labels()), ("dropped: b  \u00d7", True))
    browser.press("Home")
    test.say("filters/home", (test.text(".filters"), test.labels().count("b")), ("", 1))
    browser.click(*test.find("again"), modifier="Alt")
    test.say("filters/alt-click", (test.text(".filters"), test.labels().count("again")), ("hidden: again  \u00d7", 0))
    browser.press("Home", "d", "x")
    test.say("filters/domain-stays", (test.text(".filters"), "vm" in test.labels()), ("", True))
    browser.press("d")
    test.quiet("filters")


def test_toggles(test, folder):
    """A click on a button of the toolbar changes the graph, and a second click changes it back."""
    browser = test.browser
    svg = make_svg(test.program, folder, "toggles", (*FUNCTIONS, "vm;[idle] 4"))
    browser.open(svg.as_uri())
    # The button, what it changes, and the values of that before and after a click
    for text, look, before, after in (
        ("Icicle", lambda: test.distance("a", "vm"), 1, -1),
        ("Invert", lambda: test.distance("[libc.so.6+0x1a2b]", "vm"), 2, 1),
        ("No recursion", lambda: test.labels().count("again"), 2, 1),
        ("Functions", lambda: len(read_functions(test)), 0, 7),
        ("Color by name", lambda: browser.run("return document.querySelectorAll('.graph path[style*=hsl]').length > 2"), False, True),
        ("Idle", lambda: test.find("[idle]") is not None, True, False),
    ):
        pressed = "return [...document.querySelectorAll('.tools button')].find((one) => one.textContent === '%s').ariaPressed" % text
        seen = [(look(), browser.run(pressed))]
        for _ in range(2):
            test.push(text, ".tools")
            seen.append((look(), browser.run(pressed)))
        off, on = (before, "true" if text == "Idle" else "false"), (after, "false" if text == "Idle" else "true")
        test.say("toggles/" + text, seen, [off, on, off])
    plain = browser.run(FILL, *test.find("again"))
    test.push("Color by name", ".tools")
    test.say("toggles/color-differs", browser.run(FILL, *test.find("again")) not in (plain, "none"))
    test.push("No recursion", ".tools")
    test.push("Invert", ".tools")
    browser.reload()
    test.say("toggles/in-address", browser.run("return location.hash"), "#/?invert&names&collapse")
    test.quiet("toggles")


def test_arrows(test, folder):
    """The arrows beside the search pick the next match and the previous one."""
    browser = test.browser
    svg = make_svg(test.program, folder, "arrows", FUNCTIONS)
    browser.open(svg.as_uri())
    browser.press("/", "^leaf")
    marks = []
    for arrow in ("\u203a", "\u203a", "\u203a", "\u2039", "\u203a", "\u203a", "\u2039"):
        test.push(arrow, ".seek")
        marks.append(tuple(browser.run(MARK)))
        test.say("arrows/details-%d" % len(marks), test.text(".about b"), "leaf (leaf.c:7)")
    one, two, three = marks[:3]
    test.say("arrows/three-matches", len({one, two, three}), 3)
    test.say("arrows/way", marks[3:], [two, three, one, three])
    test.quiet("arrows")


def test_actions(test, folder):
    """The buttons of the picked frame, and those of the path."""
    browser = test.browser
    svg = make_svg(test.program, folder, "actions", FUNCTIONS)
    browser.open(svg.as_uri())
    test.say("actions/none", browser.run("return document.querySelectorAll('.actions button').length"), 0)
    browser.click(*test.find("a"))
    test.push("Callers and callees", ".actions")
    test.say("actions/callers-and-callees", (test.crumbs(), sorted(test.labels())),
             (["a", "\u00d7 reset"], ["[libc.so.6+0x1a2b]", "a", "inside_[k]", "leaf (leaf.c:7)"]))
    test.push("\u00d7 reset", ".crumbs")
    test.say("actions/reset", (test.crumbs(), browser.run("return location.hash")), (["vm"], "#/"))

    browser.click(*test.find("a"))
    test.push("Hide function", ".actions")
    test.say("actions/hide", (test.text(".filters"), "a" in test.labels(), "[libc.so.6+0x1a2b]" in test.labels()), ("hidden: a  \u00d7", False, True))
    browser.click(*test.find("b"))
    test.push("Drop stacks", ".actions")
    test.say("actions/drop", (test.text(".filters"), sorted(test.labels())),
             ("hidden: a  \u00d7dropped: b  \u00d7", ["[libc.so.6+0x1a2b]", "inside_[k]", "leaf (leaf.c:7)", "vm"]))
    test.push("\u00d7 reset", ".crumbs")
    test.say("actions/reset-filters", (test.text(".filters"), "a" in test.labels(), "b" in test.labels()), ("", True, True))

    browser.run("window.copied = []; navigator.clipboard.writeText = (text) => { window.copied.push(text); return Promise.resolve(); }")
    browser.click(*test.find("b"))
    browser.click(*test.find("again"))
    test.push("Copy", ".actions")
    test.say("actions/copy", (browser.run("return window.copied"), test.text(".about").endswith("copied")), (["vm;b;again 4"], True))
    test.push("b", ".crumbs")
    test.say("actions/path", test.crumbs(), ["vm", "b", "\u00d7 reset"])
    test.quiet("actions")


def test_empty(test, folder):
    browser = test.browser
    svg = folder / "empty.svg"
    subprocess.run([test.make_picture, "empty", svg], check=True)
    browser.open(svg.as_uri())
    test.say("empty/words", test.text(".narrow"), "no samples to show")
    browser.press("o", "t", "h", "m", "Down", "Enter", "Home")
    test.quiet("empty")


def test_time(test, folder):
    """The heat map, spans of it, and the bar of idle time. make-picture.c describes the picture."""
    browser = test.browser
    svg = folder / "time.svg"
    subprocess.run([test.make_picture, "phases", svg], check=True)
    browser.open(svg.as_uri())
    left, top, width, height = browser.run(
        "const box = document.querySelector('.heat').getBoundingClientRect(); return [box.left, box.top, box.width, box.height]"
    )
    browser.hover(*test.find("first"))
    test.say("time/tip-module", "module libfirst.so.1" in test.text(".tip"))
    browser.hover(*test.find("second"))
    test.say("time/tip-no-module", "module" in test.text(".tip"), False)
    column, row = width / 4, height / 20
    levels = "return [...document.querySelectorAll('.heat path[class^=e]')].filter((p) => p.getAttribute('d')).map((p) => p.getAttribute('class'))"
    test.say("time/levels", browser.run(levels), ["e5", "e9"])
    test.say("time/all", "0 s to 4 s: 800 samples, 62.5\u00a0% running" in test.text(".time"))
    test.say("time/nothing-selected", browser.run("return document.querySelector('.heat + div button').offsetWidth"), 0)

    browser.drag((left + column / 2, top + row * 9.5), (left + column * 1.5, top + row * 10.5))
    test.say("time/drag", (browser.run("return location.hash"), test.text(".time output")),
             ("#/?time=0.5-1.5", "0.5 s to 1.5 s: 200 samples, 50.0\u00a0% running"))
    test.say("time/drag-graph", sorted(test.labels()), ["first", "main", "vm"])
    test.push("\u00d7 all times", ".time")
    test.say("time/all-times", (browser.run("return location.hash"), test.text(".time output")[:10], sorted(test.labels())),
             ("#/", "0 s to 4 s", ["first", "main", "second", "third", "vm"]))
    test.say("time/no-button", browser.run(BUTTON, ".time", "\u00d7 all times"), None)
    browser.click(left + column * 2.5, top + 5)
    test.say("time/click-selects-column", (test.text(".time output"), sorted(test.labels())),
             ("2 s to 3 s: 200 samples, 100.0\u00a0% running", ["main", "second", "third", "vm"]))
    browser.press("t", "/", "third")
    test.say("time/table-and-search", (read_functions(test), test.text(".found")), ([["50.0 %", "50.0 %", "third"]], "1 frame, 50.0\u00a0% of all"))
    test.shoot("time")
    browser.reload()
    test.say("time/restore", (test.text(".time output"), test.text(".found")), ("2 s to 3 s: 200 samples, 100.0\u00a0% running", "1 frame, 50.0\u00a0% of all"))
    browser.press("Escape", "Escape")
    test.say("time/escape", (browser.run("return location.hash"), test.labels().count("first")), ("#/?table", 1))

    browser.press("m", "Right")
    test.say("time/key-selects-first-column", test.text(".time output")[:10], "0 s to 1 s")
    browser.press("Right", "Right")
    test.say("time/key-moves", test.text(".time output")[:10], "2 s to 3 s")
    browser.press("Right", "Right", "Left", "Up")
    test.say("time/key-selects-cell", test.text(".time output")[:15], "2.05 s to 2.1 s")
    browser.press("Left", "Left", modifier="Shift")
    test.say("time/shift-shrinks", test.text(".time output")[:15], "2.05 s to 2.1 s")
    browser.press("Right", modifier="Shift")
    test.say("time/shift-extends", test.text(".time output")[:15], "2.05 s to 3.1 s")
    browser.press("Escape")
    test.say("time/key-clears", browser.run("return location.hash"), "#/?table")

    browser.press("h")
    test.say("idle/bar", ["37.5 %", "37.5 %", "[idle]"] in read_functions(test))
    browser.click(left + column * 0.5, top + 5)
    test.say("idle/bar-of-span", ["50.0 %", "50.0 %", "[idle]"] in read_functions(test))
    browser.reload()
    test.say("idle/restore", test.find("[idle]") is not None)
    test.shoot("idle")
    browser.press("h")
    test.say("idle/off", test.find("[idle]"), None)
    for bad in ("9-1", "1-1", "x", "-1-2", "1e9-2", "0-99999999999", "5000-6000", "%3Cscript%3E"):
        browser.run("location.hash = '#/?time=' + arguments[0]", bad)
        browser.settle()
        test.say("time/bad-%s" % bad, test.find("vm") is not None)
    test.quiet("time")


def make_history(test, folder):
    """Draws three days: one with its rounds, one with failures, and one of which only the sum is stored."""
    store, uuid, day = folder / "store", storing.uuid_of(1), 1774742400  # 2026-03-29
    store.mkdir()
    storing.put_slice(store, "vm", uuid, day + 9 * 3600, {"main;morning": 300})
    storing.put_slice(store, "vm", uuid, day + 10 * 3600, {"main;<b>later</b>": 100})
    failures = store / "data" / "vm" / "vm-20260330.failures"
    failures.write_text("2026-03-30T05:00:00Z %s paused\n" % uuid)
    storing.put_slice(store, "vm", uuid, day + 2 * storing.DAY, {"main;sum": 140}, slices=[3600, 7200])
    for ending in (".folded.gz", ".meta.json"):
        old = store / "data" / "vm" / ("vm-20260331T000000Z" + ending)
        old.rename(old.with_name("vm-20260331" + ending))
    svg, config = folder / "history.svg", folder / "config.xml"
    config.write_text('<virt-uprof><store directory="%s"/></virt-uprof>' % store)
    subprocess.run([test.program, "history", "-q", "--config", config, "--since", "2026-03-29", "--until", "2026-04-01", "-o", svg],
                   check=True, env=dict(os.environ, TZ="UTC0"))
    return svg


def test_history(test, folder):
    """A slot, a span of slots and a closed day show their graph."""
    browser = test.browser
    svg = make_history(test, folder)
    browser.open(svg.as_uri())
    left, top, height = browser.run("const map = document.querySelector('.heat path[d^=M]').getBoundingClientRect(),"
                                    " heat = document.querySelector('.heat').getBoundingClientRect(); return [map.left, heat.top, heat.height]")
    column, row = 48, 8

    def place(day, hour):
        return left + column * (day + 0.5), top + row * (23.5 - hour)

    test.say("history/days", browser.run("return [...document.querySelectorAll('.heat text')].map((text) => text.textContent)"),
             ["00:00", "06:00", "12:00", "18:00", "2026-03-29", "2026-03-31"])
    test.say("history/all", test.text(".time output").split(" running")[0], "2026-03-29 00:00 to 2026-03-31 24:00: 840 samples, 64.3\u00a0%")
    test.say("history/axis-fits", height, 24 * row + 14)
    browser.hover(*place(0, 9))
    test.say("history/tip", [part for part in ("2026-03-29 09:00 to 10:00", "75.0\u00a0% running", "400 samples", "hottest: morning (100.0\u00a0%)")
                             if part not in test.text(".tip")], [])
    test.shoot("history")
    browser.hover(*place(1, 5))
    test.say("history/tip-of-failure", test.text(".tip"), "2026-03-30 05:00 to 06:00no samples1 round failed")
    browser.click(*place(0, 9))
    test.say("history/slot", (test.text(".time output"), sorted(test.labels())),
             ("2026-03-29 09:00 to 10:00: 400 samples, 75.0\u00a0% running", ["main", "morning", "vm"]))
    browser.reload()
    test.say("history/restore", sorted(test.labels()), ["main", "morning", "vm"])
    browser.drag(place(0, 8), place(0, 10))
    test.say("history/span", sorted(test.labels()), ["<b>later</b>", "main", "morning", "vm"])
    browser.click(*place(2, 17))
    test.say("history/closed-day", (test.text(".time output"), sorted(test.labels())),
             ("2026-03-31 00:00 to 24:00: 240 samples, 58.3\u00a0% running", ["main", "sum", "vm"]))
    browser.click(*place(1, 5))
    test.say("history/empty-slot", (test.text(".time output"), test.labels()), ("2026-03-30 05:00 to 06:00: 0 samples, 0.0\u00a0% running", []))
    browser.press("Escape")
    browser.press("m", "Right", "Up")
    test.say("history/keys", test.text(".time output")[:25], "2026-03-29 01:00 to 02:00")
    test.quiet("history")


def take_download(folder, name):
    """Returns the text of a file that the browser saves, and deletes the file."""
    path = folder / name
    for _ in range(200):
        if path.exists() and path.stat().st_size > 0:
            text = path.read_text(encoding="utf-8")
            path.unlink()
            return text
        time.sleep(0.05)
    return "no file"


def test_save(test, folder, hostile):
    """Both buttons save the frames that are shown."""
    browser = test.browser
    saved = folder / "saved"
    saved.mkdir()
    browser.download_to(saved)
    svg = make_svg(test.program, folder, "save", FUNCTIONS)
    browser.open(svg.as_uri())
    browser.press("l")
    test.say("save/folded", take_download(saved, "vm.folded").splitlines(), sorted(FUNCTIONS))
    browser.click(*test.find("b"))
    browser.press("r", "l")
    test.say("save/folded-of-zoom", take_download(saved, "vm.folded").splitlines(),
             ["vm;b;again 1", "vm;b;again;leaf (leaf.c:7) 2", "vm;b;again;leaf (leaf.c:7);inside_[k] 1"])
    for place, wanted in (
        ("#/again?function=leaf%20(leaf.c%3A7)&callers", ["vm;b;again;again;leaf (leaf.c:7) 2", "vm;b;again;leaf (leaf.c:7);inside_[k] 1"]),
        ("#/inside_[k]?function=leaf%20(leaf.c%3A7)", ["vm;a;leaf (leaf.c:7);inside_[k] 1", "vm;b;again;leaf (leaf.c:7);inside_[k] 1"]),
        ("#/again?invert", ["vm;b;again;again 1"]),
        ("#/?drop=a&hide=b", ["vm;again;again 1", "vm;again;again;leaf (leaf.c:7) 2", "vm;again;leaf (leaf.c:7);inside_[k] 1"]),
    ):
        browser.run("location.hash = arguments[0]", place)
        browser.settle()
        test.push("Save folded", ".pair")
        test.say("save/folded" + place, take_download(saved, "vm.folded").splitlines(), wanted)

    browser.run("location.hash = '#/b?s=again'")
    browser.settle()
    browser.press("s")
    text = take_download(saved, "vm.svg")
    test.say("save/picture", [part for part in (">again</text>", "zoomed to b; search: again (2 frames, ", ">vm</text>") if part not in text], [])
    test.say("save/picture-has-no-script", "<script" in text or "foreignObject" in text, False)
    browser.run("location.hash = '#/a'")
    browser.settle()
    test.push("Save SVG", ".pair")
    clicked = take_download(saved, "vm.svg")
    test.say("save/button", [part for part in (">[libc.so.6+0x1a2b]</text>", "zoomed to a<", ">vm</text>") if part not in clicked], [])
    (folder / "saved.svg").write_text(text, encoding="utf-8")
    browser.open((folder / "saved.svg").as_uri())
    test.say("save/picture-shows", browser.run("return document.querySelectorAll('path.hit').length"), 1)
    test.shoot("saved")
    test.quiet("save/picture")

    browser.open(hostile.as_uri())
    browser.press("s")
    text = take_download(saved, "_b_vm_b_.svg")
    (folder / "saved-hostile.svg").write_text(text, encoding="utf-8")
    browser.open((folder / "saved-hostile.svg").as_uri())
    test.say("save/hostile-only-our-elements", browser.run("return [...document.querySelectorAll('*')].map((e) => e.nodeName)"
        ".filter((name) => !['svg', 'g', 'path', 'text', 'title', 'style', 'rect'].includes(name))"), [])
    test.quiet("save/hostile")


def test_help(test, svg):
    """All keys, by the key and by the button."""
    browser = test.browser
    browser.open(svg.as_uri())
    shown = "return getComputedStyle(document.querySelector('.help')).display !== 'none'"
    browser.press("?")
    listed = browser.run("return [...document.querySelectorAll('.help th')].map((th) => th.textContent)")
    test.say("help/keys", [key for key in ("Home", "Esc", "i", "o", "n", "h", "c", "f", "t", "r", "s", "l", "x or Alt-click", "d or Ctrl-click", "?") if key not in listed], [])
    test.say("help/shown", browser.run(shown))
    test.shoot("help")
    browser.press("Escape")
    test.say("help/escape", browser.run(shown), False)
    test.push("?", ".tools")
    test.say("help/button", browser.run(shown))
    test.push("Close", ".help")
    test.say("help/close", browser.run(shown), False)
    test.quiet("help")


def test_small_window(test, svg):
    """A low window has the facts behind a button, so that the graph has most of the room."""
    browser = test.browser
    browser.open(svg.as_uri())
    facts = "return getComputedStyle(document.querySelector('.facts')).display !== 'none'"
    test.say("small/facts-in-large-window", browser.run(facts))
    browser.resize(600, 540)
    browser.settle("window.innerHeight <= 420")
    test.say("small/no-facts", browser.run(facts), False)
    test.say("small/graph", browser.run("return document.querySelector('.scroll').clientHeight / window.innerHeight > 0.5"))
    test.shoot("small")
    test.push("i", ".tools")
    test.say("small/facts-by-button", browser.run(facts))
    browser.resize(1280, 900)
    test.quiet("small")


def test_touch_copy_and_print(test, svg):
    """Tests touch, the clipboard, and printing."""
    browser = test.browser
    browser.open(svg.as_uri())
    browser.click(*test.find("main"), kind="touch")
    test.say("touch/first-tap-shows-details", (len(test.crumbs()), test.text(".about b")), (1, "main"))
    browser.click(*test.find("main"), kind="touch")
    test.say("touch/second-tap-zooms", test.crumbs()[1:2], ["main"])
    browser.run("window.copied = []; navigator.clipboard.writeText = (text) => { window.copied.push(text); return Promise.resolve(); }")
    browser.press("c")
    test.say("clipboard/copy", browser.run("return window.copied"), ["<b>vm</b>;main 1412"])
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    shown = "return [document.querySelector('#static'), document.querySelector('#app')].map((e) => e !== null && getComputedStyle(e).display !== 'none')"
    test.say("print/static-picture", browser.run(shown), [True, False])
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    test.say("print/interactive-again", browser.run(shown), [False, True])
    test.quiet("touch-copy-print")


def test_dark(test, svg):
    browser = test.browser
    colors = []
    for scheme in ("light", "dark"):
        browser.emulate("prefers-color-scheme", scheme)
        browser.open(svg.as_uri())
        colors.append(browser.run("return getComputedStyle(document.querySelector('.app')).backgroundColor"))
        test.shoot(scheme)
    browser.emulate("prefers-color-scheme", "light")
    test.say("dark/background", colors, ["rgb(255, 255, 255)", "rgb(20, 23, 28)"])


def test_image(test, svg):
    """An image runs no scripts, but shows the static picture."""
    page = test.folder / "image.html"
    page.write_text("<!DOCTYPE html><link rel=icon href=data:,><img src='%s'>" % svg.name)
    test.browser.open(page.as_uri())
    test.say("image/size", test.browser.run("const i = document.images[0]; return [i.complete, i.naturalWidth]"), [True, 1200])
    test.shoot("image")
    test.quiet("image")


def test_large(test, svg):
    browser = test.browser
    test.say("large/bytes", svg.stat().st_size <= 3_000_000)
    browser.open(svg.as_uri())
    test.say("large/frames", int(browser.run("return document.querySelector('metadata').children[0].getAttribute('all')")) >= 120_000)
    test.say("large/loaded", "large" in test.labels())
    test.say("large/few-elements", browser.run("return document.querySelectorAll('.graph *').length < 3000"))
    test.shoot("large")
    browser.press("/", "f4_7$")
    test.say("large/search", test.text(".found").split(",")[0], "1 frame")
    browser.press("Enter")
    test.say("large/zoom-to-match", test.labels().count("f4_7"), 1)
    test.shoot("large-zoomed")
    browser.press("Escape", "Home")
    for name in ("f1_1", "f2_6"):
        browser.click(*test.find(name))
    test.say("large/zoom", test.crumbs(), ["large", "main", "f1_1", "f2_6", "\u00d7 reset"])
    # The number of elements does not depend on the machine, so it is tested. Times are only printed.
    for place, made, spent in browser.run(VIEWS, ["#/", "#/main/f1_3", "#/main/f1_3/f2_20", "#/?icicle", "#/?invert", "#/?s=f3"]):
        test.say("large/few-elements-made/" + place, made < 1000, True)
        print("# %d elements, %.0f ms" % (made, spent))
    browser.run("location.hash = '#/'")
    browser.settle()
    test.quiet("large")


def test_diff(test, program):
    old = test.folder / "old.folded"
    new = test.folder / "new.folded"
    old.write_text("vm;main;a 1000\nvm;main;b 3000\nvm;main;gone<i>;x 500\n")
    new.write_text("vm;main;a 2000\nvm;main;b 2000\nvm;main;fresh 500\n")
    svg = test.folder / "diff.svg"
    subprocess.run([program, "diff", "-q", "-o", svg, old, new], check=True)
    test.browser.open(svg.as_uri())
    test.say("diff/title", (test.text("h1"), test.browser.run("return document.title")), ("vm: old.folded -> new.folded",) * 2)
    test.say("diff/new-layout", (test.find("fresh (new)") is not None, test.find("gone<i>")), (True, None))
    test.say("diff/gone", test.text(".app .gone"), "gone:gone<i>  11.1\u00a0%")
    test.shoot("diff")
    test.browser.press("w")
    test.say("diff/old-layout", (test.find("fresh (new)"), test.find("gone<i>") is not None), (None, True))
    test.push("Old layout", ".tools")
    test.say("diff/new-layout-again", (test.find("fresh (new)") is not None, test.find("gone<i>")), (True, None))
    test.push("Old layout", ".tools")
    test.say("diff/old-layout-by-button", (test.find("fresh (new)"), test.find("gone<i>") is not None), (None, True))
    test.push("Old layout", ".tools")
    test.push("gone<i>  11.1\u00a0%", ".gone")
    test.say("diff/to-gone", test.crumbs(), ["vm", "main", "gone<i>", "\u00d7 reset"])
    test.say("diff/details", "gone" in test.text(".about span"))
    test.quiet("diff")


def test_diff_functions(test, program):
    """The table of functions of a comparison has the change of the total, and can be sorted by it."""
    browser = test.browser
    old, new, svg = (test.folder / name for name in ("before.folded", "after.folded", "changes.svg"))
    old.write_text("vm;main;a 1000\nvm;main;b 6000\nvm;main;c 2500\nvm;main;gone;x 500\n")
    new.write_text("vm;main;a 3000\nvm;main;b 3100\nvm;main;c 2600\nvm;main;fresh 1300\n")
    subprocess.run([program, "diff", "-q", "-o", svg, old, new], check=True)
    browser.open(svg.as_uri())
    heads = "return [...document.querySelectorAll('.functions th')].map((th) => th.textContent)"
    test.say("diff-functions/off", read_functions(test), [])
    test.push("Functions", ".tools")
    rows = {
        "b": ["31.0 %", "31.0 %", "-29.0", "b"], "a": ["30.0 %", "30.0 %", "+20.0", "a"], "c": ["26.0 %", "26.0 %", "+1.0", "c"],
        "fresh": ["13.0 %", "13.0 %", "+13.0", "fresh"], "main": ["0.0 %", "100.0 %", "0.0", "main"],
        "gone": ["0.0 %", "0.0 %", "-5.0", "gone"], "x": ["0.0 %", "0.0 %", "-5.0", "x"],
    }  # fmt: skip
    test.say("diff-functions/heads", browser.run(heads), ["self \u25be", "total", "change", "function"])
    test.say("diff-functions/rows", read_functions(test), [rows[name] for name in ("b", "a", "c", "fresh", "main", "gone", "x")])
    test.push("change", ".functions th")
    by_change = ["b", "a", "fresh", "gone", "x", "c", "main"]
    test.say("diff-functions/by-change", read_functions(test), [rows[name] for name in by_change])
    colors = browser.run("return [...document.querySelectorAll('.functions td:nth-child(3)')].map(cell => getComputedStyle(cell).color)")
    test.say("diff-functions/colors", len(set(colors)), 3)  # more, less, and no change
    test.push("change \u25be", ".functions th")
    test.say("diff-functions/reversed", (browser.run(heads)[2], read_functions(test)),
             ("change \u25b4", [rows[name] for name in reversed(by_change)]))
    test.shoot("diff-functions")
    test.push("self", ".functions th")
    test.push("Old layout", ".tools")
    test.say("diff-functions/old", read_functions(test)[:2], [["60.0 %", "60.0 %", "-29.0", "b"], ["25.0 %", "25.0 %", "+1.0", "c"]])
    test.push("b", ".functions td")
    test.say("diff-functions/function", test.crumbs(), ["b", "\u00d7 reset"])
    test.push("Functions", ".tools")
    test.say("diff-functions/off-again", read_functions(test), [])
    browser.press("t")
    test.say("diff-functions/key", len(read_functions(test)), 7)
    test.quiet("diff-functions")


def main():
    program, make_picture = sys.argv[1:3]
    if not shutil.which("chromedriver"):
        print("1..0 # SKIP no chromedriver; install chromium-driver")
        return 0
    with tempfile.TemporaryDirectory(prefix="uprof-svg-") as name, Browser() as browser:
        folder = pathlib.Path(name)
        test = Test(browser, program, make_picture, folder)
        if len(sys.argv) > 3:
            test.shots = pathlib.Path(sys.argv[3])
            test.shots.mkdir(exist_ok=True)
        hostile = make_svg(program, folder, "hostile", hostile_lines())
        large = make_svg(program, folder, "large", large_lines())
        test_hostile(test, hostile)
        test_search(test, hostile)
        test_views(test, hostile)
        test_functions(test, folder)
        test_hot_function(test, folder)
        test_filters(test, folder)
        test_toggles(test, folder)
        test_arrows(test, folder)
        test_actions(test, folder)
        test_empty(test, folder)
        test_time(test, folder)
        test_history(test, folder)
        test_save(test, folder, hostile)
        test_help(test, hostile)
        test_small_window(test, hostile)
        test_touch_copy_and_print(test, hostile)
        test_dark(test, hostile)
        test_image(test, hostile)
        test_large(test, large)
        test_diff(test, program)
        test_diff_functions(test, program)
        test.say("xmllint", pictures.lint(folder), [])
    print("1..%d" % test.count)
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
