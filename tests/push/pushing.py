# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes stores with rounds, runs `push`, and compares what receivers got with the stores."""

import ctypes
import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unicodedata
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import storing  # noqa: E402
from receiver import Receiver  # noqa: E402
from storing import stamp, uuid_of  # noqa: E402

DONE, FAILED, USAGE, DOMAIN, DENIED, SOME_FAILED, LOCKED = 0, 1, 2, 3, 4, 6, 75
NOT_DONE = (FAILED, USAGE, DOMAIN, DENIED)
PERIOD_NS = 10**12 // 99000  # of the rate that a round was asked for in storing.sidecar()
DURATION_NS = 20001 * 10**6
PR_SET_CHILD_SUBREAPER = 36
SECONDS_MAX = 240  # of a run of `push`
HARMFUL = ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp")

# The line of a destination has these parts, with commas between them. A reason may follow.
PARTS = {
    "sent": r"(\d+) profiles? sent \([\d.,]+ [kMG]?B\)", "refused": r"(\d+) refused", "too_old": r"(\d+) too old",
    "left": r"(\d+) left for the next run",
}  # fmt: skip


# ---- Names ----


def raw_name(name):
    return name if isinstance(name, bytes) else name.encode()


def file_name(name, uuid):
    """Returns what uprof_text_file_name() returns."""
    out = ""
    for i, byte in enumerate(raw_name(name)):
        plain = re.match(rb"[A-Za-z0-9_.-]", bytes([byte])) and not (i == 0 and byte in b".-")
        piece = chr(byte) if plain else f"%{byte:02X}"
        if len(out) + len(piece) > 100:
            return f"{out}~{uuid[:8]}"
        out += piece
    return out


def shown_name(name):
    """Returns what uprof_text_quote() returns, which a sidecar has."""
    out = ""
    for c in raw_name(name).decode("utf-8", "surrogateescape"):
        kind = unicodedata.category(c)
        out += "\ufffd" if kind == "Cs" else "?" if kind in HARMFUL else " " if kind == "Zs" else c
    return out


def root_name(name):
    """Returns what uprof_text_clean() returns, which is the first frame of each stack."""
    out = shown_name(name).replace(";", ":")
    out = re.sub(r" (?=\d+$)", "_", out)
    return re.sub(r"^#", "_", re.sub(r"^\[", "{", out))


def decoded_name(value):
    """Returns the name of a domain whose label has this value."""
    return urllib.parse.unquote_to_bytes(value)


# ---- Stores ----


class Round(NamedTuple):
    """A slice of the store."""

    stem: str
    folder: str
    name: bytes
    uuid: str
    at: int
    stacks: dict


def without_vcpus(stacks):
    """Returns the stacks as `push` sends them without perVcpu."""
    counts = {}
    for stack, count in stacks.items():
        plain = re.sub(r"^vcpu\d+;", "", stack)
        if plain != "[idle]":
            counts[plain] = counts.get(plain, 0) + count
    return counts


def destination(receiver, name="grafana", inner="", **attributes):
    """Returns the XML of a destination. @attributes: may replace all of its attributes; None leaves one out"""
    attributes = {"name": name, "type": receiver.engine, "url": receiver.url, **attributes}
    words = " ".join(f"{key}={quoteattr(str(value))}" for key, value in attributes.items() if value is not None)
    return f"<destination {words}>{inner}</destination>\n"


