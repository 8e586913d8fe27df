#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
tasks.py BEFORE AFTER PS DUMP - compares `ps --json` and `dump --tasks --json` with the guest's own /proc

BEFORE and AFTER are the lines STATE that the guest has printed (tests/linux/init.c) before and after
virt-uprof read its memory. Tasks that did not run in between, by their counts of switches, must agree in
everything. No task that lived all the time may be missing, and no other may be there.

tasks.py --restless BEFORE AFTER FOLDER - checks lists of a guest in which tasks come and go

FOLDER has lists N.ps and N.dump. Each list must have all tasks that are in BEFORE and in AFTER, and agree in
those that did not run in between. Other tasks are children of the load `forks`, or threads of the kernel.

Prints one line for each fault, and at the end the number of tasks that were compared. Exits 0 if there
is no fault, and enough tasks.
"""

import json
import pathlib
import re
import sys
import urllib.parse

STATES_MIN = 60  # tasks that must be compared
KINDS = "SDITZ"  # states that must occur
HZ = 100  # of the times in /proc/PID/stat
SPINNER, SPINNERS = "user", 2  # a load that never waits
KTHREADD = 2  # the parent of all other threads of the kernel
SERVICE, SERVICE_MIN = "web.service", 100  # the cgroup of the load `waits`, and the tasks in it
# Outermost functions of a stack of the kernel
ENTRIES = re.compile(r"ret_from_fork|entry_SYSCALL_64|asm_(sysvec|exc|common)_|error_|common_interrupt")


def read_states(path):
    """Returns the files of each thread: {tid: {name: text}}."""
    states = {}
    for line in open(path, encoding="utf-8", errors="replace"):
        word, *rest = line.split()
        if word == "STATE":
            files = dict(part.split("=", 1) for part in rest[2:])
            states[int(rest[1])] = {name: urllib.parse.unquote(text, "latin-1") for name, text in files.items()}
    return states


def find_status(files, key):
    found = re.search(rf"^{key}:\s*(.*)$", files["status"], re.M)
    return found.group(1).split() if found else []


def count_switches(files):
    if "switches" not in files:
        files["switches"] = add_switches(files)
    return files["switches"]


def add_switches(files):
    return sum(int(find_status(files, key)[0]) for key in ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"))


def clean_name(name):
    return "".join(c if " " <= c < "\x7f" else "?" for c in name)


def label_cgroup(files):
    """Returns the name that the program shows: that of the service, or the path."""
    path = re.search(r"^0::(/.*)$", files["cgroup"], re.M).group(1)
    return path.rsplit("/", 1)[1] if path.endswith(".service") else path


def describe(files):
    """Returns what /proc says of a thread, with the keys of `ps --json`. It is made once, and kept in @files."""
    if "row" not in files:
        files["row"] = make_row(files)
    return files["row"]


def make_row(files):
    stat = files["stat"]
    name, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
    call = files["syscall"].split()[:1]
    inner = find_status(files, "NSpid")
    row = {
        "name": clean_name(name),
        "state": rest[0],
        "parent": int(rest[1]),
        "user": int(rest[11]),
        "system": int(rest[12]),
        "began": int(rest[19]),
        "inner_tid": int(inner[-1]),
        "namespace_depth": len(inner) - 1,
        "kernel": bool(int(rest[6]) & 0x200000),
        "waits_in": None if files["wchan"] in ("0", "") else files["wchan"],
        "syscall_number": None,
        "cgroup": label_cgroup(files),
    }
    if call and call[0] not in ("running", "-1") and not row["kernel"] and row["state"] not in "ZX":
        row["syscall_number"] = int(call[0])
    return row


def convert(row):
    """Returns the same of a row of `ps --json`."""
    tick = 10**9 // HZ
    keys = ("name", "state", "parent", "inner_tid", "namespace_depth", "kernel")
    return {key: row[key] for key in keys} | {
        "user": row["user_ns"] // tick,
        "system": row["system_ns"] // tick,
        "began": row["began_ns"] // tick,
        "waits_in": row.get("waits_in"),
        "syscall_number": row.get("syscall_number"),
        "cgroup": row.get("cgroup"),
    }


def compare_rows(before, after, rows):
    """Returns the faults, and the tasks that were compared with their descriptions."""
    faults, same = [], {}
    for tid in sorted(before.keys() & after.keys() - rows.keys()):
        faults.append(f"task {tid} is missing: {before[tid]['stat'][:60]}")
    for tid in sorted(rows.keys() - before.keys() - after.keys()):
        faults.append(f"there is no task {tid}: {rows[tid]}")
    for tid in sorted(before.keys() & after.keys() & rows.keys()):
        switches = {count_switches(before[tid]), count_switches(after[tid]), rows[tid]["switches"]}
        if len(switches) > 1 or rows[tid]["state_name"] == "running":
            continue
        theirs, ours = describe(before[tid]), convert(rows[tid])
        same[tid] = theirs
        faults += [f"task {tid}: {key} is {ours[key]!r}, not {theirs[key]!r}" for key in theirs if ours[key] != theirs[key]]
    return faults, same


def choose_name(name):
    """The entry of a system call has several names for the same code."""
    return re.sub("^__(x64|se|do)_sys_", "__do_sys_", name)


def kernel_names(stack):
    names = [frame["name"] for frame in stack["frames"]]
    return [choose_name(name[: -len("_[k]")]) for name in names if name.endswith("_[k]")]


def compare_stacks(before, same, dump):
    """Returns the faults, and how many stacks were compared: those that the guest itself shows.

    The guest leaves out the functions of the scheduler, which are innermost.
    """
    faults, stacks = [], {}
    for stack in dump["stacks"]:
        for task in stack["tasks"]:
            stacks[task["tid"]] = (stack, task["switches"])
    n = 0
    for tid in same:
        theirs = [choose_name(name) for name in re.findall(r"^\[<0>\] ([^+]+)\+", before[tid]["stack"], re.M)]
        if tid not in stacks:
            faults.append(f"task {tid} has no stack")
            continue
        stack, switches = stacks[tid]
        if switches != count_switches(before[tid]):
            continue
        if not theirs:
            continue
        ours = kernel_names(stack)
        n += 1
        if ours[len(ours) - len(theirs) :] != theirs or not 1 <= len(ours) - len(theirs) <= 8:
            faults.append(f"task {tid}: the stack is {ours}, not {theirs}")
    return faults, n


def check_spinners(before, after, rows):
    """A task that never waits is on its CPU or runnable, and its times grow."""
    faults, n = [], 0
    for tid in before.keys() & after.keys() & rows.keys():
        first, last, ours = describe(before[tid]), describe(after[tid]), convert(rows[tid])
        if first["name"] != SPINNER:
            continue
        n += 1
        for key in ("name", "state", "parent", "kernel", "began"):
            if ours[key] != first[key]:
                faults.append(f"spinner {tid}: {key} is {ours[key]!r}, not {first[key]!r}")
        if not first["user"] <= ours["user"] <= last["user"]:
            faults.append(f"spinner {tid}: {ours['user']} ticks, not {first['user']} to {last['user']}")
    return faults + ([] if n == SPINNERS else [f"{n} spinners, not {SPINNERS}"])


def check_transient(before, rows, tid):
    """Returns the faults in the row of a task that has begun or ended meanwhile."""
    row = rows[tid]
    parents = {number for number, files in before.items() if describe(files)["name"] == "forks"}
    if row["kernel"] and row["parent"] == KTHREADD and row["name"].startswith("kworker/"):
        return []
    if row["parent"] in parents and row["name"] in ("forks", "forked") and row["tid"] == row["pid"]:
        return []
    return [f"there is no task {tid}: {row}"]


def check_ends(dump):
    """Each whole stack of the kernel ends where the kernel was entered."""
    faults = []
    for stack in dump["stacks"]:
        names = kernel_names(stack)
        if stack["complete"] and names and not ENTRIES.match(names[-1]):
            faults.append(f"{stack['tasks'][0]['name']}: the stack is {names}")
    return faults


def check_runner(first, last, ours):
    """Returns the faults in the row of a task that has run meanwhile: some members never change, times grow."""
    keys = ["parent", "began", "inner_tid", "namespace_depth", "kernel", "cgroup"]
    if not first["name"].startswith("kworker/"):
        keys.append("name")
    elif not ours["name"].startswith("kworker/"):
        return [f"name is {ours['name']!r}, not {first['name']!r}"]
    faults = [f"{key} is {ours[key]!r}, not {first[key]!r}" for key in keys if ours[key] != first[key]]
    # The kernel divides the time of a task between both by a ratio that goes up and down. Both are rounded down.
    least, time, most = (row["user"] + row["system"] for row in (first, ours, last))
    if not least - 1 <= time <= most + 1:
        faults.append(f"its time is {time}, not {least} to {most}")
    return faults


def check_list(before, after, listed):
    """Returns the faults in one list, and the tasks that were compared."""
    rows = {task["tid"]: task for task in listed["tasks"]}
    faults, same = [], {}
    lived = {tid for tid in before.keys() & after.keys() if describe(before[tid])["began"] == describe(after[tid])["began"]}
    if len(rows) != len(listed["tasks"]) or not listed["complete"]:
        faults.append(f"complete: {listed['complete']}, {len(listed['tasks'])} rows of {len(rows)} tasks")
    for tid in sorted(lived - rows.keys()):
        faults.append(f"task {tid} is missing: {before[tid]['stat'][:60]}")
    for tid in sorted(rows):
        if tid not in lived:
            faults += check_transient(before, rows, tid)
        elif count_switches(before[tid]) == count_switches(after[tid]) and rows[tid]["state_name"] != "running":
            same[tid] = theirs = describe(before[tid])
            ours = convert(rows[tid])
            faults += [f"task {tid}: {key} is {ours[key]!r}, not {theirs[key]!r}" for key in theirs if ours[key] != theirs[key]]
        else:
            more = check_runner(describe(before[tid]), describe(after[tid]), convert(rows[tid]))
            faults += [f"task {tid}, which has run: {fault}" for fault in more]
    return faults, same


def check_restless(before, after, folder):
    faults, n_rows, n_same, n_stacks = [], 0, 0, 0
    lists = sorted(pathlib.Path(folder).glob("*.ps"))
    for path in lists:
        listed = json.loads(path.read_text(encoding="utf-8"))
        dump = json.loads(path.with_suffix(".dump").read_text(encoding="utf-8"))
        more, same = check_list(before, after, listed)
        wrong, n = compare_stacks(before, same, dump)
        faults += [f"{path.stem}: {fault}" for fault in more + wrong + check_ends(dump)]
        n_rows, n_same, n_stacks = n_rows + len(listed["tasks"]), n_same + len(same), n_stacks + n
    if n_same < STATES_MIN * len(lists) or not lists:
        faults.append(f"only {n_same} rows of tasks that did not run")
    return faults, f"{len(lists)} lists of {n_rows} tasks, {n_same} of them compared, {n_stacks} stacks"


def check_whole(listed, rows):
    if listed["complete"] and not listed["missing"] and len(rows) == len(listed["tasks"]):
        return []
    return [
        f"complete: {listed['complete']}, missing: {listed['missing']}, {len(listed['tasks'])} rows of {len(rows)} tasks"
    ]


def main():
    if sys.argv[1] == "--restless":
        faults, summary = check_restless(read_states(sys.argv[2]), read_states(sys.argv[3]), sys.argv[4])
        print(*faults, f"{summary}, {len(faults)} faults", sep="\n")
        return 1 if faults else 0
    before, after = read_states(sys.argv[1]), read_states(sys.argv[2])
    listed = json.load(open(sys.argv[3], encoding="utf-8"))
    rows = {task["tid"]: task for task in listed["tasks"]}
    faults = check_whole(listed, rows)
    more, same = compare_rows(before, after, rows)
    faults += more + check_spinners(before, after, rows)
    n_served = sum(row["cgroup"] == SERVICE for row in same.values())
    if n_served < SERVICE_MIN:
        faults.append(f"only {n_served} tasks in {SERVICE}")
    if len(same) < STATES_MIN or not set(KINDS) <= {row["state"] for row in same.values()}:
        faults.append(f"only {len(same)} tasks did not run, in states {sorted({row['state'] for row in same.values()})}")
    more, n_stacks = compare_stacks(before, same, json.load(open(sys.argv[4], encoding="utf-8")))
    faults += more
    if n_stacks < STATES_MIN:
        faults.append(f"only {n_stacks} stacks")
    for fault in faults:
        print(fault)
    print(f"{len(rows)} tasks, {len(same)} of them compared, {n_stacks} stacks, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
