#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-push.py PROGRAM [TEST...] - `push` sends the rounds of a store to Pyroscope and Parca

Makes stores with artificial rounds, and receivers that refuse what these engines refuse. Needs no
hypervisor and no network. The tests of TLS need openssl. Only root can check that the processes give
up root's rights. Prints TAP.
"""

import base64
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import receiver as engine  # noqa: E402
from pushing import (  # noqa: E402
    DONE, FAILED, LOCKED, NOT_DONE, SOME_FAILED, check_bodies, check_profile, children_of, counts_of, decoded_name, descendants_of,
    destination, raw_name, read_process, run_tests, without_vcpus,
)  # fmt: skip
from receiver import always, first, of_domain, status  # noqa: E402
from storing import DAY, put_slice, stamp, uuid_of  # noqa: E402

ENGINES = ("pyroscope", "parca")
JOBS = 3  # most tests wait for a pause of `push`

# Names that a sidecar has as they are
NAMES = (
    "plain", "a,b", 'a{b="c"}', "it's", '"', "two words", "a/b/c", "../../etc", "100%", "%41", "a%2Fb", "\u00fc" * 100,
    "\u65e5\u672c", "-rf", "..", "a;b", "$(id)", "#x", "[idle]", "x 12", "a\\b", "</script>", "a" * 200,
)  # fmt: skip
# Names with characters that a sidecar replaces. The folder has their bytes.
HARMFUL_NAMES = (
    "tab\there", "line\nbreak", "c1\u009bm", "\x1b[31m", "del\x7f", b"not-\xff-utf8", "a\u00a0b", "\u202eevil", "%\x01%",
)  # fmt: skip


def minute_of(at):
    """Returns a time as --since takes it."""
    return time.strftime("%Y-%m-%dT%H:%M", time.gmtime(at))


# ---- Rounds ----


def test_all_samples(world):
    world.put_many(4, 5)
    for name in ENGINES:
        receiver = world.receive_configured(name, name=name)
        counts = world.push_counting(name=name)
        assert counts == {"sent": len(world.rounds)}, counts
        world.check_sent(receiver)
        assert all(world.has_noted(one, name) for one in world.rounds)
        assert receiver.n_connections <= 3, f"{receiver.n_connections} connections for {len(world.rounds)} profiles"


def test_second_push(world):
    receiver = world.receive_configured()
    world.put_many(2, 3)
    world.push_counting()
    log = world.log()
    for _ in range(2):
        assert world.push_counting() == {}
    assert len(receiver.requests) == 6 and world.log() == log


def test_new_rounds(world):
    """A new round is sent, also if it is older than those that were sent."""
    receiver = world.receive_configured()
    now = int(time.time())
    for at in (now - 600, now - 60, now - 1200, now - 1):
        world.put(at=at)
        assert world.push_counting() == {"sent": 1}
    world.check_sent(receiver)


def test_domains_with_the_same_name(world):
    receiver = world.receive_configured()
    now = int(time.time())
    world.put("web-1", 1, now - 60)
    world.put("web-1", 2, now - 50)
    world.put("web-2", 1, now - 40)
    assert world.push_counting() == {"sent": 3}
    world.check_sent(receiver)


def test_days_are_not_sent(world):
    """`prune` merges slices into days, and removes no file of `push`."""
    receiver = world.receive(age_max_s=5 * DAY)
    world.configure(destination(receiver, maxAge="4d"))
    yesterday = int(time.time()) // DAY * DAY - 3600
    for i in range(3):
        world.put(at=yesterday + i)
    world.run("prune")
    assert any(re.search(r"-\d{8}\.folded\.gz$", path.name) for path in world.path.rglob("*.gz"))
    assert world.push_counting() == {"sent": 3}
    world.run("prune")
    assert world.push_counting() == {}
    world.check_sent(receiver)


def test_folder_of_watch(world):
    """push does not send the profiles of `watch`, which are in a folder of the store."""
    receiver = world.receive_configured()
    put_slice(world.path / "watch", "web-1", uuid_of(1), int(time.time()) - 60, {"main;work": 1})
    world.put()
    assert world.push_counting() == {"sent": 1}
    world.check_sent(receiver)


def test_idle(world):
    """Idle time is not sent. A round without another sample is not sent at all."""
    receiver = world.receive_configured()
    busy = world.put(stacks={"main;work": 5, "[idle]": 100, "[unknown]": 2, "[truncated];lost": 3})
    world.put(number=2, name="idle", stacks={"[idle]": 100})
    assert world.push_counting() == {"sent": 1}
    world.check_sent(receiver, [busy])
    assert world.push_counting() == {}


def test_incomplete_round(world):
    """A round without a sidecar is still being written."""
    receiver = world.receive_configured()
    begun, _ = world.put(number=1), world.put("web-2", 2)
    sidecar = world.path / "data" / begun.folder / f"{begun.stem}.meta.json"
    hidden = sidecar.rename(world.folder / "hidden")
    assert world.push_counting() == {"sent": 1}
    hidden.rename(sidecar)
    assert world.push_counting() == {"sent": 1}
    world.check_sent(receiver)


def test_damaged_rounds(world):
    """push names each damaged round, and sends the others."""
    receiver = world.receive_configured()
    now = int(time.time())
    good = [world.put(at=now - 300 + i) for i in range(3)]
    bad = [world.put(at=now - 200 + i) for i in range(5)]
    paths = [world.path / "data" / one.folder / one.stem for one in bad]
    profiles = [path.with_name(path.name + ".folded.gz") for path in paths]
    profiles[0].write_bytes(profiles[0].read_bytes()[:-12])
    profiles[1].write_bytes(b"no gzip")
    paths[2].with_name(paths[2].name + ".meta.json").write_text('{"format": "virt-uprof-run", ')
    profiles[3].unlink()
    profiles[3].symlink_to(world.secret("outside", "web-1;secret 1\n"))
    profiles[4].unlink()
    os.mkfifo(profiles[4])
    out, err = world.push(code=(DONE, FAILED), seconds=60)
    assert counts_of(err)["sent"] == 3, (out, err)
    world.check_sent(receiver, good)
    for one in bad[:3]:
        assert one.stem in err, (one.stem, err)
    world.push(code=(DONE, FAILED), seconds=60)
    world.check_sent(receiver, good)


def test_pruned_meanwhile(world):
    """push ignores rounds that are deleted while it sends others."""
    receiver = world.receive_configured(plan=lambda request: remove_others(world) or None)
    rounds = world.put_many(1, 4)
    assert world.push_counting() == {"sent": 1}
    world.check_sent(receiver, rounds[:1])
    assert world.push_counting() == {}


def remove_others(world):
    """Deletes all rounds but the first one."""
    for one in world.rounds[1:]:
        for ending in (".meta.json", ".folded.gz"):
            (world.path / "data" / one.folder / (one.stem + ending)).unlink(missing_ok=True)


def test_metrics(world):
    """Counters go on from run to run. Every user may read the file."""
    folder = world.folder / "metrics"
    folder.mkdir()
    receiver = world.receive_configured()
    world.config.write_text(world.config.read_text().replace("<destination", f'<metrics directory="{folder}"/><destination'))
    expected, now = 0, int(time.time())
    for n_new in (2, 0, 1):
        for _ in range(n_new):
            expected += 1
            world.put(at=now - 60 + expected)
        world.push()
        text = (folder / "virt-uprof-push.prom").read_text()
        assert f'virt_uprof_pushed_profiles_total{{destination="grafana"}} {expected}\n' in text, text
        assert 'virt_uprof_waiting_profiles{destination="grafana"} 0\n' in text, text
    assert len(receiver.accepted) == expected
    assert (folder / "virt-uprof-push.prom").stat().st_mode & 0o777 == 0o644


def test_lag(world):
    """list and summary say which rounds a destination lacks."""
    receiver = world.receive_configured(plan=of_domain(uuid_of(2), status(400, "no")))
    world.put_many(3, 2)
    assert "grafana: 6 rounds are not sent yet, the oldest of 2" in world.run("list", "-c", "test:///default")
    world.push(code=FAILED)
    for words in (("list", "-c", "test:///default"), ("summary", "today")):
        assert "grafana: has all rounds; 2 refused\n" in world.run(*words), words
    world.put(at=int(time.time()) - 5)
    assert "grafana: 1 round is not sent yet, the oldest of 2" in world.run("list", "-c", "test:///default")
    assert len(receiver.accepted) == 4


def test_check(world):
    """check --push tries the destinations, and sends no profile."""
    check = ("check", "-c", "test:///default", "--push")
    receiver = world.receive_configured(plan=lambda request: status(400, "no profile"))
    assert f"ok    grafana        {receiver.url} answers a request without a profile with 400" in world.run(*check)
    for action, word in ((status(401, "who?"), "credentials"), (status(404), "url"), (engine.page(), "JSON|engine"),
                         (engine.reset(), "reset|closed|recv")):  # fmt: skip
        receiver.plan = always(action)
        said = world.run(*check, code=SOME_FAILED)
        assert re.search(f"FAIL  grafana .*({word})", said, re.I), (action.name, said)
    receiver.plan = always(engine.Action("old", answer_from_the_past))
    assert re.search("warn  grafana .*this host's clock is [0-9]+ s ahead", world.run(*check))
    world.configure(destination(receiver, url="http://127.0.0.1:1"))
    assert "FAIL  grafana" in world.run(*check, code=SOME_FAILED)
    assert not world.log()


def answer_from_the_past(handler):
    handler.date_time_string = lambda timestamp=None: "Mon, 01 Jan 2024 00:00:00 GMT"
    handler.answer(200, b"{}")


def test_empty_store(world):
    receiver = world.receive_configured()
    assert world.push_counting() == {}
    (world.path / "data").mkdir(exist_ok=True)
    assert world.push_counting() == {}
    world.push("--store", world.folder / "none", say="nothing was collected yet")
    assert receiver.n_connections == 0


def test_too_old(world):
    """Rounds that have become too old are counted once, and are not sent later."""
    receiver = world.receive_configured(maxAge="50m")
    now = int(time.time())
    new = world.put(at=now - 60)
    assert world.push_counting() == {"sent": 1}
    old = [world.put(at=now - age) for age in (1800, 2400)]
    world.configure(destination(receiver, maxAge="20m"))
    assert world.push_counting(code=FAILED) == {"too_old": 2}
    assert all(world.has_noted(one) for one in old), world.log()
    assert world.push_counting() == {}
    world.configure(destination(receiver, maxAge="50m"))
    assert world.push_counting() == {}
    world.check_sent(receiver, [new])


def test_first_push(world):
    """Rounds that were too old before the first push are not for the destination: they are not counted."""
    receiver = world.receive_configured()
    now = int(time.time())
    new = world.put(at=now - 1800)
    for age in (3700, DAY, 3 * DAY):
        world.put(at=now - age)
    assert world.push_counting() == {"sent": 1}
    assert world.push_counting() == {}
    world.check_sent(receiver, [new])
    world.push("--since", minute_of(now - 2 * DAY), code=(DONE, FAILED))
    assert not receiver.faults, receiver.faults


# ---- Large profiles ----


def check_made_smaller(request, round_):
    """The largest stacks are there, and the rest is one stack."""
    got, stored = request.profile.stacks(), round_.stacks
    other = got.pop("[other]")
    assert all(stored[stack] == count for stack, count in got.items())
    rest = [count for stack, count in stored.items() if stack not in got]
    assert other == sum(rest) and max(rest) <= min(got.values()), (other, sum(rest), max(rest), min(got.values()))
    comments = request.profile.comments()
    assert any("[other]" in comment for comment in comments), comments
    assert not request.profile.repeats()


def test_many_stacks(world):
    rng = random.Random(1)
    receiver = world.receive_configured()
    many = world.put(stacks={f"main;work_{i:05d}": rng.randint(1, 1000) for i in range(20000)})
    some = world.put("web-2", 2, stacks={f"main;work_{i:05d}": rng.randint(1, 1000) for i in range(16000)})
    assert world.push_counting() == {"sent": 2}
    assert not receiver.faults, receiver.faults
    for request in receiver.accepted:
        if world.by_key()[request.key] is many:
            assert len(request.profile.samples) == 16000
            check_made_smaller(request, many)
        else:
            check_profile(request, some)
            assert not any("[other]" in comment for comment in request.profile.comments())


def test_many_bytes(world):
    rng = random.Random(2)
    receiver = world.receive_configured()
    large = world.put(stacks={f"main;{rng.getrandbits(2000):0500x}": rng.randint(1, 1000) for i in range(12000)})
    assert world.push_counting() == {"sent": 1}
    assert not receiver.faults, receiver.faults
    check_made_smaller(receiver.accepted[0], large)
    assert 1 << 20 < receiver.accepted[0].profile.size <= 4 << 20, receiver.accepted[0].profile.size


def test_deep_stacks(world):
    """The innermost frames stay. Stacks that are the same afterwards are one stack."""
    receiver = world.receive_configured()
    frames = [f"call_{i:04d}" for i in range(1090)]
    limit = frames[:1000]
    world.put(stacks={";".join(frames): 5, ";".join(["other", *frames[1:]]): 6, ";".join(limit): 7, "main;work": 8})
    assert world.push_counting() == {"sent": 1}
    assert not receiver.faults, receiver.faults
    request = receiver.accepted[0]
    cut = ";".join(["[truncated]", *frames[-999:]])
    assert request.profile.stacks() == {cut: 11, ";".join(limit): 7, "main;work": 8}
    assert not request.profile.repeats()


# ---- Labels ----


def test_labels(world):
    for name in ENGINES:
        inner = '<label name="site" value="fra1"/><label name="Zone" value="a &lt;b&gt; {c} &#228;"/>'
        receiver = world.receive_configured(name, inner=inner, name=name)
        world.put(access="monitor")
        assert world.push_counting(name=name)["sent"] == len(world.rounds)
        assert not receiver.faults, receiver.faults
        labels = receiver.accepted[-1].labels
        assert labels["site"] == "fra1" and labels["Zone"] == "a <b> {c} \u00e4", labels
        assert set(labels) == {"__name__", "service_name", "host", "domain_uuid", "hypervisor", "access", "site", "Zone"}, labels
        assert labels["__name__"] == "process_cpu" and labels["service_name"] == "web-1" and labels["access"] == "monitor", labels
        assert labels["domain_uuid"] == uuid_of(1) and labels["host"] == socket.gethostname(), labels
        world.rounds.clear()
        shutil.rmtree(world.path / "data")


def check_names(world, names):
    now = int(time.time())
    for number, name in enumerate(names, 1):
        world.put(name, number, now - 60 + number)
    for name in ENGINES:
        receiver = world.receive_configured(name, name=name)
        assert world.push_counting(name=name) == {"sent": len(names)}
        assert not receiver.faults, receiver.faults
        values = {request.labels["domain_uuid"]: request.labels["service_name"] for request in receiver.accepted}
        for number, original in enumerate(names, 1):
            value, raw = values[uuid_of(number)], raw_name(original)
            assert decoded_name(value) == raw, (raw, value)
            assert not re.search(r"[\x00-\x1f\x7f-\x9f]", value), (raw, value)
            assert value == original or re.search(rb"[%\x00-\x1f\x7f-\xff]", raw), (raw, value)
        world.check_sent(receiver)


def test_names(world):
    check_names(world, NAMES)


def test_harmful_names(world):
    check_names(world, HARMFUL_NAMES)


def test_spelling_of_names(world):
    receiver = world.receive_configured()
    now = int(time.time())
    spelled = {"100%": "100%25", "a,{b} \u00fc": "a,{b} \u00fc", "%41": "%2541"}
    for number, name in enumerate(spelled, 1):
        world.put(name, number, now - number)
    world.push()
    assert sorted(request.labels["service_name"] for request in receiver.accepted) == sorted(spelled.values())


def test_modules(world):
    """Parca wants mappings that are numbered without a gap, whether there are frames of a kernel or not."""
    for name in ENGINES:
        receiver = world.receive_configured(name, name=name)
        module = {"name": "[lib.so.6]", "build_id": "00ff", "symbols": "", "matched": False, "module": True}
        world.put(number=1, images=[module], stacks={"nginx;[lib.so.6+0x1f];[lib.so.6+0x2f]": 3, "nginx;main": 1})
        world.put("web-2", 2, images=[module], stacks={"nginx;[lib.so.6+0x1f];write_[k]": 3, "nginx;[app+0x12]": 1})
        world.put("web-3", 3, images=[], stacks={"nginx;write_[k]": 3})
        assert world.push_counting(name=name) == {"sent": 3}
        world.check_sent(receiver)
        world.rounds.clear()
        shutil.rmtree(world.path / "data")


def test_sources(world):
    """Functions have their modules with build-ids, and their files with lines, as far as the round knows them."""
    images = [{"name": name, "build_id": build_id, "symbols": "", "matched": False, "module": is_module}
              for name, build_id, is_module in (("[app]", "ab12", False), ("[lib.so.6]", "00ff", True))]  # fmt: skip
    known = "memcpy\tlib.so.6\t/src/memcpy.c\t12\nmain\t\tmain.c\t0\nf(int, char)\tlib.so.6\t\t0\n"
    stacks = {"main;f(int, char);memcpy": 3, "main;read_[k]": 1, "other": 2}
    expected = {
        "memcpy": ("lib.so.6", "00ff", "/src/memcpy.c", 12),
        "f(int, char)": ("lib.so.6", "00ff", "", 0),
        "main": ("[app]", "ab12", "main.c", 0),
        "read_[k]": ("[guest.kernel.kallsyms]", "", "", 0),
        "other": ("[app]", "ab12", "", 0),
    }
    for name in ENGINES:
        receiver = world.receive_configured(name, name=name)
        world.put(functions=known, images=images, stacks=stacks)
        assert world.push_counting(name=name) == {"sent": 1}
        world.check_sent(receiver)
        assert receiver.accepted[0].profile.sources() == expected, receiver.accepted[0].profile.sources()
        world.rounds.clear()
        shutil.rmtree(world.path / "data")


def test_damaged_lists_of_functions(world):
    """A round is sent without what cannot be read, and names in a list are made safe like all others."""
    receiver = world.receive_configured()
    long = "x" * 5000
    lists = ["main\tlib.so.6\n", "main\tm\tf\t99999999999\n", "\0\x1b[31m\t\x07\t\x1b]0;x\t3\n", "",
             f"main\t{long}\t{long}\t4294967295\n", "\u202emain\t\u202e\t\u202e\t1\n" * 3]  # fmt: skip
    for number, text in enumerate(lists, 1):
        world.put(f"web-{number}", number, functions=text)
    cut = world.put("web-9", 9, functions="main\tlib.so.6\tmain.c\t7\n")
    path = world.path / "data" / cut.folder / f"{cut.stem}.functions.gz"
    path.write_bytes(path.read_bytes()[:-9])
    world.put("web-10", 10)
    link = world.path / "data" / world.rounds[-1].folder / f"{world.rounds[-1].stem}.functions.gz"
    link.symlink_to(path)
    assert world.push_counting() == {"sent": len(lists) + 2}
    world.check_sent(receiver)
    for request in receiver.accepted:
        for module, _, file, _ in request.profile.sources().values():
            assert len(module) <= 1024 and len(file) <= 1024 and (module + file).isprintable(), (module, file)


def test_per_vcpu(world):
    stacks = {"vcpu0;main;work": 3, "vcpu1;main;work": 4, "vcpu1;main;rest": 5}
    round_ = world.put(stacks=stacks)
    receiver = world.receive_configured(name="without", perVcpu="no")
    world.push_counting(name="without")
    world.check_sent(receiver)
    assert receiver.accepted[0].profile.stacks() == without_vcpus(stacks) == {"main;work": 7, "main;rest": 5}
    receiver = world.receive_configured(name="with", perVcpu="yes")
    world.push_counting(name="with")
    profile = receiver.accepted[0].profile
    assert not receiver.faults, receiver.faults
    check_profile(receiver.accepted[0], round_, per_vcpu=True)
    got = {";".join([profile.labels(sample)["vcpu"], *profile.frames(sample)]): sample["value"][0]
           for sample in profile.samples}  # fmt: skip
    assert got == stacks, got


# ---- Which rounds ----


def test_patterns(world):
    names = ("web-1", "web-22", "db-1", "mail", "xdb-1")
    now = int(time.time())
    rounds = {name: world.put(name, number, now - number) for number, name in enumerate(names, 1)}
    for pattern, wanted in (("web-* db-*", ("web-1", "web-22", "db-1")), ("mail", ("mail",)), ("web-?", ("web-1",)),
                            ("none", ()), ("", names)):  # fmt: skip
        name = f"d{len(world.receivers)}"
        receiver = world.receive_configured(name=name, domains=pattern)
        counts = world.push_counting(name=name)
        assert counts == ({"sent": len(wanted)} if wanted else {}), (pattern, counts)
        world.check_sent(receiver, [rounds[name] for name in wanted])


def test_domains(world):
    """A push of some domains leaves the others for a later push."""
    receiver = world.receive_configured()
    world.put_many(3, 2)
    of = [[one for one in world.rounds if one.uuid == uuid_of(number)] for number in range(4)]
    assert world.push_counting("web-1") == {"sent": 2}
    world.check_sent(receiver, of[1])
    assert world.push_counting(uuid_of(2).upper()) == {"sent": 2}
    world.check_sent(receiver, of[1] + of[2])
    world.push("no-such-domain", code=(DONE, *NOT_DONE))
    world.check_sent(receiver, of[1] + of[2])
    assert world.push_counting() == {"sent": 2}
    world.check_sent(receiver)


def test_since(world):
    receiver = world.receive_configured()
    now = int(time.time())
    old, new = world.put(at=now - 3000), world.put(at=now - 600)
    assert world.push_counting("--since", minute_of(now - 1800)) == {"sent": 1}
    world.check_sent(receiver, [new])
    assert world.push_counting() == {"sent": 1}
    world.check_sent(receiver, [new, old])
    world.push("--since", "never", code=NOT_DONE)


def test_to_name(world):
    one, other = world.receive(), world.receive("parca")
    world.configure(destination(one, "one"), destination(other, "other"))
    world.put_many(1, 2)
    out, err = world.push("--to", "other")
    assert counts_of(err, "other") == {"sent": 2} and "one:" not in err, (out, err)
    assert one.n_connections == 0
    _, err = world.push()
    assert counts_of(err, "one") == {"sent": 2} and counts_of(err, "other") == {}, err
    world.check_sent(one)
    world.check_sent(other)
    world.push("--to", "third", code=NOT_DONE, say="'third'")


def test_to_url(world):
    """A URL needs no destination in the configuration. Its rounds are noted, too."""
    world.put_many(1, 2)
    for name, prefix in (("pyroscope", "pyroscope+"), ("parca", "parca+"), ("pyroscope", ""), ("pyroscope", "")):
        receiver = world.receive(name, prefix="/base" if not prefix else "")
        slash = "/" if len(world.receivers) == 4 else ""
        for n_sent in (2, 0):
            _, err = world.push("--to", prefix + receiver.url + slash)
            assert re.search(f"{n_sent} profiles? sent" if n_sent else "nothing to send", err), err
            world.check_sent(receiver)
    for url in ("ftp://127.0.0.1/", "graphite+http://127.0.0.1/", "http://", "pyroscope+", "http://u:p@127.0.0.1/"):
        world.push("--to", url, code=NOT_DONE, say="virt-uprof: ")


def test_dry_run(world):
    """Nothing is contacted, and nothing is noted."""
    receiver = world.receive_configured()
    now = int(time.time())
    rounds = [world.put("web-1", 1, now - 60), world.put("a b", 2, now - 30)]
    out, _ = world.push("--dry-run")
    lines = [f"grafana: data/{one.folder}/{one.stem}" for one in rounds]
    assert out.splitlines() == lines, (out, lines)
    assert receiver.n_connections == 0 and not world.log()
    out, _ = world.push("--dry-run", "web-1")
    assert out.splitlines() == lines[:1], out
    assert world.push_counting() == {"sent": 2}
    log = world.log()
    out, _ = world.push("--dry-run")
    assert out == "" and len(receiver.requests) == 2 and world.log() == log, out
    world.put("web-1", 1, now - 1800)
    world.configure(destination(receiver, maxAge="10m"))
    assert world.push("--dry-run")[0] == "" and world.log() == log
    assert world.push_counting(code=FAILED) == {"too_old": 1}


def facts_of(out):
    """Returns the facts of each destination, by name. Without an error there may be no such member."""
    facts = json.loads(out)
    assert list(facts) == ["destinations"], facts
    for one in facts["destinations"]:
        one.setdefault("error", None)
        one.pop("why_left", None)
        assert set(one) == {"name", "type", "url", "sent", "bytes", "refused", "too_old", "left", "error"}, one
    return {one["name"]: one for one in facts["destinations"]}


def test_json(world):
    one = world.receive(plan=of_domain(uuid_of(1), status(400, "not you")))
    other = world.receive("parca", always(status(401, 'say "please" \\ \t now')))
    both = [destination(one, "one"), destination(other, "other")]
    world.configure(*both)
    assert facts_of(world.push("--json")[0])["one"]["sent"] == 0
    world.put_many(3, 1)
    facts = facts_of(world.push("--json", code=FAILED)[0])
    n_bytes = facts["one"].pop("bytes")
    assert 0 < n_bytes <= sum(len(request.body) for request in one.requests), n_bytes
    wanted = {"name": "one", "type": "pyroscope", "url": one.url, "sent": 2, "refused": 1, "too_old": 0, "left": 0, "error": None}
    assert facts["one"] == wanted, facts
    wanted = {"name": "other", "type": "parca", "url": other.url, "sent": 0, "bytes": 0, "refused": 0, "too_old": 0, "left": 3}
    assert "401" in facts["other"].pop("error") and facts["other"] == wanted, facts
    world.put(at=int(time.time()) - 1800)
    world.configure(destination(one, "one", maxAge="10m"))
    assert facts_of(world.push("--json", code=FAILED)[0])["one"]["too_old"] == 1


def test_quiet(world):
    receiver = world.receive_configured()
    world.put()
    assert world.push("-q") == ("", "")
    world.check_sent(receiver)
    receiver.plan = always(status(401))
    world.put("web-2", 2)
    world.push("-q", code=FAILED, say="401")


def test_spread(world):
    receiver = world.receive_configured()
    world.put()
    times = []
    for _ in range(4):
        started = time.monotonic()
        world.push("--spread", "3s")
        times.append(time.monotonic() - started)
    assert max(times) < 20 and max(times) - min(times) > 0.3, times
    world.check_sent(receiver)


def test_rate(world):
    rng = random.Random(3)
    receiver = world.receive_configured(kilobytesPerSecond="100")
    for number in range(1, 11):
        world.put(f"web-{number}", number, stacks={f"main;{rng.getrandbits(1000):x}": 1 for _ in range(150)})
    started = time.monotonic()
    assert world.push_counting() == {"sent": 10}
    took, size = time.monotonic() - started, sum(len(request.body) for request in receiver.requests)
    assert took > 0.6 * size / 100e3, f"{size} bytes in {took:.1f} s"
    world.check_sent(receiver)


# ---- The engine refuses ----


def test_refused(world):
    """A refused round is noted with the engine's words, is not sent again, and delays no other."""
    for code in (400, 413, 422, 409, 410, 418):
        name = f"d{code}"
        receiver = world.receive_configured(plan=of_domain(uuid_of(2), status(code, f"engine's words {code}")), name=name)
        if not world.rounds:
            world.put_many(3, 2)
        counts = world.push_counting(name=name, code=FAILED, say=f"engine's words {code}")
        assert counts == {"sent": 4, "refused": 2}, (code, counts)
        refused = [one for one in world.rounds if one.uuid == uuid_of(2)]
        assert all(world.has_noted(one, name, f"engine's words {code}") for one in refused), world.log(name)
        world.check_sent(receiver, [one for one in world.rounds if one not in refused])
        assert world.push_counting(name=name) == {}
        assert len(receiver.requests) == 6, code


