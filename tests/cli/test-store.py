#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-store.py PROGRAM CLOCK [TEST...] - `prune`, `summary`, and `report` and `diff` by date

Makes stores with artificial profiles. Preloads CLOCK to change the time of day. Needs no
hypervisor; only the tests of a full disk and of other users' folders need root. Prints TAP.
"""

import contextlib
import fcntl
import gzip
import hashlib
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import pictures  # noqa: E402
import storing  # noqa: E402
from storing import DAY, put_slice, stamp, uuid_of  # noqa: E402

DONE, FAILED, USAGE, DOMAIN, DENIED, USELESS, LOCKED = 0, 1, 2, 3, 4, 5, 75
NOBODY = 65534
F_SETPIPE_SZ = 1031
TODAY = storing.day_of(int(time.time()))
A, B = uuid_of(1), uuid_of(2)
EMPTY = "/no-such-config.xml"


class Store:
    """A store in a temporary folder: runs the program, and reads the files of the store."""

    def __init__(self, program, **limits):
        self.program = program
        self.environment = None
        self.folder = tempfile.TemporaryDirectory(prefix="virt-uprof-store-")
        self.path = pathlib.Path(self.folder.name, "store")
        self.path.mkdir(mode=0o750)
        self.config = pathlib.Path(self.folder.name, "config.xml")
        self.limit(**limits)

    def limit(self, slices=7, days=90, megabytes=512):
        self.config.write_text(
            f'<virt-uprof><store directory="{self.path}" sliceDays="{slices}" mergedDays="{days}" '
            f'maxMegabytes="{megabytes}" minFreeMegabytes="0"/></virt-uprof>\n')
        self.config.chmod(0o644)

    def put(self, name, uuid, at, stacks, **more):
        return put_slice(self.path, name, uuid, at, stacks, **more)

    @contextlib.contextmanager
    def at_another_time(self, seconds):
        """Shifts the program's clock by @seconds."""
        clock = pathlib.Path(self.folder.name, "clock")
        clock.write_text(str(seconds))
        self.environment = dict(os.environ, LD_PRELOAD=os.path.abspath(sys.argv[2]), UPROF_TEST_CLOCK=str(clock))
        yield
        self.environment = None

    def run(self, *words, code=DONE, say=None):
        done = subprocess.run([self.program, *words, "--config", str(self.config)],
                              capture_output=True, timeout=120, cwd=self.folder.name, env=self.environment)
        out, err = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == code, (words, done.returncode, out, err)
        assert "CRITICAL" not in err and "WARNING" not in err, err
        if say is not None:
            assert re.search(say, err), (say, err)
        return out, err

    def prune(self, code=DONE, say=None, *more):
        return self.run("prune", *more, code=code, say=say)

    def files(self):
        return {str(path.relative_to(self.path)): path.read_bytes()
                for path in sorted(self.path.rglob("*"))
                if path.is_file() and not path.is_symlink()}

    def names(self, part=""):
        return [name for name in self.files() if part in name]

    def facts(self, name):
        return json.loads((self.path / "data" / (name + ".meta.json")).read_text())

    def stacks(self, name):
        text = gzip.decompress((self.path / "data" / (name + ".folded.gz")).read_bytes()).decode()
        return dict((line.rsplit(" ", 1)[0], int(line.rsplit(" ", 1)[1]))
                    for line in text.splitlines())

    def count(self, *words, code=DONE):
        """Returns the number of samples that `report` finds."""
        out, _ = self.run("report", "-f", "folded", *words, code=code)
        return sum(int(line.rsplit(" ", 1)[1]) for line in out.splitlines())


def day_stem(name, ago):
    safe = storing.safe_name(name)
    return f"{safe}/{safe}-{stamp(TODAY - ago * DAY)[:8]}"


def at(ago, hour=10, second=0):
    return TODAY - ago * DAY + hour * 3600 + second


# ---- Days ----

def test_closed_day(program):
    store = Store(program)
    store.put("web-1", A, at(1, 1), {"main;work": 100, "main;rest": 50})
    store.put("web-1", A, at(1, 2), {"main;work": 7})
    store.put("web-1", A, at(0, 0), {"main;work": 1000})
    store.prune(say="2 profiles merged into 1 days, 1 summaries written, 0 profiles removed")
    stem = day_stem("web-1", 1)
    assert store.stacks(stem) == {"web-1;main;work": 107, "web-1;main;rest": 50}
    facts = store.facts(stem)
    assert facts["samples"] == {"total": 357, "running": 157, "idle": 200}, facts
    assert facts["slices"] == [3600, 7200]
    assert facts["duration_ms"] == 40002 and facts["profiler_cpu_ms"] == 192
    assert facts["hold_us"]["count"] == 157 and facts["hold_us"]["max"] == 97
    assert facts["access"] == "direct" and facts["domain"]["uuid"] == A
    assert len(facts["images"]) == 1
    packed = (store.path / "data" / (stem + ".folded.gz")).read_bytes()
    assert facts["profile_sha256"] == hashlib.sha256(packed).hexdigest()
    assert (store.path / "data" / (stem + ".meta.json")).stat().st_mode & 0o777 == 0o640
    before = store.files()
    store.prune(say="0 profiles merged into 0 days, 0 summaries written, 0 profiles removed")
    assert store.files() == before


def test_late_slice(program):
    """A slice that comes after its day is closed is added once."""
    store = Store(program)
    store.put("web-1", A, at(2, 1), {"main;work": 100})
    store.prune()
    store.put("web-1", A, at(2, 0), {"main;late": 10}, access="monitor", unwind="fp")
    assert store.count("--since", "3d", "web-1") == 110
    store.prune(say="1 profiles merged into 1 days, 1 summaries written")
    for _ in range(2):
        assert store.stacks(day_stem("web-1", 2)) == {"web-1;main;late": 10, "web-1;main;work": 100}
        facts = store.facts(day_stem("web-1", 2))
        assert facts["slices"] == [0, 3600] and facts["samples"]["running"] == 110
        assert (facts["access"], facts["unwind"]) == ("direct+monitor", "auto+fp")
        assert store.count("--since", "3d", "web-1") == 110
        store.prune(say="0 profiles merged into 0 days, 0 summaries")


def test_several_days(program):
    """After a host was down, prune closes each day separately."""
    store = Store(program)
    for ago in range(1, 5):
        store.put("web-1", A, at(ago), {f"main;day_{ago}": ago})
    store.prune(say="4 profiles merged into 4 days, 4 summaries")
    for ago in range(1, 5):
        assert store.stacks(day_stem("web-1", ago)) == {f"web-1;main;day_{ago}": ago}


def test_slice_of_the_future(program):
    """After the clock was set back, prune neither merges nor removes slices of future days."""
    store = Store(program, slices=1, days=1)
    store.put("web-1", A, at(-3), {"main;work": 5})
    before = store.files()
    store.prune(say="0 profiles merged")
    assert store.files() == before
    assert store.count("--since", "today", "web-1") == 5


def test_clock_ahead(program):
    """The clock jumps forward by more than a year, rounds and a prune run, and the clock is right again."""
    store = Store(program)
    ahead = 500 * DAY
    for ago in range(5):
        store.put("web-1", A, at(ago, 0), {"main;work": 10 ** ago})
        store.put("off", B, at(ago + 1, 0), {"main;off": 1})
    store.prune()
    assert store.count("--since", "10d", "web-1") == 11111
    with store.at_another_time(ahead):
        # By the wrong clock the real today is over, so prune closes it.
        store.put("web-1", A, at(0, 1) + ahead, {"main;ahead": 100000})
        store.prune(say="1 profiles merged into 1 days, 0 summaries written, ")
        assert store.count("--since", "today", "web-1") == 100000
        assert store.stacks(day_stem("web-1", 0)) == {"web-1;main;work": 1}
        assert store.stacks(day_stem("off", 1)) == {"off;main;off": 1}
    # The clock is right again. New slices are added to the day that was closed too early.
    store.put("web-1", A, at(0, 0, 7), {"main;work": 5})
    store.prune(say="0 profiles merged into 0 days, 1 summaries written, 0 profiles removed")
    assert store.count("--since", "today", "--until", storing.day_name(TODAY + DAY), "web-1") == 6
    with store.at_another_time(DAY):
        store.prune(say="1 profiles merged into 1 days, 1 summaries written, 0 profiles removed")
        assert store.stacks(day_stem("web-1", 0)) == {"web-1;main;work": 6}
        assert store.count("--since", "2d", "--until", "today", "web-1") == 6
    assert store.count("--since", storing.day_name(TODAY + DAY), "web-1") == 100000


