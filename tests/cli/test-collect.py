#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-collect.py PROGRAM CONFIGURATION MUTE CLOCK - rounds, and the metadata of domains

Guests of libvirt's test driver cannot be sampled, so no round gets a sample. The test
checks which domains a round selects, the messages, the written files and the exit codes.
It preloads MUTE to make functions of libvirt fail, and CLOCK to change the time of day.
As root the test has a /run of its own, as another user an XDG_RUNTIME_DIR of its own.
Prints TAP.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
from xml.sax.saxutils import escape, quoteattr

NOBODY = 65534
DONE, FAILED, USAGE, DOMAIN, DENIED, USELESS, SOME, LOCKED = 0, 1, 2, 3, 4, 5, 6, 75
HELD = 10
HELD_YES, URI_BYTES, NAME_BYTES = 2, 1024, 1024  # see src/guest/marker.c
NAMESPACE = "https://virt-uprof.org/xmlns/domain/1.0"
NO_ACCESS = "failed: guests of libvirt's driver 'TEST' cannot be sampled"
YES = {"enabled": "yes"}
IGNORED = "; the profile element is ignored"

# Attributes of <profile>, and the message about them
BAD_METADATA = (
    ({}, "enabled='' is not yes or no"),
    ({"enabled": "maybe"}, "enabled='maybe' is not yes or no"),
    ({**YES, "rate": "0"}, "rate='0' is not 1 to 1000"),
    ({**YES, "rate": "1001"}, "rate='1001' is not 1 to 1000"),
    ({**YES, "rate": "\u009b31m"}, "rate='?31m' is not 1 to 1000"),
    ({**YES, "duration": "0"}, "duration='0' is not a duration of up to 1h"),
    ({**YES, "duration": "$(id)"}, "duration='$(id)' is not a duration of up to 1h"),
    ({**YES, "budget": "101"}, "budget='101' is not 0.1 to 100 (percent)"),
)
BAD_CHILDREN = (
    ("<u:unwind method='orc'/>", "method='orc' is not auto, cfi or fp"),
    ("<u:unwind/>", "no 'unwind/@method'"),
    ("<u:unwind method='fp'/><u:unwind method='fp'/>", "more than one 'unwind'"),
    ("<u:symbols/>", "no 'symbols/@file'"),
)
BAD_CONFIGURATION = (
    ("<virt-uprof><store slicedays='7'/></virt-uprof>", "line 1: unknown attribute 'slicedays'"),
    ("<virt-uprof>\n<shop/></virt-uprof>", "line 2: unknown element 'shop'"),
    ("<virt-uprof><limits rate='0'/></virt-uprof>", "limits/@rate='0' is not 1 to 20000 (per second)"),
    ("rate=99", "XML line 1: *"),
)
HOSTILE = (("-rf", "%2Drf"), ("a;b", "a%3Bb"), ("..", "%2E."), ("$(id)", "%24%28id%29"), ("a%n%s", "a%25n%25s"),
           ("tab\there", "tab%09here"), ("c1\u009bm", "c1%C2%9Bm"))


def clean(name):
    return "".join("?" if ord(c) < 32 or 127 <= ord(c) < 160 else c for c in name)


def uuid_of(number):
    return "00000000-0000-0000-0000-%012x" % number


def line(name, number, text):
    return "%s (%s): %s" % (clean(name), uuid_of(number), text)