def test_words_of_the_engine(world):
    """The engine's words have no power over a terminal or a log."""
    message = "words \x1b[31mred\x07\nweb-1-20200101T000000Z sent\u202e \u009b0m"
    bodies = (
        json.dumps({"code": "invalid_argument", "message": message}).encode(),
        json.dumps({"words": "x" * 3000}).encode(), b'{"message": 5, "words": {"a": [[[[]]]]}}',
    )  # fmt: skip
    for i, body in enumerate(bodies):
        name = f"d{i}"
        world.receive_configured(plan=always(status(400, body=body)), name=name)
        if not world.rounds:
            world.put()
        out, err = world.push(code=FAILED)
        assert counts_of(err, name) == {"refused": 1}, err
        assert "words" in err, err
        notes = world.notes(name)
        assert list(notes) == [world.rounds[0].stem] and len(notes[world.rounds[0].stem]) < 1000, notes
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", world.log(name)), world.log(name)
        assert max(map(len, err.splitlines())) < 1000, err


def test_left_at_once(world):
    """The destination itself is wrong: nothing is tried again, and no round is refused."""
    elsewhere = world.receive()
    receiver = world.receive_configured()
    world.put_many(1, 3)
    cases = [(status(code), str(code)) for code in (401, 403, 404, 405)]
    there, no_engine = elsewhere.url + engine.PATHS["pyroscope"], "JSON|Pyroscope|answer"
    cases += [(engine.redirect(there, code), str(code)) for code in (301, 302, 303, 307, 308)]
    cases += [(engine.page(), no_engine), (engine.page(200, ""), no_engine)]
    cases += [(status(200, body=body), no_engine) for body in (b"", b"[]", b'"x"', b"null", b"\xff", b"x{}")]
    check_left_at_once(world, receiver, cases)
    assert elsewhere.n_connections == 0