def test_clock_back(program):
    """The clock is set back by more than the slices' retention, rounds and a prune run, and the clock is right again."""
    store = Store(program, slices=3)
    for ago in range(5):
        store.put("web-1", A, at(ago, 0), {"main;work": 10 ** ago})
    store.prune(say="4 profiles merged into 4 days, 4 summaries written, 1 profiles removed")
    before = store.files()
    with store.at_another_time(-20 * DAY):
        store.put("web-1", A, at(21, 1), {"main;back": 100000})
        store.put("web-1", A, at(20, 0), {"main;back": 200000})
        store.prune(say="1 profiles merged into 1 days, 1 summaries written, 0 profiles removed")
        # Files of future days do not change.
        assert before.items() <= store.files().items()
        assert store.count("--since", "yesterday", "--until", "today", "web-1") == 100000
    # This slice belongs to a day that was closed before.
    store.put("web-1", A, at(4, 2), {"main;late": 5})
    store.prune(say="2 profiles merged into 2 days, 2 summaries written, 3 profiles removed")
    assert store.stacks(day_stem("web-1", 20)) == {"web-1;main;back": 200000}
    assert store.stacks(day_stem("web-1", 4)) == {"web-1;main;work": 10000, "web-1;main;late": 5}
    assert store.count("--since", "30d", "web-1") == 311116
    assert sorted({name[-26:-18] for name in store.names("Z.meta.json")}) == sorted(
        stamp(at(ago))[:8] for ago in range(4)), store.names()


def test_same_name(program):
    """Two domains with the same name on one day are distinguished by UUID."""
    store = Store(program)
    store.put("web-1", A, at(1, 1), {"main;old": 10})
    store.put("web-1", B, at(1, 2), {"main;new": 3})
    store.prune(say="2 profiles merged into 2 days")
    plain, marked = day_stem("web-1", 1), day_stem("web-1", 1) + "~" + B.replace("-", "")
    assert store.facts(plain)["domain"]["uuid"] == A and store.facts(marked)["domain"]["uuid"] == B
    assert store.stacks(plain) == {"web-1;main;old": 10}
    assert store.stacks(marked) == {"web-1;main;new": 3}
    for uuid, count in ((A, 10), (B, 3), (B.upper(), 3)):
        assert store.count("--since", "yesterday", uuid) == count
    store.put("web-1", B, at(1, 3), {"main;new": 4})
    store.put("web-1", A, at(1, 4), {"main;old": 20})
    store.prune(say="2 profiles merged into 2 days")
    assert store.stacks(plain) == {"web-1;main;old": 30}
    assert store.stacks(marked) == {"web-1;main;new": 7}
    text = store.run("summary")[0]
    assert f"web-1 ({A})" in text and f"web-1 ({B})" in text, text


def test_last_domain_of_a_name(program):
    store = Store(program)
    store.put("web-1", A, at(2), {"main;old": 10})
    store.put("web-1", B, at(1), {"main;new": 3})
    store.prune()
    assert store.count("--since", "5d", "web-1") == 3
    assert store.count("--since", "5d", A) == 10


def test_renamed(program):
    store = Store(program)
    store.put("web-1", A, at(2), {"main;work": 10})
    store.put("web-1", A, at(1, 1), {"main;work": 20})
    store.put("web-2", A, at(1, 2), {"main;work": 30})
    store.put("web-1", B, at(1, 3), {"main;other": 1})
    for _ in range(2):
        out, _ = store.run("report", "-f", "folded", "--since", "3d", "web-2")
        assert out == "web-2;main;work 60\n", out
        assert store.count("--since", "3d", A) == 60
        assert store.count("--since", "3d", "web-1") == 1
        store.prune()
    text = store.run("summary")[0]
    assert f"web-2 ({A})\n  2 profiles" in text and f"web-1 ({B})\n  1 profile of" in text, text


def test_hostile_names(program):
    store = Store(program)
    names = ["a;b", "$(id)", "-rf", "a%n%s", "a\tb", " x ", "a\u009bb", "..", "summary", "a~b", "a<b"]
    for i, name in enumerate(names):
        shown = name.replace("\t", "?").replace("\u009b", "?")
        folder = pathlib.Path(store.path, "data", storing.safe_name(name))
        stem = store.put(shown.replace(";", ":"), uuid_of(i), at(1), {"main;work": i + 1})
        source = pathlib.Path(store.path, "data", storing.safe_name(shown.replace(";", ":")))
        # Like collect: the folder has the exact name, the profile has the sanitized name.
        if source != folder:
            folder.mkdir(exist_ok=True)
            for path in source.glob(stem + ".*"):
                path.rename(folder / path.name.replace(source.name, folder.name, 1))
            source.rmdir()
    store.prune(say=f"{len(names)} profiles merged into {len(names)} days")
    assert len(store.names("folded.gz")) == 2 * len(names)
    for i, name in enumerate(names):
        assert store.count("--since", "yesterday", uuid_of(i)) == i + 1
    text = store.run("summary")[0]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x80-\x9f]", text), text


# ---- Retention ----

def test_retention(program):
    store = Store(program, slices=2, days=4)
    for ago in range(0, 8):
        store.put("web-1", A, at(ago, 0), {"main;work": 10 ** ago})
    store.prune(say="7 profiles merged into 7 days")
    slices = [name for name in store.names("T000000Z.folded.gz")]
    assert len(slices) == 3, slices  # today and two days
    assert len(store.names(".folded.gz")) - len(slices) == 4, store.names()
    assert sorted(store.names("summary/")) == [
        f"summary/{storing.day_name(TODAY - ago * DAY)}.txt" for ago in (4, 3, 2, 1)], store.names()
    assert store.count("--since", "8d", "web-1") == 11111
    before = store.files()
    store.prune()
    assert store.files() == before


def test_retention_of_watch(program):
    """The folder of `watch` in a store has the same retention, and its own days and summaries."""
    store = Store(program, slices=2, days=4)
    for ago in range(0, 8):
        for second in (0, 1):
            put_slice(store.path / "watch", "web-1", A, at(ago, 0, second), {"main;work": 10 ** ago}, trigger="crash")
        put_slice(store.path / "watch", "db", B, at(7, 1), {"main;sql": 1})
    store.put("web-1", A, at(1), {"main;other": 1})
    out, _ = store.run("prune", "--dry-run")
    assert len(re.findall(r"^remove data/.*Z$", out, re.M)) == 11 and len(store.names("watch/data/")) == 34, out
    _, err = store.prune()
    said = [line.split(": ", 1) for line in err.splitlines()]
    assert [where for where, _ in said] == [str(store.path), str(store.path / "watch")], err
    assert said[0][1].startswith("1 profiles merged into 1 days, 1 summaries written, 0 profiles removed"), err
    assert said[1][1].startswith("15 profiles merged into 8 days, "), err
    triggers = sorted(name for name in store.names("watch/data/web-1/") if "Z.meta.json" in name)
    assert triggers == sorted(f"watch/data/web-1/web-1-{stamp(at(ago, 0, second))}.meta.json"
                              for ago in range(3) for second in (0, 1)), triggers
    days = [name for name in store.names("watch/data/") if re.search(r"-\d{8}\.folded\.gz$", name)]
    assert sorted(days) == sorted(f"watch/data/{day_stem(name, ago)}.folded.gz"
                                  for name, ago in [("web-1", ago) for ago in (1, 2, 3, 4)] + [("db", 7)]), days
    watched = ("--store", str(store.path / "watch"))
    assert store.count(*watched, "--since", "8d", A) == 2 * 11111
    assert store.count("--since", "8d", A) == 1
    before = store.files()
    assert store.prune()[1].count("0 profiles merged into 0 days, 0 summaries written, 0 profiles removed") == 2
    assert store.files() == before
    # `history` reads the folder as `report` does
    out, _ = store.run("history", *watched, "--json")
    facts = json.loads(out)
    assert [(day["name"], day["running"], day["hottest"]) for day in facts["days"]] == [
        ("db", 1, "sql")] + [("web-1", 2 * 10 ** ago, "work") for ago in (4, 3, 2, 1, 0)], facts
    out, _ = store.run("history", *watched, "--since", storing.day_name(TODAY - 2 * DAY), "web-1")
    assert len(re.findall(r"^\d{4}-\d\d-\d\dT00:00 +web-1 ", out, re.M)) == 6, out
    days, slots = draw_history(store, "UTC0", *watched, "web-1")
    assert days[-1] == storing.day_name(TODAY) and slots[days[-1], 0][:3] == (2, 200, "work"), slots
    # where only `watch` writes, nothing was collected, and its folder is pruned
    alone = Store(program, slices=1, days=2)
    for ago in (1, 2, 3, 4):
        put_slice(alone.path / "watch", "web-1", A, at(ago), {"main;work": ago})
    alone.prune(say="4 profiles merged into 4 days, 2 summaries written, [0-9]+ profiles removed")
    assert len(alone.names("watch/data/")) == 6 and len(alone.names("watch/summary/")) == 2, alone.names()


