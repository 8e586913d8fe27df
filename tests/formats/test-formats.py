#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-formats.py PROGRAM MAKE-CAPTURE - output files follow the rules of other readers

Writes several profiles in each format. Each file must follow the rules of its importers,
have the same total for each function as the folded file, and have the same bytes if it is
written again. Formats that virt-uprof reads must give the same profile. protoc decodes
pprof against the schema of google/pprof, if Debian's package is installed. Prints TAP.
"""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import pictures  # noqa: E402

SCHEMA = pathlib.Path("/usr/share/gocode/src/github.com/google/pprof/proto/profile.proto")
# FlameGraph's script, from Debian's libdevel-nytprof-perl
FLAMEGRAPH = pathlib.Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")
ENDINGS = ("folded", "folded.gz", "svg", "pb.gz", "json", "perf", "meta.json")
MARKERS = r"\[(idle|truncated|unknown)\]"

# Patterns from the sources of importers: speedscope (src/import/bg-flamegraph.ts,
# linux-tools-perf.ts), the Firefox Profiler (src/profile-logic/import/linux-perf.js) and
# stackcollapse-perf.pl
FOLDED_LINE = re.compile(r"^(.*) (\d+)$")
SPEEDSCOPE_EVENT = re.compile(r"^(\S.+?)\s+(\d+)(?:/?(\d+))?\s+(?:\[(\d+)\]\s+)?(\d+\.\d+):\s+(\d+)?\s*(\S+):\s*$")
FIREFOX_EVENT = re.compile(r"^(.*?)\s+(?:(\d+)/)?(\d+)\b(?:\s+\[(\d+)\])?\s+([0-9.]+):(?:\s+(\d+))?\s+(\S+):(?:\s+.*)?$")
PERF_FRAME = re.compile(r"^\s*([0-9a-f]+)\s+(.+)\s+\(([^ ()]*)\)$")

NAMES = (
    "a;b", "l1\nl2", "", "# comment", "cpu 12", "\x1b[31m", "\xff", "\u202eevil", "<script>", "</script>",
    "(anonymous namespace)::f", "(lambda)", "operator()(int) const", "a (b)", "x+0x1f", "[idle]", "f_[k]",
    "\\", '"', "a" * 10000, "\u6f22\u5b57", "\u009b", "%s%n", "12 12", "a\tb", "\u2028",
)  # fmt: skip


class Suite:
    """Runs the program and counts failures."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.count = self.failed = 0

    def say(self, name, faults):
        self.count += 1
        self.failed += bool(faults)
        print("%s %d %s" % ("not ok" if faults else "ok", self.count, name))
        for fault in faults[:10]:
            print("# " + str(fault)[:400].replace("\n", "\\n"))

    def report(self, *words):
        done = subprocess.run([self.program, "report", "-q", *map(str, words)], cwd=self.folder, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError("%s: exit %d: %s" % (words, done.returncode, done.stderr))
        return done.stdout


def totals(stacks):
    """Returns the weight of each function, which counts once for each stack."""
    sums = {}
    for frames, weight in stacks:
        for name in set(frames):
            sums[name] = sums.get(name, 0) + weight
    return sums


def plain(name):
    """Returns a name as the perf format writes it."""
    if name.startswith("(") and not name.startswith("(anonymous namespace)"):
        name = "_" + name
    return name.replace("(anonymous namespace)", "{anonymous}", 1).removesuffix("_[k]")


# ---- Readers of the formats. Each returns faults, and stacks without their root. ----


def read_folded(data):
    faults, stacks = [], []
    lines = data.decode("utf-8").split("\n")
    if lines.pop() != "":
        faults.append("no line end at the end")
    if lines != sorted(lines, key=lambda line: line.encode()):
        faults.append("not sorted")
    for line in lines:
        match = FOLDED_LINE.match(line)
        if not match or any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in line):
            faults.append("not a folded line: %r" % line)
            continue
        frames = match[1].split(";")
        if line.startswith("#") or "" in frames or len(frames) < 2:
            faults.append("a line that readers misread: %r" % line)
        if re.search(r" \d+$", frames[-1]):
            faults.append("a second number: %r" % line)
        stacks.append((frames[1:], int(match[2])))
    return faults, stacks