def test_broken_json(world):
    """push takes only a complete JSON object for an acknowledgement."""
    receiver = world.receive_configured()
    world.put_many(1, 3)
    bodies = (b"{", b"{}x", b"{'a': 1}", b"{% if %}")
    check_left_at_once(world, receiver, [(status(200, body=body), "JSON|Pyroscope|answer") for body in bodies])


def check_left_at_once(world, receiver, cases):
    """@cases: an Action, and a pattern for what `push` says"""
    for action, words in cases:
        n_before = len(receiver.requests)
        receiver.plan = always(action)
        _, err = world.push(code=FAILED, say=f"^(virt-uprof: )?.*grafana.*({words})")
        counts = counts_of(err)
        assert counts == {"left": 3}, (action.name, counts)
        assert len(receiver.requests) == n_before + 1, (action.name, len(receiver.requests) - n_before)
        assert not re.search("sent|refused", world.log()), (action.name, world.log())
    receiver.plan = None
    assert world.push_counting() == {"sent": 3}
    world.check_sent(receiver)


def test_one_of_two_destinations(world):
    bad, good = world.receive(plan=always(status(403))), world.receive()
    world.configure(destination(bad, "bad"), destination(good, "good"))
    world.put_many(1, 3)
    _, err = world.push(code=FAILED)
    assert counts_of(err, "good") == {"sent": 3} and counts_of(err, "bad") == {"left": 3}, err
    world.check_sent(good)