class Suite:
    def __init__(self, program):
        self.program = program
        self.count = self.failed = 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="uprof-collect-"))
        self.store = self.folder / "store"
        run = self.folder / "run"
        run.mkdir(mode=0o700)
        self.lock = (pathlib.Path("/run") if os.geteuid() == 0 else run) / "virt-uprof" / "collect.lock"
        self.environment = dict(os.environ, LC_ALL="C", XDG_RUNTIME_DIR=str(run))
        self.configuration = self.configure("<store minFreeMegabytes='0'/>")

    def configure(self, inner, whole=None):
        path = self.folder / ("config-%d.xml" % self.count)
        path.write_text(whole or "<virt-uprof>%s</virt-uprof>" % inner, encoding="utf-8")
        path.chmod(0o644)
        return path

    def node(self, domains):
        """Writes a host with these domains: (name, attributes of <profile> or None, children, state). Returns its URI."""
        text = "<node>"
        for number, (name, attributes, children, state) in enumerate(domains, 1):
            profile = ""
            if attributes is not None:
                said = "".join(" %s=%s" % (key, quoteattr(value)) for key, value in attributes.items())
                profile = "<metadata><u:profile xmlns:u='%s'%s>%s</u:profile></metadata>" % (NAMESPACE, said, children)
            text += (
                "<domain type='test'%s><name>%s</name><uuid>%s</uuid>%s<memory>8192</memory><vcpu>1</vcpu>"
                "<os><type arch='x86_64'>hvm</type></os>%s</domain>"
                % (" xmlns:test='http://libvirt.org/schemas/domain/test/1.0'" if state else "", escape(name),
                   uuid_of(number), profile,
                   "<test:runstate>%d</test:runstate>" % state if state else "")
            )
        path = self.folder / ("node-%d.xml" % self.count)
        path.write_text(text + "</node>", encoding="utf-8")
        return "test://%s" % path

    def run(self, *words):
        return subprocess.run([self.program, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
                              env=self.environment, cwd=self.folder, check=False, timeout=120)

    def collect(self, *words, configuration=None):
        return self.run("collect", "--store", self.store, "--config", configuration or self.configuration, *words)

    @contextlib.contextmanager
    def muted(self, domain, how):
        """Makes libvirt fail for a domain; @how: see mute-libvirt.c"""
        before = self.environment
        self.environment = dict(before, LD_PRELOAD=self.mute, UPROF_TEST_MUTE=domain, UPROF_TEST_MUTE_HOW=how)
        yield
        self.environment = before

    @contextlib.contextmanager
    def at_another_time(self, seconds):
        """Shifts the program's clock by @seconds."""
        before = self.environment
        clock = self.folder / "clock"
        clock.write_text(str(seconds))
        self.environment = dict(before, LD_PRELOAD=self.clock, UPROF_TEST_CLOCK=str(clock))
        yield
        self.environment = before

    def begin(self, *words, configuration=None):
        """Starts a round in the background, in a session of its own."""
        return subprocess.Popen(
            [self.program, "collect", "--store", str(self.store), "--config", str(configuration or self.configuration),
             *map(str, words)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment,
            cwd=self.folder, start_new_session=True)

    @staticmethod
    def end(running):
        stdout, stderr = running.communicate(timeout=120)
        return subprocess.CompletedProcess(running.args, running.returncode, stdout, stderr)

    def say(self, name, problems):
        self.count += 1
        print("%sok %d - %s" % ("not " if problems else "", self.count, name))
        for problem in problems:
            print("# %s" % problem.replace("\n", "\n# "))
        self.failed += bool(problems)
        shutil.rmtree(self.store, ignore_errors=True)

    def skip(self, name, why):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, name, why))

    def expect(self, name, done, code, lines=None, stdout=None):
        """Checks a run. @lines: all lines of stderr in any order; a final * matches the rest of a line."""
        problems = []
        said = done.stderr.decode().splitlines()
        if done.returncode != code:
            problems.append("exit %d, not %d" % (done.returncode, code))
        for wanted in lines if lines is not None else ():
            found = [s for s in said if s == wanted or (wanted.endswith("*") and s.startswith(wanted[:-1]))]
            if not found:
                problems.append("no message: %s" % wanted)
            for one in found[:1]:
                said.remove(one)
        if lines is not None and said:
            problems.append("unexpected messages: %s" % said)
        if stdout is not None and done.stdout.decode().splitlines() != stdout:
            problems.append("stdout: %r, not %r" % (done.stdout.decode(), stdout))
        if any(byte < 32 and byte != 10 or byte == 127 for byte in done.stdout + done.stderr):
            problems.append("control characters: %r" % (done.stdout + done.stderr))
        self.say(name, problems + ([repr(done)] if problems else []))


def test_selection(suite):
    """Checks which domains a round selects."""
    uri = suite.node((
        ("on", YES, "", 0), ("off", {"enabled": "no"}, "", 0), ("silent", None, "", 0),
        ("paused", YES, "", 3), ("shut-off", YES, "", 5), ("web-1", None, "", 0), ("web-off", {"enabled": "no"}, "", 0),
    ))
    names = {"on": 1, "off": 2, "silent": 3, "paused": 4, "shut-off": 5, "web-1": 6, "web-off": 7}
    paused = line("paused", 4, "skipped: it is paused")
    suite.expect("by metadata", suite.collect("-c", uri), USELESS, [line("on", 1, NO_ACCESS), paused])
    pattern = suite.configure("<collect domains='web-? nothing*'/><store minFreeMegabytes='0'/>")
    suite.expect("by pattern", suite.collect("-c", uri, configuration=pattern), USELESS,
                 [line("on", 1, NO_ACCESS), line("web-1", 6, NO_ACCESS), paused])
    suite.expect("named", suite.collect("-c", uri, "off", "shut-off"), USELESS,
                 [line("off", 2, NO_ACCESS), line("shut-off", 5, "skipped: it is shut off")])
    suite.expect("named twice", suite.collect("-c", uri, "on", uuid_of(names["on"])), USELESS, [line("on", 1, NO_ACCESS)])
    suite.expect("missing", suite.collect("-c", uri, "none"), DOMAIN, ["virt-uprof: no domain 'none' on %s*" % uri])
    suite.expect("one missing", suite.collect("-c", uri, "on", "none"), USELESS,
                 ["virt-uprof: no domain 'none' on %s*" % uri, line("on", 1, NO_ACCESS)])
    suite.expect("quiet", suite.collect("-q", "-c", uri), USELESS, [line("on", 1, NO_ACCESS)])
    suite.expect("quiet, nothing to do", suite.collect("-q", "-c", uri, "paused"), DONE, [])
    suite.expect("no domain enabled", suite.collect("-c", "test:///default"), DONE,
                 ["virt-uprof: no domain that runs is enabled; see: virt-uprof enable, *"])
    never = suite.configure("<collect chance='0'/><store minFreeMegabytes='0'/>")
    suite.expect("probability 0", suite.collect("-c", uri, configuration=never), DONE,
                 [line("on", 1, "skipped: not selected (probability)"), paused])
    suite.expect("same host twice", suite.collect("-c", uri, "-c", uri), USELESS, [line("on", 1, NO_ACCESS), paused])
    done = suite.collect("--json", "-q", "-c", uri)
    objects = sorted((json.loads(text) for text in done.stdout.decode().splitlines()), key=lambda o: o["name"])
    wanted = [{"name": "on", "uuid": uuid_of(1), "result": "failed", "reason": NO_ACCESS[len("failed: "):], "samples": 0,
               "duration_ms": 0, "held_us": 0},
              {"name": "paused", "uuid": uuid_of(4), "result": "skipped", "reason": "it is paused"}]
    suite.say("json", [] if objects == wanted and done.returncode == USELESS else [repr(done)])


