/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The caches, by lane and kind of guest:
 *
 *   worker              every page that was read, for some seconds (`pages`)
 *   sampler, slow guest page tables, compared after the hold (`tables`, uprof_mem_check())
 *   sampler, other guest first the vCPU's recent copies (`recent`), then remembered walks
 *                       (`walks`); both are confirmed by the same read that copies the data
 *   guest translates    none: the backend translates addresses itself
 *
 * For a guest that maps outside holds, `cuts` has the copies that failed. After the hold the
 * sampler reads their memory, so that it gets mapped.
 */
#include "uprof/mem.h"

#include <string.h>

#include "mem-priv.h"
#include "piece-batch-priv.h"
#include "recent-copy-priv.h"
#include "root-search-priv.h"
#include "uprof/clock.h"

enum {
    TABLES_MAX = 32, /* page-table pages that the sampler remembers of a slow guest */
    /* recent copies for each vCPU: of a few stacks, and of the memory to which a chain leads */
    RECENT_COPIES = 12,
    BULK_SPANS = 512,            /* in one read of the guest */
    BULK_SPAN_BYTES = 64 * 1024, /* one memory peek of a slow guest */
};

/* After this time, all pages that may be saved up are saved up. */
#define SAVED_NS (UPROF_MEM_SAVED_MAX / UPROF_MEM_MORE_PER_SECOND * UPROF_NS_PER_S)

/* A page of page tables, and which of its entries were used. */
typedef struct {
    uint64_t gpa;
    uint64_t last_use;
    bool fresh;                               /* used since the last check */
    bool is_new;                              /* read since the last check */
    bool is_narrow;                           /* has 4-byte entries */
    uint64_t used[UPROF_PAGE_BYTES / 8 / 64]; /* one bit for each 8 bytes */
    uint8_t bytes[UPROF_PAGE_BYTES];
} Table;

/* Where the last copy of a vCPU ended too early. */
typedef struct {
    UprofRegs regs;
    uint64_t gva;
    size_t len; /* bytes that are missing; 0: the copy was complete */
} Cut;

/* Bytes that a caller wants. */
typedef struct {
    unsigned vcpu;
    const UprofRegs *regs; /* of @vcpu */
    uint64_t space;        /* see UprofPaging */
    uint64_t gva;
    void *into;
    size_t len;
} Request;

/* A range of guest-virtual memory that is one range of guest-physical memory, too. */
typedef struct {
    uint64_t gva, gpa, len; /* bytes; 0: none yet */
} Mapped;

struct _UprofMem {
    UprofGuest *guest; /* borrowed */
    UprofLane lane;
    const UprofPaging *paging; /* of the guest's architecture */

    /* worker: guest-physical page -> its bytes, or %NULL if there is no memory */
    GHashTable *pages;
    uint64_t kept_since_ns;
    uint32_t resets;
    unsigned n_fresh;   /* pages that this sample has fetched */
    unsigned n_allowed; /* pages that this sample may fetch */
    unsigned n_saved;   /* pages that samples may fetch in addition */
    uint64_t saved_ns;  /* when pages were last added to @n_saved */
    bool is_bulk;       /* the limit for one sample is off */
    /* (nullable): owned: of uprof_mem_begin_pieces(); empty if it has ended */
    UprofPieceBatch *begun;

    /* sampler of a slow guest */
    Table *tables;
    unsigned n_tables;
    uint64_t n_uses;
    bool lost_any; /* a table that was used, but not checked yet, was replaced */
    uint8_t check[UPROF_PAGE_BYTES];

    /* sampler of any other guest that does not translate by itself */
    UprofWalkCache *walks;
    UprofRecentCopy *recent; /* RECENT_COPIES for each vCPU */
    unsigned n_recent;
    unsigned *next_recent; /* per vCPU: the recent copy that is replaced next */

    /* sampler of a guest whose registers have no roots */
    UprofRootSearch search;

    /* sampler of a guest that maps outside holds */
    Cut *cuts; /* one for each vCPU */
    unsigned n_cuts;
};