# ---- The engine fails ----


def test_tried_again(world):
    """A failure that may pass is tried again in the same run, with the same bytes.

    If a connection ends before the first byte of an answer, libcurl itself tries again without a pause.
    """
    actions = [status(code) for code in (408, 429, 500, 502, 503, 504)]
    actions += [engine.reset(), engine.close_at_once(), engine.close_in_body(), engine.hang(0.5)]
    receiver = world.receive_configured()
    now = int(time.time())
    for number in range(1, len(actions) + 1):
        world.put(f"web-{number}", number, now - number)
    by_domain = {uuid_of(number): action for number, action in enumerate(actions, 1)}
    receiver.plan = lambda request: by_domain[request.labels["domain_uuid"]] if request.tries == 0 else None
    counts = world.push_counting()
    assert counts == {"sent": len(actions)}, (counts, [(request.key, request.outcome) for request in receiver.requests])
    world.check_sent(receiver)
    assert len(receiver.requests) == 2 * len(actions)
    tries = {}
    for request in receiver.requests:
        if request.outcome not in ("hang", "reset", "close at once", "accepted"):
            tries[request.key] = request.at
        elif request.key in tries:
            assert request.at - tries[request.key] > 0.2, ("no pause", request.key)


def test_lost_acknowledgement(world):
    """The engine has stored the profile, but the answer is lost: the same profile is sent once more."""
    receiver = world.receive_configured()
    world.put_many(1, 3)
    receiver.plan = first(1, engine.taking(engine.reset()))
    assert world.push_counting() == {"sent": 3}
    world.check_sent(receiver, may_repeat=True)
    assert len(receiver.accepted) == 6