def test_newest_day_stays(program):
    """The newest day of each domain stays, however old: shut-off domains, equal names, renamed domains."""
    store = Store(program, slices=1, days=4)
    for ago in (101, 100):
        store.put("off", uuid_of(3), at(ago), {"main;off": ago})
    for uuid, ago in ((A, 400), (A, 390), (B, 380), (B, 370)):
        store.put("web-1", uuid, at(ago), {"main;work": ago})
        store.put("web-1", uuid, at(ago, 11), {"main;work": 1000})
    store.put("old", uuid_of(4), at(50), {"main;work": 1})  # shut off, then renamed
    store.put("new", uuid_of(4), at(2), {"main;work": 2})
    out, _ = store.run("prune", "--dry-run")
    assert len(re.findall(r"^remove data/.*Z$", out, re.M)) == 12, out
    for _ in range(2):
        assert store.prune()[1].count("0 profiles removed") == _
        assert sorted(store.names(".folded.gz")) == sorted(
            f"data/{day_stem(name, ago)}.folded.gz"
            for name, ago in (("off", 100), ("web-1", 390), ("web-1", 370), ("new", 2))), store.names()
    for uuid, count in ((A, 1390), (B, 1370), (uuid_of(3), 100)):
        assert store.count("--since", "500d", uuid) == count
    out, _ = store.run("prune", "--dry-run")
    assert "remove" not in out, out


def test_newest_day_in_two_folders(program):
    """If a domain was renamed on its newest day, both folders keep that day."""
    store = Store(program, slices=1, days=4)
    store.put("old", A, at(51), {"main;work": 1})
    store.put("old", A, at(50, 1), {"main;work": 2})
    store.put("new", A, at(50, 2), {"main;work": 4})
    for _ in range(2):
        store.prune()
        assert store.names(".folded.gz") == [f"data/{day_stem(name, 50)}.folded.gz" for name in ("new", "old")]
        assert store.count("--since", "60d", A) == 6
    # If the store is too large, both are removed. A profile without a sidecar may be incomplete: it
    # stays.
    store.limit(slices=1, days=4, megabytes=1)
    begun = f"data/new/new-{stamp(at(0, 0))}.folded.gz"
    (store.path / begun).write_bytes(b"x" * (2 << 20))
    store.prune(say="usually kept were deleted: 2 (.|\n)*keeps 2 MB, more than maxMegabytes")
    assert store.names(".folded.gz") == [begun]


def test_unmerged_stays(program):
    """Slices that cannot be merged are not removed, however old: here the file of their day cannot be written."""
    store = Store(program, slices=1, days=1)
    store.put("web-1", A, at(5), {"main;work": 5})
    # Even root cannot rename a file over a folder.
    blocked = store.path / "data" / (day_stem("web-1", 5) + ".folded.gz")
    blocked.mkdir()
    store.prune(FAILED, say="cannot write '.*folded.gz'")
    assert len(store.names("T100000Z")) == 2
    blocked.rmdir()
    store.limit(slices=1, days=30)
    store.prune()
    assert store.stacks(day_stem("web-1", 5)) == {"web-1;main;work": 5}
    assert not store.names("T100000Z")


def test_size_limit(program):
    """A store that is too large loses its oldest files first, but not the newest day of a domain or unmerged slices."""
    store = Store(program, megabytes=100)
    big = {f"main;function_{i};{hashlib.sha256(str(i).encode()).hexdigest()}": 1 for i in range(3000)}
    for ago in range(1, 6):
        for number, name in ((1, "web-1"), (2, "web-2")):
            store.put(name, uuid_of(number), at(ago, number), big)
    store.put("old", uuid_of(3), at(6), {"main;work": 3})
    store.put("web-1", A, at(0, 0), {"main;work": 4})
    store.prune(say=" 0 profiles removed")
    all_of_them = store.names()
    store.limit(megabytes=1)
    store.prune()
    used = sum((store.path / name).stat().st_blocks * 512 for name in store.files())
    assert used <= 1 << 20, used
    for name, ago in (("web-1", 1), ("web-2", 1), ("old", 6)):
        assert f"data/{day_stem(name, ago)}.meta.json" in store.names(), store.names()
    assert f"data/{day_stem('web-1', 5)}.meta.json" not in store.names()
    assert store.count("--since", "today", "web-1") == 4
    # The age of a slice counts from its start, the age of a day from its end. Every removed file is older
    # than every remaining file that could be removed.
    def age(name):
        day, clock = re.search(r"-(\d{8})(T\d{6})?", name).groups()
        return day + (clock or "T24")

    newest = {day_stem(name, ago) for name, ago in (("web-1", 1), ("web-2", 1), ("old", 6))}
    may_go = [name for name in store.names(".meta.json")
              if name[len("data/"):-len(".meta.json")] not in newest and stamp(TODAY)[:8] not in name]
    gone = [name for name in all_of_them if ".meta.json" in name and name not in store.names()]
    assert gone and may_go and max(map(age, gone)) <= min(map(age, may_go)), (gone, may_go)
    store.limit(megabytes=1)
    before = store.files()
    store.prune()
    assert store.files() == before