UprofMem *
uprof_mem_new(UprofGuest *guest, UprofLane lane)
{
    UprofMem *mem = g_new0(UprofMem, 1);

    mem->n_allowed = UPROF_MEM_FRESH_MAX;
    mem->n_saved = UPROF_MEM_SAVED_MAX;
    mem->guest = guest;
    mem->lane = lane;
    mem->paging = uprof_paging_find(guest->arch);
    if (lane == UPROF_LANE_WORKER)
        mem->pages = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    else if (guest->slow_reads)
        mem->tables = g_new0(Table, TABLES_MAX);
    else if (!uprof_guest_translates(guest)) {
        mem->walks = uprof_walk_cache_new();
        mem->n_recent = guest->n_vcpus * RECENT_COPIES;
        mem->next_recent = g_new0(unsigned, guest->n_vcpus);
        mem->recent = g_new(UprofRecentCopy, mem->n_recent);
        /* The host allocates the pages here, so that no page fault happens in a hold. */
        memset(mem->recent, 0, mem->n_recent * sizeof(mem->recent[0]));
    }
    if (lane == UPROF_LANE_SAMPLER && guest->needs_roots)
        uprof_root_search_begin(guest);
    if (lane == UPROF_LANE_SAMPLER && guest->maps_outside_holds) {
        mem->n_cuts = guest->n_vcpus;
        mem->cuts = g_new0(Cut, mem->n_cuts);
    }
    return mem;
}

void
uprof_mem_free(UprofMem *mem)
{
    if (!mem)
        return;
    g_assert(!mem->begun || mem->begun->n == 0);
    g_clear_pointer(&mem->pages, g_hash_table_unref);
    g_free(mem->tables);
    g_free(mem->cuts);
    g_free(mem->recent);
    g_free(mem->next_recent);
    g_free(mem->begun);
    uprof_walk_cache_free(mem->walks);
    g_free(mem);
}

void
uprof_mem_forget(UprofMem *mem)
{
    if (mem->pages)
        g_hash_table_remove_all(mem->pages);
    if (mem->walks)
        uprof_walk_cache_forget(mem->walks);
    for (unsigned i = 0; i < mem->n_recent; i++)
        uprof_recent_copy_drop(&mem->recent[i]);
    mem->n_tables = 0;
    mem->lost_any = false;
}

/* Takes what the last sample has used, and adds what its time allows. */
static void
fill_saved(UprofMem *mem, uint64_t time_ns)
{
    const unsigned used = mem->n_fresh - MIN(mem->n_fresh, (unsigned)UPROF_MEM_FRESH_MAX);
    const uint64_t apart_ns = MIN(time_ns - mem->saved_ns, SAVED_NS);
    const uint64_t more = apart_ns * UPROF_MEM_MORE_PER_SECOND / UPROF_NS_PER_S;

    mem->n_saved -= MIN(mem->n_saved, used);
    if (more == 0)
        return;
    mem->n_saved = (unsigned)MIN(mem->n_saved + more, (uint64_t)UPROF_MEM_SAVED_MAX);
    mem->saved_ns = time_ns;
}

void
uprof_mem_begin_sample(UprofMem *mem, uint64_t time_ns, uint32_t resets)
{
    if (time_ns - mem->kept_since_ns >= UPROF_MEM_KEEP_NS || resets != mem->resets ||
        g_hash_table_size(mem->pages) >= UPROF_MEM_PAGES_MAX) {
        uprof_mem_forget(mem);
        mem->kept_since_ns = time_ns;
        mem->resets = resets;
    }
    fill_saved(mem, time_ns);
    mem->n_fresh = 0;
    mem->n_allowed = UPROF_MEM_FRESH_MAX;
}

bool
uprof_mem_is_spent(const UprofMem *mem)
{
    return mem->pages && !mem->is_bulk && mem->n_fresh >= mem->n_allowed;
}

void
uprof_mem_allow_more(UprofMem *mem)
{
    mem->n_allowed = UPROF_MEM_FRESH_MAX + MIN(mem->n_saved, (unsigned)UPROF_MEM_MORE_MAX);
}