def read_perf(data):
    faults, stacks, last, events = [], [], {}, set()
    for block in data.decode("utf-8").split("\n\n")[:-1]:
        header, *lines = block.split("\n")
        seen, fox = SPEEDSCOPE_EVENT.match(header), FIREFOX_EVENT.match(header)
        if not seen or not fox or (seen[1], seen[3]) != (fox[1], fox[3]):
            faults.append("not an event: %r" % header)
            continue
        if len(seen[1]) < 2 or re.search(r"\s", seen[1]):
            faults.append("a thread's name that readers misread: %r" % header)
        events.add(seen[7])
        time = int(seen[5].replace(".", ""))
        if time <= last.get(seen[3], -1):
            faults.append("time goes back: %r" % header)
        last[seen[3]] = time
        frames = []
        for line in lines:
            match = PERF_FRAME.match(line)
            if not match or match[2].startswith("("):
                faults.append("not a frame: %r" % line)
                continue
            frames.append(match[2])
        stacks.append((frames, 1))
    if len(events) > 1:
        faults.append("events %r" % events)
    return faults, stacks


def read_speedscope(data):
    faults, stacks = [], []
    text = data.decode("utf-8")
    document = json.loads(text)
    if document["$schema"] != "https://www.speedscope.app/file-format-schema.json" or "</" in text:
        faults.append("no schema, or markup")
    names = [frame["name"] for frame in document["shared"]["frames"]]
    if len(set(names)) != len(names):
        faults.append("a name twice")
    for profile in document["profiles"]:
        if profile["type"] != "sampled" or len(profile["samples"]) != len(profile["weights"]):
            faults.append("samples and weights differ")
        if profile["startValue"] != 0 or profile["endValue"] != sum(profile["weights"]):
            faults.append("wrong end")
        for sample, weight in zip(profile["samples"], profile["weights"]):
            stacks.append(([names[i] for i in sample][1:], weight))
    return faults, stacks


def unescape(text):
    """Returns the text of a string literal that protoc printed."""
    out = bytearray()
    for piece in re.findall(r"\\[0-7]{3}|\\.|[^\\]", text):
        simple = {"\\n": 10, "\\r": 13, "\\t": 9}
        if re.fullmatch(r"\\[0-7]{3}", piece):
            out.append(int(piece[1:], 8))
        elif piece in simple:
            out.append(simple[piece])
        else:
            out += piece[-1].encode()
    return out.decode("utf-8")


def parse_message(lines):
    """Parses the output of protoc to (key, value) pairs. The value of a nested message is a list of pairs."""
    fields = []
    for line in lines:
        line = line.strip()
        if line == "}":
            return fields
        if line.endswith(" {"):
            fields.append((line[:-2], parse_message(lines)))
        else:
            key, _, value = line.partition(": ")
            fields.append((key, unescape(value[1:-1]) if value.startswith('"') else int(value.replace("true", "1"))))
    return fields


def all_of(message, key):
    return [value for name, value in message if name == key]


def one_of(message, key, default=0):
    return (all_of(message, key) or [default])[0]


def read_pprof(data):
    faults, stacks = [], []
    if data[4:8] != b"\0\0\0\0":
        faults.append("a time in gzip's header")
    text = subprocess.run(["protoc", "--decode=perftools.profiles.Profile", "-I", SCHEMA.parent, SCHEMA],
                          input=gzip.decompress(data), capture_output=True, check=True).stdout  # fmt: skip
    profile = parse_message(iter(text.decode().splitlines()))
    strings = all_of(profile, "string_table")
    functions = {one_of(f, "id"): strings[one_of(f, "name")] for f in all_of(profile, "function")}
    locations = {}
    for location in all_of(profile, "location"):
        lines = all_of(location, "line")
        if not lines or one_of(location, "id") == 0:
            faults.append("a location without a line")
        locations[one_of(location, "id")] = [functions[one_of(line, "function_id")] for line in lines]
    if strings[0] != "" or len(all_of(profile, "sample_type")) != 2 or one_of(profile, "period") == 0:
        faults.append("string table, types or period")
    if re.search(r"^\d", text.decode(), re.M):
        faults.append("fields that the schema does not have")
    for sample in all_of(profile, "sample"):
        values = all_of(sample, "value")
        if len(values) != 2 or values[1] != values[0] * one_of(profile, "period"):
            faults.append("values %r" % values)
        stacks.append(([n for i in all_of(sample, "location_id") for n in locations[i]], values[0]))
        labels = {strings[one_of(l, "key")]: strings[one_of(l, "str")] for l in all_of(sample, "label")}
        if not labels.get("domain"):
            faults.append("no domain: %r" % labels)
    return faults, stacks


def difference(got, wanted, unit=1):
    keys = {key for key in {*got, *wanted} if got.get(key, 0) != wanted.get(key, 0) * unit}
    return ["%s: %s and not %s" % (key, got.get(key, 0), wanted.get(key, 0) * unit) for key in sorted(keys)]


def without_idle(stacks, wanted):
    """Removes idle stacks, unless @wanted has them. Formats with times always contain idle time."""
    return [stack for stack in stacks if "[idle]" in wanted or "[idle]" not in stack[0]]