class PipeHost:
    """A host whose XML is a new pipe for each reader, so that its domains can change between steps of a round."""

    def __init__(self, suite, uri):
        self.path = uri[len("test://"):]
        self.pipe = None
        os.unlink(self.path)
        os.mkfifo(self.path)

    def wait(self, then):
        """Waits for a reader. The next reader gets the file of the host @then, or a new pipe if @then is None."""
        end = time.monotonic() + 60
        while not self.pipe:
            try:
                self.pipe = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_NONBLOCK), "w", encoding="utf-8")
            except OSError:  # The pipe has no reader yet.
                assert time.monotonic() < end, "nobody opens %s" % self.path
                time.sleep(0.01)
        if then:
            os.replace(then[len("test://"):], self.path)
        else:
            os.unlink(self.path)
            os.mkfifo(self.path)

    def answer(self, text):
        with self.pipe:
            self.pipe.write(text)
        self.pipe = None


def test_changed_domain(suite):
    """A domain changes after the round has selected it, but before its turn."""
    def read(uri):
        return pathlib.Path(uri[len("test://"):]).read_text(encoding="utf-8")

    for name, words, new_name, after, code, said in (
            ("disabled", [], "a", {"enabled": "no"}, DONE, "skipped: the domain is not enabled any more"),
            ("disabled, but named", ["a"], "a", {"enabled": "no"}, USELESS, NO_ACCESS),
            ("metadata is gone", [], "a", None, DONE, "skipped: the domain is not enabled any more"),
            ("metadata is bad now", [], "a", {"enabled": "x"}, USELESS,
             "failed: metadata: enabled='x' is not yes or no" + IGNORED),
            ("renamed", [], "b", YES, USELESS, NO_ACCESS.replace(": ", ": b: "))):
        uri = suite.node((("a", YES, "", 0),))
        text = read(uri)
        feed = PipeHost(suite, uri)
        suite.count += 1  # makes another file name
        then = suite.node(((new_name, after, "", 0),))
        suite.count -= 1
        with suite.begin("-c", uri, *words) as running:
            feed.wait(then)
            feed.answer(text)
            suite.expect("changed during the round: " + name, suite.end(running), code, [line("a", 1, said)])


def test_two_rounds(suite):
    """If a round runs, a second round says so and exits, and the first round goes on."""
    uri = suite.node((("a", YES, "", 0),))
    text = pathlib.Path(uri[len("test://"):]).read_text(encoding="utf-8")
    feed = PipeHost(suite, uri)
    suite.count += 1  # makes another file name
    then = suite.node((("a", YES, "", 0),))
    suite.count -= 1
    with suite.begin("-c", uri) as running:
        feed.wait(then)
        second = suite.collect("-c", "test:///default")
        feed.answer(text)
        first = suite.end(running)
    suite.expect("two at once: the second", second, LOCKED, ["virt-uprof: another round is running"])
    suite.expect("two at once: the first", first, USELESS, [line("a", 1, NO_ACCESS)])


def test_renamed(suite):
    """The next round samples a renamed domain, and the store keeps its history."""
    problems = []
    for name in ("old;name", "new", "old;name"):
        done = suite.collect("-c", suite.node(((name, YES, "", 0), ("other", YES, "", 0))))
        said = done.stderr.decode().splitlines()
        if done.returncode != USELESS or sorted(said) != sorted((line(name, 1, NO_ACCESS), line("other", 2, NO_ACCESS))):
            problems.append(repr(done))
    text = suite.run("summary", "--store", suite.store, "--config", suite.configuration, "today").stdout.decode()
    heads = [one for one in text.splitlines() if uuid_of(1) in one]
    problems += [] if len(heads) == 1 and "\n%s\n  without a profile: 3 rounds: " % heads[0] in text else [text]
    suite.say("renamed between rounds", problems)


def test_terminated_round(suite):
    """If a round is terminated while it opens a domain, this is not a failure of the domain."""
    uri = suite.node((("a", YES, "", 0), ("b", YES, "", 0)))
    text = pathlib.Path(uri[len("test://"):]).read_text(encoding="utf-8")
    feed = PipeHost(suite, uri)
    with suite.begin("-c", uri) as running:
        feed.wait(None)
        feed.answer(text)
        feed.wait(None)  # This reader gets no answer.
        running.terminate()
        done = suite.end(running)
        feed.answer("")
    said = done.stderr.decode().splitlines()
    problems = [] if done.returncode == DONE else ["exit %d" % done.returncode]
    if len(said) != 1 or not said[0].endswith(": skipped: the round was ended"):
        problems.append(repr(said))
    problems += ["noted as a failure: %s" % path for path in suite.store.rglob("*fail*")]
    suite.say("round is terminated", problems)


