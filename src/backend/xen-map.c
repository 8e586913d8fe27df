/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xen-map-priv.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <xenforeignmemory.h>
#include <xentoollog.h>

enum {
    PAGE_SHIFT = 12,
    PAGE_BYTES = 1 << PAGE_SHIFT,
    PIECE_SHIFT = 5,
    PIECE_PAGES = 1 << PIECE_SHIFT,
    SLOTS_BITS = 10,
    SLOTS = 1 << SLOTS_BITS,
    PIECES_MAX = SLOTS / 4 * 3, /* of a lane: 96 MiB */
    PAGED_OUT_TRIES = 3,
};

/** Piece: PIECE_PAGES frames of the guest */
typedef struct {
    uint64_t number;  /* of the first frame, divided by PIECE_PAGES */
    uint8_t *bytes;   /* (nullable): the mapping, owned; NULL: no frame could be mapped */
    uint32_t missing; /* bit I: frame I is not mapped; a read of its bytes would raise SIGBUS */
    bool used;        /* the slot is not empty */
} Piece;

typedef struct {
    GMutex lock; /* guards all members below; any thread may drop mappings */
    Piece slots[SLOTS];
    unsigned n;
    bool has_ended;
} Lane;

struct _UprofXenMap {
    xenforeignmemory_handle *handle;
    xentoollog_logger logger;
    uint32_t domid;
    Lane lanes[UPROF_N_LANES];
};

static void
log_nothing(xentoollog_logger *logger, xentoollog_level level, int errno_or_minus_1,
            const char *context, const char *format, va_list arguments)
{
}

UprofXenMap *
uprof_xen_map_new(int domid, GError **error)
{
    UprofXenMap *map = g_new(UprofXenMap, 1);

    /* the host allocates the pages here, so that no page fault happens in a hold */
    memset(map, 0, sizeof(*map));
    map->domid = (uint32_t)domid;
    map->logger.vmessage = log_nothing;
    for (unsigned i = 0; i < UPROF_N_LANES; i++)
        g_mutex_init(&map->lanes[i].lock);
    map->handle = xenforeignmemory_open(&map->logger, 0);
    if (map->handle)
        return map;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_DENIED,
                "the memory of Xen's domains cannot be mapped: %s; this needs root in dom0",
                g_strerror(errno));
    uprof_xen_map_free(map);
    return NULL;
}

static void
drop_lane(UprofXenMap *map, Lane *lane)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        Piece *piece = &lane->slots[i];
        if (piece->bytes)
            xenforeignmemory_unmap(map->handle, piece->bytes, PIECE_PAGES);
        *piece = (Piece){ 0 };
    }
    lane->n = 0;
}

G_STATIC_ASSERT(PIECE_PAGES == 32); /* the bits of Piece.missing */

void
uprof_xen_map_drop(UprofXenMap *map, UprofLane lane)
{
    g_mutex_lock(&map->lanes[lane].lock);
    if (map->lanes[lane].n > 0)
        drop_lane(map, &map->lanes[lane]);
    g_mutex_unlock(&map->lanes[lane].lock);
}

void
uprof_xen_map_end(UprofXenMap *map)
{
    for (unsigned i = 0; i < UPROF_N_LANES; i++) {
        g_mutex_lock(&map->lanes[i].lock);
        drop_lane(map, &map->lanes[i]);
        map->lanes[i].has_ended = true;
        g_mutex_unlock(&map->lanes[i].lock);
    }
}

void
uprof_xen_map_free(UprofXenMap *map)
{
    if (!map)
        return;
    for (unsigned i = 0; i < UPROF_N_LANES; i++) {
        drop_lane(map, &map->lanes[i]);
        g_mutex_clear(&map->lanes[i].lock);
    }
    if (map->handle)
        xenforeignmemory_close(map->handle);
    g_free(map);
}

