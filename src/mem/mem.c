/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "plan-priv.h"

#include <string.h>

enum {
    TABLES_MAX = 32,             /* page-table pages the sampler remembers of a slow guest */
    PLANS = 4,                   /* that a vCPU's copies may be in turn: its stacks, and who runs */
    BULK_SPANS = 32,             /* in one read of the guest */
    BULK_SPAN_BYTES = 64 * 1024, /* one peek of a slow guest */
};

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

/** Cut: where the last copy of a vCPU ended too early; @len: 0: it did not */
typedef struct {
    UprofRegs regs;
    uint64_t gva;
    size_t len;
} Cut;

struct _UprofMem {
    UprofGuest *guest; /* borrowed */
    UprofLane lane;

    /* worker: guest-physical page -> its bytes, or NULL where there are none */
    GHashTable *pages;
    uint64_t kept_since_ns;
    uint32_t resets;
    unsigned n_fresh;
    bool is_bulk; /* nothing is too much */

    /* sampler of a slow guest */
    Table *tables;
    unsigned n_tables;
    uint64_t n_uses;
    bool lost_any; /* a table was used as remembered, and its place is another's now */
    uint8_t check[UPROF_PAGE_BYTES];

    /* sampler of any other guest that leaves walking to us */
    UprofPredict *predict;
    UprofPlan *plans; /* PLANS per vCPU */
    unsigned n_plans;
    unsigned *next_plan; /* per vCPU: which goes next */

