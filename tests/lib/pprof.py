# SPDX-License-Identifier: LGPL-2.1-or-later
"""Decodes pprof profiles, and finds what their readers refuse.

The schema is google/pprof's proto/profile.proto. A field that the schema does not have is a fault.
The rules about ids are those of Parca (pkg/normalizer/validate.go): mappings, functions and
locations are numbered from 1, in their order.
"""

import zlib

# Fields of each message: number -> (name, kind, whether it is repeated)
SCHEMA = {
    "Profile": {
        1: ("sample_type", "ValueType", True), 2: ("sample", "Sample", True), 3: ("mapping", "Mapping", True),
        4: ("location", "Location", True), 5: ("function", "Function", True), 6: ("string_table", "text", True),
        7: ("drop_frames", "int", False), 8: ("keep_frames", "int", False), 9: ("time_nanos", "int", False),
        10: ("duration_nanos", "int", False), 11: ("period_type", "ValueType", False), 12: ("period", "int", False),
        13: ("comment", "int", True), 14: ("default_sample_type", "int", False),
    },
    "ValueType": {1: ("type", "int", False), 2: ("unit", "int", False)},
    "Sample": {1: ("location_id", "int", True), 2: ("value", "int", True), 3: ("label", "Label", True)},
    "Label": {1: ("key", "int", False), 2: ("str", "int", False), 3: ("num", "int", False), 4: ("num_unit", "int", False)},
    "Mapping": {
        1: ("id", "int", False), 2: ("memory_start", "int", False), 3: ("memory_limit", "int", False),
        4: ("file_offset", "int", False), 5: ("filename", "int", False), 6: ("build_id", "int", False),
        7: ("has_functions", "int", False), 8: ("has_filenames", "int", False), 9: ("has_line_numbers", "int", False),
        10: ("has_inline_frames", "int", False),
    },
    "Location": {
        1: ("id", "int", False), 2: ("mapping_id", "int", False), 3: ("address", "int", False),
        4: ("line", "Line", True), 5: ("is_folded", "int", False),
    },
    "Line": {1: ("function_id", "int", False), 2: ("line", "int", False)},
    "Function": {
        1: ("id", "int", False), 2: ("name", "int", False), 3: ("system_name", "int", False),
        4: ("filename", "int", False), 5: ("start_line", "int", False),
    },
}  # fmt: skip

# Members that are an index of the table of strings
TEXTS = {
    "ValueType": ("type", "unit"), "Label": ("key", "str", "num_unit"), "Mapping": ("filename", "build_id"),
    "Function": ("name", "system_name", "filename"),
}  # fmt: skip

VARINT, LENGTH = 0, 2


class BadProfile(ValueError):
    """The bytes are not a profile."""


def read_varint(data, at, end):
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            value &= (1 << 64) - 1
            return (value - (1 << 64) if value >> 63 else value), at
    raise BadProfile("a number without an end")


def read_message(data, kind, at, end):
    """Returns a dictionary of all members of the message, also of those that it does not have."""
    fields = SCHEMA[kind]
    message = {name: [] if repeated else None if inner in SCHEMA else 0 for name, inner, repeated in fields.values()}
    while at < end:
        tag, at = read_varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if number not in fields:
            raise BadProfile(f"{kind} has a field {number}, which the schema does not have")
        name, inner, repeated = fields[number]
        if wire == VARINT and inner == "int":
            value, at = read_varint(data, at, end)
            values = [value]
        elif wire == LENGTH:
            length, at = read_varint(data, at, end)
            if length < 0 or length > end - at:
                raise BadProfile(f"{kind}.{name} is cut off")
            values = read_piece(data, inner, repeated, at, at + length)
            at += length
        else:
            raise BadProfile(f"{kind}.{name} has the wire type {wire}")
        if repeated:
            message[name] += values
        else:
            message[name] = values[0]
    return message


def read_piece(data, kind, repeated, at, end):
    """Returns the values of a field that has a length."""
    if kind == "text":
        try:
            return [bytes(data[at:end]).decode()]
        except UnicodeDecodeError as error:
            raise BadProfile("a string is not UTF-8") from error
    if kind != "int":
        return [read_message(data, kind, at, end)]
    if not repeated:
        raise BadProfile("a number has a length")
    values = []
    while at < end:
        value, at = read_varint(data, at, end)
        values.append(value)
    return values


def unpack(packed, bytes_max):
    """Returns the bytes in exactly one member of gzip."""
    if packed[:2] != b"\x1f\x8b":
        raise BadProfile("the profile is not compressed with gzip")
    decoder = zlib.decompressobj(31)
    try:
        data = decoder.decompress(packed, bytes_max + 1)
    except zlib.error as error:
        raise BadProfile(f"gzip: {error}") from error
    if len(data) > bytes_max:
        raise BadProfile(f"the profile has more than {bytes_max} bytes without compression")
    if not decoder.eof or decoder.unused_data:
        raise BadProfile("gzip: the data is cut off, or there is more behind it")
    return data