/* Returns: the piece, or an empty slot for it. PIECES_MAX leaves some slots empty. */
static Piece *
find_piece(Lane *lane, uint64_t number)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio: Knuth, 6.4 */
    unsigned i = (unsigned)(number * golden >> (64 - SLOTS_BITS));

    while (lane->slots[i].used && lane->slots[i].number != number)
        i = (i + 1) % SLOTS;
    return &lane->slots[i];
}

/* Does no frame belong to the guest? @errors: of a piece without mapped frames */
static bool
is_hole(const int errors[PIECE_PAGES])
{
    for (unsigned i = 0; i < PIECE_PAGES; i++)
        if (errors[i] != -EINVAL)
            return false;
    return true;
}

/*
 * Makes one call, and a few more if Xen has to page frames in.
 *
 * Returns: false if nothing could be mapped now, but a later try may succeed
 */
static bool
map_piece(const UprofXenMap *map, Piece *piece)
{
    xen_pfn_t frames[PIECE_PAGES];
    int errors[PIECE_PAGES];
    bool again = true;

    for (unsigned i = 0; i < PIECE_PAGES; i++)
        frames[i] = piece->number * PIECE_PAGES + i;
    for (unsigned tries = 0; again && tries < PAGED_OUT_TRIES; tries++) {
        if (piece->bytes)
            xenforeignmemory_unmap(map->handle, piece->bytes, PIECE_PAGES);
        piece->bytes =
            xenforeignmemory_map(map->handle, map->domid, PROT_READ, PIECE_PAGES, frames, errors);
        piece->missing = 0;
        again = false;
        for (unsigned i = 0; piece->bytes && i < PIECE_PAGES; i++) {
            if (errors[i] != 0)
                piece->missing |= 1u << i;
            again |= errors[i] == -ENOENT;
        }
    }
    if (!piece->bytes)
        return errno == EINVAL;
    if (piece->missing != UINT32_MAX)
        return true;
    xenforeignmemory_unmap(map->handle, piece->bytes, PIECE_PAGES);
    piece->bytes = NULL;
    return is_hole(errors);
}

/* Returns: (nullable): the page's bytes */
static const uint8_t *
find_page(UprofXenMap *map, Lane *lane, uint64_t frame, bool may_map)
{
    const uint64_t number = frame >> PIECE_SHIFT;
    const unsigned i = frame % PIECE_PAGES;
    Piece *piece = find_piece(lane, number);

    if (!piece->used) {
        if (!may_map)
            return NULL;
        if (lane->n == PIECES_MAX) {
            drop_lane(map, lane);
            piece = find_piece(lane, number);
        }
        *piece = (Piece){ .number = number, .used = true };
        if (!map_piece(map, piece)) {
            *piece = (Piece){ 0 };
            return NULL;
        }
        lane->n++;
    }
    if (!piece->bytes || (piece->missing & 1u << i))
        return NULL;
    return piece->bytes + (size_t)i * PAGE_BYTES;
}

static bool
read_span(UprofXenMap *map, Lane *lane, bool may_map, const UprofSpan *span)
{
    if (span->gpa > UINT64_MAX - span->len)
        return false;
    for (uint32_t done = 0; done < span->len;) {
        const uint64_t gpa = span->gpa + done;
        const uint32_t offset = gpa % PAGE_BYTES;
        const uint32_t part = MIN(span->len - done, PAGE_BYTES - offset);
        const uint8_t *page = find_page(map, lane, gpa >> PAGE_SHIFT, may_map);
        if (!page)
            return false;
        memcpy((uint8_t *)span->into + done, page + offset, part);
        done += part;
    }
    return true;
}

void
uprof_xen_map_read(UprofXenMap *map, UprofLane lane, bool may_map, UprofSpan *spans, unsigned n)
{
    Lane *own = &map->lanes[lane];

    g_mutex_lock(&own->lock);
    for (unsigned i = 0; i < n; i++)
        spans[i].missing = own->has_ended || !read_span(map, own, may_map, &spans[i]);
    g_mutex_unlock(&own->lock);
}
