#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-files.py PROGRAM MAKE-CAPTURE - `report` and `diff`: tables, filters, merges, bad input

Prints TAP. Needs no hypervisor and no privilege.
"""

import fcntl
import fnmatch
import gzip
import json
import os
import pathlib
import pty
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import pictures  # noqa: E402

DONE, FAILED, USAGE, USELESS = 0, 1, 2, 5
TRY_HELP = "; try: virt-uprof --help"
DOMAIN_HINT = "; for stored profiles of a domain: report --since today DOMAIN, or diff DOMAIN@yesterday DOMAIN@today"

OLD = "web-1;main;function_1;work 1000\nweb-1;main;function_2;work 3000\nweb-1;main;function_3;work 6000\nweb-1;[idle] 5000\n"
NEW = "web-2;main;function_1;work 1000\nweb-2;main;function_2;work 1500\nweb-2;main;function_3;work 2500\n"
LINUX = "vm;nginx;main;write;entry_[k];tcp_[k] 5\nvm;nginx;main 2\nvm;sh;[truncated];f 3\nvm;[idle] 9\n"
VCPUS = "vm;vcpu0;a;b 3\nvm;vcpu1;a 1\nvm;vcpu1;[idle] 4\n"

# fmt: off
CASES = (
    # name, input files, words, exit code, stdout, pattern of stderr
    ("table", {"a.folded": OLD}, "report a.folded", DONE,
     "  self   total  function\n 100.0   100.0  work\n   0.0   100.0  main\n   0.0    60.0  function_3\n"
     "   0.0    30.0  function_2\n   0.0    10.0  function_1\n", ""),
    ("rows", {"a.folded": OLD}, "report -n 1 a.folded", DONE,
     "  self   total  function\n 100.0   100.0  work\n4 more functions; -n 5 shows them all\n", ""),
    ("focus", {"a.folded": OLD}, "report --focus function_1 a.folded", DONE,
     "function_1: self   0.0 %, total  10.0 % of samples; shares below are of that total\n"
     "  share  callers\n 100.0   main\n  share  callees\n 100.0   work\n", ""),
    ("focus-nothing", {"a.folded": OLD}, "report --focus x a.folded", USELESS, "",
     "virt-uprof: no stack has a function 'x'; names: virt-uprof report -n 1000000"),
    ("include", {"a.folded": OLD}, "report -f folded --include on_[12]$ a.folded", DONE,
     "web-1;main;function_1;work 1000\nweb-1;main;function_2;work 3000\n", ""),
    ("exclude", {"a.folded": OLD}, "report -f folded --exclude on_[12]$ --exclude idle|on_3 a.folded", DONE,
     "web-1;main;function_1;work 1000\nweb-1;main;function_2;work 3000\n", ""),
    ("include-and-exclude", {"a.folded": OLD}, "report -f folded --include function --exclude _1|_2 a.folded", DONE,
     "web-1;main;function_3;work 6000\n", ""),
    ("include-nothing", {"a.folded": OLD}, "report --include nothing a.folded", USELESS, "",
     "virt-uprof: 'a.folded' has no sample left after --include and --exclude"),
    ("bad-regex", {}, "report --include ( x", USAGE, "", "virt-uprof: --include '(' is not a regular expression" + TRY_HELP),
    ("per-vcpu", {"v.folded": VCPUS}, "report --per-vcpu v.folded", DONE,
     "vcpu0: 3 samples, 37.5 % of all\n  self   total  function\n 100.0   100.0  b\n   0.0   100.0  a\n\n"
     "vcpu1: 5 samples, 62.5 % of all\n  self   total  function\n 100.0   100.0  a\n", ""),
    ("per-vcpu-truncated", {"v.folded": "vm;vcpu0;[truncated];b 3\nvm;vcpu0;a;b 1\n"}, "report --per-vcpu v.folded", DONE,
     "vcpu0: 4 samples, 100.0 % of all\n  self   total  function\n 100.0   100.0  b\n   0.0    75.0  [truncated]\n   0.0    25.0  a\n", ""),
    ("per-vcpu-some", {"v.folded": "vm;vcpu0;a 3\nvm;a 1\n"}, "report --per-vcpu v.folded", DONE,
     "vcpu0: 3 samples, 75.0 % of all\n  self   total  function\n 100.0   100.0  a\n\n"
     "on unknown vCPUs: 1 samples, 25.0 % of all\n", ""),
    ("per-vcpu-nothing", {"a.folded": OLD}, "report --per-vcpu a.folded", USELESS, "",
     "virt-uprof: these stacks do not say on which vCPU they ran; *"),
    ("by-process", {"a": LINUX}, "report --by process a", DONE,
     "kernel   total  process\n  50.0    70.0  nginx\n   0.0    30.0  sh\n", ""),
    ("by-process-rows", {"a": LINUX}, "report -n 1 --by process a", DONE,
     "kernel   total  process\n  50.0    70.0  nginx\n1 more processes; -n 2 shows them all\n", ""),
    ("by-process-per-vcpu", {"a": LINUX.replace("vm;", "vm;vcpu1;")}, "report --per-vcpu --by process a", DONE,
     "vcpu1: 19 samples, 100.0 % of all\nkernel   total  process\n  50.0    70.0  nginx\n   0.0    30.0  sh\n", ""),
    ("by-vcpu", {"a": VCPUS}, "report --by vcpu a", DONE, "kernel   total  vcpu\n   0.0    75.0  vcpu0\n   0.0    25.0  vcpu1\n", ""),
    ("by-vcpu-nothing", {"a": OLD}, "report --by vcpu a", USELESS, "", "virt-uprof: these stacks do not say on which vCPU they ran; *"),
    ("by-process-nothing", {"a": OLD}, "report --by process a", USELESS, "",
     "virt-uprof: these stacks do not say which process ran; stacks of Linux guests do"),
    ("by-process-nothing-json", {"a": OLD}, "report --json --by process a", USELESS, "",
     "virt-uprof: these stacks do not say which process ran; stacks of Linux guests do"),
    ("by-function", {"a": LINUX}, "report --by process --by function -n 1 a", DONE,
     "  self   total  function\n  50.0    50.0  tcp_[k]\n7 more functions; -n 8 shows them all\n", ""),
    # Stacks of halted vCPUs: no share of the running samples may exceed 100 %.
    ("idle-stack", {"a": "vm;main;hlt;[idle] 6\nvm;main;work 4\n"}, "report a", DONE,
     "  self   total  function\n  60.0    60.0  [idle]\n  40.0    40.0  work\n   0.0   100.0  main\n   0.0    60.0  hlt\n", ""),
    ("idle-stack-small", {"a": "vm;main;hlt;[idle] 1\nvm;f;work 9\n"}, "report a", DONE,
     "  self   total  function\n  90.0    90.0  work\n  10.0    10.0  [idle]\n   0.0    90.0  f\n   0.0    10.0  hlt\n   0.0    10.0  main\n", ""),
    ("idle-both", {"a": "vm;main;hlt;[idle] 1\nvm;f;work 9\nvm;[idle] 70\n"}, "report a", DONE,
     "  self   total  function\n  90.0    90.0  work\n  10.0    10.0  [idle]\n   0.0    90.0  f\n   0.0    10.0  hlt\n   0.0    10.0  main\n", ""),
    ("idle-stack-focus", {"a": "vm;main;hlt;[idle] 6\nvm;main;work 4\nvm;[idle] 5\n"}, "report --focus main a", DONE,
     "main: self   0.0 %, total 100.0 % of samples; shares below are of that total\n"
     "  share  callers\n 100.0   vm\n  share  callees\n  60.0   hlt\n  40.0   work\n", ""),
    ("idle-vcpu", {"a": "vm;vcpu0;a 3\nvm;vcpu0;[idle] 7\n"}, "report a", DONE,
     "  self   total  function\n 100.0   100.0  a\n   0.0   100.0  vcpu0\n", ""),
    ("merge", {"a": "vm;x 1\nvm;y 2\n", "b": "vm;y 3\n"}, "report -f folded a b", DONE, "vm;x 1\nvm;y 5\n", ""),
    ("merge-domains", {"a": "v1;x 1\n", "b": "v2;y;z 3\n"}, "report -f folded a b", DONE, "v1;x 1\nv2;y;z 3\n", ""),
    ("merge-one-missing", {"a": "vm;x 1\n"}, "report -f folded a b", FAILED, "vm;x 1\n",
     "virt-uprof: cannot read 'b': No such file or directory" + DOMAIN_HINT + "\nvirt-uprof: not all of the input could be read: showing the rest: 1 sample"),
    ("stdin", {"-": "vm;x 1\n"}, "report -f folded -", DONE, "vm;x 1\n", ""),
    ("other-name", {"a.pb.gz": "vm;x 1\n"}, "report -f folded a.pb.gz", DONE, "vm;x 1\n", ""),
    ("packed", {"a": gzip.compress(b"vm;x 1\n")}, "report -f folded a", DONE, "vm;x 1\n", ""),
    ("no-roots", {"a": "main 3\nidle 4\n"}, "report a", DONE,
     "  self   total  function\n  57.1    57.1  idle\n  42.9    42.9  main\n", ""),
    ("name-like-perf", {"a": "vm:1;main 5\n"}, "report -f folded a", DONE, "vm:1;main 5\n", ""),
    ("name-like-json", {"a": "{closure#0};main 5\n<svg>;f 2\n"}, "report -f folded a", DONE, "<svg>;f 2\n{closure#0};main 5\n", ""),
    ("name-like-xml", {"a": "<?xml;main 5\n"}, "report -f folded a", DONE, "<?xml;main 5\n", ""),
    ("name-like-perf-bad", {"a": "vm:1;main 5\nvm:1\n"}, "report -f folded a", FAILED, "vm:1;main 5\n", "virt-uprof: a line 2: no folded stack: *"),

    ("lines-without-addresses", {"a": "vm;x 1\n"}, "report --lines -f folded a", DONE, "vm;x 1\n",
     "virt-uprof: --lines needs a capture: other profiles have no addresses to look up"),

    ("only-idle", {"a": "vm;[idle] 9\n"}, "report a", DONE, "", "vm: 9 samples, all idle"),

    ("capture-in-a-pipe", {"-": "UPROFCAP\1\0\0\0"}, "report -", FAILED, "", "virt-uprof: '-' is a capture in a pipe; give it as a file"),
    ("empty", {"a": ""}, "report a", FAILED, "", "virt-uprof: 'a' is empty, as if nothing ran"),
    ("only-comments", {"a": "# nothing\n\n"}, "report a", USELESS, "", "virt-uprof: 'a' has no sample"),
    ("prose", {"a": "hello world\n"}, "report a", FAILED, "", "virt-uprof: a line 1: no folded stack: frames with ';' between them, a blank and a count"),
    ("half-bad", {"a": "vm;x 1\nvm;y\n"}, "report -f folded a", FAILED, "vm;x 1\n",
     "virt-uprof: a line 2: no folded stack: *\nvirt-uprof: not all of the input could be read: showing the rest: 1 sample"),
    ("cut-gzip", {"a": gzip.compress(b"vm;x 1\n" * 99)[:-9]}, "report a", FAILED, "", "virt-uprof: a: the file is truncated"),
    ("not-gzip", {"a": b"\x1f\x8bnothing"}, "report a", FAILED, "", "virt-uprof: a: the compressed data is damaged"),
    ("picture", {"a.svg": "<?xml version='1.0'?><svg/>"}, "report a.svg", FAILED, "", "virt-uprof: 'a.svg' is a picture or *"),
    ("json", {"a.json": "{}"}, "report a.json", FAILED, "",
     "virt-uprof: 'a.json' is JSON (speedscope, or the .meta.json of a run); profiles are read from captures, folded stacks and pprof"),
    ("perf-text", {"a.perf": "vm:web-1 1/1 [000] 1.000000: 1 cpu-clock:\n"}, "report a.perf", FAILED, "", "virt-uprof: 'a.perf' is text of 'perf script'; *"),
    ("perf-data", {"a": b"PERFILE2\0\0"}, "report a", FAILED, "", "virt-uprof: 'a' is perf's data; fold it first: perf script | stackcollapse-perf.pl"),
    ("zeros", {"a": bytes(5000)}, "report a", FAILED, "", "virt-uprof: 'a' is binary data of an unknown format; profiles are read from captures, folded stacks and pprof"),
    ("cut-pprof", {"a": b"\x0a\x04\x08\x01\x10\x02\x12\x50\x0a"}, "report a", FAILED, "", "virt-uprof: a byte 6: not a field of a pprof profile"),
    ("folder", {}, "report .", FAILED, "", "virt-uprof: cannot read '.': Is a directory"),
    ("hostile-path", {}, "report \x1b[31m", FAILED, "", "virt-uprof: cannot read '?[[]31m': No such file or directory" + DOMAIN_HINT),
    ("no-file-with-ending", {}, "report no.folded", FAILED, "", "virt-uprof: cannot read 'no.folded': No such file or directory"),
    ("focus-almost", {"a.folded": OLD}, "report --focus functoin_1 a.folded", USELESS, "",
     "virt-uprof: no stack has a function 'functoin_1' (did you mean 'function_1'?); names: virt-uprof report -n 1000000"),
    ("focus-part", {"a.folded": OLD}, "report --focus unction_ a.folded", USELESS, "",
     "virt-uprof: no stack has a function 'unction_' (did you mean 'function_1'?); names: virt-uprof report -n 1000000"),
    ("annotate-names", {"a.folded": OLD}, "report --annotate work a.folded", USELESS, "",
     "virt-uprof: the profile has no addresses of 'work', only its name; record with --capture FILE, and give FILE"),
    ("annotate-callees", {"a.folded": OLD}, "report --annotate main a.folded", USELESS, "",
     "virt-uprof: 'main' has no samples of its own; --focus shows what it calls"),
    ("annotate-almost", {"a.folded": OLD}, "report --annotate wrk a.folded", USELESS, "",
     "virt-uprof: no stack has a function 'wrk' (did you mean 'work'?); names: virt-uprof report -n 1000000"),
    ("says-what-it-wrote", {"a.folded": OLD}, "report -o n.svg a.folded", DONE, "", "wrote n.svg"),
    ("says-what-it-replaced", {"a.folded": OLD, "o.svg": "old"}, "report -o o.svg a.folded", DONE, "", "wrote o.svg (replaced)"),
    ("says-nothing", {"a.folded": OLD}, "report -q -o n.svg a.folded", DONE, "", ""),
    ("no-folder", {"a": "vm;x 1\n"}, "report -o no/x.svg a", FAILED, "", "virt-uprof: cannot open the folder of 'no/x.svg': No such file or directory"),

    ("diff", {"a": OLD, "b": NEW}, "diff a b", DONE,
     "old: 15000 samples, 66.7 % running; new: 5000 samples, 100.0 % running; percent of running samples, and points of change\n"
     "   old   new  change    self       function\n"
     "  10.0  20.0   +10.0     0.0       function_1\n  60.0  50.0   -10.0     0.0       function_3\n"
     "3 functions without a significant change are hidden (-v shows them)\n", ""),
    ("diff-verbose", {"a": OLD, "b": NEW}, "diff -n 3 -v a b", DONE,
     "old: 15000 samples, 66.7 % running; new: 5000 samples, 100.0 % running; percent of running samples, and points of change\n"
     "   old   new  change    self       function\n"
     "  10.0  20.0   +10.0     0.0       function_1\n  60.0  50.0   -10.0     0.0       function_3\n"
     "  30.0  30.0     0.0     0.0       function_2\n2 more functions; -n 5 shows them all\n", ""),
    ("diff-gone-and-new", {"a": "vm;x 100\nvm;y 100\n", "b": "vm;x 100\nvm;z 100\n"}, "diff a b", DONE,
     "old: 200 samples, 100.0 % running; new: 200 samples, 100.0 % running; percent of running samples, and points of change\n"
     "   old   new  change    self       function\n"
     "  50.0   0.0   -50.0   -50.0  gone y\n   0.0  50.0   +50.0   +50.0  new  z\n1 function without a significant change is hidden (-v shows it)\n", ""),
    # Stacks of other programs have no domain. Their common root can be a domain or a function.
    ("diff-root-of-one", {"a": "main;f 100\nmain;g 100\n", "b": "main;f 100\nmain;g 100\nstart;h 200\n"}, "diff a b", DONE,
     "old: 200 samples, 100.0 % running; new: 400 samples, 100.0 % running; percent of running samples, and points of change\n"
     "   old   new  change    self       function\n"
     "   0.0  50.0   +50.0   +50.0  new  h\n 100.0  50.0   -50.0     0.0       main\n   0.0  50.0   +50.0     0.0  new  start\n"
     "  50.0  25.0   -25.0   -25.0       f\n  50.0  25.0   -25.0   -25.0       g\n", ""),
    ("diff-domain-of-one", {"a": "web-1;main;f 100\nweb-1;main;g 100\n", "b": "main;f 100\nmain;g 100\n"}, "diff a b", DONE,
     "old: 200 samples, 100.0 % running; new: 200 samples, 100.0 % running; percent of running samples, and points of change\n"
     "   old   new  change    self       function\nno function has changed significantly (-v shows all 3)\n", ""),
    ("diff-domain-of-several", {"a": "v1;main;f 100\nv2;main;f 100\n", "b": "v2;main;f 100\n"}, "diff a b", DONE,
     "old: 200 samples, 100.0 % running; new: 100 samples, 100.0 % running; percent of running samples, and points of change\n"
     "   old   new  change    self       function\n"
     "  50.0   0.0   -50.0     0.0  gone v1\n  50.0 100.0   +50.0     0.0       v2\n2 functions without a significant change are hidden (-v shows them)\n", ""),
    # The common root of both sides can also be the name of a function that is called.
    ("diff-root-called-by-old", {"a": "main;a 900\nmain;main;a 100\n", "b": "main;a 1000\n"}, "diff a b", DONE,
     "old: 1000 samples, 100.0 % running; new: 1000 samples, 100.0 % running; percent of running samples, and points of change\n"
     "   old   new  change    self       function\n"
     "  10.0   0.0   -10.0     0.0  gone main\n"
     "1 function without a significant change is hidden (-v shows it)\n", ""),
    ("diff-root-called-by-new", {"a": "main;a 1000\n", "b": "main;a 900\nmain;main;a 100\n"}, "diff a b", DONE,
     "old: 1000 samples, 100.0 % running; new: 1000 samples, 100.0 % running; percent of running samples, and points of change\n"
     "   old   new  change    self       function\n"
     "   0.0  10.0   +10.0     0.0  new  main\n"
     "1 function without a significant change is hidden (-v shows it)\n", ""),
    ("diff-domain-called-by-old", {"a": "web;web;a 900\nweb;x 100\n", "b": "web;x 100\nweb;y 900\n"}, "diff a b", DONE,
     "old: 1000 samples, 100.0 % running; new: 1000 samples, 100.0 % running; percent of running samples, and points of change\n"
     "   old   new  change    self       function\n"
     "  90.0   0.0   -90.0   -90.0  gone a\n   0.0  90.0   +90.0   +90.0  new  y\n  90.0   0.0   -90.0     0.0  gone web\n"
     "1 function without a significant change is hidden (-v shows it)\n", ""),
    ("diff-domain-called-by-new", {"a": "web;x 100\nweb;y 900\n", "b": "web;web;a 900\nweb;x 100\n"}, "diff a b", DONE,
     "old: 1000 samples, 100.0 % running; new: 1000 samples, 100.0 % running; percent of running samples, and points of change\n"
     "   old   new  change    self       function\n"
     "   0.0  90.0   +90.0   +90.0  new  a\n  90.0   0.0   -90.0   -90.0  gone y\n   0.0  90.0   +90.0     0.0  new  web\n"
     "1 function without a significant change is hidden (-v shows it)\n", ""),
    ("diff-truncated", {"a": OLD, "b": "web-2;[truncated];work 500\nweb-2;main;work 500\n"}, "diff -n 1 a b", DONE, None,
     "virt-uprof: one profile has far more truncated stacks (0 %, 50 %): changes may come from that"),
    ("diff-truncated-per-vcpu", {"a": OLD, "b": "web-2;vcpu0;[truncated];work 500\nweb-2;vcpu1;main;work 500\n"}, "diff -n 1 a b", DONE, None,
     "virt-uprof: one profile has far more truncated stacks (0 %, 50 %): changes may come from that"),
    ("diff-truncated-process", {"a": OLD, "b": "web-2;nginx;[truncated];work 500\nweb-2;nginx;main;work 500\n"}, "diff -n 1 a b", DONE, None,
     "virt-uprof: one profile has far more truncated stacks (0 %, 50 %): changes may come from that"),
    ("diff-idle", {"a": OLD, "b": "web-2;[idle] 5\n"}, "diff a b", USELESS, "", "virt-uprof: 'b' has no running sample, so there is nothing to compare"),
    ("diff-one", {}, "diff a", USAGE, "", "virt-uprof: 'diff' needs two files, OLD and NEW" + TRY_HELP),
    ("diff-format", {}, "diff -o x.folded a b", USAGE, "", "virt-uprof: 'diff' writes pictures (.svg), and its table to stdout" + TRY_HELP),
    ("diff-missing", {"a": OLD}, "diff a nothing", FAILED, "", "virt-uprof: cannot read 'nothing': No such file or directory" + DOMAIN_HINT),
    ("diff-says-what-it-wrote", {"a": OLD, "b": NEW}, "diff -n 1 -o d.svg a b", DONE, None, "wrote d.svg"),
    ("diff-bad-day", {"a": OLD}, "diff a web-1@3x", FAILED, "",
     "virt-uprof: no file 'web-1@3x'; a stored day is DOMAIN@DAY, where DAY is today, yesterday, 3d or a day such as 2026-11-20"),
)
# fmt: on


class Suite:
    """Runs the program and counts failures."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.count = self.failed = 0

    def run(self, words, given=b"", **options):
        return subprocess.run([self.program, *words], cwd=self.folder, input=given, capture_output=True,
                              timeout=60, check=False, **options)  # fmt: skip

    def say(self, name, faults):
        self.count += 1
        self.failed += bool(faults)
        print("%s %d %s" % ("not ok" if faults else "ok", self.count, name))
        for fault in faults:
            print("# " + str(fault).replace("\n", "\\n")[:600])


