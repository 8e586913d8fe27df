#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
picture.py MAKE-PICTURE [RUNS] - the times of a large picture in a browser

Makes the picture of a million samples of 100,000 stacks, opens it with the heat map and the table of
functions, and prints the medians and minima of RUNS (7) runs, and the size of the file. Other work of
the machine makes times longer, so the minimum is nearest to the time of an idle machine.

"open" is the time from the start of the navigation until the browser has drawn the graph with its
labels, the heat map and the table of functions: reading the file, the script, layout and paint. Other
actions begin with the input and end when the browser has drawn the page. Fails if the file has 5 MB or
more, or if the shortest time to open or to zoom is 300 ms or more.
"""

import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "browser"))
from driver import Browser  # noqa: E402

BYTES_MAX = 5_000_000
SPENT_MAX_MS = 300
# Changes the address, waits until two frames are drawn, and returns milliseconds.
GO = """
    const done = arguments[arguments.length - 1], begin = performance.now();
    history.replaceState(null, '', arguments[0]);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin), 0));
"""
# Runs in each new page: notes when the page has drawn all that it shows at first. The callback runs
# before the browser paints, and the timer after that.
WATCH = """
    const isComplete = () => ['.graph text', '.heat path[d^=M]', '.functions tbody tr'].every((part) => document.querySelector(part));
    const look = () => isComplete() ? setTimeout(() => { window.drawnAt = performance.now(); }, 0) : requestAnimationFrame(look);
    requestAnimationFrame(look);
"""
# Clicks on the frame in the middle of the second row, as a user does.
ZOOM = """
    const done = arguments[arguments.length - 1];
    const graph = document.querySelector('.graph'), box = graph.getBoundingClientRect(), begin = performance.now();
    graph.dispatchEvent(new MouseEvent('click', { clientX: box.left + box.width / 4, clientY: box.bottom - 27, bubbles: true }));
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin), 0));
"""
PLACES = (
    ("select a fifth of the time", "#/?table&time=100-300"),
    ("search", "#/?table&s=function_1"),
    ("invert", "#/?table&invert"),
    ("no recursion", "#/?table&collapse"),
    ("a function with callers and callees", "#/?table&function="),
)


def tell(what, runs, take):
    """Prints the times of an action. Returns the shortest one."""
    times = [take() for _ in range(runs)]
    print(f"  {what:<40}{statistics.median(times):6.0f} ms, at least {min(times):4.0f} ms", flush=True)
    return min(times)


def list_faults(n_bytes, spent_ms):
    """Returns a line for each limit that is exceeded."""
    faults = [f"'{what}' takes {spent:.0f} ms: the limit is {SPENT_MAX_MS} ms"
              for what, spent in spent_ms.items() if spent >= SPENT_MAX_MS]  # fmt: skip
    if n_bytes >= BYTES_MAX:
        faults.append(f"the file has {n_bytes} bytes: the limit is {BYTES_MAX}")
    return faults


def main():
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    if not shutil.which("chromedriver"):
        print("SKIP: no chromedriver; install chromium-driver")
        return 77
    with tempfile.TemporaryDirectory(prefix="uprof-bench-") as folder, Browser((1600, 1000)) as browser:
        svg = pathlib.Path(folder) / "large.svg"
        subprocess.run([sys.argv[1], "large", svg], check=True)
        print(f"a picture of 100,000 stacks: {svg.stat().st_size / 1e6:.1f} MB")

        def open_picture():
            browser.open("about:blank")
            browser.open(svg.as_uri() + "#/?table")
            browser.settle("window.drawnAt > 0")
            return browser.run("return window.drawnAt")

        def zoom():
            browser.run_async(GO, "#/?table")
            return browser.run_async(ZOOM)

        def go(place):
            browser.run_async(GO, "#/?table")
            return browser.run_async(GO, place)

        browser.run_in_new_pages(WATCH)
        spent_ms = {"open": tell("open", runs, open_picture), "zoom": tell("zoom", runs, zoom)}
        name = browser.run("return document.querySelector('.functions td button').textContent")
        for what, place in PLACES:
            place += browser.run("return encodeURIComponent(arguments[0])", name) if place.endswith("=") else ""
            tell(what, runs, lambda place=place: go(place))
        faults = list_faults(svg.stat().st_size, spent_ms)
        for fault in faults:
            print(f"picture.py: {fault}", file=sys.stderr)
        return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