def test_retry_after(world):
    receiver = world.receive_configured()
    now = int(time.time())
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(now + 4))
    values = {"3": 2.9, "0": 0, "soon": 0, "-5": 0, date: 0.2, "Thu, 01 Jan 1970 00:00:00 GMT": 0, "9" * 30 + "x": 0}
    for number, value in enumerate(values, 1):
        world.put(f"web-{number}", number, now - number)
    by_domain = {uuid_of(number): engine.retry_after(429 if number % 2 else 503, value)
                 for number, value in enumerate(values, 1)}  # fmt: skip
    receiver.plan = lambda request: by_domain[request.labels["domain_uuid"]] if request.tries == 0 else None
    assert world.push_counting(seconds=90) == {"sent": len(values)}
    world.check_sent(receiver)
    tries = {}
    for request in receiver.requests:
        tries.setdefault(request.labels["domain_uuid"], []).append(request.at)
    for number, (value, pause) in enumerate(values.items(), 1):
        before, after = tries[uuid_of(number)]
        assert after - before >= pause, (value, after - before)


def test_three_failures(world):
    """After three profiles in a row could not be sent, the rest waits for the next run."""
    receiver = world.receive_configured(plan=always(status(503, "engine is busy")))
    world.put_many(1, 5)
    counts = world.push_counting(code=FAILED, say="grafana.*(503|engine is busy)")
    assert counts == {"left": 5}, counts
    keys = [request.key for request in receiver.requests]
    assert len(set(keys)) == 3 and len(keys) >= 6, keys
    receiver.plan = None
    assert world.push_counting() == {"sent": 5}
    world.check_sent(receiver)