/* Returns: (nullable): %NULL if there is no memory, or this sample has fetched too many pages */
static const uint8_t *
remember_page(UprofMem *mem, uint64_t gpa)
{
    gpointer bytes = NULL;

    if (g_hash_table_lookup_extended(mem->pages, &gpa, NULL, &bytes))
        return bytes;
    if (uprof_mem_is_spent(mem))
        return NULL;
    if (!mem->is_bulk)
        mem->n_fresh++;
    else if (g_hash_table_size(mem->pages) >= 2 * UPROF_MEM_PAGES_MAX)
        g_hash_table_remove_all(mem->pages);

    g_autofree uint8_t *page = g_malloc(UPROF_PAGE_BYTES);
    UprofSpan span = { .gpa = gpa, .into = page, .len = UPROF_PAGE_BYTES };
    uprof_guest_read(mem->guest, mem->lane, &span, 1);
    bytes = span.missing ? NULL : g_steal_pointer(&page);
    g_hash_table_insert(mem->pages, g_memdup2(&gpa, sizeof(gpa)), bytes);
    return bytes;
}

static Table *
find_table(UprofMem *mem, uint64_t gpa)
{
    Table *oldest = &mem->tables[0];

    for (unsigned i = 0; i < mem->n_tables; i++) {
        if (mem->tables[i].gpa == gpa)
            return &mem->tables[i];
        if (mem->tables[i].last_use < oldest->last_use)
            oldest = &mem->tables[i];
    }
    Table *table = mem->n_tables < TABLES_MAX ? &mem->tables[mem->n_tables] : oldest;
    UprofSpan span = { .gpa = gpa, .into = mem->check, .len = UPROF_PAGE_BYTES };
    uprof_guest_read(mem->guest, mem->lane, &span, 1);
    if (span.missing)
        return NULL;
    if (table == &mem->tables[mem->n_tables])
        mem->n_tables++;
    else if (table->fresh && !table->is_new)
        mem->lost_any = true;
    *table = (Table){ .gpa = gpa, .is_new = true };
    memcpy(table->bytes, mem->check, UPROF_PAGE_BYTES);
    return table;
}

static const uint8_t *
remember_table(UprofMem *mem, uint64_t gpa, uint64_t offset, unsigned len)
{
    Table *table = find_table(mem, gpa);

    if (!table)
        return NULL;
    table->last_use = ++mem->n_uses;
    table->fresh = true;
    table->is_narrow = len == 4;
    table->used[offset / 8 / 64] |= UINT64_C(1) << (offset / 8 % 64);
    return table->bytes;
}

/* An UprofReadEntry for this guest. */
static bool
read_entry(void *data, uint64_t gpa, unsigned len, uint64_t *entry)
{
    UprofMem *mem = data;
    const uint64_t offset = gpa % UPROF_PAGE_BYTES;
    uint8_t raw[8] = { 0 };
    const uint8_t *page = NULL;

    g_assert(len <= sizeof(raw) && offset + len <= UPROF_PAGE_BYTES);
    if (!mem->pages && !mem->tables) {
        UprofSpan span = { .gpa = gpa, .into = raw, .len = len };
        uprof_guest_read(mem->guest, mem->lane, &span, 1);
        if (span.missing)
            return false;
    } else {
        page = mem->pages ? remember_page(mem, gpa - offset)
                          : remember_table(mem, gpa - offset, offset, len);
        if (!page)
            return false;
        memcpy(raw, page + offset, len);
    }
    uint64_t value;
    memcpy(&value, raw, sizeof(value));
    *entry = GUINT64_FROM_LE(value);
    return true;
}

/* @left: (out): bytes up to the end of the page. Returns: false if @gva is not mapped */
static bool
follow_walk(const UprofWalk *walk, uint64_t gva, uint64_t *gpa, uint64_t *left)
{
    const uint64_t offset = gva & (walk->page_len - 1);

    if (!walk->mapped)
        return false;
    *gpa = walk->frame + offset;
    *left = walk->page_len - offset;
    return true;
}