def test_documented_size(program):
    """The sizes in doc/cost.md are right. The test computes the size for 20 domains from one day of one domain."""
    store = Store(program)
    made_up = storing.Program(1)
    rng = __import__("random").Random(1)
    rounds, domains = 144, 20
    for i in range(rounds):
        store.put("domain-01", A, TODAY - DAY + i * DAY // rounds, made_up.stacks(rng))
    store.prune()

    def measure(*names):
        sizes = [len(content) for name, content in store.files().items() if name in names]
        return sum(sizes) / 1e6, sum(-(-size // 4096) * 4096 for size in sizes) / 1e6

    slices = measure(*store.names("Z."))
    day = measure(*(name for name in store.names("data/") if "Z." not in name))
    summary = measure(*store.names("summary/"))
    page = (pathlib.Path(__file__).resolve().parent.parent.parent / "doc/cost.md").read_text()
    numbers = re.search(r"Each domain takes about (\d+) kB for a round of 20 s, ([0-9.]+) MB for a day of 144 rounds,"
                        r" and (\d+) kB for a closed day\."
                        r" If slices are kept for (\d+) days, then after (\d+) days 20 domains take (\d+) MB"
                        r" \((\d+) MB in blocks of 4 KiB\)", " ".join(page.split()))
    kb_of_round, mb_of_day, kb_of_closed, slice_days, days, *limits = map(float, numbers.groups())
    assert slices[0] / rounds * 1000 <= 1.2 * kb_of_round and slices[0] <= mb_of_day, slices
    assert round(day[0] * 1000) <= kb_of_closed, day
    for i, limit in enumerate(limits):
        found = domains * (slice_days * slices[i] + days * day[i] + days * summary[0])
        assert 0.5 * limit < found <= 1.1 * limit, (i, found, limit)


def test_too_little_room(program):
    """A day that is larger than the store may be does not stay."""
    store = Store(program, megabytes=1)
    rng = __import__("random").Random(1)
    big = {f"main;{rng.randbytes(60).hex()}": 1 for _ in range(20000)}
    store.put("web-1", A, at(1), big)
    store.prune(say="was larger than maxMegabytes; profiles that are usually kept were deleted: 1 ")
    assert not store.names("data/")


def test_new_uuids(program):
    """Domains that have a new UUID every day cannot fill the disk, although each of them has a newest day."""
    store = Store(program, slices=1, days=30, megabytes=1)
    big = {f"main;function_{i};{hashlib.sha256(str(i).encode()).hexdigest()}": 1 for i in range(2000)}
    for ago in range(1, 21):
        store.put("web-1", uuid_of(ago), at(ago), big)
    store.prune(say="profiles that are usually kept were deleted: ")
    used = sum((store.path / name).stat().st_blocks * 512 for name in store.files())
    assert used <= 1 << 20, used
    kept = [bool(store.names(day_stem("web-1", ago))) for ago in range(1, 21)]
    assert kept[0] and kept == sorted(kept, reverse=True) and not kept[-1], kept
    before = store.files()
    store.prune(say=" 0 profiles removed")
    assert store.files() == before


def test_size_of_summaries(program):
    """New summaries count for the size of the store: the same run removes the oldest days to make room for them."""
    store = Store(program, slices=1, megabytes=2)
    names = [f"function_{i:02d}_" + "x" * 900 for i in range(15)]
    for number in range(20):
        for ago in range(1, 6):
            store.put(f"web-{number}", uuid_of(number), at(ago), {f"main;{name}": 10 for name in names})
    _, err = store.prune()
    used = sum((store.path / name).stat().st_blocks * 512 for name in store.files())
    assert used <= 2 << 20, (used, err)
    assert len(store.names("summary/")) == 5 and "more than maxMegabytes" not in err, err
    kept = [len(store.names(stamp(TODAY - ago * DAY)[:8] + ".meta.json")) for ago in range(1, 6)]
    assert kept[0] == 20 and kept[4] == 0, kept
    before = store.files()
    store.prune(say="0 profiles merged into 0 days, 0 summaries written, 0 profiles removed")
    assert store.files() == before


def test_foreign_files(program):
    """Prune neither changes foreign files and folders nor follows symbolic links."""
    store = Store(program, slices=1, days=1, megabytes=1)
    outside = pathlib.Path(store.folder.name, "outside")
    outside.mkdir()
    target = outside / ("web-9-" + stamp(at(200)) + ".folded.gz")
    target.write_bytes(b"mine")
    data = store.path / "data"
    store.put("web-1", A, at(5), {"main;work": 5})
    (data / "web-1" / "notes.txt").write_text("mine")
    (data / "web-1" / ("web-2-" + stamp(at(200)) + ".folded.gz")).write_text("of another")
    (data / "web-1" / ("web-1-" + stamp(at(200)) + ".meta.json")).symlink_to(target)
    (data / "web-1" / "inner").mkdir()
    (data / "web-1" / "inner" / ("web-1-" + stamp(at(200)) + ".folded.gz")).write_text("mine")
    (data / "web-9").symlink_to(outside)
    (data / ".hidden").mkdir()
    (data / "a b").mkdir()
    (data / "file").write_text("mine")
    (store.path / "symbols").mkdir()
    (store.path / "symbols" / "app.dbg").write_text("mine")
    (store.path / "summary").mkdir()
    (store.path / "summary" / "2020-01-01.txt.bak").write_text("mine")
    (store.path / "summary" / "2020-01-02.txt").symlink_to(target)
    os.utime(target, (1, 1))
    for path in (data / "web-1").iterdir():
        os.utime(path, (1, 1), follow_symlinks=False)
    foreign = {name: content for name, content in store.files().items()
               if not re.search(r"web-1/web-1-\d", name)}
    links = sorted(str(path) for path in store.path.rglob("*") if path.is_symlink())
    store.prune()
    now = store.files()
    own = {f"data/{day_stem('web-1', 5)}{ending}" for ending in (".folded.gz", ".meta.json")}
    assert {name for name in now if "web-1/web-1-" in name} == own, now.keys()
    assert all(now.get(name) == content for name, content in foreign.items()), now.keys()
    assert links == sorted(str(path) for path in store.path.rglob("*") if path.is_symlink())
    assert target.read_bytes() == b"mine"
    assert list(outside.iterdir()) == [target]


def test_pipes_and_links(program):
    """Prune replaces pipes and links at the paths of its files, and does not wait for a pipe."""
    store = Store(program)
    store.put("web-1", A, at(1), {"main;work": 5})
    outside = pathlib.Path(store.folder.name, "outside")
    pipe = pathlib.Path(store.folder.name, "pipe")
    outside.write_text("mine")
    os.mkfifo(pipe)
    stem = store.path / "data" / day_stem("web-1", 1)
    os.mkfifo(f"{stem}.pending")
    pathlib.Path(f"{stem}.folded.gz").symlink_to(pipe)
    (store.path / "summary").mkdir(mode=0o750)
    summary = store.path / "summary" / f"{storing.day_name(TODAY - DAY)}.txt"
    for target in (pipe, "/dev/null", outside):
        summary.unlink(missing_ok=True)
        summary.symlink_to(target)
        store.prune(say="1 summaries written")
        assert summary.is_file() and not summary.is_symlink() and "web-1" in summary.read_text()
    assert store.stacks(day_stem("web-1", 1)) == {"web-1;main;work": 5}
    assert not [path for path in store.path.rglob("*") if path.is_symlink() or path.is_fifo()]
    assert outside.read_text() == "mine" and pipe.is_fifo()


def test_folder_of_others(program):
    """Prune refuses folders of other users with a message, and prunes the others."""
    if os.geteuid() != 0:
        return "only root can give folders to others"
    store = Store(program)
    for number, name in ((1, "web-1"), (2, "db")):
        store.put(name, uuid_of(number), at(1), {"main;work": number})
    folder, data = store.path / "data" / "web-1", store.path / "data"
    before = {name: content for name, content in store.files().items() if "web-1" in name}
    line = "'.*/%s' belongs to somebody else or may be written by others: nothing of root's is safe there\n"
    for owner, mode in ((NOBODY, 0o750), (0, 0o770)):
        os.chown(folder, owner, 0)
        folder.chmod(mode)
        store.prune(DENIED, say=line % "data/web-1")
        assert store.stacks(day_stem("db", 1)) == {"db;main;work": 2}
        assert {name: content for name, content in store.files().items() if "web-1" in name} == before
        store.run("summary", code=DENIED, say=line % "data/web-1")
    folder.chmod(0o750)
    os.chown(data, NOBODY, 0)
    for words in (["prune"], ["summary"], ["report", "--since", "3d", "db"]):
        store.run(*words, code=DENIED, say=line % "data")
    os.chown(data, 0, 0)
    os.chown(store.path / "summary", NOBODY, 0)
    store.prune(DENIED, say=line % "summary")
    assert store.stacks(day_stem("web-1", 1)) == {"web-1;main;work": 1}
    os.chown(store.path / "summary", 0, 0)
    store.prune(say="1 summaries written")
    return None


def test_incomplete_files(program):
    store = Store(program)
    store.put("web-1", A, at(3), {"main;work": 5})
    store.put("web-1", A, at(0, 0), {"main;work": 5})
    folder = store.path / "data" / "web-1"
    for name, age in ((".virt-uprof-00c0ffee.tmp", 2), (".virt-uprof-00c0ffef.tmp", 0),
                      (f"web-1-{stamp(at(3, 11))}.folded.gz", 2),
                      (f"web-1-{stamp(at(0, 0, 5))}.folded.gz", 0)):
        (folder / name).write_text("half")
        os.utime(folder / name, (time.time() - age * DAY,) * 2)
    store.prune()
    left = {path.name for path in folder.iterdir()}
    assert ".virt-uprof-00c0ffee.tmp" not in left and ".virt-uprof-00c0ffef.tmp" in left, left
    assert f"web-1-{stamp(at(3, 11))}.folded.gz" not in left
    assert f"web-1-{stamp(at(0, 0, 5))}.folded.gz" in left


def test_removes_before_summaries(program):
    """Prune removes old files before it makes summaries, which can need much memory."""
    store = Store(program, slices=1, days=3)
    for ago in range(1, 6):
        store.put("web-1", A, at(ago), {"main;work": 1})
    _, err = store.run("prune", "-v")
    acts = re.findall(r"^(merge|remove|write summary)\b", err, re.M)
    assert acts == ["merge"] * 5 + ["remove"] * 6 + ["write summary"] * 3, err
    assert len(store.names("summary/")) == 3


def test_dry_run(program):
    store = Store(program, slices=1, days=3)
    for ago in range(0, 6):
        store.put("web-1", A, at(ago, 0), {"main;work": 1})
    before = store.files()
    out, err = store.run("prune", "--dry-run")
    assert store.files() == before and not (store.path / "summary").exists()
    assert out.count("merge data/web-1: 1 profiles of ") == 5, out
    assert out.count("remove data/web-1/web-1-") == 4, out
    assert "dry run, nothing is changed: 5 profiles merged into 5 days" in err, err


# ---- Damaged and incomplete files ----

def test_damaged_slice(program):
    store = Store(program)
    store.put("web-1", A, at(3, 1), {"main;work": 1})
    for hour, ending, content in ((2, ".folded.gz", b"\x1f\x8bgarbage"), (3, ".meta.json", b"{"),
                                  (4, ".folded.gz", gzip.compress(b"no stack\n"))):
        stem = store.put("web-1", A, at(3, hour), {"main;work": 10})
        (store.path / "data" / "web-1" / (stem + ending)).write_bytes(content)
    _, err = store.prune(FAILED)
    assert err.count("; left out of the day, and not deleted") == 3, err
    assert store.stacks(day_stem("web-1", 3)) == {"web-1;main;work": 1}
    assert len(store.names("Z.folded.gz")) == 4
    assert store.count("--since", "5d", "web-1", code=FAILED) == 1
    # Retention removes damaged slices like all others. Messages about them then end.
    store.limit(slices=1)
    store.prune(FAILED)
    assert not store.names("Z.folded.gz")
    store.prune()


def test_damaged_day(program):
    """The slices of a damaged day stay. If the day is deleted, prune makes it from the slices again."""
    store = Store(program)
    store.put("web-1", A, at(3, 1), {"main;work": 1})
    store.prune()
    stem = day_stem("web-1", 3)
    profile = store.path / "data" / (stem + ".folded.gz")
    profile.write_bytes(gzip.compress(b"web-1;main;forged 9\n"))
    store.put("web-1", A, at(3, 2), {"main;work": 2})
    store.limit(slices=1)
    store.prune(FAILED, say="is damaged: its sidecar belongs to other stacks; left out")
    assert len(store.names("Z.folded.gz")) == 2
    profile.unlink()
    profile.with_name(profile.name.replace(".folded.gz", ".meta.json")).unlink()
    store.prune()
    assert store.stacks(stem) == {"web-1;main;work": 3}
    assert not store.names("Z.folded.gz")


def test_damaged_facts(program):
    """If the sidecar does not say which slices a day contains, no slice is merged a second time."""
    store = Store(program)
    for uuid in (A, B):
        store.put("web-1", uuid, at(3, 1 if uuid == A else 2), {"main;work": 1})
    store.prune()
    stem = day_stem("web-1", 3)
    sidecar = store.path / "data" / (stem + ".meta.json")
    good = sidecar.read_bytes()
    sidecar.write_bytes(b"{")
    store.put("web-1", A, at(3, 3), {"main;work": 2})
    store.put("web-1", A, at(2), {"main;work": 4})
    store.limit(slices=1)
    before = store.files()
    day = storing.day_name(TODAY - 3 * DAY)
    store.prune(FAILED, say=f"meta.json'.*; profiles of {day} are not merged until this is repaired\n")
    now = store.files()
    gone = {name for name in before if name not in now}
    # The slice of B was merged into another day file, whose sidecar is valid.
    assert {name[-26:-10] for name in gone if name.endswith(".meta.json")} == {stamp(at(3, 2)), stamp(at(2))}, gone
    assert sorted(name for name in now if name not in before and "summary/" not in name) == [
        f"data/{day_stem('web-1', 2)}{ending}" for ending in (".folded.gz", ".meta.json")]
    sidecar.write_bytes(good)
    store.prune()
    assert store.stacks(stem) == {"web-1;main;work": 3}
    assert store.count("--since", "5d", A) == 7


def test_interrupted(program):
    """The next run completes each state that a kill can leave, and no sample counts twice."""
    store = Store(program)
    store.put("web-1", A, at(1, 1), {"main;work": 1})
    store.prune()
    stem = store.path / "data" / day_stem("web-1", 1)
    paths = [stem.with_name(stem.name + ending) for ending in (".folded.gz", ".meta.json", ".pending")]
    old = [path.read_bytes() for path in paths[:2]]
    store.put("web-1", A, at(1, 2), {"main;work": 2})
    store.prune()
    new = [path.read_bytes() for path in paths[:2]]
    states = {
        "pending": (old[0], old[1], new[1]),
        "profile": (new[0], old[1], new[1]),
        "done": (new[0], new[1], None),
        "before": (old[0], old[1], None),
        "first, pending": (None, None, new[1]),
        "first, profile": (new[0], None, new[1]),
        "half a pending": (old[0], old[1], new[1][:100]),
    }
    for name, state in states.items():
        for path, content in zip(paths, state):
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
        if not name.startswith("first"):
            assert store.count("--since", "yesterday", "web-1") == 3, name
        store.prune()
        assert [path.read_bytes() for path in paths[:2]] == new, name
        assert not paths[2].exists(), name
        assert store.count("--since", "yesterday", "web-1") == 3, name


def test_sidecar_blocked(program):
    """If only the stacks of a day can be written, its sidecar stays pending and is not made again."""
    store = Store(program)
    store.put("web-1", A, at(1, 1), {"main;work": 1})
    stem = day_stem("web-1", 1)
    marked = stem + "~" + A.replace("-", "")
    blocks = [store.path / "data" / (name + ".meta.json") for name in (stem, marked)]
    for block in blocks:
        block.mkdir()
    store.prune(FAILED, say="cannot rename '.*pending'")
    written = store.files()
    assert f"data/{marked}.pending" in written and f"data/{marked}.folded.gz" in written, written.keys()
    store.prune(FAILED, say="cannot rename '.*pending'.*are not merged until this is repaired\n.*: 0 profiles merged")
    assert store.files() == written
    for block in blocks:
        block.rmdir()
    store.prune(say="0 profiles merged into 0 days, 1 summaries")
    now = store.files()
    assert now[f"data/{marked}.meta.json"] == written[f"data/{marked}.pending"]
    assert store.stacks(marked) == {"web-1;main;work": 1} and not store.names(".pending")
    assert store.count("--since", "yesterday", "web-1") == 1


def test_folders_cannot_be_opened(program):
    """If prune cannot open folders, it fails and removes nothing."""
    store = Store(program, slices=1, days=4)
    for i in range(40):
        store.put(f"web-{i}", uuid_of(i), at(20), {"main;work": 1})
    store.prune()
    before = store.files()
    done = subprocess.run([program, "prune", "--dry-run", "--config", str(store.config)], capture_output=True,
                          timeout=60, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)))
    assert b"Too many open files" in done.stderr, done.stderr
    assert (done.returncode, done.stdout) == (FAILED, b""), (done.returncode, done.stdout)
    assert store.files() == before and len(before) == 80


def test_lock(program):
    store = Store(program)
    store.put("web-1", A, at(1), {"main;work": 1})
    before = store.files()
    fd = os.open(store.path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    store.prune(LOCKED, say="another 'virt-uprof prune' is running in")
    _, err = store.prune(LOCKED, None, "-q")
    assert err == "" and store.files() == before
    os.close(fd)
    _, err = store.prune(DONE, None, "-q")
    assert err == ""


def test_missing_store(program):
    store = Store(program)
    store.path.rmdir()
    store.prune(say="nothing was collected yet: there is no")
    assert not store.path.exists()
    store.run("summary", code=FAILED, say="nothing has been collected yet: there is no '.*store'; see: virt-uprof help enable, virt-uprof help collect")
    for words in (["report", "--since", "today", "x"], ["diff", "x@yesterday", "x@today"], ["history"], ["history", "x"]):
        store.run(*words, code=FAILED, say="nothing has been collected yet")
    real = store.path.with_name("real")
    real.mkdir(mode=0o750)
    store.path.symlink_to(real)
    store.prune(FAILED, say="cannot open '.*store'")


def test_full_disk(program):
    """If there is no room for a day, its slices stay, and a later run merges them."""
    store = Store(program)
    if os.geteuid() != 0 or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m,mode=750", "tmpfs", store.path],
            capture_output=True).returncode != 0:
        return "a small file system cannot be mounted here"
    try:
        rng = __import__("random").Random(1)
        stacks = {f"main;{rng.randbytes(30).hex()}": 1 for _ in range(2000)}
        for ago in (2, 1):
            for hour in range(2):
                store.put("web-1", A, at(ago, hour), stacks)
        filler = store.path / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        before = store.files()
        store.prune(FAILED, say="No space left on device")
        assert store.files() == before
        # Now there is room for one day, but not for two.
        os.truncate(filler, filler.stat().st_size - 150 * 1024)
        store.prune(FAILED, say="No space left on device")
        assert store.count("--since", "5d", "web-1") == 8000
        assert len(store.names("Z.meta.json")) == 4 and not store.names(".tmp")
        filler.unlink()
        store.prune()
        assert store.count("--since", "5d", "web-1") == 8000
        assert sum(store.stacks(day_stem("web-1", 1)).values()) == 4000
    finally:
        subprocess.run(["umount", "-l", store.path], check=True)
    return None


# ---- report and diff by date ----

def test_since(program):
    store = Store(program)
    for ago in range(0, 4):
        for hour in (0, 6, 12):
            if at(ago, hour) < time.time():
                store.put("web-1", A, at(ago, hour), {"main;work": 10 ** ago})
    today = store.count("--since", "today", "web-1")
    day = storing.day_name
    cases = (
        (("--since", "yesterday"), 30 + today), (("--since", "yesterday", "--until", "today"), 30),
        (("--since", day(TODAY - 2 * DAY), "--until", day(TODAY - DAY)), 300),
        (("--since", day(TODAY - 2 * DAY) + "T06:00", "--until", day(TODAY - DAY)), 200),
        (("--since", day(TODAY - 2 * DAY) + "T06:00:01Z", "--until", day(TODAY - DAY) + "T06:00"), 110),
        (("--since", "1000h", "--until", "today"), 3330), (("--since", "-60d"), 3330 + today),
    )
    for _ in range(2):
        for words, count in cases:
            assert store.count(*words, "web-1") == count, (words, count)
        store.prune()
    # Slices that exist only as part of a closed day are not counted, and a message says so.
    store.limit(slices=1)
    store.prune()
    for words, count in (cases[0], cases[1], cases[2], cases[5], cases[6]):
        assert store.count(*words, "web-1") == count, (words, count)
    store.run("report", "--since", day(TODAY - 2 * DAY) + "T06:00", "--until", day(TODAY - DAY), "web-1",
              code=USELESS, say="web-1: 2 profiles of that time are left out: they are stored only as part of a closed day")


def test_since_arguments(program):
    store = Store(program)
    store.put("web-1", A, at(1), {"main;work": 1})
    store.put("db", B, at(1), {"main;sql": 2})
    assert store.count("--since", "yesterday", "web-1", "db") == 3
    store.put("many", uuid_of(3), at(1), {"main;work": 1000})
    for _ in range(2):
        err = store.run("report", "--since", "yesterday", "many")[1]
        assert "1100 samples (1000 running, 100 idle)" in err and "no sample is in" not in err, err
        store.prune()
    out, err = store.run("report", "--since", "yesterday", "web-1")
    assert out.startswith("  self   total  function\n 100.0   100.0  work\n"), out
    assert "101 samples (1 running, 100 idle)" in err, err
    store.run("report", "--since", "yesterday", "nobody", code=DOMAIN,
              say="no profile of 'nobody' is stored; 'virt-uprof collect' stores profiles")
    store.run("report", "--since", "1d", "wed-1", code=DOMAIN,
              say="no profile of 'wed-1' is stored \\(did you mean 'web-1'\\?\\); 'virt-uprof collect'")
    yesterday = storing.day_name(TODAY - DAY)
    store.run("report", "--since", "today", "web-1", code=USELESS,
              say=f"no profile of 'web-1' is stored from .* to now; stored: {yesterday}; to see what .*: virt-uprof summary DAY")
    store.run("report", "--since", "someday", "web-1", code=USAGE,
              say="--since 'someday' is not today, yesterday, 2026-11-20, 2026-11-20T09:15, 3d or 12h, in UTC;")
    store.run("report", "--until", "today", "web-1", code=USAGE, say="--until needs --since")
    store.run("report", "--since", "today", "--until", "today", "x", code=USAGE,
              say="--until is not after --since")
    # without a domain: all of them
    assert store.count("--since", "yesterday") == 1003
    store.run("report", "--since", "today", code=USELESS, say="no profile is stored from .* to now")
    store.run("prune", "x", code=USAGE, say="'prune' takes no domain")
    store.run("summary", "x", code=USAGE, say="'x' is not today, yesterday, 3d or a day such as 2026-11-20")


def test_diff(program):
    store = Store(program)
    store.put("web-1", A, at(2), {"main;old": 900, "main;same": 100})
    store.put("web-1", A, at(1), {"main;new": 900, "main;same": 100})
    day = storing.day_name(TODAY - 2 * DAY)
    for old in (day, "2d"):
        out, _ = store.run("diff", f"web-1@{old}", "web-1@yesterday")
        assert "1100 samples, 90.9 % running; new: 1100 samples" in out, out
        assert re.search(r"-90\.0 .*old", out) and re.search(r"\+90\.0 .*new", out), out
        store.prune()
    pathlib.Path(store.folder.name, "web-1@yesterday").write_text("web-1;main;file 5\n")
    out, _ = store.run("diff", f"web-1@{day}", "web-1@yesterday")
    assert "new: 5 samples" in out, out
    store.run("diff", "nobody@yesterday", "web-1@yesterday", code=DOMAIN, say="no profile of 'nobody'")
    store.run("diff", "web-1@today", f"web-1@{day}", code=USELESS, say="no profile of 'web-1' is stored from")


# ---- History ----

def test_history(program):
    store = Store(program)
    for hour, name in enumerate(("cold", "hot", "hot")):
        store.put("web-1", A, at(3, hour), {f"main;{name}": 100})
        store.put("web-1", A, at(1, hour), {"main;late": 300})
    store.put("db", B, at(3), {"main;sql": 900})
    moment = storing.day_name(at(3)) + "T10:00:00Z"
    (store.path / "data" / "web-1" / f"web-1-{stamp(at(3))[:8]}.failures").write_text(
        f"{moment} {A} paused\n{moment} {A} paused\n{moment} {B} busy\n")
    old, new = storing.day_name(TODAY - 3 * DAY), storing.day_name(TODAY - DAY)
    # the same before and after the days are closed
    for _ in range(2):
        out, _ = store.run("history")
        lines = [line.split() for line in out.splitlines()]
        assert lines[0] == "day (UTC) domain rounds failed busy% KiB self% hottest function".split(), out
        assert [line[:5] for line in lines[1:]] == [
            [old, "db", "1", "1", "90.0"], [old, "web-1", "3", "2", "50.0"], [new, "web-1", "3", "0", "75.0"]], out
        assert [line[6:] for line in lines[1:]] == [["100.0", "sql"], ["66.7", "hot"], ["100.0", "late"]], out
        assert all(int(line[5]) > 0 for line in lines[1:]), out
        store.prune()
    # of one domain, with its rounds
    out, _ = store.run("history", "--since", old, "web-1")
    days, rounds = (part.splitlines() for part in out.split("\n\n"))
    assert [line.split()[0] for line in days[1:]] == [old, new], out
    assert rounds[0].split()[:3] == ["round", "(UTC)", "domain"] and len(rounds) == 9, out
    assert rounds[1].split() == [f"{old}T00:00", "web-1", "50.0", rounds[1].split()[3], "100.0", "cold"], out
    assert [line.split(None, 5) for line in rounds[4:6]] == [[f"{old}T10:00", "web-1", "-", "0", "-", "no profile: paused"]] * 2, out
    out, _ = store.run("history", "--json", "--since", old, "--until", new, A)
    facts = json.loads(out)
    assert len(facts["days"]) == 1 and len(facts["rounds"]) == 5, facts
    assert [row.get("failure") for row in facts["rounds"]] == [None] * 3 + ["paused"] * 2, facts
    day = facts["days"][0]
    assert (day["day"], day["name"], day["uuid"], day["rounds"], day["failed"]) == (old, "web-1", A, 3, 2), day
    assert (day["samples"], day["running"], day["hottest"], day["hottest_self"]) == (600, 300, "hot", 200), day
    assert facts["rounds"][1]["started"] == f"{old}T01:00:00Z", facts
    # each damaged profile is named once, and the others are shown
    stem = f"web-1-{stamp(at(1, 1))}"
    for second in range(2):
        store.put("web-1", A, at(0, 0, second), {"main;work": 1})
        (store.path / "data" / "web-1" / f"web-1-{stamp(at(0, 0, second))}.folded.gz").write_bytes(b"rubbish")
    out, err = store.run("history", code=FAILED)
    assert out.count("web-1") == 3 and "  -" in out and stem not in err, out + err
    for second in range(2):
        assert err.count(f"web-1-{stamp(at(0, 0, second))}.folded.gz") == 1, err
    store.run("history", "nobody", code=DOMAIN, say="no profile of 'nobody'")
    store.run("history", "--since", "90d", "--until", "80d", code=USELESS, say=f"nothing was collected in that time; stored: {old} to ")
    store.run("history", "a", "b", code=USAGE, say="'history' takes one DOMAIN")


def test_history_of_failures(program):
    """A domain whose rounds have all failed has a history. Failed rounds have the name of the domain, if it is known."""
    store = Store(program)
    moment = storing.day_name(at(1)) + "T10:00:00Z"
    store.put("my vm", B, at(1), {"main;work": 1})
    for folder, uuid in (("web-1", A), ("my%20vm", B)):
        (store.path / "data" / folder).mkdir(exist_ok=True)
        (store.path / "data" / folder / f"{folder}-{stamp(at(1))[:8]}.failures").write_text(f"{moment} {uuid} paused\n")
    for words, name in ((["web-1"], "web-1"), ([A], "web-1"), (["my vm"], "my vm")):
        out, _ = store.run("history", "--since", "2d", *words)
        assert re.search(rf"^{moment[:16]}  {name} .*  no profile: paused$", out, re.M), out
    for word in ("wed-1", "my-vm"):
        err = store.run("history", word, code=DOMAIN)[1]
        assert ("(did you mean 'web-1'?)" in err) == (word == "wed-1") and "%" not in err, err


def test_history_of_lowered_rates(program):
    """A sample weighs more if the rate was lowered, so shares are of the weights."""
    store = Store(program)
    store.put("web-1", A, at(1), {"main;work": 98, "main": 2}, weight=11)
    for words in (["history"], ["history", "--since", "2d", "web-1"]):
        out, _ = store.run(*words)
        assert all(line.split()[-2:] == ["98.0", "work"] for line in out.splitlines() if line.startswith("20")), out
    row = json.loads(store.run("history", "--json")[0])["days"][0]
    assert (row["running"], row["weight"], row["hottest_self"]) == (100, 1100, 1078), row


# Summer time begins on 2026-03-29 at 02:00, and ends on 2026-10-25 at 03:00.
BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
MARCH_29, OCTOBER_25 = 1774742400, 1792886400
HALF_PAST = 1800


def draw_history(store, zone, *words):
    """Returns days and slots of the picture in another time zone."""
    store.environment = dict(os.environ, TZ=zone)
    out, err = store.run("history", "-o", "history.svg", *words, say="wrote history.svg")
    store.environment = None
    assert out == "", out
    return pictures.read_history((pathlib.Path(store.folder.name) / "history.svg").read_bytes())


def test_history_picture(program):
    store = Store(program)
    store.put("web-1", A, at(1, 9), {"main;cold": 30, "main;hot": 70})
    store.put("web-1", A, at(1, 9, 600), {"main;hot": 300})
    store.put("web-1", A, at(1, 22), {"main;cold": 50})
    moment = storing.day_name(at(1)) + "T10:05:00Z"
    (store.path / "data" / "web-1" / f"web-1-{stamp(at(1))[:8]}.failures").write_text(
        f"{moment} {A} paused\n{moment} {A} paused\n{moment} {B} busy\n")
    day, next_day = storing.day_name(at(1)), storing.day_name(at(0))
    busy, failed, cold = (400, 200, "hot", 370, 0, False), (0, 0, None, 0, 2, False), (50, 100, "cold", 50, 0, False)
    # a closed day has its hours as long as its rounds are stored
    for _ in range(2):
        drawn = draw_history(store, "UTC0")
        assert drawn == ([day], {(day, 9): busy, (day, 10): failed, (day, 22): cold}), drawn
        drawn = draw_history(store, "EAT-3", "web-1")
        assert drawn == ([day, next_day], {(day, 12): busy, (day, 13): failed, (next_day, 1): cold}), drawn
        store.prune()
    # without its rounds, a closed day is one sum
    store.put("web-1", A, at(9, 1), {"main;old": 140})
    store.put("web-1", A, at(9, 2), {"main;old": 100})
    store.prune()
    days, slots = draw_history(store, "UTC0", A)
    old = [slots[storing.day_name(at(9)), hour] for hour in range(24)]
    assert len(days) == 9 and old == [(10, old[hour][1], "old", 10, 0, hour > 0) for hour in range(24)], old
    assert sum(slot[1] for slot in old) == 200 and slots[day, 9] == busy, slots
    days, slots = draw_history(store, "IST-5:30", A)
    assert sorted(slots)[:2] == [(days[0], 5), (days[0], 6)] and slots[days[1], 4][5] and (days[1], 5) not in slots, slots
    # days that only have failures are days, too
    moment = storing.day_name(at(0)) + "T00:00:01Z"
    (store.path / "data" / "web-1" / f"web-1-{stamp(at(0))[:8]}.failures").write_text(f"{moment} {A} paused\nrubbish\n")
    days, slots = draw_history(store, "UTC0", A)
    assert days[-1] == next_day and slots[next_day, 0] == (0, 0, None, 0, 1, False), slots
    # to stdout, and to a file that exists
    out, err = store.run("history", "-o", "-", "web-1")
    assert out.startswith("<?xml") and err == "", err
    store.run("history", "-o", "history.svg", say=r"wrote history.svg \(replaced\)")


def test_history_picture_when_clocks_change(program):
    store = Store(program)
    for hour in range(3):
        for day in (MARCH_29, OCTOBER_25):
            store.put("web-1", A, day + hour * 3600 + HALF_PAST, {"main;work": 10 + hour})
    _, slots = draw_history(store, BERLIN, "--since", "2026-03-28", "--until", "2026-03-31")
    assert {key: slot[0] for key, slot in slots.items()} == {
        ("2026-03-29", 1): 10, ("2026-03-29", 3): 11, ("2026-03-29", 4): 12}, slots
    _, slots = draw_history(store, BERLIN, "--since", "2026-10-24", "--until", "2026-10-26")
    assert {key: slot[0] for key, slot in slots.items()} == {("2026-10-25", 2): 21, ("2026-10-25", 3): 12}, slots


def test_history_picture_refused(program):
    store = Store(program)
    store.put("web-1", A, at(1, 1), {"main;work": 100})
    store.put("<db>", B, at(1, 2), {"main;sql": 10})
    picture = pathlib.Path(store.folder.name) / "history.svg"
    store.run("history", "-o", "history.svg", code=USAGE, say="a picture shows one domain; name one of: web-1, <db>\n")
    store.run("history", "-o", "history.svg", "nobody", code=DOMAIN, say="no profile of 'nobody'")
    store.run("history", "-o", "history.svg", "--since", "90d", "--until", "80d", "web-1", code=USELESS, say="nothing was collected in that time")
    for name in ("history.txt", "history.folded", "history"):
        store.run("history", "-o", name, "web-1", code=USAGE, say=r"'history' writes pictures \(.svg\), and its table to stdout")
    store.run("history", "--json", "-o", "history.svg", "web-1", code=USAGE, say="leave out -o")
    assert not picture.exists()
    # a damaged profile is named, and the others are drawn
    store.put("web-1", A, at(1, 5), {"main;work": 1})
    (store.path / "data" / "web-1" / f"web-1-{stamp(at(1, 5))}.folded.gz").write_bytes(b"rubbish")
    store.run("history", "-o", "history.svg", "web-1", code=FAILED, say=f"web-1-{stamp(at(1, 5))}.folded.gz")
    _, slots = pictures.read_history(picture.read_bytes())
    assert [slot[0] for slot in slots.values()] == [100], slots
    out, _ = store.run("history", "-o", "-", B)
    assert "<title>&lt;db&gt;</title>" in out and pictures.read_history(out.encode())[1].popitem()[1][:3] == (10, 100, "sql")


# ---- Summaries ----

def test_summary(program):
    store = Store(program)
    store.put("web-1", A, at(8), {"main;json": 500, "main;tls": 500})
    store.put("web-1", A, at(2), {"main;json": 800, "main;tls": 190, "main;gone": 10})
    store.put("web-1", A, at(1, 1), {"main;json": 400, "main;tls": 400, "main;fresh": 200}, ticks={"late": 3})
    store.put("db", B, at(1, 1), {"main;sql": 50})
    folder = store.path / "data" / "web-1"
    moment = storing.day_name(at(1)) + "T10:00:00Z"
    (folder / f"web-1-{stamp(at(1))[:8]}.failures").write_text(
        f"{moment} {A} paused\n{moment} {A} paused\n{moment} {A.upper()} a job is active\n"
        f"{moment} {uuid_of(7)} busy\nhalf a li")
    store.prune()
    text = (store.path / "summary" / f"{storing.day_name(TODAY - DAY)}.txt").read_text()
    assert text == store.run("summary")[0] == store.run("summary", storing.day_name(TODAY - DAY))[0]
    assert "UTC: 3 domains." in text, text
    web = text[text.index(f"\nweb-1 ({A})"):]
    for line in (r"  without a profile: 3 rounds: paused \(2\); a job is active \(1\)",
                 r"  1 profile of 20\.0 s in all: 1100 samples, 90\.9 % running; 100\.0 % of stacks complete; access direct, unwind auto",
                 r"  cost: a vCPU was held 0\.1 % of that time or less: median 18 us, p99 42 us, longest 97 us; profiler: 96 ms of CPU",
                 r"  ticks without a sample: 3 late, 0 while somebody else held the guest",
                 r"    40\.0    40\.0       -40\.0        -10\.0  json\n",
                 r"    40\.0    40\.0       \+21\.0        -10\.0  tls\n",
                 r"    20\.0    20\.0         new          new  fresh   <- new among the top\n"):
        assert re.search(line, web), (line, web)
    assert f"\nweb-1 ({uuid_of(7)})\n  without a profile: 1 round: busy (1)\n" in text, text
    assert re.search(r"   100\.0   100\.0           -            -  sql\n", text), text
    # Without new slices the summary is not written again.
    path = store.path / "summary" / f"{storing.day_name(TODAY - DAY)}.txt"
    before = path.stat()
    store.prune()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    store.put("web-1", A, at(1, 2), {"main;json": 1})
    store.prune(say="1 summaries written")
    assert "2 profiles of 40.0 s" in path.read_text()
    old, first, last = (storing.day_name(TODAY - ago * DAY) for ago in (20, 8, 1))
    store.run("summary", old, code=USELESS, say=f"nothing was collected on {old}; stored: {first} to {last}; see: summary DAY$")
    assert store.run("summary", "1d")[0] == path.read_text()


def test_memory(program):
    """`summary` needs no more memory for many domains than for one, nor `report` for many days than for few."""
    stacks = {f"main;{'x' * 900}_{i}": 1 for i in range(500)}

    def peak(store, *words):
        """Returns the peak memory in KiB. The options limit the freed memory that a sanitizer keeps."""
        options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
        reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        with subprocess.Popen([program, *words, "--config", str(store.config)], stdout=writer,
                              env=dict(os.environ, ASAN_OPTIONS=options)) as process, os.fdopen(reader, "rb") as out:
            os.close(writer)
            # The program prints after all its work. Its output does not fit into the pipe, so the
            # program cannot exit before its status is read.
            out.read(1)
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            out.read()
        assert process.returncode == DONE, words
        return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1))

    def fill(n_domains, n_days):
        store = Store(program)
        for number in range(n_domains):
            for ago in range(1, n_days + 1):
                store.put(f"web-{number}", uuid_of(number), at(ago), stacks)
        store.prune()
        return store

    few, domains, days = fill(1, 2), fill(25, 2), fill(1, 25)
    spare = 6 * 1024
    one, many = peak(few, "summary"), peak(domains, "summary")
    assert many < one + spare, (one, many)
    one, many = peak(few, "report", "-q", "--since", "60d", "web-0"), peak(days, "report", "-q", "--since", "60d", "web-0")
    assert many < one + spare, (one, many)


