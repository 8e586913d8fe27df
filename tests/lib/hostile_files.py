# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes files by which a hostile tenant could attack: large names, sparse files, compression bombs,
devices, pipes, sockets, and links to them.

make_files() writes one file of each kind. Watch tells which special files were opened.
"""

import ctypes
import gzip
import os
import socket
import stat
import struct

PAGE = 0x1000
MIB = 1 << 20
SYMBOL = struct.Struct("<IBBHQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")
HEAD = struct.Struct("<16sHHIQQQIHHHHHH")
PROGBITS, SYMTAB, STRTAB, NOTE = 1, 2, 3, 7
FUNCTION = 0x12
CODE = 0x100000  # as tests/replay/make-capture.c
FUNCTION_LEN, N_FUNCTIONS = 0x100, 4
IN_OPEN = 0x20
NAME_BYTES_MAX = 4096


class Elf:
    """Writes the sections of an ELF file. A section may be a hole, which takes no disk space."""

    def __init__(self, path):
        self.out = open(path, "wb")
        self.out.seek(HEAD.size)
        self.names = b"\0"
        self.sections = [SECTION.pack(*[0] * 10)]

    def add(self, name, kind, data=b"", size=None, address=0, link=0, info=0, entry=0):
        at = (self.out.tell() + 15) & ~15
        size = len(data) if size is None else size
        self.out.seek(at)
        self.out.write(data)
        self.out.seek(at + size)
        flags = 6 if name == ".text" else 0
        self.sections.append(SECTION.pack(len(self.names), kind, flags, address, at, size, link, info, 8, entry))
        self.names += name.encode() + b"\0"

    def finish(self):
        names_at = len(self.names)
        self.names += b".shstrtab\0"
        at = self.out.tell()
        self.out.write(self.names)
        self.sections.append(SECTION.pack(names_at, STRTAB, 0, 0, at, len(self.names), 0, 0, 1, 0))
        table = self.out.tell()
        self.out.write(b"".join(self.sections))
        self.out.seek(0)
        self.out.write(HEAD.pack(b"\x7fELF\2\1\1" + bytes(9), 2, 62, 1, CODE, 0, table, 0, HEAD.size, 0, 0, 64,
                                 len(self.sections), len(self.sections) - 1))  # fmt: skip
        self.out.close()


def write_elf(path, symbols, strings, note=b"", link=b"", hole=0):
    """@symbols: bytes, or the size of a table that is a hole. @hole: the size of .debug_info, which
    is a hole"""
    elf = Elf(path)
    elf.add(".text", PROGBITS, bytes(PAGE), address=CODE)
    is_hole = isinstance(symbols, int)
    elf.add(".symtab", SYMTAB, b"" if is_hole else symbols, symbols if is_hole else None, link=3, info=1, entry=24)
    elf.add(".strtab", STRTAB, strings)
    if note:
        elf.add(".note.gnu.build-id", NOTE, note)
    if link:
        elf.add(".gnu_debuglink", PROGBITS, link)
    if hole:
        elf.add(".debug_info", PROGBITS, size=hole)
    elf.finish()


def pack_note(build_id):
    return struct.pack("<III4s", 4, len(build_id), 3, b"GNU\0") + build_id


def pack_link(name):
    """Returns the content of .gnu_debuglink, with a CRC that fits no file."""
    text = name.encode() + b"\0"
    return text + bytes(-len(text) % 4) + b"\1\2\3\4"


def name_functions(names):
    """Returns symbols of the functions in a capture of make-capture, and their names."""
    strings = b"\0"
    symbols = bytes(SYMBOL.size)
    for i in range(N_FUNCTIONS):
        symbols += SYMBOL.pack(len(strings), FUNCTION, 0, 1, CODE + i * FUNCTION_LEN, FUNCTION_LEN)
        strings += names[i % len(names)] + b"\0"
    return symbols, strings


def nest_name(depth):
    """Returns a name for which libiberty takes exponential time, or nests 1000 calls."""
    name = b"v"
    for _ in range(depth):
        name = b"_ZN1AcvT_IL_Z" + name + b"EEEv"
        if len(name) + 17 > NAME_BYTES_MAX:
            break
    return name


def write_nested(path, note):
    write_elf(path, *name_functions([nest_name(20), nest_name(1000), b"_Z" + b"P" * 1000 + b"v", b"_RNv" + b"I" * 1000]), note=note)


def write_million(path, note):
    """Writes a million names of up to 4000 bytes that share bytes: each begins one byte later."""
    n, name_len = 1000000, 4000
    symbols = bytearray(SYMBOL.size)
    for i in range(n):
        symbols += SYMBOL.pack(1 + i, FUNCTION, 0, 1, CODE + i % PAGE, 1)
    strings = bytearray(b"\0" + b"a" * (n + name_len) + b"\0")
    for at in range(name_len, len(strings), name_len):
        strings[at] = 0
    write_elf(path, bytes(symbols), bytes(strings), note=note)


def write_same_names(path, note):
    """Writes a million symbols at few addresses. Their names differ only after 4000 bytes."""
    n, name_len = 1000000, 4000
    symbols = bytearray(SYMBOL.size)
    for i in range(n):
        symbols += SYMBOL.pack(1 + i, FUNCTION, 0, 1, CODE + i % N_FUNCTIONS * FUNCTION_LEN, FUNCTION_LEN)
    write_elf(path, bytes(symbols), b"\0" + b"a" * (n + name_len) + b"\0", note=note)


def write_sparse(path, note):
    symbols, strings = name_functions([b"main"])
    write_elf(path, symbols, strings, note=note, hole=1024 * MIB)


def write_sparse_symbols(path, note):
    write_elf(path, 900 * MIB // SYMBOL.size * SYMBOL.size, b"\0main\0", note=note)


def write_zeros(path):
    with open(path, "wb") as out:
        out.truncate(1024 * MIB)


def write_packed_zeros(path):
    with gzip.open(path, "wb", 6) as out:
        for _ in range(1024):
            out.write(bytes(MIB))


def pack_number(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def pack_field(number, data):
    return pack_number(number << 3 | 2) + pack_number(len(data)) + data


def write_pprof(path):
    """Writes a few kilobytes that stand for 400 million frames: many samples of a deep stack with
    many lines."""
    strings = b"".join(pack_field(6, text) for text in (b"", b"samples", b"count", b"f"))
    function = pack_field(5, b"\x08\x01\x10\x03")
    line = pack_field(4, b"\x08\x01")
    location = pack_field(4, b"\x08\x01" + line * 1000)
    sample = pack_field(2, pack_field(1, b"\1" * 1000) + pack_field(2, b"\1"))
    profile = pack_field(1, b"\x08\x01\x10\x02") + sample * 400 + location + function + strings
    with gzip.open(path, "wb") as out:
        out.write(profile)


def link_to(make):
    def write(path):
        target = path.with_name(path.name + ".target")
        if not os.path.lexists(target):
            make(target)
        path.symlink_to(target.name)

    return write


def make_device(path):
    """Makes a device like /dev/full, which no other test opens."""
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 7))


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as end:
        # the path of a socket has at most 107 bytes
        at = os.getcwd()
        os.chdir(path.parent)
        end.bind(path.name)
        os.chdir(at)


ELFS = {
    "nested": write_nested,
    "million": write_million,
    "same-names": write_same_names,
    "sparse": write_sparse,
    "sparse-symbols": write_sparse_symbols,
}
OTHERS = {
    "zeros": write_zeros,
    "packed-zeros": write_packed_zeros,
    "pprof": write_pprof,
    "pipe": os.mkfifo,
    "socket": make_socket,
    "device": make_device,
    "link-to-pipe": link_to(os.mkfifo),
    "link-to-socket": link_to(make_socket),
    "link-to-device": link_to(make_device),
}


def make_files(folder, note):
    """@note: the note of all ELF files. Returns: the path of each file by its kind"""
    paths = {name: folder / name for name in [*ELFS, *OTHERS]}
    for name, make in ELFS.items():
        make(paths[name], note)
    for name, make in OTHERS.items():
        make(paths[name])
    return paths


class Watch:
    """Sees which special files of a folder are opened. O_PATH opens no device and does not
    count."""

    def __init__(self, folder):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.names = {}
        for path in folder.iterdir():
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode) and not stat.S_ISDIR(mode):
                watch = self.libc.inotify_add_watch(self.fd, os.fsencode(path), IN_OPEN)
                if watch < 0:
                    raise OSError(ctypes.get_errno(), "cannot watch", path)
                self.names[watch] = path.name

    def take(self):
        """Returns: names of files that were opened since the last call"""
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return []
        found = []
        while data:
            watch, _, _, name_len = struct.unpack_from("iIII", data)
            found.append(self.names[watch])
            data = data[16 + name_len :]
        return found
