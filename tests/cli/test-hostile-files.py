#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
test-hostile-files.py PROGRAM MAKE-CAPTURE [PLACE...] - hostile files in each place where a tenant's file can stand

Prints TAP. Needs no hypervisor; only root can make devices. Each run ends within 10 s and 512 MiB
with a documented exit code, prints a line if it fails, opens no device, pipe or socket, and makes
or changes no file but its output. Each place is also tested with a good file, so that the test notices if virt-uprof
no longer reads the place.
"""

import functools
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import hostile_files  # noqa: E402
import storing  # noqa: E402

CODES = (0, 1, 3, 4, 5, 6)
TIME_MAX_S = 10
MEMORY_MAX_MIB = 512
HANG_S = 60
DAY = storing.DAY
UUID = storing.uuid_of(1)
MAY_CHANGE = ("out", "err", "work/output")
BUILD_ID = bytes.fromhex("3f2a91c0")
FOLDED = "vm;[app+0x10];[app+0x210] 3\n"
NAMED = "main;work"
NAMED_CAPTURE = "main;function_1;work"


class Place:
    """A path from which a command reads a file, or to which it writes one. @words: the command.
    @prepare: puts the file there. @good: a part of the output if the file is good. @opens: kinds of
    files that may be opened."""

    def __init__(self, name, words, prepare, good, opens=()):
        self.name, self.words, self.prepare, self.good, self.opens = name, words.split(), prepare, good, opens


@functools.lru_cache(maxsize=None)
def crc_of(path):
    crc = 0
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            crc = zlib.crc32(data, crc)
    return crc


def copy(path, target):
    """Puts a file at @target: a symbolic link as a link to the same file, others as a hard link."""
    if path.is_symlink():
        target.symlink_to(path.parent / os.readlink(path))
    elif path.is_file():
        os.link(path, target)
    else:
        os.link(path, target, follow_symlinks=False)


class Work:
    """The folder of one run. Its files are links to files that all runs share."""

    def __init__(self, shared, folder):
        self.shared = shared
        self.folder = folder

    def put(self, name, source):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy(source, self.folder / name)

    def put_capture(self):
        self.put("guest.capture", self.shared / "good/guest.capture")

    def put_folded(self):
        (self.folder / "x.folded").write_text(FOLDED)

    def put_sidecar(self, is_module=False):
        image = {"name": "[app]", "build_id": BUILD_ID.hex(), "symbols": "", "matched": False, "module": is_module}
        facts = storing.sidecar("vm", UUID, storing.day_of(int(time.time())), 3, 3, images=[image])
        (self.folder / "x.meta.json").write_text(json.dumps(facts))

    def put_linked(self, path):
        """Writes an image without names, whose .gnu_debuglink has the CRC of @path."""
        crc = crc_of(path) if path.is_file() else 1
        link = hostile_files.pack_link("linked.debug")[:-4] + crc.to_bytes(4, "little")
        hostile_files.write_elf(self.folder / "app", bytes(24), b"\0", link=link)

    def put_slice(self, ago):
        """Returns: the path of a new slice without its endings"""
        at = storing.day_of(int(time.time())) - ago * DAY + 3600
        stem = storing.put_slice(self.folder / "store", "vm", UUID, at, {"main;work": 3})
        (self.folder / "config.xml").write_text(f'<virt-uprof><store directory="{self.folder / "store"}" '
                                                'minFreeMegabytes="0"/></virt-uprof>\n')  # fmt: skip
        (self.folder / "config.xml").chmod(0o644)
        return self.folder / "store/data/vm" / stem

    def replace_slice(self, ending, path):
        self.put_slice(2)
        target = pathlib.Path(str(self.put_slice(1)) + ending)
        if path.name != "good":
            target.unlink()
            copy(path, target)


def prepare_symbols(work, path):
    work.put_capture()
    work.put("app", path)


def prepare_symbols_of_stacks(work, path):
    work.put_folded()
    work.put_sidecar()
    work.put("app", path)


def prepare_beside(work, path):
    work.put_capture()
    hostile_files.write_elf(work.folder / "app", bytes(24), b"\0")
    work.put("app.dbg", path)


def prepare_debuglink(work, path):
    work.put_capture()
    work.put_linked(path)
    work.put("linked.debug", path)


def prepare_debuglink_below(work, path):
    work.put_capture()
    work.put_linked(path)
    work.put(".debug/linked.debug", path)


def prepare_module(path_of_module):
    """Returns: a function that puts the file where the symbols of a module are looked for"""

    def prepare(work, path):
        work.put_folded()
        work.put_sidecar(is_module=True)
        work.put(path_of_module, path)

    return prepare


def prepare_sysroot(work, path):
    """Puts the file where a program is, which is looked for before its debug file."""
    prepare_module("root/usr/lib/debug/.build-id/3f/2a91c0.debug")(work, work.shared / "good/good")
    work.put("root/usr/lib/.build-id/3f/2a91c0", path)


def prepare_input(work, path):
    if path.name == "good":
        work.put_folded()
        (work.folder / "x.folded").rename(work.folder / "input")
    else:
        work.put("input", path)


def prepare_diff(work, path):
    prepare_input(work, path)
    work.put_folded()


def prepare_sidecar(work, path):
    work.put_folded()
    work.put("app", work.shared / "good/good")
    if path.name == "good":
        work.put_sidecar()
    else:
        work.put("x.meta.json", path)


def prepare_output(work, path):
    work.put_folded()
    if path.name != "good":
        work.put("output", path)


PLACES = (
    Place("symbols", "report -f folded -s app guest.capture", prepare_symbols, NAMED_CAPTURE),
    Place("symbols-of-stacks", "report -f folded -s app x.folded", prepare_symbols_of_stacks, NAMED),
    Place("beside-image", "report -f folded -s app guest.capture", prepare_beside, NAMED_CAPTURE),
    Place("debuglink", "report -f folded -s app guest.capture", prepare_debuglink, NAMED_CAPTURE),
    Place("debuglink-below", "report -f folded -s app guest.capture", prepare_debuglink_below, NAMED_CAPTURE),
    Place("build-id", "report -f folded --debug-dir debug x.folded", prepare_module("debug/.build-id/3f/2a91c0.debug"), NAMED),
    Place("sysroot", "report -f folded --sysroot root x.folded", prepare_sysroot, NAMED),
    Place("sysroot-debug", "report -f folded --sysroot root x.folded", prepare_module("root/usr/lib/debug/.build-id/3f/2a91c0.debug"), NAMED),
    Place("cache", "report -f folded x.folded", prepare_module("cache/.build-id/3f/2a91c0.debug"), NAMED),
    # the caller may name a pipe as input
    Place("input", "report -f folded input", prepare_input, "[app+0x10]", ("pipe", "link-to-pipe")),
    Place("diff", "diff -v x.folded input", prepare_diff, "[app+0x10]", ("pipe", "link-to-pipe")),
    Place("sidecar", "report -f folded -s app x.folded", prepare_sidecar, NAMED),
    Place("prune-stacks", "prune --config config.xml", lambda work, path: work.replace_slice(".folded.gz", path), "2 profiles merged"),
    Place("prune-facts", "prune --config config.xml", lambda work, path: work.replace_slice(".meta.json", path), "2 profiles merged"),
    Place("since-stacks", "report -f folded --since 5d vm --config config.xml", lambda work, path: work.replace_slice(".folded.gz", path), "main;work 6"),
    Place("since-facts", "report -f folded --since 5d vm --config config.xml", lambda work, path: work.replace_slice(".meta.json", path), "main;work 6"),
    Place("history-facts", "history --config config.xml", lambda work, path: work.replace_slice(".meta.json", path), "vm"),
    Place("history-stacks", "history vm --config config.xml", lambda work, path: work.replace_slice(".folded.gz", path), "main"),
    Place("summary-facts", "summary --config config.xml", lambda work, path: work.replace_slice(".meta.json", path), "vm"),
    # the caller may name his own pipe or device as output
    Place("output", "report -f folded -o output x.folded", prepare_output, "", ("pipe", "device")),
)  # fmt: skip


class Suite:
    """Runs the program in each place with each file, and counts failures."""

    def __init__(self, program, folder, make_capture):
        self.program = program
        self.folder = folder
        self.is_sanitized = b"__asan_init" in pathlib.Path(program).read_bytes()
        self.count = self.failed = 0
        for name in ("good", "bad", "work"):
            (folder / name).mkdir()
        subprocess.run([make_capture, "plain", folder / "good"], check=True)
        note = hostile_files.pack_note(BUILD_ID)
        symbols, strings = hostile_files.name_functions([b"main", b"function_1", b"work", b"copy"])
        hostile_files.write_elf(folder / "good/good", symbols, strings, note=note)
        self.files = hostile_files.make_files(folder / "bad", hostile_files.pack_note(BUILD_ID))
        self.watch = hostile_files.Watch(folder / "bad")

    def say(self, name, faults):
        self.count += 1
        self.failed += bool(faults)
        print("%s %d %s" % ("not ok" if faults else "ok", self.count, name), flush=True)
        for fault in faults:
            print("# " + str(fault).replace("\n", "\\n")[:600], flush=True)

    def list_files(self):
        """Returns: type, size and time of the last change of each file by its path"""
        facts = {str(path.relative_to(self.folder)): path.lstat() for path in self.folder.rglob("*")}
        return {path: (about.st_mode, about.st_size, about.st_mtime_ns) if stat.S_ISREG(about.st_mode) else about.st_mode
                for path, about in facts.items() if path not in MAY_CHANGE and not path.startswith("work/store/")}  # fmt: skip

    def run(self, place):
        """Returns: the exit code, stdout, stderr, seconds, and MiB of memory"""
        work = self.folder / "work"
        started = time.monotonic()
        with open(self.folder / "out", "w+b") as out, open(self.folder / "err", "w+b") as err:
            child = subprocess.Popen(["timeout", "-s", "KILL", str(HANG_S), self.program, *place.words],
                                     cwd=work, stdin=subprocess.DEVNULL, stdout=out, stderr=err)  # fmt: skip
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.monotonic() - started
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode())
        return child.returncode, *texts, seconds, usage.ru_maxrss >> 10

    def test(self, place, kind, path):
        work = self.folder / "work"
        shutil.rmtree(work)
        work.mkdir()
        place.prepare(Work(self.folder, work), path)
        (self.folder / "out").touch()
        (self.folder / "err").touch()
        before = self.list_files()
        self.watch.take()
        code, out, err, seconds, mib = self.run(place)
        faults = []
        opened = [name for name in self.watch.take() if kind not in place.opens]
        after = self.list_files()
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if code not in CODES:
            faults.append(f"exit code {code}")
        if code != 0 and not err.startswith("virt-uprof: "):
            faults.append("no line")
        if opened:
            faults.append(f"opens {opened}")
        if changed:
            faults.append(f"writes {changed}")
        # Sanitizers take more of both.
        if seconds > TIME_MAX_S and not self.is_sanitized:
            faults.append(f"{seconds:.1f} s")
        if mib > MEMORY_MAX_MIB and not self.is_sanitized:
            faults.append(f"{mib} MiB")
        if kind == "good" and (code != 0 or place.good not in out + err):
            faults.append("the file is not used")
        self.say(f"{place.name}/{kind}", [*faults, (code, out[:300], err[:900])] if faults else [])
        if os.environ.get("UPROF_TEST_VERBOSE"):
            print(f"# {code} {seconds:.1f} s {mib} MiB {err[:300]!r}")


def main():
    program, make_capture = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    os.environ.update(LC_ALL="C", VIRT_UPROF_CACHE="cache", DEBUGINFOD_URLS="")
    with tempfile.TemporaryDirectory(prefix="uprof-hostile-") as name:
        suite = Suite(program, pathlib.Path(name), make_capture)
        for place in PLACES:
            if sys.argv[3:] and place.name not in sys.argv[3:]:
                continue
            for kind, path in {"good": suite.folder / "good/good", **suite.files}.items():
                suite.test(place, kind, path)
    print("1..%d" % suite.count)
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main())
