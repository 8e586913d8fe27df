#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
result.py COMMAND ARGUMENT... - looks at what virt-uprof wrote

    shares DOMAIN MIN FILE...      10/30/60 % in function_1/2/3 within 2 points (7 where MIN
                                   is below 5000, 1 where it is 20000), at MIN samples or
                                   more, through the known chain
    stacks DOMAIN PERCENT REGEX FILE  at least PERCENT of samples match REGEX, which
                                   sees the frames below the domain, joined by ';'
    split DOMAIN POINTS MIN NAME=PERCENT,... FILE...  of the samples with any of the names,
                                   MIN or more, each has its share, within POINTS
    agree DOMAIN FILE FILE         functions have the same shares in both, within what chance
                                   does to the smaller
    total FILE...                  prints how many samples
    holds CAPTURE SIDECAR          of a busy guest whose vCPUs are held one by one: each sample is
                                   a hold of its own, or a tick in which its vCPU had not run since
                                   the one before; of the latter there are few
    sidecar FILE [EXPRESSION...]   the members of the sidecar are what they must be,
                                   and each expression over them is true

Exits 1 and says why if something is not so.
"""

import json
import re
import struct
import sys

# Points by the least number of samples. Of few chance takes its part: four times its
# usual part for a share of 60 %, less of many.
FEW_SAMPLES = 100
TOLERANCES = ((20000, 1), (5000, 2), (0, 7))
# The capture file, as include/uprof/capture.h has it: its header, the head of a record, kinds of
# records, and how a rest begins: its time, vCPU, weight, count.
HEADER_BYTES = 16
RECORD = struct.Struct("<II")
SNAPSHOT, REST = 3, 6
REST_HEAD = struct.Struct("<QIII")
CHAIN = re.compile(r"guest_entry;guest_main;main_loop;function_([123]);work")
# What runs in main_loop or in function_N itself, which is rare; no function on
# the way to it is ever missing, also not at the edges of functions.
ON_THE_WAY = re.compile(r"guest_entry(;guest_main(;main_loop(;function_[123])?)?)?")
ON_THE_WAY_PERCENT_MAX = 4

RUN = {
    "format": str, "version": int, "program": str, "domain": dict, "started": str,
    "duration_ms": int, "ended_by": str, "rate": dict, "access": str,
    "access_why": str, "unwind": str,
    "samples": dict, "ticks": dict, "stacks": dict, "frames": dict, "call_sites": dict,
    "hold_us": dict, "stopped_us": dict, "held_share_ppm": int, "profiler_cpu_ms": int,
    "images": list, "files": list,
}
HISTOGRAM = "count min p50 p90 p99 max total"
MEMBERS = {
    "domain": "name uuid driver arch vcpus",
    "rate": "asked_millihertz got_millihertz",
    "samples": "total running idle",
    "ticks": "late busy skipped stuck",
    "stacks": "complete truncated unknown",
    "frames": "total named orc cfi leaf fp",
    "call_sites": "checked agreed",
    "hold_us": HISTOGRAM,
    "stopped_us": HISTOGRAM,
}
IMAGE = "name build_id symbols matched module"
# Of Linux guests alone.
LINUX = {
    "release": str, "btf": bool, "processes": bool, "symbols": int, "modules": int,
    "orc_rules": int, "orc_version": int, "kernel_stacks": int, "kernel_complete": int,
    "user_stacks": int, "user_complete": int,
}
ENDS = ("duration", "signal", "gone", "limit", "error")


def fail(why):
    sys.exit(f"result.py: {why}")


def read_folded(path):
    """Pairs of stack and count; the form of the lines is checked."""
    with open(path, "rb") as file:
        data = file.read()
    if data and not data.endswith(b"\n"):
        fail(f"{path}: the last line is cut")
    lines = data.splitlines()
    if lines != sorted(lines):
        fail(f"{path}: not sorted")
    stacks = []
    for line in lines:
        stack, blank, count = line.decode().rpartition(" ")
        if not blank or not re.fullmatch("[1-9][0-9]*", count) or ";" not in stack:
            fail(f"{path}: not a folded stack: {line!r}")
        stacks.append((stack, int(count)))
    return stacks


def below(domain, path):
    """The same without the domain, which must be the root of each."""
    for stack, count in read_folded(path):
        root, _, rest = stack.partition(";")
        if root != domain:
            fail(f"{path}: {stack!r} does not begin with {domain!r}")
        yield rest, count


def shares(domain, least, *paths):
    counts = {"1": 0, "2": 0, "3": 0}
    total = on_the_way = 0
    for path in paths:
        for stack, count in below(domain, path):
            total += count
            chain = CHAIN.fullmatch(stack)
            if chain:
                counts[chain[1]] += count
            elif ON_THE_WAY.fullmatch(stack):
                on_the_way += count
                named = re.search("function_([123])", stack)
                if named:
                    counts[named[1]] += count
            else:
                fail(f"not the guest's chain: {stack!r}, {count} times")
    if total < int(least):
        fail(f"{total} samples, {least} are wanted")
    if on_the_way * 100 > total * ON_THE_WAY_PERCENT_MAX:
        fail(f"{on_the_way} of {total} stacks are not the whole chain")
    tolerance = next(points for samples, points in TOLERANCES if int(least) >= samples)
    for name, want in (("1", 10), ("2", 30), ("3", 60)):
        share = 100 * counts[name] / total
        print(f"{domain}: function_{name}: {share:.2f} %, should be {want}")
        if abs(share - want) > tolerance:
            fail(f"function_{name} has {share:.2f} % of {total} samples, should have {want}")
    print(f"{domain}: {total} samples, {on_the_way} in callers of work")


def stacks(domain, percent, regex, path):
    good = total = 0
    bad = {}
    for stack, count in below(domain, path):
        total += count
        if re.fullmatch(regex, stack):
            good += count
        else:
            bad[stack] = count
    if total == 0:
        fail(f"{path}: no stacks")
    print(f"{domain}: {good} of {total} samples are {regex}")
    if good * 100 < total * float(percent):
        worst = sorted(bad.items(), key=lambda pair: -pair[1])[:5]
        fail(f"{good} of {total} samples are {regex!r}, the others: {worst}")


def count_names(domain, path):
    counts = {}
    for stack, count in below(domain, path):
        for name in set(stack.split(";")):
            counts[name] = counts.get(name, 0) + count
    return counts, sum(count for _, count in read_folded(path))


def agree(domain, one, other):
    counts, total_counts = zip(*(count_names(domain, path) for path in (one, other)))
    if min(total_counts) < FEW_SAMPLES:
        fail(f"only {min(total_counts)} samples")
    for name in sorted(set(counts[0]) | set(counts[1])):
        shares = [counts[i].get(name, 0) / total_counts[i] for i in (0, 1)]
        share = sum(shares) / 2
        # four times the usual part of chance; what is rare may be missing
        tolerance = 4 * (share * (1 - share) / min(total_counts)) ** 0.5 + 0.01
        print(f"{domain}: {name}: {shares[0]:.2%} and {shares[1]:.2%}, may differ by {tolerance:.2%}")
        if abs(shares[0] - shares[1]) > tolerance:
            fail(f"'{name}' has {shares[0]:.2%} of {total_counts[0]} and {shares[1]:.2%} of "
                 f"{total_counts[1]} samples")


def split(domain, points, least, names, *paths):
    wanted = {name: float(percent) for name, _, percent in
              (pair.partition("=") for pair in names.split(","))}
    counts = dict.fromkeys(wanted, 0)
    for path in paths:
        for stack, count in below(domain, path):
            # The innermost one has the sample.
            owner = next((name for name in reversed(stack.split(";")) if name in wanted), None)
            if owner:
                counts[owner] += count
    n_samples = sum(counts.values())
    if n_samples < int(least):
        fail(f"{n_samples} samples with {list(wanted)}, {least} are wanted")
    for name, percent in wanted.items():
        share = 100 * counts[name] / n_samples
        print(f"{domain}: {name}: {share:.2f} %, should be {percent:g}")
        if abs(share - percent) > float(points):
            fail(f"'{name}' has {share:.2f} % of {n_samples} samples, should have {percent:g}")


def total(*paths):
    print(sum(count for path in paths for _, count in read_folded(path)))


def holds(capture, path):
    with open(capture, "rb") as file:
        data = file.read()
    at, held, rested = HEADER_BYTES, 0, 0
    while at + RECORD.size <= len(data):
        kind, size = RECORD.unpack_from(data, at)
        at += RECORD.size
        held += kind == SNAPSHOT
        rested += REST_HEAD.unpack_from(data, at)[3] if kind == REST else 0
        at += size
    with open(path, encoding="utf-8") as file:
        run = json.load(file)
    if run["hold_us"]["count"] != held or run["samples"]["total"] != held + rested:
        fail(f"{held} holds and {rested} rests in the capture; {run['hold_us']}, {run['samples']}")
    if rested * 5 > held:
        fail(f"{held} holds, and {rested} ticks without one")


def check_linux(linux):
    """What is told of a Linux guest, of the right types; no part is larger than its whole."""
    if set(linux) != set(LINUX):
        fail(f"members of linux differ: {set(linux) ^ set(LINUX)}")
    for name, kind in LINUX.items():
        if type(linux[name]) is not kind or (kind is int and linux[name] < 0):
            fail(f"linux.{name} is {linux[name]!r}")
    for part in ("kernel", "user"):
        if linux[f"{part}_complete"] > linux[f"{part}_stacks"]:
            fail(f"more {part} stacks are complete than there are: {linux}")


def check_sidecar(facts):
    """Exactly the members of section 8 of the format's text, of the right types."""
    if set(facts) - {"linux"} != set(RUN):
        fail(f"members differ: {set(facts) ^ set(RUN)}")
    if "linux" in facts:
        check_linux(facts["linux"])
    for name, kind in RUN.items():
        if type(facts[name]) is not kind:
            fail(f"{name} is {facts[name]!r}")
    for name, members in MEMBERS.items():
        if set(facts[name]) != set(members.split()):
            fail(f"members of {name} differ: {set(facts[name]) ^ set(members.split())}")
        for member, value in facts[name].items():
            wanted = str if name == "domain" and member != "vcpus" else int
            if type(value) is not wanted or (wanted is int and value < 0):
                fail(f"{name}.{member} is {value!r}")
    for image in facts["images"]:
        if set(image) != set(IMAGE.split()) or type(image["matched"]) is not bool or \
                type(image["module"]) is not bool:
            fail(f"an image is {image}")
    if (facts["format"], facts["version"]) != ("virt-uprof-run", 1):
        fail(f"format {facts['format']!r}, version {facts['version']!r}")
    if facts["ended_by"] not in ENDS:
        fail(f"ended_by is {facts['ended_by']!r}")
    if not re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", facts["started"]):
        fail(f"started is {facts['started']!r}")
    counts, ends = facts["samples"], facts["stacks"]
    if counts["total"] != counts["running"] + counts["idle"]:
        fail(f"samples do not add up: {counts}")
    if counts["running"] != sum(ends.values()):
        fail(f"running is not complete + truncated + unknown: {counts}, {ends}")
    for name in ("hold_us", "stopped_us"):
        hold = facts[name]
        order = [hold[key] for key in ("min", "p50", "p90", "p99", "max")]
        # Percentiles are those of bins a twelfth wide, and no more than the extremes.
        if hold["count"] and order != sorted(order):
            fail(f"{name} is not in order: {hold}")


def sidecar(path, *expressions):
    with open(path, encoding="utf-8") as file:
        facts = json.load(file, parse_float=lambda text: fail(f"a fraction: {text}"))
    check_sidecar(facts)
    for expression in expressions:
        # Of our own tests, over our own file.
        if not eval(expression, {}, facts):  # pylint: disable=eval-used
            fail(f"{path}: not so: {expression}; {json.dumps(facts)}")


COMMANDS = {"shares": shares, "stacks": stacks, "split": split, "agree": agree, "total": total,
            "holds": holds, "sidecar": sidecar}

if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