class Profile:
    """A decoded profile."""

    def __init__(self, packed, bytes_max=1 << 62):
        data = unpack(packed, bytes_max)
        self.size = len(data)
        self.fields = read_message(data, "Profile", 0, len(data))
        self.strings = self.fields["string_table"]
        self.samples = self.fields["sample"]
        self.period = self.fields["period"]
        self.time_nanos = self.fields["time_nanos"]
        self.duration_nanos = self.fields["duration_nanos"]

    def text(self, index):
        if not 0 <= index < len(self.strings):
            raise BadProfile(f"there is no string {index}")
        return self.strings[index]

    def types(self):
        """Returns the type and the unit of each value of a sample."""
        return [(self.text(one["type"]), self.text(one["unit"])) for one in self.fields["sample_type"]]

    def period_type(self):
        one = self.fields["period_type"]
        return one and (self.text(one["type"]), self.text(one["unit"]))

    def comments(self):
        return [self.text(index) for index in self.fields["comment"]]

    def frames(self, sample):
        """Returns the names of a stack, the outermost first."""
        functions, locations = self.fields["function"], self.fields["location"]
        return [self.text(functions[line["function_id"] - 1]["name"])
                for place in reversed(sample["location_id"]) for line in reversed(locations[place - 1]["line"])]

    def stacks(self):
        """Returns the first value of each stack: "main;work" -> count."""
        counts = {}
        for sample in self.samples:
            stack = ";".join(self.frames(sample))
            counts[stack] = counts.get(stack, 0) + sample["value"][0]
        return counts

    def sources(self):
        """Returns where each function comes from: name -> (module, build-id, file, line)."""
        functions, mappings, sources = self.fields["function"], self.fields["mapping"], {}
        for place in self.fields["location"]:
            line = place["line"][0]
            function = functions[line["function_id"] - 1]
            module, build_id = "", ""
            if place["mapping_id"]:
                mapping = mappings[place["mapping_id"] - 1]
                module, build_id = self.text(mapping["filename"]), self.text(mapping["build_id"])
            sources[self.text(function["name"])] = (module, build_id, self.text(function["filename"]), line["line"])
        return sources

    def labels(self, sample):
        return {self.text(one["key"]): self.text(one["str"]) for one in sample["label"]}

    def faults(self):
        """Returns what readers refuse, whatever the limits of an engine are."""
        try:
            return [*self.faults_of_tables(), *self.faults_of_samples()]
        except BadProfile as error:
            return [str(error)]

    def faults_of_tables(self):
        if not self.strings or self.strings[0] != "":
            yield "the first string is not empty"
        for table, kind in (("mapping", "Mapping"), ("function", "Function"), ("location", "Location")):
            ids = [one["id"] for one in self.fields[table]]
            if ids != list(range(1, len(ids) + 1)):
                yield f"the ids of the table '{table}' are not 1, 2, 3...: {ids[:20]}"
            for one in self.fields[table]:
                for member in TEXTS.get(kind, ()):
                    self.text(one[member])
        n_functions, n_mappings = len(self.fields["function"]), len(self.fields["mapping"])
        for location in self.fields["location"]:
            if not 0 <= location["mapping_id"] <= n_mappings:
                yield f"there is no mapping {location['mapping_id']}"
            if not location["line"]:
                yield f"the location {location['id']} has no line"
            for line in location["line"]:
                if not 1 <= line["function_id"] <= n_functions:
                    yield f"there is no function {line['function_id']}"
        for name in ("drop_frames", "keep_frames", "default_sample_type"):
            self.text(self.fields[name])
        self.comments()

    def faults_of_samples(self):
        types = self.types()
        if not types or any("-" in name or not name or not unit for name, unit in types):
            yield f"the types of values are {types}"
        if not self.period_type():
            yield "the type of the period is missing"
        n_locations = len(self.fields["location"])
        for sample in self.samples:
            if len(sample["value"]) != len(types):
                yield f"a sample has {len(sample['value'])} values for {len(types)} types"
            if not sample["location_id"]:
                yield "a sample has no location"
            if not all(1 <= place <= n_locations for place in sample["location_id"]):
                yield "a sample has a location that does not exist"
            for label in sample["label"]:
                if not self.text(label["key"]):
                    yield "a label of a sample has no name"
                if label["num"] or label["num_unit"]:
                    yield "a label of a sample is a number"
                self.text(label["str"])

    def repeats(self):
        """Returns what occurs twice. Readers accept it, but a writer has no reason for it."""
        stacks = [(*self.frames(sample), *sorted(self.labels(sample).items())) for sample in self.samples]
        faults = ["a string occurs twice"] if len(set(self.strings)) != len(self.strings) else []
        return faults + (["a stack occurs twice"] if len(set(stacks)) != len(stacks) else [])