class World:
    """A store and a configuration in a temporary folder, and receivers."""

    def __init__(self, program):
        self.program = program
        self.temporary = tempfile.TemporaryDirectory(prefix="virt-uprof-push-")
        self.folder = pathlib.Path(self.temporary.name)
        self.path = self.folder / "store"
        self.path.mkdir(mode=0o750)
        self.config = self.folder / "config.xml"
        run = self.folder / "run"
        run.mkdir(mode=0o700)
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=str(run))
        self.rounds, self.receivers = [], []
        self.configure()

    def close(self):
        for receiver in self.receivers:
            receiver.stop()
        self.temporary.cleanup()

    # ---- The store ----

    def put(self, name="web-1", number=1, at=None, stacks=None, functions=None, **more):
        """Writes a round like `collect`.
        @number: of the domain's UUID; @functions: lines of the list of functions; @more: members of the sidecar
        """
        at = int(time.time()) - 120 if at is None else at
        stacks = {"main;work": 3, "main;rest": 4} if stacks is None else stacks
        uuid, folder_name = uuid_of(number), file_name(name, uuid_of(number))
        folder = self.path / "data" / folder_name
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{folder_name}-{stamp(at)}"
        running = sum(count for stack, count in stacks.items() if stack != "[idle]")
        root = root_name(name)
        lines = sorted(f"{root};{stack} {count}\n".encode() for stack, count in stacks.items())
        facts = storing.sidecar(shown_name(name), uuid, at, running + 100, running, **more)
        facts["files"] = [stem + ".folded.gz"]
        if functions is not None:
            (folder / (stem + ".functions.gz")).write_bytes(gzip.compress(functions.encode(), 6, mtime=0))
        (folder / (stem + ".folded.gz")).write_bytes(gzip.compress(b"".join(lines), 6, mtime=0))
        (folder / (stem + ".meta.json")).write_text(json.dumps(facts) + "\n")
        made = Round(stem, folder_name, raw_name(name), uuid, at, stacks)
        self.rounds.append(made)
        return made

    def put_many(self, n_domains, n_rounds, age=120, **more):
        """Writes rounds one second apart, the last one @age seconds ago. Returns them."""
        now = int(time.time())
        first = now - age - n_rounds + 1
        return [self.put(f"web-{number}", number, first + i, {f"main;work_{number}": 2 + i, "main;rest": 1}, **more)
                for i in range(n_rounds) for number in range(1, n_domains + 1)]  # fmt: skip

    def log(self, name="grafana"):
        """Returns the text of a destination's file in the store; empty if there is none."""
        path = self.path / "push" / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def notes(self, name="grafana"):
        """Returns what the file of a destination says last of each round. The line "-" is of no round."""
        notes = dict(line.partition(" ")[::2] for line in self.log(name).splitlines())
        notes.pop("-", None)
        return notes

    def has_noted(self, round_, name="grafana", word=""):
        """Does the file of the destination name the round? @word: what the line says of it"""
        note = self.notes(name).get(round_.stem)
        return note is not None and word in note

    # ---- The configuration ----

    def configure(self, *destinations):
        self.config.write_text(f'<virt-uprof>\n<store directory="{self.path}" minFreeMegabytes="0"/>\n'
                               + "".join(destinations) + "</virt-uprof>\n")  # fmt: skip
        self.config.chmod(0o644)

    def receive(self, engine="pyroscope", plan=None, **more):
        """Starts a receiver."""
        receiver = Receiver(engine, plan, **more)
        self.receivers.append(receiver)
        return receiver

    def receive_configured(self, engine="pyroscope", plan=None, inner="", **attributes):
        """Starts a receiver, which is the only destination."""
        receiver = self.receive(engine, plan)
        self.configure(destination(receiver, inner=inner, **attributes))
        return receiver

    def secret(self, name, text, mode=0o600):
        path = self.folder / name
        path.write_bytes(text.encode())
        path.chmod(mode)
        return path

    # ---- Runs ----

    def begin(self, *words):
        """Starts `push` in a session of its own."""
        return subprocess.Popen([self.program, "push", "--config", str(self.config), *map(str, words)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment, cwd=self.folder,
                                start_new_session=True)  # fmt: skip

    @staticmethod
    def end(running, code=DONE, say=None, seconds=SECONDS_MAX):
        """Waits for the end. Returns both outputs. @code: may be several; @say: a pattern for stderr"""
        try:
            out, err = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            out, err = running.communicate()
            raise AssertionError(f"'push' did not end within {seconds} s: {err.decode()}") from None
        out, err = out.decode(), err.decode()
        codes = code if isinstance(code, tuple) else (code,)
        assert running.returncode in codes, (running.args[1:], running.returncode, out, err)
        assert not re.search("CRITICAL|WARNING|Sanitizer|runtime error", err), err
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", err), repr(err)
        if say is not None:
            assert re.search(say, err, re.M), (say, err)
        return out, err

    def push(self, *words, code=DONE, say=None, seconds=SECONDS_MAX):
        return self.end(self.begin(*words), code, say, seconds)

    def push_counting(self, *words, code=DONE, say=None, name="grafana", seconds=SECONDS_MAX):
        """Returns the counts that `push` prints for a destination, without its zeros."""
        return counts_of(self.push(*words, code=code, say=say, seconds=seconds)[1], name)

    def run(self, *words, code=DONE):
        """Runs another command."""
        done = subprocess.run([self.program, *map(str, words), "--config", str(self.config)], capture_output=True,
                              timeout=SECONDS_MAX, env=self.environment, cwd=self.folder)  # fmt: skip
        assert done.returncode == code, (words, done.returncode, done.stderr)
        return done.stdout.decode()

    # ---- Checks ----

    def by_key(self):
        """Returns the rounds by Request.key."""
        found = {(one.uuid, one.at): one for one in self.rounds}
        assert len(found) == len(self.rounds), "two rounds of a test have the same key"
        return found

    def check_sent(self, receiver, rounds=None, may_repeat=False, per_vcpu=False):
        """The receiver got exactly these rounds (default: all), complete, and each of them once."""
        assert not receiver.faults, receiver.faults[:3]
        by_key = self.by_key()
        strange = [request.key for request in receiver.accepted if request.key not in by_key]
        assert not strange, ("the store does not have", strange)
        stems = [by_key[request.key].stem for request in receiver.accepted]
        wanted = {one.stem for one in (self.rounds if rounds is None else rounds)}
        missing, more = sorted(wanted - set(stems)), sorted(set(stems) - wanted)
        assert not missing, (f"{len(missing)} of {len(wanted)} did not arrive", missing[:5])
        assert not more, (f"{len(more)} should not have been sent", more[:5])
        assert may_repeat or len(stems) == len(set(stems)), ("sent twice", stems[:20])
        check_bodies(receiver)
        for request in receiver.accepted:
            check_profile(request, by_key[request.key], per_vcpu)


def read_counts(text):
    """Returns the counts in the line of a destination; none if it is another line."""
    counts = {}
    for key, part in PARTS.items():
        match = re.match(part + r"(, |; | \(|$)", text)
        if match:
            counts[key] = int(match[1])
            text = text[match.end():] if match[2] == ", " else ""
    return counts


def counts_of(err, name="grafana"):
    """Returns the counts that `push` prints for a destination. `push` does not print zeros."""
    for line in err.splitlines():
        match = re.fullmatch(rf"(?:virt-uprof: )?{re.escape(name)}: (.*)", line)
        counts = read_counts(match[1]) if match else {}
        assert 0 not in counts.values(), line
        if counts or (match and match[1] == "nothing to send"):
            return counts
    raise AssertionError(f"no line counts the profiles of '{name}': {err}")


def check_bodies(receiver):
    """Each try of a profile has the same bytes. No ID belongs to two profiles."""
    bodies, ids = {}, {}
    for request in receiver.requests:
        if request.key:
            assert bodies.setdefault(request.key, request.body) == request.body, ("other bytes", request.key)
        if request.id:
            assert ids.setdefault(request.id, request.key) == request.key, ("an ID of two profiles", request.id)


def check_profile(request, round_, per_vcpu=False):
    """@round_: the stored round. Profiles that `push` makes smaller need other checks."""
    profile = request.profile
    assert profile.types() == [("samples", "count"), ("cpu", "nanoseconds")], profile.types()
    assert profile.period_type() == ("cpu", "nanoseconds") and profile.period == PERIOD_NS, profile.period
    assert profile.time_nanos == round_.at * 10**9 and profile.duration_nanos == DURATION_NS
    assert not profile.repeats(), profile.repeats()
    for sample in profile.samples:
        assert sample["value"][1] == sample["value"][0] * profile.period, sample["value"]
        assert set(profile.labels(sample)) <= ({"vcpu"} if per_vcpu else set()), profile.labels(sample)
    assert profile.stacks() == without_vcpus(round_.stacks), (round_.stem, profile.stacks())
    labels = request.labels
    assert labels["__name__"] == "process_cpu" and labels["domain_uuid"] == round_.uuid, labels
    assert decoded_name(labels["service_name"]) == round_.name, (labels["service_name"], round_.name)
    assert labels["access"] == "direct" and labels["host"] and labels["hypervisor"], labels


# ---- Processes ----


def become_subreaper():
    """Processes without a parent become children of this one, so that they can be counted."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children_of(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            found += [int(word) for word in (task / "children").read_text().split()]
        except OSError:
            pass  # it has just ended
    return found


def descendants_of(pid):
    return [one for child in children_of(pid) for one in (child, *descendants_of(child))]


def read_process(pid, file):
    try:
        return pathlib.Path(f"/proc/{pid}/{file}").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def reap_orphans(seconds=10):
    """Waits until no process is left of killed runs. Returns those that do not end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return []
        time.sleep(0.02)
    return [read_process(pid, "cmdline") for pid in children_of(os.getpid())]


# ---- TAP ----


def run_one(program, run):
    """Returns the reason to skip, or None, and the reason of a failure, or None."""
    world = World(program)
    try:
        return run(world), None
    except Exception as error:  # a test that breaks is a test that fails
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)]
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        return None, f"lines {lines}: {kind}{error}"
    finally:
        world.close()


def run_tests(program, functions, only=(), jobs=1):
    """Runs the functions called test_*, and prints TAP. @jobs: how many at a time. Returns the exit code."""
    tests = [(name[5:].replace("_", "-"), run) for name, run in functions.items() if name.startswith("test_")]
    tests = [(name, run) for name, run in tests if not only or name in only]
    failed = False
    print(f"1..{len(tests)}")
    with ThreadPoolExecutor(jobs) as pool:
        results = [pool.submit(run_one, program, run) for _, run in tests]
        for number, ((name, _), result) in enumerate(zip(tests, results), 1):
            skipped, fault = result.result()
            failed |= fault is not None
            print(f"{'not ok' if fault else 'ok'} {number} {name}" + (f" # SKIP {skipped}" if skipped else ""))
            if fault:
                print("# " + fault.replace("\n", "\n# "))
            sys.stdout.flush()
    return 1 if failed else 0
