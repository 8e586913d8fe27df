#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
result.py COMMAND ARGUMENT... - checks files that virt-uprof wrote

    shares DOMAIN MIN FILE...
        There are at least MIN samples. function_1, function_2 and function_3 have 10, 30 and 60 %
        of them, within 2 points (within 7 if MIN is below 5000, within 1 if MIN is 20000), and all
        stacks follow the known chain of calls.
    stacks DOMAIN PERCENT REGEX FILE
        At least PERCENT of the samples match REGEX. REGEX is matched against the frames below the
        domain, joined by ';'.
    split DOMAIN POINTS MIN NAME=PERCENT,... FILE...
        At least MIN samples have one of the names. Each name has its share of them, within POINTS.
    agree DOMAIN FILE FILE
        Functions have the same shares in both files, within the random error of the smaller file.
    same PERCENT FILE FILE
        At least PERCENT of the samples have the same stack in both files, which are of one capture.
    total FILE...
        Prints the number of samples.
    holds CAPTURE SIDECAR
        For a busy guest whose vCPUs are held one by one: each sample is a separate hold, or a tick
        at which the vCPU had not run since its last sample. There are few such ticks.
    annotation FILE PROGRAM FUNCTION PERCENT
        The instructions of the annotation are those that objdump shows for the function, and PERCENT of
        its samples are on its loop: from the target of its jump backwards to this jump.
    hottest FILE kernel|user
        Prints the function in which most samples of this kind end, and their number.
    annotated FILE SAMPLES
        The annotation has this number of samples, each on an instruction whose text is known.
    sidecar FILE [EXPRESSION...]
        The sidecar has exactly the members that it must have, and each expression over them is true.