bool
uprof_mem_find(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva,
               UprofMapping *mapping)
{
    UprofWalk walk;

    if (uprof_guest_translates(mem->guest)) {
        *mapping =
            (UprofMapping){ .left = UPROF_PAGE_BYTES - gva % UPROF_PAGE_BYTES, .executable = true };
        return uprof_guest_translate(mem->guest, vcpu, gva, &mapping->gpa);
    }
    mem->paging->walk(read_entry, mem, regs, gva, &walk);
    mapping->executable = walk.executable;
    mapping->writable = walk.writable;
    return follow_walk(&walk, gva, &mapping->gpa, &mapping->left);
}

bool
uprof_mem_translate(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva,
                    uint64_t *gpa, uint64_t *left, bool *executable)
{
    UprofMapping mapping;

    if (!uprof_mem_find(mem, vcpu, regs, gva, &mapping))
        return false;
    *gpa = mapping.gpa;
    *left = mapping.left;
    if (executable)
        *executable = mapping.executable;
    return true;
}

/* As uprof_mem_translate(), or by a remembered walk that uprof_walk_cache_check() must confirm. */
static bool
find_page(UprofMem *mem, const Request *request, uint64_t gva, uint64_t *gpa, uint64_t *left)
{
    UprofWalk walk;

    if (!mem->walks)
        return uprof_mem_translate(mem, request->vcpu, request->regs, gva, gpa, left, NULL);
    if (!uprof_walk_cache_find(mem->walks, request->space, gva, &walk)) {
        mem->paging->walk(read_entry, mem, request->regs, gva, &walk);
        uprof_walk_cache_keep(mem->walks, request->space, gva, &walk);
    }
    return follow_walk(&walk, gva, gpa, left);
}

/* Reads a missing span again page by page. Returns: bytes up to the first missing page */
static size_t
read_pages(UprofMem *mem, const UprofSpan *span)
{
    UprofSpan pages[UPROF_COPY_PAGES_MAX];
    unsigned n = 0;
    size_t n_bytes = 0;

    for (uint32_t done = 0; done < span->len && n < UPROF_COPY_PAGES_MAX; done += pages[n++].len) {
        const uint64_t gpa = span->gpa + done;
        const uint64_t left = UPROF_PAGE_BYTES - gpa % UPROF_PAGE_BYTES;
        pages[n] = (UprofSpan){ .gpa = gpa,
                                .into = (uint8_t *)span->into + done,
                                .len = (uint32_t)MIN(left, span->len - done) };
    }
    if (n < 2)
        return 0;
    uprof_guest_read(mem->guest, mem->lane, pages, n);
    for (unsigned i = 0; i < n && !pages[i].missing; i++)
        n_bytes += pages[i].len;
    return n_bytes;
}

/* Returns: how many spans hold the wanted bytes, or those before the first hole */
static unsigned
find_spans(UprofMem *mem, const Request *request, UprofSpan *spans)
{
    unsigned n = 0;
    size_t done = 0;

    while (done < request->len && request->gva + done >= request->gva) {
        uint64_t gpa, left;
        if (!find_page(mem, request, request->gva + done, &gpa, &left))
            break;
        const uint32_t part = (uint32_t)MIN(left, request->len - done);
        UprofSpan *last = n > 0 ? &spans[n - 1] : NULL;
        if (last && last->gpa + last->len == gpa) {
            last->len += part;
        } else {
            if (n == UPROF_COPY_PAGES_MAX)
                break;
            spans[n++] =
                (UprofSpan){ .gpa = gpa, .into = (uint8_t *)request->into + done, .len = part };
        }
        done += part;
    }
    return n;
}

/* Returns: (nullable): the recent copy to replace */
static UprofRecentCopy *
next_recent_copy(UprofMem *mem, unsigned vcpu)
{
    if (vcpu >= mem->n_recent / RECENT_COPIES)
        return NULL;
    return &mem->recent[vcpu * RECENT_COPIES + mem->next_recent[vcpu]++ % RECENT_COPIES];
}

