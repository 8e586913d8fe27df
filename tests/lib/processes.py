# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the processes of a run: the program, its guardian, its spawner, and a worker."""

# Exit codes of a run that has lost a process: samples kept, run failed, no sample taken.
DONE, FAILED, NO_SAMPLE = 0, 1, 5


def find_child(pid, name):
    """Returns a child with this name of the process @pid, or None."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            children = file.read().split()
        for child in children:
            with open(f"/proc/{child}/comm", encoding="utf-8") as file:
                if file.read().strip() == name:
                    return int(child)
    except OSError:  # a process has just ended
        pass
    return None


def find_process(program, name):
    """Returns the pid of the process @name of a run, or None. @program: the pid of its program"""
    if name == "program":
        return program
    if name != "worker":
        return find_child(program, "uprof-" + name)
    spawner = find_child(program, "uprof-spawner")
    return spawner and find_child(spawner, "uprof-worker")


def check_loss(code, output, said):
    """Checks the end of a run whose worker or spawner was killed. @output: the run's folded file.
    @said: its stderr. Returns the fault, or None."""
    if code not in (DONE, FAILED, NO_SAMPLE):
        return f"exit {code}: {said}"
    if "the process that analyzes its samples has failed" not in said:
        return f"the worker's death is not reported: {said}"
    if code == DONE and not output.exists():
        return f"no output: {said}"
    if output.exists() and not output.read_bytes().endswith(b"\n"):
        return f"the output is incomplete: {said}"
    return None