def test_one_failure(world):
    """A profile that cannot be sent delays no other."""
    receiver = world.receive_configured(plan=of_domain(uuid_of(3), status(500)))
    world.put_many(5, 1)
    assert world.push_counting(code=FAILED) == {"sent": 4, "left": 1}
    receiver.plan = None
    assert world.push_counting() == {"sent": 1}
    world.check_sent(receiver)


def test_nobody_listens(world):
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    receiver = world.receive_configured(url=f"http://127.0.0.1:{closed.getsockname()[1]}")
    world.put()
    assert world.push_counting(code=FAILED, say="grafana") == {"left": 1}
    world.configure(destination(receiver, url="http://no-such-host.invalid:4040"))
    assert world.push_counting(code=FAILED, say="grafana.*(no-such-host|resolve)") == {"left": 1}
    world.configure(destination(receiver))
    assert world.push_counting() == {"sent": 1}
    closed.close()


def test_no_http(world):
    """Bytes that are no HTTP, and very long answers. Nothing is lost, and not everything is read.

    For libcurl, an answer that ends in its head is complete and empty.
    """
    receiver = world.receive_configured()
    world.put()
    for action in (engine.garbage(), engine.close_in_head(), engine.megabytes(200), engine.megabytes(200, 503)):
        receiver.plan = always(action)
        _, err = world.push(code=FAILED, seconds=90)
        assert counts_of(err) == {"left": 1} and max(map(len, err.splitlines())) < 1000, (action.name, err)
    assert receiver.n_bytes < 100 * 1024 * 1024, receiver.n_bytes
    receiver.plan = None
    assert world.push_counting() == {"sent": 1}
    receiver.plan = always(engine.megabytes(200, 400))
    world.put("web-2", 2)
    _, err = world.push(code=FAILED, seconds=90)
    assert counts_of(err) == {"left": 1} and max(map(len, err.splitlines())) < 1000, err
    check_bodies(receiver)


def test_pages_that_refuse(world):
    """A server in front of the engine, or none at all, refuses every request: no round is lost."""
    receiver = world.receive_configured()
    world.put_many(2, 2)
    pages = (b"Client sent an HTTP request to an HTTPS server.\n", b"<html>Log in \x1b[31m</html>", b"")
    cases = [status(400, body=body) for body in pages] + [status(code) for code in (407, 421, 426)]
    for action in cases:
        receiver.plan = always(action)
        assert world.push_counting(code=FAILED) == {"left": 4}, action.name
        assert not world.notes(), (action.name, world.log())
    receiver.plan = None
    assert world.push_counting() == {"sent": 4}


def test_refused_by_all(world):
    """An engine that refuses the first ten rounds is not asked further: the rest is not lost."""
    receiver = world.receive_configured(plan=always(status(400, "no series today")))
    world.put_many(1, 15)
    assert world.push_counting(code=FAILED, say="refuses everything") == {"refused": 10, "left": 5}
    receiver.plan = None
    assert world.push_counting() == {"sent": 5}


def test_many_runs_without_engine(world):
    """A round is not refused because nobody listens for many runs."""
    receiver = world.receive_configured()
    world.configure(destination(receiver, url="http://127.0.0.1:1"))
    world.put()
    for _ in range(12):
        assert world.push_counting(code=FAILED) == {"left": 1}
    world.configure(destination(receiver))
    assert world.push_counting() == {"sent": 1}


def test_clock_that_was_ahead(world):
    """A first push with a clock of the future hides no round."""
    receiver = world.receive_configured()
    world.put()
    (world.path / "push").mkdir()
    (world.path / "push/grafana.log").write_text(f"- since {int(time.time()) + 86400}\n")
    assert world.push_counting() == {"sent": 1}
    world.check_sent(receiver)


# ---- Credentials ----


def test_token(world):
    for text in ("s3cret-Token==", "s3cret-Token==\n"):
        receiver = world.receive(authorization="Bearer s3cret-Token==")
        world.configure(destination(receiver, f"d{len(world.receivers)}", tokenFile=world.secret("token", text)))
        if not world.rounds:
            world.put()
        world.push()
        world.check_sent(receiver)
    world.put("web-2", 2)
    world.configure(destination(receiver, tokenFile=world.secret("token", "wrong-Token")))
    _, err = world.push("-v", code=FAILED, say="401")
    assert "wrong-Token" not in err and "wrong-Token" not in world.log(), err


def test_password(world):
    credentials = base64.b64encode("u\u00f6:p:w \u00e4".encode()).decode()
    receiver = world.receive(authorization=f"Basic {credentials}")
    world.configure(destination(receiver, user="u\u00f6", passwordFile=world.secret("password", "p:w \u00e4\n")))
    world.put()
    world.push()
    world.check_sent(receiver)