def test_summary_today(program):
    store = Store(program)
    store.put("web-1", A, at(0, 0), {"main;work": 100})
    text = store.run("summary", "today")[0]
    assert "UTC, so far: 1 domain." in text and "1 profile of" in text, text
    store.prune()
    assert not store.names("summary/")


# ---- Symbols for stored addresses ----

SOURCE = "void work(void) { for (;;) ; }\nvoid rest(void) { work(); }\nvoid _start(void) { rest(); }\n"


class App:
    """A program with three functions, and with a build-id unless @build_id is empty."""

    def __init__(self, folder, name, build_id, filler=""):
        self.path = os.path.join(folder, name)
        words = [*os.environ.get("CC", "cc").split(), "-x", "c", "-O0", "-ffreestanding", "-nostdlib", "-static",
                 "-no-pie", f"-Wl,--build-id={'0x' + build_id if build_id else 'none'}", "-o", self.path, "-"]
        subprocess.run(words, input=(filler + SOURCE).encode(), check=True, capture_output=True)
        symbols = subprocess.run(["nm", self.path], check=True, capture_output=True).stdout.decode()
        self.at = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines()}
        sections = subprocess.run(["readelf", "-SW", self.path], check=True, capture_output=True).stdout.decode()
        self.text = int(re.search(r" \.text +PROGBITS +([0-9a-f]+)", sections).group(1), 16)

    def stack(self, label="app"):
        """Returns a stack of the three functions with addresses such as [app+0x1a2b]."""
        return ";".join(f"[{label}+{self.at[name] + 1 - self.text:#x}]" for name in ("_start", "rest", "work"))

    def bare(self):
        """Returns the same stack with absolute addresses."""
        return ";".join(f"{self.at[name] + 1:#x}" for name in ("_start", "rest", "work"))