static bool
copy_by_recent(UprofMem *mem, const Request *request)
{
    const unsigned n = request->vcpu < mem->n_recent / RECENT_COPIES ? RECENT_COPIES : 0;

    for (unsigned i = 0; i < n; i++)
        if (uprof_recent_copy_repeat(&mem->recent[request->vcpu * RECENT_COPIES + i], mem->guest,
                                     mem->lane, request->space, request->gva, request->into,
                                     request->len))
            return true;
    return false;
}

/* Returns: bytes up to the first missing page */
static size_t
count_copied(UprofMem *mem, const UprofSpan *spans, unsigned n)
{
    size_t n_bytes = 0;

    for (unsigned i = 0; i < n; i++) {
        if (spans[i].missing)
            return n_bytes + read_pages(mem, &spans[i]);
        n_bytes += spans[i].len;
    }
    return n_bytes;
}

/*
 * @n_bytes: (out): bytes that were copied. Returns: false if a remembered walk was wrong: the
 * bytes are wrong, too, and the copy must be made again
 */
static bool
copy_by_walk(UprofMem *mem, const Request *request, size_t *n_bytes)
{
    UprofSpan spans[UPROF_COPY_PAGES_MAX + UPROF_CHECK_SPANS_MAX];
    const unsigned n = find_spans(mem, request, spans);
    /* The read gets the entries after the data, because a guest may run on: entries that have not
     * changed by then had not changed when the data was read. */
    const unsigned n_checks = mem->walks ? uprof_walk_cache_get_spans(mem->walks, spans + n) : 0;

    uprof_guest_read(mem->guest, mem->lane, spans, n + n_checks);
    UprofRecentCopy *recent = next_recent_copy(mem, request->vcpu);
    if (recent)
        uprof_recent_copy_keep(recent, mem->walks, request->space, request->gva, request->len,
                               spans, n);
    if (mem->walks && !uprof_walk_cache_check(mem->walks, spans + n, n_checks)) {
        if (recent)
            uprof_recent_copy_drop(recent);
        return false;
    }
    *n_bytes = count_copied(mem, spans, n);
    return true;
}

/* The byte below the stack pointer must be mapped. An empty stack ends at a guard page. */
static void
note_copy(UprofMem *mem, const Request *request, size_t n_bytes)
{
    const uint64_t last = request->regs->sp - 1;

    if (n_bytes > last - request->gva)
        uprof_root_search_note(&mem->search, request->vcpu, request->regs, true);
    else if (n_bytes == 0 && request->gva / UPROF_PAGE_BYTES == last / UPROF_PAGE_BYTES)
        uprof_root_search_note(&mem->search, request->vcpu, request->regs, false);
}

size_t
uprof_mem_copy(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
               size_t len)
{
    const Request request = {
        .vcpu = vcpu,
        .regs = regs,
        .space = mem->walks ? mem->paging->space(regs, gva) : 0,
        .gva = gva,
        .into = into,
        .len = len,
    };
    size_t n_bytes = 0;

    g_assert(len <= UPROF_SNAPSHOT_BYTES_MAX);
    if (copy_by_recent(mem, &request)) {
        if (mem->guest->needs_roots)
            note_copy(mem, &request, len);
        return len;
    }
    if (mem->walks)
        uprof_walk_cache_begin_copy(mem->walks);
    /* The second try uses its own walks only, and cannot fail. */
    if (!copy_by_walk(mem, &request, &n_bytes))
        copy_by_walk(mem, &request, &n_bytes);
    if (mem->guest->needs_roots)
        note_copy(mem, &request, n_bytes);
    if (vcpu < mem->n_cuts && n_bytes < len)
        mem->cuts[vcpu] = (Cut){ .regs = *regs, .gva = gva + n_bytes, .len = len - n_bytes };
    return n_bytes;
}

