#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-count-results.py - what tests/all says of results is what they are
"""

import importlib.util
import io
import pathlib
import unittest

PATH = pathlib.Path(__file__).parent.parent / "lib" / "count-results.py"
SPEC = importlib.util.spec_from_file_location("count_results", PATH)
results = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(results)


def count(*tests):
    """The three counts, and what was said."""
    out = io.StringIO()
    named = [{"name": "t", "duration": 1.0, **test} for test in tests]
    return results.count("gcc", named, out), out.getvalue()


class Results(unittest.TestCase):
    def test_counts(self):
        counts, said = count(
            {"result": "OK", "stdout": "1..1\nok 1 - a\n"},
            {"result": "SKIP", "stdout": "1..0 # SKIP no yeast\n"},
            {"result": "TIMEOUT"},
            {"result": "ERROR", "stdout": "bad luck\n"},
        )
        self.assertEqual(counts, (1, 2, 1))
        self.assertIn("skipped gcc: t: no yeast", said)
        self.assertIn("FAILED gcc: t (TIMEOUT, 1.0 s)", said)
        self.assertIn("bad luck", said)

    def test_skipped_part_is_named(self):
        counts, said = count({"result": "OK", "stdout": "ok 1 - a # SKIP no flour\n"})
        self.assertEqual(counts, (1, 0, 0))
        self.assertIn("skipped in gcc: t: a: no flour", said)

    def test_failed_part_comes_first(self):
        long = "".join(f"# word {i}\n" for i in range(100))
        output = f"ok 1 - a\n# fine\nnot ok 2 - b\n{long}ok 3 - c\n{long}1..3\n"
        _, said = count({"result": "ERROR", "stdout": output})
        lines = [line.strip() for line in said.splitlines()]
        self.assertEqual(lines[1:3], ["not ok 2 - b", "# word 80"])
        self.assertEqual(lines[1 + results.PART_LINES_SHOWN], "# word 99")
        self.assertNotIn("# fine", lines)
        self.assertEqual(lines[-1], "1..3")

    def test_last_part_failed(self):
        _, said = count({"result": "ERROR", "stdout": "1..2\nok 1 - a\nnot ok 2 - b\n# why\n"})
        self.assertEqual(said.count("not ok 2 - b\n    # why"), 2)


if __name__ == "__main__":
    unittest.main()