NAMED = "_start;rest;work"


def images(*ids):
    return [{"name": "[app]" if i == 0 else f"[app{i + 1}]", "build_id": build_id, "symbols": "", "matched": True}
            for i, build_id in enumerate(ids)]


def test_naming(program):
    store = Store(program)
    one = App(store.folder.name, "one", "3f2a91c0")
    two = App(store.folder.name, "two", "91c07d11", "void other(void) { }\n")
    none = App(store.folder.name, "none", "")
    store.put("web-1", A, at(3), {one.stack(): 1}, images=images("3f2a91c0"))
    store.put("web-1", A, at(2), {two.stack(): 2}, images=images("91c07d11"))
    store.put("web-1", A, at(1), {two.stack("app2"): 4, one.stack(): 8}, images=images("3f2a91c0", "91c07d11"))
    store.put("db", B, at(1), {one.bare(): 16}, images=[])

    def report(*words, code=DONE, say="^$"):
        return store.run("report", "-q", "-f", "folded", *words, code=code, say=say)[0]

    for _ in range(2):
        out = report("--since", "5d", "web-1", "-s", one.path, "-s", two.path)
        assert out == f"web-1;{NAMED} 15\n", out
        out = report("--since", "5d", "web-1", "-s", one.path,
                     say="symbols do not match: guest build-id 91c07d11, '.*one' has 3f2a91c0; addresses stay in 2 profiles")
        assert out == "".join(sorted((f"web-1;{two.stack('app2')} 4\n", f"web-1;{two.stack()} 2\n", f"web-1;{NAMED} 9\n"))), out
        day = storing.day_name
        out = report("--since", day(TODAY - 3 * DAY), "--until", day(TODAY - 2 * DAY), "web-1", "-s", two.path,
                     code=FAILED, say="guest build-id 3f2a91c0, '.*two' has 91c07d11; addresses stay in 1 profile\n")
        assert out == ""
        out = report("--since", "5d", "db", "-s", one.path, say="build-ids could not be compared")
        assert out == f"db;{NAMED} 16\n", out
        out = report("--since", day(TODAY - 3 * DAY), "--until", day(TODAY - 2 * DAY), "web-1", "-s", none.path,
                     say="build-ids could not be compared")
        assert out == f"web-1;{NAMED} 1\n", (out, none.text, one.text)
        out, err = store.run("diff", "-v", f"web-1@{day(TODAY - 3 * DAY)}", "web-1@yesterday", "-s", one.path, "-s", two.path)
        assert re.search(r" work$", out, re.M) and "[app" not in out and err == "", (out, err)
        store.prune()