def test_tenant(world):
    receiver = world.receive(tenant="team-a|team-b")
    world.configure(destination(receiver, tenant="team-a|team-b"))
    world.put()
    world.push()
    world.check_sent(receiver)
    assert "Authorization" not in receiver.requests[0].headers, receiver.requests[0].headers
    receiver = world.receive_configured(name="without")
    world.push()
    assert "X-Scope-OrgID" not in receiver.requests[0].headers


def test_bad_credentials(world):
    """Files with credentials that cannot be used are named, their content is not shown, and nothing is contacted."""
    receiver = world.receive()
    world.put()
    texts = ("s3cret\nX-Evil: 1", "s3cret\r\nX-Evil: 1\r\n", "s3cret\x00more", "s3cret\x01", "", "\n", "s3cret" * 100000)
    cases = [("token", text, 0o600) for text in texts] + [("open", "s3cret", mode) for mode in (0o644, 0o604, 0o666)]
    for attribute in ("tokenFile", "passwordFile"):
        user = "u" if attribute == "passwordFile" else None
        for name, text, mode in cases:
            path = world.secret(name, text, mode)
            world.configure(destination(receiver, user=user, **{attribute: path}))
            _, err = world.push(code=NOT_DONE, say=re.escape(str(path)))
            assert "s3cret" not in err and "Evil" not in err, err
        for path in (world.folder / "none", world.path):
            world.configure(destination(receiver, user=user, **{attribute: path}))
            world.push(code=NOT_DONE, say=re.escape(str(path)))
    assert receiver.n_connections == 0 and "sent" not in world.log()


def test_certificates(world):
    if not shutil.which("openssl"):
        return "no openssl"
    ours, theirs = (engine.make_authority(world.folder, name) for name in ("ours", "theirs"))
    receiver = world.receive(tls=engine.make_context(engine.make_certificate(world.folder, "server", ours)))
    world.put_many(1, 2)
    for ca_file in (theirs[0], None):
        world.configure(destination(receiver, caFile=ca_file))
        counts = world.push_counting(code=FAILED, say="grafana.*certificate")
        assert counts == {"left": 2} and not receiver.requests, counts
    assert receiver.n_connections <= 4, f"{receiver.n_connections} connections with a wrong certificate"
    world.configure(destination(receiver, caFile=ours[0]))
    assert world.push_counting() == {"sent": 2}
    world.check_sent(receiver)
    pair = engine.make_certificate(world.folder, "stranger", ours, "DNS:other.example")
    stranger = world.receive(tls=engine.make_context(pair))
    world.configure(destination(stranger, "stranger", caFile=ours[0]))
    assert world.push_counting(name="stranger", code=FAILED, say="stranger.*certificate") == {"left": 2}
    for path in (world.folder / "none.pem", world.secret("empty.pem", "no certificate\n")):
        world.configure(destination(receiver, "x", caFile=path))
        world.push(code=NOT_DONE, say="virt-uprof: ")
    assert not stranger.requests and len(receiver.requests) == 2
    return None


def test_client_certificate(world):
    if not shutil.which("openssl"):
        return "no openssl"
    ours, clients = (engine.make_authority(world.folder, name) for name in ("ours", "clients"))
    client, other = (engine.make_certificate(world.folder, name, authority, f"DNS:{name}")
                     for name, authority in (("client", clients), ("other", ours)))  # fmt: skip
    receiver = world.receive(tls=engine.make_context(engine.make_certificate(world.folder, "server", ours), clients))
    world.put()
    for pair in ((None, None), other):
        world.configure(destination(receiver, caFile=ours[0], certificateFile=pair[0], keyFile=pair[1]))
        world.push(code=FAILED, say="grafana")
        assert not receiver.requests
    world.configure(destination(receiver, caFile=ours[0], certificateFile=client[0], keyFile=client[1]))
    assert world.push_counting() == {"sent": 1}
    world.check_sent(receiver)
    client[1].chmod(0o644)
    world.put("web-2", 2)
    world.push(code=NOT_DONE, say=re.escape(str(client[1])))
    assert len(receiver.requests) == 1
    return None


# ---- The configuration ----


def test_configuration(world):
    receiver = world.receive()
    world.put()
    good = {"name": "a", "type": "pyroscope", "url": receiver.url}
    bad = [
        ({"type": "graphite"}, "'graphite'"), ({"type": None}, "type"), ({"name": None}, "name"), ({"url": None}, "url"),
        ({"name": "../x"}, r"'\.\./x'"), ({"name": ""}, "name"), ({"name": "a b"}, "'a b'"), ({"name": ".a"}, r"'\.a'"),
        ({"url": "127.0.0.1:4040"}, "url"), ({"url": "file:///etc/passwd"}, "url"), ({"url": "http://u:p@127.0.0.1/"}, "url"),
        ({"maxAge": "yes"}, "maxAge"), ({"maxAge": "-1h"}, "maxAge"), ({"perVcpu": "maybe"}, "perVcpu"),
        ({"kilobytesPerSecond": "-1"}, "kilobytesPerSecond"), ({"kilobytesPerSecond": "fast"}, "kilobytesPerSecond"),
        ({"tokenFile": "relative"}, "tokenFile"), ({"user": "u"}, "passwordFile"), ({"keyFile": "/k"}, "certificateFile"),
        ({"user": "u", "passwordFile": "/p", "tokenFile": "/t"}, "tokenFile"), ({"tenant": "a\nb"}, "tenant"),
        ({"tokenfile": "/t"}, "tokenfile"), ({"timeout": "5s"}, "timeout"),
    ]  # fmt: skip
    for attributes, say in bad:
        world.configure(destination(receiver, **{**good, **attributes}))
        world.push(code=FAILED, say=f"^virt-uprof: configuration '.*config.xml': .*({say})")
    labels = (
        '<label name="9a" value="x"/>', '<label name="a-b" value="x"/>', '<label name="" value="x"/>', '<label value="x"/>',
        '<label name="a"/>', '<label name="__name__" value="x"/>', '<label name="host" value="x"/>',
        '<tag name="a" value="b"/>', '<label name="a" value="x"/><label name="a" value="y"/>', "text",
        '<label name="a" value="x" more="y"/>', '<label name="a" value="x&#9;y"/>',
    )  # fmt: skip
    for inner in labels:
        world.configure(destination(receiver, inner=inner, **good))
        world.push(code=FAILED, say="^virt-uprof: configuration '.*config.xml': ")
    world.configure(destination(receiver, **good), destination(receiver, **good))
    world.push(code=FAILED, say="'a'")
    assert receiver.n_connections == 0