def test_dry_run(suite):
    uri = suite.node((("a", {**YES, "duration": "300ms"}, "", 0), ("b", {**YES, "duration": "2h"}, "", 0),
                      ("c", {**YES, "duration": "1h"}, "", 0), ("d", {**YES, "rate": "x"}, "", 0)))
    done = suite.collect("--dry-run", "-c", uri, configuration=suite.configure("<limits duration='90s'/>"))
    problems = [] if not suite.store.exists() else ["it has made the store"]
    if sorted(done.stdout.decode().splitlines()) != [line("a", 1, "would be sampled for 300 ms"),
                                                     line("c", 3, "would be sampled for 90 s")]:
        problems.append(repr(done))
    suite.say("dry run", problems)
    done = suite.collect("--dry-run", "-c", uri, "-d", "7s", "a", "d")
    wanted = [line("a", 1, "would be sampled for 7 s"), line("d", 4, "would be sampled for 7 s")]
    suite.say("dry run with a duration", [] if sorted(done.stdout.decode().splitlines()) == wanted else [repr(done)])


def test_order(suite):
    """Domains without a past profile come first, then the domain whose last profile is the oldest."""
    uri = suite.node([(name, YES, "", 0) for name in ("new", "old", "never", "future")])
    put_slices(suite, ("new", "20260102T000000Z"), ("old", "20260101T000000Z"), ("future", "20991231T000000Z"))
    done = suite.collect("--dry-run", "-c", uri)
    order = [text.split(" ")[0] for text in done.stdout.decode().splitlines()]
    good = sorted(order[:2]) == ["future", "never"] and order[2:] == ["old", "new"]
    # A terminal shows local time, and JSON shows UTC.
    suite.environment["TZ"] = "XXX-2"
    rows = {text.split()[0]: text for text in suite.run("list", "--store", suite.store, "--config", suite.configuration, "-c", uri).stdout.decode().splitlines()}
    good = good and " yes       2026-01-01 02:00 " in rows["old"] and " yes       never " in rows["never"] and " never " in rows["future"]
    rows = json.loads(suite.run("list", "--json", "--store", suite.store, "--config", suite.configuration, "-c", uri).stdout)
    good = good and [(row["collected"], row["last_round"]) for row in rows if row["name"] in ("never", "old")] == [("yes", ""), ("yes", "2026-01-01T00:00:00Z")]
    del suite.environment["TZ"]
    suite.say("order", [] if good and done.returncode == DONE else [repr(done)])

    cap = suite.configure("<profile duration='20s'/><collect longest='50s'/>")
    done = suite.collect("-c", uri, "-c", suite.node([("x", YES, "", 0)]), configuration=cap)
    # Failures take no time here, so that every domain has its turn.
    suite.say("every domain has its turn", [] if done.stderr.decode().count(NO_ACCESS) == 4 and done.returncode == USELESS else [
        repr(done)])


def test_terminal(suite):
    """A terminal shows which domain is being sampled, and not after the round."""
    uri = suite.node([("a", YES, "", 0), ("b", YES, "", 0)])
    leader, follower = pty.openpty()
    with subprocess.Popen([suite.program, "collect", "--store", suite.store, "--config", suite.configuration, "-c", uri],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=follower, env=suite.environment, cwd=suite.folder):
        os.close(follower)
        text = b""
        with contextlib.suppress(OSError):  # the end of the round closes the terminal
            while more := os.read(leader, 65536):
                text += more
    os.close(leader)
    lines = text.decode().split("\r")
    turns = [line.rstrip() for line in lines if re.fullmatch(r"  [ab]: sampling for 20 s \([12] of 2\) *", line)]
    suite.say("terminal", [] if len(turns) == 2 and turns[0].endswith("(1 of 2)") and lines[-1] == "\n" else [repr(text)])


def test_metadata(suite):
    rows = [(attributes, "", text) for attributes, text in BAD_METADATA]
    rows += [(YES, children, text) for children, text in BAD_CHILDREN]
    uri = suite.node([("bad-%d" % i, row[0], row[1], 0) for i, row in enumerate(rows)] + [("good", YES, "", 0)])
    wanted = [line("bad-%d" % i, i + 1, "failed: metadata: %s%s" % (row[2], IGNORED)) for i, row in enumerate(rows)]
    wanted.append(line("good", len(rows) + 1, NO_ACCESS))
    suite.expect("bad metadata", suite.collect("-c", uri), USELESS, wanted)
    everybody = suite.configure("<collect domains='*'/><store minFreeMegabytes='0'/>")
    suite.expect("bad metadata, pattern", suite.collect("-c", uri, configuration=everybody), USELESS, wanted)
    unread = suite.node((("a", YES, "", 0), ("b\u009bm", None, "", 0)))
    path = pathlib.Path(unread[len("test://"):])
    text = path.read_text(encoding="utf-8")
    # libvirt accepts this path, but it is too long for virt-uprof.
    path.write_text(text.replace("</os>", "<kernel>/%s</kernel></os>" % ("k" * 17000)), encoding="utf-8")
    bad = ": its metadata cannot be read: domain XML: too long a value of 'os/kernel'; see: virsh dumpxml"
    suite.expect("XML that cannot be read", suite.collect("-c", unread), DONE, [
        "virt-uprof: a" + bad, "virt-uprof: b?m" + bad,
        "virt-uprof: no domain that runs is enabled; see: virt-uprof enable, *"])
    uri = suite.node((("a", {**YES, "color": "red"}, "", 0), ("b", {"enabled": "no"}, "<u:size/>", 0)))
    suite.expect("unknown metadata", suite.collect("-c", uri), USELESS, [
        "virt-uprof: a: metadata: unknown part '@color' is ignored",
        "virt-uprof: b: metadata: unknown part 'size' is ignored", line("a", 1, NO_ACCESS)])


