#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
store.py STORE [NAME=COUNT...] - checks the files of rounds

Each sidecar has its profile, and the numbers in both agree. A profile without a sidecar is
complete, too. The store has no other files, and other users cannot read it. With NAMEs, each
domain NAME has COUNT slices ("N+" means N or more), and no other domain has slices. Exits 1 with
the reason if a check fails.
"""

import gzip
import json
import pathlib
import re
import stat
import sys

SLICE = re.compile(r"(.+)-\d{8}T\d{6}Z(\.folded\.gz|\.functions\.gz|\.meta\.json)")
FAILURES = re.compile(r"(.+)-\d{8}\.failures")
STACK = re.compile(rb"[^ ;][^;]*(;[^;]+)+ \d+")


def fail(why):
    sys.exit(f"store.py: {why}")


def safe(name):
    """The name of a domain's folder, for names that are not cut."""
    plain = re.sub(rb"[^A-Za-z0-9_.-]", lambda m: b"%%%02X" % m[0][0], name.encode()).decode()
    return re.sub(r"^[.-]", lambda m: "%%%02X" % ord(m[0]), plain)


def check_profile(path):
    try:
        lines = gzip.decompress(path.read_bytes()).splitlines()
    except (OSError, EOFError) as error:
        fail(f"{path} is damaged: {error}")
    if any(not STACK.fullmatch(line) for line in lines):
        fail(f"{path} has lines that are no stacks")
    return sum(int(line.rpartition(b" ")[2]) for line in lines)


def check_slice(sidecar):
    base = sidecar.name.removesuffix(".meta.json")
    try:
        run = json.loads(sidecar.read_text())
    except ValueError as error:
        fail(f"{sidecar} is damaged: {error}")
    profile = sidecar.with_name(base + ".folded.gz")
    if not profile.exists():
        fail(f"{sidecar} has no profile")
    functions = sidecar.with_name(base + ".functions.gz")
    if run["files"] != [*([functions.name] if functions.exists() else []), profile.name, sidecar.name]:
        fail(f"{sidecar} is of the files {run['files']}")
    if safe(run["domain"]["name"]) != sidecar.parent.name:
        fail(f"{sidecar} is of '{run['domain']['name']}'")
    total = check_profile(profile)
    if total < run["samples"]["running"] or run["samples"]["total"] == 0:
        fail(f"{profile} has {total} samples, its sidecar says {run['samples']}")
    if not all(image["build_id"] for image in run["images"]) or not run["images"]:
        fail(f"{sidecar}: images without build-id: {run['images']}")
    return run["domain"]["name"]


def main():
    data = pathlib.Path(sys.argv[1]) / "data"
    counts = {}
    for path in sorted(data.rglob("*")):
        if stat.S_IMODE(path.lstat().st_mode) & 0o027:
            fail(f"others may look into {path}")
        if path.is_dir() and path.parent == data:
            continue
        match = SLICE.fullmatch(path.name) or FAILURES.fullmatch(path.name)
        if not path.is_file() or not match or match[1] != path.parent.name:
            fail(f"{path} is none of a store's files")
        if path.name.endswith(".folded.gz"):
            check_profile(path)
        elif path.name.endswith(".meta.json"):
            name = check_slice(path)
            counts[name] = counts.get(name, 0) + 1
    print(counts)
    for word in sys.argv[2:]:
        name, _, count = word.rpartition("=")
        found = counts.pop(name, 0)
        if found < int(count.rstrip("+")) or (found > int(count.rstrip("+")) and not count.endswith("+")):
            fail(f"{found} slices of '{name}', not {count}; others: {counts}")
    if len(sys.argv) > 2 and counts:
        fail(f"nobody wants {counts}")


if __name__ == "__main__":
    main()
