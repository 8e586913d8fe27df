#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-npm.py - a test is skipped if npm's registry fails, and fails if a package is missing
"""

import os
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

import npm

# Each call reads one line of the file `answers`. The answer "ok" packs a folder.
NPM = """#!/bin/sh
echo "$*" >>calls
answer=$(sed -n "$(wc -l <calls)p" answers)
[ "$answer" = ok ] && mkdir package && tar -czf package.tgz package && exit 0
echo "npm error code $answer" >&2
exit 1
"""
REGISTRY_FAILS = (
    "E500", "E502", "E503", "E504", "E429", "ECONNABORTED", "ECONNRESET", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT",
    "ERR_SSL_WRONG_VERSION_NUMBER", "CERT_HAS_EXPIRED", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "ERR_TLS_CERT_ALTNAME_INVALID",
    "SELF_SIGNED_CERT_IN_CHAIN",
)  # fmt: skip
OTHER_FAILURES = ("E404", "ETARGET", "E403", "EUSAGE", "E5000", "")


class Npm(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="uprof-npm-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        tool = self.folder / "npm"
        tool.write_text(NPM)
        tool.chmod(0o755)
        path = mock.patch.dict(os.environ, PATH="%s:%s" % (folder.name, os.environ["PATH"]))
        path.start()
        self.addCleanup(path.stop)

    def fetch(self, *answers):
        """Fetches the package with these answers, and counts the requests in self.calls."""
        for old in ("calls", "package.tgz"):
            (self.folder / old).unlink(missing_ok=True)
        (self.folder / "answers").write_text("".join(answer + "\n" for answer in answers))
        try:
            return npm.fetch("speedscope@1", self.folder, pause=0).is_dir()
        finally:
            self.calls = (self.folder / "calls").read_text().count("speedscope@1\n")

    def test_first_request_succeeds(self):
        self.assertTrue(self.fetch("ok", "E404"))
        self.assertEqual(self.calls, 1)

    def test_retry_succeeds(self):
        self.assertTrue(self.fetch("E503", "ok"))
        self.assertEqual(self.calls, 2)

    def test_registry_fails(self):
        for code in REGISTRY_FAILS:
            with self.subTest(code), self.assertRaisesRegex(npm.CannotRun, code):
                self.fetch(code, code, "ok")
            self.assertEqual(self.calls, 2)

    def test_other_failure(self):
        for code in OTHER_FAILURES:
            with self.subTest(code), self.assertRaises(RuntimeError):
                self.fetch(code, "ok")
            self.assertEqual(self.calls, 1)
        with self.assertRaises(RuntimeError):
            self.fetch("E503", "E404")

    def test_registry_does_not_answer(self):
        late = subprocess.TimeoutExpired("npm", npm.SECONDS_MAX)
        with mock.patch.object(npm.subprocess, "run", side_effect=late) as run:
            with self.assertRaisesRegex(npm.CannotRun, "does not answer"):
                npm.fetch("speedscope@1", self.folder, pause=0)
        self.assertEqual(run.call_count, 2)


if __name__ == "__main__":
    unittest.main()
