# SPDX-License-Identifier: LGPL-2.1-or-later
"""
driver.py - controls a browser without a window through WebDriver's HTTP

See https://www.w3.org/TR/webdriver2/. `se/log` and `goog/cdp` are extensions of chromedriver.
"""

import base64
import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Home": "\ue011", "Left": "\ue012", "Up": "\ue013",
        "Right": "\ue014", "Down": "\ue015", "Shift": "\ue008", "Control": "\ue009",
        "Alt": "\ue00a"}  # fmt: skip
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--no-first-run", "--disable-background-networking")  # fmt: skip


class Browser:
    """One window, for a `with` statement."""

    def __init__(self, size=(1280, 900)):
        self.folder = tempfile.mkdtemp(prefix="uprof-browser-")
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.base = None
        for line in self.driver.stdout:
            port = re.search(r"started successfully on port (\d+)", line)
            if port:
                self.base = "http://127.0.0.1:%s/session" % port[1]
                break
        options = {
            "args": [*ARGUMENTS, "--user-data-dir=" + self.folder, "--window-size=%d,%d" % size],
        }
        self.base += "/" + self.call(
            "",
            {"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL"},
                "unhandledPromptBehavior": "ignore",
            }}},
        )["sessionId"]  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            urllib.request.urlopen(urllib.request.Request(self.base, method="DELETE"), timeout=30)
        finally:
            self.driver.terminate()
            self.driver.wait(30)
            shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, path, body):
        request = urllib.request.Request(self.base + path, json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError("%s: %s" % (path, error.read().decode()[:600])) from None

    def open(self, url):
        self.call("/url", {"url": url})

    def reload(self):
        self.call("/refresh", {})

    def run(self, script, *arguments):
        """Runs the function body `script`, and returns its result."""
        return self.call("/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """Runs the function body `script`, which calls its last argument with the result."""
        return self.call("/execute/async", {"script": script, "args": list(arguments)})

    def run_in_new_pages(self, script):
        """Runs the function body `script` in each page before its own scripts."""
        parameters = {"source": "(() => { %s })();" % script}
        self.call("/goog/cdp/execute", {"cmd": "Page.addScriptToEvaluateOnNewDocument", "params": parameters})

    def settle(self, condition="true"):
        """Waits until the expression `condition` is true, and pending events are handled."""
        script = """
            const done = arguments[arguments.length - 1], end = performance.now() + 20000;
            const look = () => (%s) || performance.now() > end ? done() : setTimeout(look, 20);
            setTimeout(look, 20);
        """
        self.call("/execute/async", {"script": script % condition, "args": []})

    def click(self, x, y, kind="mouse", modifier=None):
        """Clicks, or taps if `kind` is "touch", while a key is held if there is a `modifier`."""
        moves = [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0},
                 {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]  # fmt: skip
        pointer = {"type": "pointer", "id": kind, "parameters": {"pointerType": kind}, "actions": moves}
        if not modifier:
            self.call("/actions", {"actions": [pointer]})
            return
        pauses = [{"type": "pause"}] * len(moves)
        held = {"type": "key", "id": "keys", "actions": [
            {"type": "keyDown", "value": KEYS[modifier]}, *pauses, {"type": "keyUp", "value": KEYS[modifier]},
        ]}  # fmt: skip
        self.call("/actions", {"actions": [held, {**pointer, "actions": [{"type": "pause"}, *moves]}]})

    def drag(self, begin, end):
        """Moves the mouse from one position to another with its button down."""
        moves = [{"type": "pointerMove", "x": int(begin[0]), "y": int(begin[1]), "duration": 0},
                 {"type": "pointerDown", "button": 0},
                 {"type": "pointerMove", "x": int(end[0]), "y": int(end[1]), "duration": 20},
                 {"type": "pointerUp", "button": 0}]  # fmt: skip
        self.call("/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}
        ]})  # fmt: skip

    def hover(self, x, y):
        moves = [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}]
        self.call("/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}
        ]})  # fmt: skip

    def press(self, *keys, modifier=None):
        """Presses keys in this order, and types texts, while a key is held if there is a `modifier`."""
        actions = [{"type": "keyDown", "value": KEYS[modifier]}] if modifier else []
        for key in keys:
            for char in [KEYS[key]] if key in KEYS else key:
                actions += [{"type": "keyDown", "value": char}, {"type": "keyUp", "value": char}]
        actions += [{"type": "keyUp", "value": KEYS[modifier]}] if modifier else []
        self.call("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def messages(self):
        """Returns the lines of the console since the last call."""
        return [entry["level"] + " " + entry["message"] for entry in self.call("/se/log", {"type": "browser"})]

    def emulate(self, feature, value):
        parameters = {"features": [{"name": feature, "value": value}]}
        self.call("/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": parameters})

    def download_to(self, folder):
        """Lets pages save files in a folder, without a question."""
        parameters = {"behavior": "allow", "downloadPath": str(folder)}
        self.call("/goog/cdp/execute", {"cmd": "Browser.setDownloadBehavior", "params": parameters})

    def resize(self, width, height):
        self.call("/window/rect", {"width": width, "height": height})

    def shoot(self, path):
        with urllib.request.urlopen(self.base + "/screenshot", timeout=60) as answer:
            path.write_bytes(base64.b64decode(json.load(answer)["value"]))