    /* sampler of a guest that maps late */
    Cut *cuts; /* per vCPU */
    unsigned n_cuts;
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
    else if (!uprof_guest_translates(guest)) {
        mem->predict = uprof_predict_new();
        mem->n_plans = guest->n_vcpus * PLANS;
        mem->next_plan = g_new0(unsigned, guest->n_vcpus);
        mem->plans = g_new(UprofPlan, mem->n_plans);
        /* touched here, so that no page fault happens in a hold */
        memset(mem->plans, 0, mem->n_plans * sizeof(mem->plans[0]));
    }
    if (lane == UPROF_LANE_SAMPLER && guest->maps_late) {
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
    g_clear_pointer(&mem->pages, g_hash_table_unref);
    g_free(mem->tables);
    g_free(mem->cuts);
    g_free(mem->plans);
    g_free(mem->next_plan);
    uprof_predict_free(mem->predict);
    g_free(mem);
}

void
uprof_mem_forget(UprofMem *mem)
{
    if (mem->pages)
        g_hash_table_remove_all(mem->pages);
    if (mem->predict)
        uprof_predict_forget(mem->predict);
    for (unsigned i = 0; i < mem->n_plans; i++)
        uprof_plan_drop(&mem->plans[i]);
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

bool
uprof_mem_is_spent(const UprofMem *mem)
{
    return mem->pages && !mem->is_bulk && mem->n_fresh >= UPROF_MEM_FRESH_MAX;
}

/* Returns: (nullable): the page's bytes; NULL too if this sample has cost enough */
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

/* Returns: whether the walk of @gva's page ends at one */
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
    uprof_x86_walk(mem, regs, gva, &walk);
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

/* As uprof_mem_translate(), or as predicted: then uprof_predict_check() has the last word. */
static bool
find_page(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, uint64_t *gpa,
          uint64_t *left)
{
    UprofWalk walk;

    if (!mem->predict)
        return uprof_mem_translate(mem, vcpu, regs, gva, gpa, left, NULL);
    const uint64_t space = uprof_x86_space(regs);
    if (!uprof_predict_find(mem->predict, space, gva, &walk)) {
        uprof_x86_walk(mem, regs, gva, &walk);
        uprof_predict_keep(mem->predict, space, gva, &walk);
    }
    return follow_walk(&walk, gva, gpa, left);
}

/* Of a span that is missing as a whole, its pages up to the first that is missing. */
static size_t
read_pages(UprofMem *mem, const UprofSpan *span)
{
    UprofSpan pages[UPROF_COPY_PAGES_MAX];
    unsigned n = 0;
    size_t whole = 0;

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
        whole += pages[i].len;
    return whole;
}

/* Returns: how many spans hold @len bytes from @gva on, or those before the first hole */
static unsigned
find_spans(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
           size_t len, UprofSpan *spans)
{
    unsigned n = 0;
    size_t done = 0;

    while (done < len && gva + done >= gva) {
        uint64_t gpa, left;
        if (!find_page(mem, vcpu, regs, gva + done, &gpa, &left))
            break;
        const uint32_t part = (uint32_t)MIN(left, len - done);
        UprofSpan *last = n > 0 ? &spans[n - 1] : NULL;
        if (last && last->gpa + last->len == gpa) {
            last->len += part;
        } else {
            if (n == UPROF_COPY_PAGES_MAX)
                break;
            spans[n++] = (UprofSpan){ .gpa = gpa, .into = (uint8_t *)into + done, .len = part };
        }
        done += part;
    }
    return n;
}

/* Returns: (nullable): the place of a new plan */
static UprofPlan *
next_plan(UprofMem *mem, unsigned vcpu)
{
    if (vcpu >= mem->n_plans / PLANS)
        return NULL;
    return &mem->plans[vcpu * PLANS + mem->next_plan[vcpu]++ % PLANS];
}

static bool
copy_as_planned(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
                size_t len)
{
    const unsigned n = vcpu < mem->n_plans / PLANS ? PLANS : 0;

    for (unsigned i = 0; i < n; i++)
        if (uprof_plan_copy(&mem->plans[vcpu * PLANS + i], mem->guest, mem->lane,
                            uprof_x86_space(regs), gva, into, len))
            return true;
    return false;
}

/* Returns: false, with @whole untouched, if a prediction was wrong and so was what was copied */
static bool
try_copy(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into, size_t len,
         size_t *whole)
{
    UprofSpan spans[UPROF_COPY_PAGES_MAX + UPROF_PREDICT_SPANS_MAX];
    const unsigned n = find_spans(mem, vcpu, regs, gva, into, len, spans);
    /* read behind the data: a guest may run on, and what is so then was so for the data */
    const unsigned n_checks = mem->predict ? uprof_predict_spans(mem->predict, spans + n) : 0;

    uprof_guest_read(mem->guest, mem->lane, spans, n + n_checks);
    UprofPlan *plan = next_plan(mem, vcpu);
    if (plan)
        uprof_plan_keep(plan, mem->predict, uprof_x86_space(regs), gva, len, spans, n);
    if (mem->predict && !uprof_predict_check(mem->predict, spans + n, n_checks)) {
        if (plan)
            uprof_plan_drop(plan);
        return false;
    }

    *whole = 0;
    for (unsigned i = 0; i < n; i++) {
        if (spans[i].missing) {
            *whole += read_pages(mem, &spans[i]);
            break;
        }
        *whole += spans[i].len;
    }
    return true;
}

size_t
uprof_mem_copy(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
               size_t len)
{
    size_t whole = 0;

    g_assert(len <= UPROF_SNAPSHOT_BYTES_MAX);
    if (copy_as_planned(mem, vcpu, regs, gva, into, len))
        return len;
    if (mem->predict)
        uprof_predict_begin(mem->predict);
    /* predicts nothing the second time */
    if (!try_copy(mem, vcpu, regs, gva, into, len, &whole))
        try_copy(mem, vcpu, regs, gva, into, len, &whole);
    if (vcpu < mem->n_cuts && whole < len)
        mem->cuts[vcpu] = (Cut){ .regs = *regs, .gva = gva + whole, .len = len - whole };
    return whole;
}

/* A byte of each page that was missed, with the tables that lead there. */
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
        uprof_x86_walk(mem, &cut->regs, gva, &walk);
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

bool
uprof_mem_read_always(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
                      size_t len)
{
    mem->is_bulk = true;
    const bool ok = uprof_mem_read(mem, vcpu, regs, gva, into, len);
    mem->is_bulk = false;
    return ok;
}

/* Returns: bytes that were there; a piece with a hole is read again by its pages */
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
        const uint64_t mask =
            UPROF_ENTRY_VOLATILE | (table->is_narrow ? UPROF_ENTRY_VOLATILE << 32 : 0);
        if ((before | mask) != (after | mask))
            return false;
    }
    return true;
}

bool
uprof_mem_check(UprofMem *mem)
{
    bool same = !mem->lost_any;

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