def test_no_destination(world):
    """Nothing is contacted, and the program does not even load the library for it."""
    world.put()
    for _ in range(2):
        out, err = world.push()
        assert re.fullmatch("virt-uprof: no destination .*; see: man virt-uprof.xml\n", out + err), (out, err)
    assert not (world.path / "push").exists()
    libraries = subprocess.run(["ldd", world.program], capture_output=True, check=True, timeout=60).stdout.decode()
    if "libasan" in libraries or "libvirt" in libraries:
        return "a build for a sanitizer links libvirt, which has such libraries"
    assert "libcurl" not in libraries and "libssl" not in libraries, libraries
    trace = world.folder / "trace"
    world.environment.update(LD_DEBUG="files", LD_DEBUG_OUTPUT=str(trace))
    world.push()
    text = "".join(path.read_text(errors="replace") for path in world.folder.glob("trace*"))
    assert "libglib" in text and "libcurl" not in text, "libcurl was loaded"
    return None


# ---- Processes ----


def begin_to_hang(world, **attributes):
    """Starts a `push` whose first request gets no answer before receiver.release()."""
    receiver = world.receive_configured(plan=lambda request: engine.hang() if request.number == 0 else None, **attributes)
    running = world.begin()
    assert receiver.wait_for_requests(1), world.end(running)
    return receiver, running


def test_two_pushes(world):
    world.put_many(1, 3)
    receiver, running = begin_to_hang(world)
    out, err = world.push(code=LOCKED, say="virt-uprof: .*push", seconds=30)
    assert out == "" and len(receiver.requests) == 1, (out, err)
    receiver.release()
    _, err = world.end(running)
    assert counts_of(err) == {"sent": 3}, err
    world.check_sent(receiver)


def helpers_in(pids):
    """Returns the processes of push-helper."""
    return [pid for pid in pids if read_process(pid, "comm").strip() == "push-helper"]


def test_rights(world):
    """Only the helper has the library for HTTP. Neither it nor the reader of the store has root's rights."""
    if os.geteuid() != 0:
        return "only root can read what these processes have mapped"
    world.put_many(1, 3)
    token = world.secret("token", "s3cret-Token")
    receiver, running = begin_to_hang(world, tokenFile=token)
    pids = [running.pid, *descendants_of(running.pid)]
    helpers = helpers_in(pids)
    about = [(pid, read_process(pid, "comm").strip()) for pid in pids]
    assert len(helpers) == 1 and "libcurl" in read_process(helpers[0], "maps"), (helpers, about)
    for pid in pids:
        for file in ("cmdline", "environ"):
            assert "s3cret" not in read_process(pid, file), (about, file)
    state = read_process(helpers[0], "status")
    assert re.search(r"^CapEff:\t0+$", state, re.M) and re.search(r"^CapPrm:\t0+$", state, re.M), state
    assert re.search(r"^NoNewPrivs:\t1$", state, re.M), state
    for pid in pids[1:]:
        state = read_process(pid, "status")
        assert not re.search(r"^[UG]id:\t.*\b0\b", state, re.M), (about, state)
    # the process that makes the readers of the store, and the program itself, forget the token
    spawners = [pid for pid in pids[1:] if pid not in helpers]
    assert spawners and not any(has_in_memory(pid, b"s3cret-Token") for pid in spawners), about
    receiver.release()
    world.end(running)
    world.check_sent(receiver)
    return None


def has_in_memory(pid, text):
    """Does a process have the text in its writable memory?"""
    for line in read_process(pid, "maps").splitlines():
        if " rw" not in line:
            continue
        first, end = (int(word, 16) for word in line.split()[0].split("-"))
        if end - first > 1 << 28:
            continue  # of a sanitizer
        try:
            with open(f"/proc/{pid}/mem", "rb") as memory:
                memory.seek(first)
                if text in memory.read(end - first):
                    return True
        except OSError:
            pass
    return False


def test_forgotten_credentials(world):
    """The process that makes the readers for a second destination does not have the token of the first one."""
    if os.geteuid() != 0:
        return "only root can read the memory of these processes"
    token = world.secret("token", "s3cret-Token")
    one, other = world.receive(), world.receive(plan=always(engine.hang(20)))
    world.configure(destination(one, "one", tokenFile=token), destination(other, "other", tokenFile=None))
    world.put()
    for _ in range(8):  # a push begins with any of the two
        n_before, n_one = len(other.requests), len(one.accepted)
        running = world.begin()
        other.wait_for_requests(n_before + 1)
        is_second = len(one.accepted) > n_one
        pids = [running.pid, *descendants_of(running.pid)]
        found = [pid for pid in set(pids) - set(helpers_in(pids)) if has_in_memory(pid, b"s3cret-Token")]
        os.killpg(running.pid, 9)
        running.communicate()
        assert not found or not is_second, found
        if is_second:
            return None
        world.put(at=int(time.time()) - 100 + n_before)
    raise AssertionError("'other' never came second")


def test_helper_ends(world):
    """The helper does not outlive the program: its connection is closed within seconds."""
    world.put()
    receiver, running = begin_to_hang(world)
    helpers = helpers_in(descendants_of(running.pid))
    assert len(helpers) == 1, helpers
    os.kill(running.pid, 15)
    running.communicate()
    end = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") and "Z (" not in read_process(pid, "status") for pid in helpers):
        assert time.monotonic() < end, "the helper still runs"
        time.sleep(0.05)
    receiver.release()


def test_killed_helpers(world):
    """If the processes of `push` die, it says so or goes on. The next run sends what is missing."""
    world.put_many(2, 2)
    receiver, running = begin_to_hang(world)
    for pid in reversed(descendants_of(running.pid)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    world.end(running, code=(DONE, FAILED), say="virt-uprof: |grafana: ", seconds=60)
    receiver.release()
    world.push()
    world.check_sent(receiver, may_repeat=True)
    assert not children_of(running.pid)


def test_interrupt(world):
    """Ctrl-C ends a run soon. The next run sends what is missing."""
    for number in (signal.SIGINT, signal.SIGTERM):
        world.put_many(2, 2, age=300 + 10 * number)
        receiver, running = begin_to_hang(world, name=f"d{number}")
        started = time.monotonic()
        os.kill(running.pid, number)
        running.communicate(timeout=30)
        assert time.monotonic() - started < 10 and running.returncode != DONE, running.returncode
        receiver.release()
        world.push()
        world.check_sent(receiver, may_repeat=True)


def main():
    program = os.path.abspath(sys.argv[1])
    return run_tests(program, dict(sorted(globals().items())), sys.argv[2:], JOBS)


if __name__ == "__main__":
    sys.exit(main())
