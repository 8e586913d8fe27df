# SPDX-License-Identifier: LGPL-2.1-or-later
"""The processes of a run: the program, its guardian, its spawner, and a worker of the spawner."""

# exit codes of virt-uprof(1) of a run that has lost a process: its samples are kept, they are lost and the
# run failed, or it has no sample
DONE, FAILED, NO_SAMPLE = 0, 1, 5


def find_child(pid, name):
    """A child of the process @pid with this name, or None."""
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
    """The process @name of the run whose program has the number @program, or None."""
    if name == "program":
        return program
    if name != "worker":
        return find_child(program, "uprof-" + name)
    spawner = find_child(program, "uprof-spawner")
    return spawner and find_child(spawner, "uprof-worker")


def check_loss(code, output, said):
    """What is wrong with the end of a run that has lost its worker, alone or with the spawner. @output: its
    folded file. @said: its stderr"""
    if code not in (DONE, FAILED, NO_SAMPLE):
        return f"exit {code}: {said}"
    if "the process that analyzes its samples has failed" not in said:
        return f"no word of the worker's death: {said}"
    if code == DONE and not output.exists():
        return f"no output: {said}"
    if output.exists() and not output.read_bytes().endswith(b"\n"):
        return f"no whole output: {said}"
    return None
