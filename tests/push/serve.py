#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
serve.py ENGINE FOLDER - a receiver for tests in other languages, until it is killed

Writes its URL to FOLDER/url, a line for each accepted profile to FOLDER/accepted (the domain, the number
of samples, and labels as JSON), and what it refuses to FOLDER/faults.
"""

import json
import pathlib
import sys
import time

from receiver import Receiver


def main(engine, folder):
    folder, receiver, n_shown = pathlib.Path(folder), Receiver(engine), 0
    (folder / "accepted").touch()
    (folder / "url.tmp").write_text(receiver.url)
    (folder / "url.tmp").rename(folder / "url")
    while True:
        for request in receiver.accepted[n_shown:]:
            samples = sum(request.profile.stacks().values())
            with open(folder / "accepted", "a", encoding="utf-8") as file:
                print(request.labels["service_name"], samples, json.dumps(request.labels), file=file)
            n_shown += 1
        if receiver.faults:
            (folder / "faults").write_text("\n".join(map(str, receiver.faults)) + "\n")
        time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
