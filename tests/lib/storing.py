# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes a store like `collect`: slices of made-up domains, the same for the same seed.

The stacks are like a server's: a few deep call trees with some hot leaves, and some hundred
different stacks in a slice of 20 s at 99 Hz on two vCPUs.
"""
import datetime
import gzip
import json
import os
import pathlib
import random
import re

DAY = 24 * 60 * 60
SAMPLES = 1980


def uuid_of(number):
    return f"{number:08x}-1d52-4d8f-b251-782e98ab3fa0"


def safe_name(name):
    """Returns what uprof_text_file_name() returns, for names that need not be cut."""
    out = ""
    for i, byte in enumerate(name.encode()):
        plain = re.match(rb"[A-Za-z0-9_.-]", bytes([byte])) and not (i == 0 and byte in b".-")
        out += chr(byte) if plain else f"%{byte:02X}"
    return out


def day_of(at):
    return at - at % DAY


def stamp(at):
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")


def day_name(at):
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%d")


def sidecar(name, uuid, at, samples, running, **more):
    started = datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
    facts = {
        "format": "virt-uprof-run", "version": 1, "program": "virt-uprof 0.1.0",
        "domain": {"name": name, "uuid": uuid, "driver": "QEMU", "arch": "x86_64", "vcpus": 2},
        "started": started.strftime("%Y-%m-%dT%H:%M:%SZ"), "duration_ms": 20001,
        "ended_by": "duration",
        "rate": {"asked_millihertz": 99000, "got_millihertz": 98940},
        "access": "direct", "access_why": "", "unwind": "auto",
        "samples": {"total": samples, "running": running, "idle": samples - running},
        "ticks": {"late": 0, "busy": 0, "skipped": 0, "stuck": 0},
        "stacks": {"complete": running, "truncated": 0, "unknown": 0},
        "frames": {"total": running * 12, "named": running * 12, "cfi": running * 11,
                   "code": 0, "fp": 0},
        "call_sites": {"checked": running * 11, "agreed": running * 11},
        "hold_us": {"count": running, "min": 16, "p50": 18, "p90": 21, "p99": 42, "max": 97,
                    "total": running * 19},
        "stopped_us": {"count": running, "min": 9, "p50": 11, "p90": 13, "p99": 30, "max": 80,
                       "total": running * 12},
        "held_share_ppm": 1180, "profiler_cpu_ms": 96,
        "images": [{"name": "[app]", "build_id": "3f2a91c0", "symbols": "/srv/app", "matched": True}],
        "files": [],
    }
    facts.update(more)
    return facts


def put_slice(store, name, uuid, at, stacks, weight=1, **more):
    """Writes one slice. @stacks: "main;work" -> count, without the domain. @weight: of each sample
    @more: members of the sidecar"""
    safe = safe_name(name)
    folder = pathlib.Path(store, "data", safe)
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(store, 0o750)
    stem = f"{safe}-{stamp(at)}"
    running = sum(stacks.values())
    lines = sorted(f"{name};{stack} {count * weight}\n".encode() for stack, count in stacks.items())
    facts = sidecar(name, uuid, at, running + 100, running, **more)
    facts["files"] = [stem + ".folded.gz"]
    (folder / (stem + ".folded.gz")).write_bytes(gzip.compress(b"".join(lines), 9, mtime=0))
    text = json.dumps(facts)
    # line ends as virt-uprof writes them, so that the sizes are similar
    for key in ("domain", "started", "rate", "samples", "stacks", "hold_us", "stopped_us",
                "held_share_ppm", "images", "files"):
        text = text.replace(f'"{key}":', f'\n "{key}":', 1)
    (folder / (stem + ".meta.json")).write_text(text + "\n")
    return stem


class Program:
    """Call paths of one made-up program, with the weight of each."""

    def __init__(self, seed, n_paths=400):
        rng = random.Random(seed)
        words = ["alloc", "read", "write", "poll", "parse", "copy", "hash", "lock", "send",
                 "recv", "flush", "encode", "decode", "lookup", "insert", "timer", "queue"]
        names = [f"{rng.choice(words)}_{rng.choice(words)}_{i:03d}" for i in range(220)]
        # each function calls a few later functions, so that stacks share their callers
        callees = [rng.sample(range(i + 1, min(i + 25, 220)), min(3, 219 - i)) for i in range(220)]
        paths = set()
        while len(paths) < n_paths:
            path, at = ["_start", "main", f"thread_{rng.randrange(4)}", "event_loop"], rng.randrange(4)
            while callees[at] and len(path) < 24 and (len(path) < 7 or rng.random() < 0.85):
                path.append(names[at])
                at = rng.choice(callees[at])
            paths.add(";".join(path))
        self.paths = sorted(paths)
        self.weights = [rng.paretovariate(1.1) for _ in self.paths]

    def stacks(self, rng, n=SAMPLES):
        counts = {}
        for path in rng.choices(self.paths, self.weights, k=n):
            counts[path] = counts.get(path, 0) + 1
        return counts