def test_naming_of_files(program):
    store = Store(program)
    one = App(store.folder.name, "one", "3f2a91c0")
    folded = pathlib.Path(store.folder.name, "x.folded")
    sidecar = pathlib.Path(store.folder.name, "x.meta.json")
    folded.write_text(f"vm;{one.stack()} 3\nvm;{one.bare()} 4\nvm;main;[app+0x] 1\nvm;[app+0xffffffffffffffff];0xg 1\n")
    rest = "vm;[app+0xffffffffffffffff];0xg 1\n"
    out, err = store.run("report", "-f", "folded", "-s", "one", "x.folded")
    assert f"vm;{NAMED} 7\n" in out and rest in out and "build-ids could not be compared" in err, (out, err)
    sidecar.write_text(json.dumps(storing.sidecar("vm", A, at(1), 1, 1, images=images("3f2a91c0"))))
    out, err = store.run("report", "-f", "folded", "-s", "one", "x.folded")
    assert f"vm;{NAMED} 7\n" in out and err == "", (out, err)
    sidecar.write_text(json.dumps(storing.sidecar("vm", A, at(1), 1, 1, images=images("00ff"))))
    store.run("report", "-f", "folded", "-s", "one", "x.folded", code=FAILED,
              say="symbols do not match: guest build-id 00ff, '.*one' has 3f2a91c0")
    out, err = store.run("report", "-f", "folded", "x.folded")
    assert one.bare() in out and err == "", (out, err)
    store.run("report", "-s", "missing", "x.folded", code=FAILED, say="'missing'")


