/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mem-priv.h"

#include <string.h>

enum {
    TABLES_MAX = 32, /* page-table pages the sampler remembers of a slow guest */
    SPANS_MAX = UPROF_SNAPSHOT_BYTES_MAX / UPROF_PAGE_BYTES + 2,
};

/* bits 5 and 6 (accessed, dirty) change by themselves */
#define ENTRY_VOLATILE UINT64_C(0x60)

/* A page of page tables, and which of its entries were used. */
typedef struct {
    uint64_t gpa;
    uint64_t last_use;
    bool fresh;     /* used since the last check */
    bool is_new;    /* read since the last check */
    bool is_narrow; /* of 4-byte entries */
    uint64_t used[UPROF_PAGE_BYTES / 8 / 64];
    uint8_t bytes[UPROF_PAGE_BYTES];
} Table;

struct _UprofMem {
    UprofGuest *guest; /* borrowed */
    UprofLane lane;

    /* worker: guest-physical page -> its bytes, or NULL where there are none */
    GHashTable *pages;
    uint64_t kept_since_ns;
    uint32_t resets;
    unsigned n_fresh;

    /* sampler of a slow guest */
    Table *tables;
    unsigned n_tables;
    uint64_t n_uses;
    bool lost_any; /* a table was used as remembered, and its place is another's now */
    uint8_t check[UPROF_PAGE_BYTES];
};

UprofMem *
uprof_mem_new(UprofGuest *guest, UprofLane lane)
{
    UprofMem *mem = g_new0(UprofMem, 1);

    mem->guest = guest;
    mem->lane = lane;
    if (lane == UPROF_LANE_WORKER)
        mem->pages = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    else if (guest->slow_reads)
        mem->tables = g_new0(Table, TABLES_MAX);
    return mem;
}

void
uprof_mem_free(UprofMem *mem)
{
    if (!mem)
        return;
    g_clear_pointer(&mem->pages, g_hash_table_unref);
    g_free(mem->tables);
    g_free(mem);
}

void
uprof_mem_forget(UprofMem *mem)
{
    if (mem->pages)
        g_hash_table_remove_all(mem->pages);
    mem->n_tables = 0;
    mem->lost_any = false;
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
    mem->n_fresh = 0;
}

/* Returns: (nullable): the page's bytes; NULL too if this sample has cost enough */
static const uint8_t *
remember_page(UprofMem *mem, uint64_t gpa)
{
    gpointer bytes = NULL;

    if (g_hash_table_lookup_extended(mem->pages, &gpa, NULL, &bytes))
        return bytes;
    if (mem->n_fresh >= UPROF_MEM_FRESH_MAX)
        return NULL;
    mem->n_fresh++;

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

bool
uprof_mem_read_entry(UprofMem *mem, uint64_t gpa, unsigned len, uint64_t *entry)
{
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

bool
uprof_mem_translate(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva,
                    uint64_t *gpa, uint64_t *left, bool *executable)
{
    if (uprof_guest_translates(mem->guest)) {
        *left = UPROF_PAGE_BYTES - gva % UPROF_PAGE_BYTES;
        if (executable)
            *executable = true;
        return uprof_guest_translate(mem->guest, vcpu, gva, gpa);
    }
    return uprof_x86_translate(mem, regs, gva, gpa, left, executable);
}

/* Of a span that is missing as a whole, its pages up to the first that is missing. */
static size_t
read_pages(UprofMem *mem, const UprofSpan *span)
{
    UprofSpan pages[SPANS_MAX];
    unsigned n = 0;
    size_t whole = 0;

    for (uint32_t done = 0; done < span->len && n < SPANS_MAX; done += pages[n++].len) {
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
        whole += pages[i].len;
    return whole;
}

size_t
uprof_mem_copy(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
               size_t len)
{
    UprofSpan spans[SPANS_MAX];
    unsigned n = 0;
    size_t done = 0;

    while (done < len && gva + done >= gva) {
        uint64_t gpa, left;
        if (!uprof_mem_translate(mem, vcpu, regs, gva + done, &gpa, &left, NULL))
            break;
        const uint32_t part = (uint32_t)MIN(left, len - done);
        UprofSpan *last = n > 0 ? &spans[n - 1] : NULL;
        if (last && last->gpa + last->len == gpa) {
            last->len += part;
        } else {
            if (n == SPANS_MAX)
                break;
            spans[n++] = (UprofSpan){ .gpa = gpa, .into = (uint8_t *)into + done, .len = part };
        }
        done += part;
    }
    uprof_guest_read(mem->guest, mem->lane, spans, n);

    size_t whole = 0;
    for (unsigned i = 0; i < n; i++) {
        if (spans[i].missing)
            return whole + read_pages(mem, &spans[i]);
        whole += spans[i].len;
    }
    return whole;
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

/* Returns: whether the entries that were used say the same as before */
static bool
is_same_table(const Table *table, const uint8_t *now)
{
    for (size_t i = 0; i < UPROF_PAGE_BYTES / 8; i++) {
        uint64_t before, after;
        if (!(table->used[i / 64] & UINT64_C(1) << (i % 64)))
            continue;
        memcpy(&before, table->bytes + i * 8, sizeof(before));
        memcpy(&after, now + i * 8, sizeof(after));
        const uint64_t mask = ENTRY_VOLATILE | (table->is_narrow ? ENTRY_VOLATILE << 32 : 0);
        if ((before | mask) != (after | mask))
            return false;
    }
    return true;
}

bool
uprof_mem_check(UprofMem *mem)
{
    bool same = !mem->lost_any;

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
