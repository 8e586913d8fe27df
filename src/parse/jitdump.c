/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/jitdump.h"

#include "perf-map-priv.h"

#include <stddef.h>
#include <string.h>

typedef struct {
    uint32_t magic, version;
    uint32_t bytes; /* of the header */
    uint32_t machine, padding, process;
    uint64_t time, flags;
} Header;

typedef struct {
    uint32_t type;
    uint32_t bytes; /* of the record */
    uint64_t time;
} Record;

enum { TYPE_LOAD = 0, TYPE_MOVE = 1 };

typedef struct {
    Record record;
    uint32_t process, thread;
    uint64_t vma, address, size, number;
} Load; /* the name, NUL, and the code follow */

typedef struct {
    Record record;
    uint32_t process, thread;
    uint64_t vma, from, to, size, number;
} Move;

#define MAGIC UINT32_C(0x4a695444)

enum {
    NAME_ROOM = UPROF_PERF_MAP_NAME_BYTES_MAX,
    BEGINNING_MAX = sizeof(Load) + NAME_ROOM,
    RECORD_BYTES_MAX = 64 * 1024 * 1024,
};

struct _UprofJitdump {
    uint8_t beginning[BEGINNING_MAX]; /* of the header or the record, as far as it is needed */
    size_t n;                         /* bytes in @beginning */
    uint64_t n_rest;                  /* bytes of the last record that follow, and are not needed */
    bool has_header;
    bool is_lost; /* nothing more can be read */
};

UprofJitdump *
uprof_jitdump_new(void)
{
    return g_new0(UprofJitdump, 1);
}

void
uprof_jitdump_free(UprofJitdump *dump)
{
    g_free(dump);
}

/* Takes bytes to skip from the front of @bytes. */
static void
skip_rest(UprofJitdump *dump, const uint8_t **at, size_t *len)
{
    const size_t n = MIN(dump->n_rest, (uint64_t)*len);

    dump->n_rest -= n;
    *at += n;
    *len -= n;
}

static Record
read_record(const UprofJitdump *dump)
{
    Record record;

    memcpy(&record, dump->beginning, sizeof(record));
    return record;
}

static bool
has_whole_name(const UprofJitdump *dump)
{
    return dump->n > sizeof(Load) &&
           memchr(dump->beginning + sizeof(Load), '\0', dump->n - sizeof(Load));
}

/* Returns: how many bytes of the beginning are needed, as far as is known yet */
static size_t
count_needed(const UprofJitdump *dump)
{
    if (!dump->has_header)
        return sizeof(Header);
    if (dump->n < sizeof(Record))
        return sizeof(Record);
    const Record record = read_record(dump);
    if (record.type == TYPE_LOAD && has_whole_name(dump))
        return dump->n;
    const size_t wanted = record.type == TYPE_LOAD   ? BEGINNING_MAX
                          : record.type == TYPE_MOVE ? sizeof(Move)
                                                     : sizeof(Record);
    return MAX(MIN(wanted, (size_t)record.bytes), sizeof(Record));
}

static void
take_load(const UprofJitdump *dump, UprofPerfMap *map)
{
    Load load;

    if (dump->n < sizeof(load))
        return;
    memcpy(&load, dump->beginning, sizeof(load));
    const char *name = (const char *)dump->beginning + sizeof(load);
    uprof_perf_map_insert(map, load.address, load.size,
                          (UprofSlice){ name, strnlen(name, dump->n - sizeof(load)) });
}

static void
take_move(const UprofJitdump *dump, UprofPerfMap *map)
{
    UprofSymbol symbol;
    Move move;

    if (dump->n < sizeof(move))
        return;
    memcpy(&move, dump->beginning, sizeof(move));
    if (!uprof_perf_map_find(map, move.from, &symbol) || symbol.start != move.from)
        return;
    /* the map may free the name while it inserts */
    g_autofree char *name = g_memdup2(symbol.name.data, symbol.name.len);
    uprof_perf_map_insert(map, move.to, move.size, (UprofSlice){ name, symbol.name.len });
}

static void
take_header(UprofJitdump *dump)
{
    Header header;

    memcpy(&header, dump->beginning, sizeof(header));
    dump->is_lost =
        header.magic != MAGIC || header.bytes < sizeof(header) || header.bytes > RECORD_BYTES_MAX;
    dump->n_rest = header.bytes - sizeof(header);
    dump->has_header = true;
}

/* Uses the beginning, which is complete. */
static void
take_beginning(UprofJitdump *dump, UprofPerfMap *map)
{
    const Record record = read_record(dump);

    if (!dump->has_header) {
        take_header(dump);
    } else if (record.bytes < sizeof(record) || record.bytes > RECORD_BYTES_MAX) {
        dump->is_lost = true;
    } else {
        if (record.type == TYPE_LOAD)
            take_load(dump, map);
        else if (record.type == TYPE_MOVE)
            take_move(dump, map);
        dump->n_rest = record.bytes - dump->n;
    }
    dump->n = 0;
}

void
uprof_jitdump_add(UprofJitdump *dump, UprofPerfMap *map, UprofSlice bytes, uint64_t n_missing)
{
    const uint8_t *at = bytes.data;
    size_t len = bytes.len;

    dump->is_lost |= n_missing > dump->n_rest;
    dump->n_rest -= MIN(n_missing, dump->n_rest);
    while (len > 0 && !dump->is_lost) {
        skip_rest(dump, &at, &len);
        const size_t n = MIN(count_needed(dump) - dump->n, len);
        memcpy(dump->beginning + dump->n, at, n);
        dump->n += n;
        at += n;
        len -= n;
        /* the size of a record tells how much more is needed */
        if (n > 0 && dump->n == count_needed(dump))
            take_beginning(dump, map);
    }
}