/* Reads one byte of each missed page, and the tables that lead there, so that they get mapped. */
static void
touch_cut(UprofMem *mem, Cut *cut)
{
    const size_t len = cut->len;

    cut->len = 0;
    for (size_t done = 0; done < len;) {
        const uint64_t gva = cut->gva + done;
        uint64_t gpa, left;
        uint8_t byte;
        UprofWalk walk;
        mem->paging->walk(read_entry, mem, &cut->regs, gva, &walk);
        if (!follow_walk(&walk, gva, &gpa, &left))
            return;
        UprofSpan span = { .gpa = gpa, .into = &byte, .len = sizeof(byte) };
        uprof_guest_read(mem->guest, mem->lane, &span, 1);
        if (span.missing)
            return;
        done += UPROF_PAGE_BYTES - gva % UPROF_PAGE_BYTES;
    }
}

bool
uprof_mem_read(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
               size_t len)
{
    size_t done = 0;

    g_assert(mem->pages);
    while (done < len) {
        uint64_t gpa, left;
        if (!uprof_mem_translate(mem, vcpu, regs, gva + done, &gpa, &left, NULL))
            return false;
        const uint64_t offset = gpa % UPROF_PAGE_BYTES;
        const size_t part = MIN(MIN(left, UPROF_PAGE_BYTES - offset), len - done);
        const uint8_t *page = remember_page(mem, gpa - offset);
        if (!page)
            return false;
        memcpy((uint8_t *)into + done, page + offset, part);
        done += part;
    }
    return true;
}

void
uprof_mem_drop_page(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva)
{
    uint64_t gpa, left;

    g_assert(mem->pages);
    if (!uprof_mem_translate(mem, vcpu, regs, gva, &gpa, &left, NULL))
        return;
    gpa -= gpa % UPROF_PAGE_BYTES;
    g_hash_table_remove(mem->pages, &gpa);
}

bool
uprof_mem_read_always(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
                      size_t len)
{
    mem->is_bulk = true;
    const bool ok = uprof_mem_read(mem, vcpu, regs, gva, into, len);
    mem->is_bulk = false;
    return ok;
}

/* Returns: bytes that were read */
static size_t
read_batch(UprofMem *mem, UprofSpan *spans, unsigned n)
{
    size_t got = 0;

    uprof_guest_read(mem->guest, mem->lane, spans, n);
    for (unsigned i = 0; i < n; i++)
        got += spans[i].missing ? read_pages(mem, &spans[i]) : spans[i].len;
    return got;
}

size_t
uprof_mem_read_bulk(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
                    size_t len)
{
    UprofSpan spans[BULK_SPANS];
    unsigned n = 0;
    size_t got = 0;

    g_assert(mem->pages && gva % UPROF_PAGE_BYTES == 0 && len % UPROF_PAGE_BYTES == 0);
    mem->is_bulk = true;
    for (size_t done = 0; done < len; done += UPROF_PAGE_BYTES) {
        UprofSpan *last = n > 0 ? &spans[n - 1] : NULL;
        uint8_t *page = (uint8_t *)into + done;
        UprofMapping mapping;
        if (!uprof_mem_find(mem, vcpu, regs, gva + done, &mapping))
            continue;
        if (last && last->gpa + last->len == mapping.gpa && last->len < BULK_SPAN_BYTES &&
            (uint8_t *)last->into + last->len == page) {
            last->len += UPROF_PAGE_BYTES;
            continue;
        }
        if (n == BULK_SPANS) {
            got += read_batch(mem, spans, n);
            n = 0;
        }
        spans[n++] = (UprofSpan){ .gpa = mapping.gpa, .into = page, .len = UPROF_PAGE_BYTES };
    }
    got += read_batch(mem, spans, n);
    mem->is_bulk = false;
    return got;
}

/* Spans of the guest, and the pages that each span reads. */
typedef struct {
    UprofSpan spans[BULK_SPANS];
    UprofMemPage *first[BULK_SPANS]; /* page at the beginning of each span; borrowed */
    unsigned n;
} PageBatch;

/* Reads a span that is missing again page by page, because another of its pages may be missing. */
static void
read_each_page(UprofMem *mem, const UprofSpan *span, UprofMemPage *pages)
{
    for (uint32_t done = 0; done < span->len; done += UPROF_PAGE_BYTES, pages++) {
        UprofSpan one = { .gpa = span->gpa + done, .into = pages->into, .len = UPROF_PAGE_BYTES };
        uprof_guest_read(mem->guest, mem->lane, &one, 1);
        pages->is_missing = one.missing;
    }
}

