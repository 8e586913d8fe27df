#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
pack-initrd.py OUTPUT PROGRAM... - makes an initial file system of a few programs
pack-initrd.py OUTPUT FOLDER     - makes an initial file system of all files in FOLDER

PROGRAMs are put into the root folder, beside the mount points /dev, /proc and /sys. All files
belong to root. The script itself needs no root, because the kernel has its own /dev/console. The
same input gives the same bytes.

The format is cpio's "newc": Linux, Documentation/driver-api/early-userspace/buffer-format.rst.
"""

import os
import pathlib
import stat
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
    paths = [pathlib.Path(word) for word in arguments[2:]]
    members = list(tree(paths[0]) if paths[0].is_dir() else programs(paths))
    members.append((END, 0, b""))
    pathlib.Path(arguments[1]).write_bytes(
        b"".join(entry(inode, *member) for inode, member in enumerate(members, 1))
    )


if __name__ == "__main__":
    main(sys.argv)
