#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
pack-initrd.py OUTPUT PROGRAM... [--with PATH...] - makes an initial file system of a few programs
pack-initrd.py OUTPUT FOLDER     - makes an initial file system of all files in FOLDER

PROGRAMs are put into the root folder, beside the mount points /dev, /proc and /sys. All files
belong to root. Each PATH is a program of this host, which is packed under its own path, with the
libraries that it needs; a PATH that does not exist is left out. The script itself needs no root, because the kernel has its own /dev/console. The
same input gives the same bytes.

The format is cpio's "newc": Linux, Documentation/driver-api/early-userspace/buffer-format.rst.
"""

import os
import pathlib
import re
import stat
import subprocess
import sys

FOLDERS = ("dev", "proc", "sys")
END = "TRAILER!!!"


def padded(data):
    """@data with zeros up to a multiple of four bytes."""
    return data + b"\0" * (-len(data) % 4)


def entry(inode, name, mode, data=b""):
    """The bytes of one member of the archive."""
    name_bytes = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    # ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
    numbers = (inode, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name_bytes), 0)
    header = b"070701" + b"".join(b"%08X" % number for number in numbers)
    return padded(header + name_bytes) + padded(data)


def programs(paths):
    """Yields the mount points and the programs as members."""
    for name in FOLDERS:
        yield name, stat.S_IFDIR | 0o755, b""
    for path in paths:
        yield path.name, stat.S_IFREG | 0o755, path.read_bytes()


def libraries(path):
    """The paths by which the dynamic linker finds the libraries of a program, and the linker."""
    lines = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", lines)


def host_programs(paths):
    """Yields programs of this host as members, with their libraries and the folders."""
    files, folders = set(), set()
    for path in paths:
        if pathlib.Path(path).exists():
            files.update([path, *libraries(path)])
    for name in sorted(files):
        for parent in reversed(pathlib.Path(name).parents[:-1]):
            if parent not in folders:
                folders.add(parent)
                yield str(parent)[1:], stat.S_IFDIR | 0o755, b""
        yield name[1:], stat.S_IFREG | 0o755, pathlib.Path(name).read_bytes()


def tree(folder):
    """Yields all folders, files and links as members; a folder comes before its content."""
    for path in sorted(folder.rglob("*")):
        name, mode = str(path.relative_to(folder)), path.lstat().st_mode
        if path.is_symlink():
            yield name, mode, os.fsencode(os.readlink(path))
        elif path.is_dir():
            yield name, mode, b""
        elif path.is_file():
            yield name, mode, path.read_bytes()


def main(arguments):
    if len(arguments) < 3:
        sys.exit("usage: pack-initrd.py OUTPUT PROGRAM...")
    words = arguments[2:]
    split = words.index("--with") if "--with" in words else len(words)
    paths = [pathlib.Path(word) for word in words[:split]]
    members = list(tree(paths[0]) if paths[0].is_dir() else programs(paths))
    members += host_programs(words[split + 1 :])
    members.append((END, 0, b""))
    pathlib.Path(arguments[1]).write_bytes(
        b"".join(entry(inode, *member) for inode, member in enumerate(members, 1))
    )


if __name__ == "__main__":
    main(sys.argv)