static void
read_page_batch(UprofMem *mem, PageBatch *batch)
{
    if (batch->n > 0)
        uprof_guest_read(mem->guest, mem->lane, batch->spans, batch->n);
    for (unsigned i = 0; i < batch->n; i++) {
        const UprofSpan *span = &batch->spans[i];
        if (span->missing)
            read_each_page(mem, span, batch->first[i]);
        for (uint32_t k = 0; !span->missing && k < span->len / UPROF_PAGE_BYTES; k++)
            batch->first[i][k].is_missing = false;
    }
    batch->n = 0;
}

static void
add_to_batch(UprofMem *mem, PageBatch *batch, UprofMemPage *page, uint64_t gpa)
{
    UprofSpan *last = batch->n > 0 ? &batch->spans[batch->n - 1] : NULL;

    if (last && last->gpa + last->len == gpa && last->len < BULK_SPAN_BYTES &&
        (uint8_t *)last->into + last->len == page->into &&
        batch->first[batch->n - 1] + last->len / UPROF_PAGE_BYTES == page) {
        last->len += UPROF_PAGE_BYTES;
        return;
    }
    if (batch->n == BULK_SPANS)
        read_page_batch(mem, batch);
    batch->first[batch->n] = page;
    batch->spans[batch->n++] =
        (UprofSpan){ .gpa = gpa, .into = page->into, .len = UPROF_PAGE_BYTES };
}

void
uprof_mem_read_pages(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, UprofMemPage *pages,
                     unsigned n)
{
    PageBatch batch = { .n = 0 };
    uint64_t gpa, left;

    g_assert(mem->pages);
    mem->is_bulk = true;
    for (unsigned i = 0; i < n; i++) {
        g_assert(pages[i].gva % UPROF_PAGE_BYTES == 0);
        pages[i].is_missing = true;
        if (uprof_mem_translate(mem, vcpu, regs, pages[i].gva, &gpa, &left, NULL))
            add_to_batch(mem, &batch, &pages[i], gpa);
    }
    read_page_batch(mem, &batch);
    mem->is_bulk = false;
}

static void
read_piece_batch(UprofMem *mem, UprofPieceBatch *batch)
{
    if (batch->n == 0)
        return;
    uprof_piece_batch_prepare(batch, mem->guest->slow_reads);
    uprof_guest_read(mem->guest, mem->lane, batch->spans, batch->n_spans);
    uprof_piece_batch_finish(batch);
}

/* @left: (out): bytes up to the end of the range. Returns: false if @gva is not mapped */
static bool
find_mapped(UprofMem *mem, const Request *request, Mapped *last, uint64_t gva, uint64_t *gpa,
            uint64_t *left)
{
    if (gva < last->gva || gva - last->gva >= last->len) {
        if (!find_page(mem, request, gva, &last->gpa, &last->len))
            return false;
        last->gva = gva;
    }
    *gpa = last->gpa + (gva - last->gva);
    *left = last->len - (gva - last->gva);
    return true;
}

/*
 * Adds the spans of a piece: one, unless its pages lie apart in guest-physical memory.
 * @mapped: (inout): of the piece before; both mostly lie in one page
 */
static void
add_piece(UprofMem *mem, const Request *request, UprofPieceBatch *batch, UprofMemPiece *piece,
          Mapped *mapped)
{
    UprofSpan *last = NULL;
    uint64_t gpa, left;

    for (uint32_t done = 0; done < piece->len && !piece->is_missing;) {
        if (!find_mapped(mem, request, mapped, piece->gva + done, &gpa, &left)) {
            piece->is_missing = true;
            return;
        }
        const uint32_t part = (uint32_t)MIN(left, piece->len - done);
        if (last && last->gpa + last->len == gpa) {
            last->len += part;
        } else {
            if (batch->n == UPROF_PIECE_BATCH_MAX)
                read_piece_batch(mem, batch);
            const UprofSpan span = { .gpa = gpa,
                                     .into = (uint8_t *)piece->into + done,
                                     .len = part };
            last = uprof_piece_batch_add(batch, piece, span);
        }
        done += part;
    }
}

