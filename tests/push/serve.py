#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
serve.py ENGINE FOLDER - a receiver for tests in other languages, until it is killed

Writes its URL to FOLDER/url, a line for each accepted profile to FOLDER/accepted (the domain, the number
of samples, labels as JSON, and the sources of functions as JSON), and what it refuses to FOLDER/faults.
"""

import json
import pathlib
import sys
import threading

from receiver import Receiver


class Recorder(Receiver):
    """Writes each request to files before it is answered, so that who has sent it can read them."""

    def __init__(self, engine, folder):
        self.folder, self.file_lock = folder, threading.Lock()
        super().__init__(engine)

    def decide(self, request):
        action = super().decide(request)
        with self.file_lock:
            if request.outcome == "accepted":
                samples = sum(request.profile.stacks().values())
                with open(self.folder / "accepted", "a", encoding="utf-8") as file:
                    print(request.labels["service_name"], samples, json.dumps(request.labels),
                          json.dumps(request.profile.sources()), file=file)  # fmt: skip
            if self.faults:
                (self.folder / "faults").write_text("\n".join(map(str, self.faults)) + "\n")
        return action


def main(engine, folder):
    folder = pathlib.Path(folder)
    (folder / "accepted").touch()
    recorder = Recorder(engine, folder)
    (folder / "url.tmp").write_text(recorder.url)
    (folder / "url.tmp").rename(folder / "url")
    recorder.thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
