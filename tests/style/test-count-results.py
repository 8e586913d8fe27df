#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-count-results.py - tests/lib/count-results.py counts results and retries correctly
"""

import contextlib
import importlib.util
import io
import json
import pathlib
import tempfile
import unittest

PATH = pathlib.Path(__file__).parent.parent / "lib" / "count-results.py"
SPEC = importlib.util.spec_from_file_location("count_results", PATH)
results = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(results)


def count(*tests):
    """Returns the three counts, and the output."""
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

    def test_skipped_part_is_named_and_counted(self):
        counts, said = count({"result": "OK", "stdout": "ok 1 - a # SKIP no flour\n"})
        self.assertEqual(counts, (1, 0, 1))
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


def log_entry(name, result, output="", suites="live+long"):
    return {"name": f"virt-uprof:{suites} / {name}", "duration": 1.0, "result": result,
            "stdout": output}


def count_retried(tests, retries):
    """Returns the three counts after retries, and the output."""
    out = io.StringIO()
    counted = results.replace_retried("gcc", tests, retries, out)
    return results.count("gcc", counted, out), out.getvalue()


class Retries(unittest.TestCase):
    def test_only_failed_live_tests_are_retried(self):
        names = results.names_to_retry([
            log_entry("passed", "OK"),
            log_entry("skipped", "SKIP"),
            log_entry("late", "TIMEOUT"),
            log_entry("failed", "ERROR", suites="kvm+live"),
            log_entry("lab-1", "FAIL", suites="xen-lab"),
            log_entry("guests", "FAIL", suites="kvm-lab"),
            log_entry("packages", "FAIL", suites="packages+long"),
            log_entry("unit", "FAIL", suites="unit"),
            log_entry("style", "FAIL", suites="style"),
            log_entry("cli", "FAIL", suites="cli+long"),
            log_entry("alive", "FAIL", suites="alive"),
        ])
        self.assertEqual(names, ["late", "failed", "lab-1", "guests", "packages"])

    def test_only_failed_parts_of_loose_labs_are_retried(self):
        output = "ok 1 - one\nnot ok 2 - two-pv\n# why\nnot ok 3 - three\n1..3\n"
        for suites, name, said, parts in (
            ("xen-lab", "lab-1", output, " two-pv three"),
            ("kvm-lab", "kvm-lab-guests", output, " two-pv three"),
            ("kvm-lab", "kvm-lab-package", output, ""),
            # The third part has no result.
            ("xen-lab", "lab-2", output.replace("not ok 3 - three\n", ""), ""),
            ("xen-lab", "lab-2", "", ""),
        ):
            self.assertEqual(
                results.names_to_retry([log_entry(name, "ERROR", said, suites=suites)]), [name + parts])

    def test_retry_that_passes_counts_as_passed(self):
        counts, said = count_retried(
            [log_entry("one", "OK"), log_entry("two", "FAIL", "bad luck")],
            [log_entry("two", "OK")])
        self.assertEqual(counts, (2, 0, 0))
        self.assertIn("retried: gcc: two\n", said)
        # The output shows the first failure.
        self.assertIn("bad luck", said)
        self.assertNotIn("FAILED", said)

    def test_retry_that_fails_counts_once(self):
        counts, said = count_retried([log_entry("one", "FAIL", "first")],
                                     [log_entry("one", "TIMEOUT", "second")])
        self.assertEqual(counts, (0, 1, 0))
        self.assertIn("retried: gcc: one\n", said)
        self.assertIn("FAILED gcc: virt-uprof:live+long / one (TIMEOUT", said)
        self.assertIn("second", said)

    def test_skipped_retry_counts_as_failed(self):
        counts, _ = count_retried([log_entry("one", "FAIL")],
                                  [log_entry("one", "SKIP", "SKIP: no KVM")])
        self.assertEqual(counts, (0, 1, 0))

    def test_retry_of_another_test_changes_nothing(self):
        counts, said = count_retried([log_entry("one", "FAIL")], [log_entry("two", "OK")])
        self.assertEqual(counts, (0, 1, 0))
        self.assertNotIn("retried", said)

    def test_passed_test_is_not_replaced(self):
        counts, said = count_retried([log_entry("one", "OK")], [log_entry("one", "FAIL")])
        self.assertEqual(counts, (1, 0, 0))
        self.assertNotIn("retried", said)

    def test_logs_are_read(self):
        with tempfile.TemporaryDirectory() as folder:
            first, again = pathlib.Path(folder, "first"), pathlib.Path(folder, "again")
            first.write_text(json.dumps(log_entry("one", "FAIL")) + "\n", encoding="utf-8")
            again.write_text(json.dumps(log_entry("one", "OK")) + "\n", encoding="utf-8")
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(results.count_log("gcc", first, [again]), (1, 0, 0))
                self.assertEqual(results.count_log("gcc", first, []), (0, 1, 0))
                # A retry without a log counts as failed.
                missing = pathlib.Path(folder, "missing")
                self.assertEqual(results.count_log("gcc", first, [missing]), (0, 1, 0))
                self.assertEqual(results.count_log("gcc", missing, [again]), (0, 1, 0))
            self.assertIn("retried: gcc: one\n", said.getvalue())


if __name__ == "__main__":
    unittest.main()