/* Reads pieces, except the last ones, which stay in the batch. */
static void
add_pieces(UprofMem *mem, const Request *request, UprofPieceBatch *batch, UprofMemPiece *pieces,
           unsigned n)
{
    Mapped mapped = { 0 };

    g_assert(mem->pages && n <= UPROF_MEM_PIECES_MAX);
    batch->n = 0;
    mem->is_bulk = true;
    for (unsigned i = 0; i < n; i++) {
        pieces[i].is_missing = false;
        add_piece(mem, request, batch, &pieces[i], &mapped);
    }
    mem->is_bulk = false;
}

void
uprof_mem_read_pieces(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, UprofMemPiece *pieces,
                      unsigned n)
{
    const Request request = { .vcpu = vcpu, .regs = regs };
    UprofPieceBatch batch; /* large; add_pieces() initializes what is used */

    add_pieces(mem, &request, &batch, pieces, n);
    read_piece_batch(mem, &batch);
}

void
uprof_mem_begin_pieces(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, UprofMemPiece *pieces,
                       unsigned n)
{
    const Request request = { .vcpu = vcpu, .regs = regs };

    if (!mem->begun)
        mem->begun = g_new0(UprofPieceBatch, 1);
    g_assert(mem->begun->n == 0);
    add_pieces(mem, &request, mem->begun, pieces, n);
    if (mem->begun->n == 0)
        return;
    uprof_piece_batch_prepare(mem->begun, mem->guest->slow_reads);
    uprof_guest_begin_read(mem->guest, mem->begun->spans, mem->begun->n_spans);
}

void
uprof_mem_end_pieces(UprofMem *mem)
{
    if (!mem->begun || mem->begun->n == 0)
        return;
    uprof_guest_end_read(mem->guest);
    uprof_piece_batch_finish(mem->begun);
}

const UprofArch *
uprof_mem_arch(const UprofMem *mem)
{
    return mem->guest->arch;
}

bool
uprof_mem_is_slow(const UprofMem *mem)
{
    return mem->guest->slow_reads;
}

/* Are the entries that were used the same, except for volatile bits? */
static bool
is_same_table(const Table *table, const uint8_t *now)
{
    for (size_t i = 0; i < UPROF_PAGE_BYTES / 8; i++) {
        uint64_t before, after;
        if (!(table->used[i / 64] & UINT64_C(1) << (i % 64)))
            continue;
        memcpy(&before, table->bytes + i * 8, sizeof(before));
        memcpy(&after, now + i * 8, sizeof(after));
        const uint64_t mask = table->is_narrow
                                  ? UPROF_ENTRY_VOLATILE_32 | UPROF_ENTRY_VOLATILE_32 << 32
                                  : UPROF_ENTRY_VOLATILE;
        if ((before | mask) != (after | mask))
            return false;
    }
    return true;
}

bool
uprof_mem_check(UprofMem *mem)
{
    bool same = !mem->lost_any;

    if (mem->guest->needs_roots && uprof_root_search_run(&mem->search, mem->guest, mem->lane))
        same = false;
    for (unsigned i = 0; i < mem->n_cuts; i++)
        if (mem->cuts[i].len > 0)
            touch_cut(mem, &mem->cuts[i]);
    mem->lost_any = false;
    for (unsigned i = 0; i < mem->n_tables; i++) {
        Table *table = &mem->tables[i];
        table->is_new = false;
        if (!table->fresh)
            continue;
        UprofSpan span = { .gpa = table->gpa, .into = mem->check, .len = UPROF_PAGE_BYTES };
        uprof_guest_read(mem->guest, mem->lane, &span, 1);
        if (span.missing || !is_same_table(table, mem->check))
            same = false;
        table->fresh = false;
        memset(table->used, 0, sizeof(table->used));
        if (!span.missing)
            memcpy(table->bytes, mem->check, UPROF_PAGE_BYTES);
    }
    if (!same)
        uprof_mem_forget(mem);
    return same;
}