Exits 1 with the reason if a check fails.
"""

import collections
import json
import re
import struct
import subprocess
import sys

# Pairs of MIN and the tolerance in points. For few samples the tolerance is four standard deviations
# of a share of 60 %, for many samples it is less.
FEW_SAMPLES = 100
TOLERANCES = ((20000, 1), (5000, 2), (0, 7))
# The format of captures (include/uprof/capture.h): the header, the head of a record, types of
# records, and the first members of a REST: time, vCPU, weight, count.
HEADER_BYTES = 16
RECORD = struct.Struct("<II")
SNAPSHOT, REST = 3, 6
REST_HEAD = struct.Struct("<QIII")
CHAIN = re.compile(r"guest_entry;guest_main;main_loop;function_([123]);work")
# Rare samples: in main_loop or function_N itself. No caller may be missing, even at the first and
# last instructions of functions.
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
    "domain": "name uuid driver type arch vcpus",
    "rate": "asked_millihertz got_millihertz divisor",
    "samples": "total running idle",
    "ticks": "late busy skipped stuck",
    "stacks": "complete truncated unknown",
    "frames": "total named orc cfi code fp",
    "call_sites": "checked agreed",
    "hold_us": HISTOGRAM,
    "stopped_us": HISTOGRAM,
}
# The members of "waits", which only sidecars of runs with --waits have.
WAITS = "walks tasks incomplete time_ms total_us unknown_us"
IMAGE = "name build_id symbols guest_path matched module memory"
# The members of "linux", which only sidecars of Linux guests have.
LINUX = {
    "release": str, "btf": bool, "processes": bool, "symbols": int, "modules": int,
    "orc_rules": int, "orc_version": int, "kernel_stacks": int, "kernel_complete": int,
    "user_stacks": int, "user_complete": int,
}
ENDS = ("duration", "samples", "signal", "gone", "limit", "error")


def fail(why):
    sys.exit(f"result.py: {why}")


def read_folded(path):
    """Returns the pairs of stack and count in a folded file; checks the form of the lines."""
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
    """Yields the pairs of read_folded() without the domain, which must be the root of each stack."""
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
        # four standard deviations, and one point for rare functions
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
            # The innermost of the names gets the sample.
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


def same(percent, one, other):
    counts = [collections.Counter(dict(read_folded(path))) for path in (one, other)]
    n_all = sum(counts[1].values())
    n_same = sum((counts[0] & counts[1]).values())
    print(f"{n_same} of {n_all} samples have the same stack")
    if sum(counts[0].values()) != n_all or n_same * 100 < n_all * float(percent):
        other_stack = (counts[1] - counts[0]).most_common(1)
        fail(f"{n_same} of {n_all} samples have the same stack; the second file has {other_stack}")


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


def plain_text(text):
    """Removes what objdump adds: names of addresses, and a displacement of 0. Blanks are one blank."""
    return re.sub(r"\b0x0\(", "(", " ".join(re.sub(r"[<#].*", "", text).split()))


def disassemble(program, function):
    """Returns the address and the text of each instruction, as objdump shows them."""
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", program]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [re.fullmatch(r" *([0-9a-f]+):\t(.*)", line) for line in lines]
    return [(int(row[1], 16), plain_text(row[2])) for row in rows if row]


def find_loop(insns):
    """Returns the addresses of the instructions of the loop."""
    for address, text in insns:
        jump = re.fullmatch(r"j\w+ ([0-9a-f]+)", text)
        if jump and insns[0][0] <= int(jump[1], 16) <= address:
            return [at for at, _ in insns if int(jump[1], 16) <= at <= address]
    return fail(f"no jump backwards in {insns}")


def annotation(path, program, function, percent):
    with open(path, encoding="utf-8") as file:
        annotated = json.load(file)["annotation"]
    if len(annotated["functions"]) != 1:
        fail(f"{len(annotated['functions'])} functions {function}")
    rows = annotated["functions"][0]["instructions"]
    insns = disassemble(program, function)
    shown = [(row["address"], plain_text(row.get("text", "?"))) for row in rows]
    if not insns or shown != insns:
        fail(f"the instructions are {shown}; objdump shows {insns}")
    loop = find_loop(insns)
    n_loop = sum(row["samples"] for row in rows if row["address"] in loop)
    print(f"{n_loop} of {annotated['self']} samples are on the loop")
    if annotated["self"] != sum(row["samples"] for row in rows) or annotated["left_out"] != 0:
        fail(f"samples are missing: {annotated}")
    if annotated["self"] == 0 or n_loop * 100 < annotated["self"] * float(percent):
        fail(f"{n_loop} of {annotated['self']} samples are on the loop at {loop[0]:x}: {rows}")


def hottest(path, kind):
    sums = collections.Counter()
    for stack, count in read_folded(path):
        name = stack.rpartition(";")[2]
        if name.endswith("_[k]") == (kind == "kernel") and not name.startswith("["):
            sums[name] += count
    print(*sums.most_common(1)[0])


def annotated(path, samples):
    with open(path, encoding="utf-8") as file:
        found = json.load(file)["annotation"]
    rows = [row for function in found["functions"] for row in function["instructions"] if row["samples"]]
    if not rows or {found["self"], sum(row["samples"] for row in rows)} != {int(samples)} or found["left_out"]:
        fail(f"{samples} samples, but the annotation has {found}")
    if any(row.get("text", "(bad)") == "(bad)" for row in rows):
        fail(f"an instruction has no text: {rows}")
    print(f"{samples} samples on {len(rows)} instructions")


def check_linux(linux):
    """Checks the types of the facts of a Linux guest, and that no part is larger than its total."""
    if set(linux) != set(LINUX):
        fail(f"members of linux differ: {set(linux) ^ set(LINUX)}")
    for name, kind in LINUX.items():
        if type(linux[name]) is not kind or (kind is int and linux[name] < 0):
            fail(f"linux.{name} is {linux[name]!r}")
    for part in ("kernel", "user"):
        if linux[f"{part}_complete"] > linux[f"{part}_stacks"]:
            fail(f"more {part} stacks are complete than there are: {linux}")


def check_sidecar(facts):
    """Checks that the sidecar has exactly the documented members, with the right types."""
    if set(facts) - {"linux", "waits", "trigger"} != set(RUN):
        fail(f"members differ: {set(facts) ^ set(RUN)}")
    if not isinstance(facts.get("trigger", ""), str):  # only of `watch`
        fail(f"trigger is {facts['trigger']!r}")
    if "linux" in facts:
        check_linux(facts["linux"])
    if "waits" in facts and set(facts["waits"]) != set(WAITS.split()):
        fail(f"members of waits differ: {facts['waits']}")
    for name, kind in RUN.items():
        if type(facts[name]) is not kind:
            fail(f"{name} is {facts[name]!r}")
    for name, members in MEMBERS.items():
        found = set(facts[name]) - ({"vcpus_sampled"} if name == "domain" else set())  # only with --vcpu
        if found != set(members.split()):
            fail(f"members of {name} differ: {found ^ set(members.split())}")
        for member, value in facts[name].items():
            wanted = str if name == "domain" and not member.startswith("vcpus") else int
            if type(value) is not wanted or (wanted is int and value < 0):
                fail(f"{name}.{member} is {value!r}")
    for image in facts["images"]:
        if set(image) != set(IMAGE.split()) or type(image["matched"]) is not bool or \
                type(image["module"]) is not bool or type(image["memory"]) is not bool:
            fail(f"an image is {image}")
    if (facts["format"], facts["version"]) != ("virt-uprof-run", 1):
        fail(f"format {facts['format']!r}, version {facts['version']!r}")
    if facts["ended_by"] not in (("",) if "trigger" in facts else ENDS):
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
        # Percentiles are rounded to histogram bins, but lie between minimum and maximum.
        if hold["count"] and order != sorted(order):
            fail(f"{name} is not in order: {hold}")


def sidecar(path, *expressions):
    with open(path, encoding="utf-8") as file:
        facts = json.load(file, parse_float=lambda text: fail(f"a fraction: {text}"))
    check_sidecar(facts)
    for expression in expressions:
        # The expressions come from the tests.
        if not eval(expression, {}, facts):  # pylint: disable=eval-used
            fail(f"{path}: not so: {expression}; {json.dumps(facts)}")


COMMANDS = {"shares": shares, "stacks": stacks, "split": split, "agree": agree, "same": same, "total": total,
            "holds": holds, "annotation": annotation, "hottest": hottest, "annotated": annotated, "sidecar": sidecar}

if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