def test_naming_of_modules(program):
    """Modules of Linux processes get symbols only by build-id. Offsets count from the first mapped page."""
    store = Store(program)
    lib = App(store.folder.name, "lib", "3f2a91c0")
    other = App(store.folder.name, "other", "91c07d11", "void other(void) { }\n")
    folder = pathlib.Path(store.folder.name, "debug")
    (folder / ".build-id/3f").mkdir(parents=True)
    (folder / ".build-id/3f/2a91c0").symlink_to(lib.path)
    segments = subprocess.run(["readelf", "-lW", lib.path], check=True, capture_output=True).stdout.decode()
    first = min(int(text, 16) for text in re.findall(r"^ +LOAD +0x[0-9a-f]+ 0x([0-9a-f]+)", segments, re.M)) & ~0xfff
    places = ";".join(f"[lib.so.6+{lib.at[name] + 1 - first:#x}]" for name in ("_start", "rest", "work"))
    stack = f"nginx;{places};write_[k]"
    folded = pathlib.Path(store.folder.name, "x.folded")
    sidecar = pathlib.Path(store.folder.name, "x.meta.json")
    folded.write_text(f"vm;{stack} 3\n")

    def module(label, build_id):
        return {"name": label, "build_id": build_id, "symbols": "", "matched": False, "module": True}

    def expect(named, *words, modules):
        sidecar.write_text(json.dumps(storing.sidecar("vm", A, at(1), 1, 1, images=modules)))
        out, err = store.run("report", "-q", "-f", "folded", *words, "x.folded")
        assert out == f"vm;nginx;{NAMED if named else places};write_[k] 3\n" and err == "", (out, err)

    one = [module("[lib.so.6]", "3f2a91c0")]
    expect(True, "-s", lib.path, modules=one)
    expect(True, "-s", other.path, "-s", lib.path, modules=one)
    expect(True, "--debug-dir", str(folder), modules=one)
    expect(True, "-s", lib.path, modules=images("91c07d11") + one)
    # Addresses get no names unless it is certain which file matches.
    expect(False, "-s", other.path, modules=one)
    expect(False, "-s", lib.path, modules=[])
    expect(False, "-s", lib.path, modules=[module("[lib.so.6]", "")])
    expect(False, "-s", lib.path, modules=one + [module("[lib.so.6]", "91c07d11")])
    expect(False, modules=one)
    # Profiles in the store get symbols in the same way.
    store.put("vm", A, at(1), {stack: 5}, images=one)
    for _ in range(2):
        out, _ = store.run("report", "-q", "-f", "folded", "--since", "3d", "vm", "-s", lib.path)
        assert out == f"vm;nginx;{NAMED};write_[k] 5\n", out
        store.prune()


TESTS = [(name[5:].replace("_", "-"), run) for name, run in sorted(globals().items())
         if name.startswith("test_")]


def main():
    program = os.path.abspath(sys.argv[1])
    if DAY - int(time.time()) % DAY < 120:
        time.sleep(125)  # The day must not end during the tests.
        os.execv(sys.executable, [sys.executable, *sys.argv])
    only = sys.argv[3:]
    tests = [(name, run) for name, run in TESTS if not only or name in only]
    failed = False
    print(f"1..{len(tests)}")
    for number, (name, run) in enumerate(tests, 1):
        try:
            skipped = run(program)
            print(f"ok {number} {name}" + (f" # SKIP {skipped}" if skipped else ""))
        except AssertionError as error:
            failed = True
            line = error.__traceback__
            while line.tb_next:
                line = line.tb_next
            print(f"not ok {number} {name}\n# line {line.tb_lineno}: " + str(error).replace("\n", "\n# "))
        sys.stdout.flush()
    sys.exit(failed)


main()
