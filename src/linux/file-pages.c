/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "file-pages-priv.h"

#include "page-cache-priv.h"

#include "uprof/clock.h"

#include <string.h>

enum {
    BATCH = 64,  /* pages of one request to the page cache */
    SLOTS = 256, /* remembered pages: 1 MiB */
    LEFT_MAX = UPROF_FILE_PAGES_SAVED_MAX,
    SINGLE_MAX = 32, /* single pages that are read for one sample */
};

/* After this time, all pages that may be saved up are saved up. */
#define FILLED_NS (LEFT_MAX / UPROF_FILE_PAGES_PER_SECOND * UPROF_NS_PER_S)

/* A remembered page of a file. */
typedef struct {
    uint64_t mapping; /* 0: the slot is empty */
    uint64_t number;
    uint64_t since_ns;
    bool is_here;
    uint8_t bytes[UPROF_PAGE_BYTES];
} Slot;

struct _UprofFilePages {
    const UprofLinux *kernel;      /* borrowed */
    UprofMem *mem;                 /* borrowed */
    const UprofSnapshot *snapshot; /* borrowed */
    UprofKernelMemory memory;
    bool is_begun;
    uint64_t filled_ns; /* when pages were last added to @n_left */
    uint32_t reset;
    unsigned n_left;   /* pages that may be read */
    unsigned n_single; /* single pages that this sample has read */
    Slot *slots;
};

UprofFilePages *
uprof_file_pages_new(const UprofLinux *kernel)
{
    UprofFilePages *pages = g_new0(UprofFilePages, 1);

    pages->kernel = kernel;
    return pages;
}

void
uprof_file_pages_free(UprofFilePages *pages)
{
    if (!pages)
        return;
    g_free(pages->slots);
    g_free(pages);
}

/* Time is that of the snapshots, so that a replay reads the same pages. */
static void
fill_budget(UprofFilePages *pages, uint64_t now_ns)
{
    const uint64_t apart_ns = MIN(now_ns - pages->filled_ns, FILLED_NS);
    const uint64_t more = apart_ns * UPROF_FILE_PAGES_PER_SECOND / UPROF_NS_PER_S;

    if (more == 0 && pages->is_begun)
        return;
    pages->n_left = pages->is_begun ? (unsigned)MIN(pages->n_left + more, (uint64_t)LEFT_MAX)
                                    : (unsigned)LEFT_MAX;
    pages->is_begun = true;
    pages->filled_ns = now_ns;
}

void
uprof_file_pages_begin(UprofFilePages *pages, UprofMem *mem, const UprofSnapshot *snapshot)
{
    pages->mem = mem;
    pages->snapshot = snapshot;
    pages->memory = uprof_linux_memory(pages->kernel, mem);
    if (pages->slots && snapshot->reset != pages->reset)
        memset(pages->slots, 0, SLOTS * sizeof(Slot));
    pages->reset = snapshot->reset;
    pages->n_single = 0;
    fill_budget(pages, snapshot->time_ns);
}

bool
uprof_file_pages_is_spent(const UprofFilePages *pages)
{
    return pages->n_left == 0;
}

unsigned
uprof_file_pages_left(const UprofFilePages *pages)
{
    return pages->n_left;
}

static void
read_cached(const UprofFilePages *pages, uint64_t mapping, uint64_t first, unsigned n,
            uint8_t *bytes, bool *is_here)
{
    UprofFilePage wanted[BATCH];

    for (unsigned i = 0; i < n; i++)
        wanted[i] =
            (UprofFilePage){ .number = first + i, .into = bytes + (size_t)i * UPROF_PAGE_BYTES };
    uprof_page_cache_read(uprof_linux_offsets(pages->kernel), uprof_linux_maps(pages->kernel),
                          &pages->memory, mapping, wanted, n);
    for (unsigned i = 0; i < n; i++)
        is_here[i] = !wanted[i].is_missing;
}

/* Reads by the page tables of the process that ran. */
static void
read_own(const UprofFilePages *pages, const UprofFilePlace *place, uint64_t first, unsigned n,
         uint8_t *bytes, bool *is_here)
{
    const UprofSnapshot *snapshot = pages->snapshot;
    UprofMemPage wanted[BATCH];
    unsigned n_inside = 0;

    /* the guest says where the area begins */
    const uint64_t n_pages =
        place->base % UPROF_PAGE_BYTES == 0 ? place->len / UPROF_PAGE_BYTES : 0;
    for (unsigned i = 0; i < n && first + i < n_pages; i++)
        wanted[n_inside++] = (UprofMemPage){ .gva = place->base + (first + i) * UPROF_PAGE_BYTES,
                                             .into = bytes + (size_t)i * UPROF_PAGE_BYTES };
    uprof_mem_read_pages(pages->mem, snapshot->vcpu, &snapshot->regs, wanted, n_inside);
    for (unsigned i = 0; i < n; i++)
        is_here[i] = i < n_inside && !wanted[i].is_missing;
}

static void
read_pages(const UprofFilePages *pages, const UprofFilePlace *place, uint64_t first, unsigned n,
           uint8_t *bytes, bool *is_here)
{
    for (unsigned done = 0; done < n; done += BATCH) {
        const unsigned part = MIN(n - done, (unsigned)BATCH);
        uint8_t *into = bytes + (size_t)done * UPROF_PAGE_BYTES;
        if (place->mapping != 0)
            read_cached(pages, place->mapping, first + done, part, into, is_here + done);
        else
            read_own(pages, place, first + done, part, into, is_here + done);
    }
}

void
uprof_file_pages_read(UprofFilePages *pages, const UprofFilePlace *place, uint64_t first,
                      unsigned n, uint8_t *bytes, bool *is_here)
{
    const unsigned n_allowed = MIN(n, pages->n_left);

    memset(is_here, 0, n * sizeof(*is_here));
    pages->n_left -= n_allowed;
    read_pages(pages, place, first, n_allowed, bytes, is_here);
    for (unsigned i = 0; i < n; i++)
        if (!is_here[i])
            memset(bytes + (size_t)i * UPROF_PAGE_BYTES, 0, UPROF_PAGE_BYTES);
}

const uint8_t *
uprof_file_pages_find(UprofFilePages *pages, const UprofFilePlace *place, uint64_t number)
{
    const uint64_t now_ns = pages->snapshot->time_ns;

    if (place->mapping == 0)
        return NULL;
    if (!pages->slots)
        pages->slots = g_new0(Slot, SLOTS);
    Slot *slot = &pages->slots[(number ^ place->mapping >> 6) % SLOTS];
    if (slot->mapping == place->mapping && slot->number == number &&
        now_ns - slot->since_ns < UPROF_MEM_KEEP_NS)
        return slot->is_here ? slot->bytes : NULL;
    if (pages->n_single == SINGLE_MAX)
        return NULL;
    pages->n_single++;
    read_pages(pages, place, number, 1, slot->bytes, &slot->is_here);
    slot->mapping = place->mapping;
    slot->number = number;
    slot->since_ns = now_ns;
    return slot->is_here ? slot->bytes : NULL;
}