def check_all(suite, name, source, *options):
    """Checks each format of one profile."""
    data = {}
    for ending in ENDINGS:
        path = suite.folder / ("%s.%s" % (name, ending))
        suite.report("-o", path, *options, source)
        data[ending] = path.read_bytes()
    again = suite.folder / "again"
    again.mkdir(exist_ok=True)
    paths = {ending: again / ("%s.%s" % (name, ending)) for ending in ENDINGS}
    for ending in ENDINGS:
        suite.report("-o", paths[ending], *options, source)
    suite.say(name + "/same-bytes", [ending for ending in ENDINGS if paths[ending].read_bytes() != data[ending]])
    suite.report(*options, source, *[word for ending in ENDINGS for word in ("-o", paths[ending])])
    facts = [json.loads(text) for text in (paths["meta.json"].read_bytes(), data["meta.json"])]
    suite.say(name + "/all-at-once", [
        ending for ending in ENDINGS if ending != "meta.json" and paths[ending].read_bytes() != data[ending]
    ] + ([] if facts[0].pop("files") == [path.name for path in paths.values()] and facts[1].pop("files") and facts[0] == facts[1]
         else facts))  # fmt: skip

    faults, stacks = read_folded(data["folded"])
    wanted = totals(stacks)
    suite.say(name + "/folded", faults)
    if FLAMEGRAPH.exists():
        done = subprocess.run(["perl", FLAMEGRAPH], input=data["folded"], capture_output=True, check=False,
                              env=dict(os.environ, LC_ALL="C"))  # fmt: skip
        suite.say(name + "/flamegraph.pl", [done.stderr] if done.returncode or done.stderr or b"<svg" not in done.stdout else [])
    else:
        suite.count += 1
        print("ok %d %s/flamegraph.pl # SKIP no %s" % (suite.count, name, FLAMEGRAPH))
    suite.say(name + "/folded.gz", [] if gzip.decompress(data["folded.gz"]) == data["folded"] else ["differs"])
    faults, stacks = pictures.read_table(data["svg"])
    suite.say(name + "/svg", faults + difference(totals(stacks), wanted))
    faults, stacks = read_perf(data["perf"])
    merged = {}
    for key, value in wanted.items():
        merged[plain(key)] = merged.get(plain(key), 0) + value
    got = totals(without_idle(stacks, wanted))
    suite.say(name + "/perf", faults + difference(got, merged))
    faults, stacks = read_speedscope(data["json"])
    got = totals(without_idle(stacks, wanted))
    units = {got[key] // wanted[key] for key in wanted if key in got}
    suite.say(name + "/speedscope", faults + difference(got, wanted, units.pop() if len(units) == 1 else 0))
    if shutil.which("protoc") and SCHEMA.exists():
        faults, stacks = read_pprof(data["pb.gz"])
        level = {key: value for key, value in wanted.items() if re.fullmatch("vcpu[0-9]+", key)}
        suite.say(name + "/pprof", faults + difference(totals(stacks) | level, wanted))
    else:
        suite.count += 1
        print("ok %d %s/pprof # SKIP no protoc, or no profile.proto of google/pprof" % (suite.count, name))
    for ending in ("folded.gz", "pb.gz", "folded"):
        back = suite.report("-f", "folded", "%s.%s" % (name, ending))
        suite.say("%s/back-from-%s" % (name, ending), [] if back == data["folded"] else [back[:300]])
    for ending in ("svg", "json", "perf"):
        made = suite.folder / ("from-pprof." + ending)
        suite.report("-o", made, "%s.pb.gz" % name)
        suite.say("%s/pprof-to-%s" % (name, ending), [] if made.stat().st_size > 0 else ["empty"])


def main():
    program, make_capture = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="uprof-formats-") as name:
        folder = pathlib.Path(name)
        suite = Suite(program, folder)
        hostile = folder / "in.folded"
        hostile.write_bytes(b"".join(
            b"my vm 2;main;%s;leaf %d\n" % (n.replace(";", ":").replace("\n", "\r").encode("utf-8").replace(b"\xc3\xbf", b"\xff"), 3 + i)
            for i, n in enumerate(NAMES)))  # fmt: skip
        check_all(suite, "hostile", hostile)
        one = folder / "one.folded"
        one.write_text("a;b 1\n")
        check_all(suite, "one", one)
        for case, options in (("plain", ()), ("many", ()), ("idle", ("--idle",)), ("per-vcpu", ("--per-vcpu",)),
                              ("rests", ()), ("truncated", ()), ("hostile-symbols", ())):  # fmt: skip
            (folder / case).mkdir()
            subprocess.run([make_capture, case, folder / case], check=True)
            check_all(suite, "capture-" + case, folder / case / "guest.capture", "-s", folder / case / "app", *options)
        suite.say("xmllint", pictures.lint(folder))
        print("1..%d" % suite.count)
        return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