def test_case(suite, case):
    name, files, words, code, stdout, stderr = case
    for path, text in files.items():
        (suite.folder / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    done = suite.run(words.split(" "), (files.get("-") or "").encode())
    faults = [] if done.returncode == code else ["exit code %d" % done.returncode]
    got, said = done.stdout.decode(), done.stderr.decode().rstrip("\n")
    if stdout is not None and got != stdout:
        faults.append("stdout is %r" % got)
    if not fnmatch.fnmatchcase(said, stderr):
        faults.append("stderr is %r" % said)
    suite.say(name, faults)
    for path in files:
        (suite.folder / path).unlink()


def test_json(suite):
    (suite.folder / "a").write_text(OLD)
    (suite.folder / "b").write_text(NEW)
    report = json.loads(suite.run(["report", "--json", "--focus", "function_3", "a"]).stdout)
    rows = {row["name"]: (row["self"], row["total"]) for row in report["functions"]}
    suite.say("json/report", [] if (rows["work"], rows["function_3"], report["samples"], report["focus"]["callers"]) == (
        (10000, 10000), (0, 6000), {"total": 15000, "running": 10000, "idle": 5000}, [{"name": "main", "total": 6000}],
    ) else [report])  # fmt: skip
    (suite.folder / "a").write_text(LINUX)
    report = json.loads(suite.run(["report", "--json", "--by", "process", "a"]).stdout)
    wanted = [{"name": "nginx", "kernel": 5, "total": 7}, {"name": "sh", "kernel": 0, "total": 3}]
    suite.say("json/by-process", [] if report["processes"] == wanted and len(report["functions"]) == 9 else [report])
    report = json.loads(suite.run(["report", "--json", "a"]).stdout)
    suite.say("json/by-function", [] if "processes" not in report else [report])
    (suite.folder / "a").write_text("vm;vcpu0;[truncated];x 3\nvm;vcpu1;y 4\nvm;[truncated];z 5\nvm;vcpu0;x;[truncated] 6\n")
    stacks = json.loads(suite.run(["report", "--json", "a"]).stdout)["stacks"]
    suite.say("json/truncated", [] if stacks == {"truncated": 8} else [stacks])
    # The report leaves out facts that a file without a sidecar does not have.
    report = json.loads(suite.run(["report", "--json", "a"]).stdout)
    changes = json.loads(suite.run(["diff", "--json", "a", "b"]).stdout)
    unknown = {"started", "duration_ms", "ended_by", "rate", "access", "hold_us", "frames", "call_sites", "ticks"}
    suite.say("json/unknown", sorted(unknown & {*report, *changes["old"], *changes["new"]}))
    svg = suite.run(["report", "-f", "svg", "a"]).stdout.decode()
    suite.say("svg/truncated", [] if ">truncated</text><text" in svg and ">44.4 %</text>" in svg else [svg[-3000:]])
    (suite.folder / "a").write_text(OLD)
    changes = json.loads(suite.run(["diff", "--json", "a", "b"]).stdout)
    rows = {row["name"]: (row["total_change_ppm"], row["total_significant"]) for row in changes["functions"]}
    wanted = {"function_1": (100000, True), "function_3": (-100000, True), "function_2": (0, False),
              "main": (0, False), "work": (0, False)}  # fmt: skip
    suite.say("json/diff", [] if rows == wanted and changes["old_total"] == 10000 else [changes])


def test_no_change(suite):
    """A profile does not differ from itself, from a copy with half of each count, or from a shuffled copy."""
    lines = ["vm;a;f%d %d" % (i, 2 + 2 * (i * 7919 % 97)) for i in range(500)]
    (suite.folder / "a").write_text("\n".join(lines) + "\n")
    (suite.folder / "half").write_text("".join("%s %d\n" % (l.split(" ")[0], int(l.split(" ")[1]) // 2) for l in lines))
    (suite.folder / "shuffled").write_text("\n".join(reversed(lines)) + "\n")
    for other in ("a", "half", "shuffled"):
        out = suite.run(["diff", "a", other]).stdout.decode().splitlines()
        suite.say("diff-same/" + other, [] if len(out) == 3 and out[2] == "no function has changed significantly (-v shows all 501)" else out)
        svg = suite.run(["diff", "-q", "-o", "-", "a", other]).stdout.decode()
        suite.say("diff-same/%s/gray" % other, [c for c in "rb" for n in range(1, 8) if '<rect class="%s%d" x' % (c, n) in svg.split('id="f"')[1]])


def test_rate(suite, make_capture):
    """A filter does not change the rate, because the run also took the samples that the filter removes."""
    for case in ("many", "rests"):  # Some records of "rests" stand for several samples.
        subprocess.run([make_capture, case, suite.folder], check=True)
        rates = {}
        for name, words in (("all", ()), ("some", ("--include", "work")), ("fewer", ("--exclude", "work"))):
            text = suite.run(["report", "-q", "-s", "app", "--json", *words, "guest.capture"]).stdout
            facts = json.loads(text)
            rates[name] = (facts["rate"], facts["samples"]["total"])
        suite.say("rate/" + case, [] if rates["all"][0] == rates["some"][0] == rates["fewer"][0] and rates["all"][0]["got_millihertz"] > 0
                  and 0 < rates["some"][1] < rates["all"][1] and 0 < rates["fewer"][1] < rates["all"][1] else [rates])  # fmt: skip


def test_annotate(suite, make_capture):
    """A capture, and profiles with addresses instead of names, give the same samples by instruction."""
    subprocess.run([make_capture, "rests", suite.folder], check=True)
    for path in ("bare.folded", "bare.pb.gz"):
        suite.run(["report", "-q", "-o", path, "guest.capture"])
    for path in ("guest.capture", "bare.folded", "bare.pb.gz"):
        done = suite.run(["report", "-q", "-s", "app", "--json", "--annotate", "work", path])
        found = json.loads(done.stdout) if done.returncode == DONE else {"annotation": None}
        one = (found["annotation"] or {"functions": [{}]})["functions"][0]
        hot = [row for row in one.get("instructions", []) if row["samples"] > 0]
        suite.say("annotate/" + path, [] if hot == [{"address": 0x100210, "samples": 7, "text": "add    %al,(%rax)"}]
                  and (one["image"], one["start"], one["self"], len(one["instructions"])) == ("[app]", 0x100200, 7, 128)
                  and (found["weight"], found["annotation"]["lines"]) == (20, []) else [done, found])  # fmt: skip
    done = suite.run(["report", "-q", "-s", "app", "--annotate", "work", "bare.folded"])
    suite.say("annotate/table", [] if b"\n 100.0   100210  add    %al,(%rax)\n" in done.stdout else [done])
    subprocess.run([make_capture, "inlined", suite.folder], check=True)
    done = suite.run(["report", "-q", "-s", "app", "--annotate", "inner_[i]", "guest.capture"])
    said = "virt-uprof: 'inner_[i]' has no instructions of its own: it is inlined into its caller, or a function of Python\n"
    suite.say("annotate/inlined", [] if (done.returncode, done.stderr.decode()) == (USELESS, said) else [done])


def test_mixed_formats(suite, make_capture):
    """diff of the same profile in two formats (folded, compressed, pprof, capture) finds no change."""
    subprocess.run([make_capture, "many", suite.folder], check=True)
    text = suite.run(["report", "-q", "-s", "app", "-f", "folded", "guest.capture"]).stdout.decode()
    names = {name for line in text.splitlines() for name in line.rpartition(" ")[0].split(";")[1:]}
    total = sum(int(line.rpartition(" ")[2]) for line in text.splitlines())
    for path in ("m.folded", "m.folded.gz", "m.pb.gz"):
        suite.run(["report", "-q", "-s", "app", "-o", path, "guest.capture"])
    for old in ("guest.capture", "m.folded", "m.folded.gz", "m.pb.gz"):
        for new in ("guest.capture", "m.folded", "m.pb.gz"):
            done = suite.run(["diff", "--json", "-q", "-s", "app", old, new])
            found = json.loads(done.stdout) if done.returncode == 0 else {}
            rows = found.get("functions", [])
            faults = [row for row in rows if (row["total_change_ppm"], row["self_change_ppm"]) != (0, 0)]
            if {row["name"] for row in rows} != names or (found.get("old_total"), found.get("new_total")) != (total, total):
                faults.append("%r, of %r: %r" % (rows, names, done))
            suite.say("diff-mixed/%s-%s" % (old, new), faults)


def test_partial_input(suite, make_capture):
    """If an input cannot be read completely, no file is written or replaced, and a message says so."""
    whole, cut = suite.folder / "good.svg", suite.folder / "cut"
    cut.mkdir(exist_ok=True)
    (suite.folder / "good").write_text("vm;x 1\n")
    (suite.folder / "bad").write_text("vm;x 1\nvm;y\n")
    (suite.folder / "bad.gz").write_bytes(gzip.compress(b"vm;x 1\n" * 99)[:-9])
    for name, words in (("bad", ["report", "bad"]), ("missing", ["report", "good", "nothing"]), ("gzip", ["report", "good", "bad.gz"]),
                        ("diff", ["diff", "good", "bad"]), ("diff-old", ["diff", "bad", "good"])):  # fmt: skip
        whole.write_text("before")
        done = suite.run([*words, "-o", "good.svg", "-o", "new.svg"])
        faults = [] if done.returncode == FAILED and done.stderr.count(b"is not written: not all of the input could be read") == 2 else [done]
        suite.say("partial/" + name, faults + ([] if whole.read_text() == "before" and not (suite.folder / "new.svg").exists() else ["written"]))
    subprocess.run([make_capture, "killed", cut], check=True)
    whole.write_text("before")
    done = suite.run(["report", "-s", "cut/app", "-o", "good.svg", "-o", "new.svg", "cut/guest.capture"])
    suite.say("partial/cut-capture", [] if done.returncode == FAILED and b"'good.svg' exists, and is not replaced" in done.stderr
              and whole.read_text() == "before" and (suite.folder / "new.svg").exists() else [done])  # fmt: skip
    whole.unlink()
    done = suite.run(["report", "-s", "cut/app", "-o", "newer.svg", "-o", "/dev/null", "-f", "svg", "cut/guest.capture"])
    suite.say("partial/cut-capture-new", [] if done.returncode == DONE and (suite.folder / "newer.svg").exists() else [done])


def test_too_many_frames(suite, is_sanitized):
    """A file with too many frames is refused before it takes 1.2 GiB. Sanitizers take more."""
    deep = ";f" * 1000
    with open(suite.folder / "deep", "w") as out:
        out.writelines("vm;%d%s 1\n" % (i, deep) for i in range(9000))
    child = subprocess.Popen([suite.program, "report", "-f", "folded", "deep"], cwd=suite.folder, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)  # fmt: skip
    said = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    mib = usage.ru_maxrss >> 10
    suite.say("frames", [] if (mib < 1200 or is_sanitized) and os.waitstatus_to_exitcode(status) == FAILED
              and said.startswith("virt-uprof: 'deep' cannot be added: all stacks together would have more than 8 million different frames") else [said, "%d MiB" % mib])  # fmt: skip
    (suite.folder / "deep").unlink()


def test_large_counts(suite):
    """Counts of other programs can be bytes or nanoseconds, and too large for a format with a record per sample."""
    (suite.folder / "huge").write_text("vm;a;b 4000000000000\nvm;c 1\n")
    for words, code in ((["-o", "huge.perf"], FAILED), (["-f", "perf"], FAILED), (["-o", "huge.perf", "-o", "huge.svg"], FAILED)):
        done = suite.run(["report", *words, "huge"])
        suite.say("counts/" + "-".join(words), [] if done.returncode == code and not done.stdout
                  and done.stderr == b"virt-uprof: format 'perf' has a record for each sample, and 4000000000001 are too many; take .pb.gz, .json or .folded\n"
                  + (b"wrote huge.svg\n" if "huge.svg" in words else b"")
                  and not (suite.folder / "huge.perf").exists() else [done])  # fmt: skip
    (suite.folder / "deep").write_text("vm%s 9999999\n" % (";function" * 1000))
    done = suite.run(["report", "-o", "deep.perf", "deep"])
    suite.say("counts/bytes", [] if done.returncode == FAILED and not (suite.folder / "deep.perf").exists() and re.fullmatch(
        rb"virt-uprof: format 'perf' has a record for each sample, and \d+ MiB of them are too many; take .pb.gz, .json or .folded\n",
        done.stderr) else [done])  # fmt: skip
    suite.say("counts/other-files", [] if (suite.folder / "huge.svg").exists() else ["no picture"])
    document = json.loads(suite.run(["report", "-f", "speedscope", "huge"]).stdout)["profiles"][0]
    suite.say("counts/speedscope", [] if (document["unit"], document["weights"], document["endValue"]) == (
        "none", [4000000000000, 1], 4000000000001) else [document])  # fmt: skip
    suite.run(["report", "-o", "huge.pb.gz", "huge"])
    document = json.loads(suite.run(["report", "-f", "speedscope", "huge.pb.gz"]).stdout)["profiles"][0]
    suite.say("counts/rate-but-too-long", [] if (document["unit"], document["endValue"]) == ("none", 4000000000001) else [document])
    back = suite.run(["report", "-f", "folded", "huge.pb.gz"]).stdout
    suite.say("counts/pprof", [] if back == (suite.folder / "huge").read_bytes() else [back])


def test_full_disk(suite):
    """If an output cannot be written completely, the old file stays and no temporary file is left."""
    (suite.folder / "a").write_text("".join("vm;f%d;g%d %d\n" % (i, i, i + 1) for i in range(30000)))
    for ending in ("folded", "svg", "pb.gz", "json", "perf"):
        path = suite.folder / ("full." + ending)
        path.write_text("before")
        done = suite.run(["report", "-q", "-o", path.name, "a"],
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))  # fmt: skip
        faults = [] if done.returncode == FAILED and path.read_text() == "before" else [done, path.stat().st_size]
        path.unlink()
        suite.say("full/" + ending, faults + [p for p in os.listdir(suite.folder) if p.startswith(".virt-uprof")])
    with open("/dev/full", "wb") as full:
        done = subprocess.run([suite.program, "report", "-f", "svg", "a"], stdout=full, stderr=subprocess.PIPE,
                              cwd=suite.folder, check=False)  # fmt: skip
    suite.say("full/stdout", [] if done.returncode == FAILED else [done])


def test_ignored_child_signal(suite):
    """virt-uprof inherits an ignored SIGCHLD. The kernel then keeps no status of children."""
    (suite.folder / "a").write_text(OLD)
    done = suite.run(["report", "-f", "folded", "a"], preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    suite.say("sigchld", [] if (done.returncode, done.stderr) == (DONE, b"") and done.stdout.count(b"\n") == 4 else [done])


def run_on_terminal(suite, words, environment):
    """Returns the output on a terminal with 60 columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    child = subprocess.Popen([suite.program, *words], stdin=subprocess.DEVNULL, stdout=follower, stderr=follower,
                             cwd=suite.folder, env=environment)  # fmt: skip
    os.close(follower)
    text = b""
    try:
        while piece := os.read(leader, 65536):
            text += piece
    except OSError:
        pass
    child.wait(60)
    os.close(leader)
    return text.decode().replace("\r\n", "\n")


def test_terminal(suite):
    (suite.folder / "a").write_text("vm;\x1b[2Jmain;%s 3\nvm;[unknown] 1\n" % ("long_" * 40))
    plain = {"PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C"}
    colored = run_on_terminal(suite, ["report", "a"], plain)
    suite.say("terminal/colors", [] if "\x1b[33m###" in colored and "\x1b[2J" not in colored else [colored])
    wide = [line for line in colored.replace("\x1b[33m", "").replace("\x1b[37m", "").replace("\x1b[0m", "").split("\n") if len(line) > 60]
    suite.say("terminal/width", wide)
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        text = run_on_terminal(suite, ["report", "a"], dict(plain, **{name: value}))
        suite.say("terminal/" + name, [text] if "\x1b" in text or "###" not in text else [])
    text = run_on_terminal(suite, ["report", "a"], dict(plain, LC_ALL="C.UTF-8"))
    suite.say("terminal/unicode", [] if "\u2588" in text else [text])
    # A terminal always gets the table, and the names of the files.
    text = run_on_terminal(suite, ["report", "-o", "t.folded", "a"], plain)
    suite.say("terminal/table-and-file", [] if "  function" in text and "wrote t.folded\n" in text else [text])
    text = run_on_terminal(suite, ["report", "-o", "-", "a"], plain)
    suite.say("terminal/only-stacks", [text] if "  function" in text else [])
    text = run_on_terminal(suite, ["report", "-f", "pprof", "a"], plain)
    suite.say("terminal/binary", [] if text == "virt-uprof: format 'pprof' is binary and not written to a terminal; use -o FILE\n" else [text])


def test_large(suite, is_sanitized):
    """A million different stacks; builds with sanitizers read a tenth."""
    n = 100000 if is_sanitized else 1000000
    with open(suite.folder / "million", "w") as out:
        out.writelines("vm;a%d;b%d;c%d 1\n" % (i // 10000, i // 100, i) for i in range(n))
    for ending in ("folded", "svg"):
        done = suite.run(["report", "-q", "-o", "million." + ending, "million"])
        size = (suite.folder / ("million." + ending)).stat().st_size
        suite.say("million/" + ending, [] if done.returncode == 0 and (ending != "svg" or size <= 3_000_000) else [done, size])


def test_memory(suite, is_sanitized):
    """A million samples of a hundred thousand stacks need less than 300 MiB in each format."""
    with open(suite.folder / "large", "w") as out:
        for i in range(100000):
            path = ("function_%d" % (i // 6 ** (7 - level)) for level in range(8))
            out.write("vm;%s;leaf_%d %d\n" % (";".join(path), i, 1 + i % 19))
    for ending in ("folded", "folded.gz", "svg", "pb.gz", "json"):
        child = subprocess.Popen([suite.program, "report", "-q", "-o", "large." + ending, "large"], cwd=suite.folder)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        suite.say("memory/" + ending, ["%d MiB" % (usage.ru_maxrss >> 10)]
                  if status or (usage.ru_maxrss >> 10 >= 300 and not is_sanitized) else [])


def main():
    program, make_capture = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    os.environ["LC_ALL"] = "C"
    with tempfile.TemporaryDirectory(prefix="uprof-files-") as name:
        suite = Suite(program, pathlib.Path(name))
        for case in CASES:
            test_case(suite, case)
        test_json(suite)
        test_no_change(suite)
        test_rate(suite, make_capture)
        test_annotate(suite, make_capture)
        test_mixed_formats(suite, make_capture)
        test_partial_input(suite, make_capture)
        is_sanitized = b"__asan_init" in pathlib.Path(program).read_bytes()
        test_too_many_frames(suite, is_sanitized)
        test_large_counts(suite)
        test_full_disk(suite)
        test_ignored_child_signal(suite)
        test_terminal(suite)
        test_memory(suite, is_sanitized)
        test_large(suite, is_sanitized)
        suite.say("xmllint", pictures.lint(suite.folder))
    print("1..%d" % suite.count)
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