def test_libvirt_fails(suite):
    """If libvirt fails for one domain, a message says so, and the round samples the others."""
    uri = suite.node((("a", YES, "", 0), ("mute", YES, "", 0), ("off", None, "", 5)))
    said = "virt-uprof: mute: its metadata cannot be read: cannot %s: muted ?[31mby a test; see: virsh dumpxml"
    state, xml = said % "ask for the state of a domain", said % "read the XML of a domain"
    for how, code, lines in (("state", USELESS, [state, line("a", 1, NO_ACCESS)]),
                             ("xml", USELESS, [xml, line("a", 1, NO_ACCESS)]),
                             ("gone", USELESS, [line("a", 1, NO_ACCESS)]),
                             ("lost", DENIED, ["virt-uprof: %s: cannot ask for the state of a domain: muted ?[31mby a "
                                               "test; its domains are left out" % uri])):
        with suite.muted("mute", how):
            suite.expect("libvirt fails: %s" % how, suite.collect("-c", uri), code, lines)
    with suite.muted("mute", "job"):
        everybody = suite.configure("<collect domains='*'/><store minFreeMegabytes='0'/>")
        suite.expect("libvirt job", suite.collect("-c", uri, configuration=everybody), USELESS, [
            line("mute", 2, "skipped: a libvirt job is active (migration, save, snapshot, dump or backup)"),
            line("a", 1, NO_ACCESS)])
    with suite.muted("mute", "state"):
        suite.expect("libvirt fails, quiet", suite.collect("-q", "-c", uri), USELESS, [state, line("a", 1, NO_ACCESS)])
        everybody = suite.configure("<collect domains='*'/><store minFreeMegabytes='0'/>")
        suite.expect("libvirt fails, pattern", suite.collect("-c", uri, configuration=everybody), USELESS,
                     [state, line("mute", 2, "skipped: it is in an unknown state"), line("a", 1, NO_ACCESS)])
        done = suite.run("list", "-q", "-c", uri)
        rows = [text.split() for text in done.stdout.decode().splitlines()]
        good = done.returncode == DONE and ["mute", "in", "an", "unknown", "state"] in [row[:5] for row in rows]
        suite.say("libvirt fails, list", [] if good and len(rows) == 4 else [repr(done)])
    with suite.muted("off", "xml"):
        suite.expect("libvirt fails for a domain that is shut off", suite.collect("-c", uri), USELESS,
                     [line("a", 1, NO_ACCESS), line("mute", 2, NO_ACCESS)])


def test_configuration(suite):
    for text, message in BAD_CONFIGURATION:
        path = suite.configure("", text)
        suite.expect("configuration: %s" % text.splitlines()[0], suite.collect("-c", "test:///default", configuration=path),
                     FAILED, ["virt-uprof: configuration '%s': %s" % (path, message)])
    suite.expect("no configuration", suite.collect("-c", "test:///default", configuration=suite.folder / "none.xml"),
                 FAILED, ["virt-uprof: cannot read configuration '%s/none.xml': No such file*" % suite.folder])
    if os.geteuid() == 0:
        path = suite.configure("")
        path.chmod(0o666)
        suite.expect("configuration that others may write", suite.collect("-c", "test:///default", configuration=path), DENIED,
                     ["virt-uprof: configuration '%s': users other than root may write it*" % path])


def test_usage(suite):
    for words, message in (
        (["collect", "-d", "0"], "'collect' needs a duration longer than 0"),
        (["enable", "-d", "0", "x"], "'enable' needs a duration longer than 0"),
        (["enable"], "no DOMAIN is given; to list them: virt-uprof list"),
        (["collect", "--config="], "--config is empty"),
        (["collect", "-o", "x.folded"], "--output does not belong to 'collect'"),
        (["configure", "--json", "x"], "--json does not belong to 'configure'"),
        (["record", "--dry-run", "x"], "--dry-run does not belong to 'record'"),
    ):
        suite.expect(" ".join(words), suite.run(*words), USAGE, ["virt-uprof: %s; try: virt-uprof --help" % message])


def test_connections(suite):
    uri = suite.node([("a", YES, "", 0)])
    none = "qemu+unix:///system?socket=%s" % (suite.folder / "none")
    lost = "virt-uprof: %s: no connection to '%s': *" % (none, none)
    suite.expect("no connection", suite.collect("-c", none), DENIED, [lost])
    suite.expect("one of two connections", suite.collect("-c", none, "-c", uri), USELESS,
                 [lost, line("a", 1, NO_ACCESS)])
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(suite.folder / "hung"))
    listener.listen(8)
    hung = "qemu+unix:///system?socket=%s" % (suite.folder / "hung")
    soon = suite.configure("<collect longest='5s' connect='%s %s'/><profile duration='100ms'/>"
                           "<store minFreeMegabytes='0'/>" % (hung, uri))
    suite.expect("a daemon that hangs", suite.collect(configuration=soon), USELESS, [
        "virt-uprof: %s: libvirt does not answer; see: systemctl status libvirtd; its domains are left out" % hung,
        line("a", 1, NO_ACCESS)])
    listener.close()


def leave_held(suite, number, uri):
    """Writes a marker that a dead run could have left: its domain is held. For the layout see src/guest/marker.c."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    uuid = uuid_of(number)
    page = struct.pack("=IiQ37s3x37s%ds%ds16s" % (URI_BYTES, NAME_BYTES), 1, HELD_YES, 1, boot, uuid.encode(),
                       uri.encode(), b"left", b"monitor")
    marker = suite.lock.parent / uuid
    marker.write_bytes(page.ljust(8192, b"\0"))
    marker.chmod(0o600)
    return marker


def test_left_held(suite):
    """If a marker cannot be healed, other domains still have their turn."""
    uri = suite.node([("a", YES, "", 0)])
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(suite.folder / "hung-too"))
    listener.listen(8)
    hung = "qemu+unix:///system?socket=%s" % (suite.folder / "hung-too")
    soon = suite.configure("<collect longest='5s'/><profile duration='100ms'/><store minFreeMegabytes='0'/>")
    suite.collect("-c", uri)  # makes the folder of markers
    marker = leave_held(suite, 99, hung)
    suite.expect("a marker that hangs", suite.collect("-c", uri, configuration=soon), HELD, [
        "virt-uprof: cannot check if a run that died has left a domain stopped: "
        "libvirt does not answer; see: systemctl status libvirtd; try: virt-uprof check --heal", line("a", 1, NO_ACCESS)])
    suite.expect("a marker, dry run", suite.collect("--dry-run", "-c", uri, configuration=soon), DONE, [])
    marker.unlink()
    listener.close()


def test_lock(suite):
    uri = suite.node([("a", YES, "", 0)])
    suite.expect("makes the lock", suite.collect("-c", uri), USELESS, [line("a", 1, NO_ACCESS)])
    with open(suite.lock, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        suite.expect("locked", suite.collect("-c", uri), LOCKED, ["virt-uprof: another round is running"])
        suite.expect("locked, quiet", suite.collect("-q", "-c", uri), LOCKED, [])
        suite.expect("locked, dry run", suite.collect("--dry-run", "-c", uri), DONE, [])
    suite.expect("lock is free again", suite.collect("-c", uri), USELESS, [line("a", 1, NO_ACCESS)])


def test_store(suite):
    uri = suite.node([("a", YES, "", 0), ("b", YES, "", 0)])
    suite.store.write_text("a file")
    suite.expect("store is a file", suite.collect("-c", uri), FAILED, ["virt-uprof: *"])
    suite.store.unlink()
    (suite.store / "data").mkdir(parents=True)
    (suite.store / "data" / "a").write_text("a file")
    done = suite.collect("-c", uri)
    said = done.stderr.decode().splitlines()
    good = done.returncode == USELESS and any(s.startswith(line("a", 1, "failed: cannot make ")) for s in said)
    suite.say("a domain's folder cannot be made", [] if good and line("b", 2, NO_ACCESS) in said else [repr(done)])
    done = suite.collect("-c", uri, configuration=suite.configure("<store minFreeMegabytes='1073741824'/>"))
    said = done.stderr.decode().splitlines()
    suite.say("no room", [] if done.returncode == USELESS and len([s for s in said if ": failed: " in s]) == 1 and
              NO_ACCESS not in done.stderr.decode() else [repr(done)])

    uri = suite.node([(name, YES, "", 0) for name, _ in HOSTILE])
    done = suite.collect("-c", uri)
    modes = []
    for root, folders, files in os.walk(suite.store):
        modes += [(name, stat.S_IMODE(os.stat(os.path.join(root, name)).st_mode)) for name in folders + files]
    found = sorted(os.listdir(suite.store / "data"))
    problems = [] if found == sorted(safe for _, safe in HOSTILE) else ["folders: %s" % found]
    problems += ["mode of %s is %o" % pair for pair in modes if pair[1] & 0o027]
    suite.say("hostile names", problems)
    done = suite.collect("-c", uri)
    suite.expect("hostile names in messages", done, USELESS,
                 [line(name, i + 1, NO_ACCESS) for i, (name, _) in enumerate(HOSTILE)])


def test_folders_of_others(suite):
    """A round refuses folders that another user can write to."""
    if os.geteuid() != 0:
        suite.skip("folder of another user", "only root can give folders to others")
        return
    uri = suite.node([("a", YES, "", 0), ("b", YES, "", 0)])
    suite.collect("-c", uri)
    line_of = "'%s' belongs to somebody else or may be written by others: nothing of root's is safe there"
    folder, data = suite.store / "data" / "a", suite.store / "data"
    os.chown(folder, NOBODY, 0)
    refused = line_of % folder
    suite.expect("folder of another user", suite.collect("-c", uri), USELESS,
                 [line("a", 1, "failed: " + refused), "virt-uprof: " + refused, line("b", 2, NO_ACCESS)])
    (data / "b").mkdir(parents=True, mode=0o750)
    suite.store.chmod(0o750)
    os.chown(data, NOBODY, 0)
    suite.expect("data folder of another user", suite.collect("-c", uri), DENIED, ["virt-uprof: " + line_of % data])


def put_slices(suite, *slices):
    """Writes empty slices: (name, start)."""
    for name, start in slices:
        folder = suite.store / "data" / name
        folder.mkdir(parents=True, exist_ok=True)
        for ending in (".folded.gz", ".meta.json"):
            (folder / ("%s-%s%s" % (name, start, ending))).write_text("{}")
    suite.store.chmod(0o750)


def test_out_of_time(suite):
    """A round that has no time for some domains says so, and the next round begins with them."""
    uri = suite.node([(name, YES, "", 0) for name in ("first", "second", "third")])
    text = pathlib.Path(uri[len("test://"):]).read_text(encoding="utf-8")
    short = suite.configure("<collect longest='5s'/><profile duration='4s'/><store minFreeMegabytes='0'/>")
    put_slices(suite, ("first", "20260101T000000Z"), ("second", "20260102T000000Z"), ("third", "20260103T000000Z"))
    feed = PipeHost(suite, uri)
    with suite.begin("-c", uri, configuration=short) as running:
        feed.wait(None)
        feed.answer(text)
        done = suite.end(running)  # The second reader gets no answer.
    slow = "failed: its run took too long and was ended"
    said = done.stderr.decode().splitlines()
    problems = [] if done.returncode == USELESS and len(said) == 2 else [repr(done)]
    problems += [] if said[0].startswith(line("first", 1, slow)) else [said[0]]
    problems += [] if said[-1] == "virt-uprof: the round had no time for 2 more domains; the next round begins with them" else [said[-1]]
    os.unlink(feed.path)
    pathlib.Path(feed.path).write_text(text, encoding="utf-8")
    done = suite.collect("--dry-run", "-c", uri)
    order = [said.split(" ")[0] for said in done.stdout.decode().splitlines()]
    problems += [] if order == ["second", "third", "first"] else [repr(order)]
    suite.say("a round runs out of time", problems)


def test_clock(suite):
    """The clock jumps forward by more than a year, and back again."""
    uri = suite.node([("a", YES, "", 0), ("b", YES, "", 0)])
    put_slices(suite, ("a", "20260101T000000Z"), ("b", "20260102T000000Z"))
    with suite.at_another_time(500 * 24 * 3600):
        done = suite.collect("-c", uri)
        problems = [] if done.returncode == USELESS and done.stderr.decode().count(NO_ACCESS) == 2 else [repr(done)]
        days = sorted({path.name[2:10] for path in suite.store.rglob("*.failures")})
        year = str(time.gmtime(time.time() + 500 * 24 * 3600).tm_year)
        problems += [] if len(days) == 1 and days[0].startswith(year) else [repr(days)]
    for path in suite.store.rglob("*.failures"):
        os.utime(path, (time.time() + 500 * 24 * 3600,) * 2)
    put_slices(suite, ("a", "20990101T000000Z"))
    done = suite.collect("--dry-run", "-c", uri)
    order = [said.split(" ")[0] for said in done.stdout.decode().splitlines()]
    problems += [] if order == ["a", "b"] else [repr(order)]
    done = suite.collect("-c", uri)
    problems += [] if done.returncode == USELESS and done.stderr.decode().count(NO_ACCESS) == 2 else [repr(done)]
    kept = sorted(path.name for path in suite.store.rglob("*.folded.gz"))
    problems += [] if kept == ["a-20260101T000000Z.folded.gz", "a-20990101T000000Z.folded.gz",
                               "b-20260102T000000Z.folded.gz"] else [repr(kept)]
    suite.say("a clock that jumps forward", problems)


def test_enable_and_configure(suite):
    uri = suite.node([("a", {**YES, "rate": "500", "budget": "0.5", "color": "red"}, "<u:symbols file='/etc/passwd'/>", 0),
                      ("-rf", None, "", 0), ("bad", {**YES, "rate": "x"}, "", 5)])
    here = ["-c", uri, "--config", suite.configuration]
    suite.expect("configure shows", suite.run("configure", *here, "a"), DONE, [], [
        "a (%s):" % uuid_of(1),
        "  enabled   yes        metadata",
        "  rate      200 Hz     limited by <limits> of the configuration",
        "  duration  20s        built in",
        "  budget    0.5 %      metadata",
        "  unwind    auto       built in",
        "  symbols   /etc/passwd symbols '/etc/passwd' are outside the folders that <symbols> allows (see '%s'); copy them to '/var/lib/virt-uprof/symbols'"
        % suite.default_config,
        "  unknown   @color     metadata; it is ignored"])
    own = suite.configure("<profile rate='50'/><collect domains='-*'/>")
    suite.expect("configure shows the configuration", suite.run("configure", "-c", uri, "--config", own, "--", "-rf"), DONE,
                 [], ["-rf (%s):" % uuid_of(2), "  enabled   yes        <collect domains> of the configuration",
                      "  rate      50 Hz      configuration", "  duration  20s        built in",
                      "  budget    1 %        built in", "  unwind    auto       built in"])
    suite.expect("enable", suite.run("enable", *here, "-F", "50", "--", "-rf"), DONE, ["-rf: enabled: 20s at 50 Hz in each round*"])
    # Only the rate changes: the pattern still enables the domain. The new settings are shown at once.
    suite.expect("configure keeps what a pattern enables", suite.run("configure", "-c", uri, "--config", own, "-F", "49", "--", "-rf"),
                 DONE, [], ["-rf (%s):" % uuid_of(2), "  enabled   yes        metadata", "  rate      49 Hz      metadata",
                            "  duration  20s        built in", "  budget    1 %        built in", "  unwind    auto       built in"])
    suite.expect("configure enables nothing", suite.run("configure", *here, "-F", "1000", "-d", "10m", "--", "-rf"), DONE, [],
                 ["-rf (%s):" % uuid_of(2), "  enabled   no         metadata",
                  "  rate      200 Hz     limited by <limits> of the configuration",
                  "  duration  60s        limited by <limits> of the configuration",
                  "  budget    1 %        built in", "  unwind    auto       built in"])
    suite.expect("configure, quiet", suite.run("configure", "-q", *here, "-F", "49", "--", "-rf"), DONE, [], [])
    if os.environ.get("UPROF_PRIVATE_RUN") and os.path.ismount("/run"):
        os.makedirs("/run/systemd/system")  # as if systemd ran, without its timers
        suite.expect("enable without a timer", suite.run("enable", *here, "--", "-rf"), DONE,
                     ["-rf: enabled: 20s at 99 Hz in each round", "no timer starts rounds; for one every ten minutes:",
                      "  systemctl enable --now virt-uprof-collect.timer virt-uprof-prune.timer", "for one now:", "  virt-uprof collect"])
        os.rmdir("/run/systemd/system")
    suite.expect("disable", suite.run("disable", *here, "a"), DONE, ["a: disabled"])
    suite.expect("enable with bad metadata", suite.run("enable", *here, "bad"), FAILED,
                 ["virt-uprof: bad: metadata: rate='x' is not 1 to 1000%s" % IGNORED])
    suite.expect("enable replaces bad metadata", suite.run("enable", *here, "-F", "10", "bad"), DONE, ["bad: enabled: 20s at 10 Hz in each round*"])
    suite.expect("rate that only record allows", suite.run("configure", *here, "-F", "2000", "a"), FAILED,
                 ["virt-uprof: a: metadata: rate='2000' is not 1 to 1000%s" % IGNORED])
    suite.expect("enable with one domain missing", suite.run("enable", *here, "none", "a"), SOME,
                 ["virt-uprof: no domain 'none' on*", "a: enabled: 20s at 200 Hz in each round*"])
    suite.expect("symbols with a base", suite.run("enable", *here, "-s", "/a@10", "a"), FAILED,
                 ["virt-uprof: a: symbols '/a': metadata needs a path in UTF-8 without @BASE"])
    suite.expect("symbols outside of their folders", suite.run("enable", *here, "-s", "/etc/../etc/passwd", "a"), FAILED,
                 ["virt-uprof: a: symbols '/etc/passwd' are outside the folders that <symbols> allows (see '%s'); copy them to "
                  "'/var/lib/virt-uprof/symbols'" % suite.default_config])
    folder = suite.folder / "symbols"
    folder.mkdir(exist_ok=True)
    allowed = suite.configure("<symbols path='%s'/>" % folder)
    suite.expect("symbols that are missing", suite.run("enable", "-c", uri, "--config", allowed, "-s", folder / "app.dbg", "a"), FAILED,
                 ["virt-uprof: a: symbols '%s': there is no such file" % (folder / "app.dbg")])


def enter_private_run():
    """As root, starts this program again, in a mount namespace with an empty /run."""
    if os.geteuid() != 0 or os.environ.get("UPROF_PRIVATE_RUN"):
        return
    os.environ["UPROF_PRIVATE_RUN"] = "1"
    script = 'mount -t tmpfs tmpfs /run && exec "$@"'
    if shutil.which("unshare") and subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0:
        os.execvp("unshare", ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, *sys.argv])
    print("# the test uses the /run of the machine, because a mount namespace cannot be made")


def test_all(suite):
    test_selection(suite)
    test_changed_domain(suite)
    test_two_rounds(suite)
    test_renamed(suite)
    test_terminated_round(suite)
    test_dry_run(suite)
    test_order(suite)
    test_terminal(suite)
    test_metadata(suite)
    test_libvirt_fails(suite)
    test_configuration(suite)
    test_usage(suite)
    test_connections(suite)
    test_left_held(suite)
    test_lock(suite)
    test_store(suite)
    test_folders_of_others(suite)
    test_out_of_time(suite)
    test_clock(suite)
    test_enable_and_configure(suite)


def main():
    enter_private_run()
    suite = Suite(os.path.abspath(sys.argv[1]))
    suite.default_config = sys.argv[2]
    suite.mute, suite.clock = os.path.abspath(sys.argv[3]), os.path.abspath(sys.argv[4])
    try:
        test_all(suite)
    finally:
        shutil.rmtree(suite.folder)
    print("1..%d" % suite.count)
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
