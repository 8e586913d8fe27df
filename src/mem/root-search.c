/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "root-search-priv.h"

#include <string.h>

#include "paging-priv.h"
#include "uprof/clock.h"

enum {
    BLOCK_BYTES = 1024 * 1024, /* no table is larger, and all are aligned to their size */
    SPAN_BYTES = 64 * 1024,    /* one memory peek of a slow guest */
    REACH_BLOCKS = 128,        /* on each side of the code */
    SLOW_REACH_BLOCKS = 16,    /* of a slow guest, which takes milliseconds for each span */
    ENTRY_BYTES = 8,
    READS_MAX = 200 * 1000, /* of entries: a hostile guest may have a root in each page */
    RAM_BITS_MAX = 40,      /* of the address of a table */
    KERNEL = 0,
    HALF_BIT = 55,  /* of an address: which half it lies in */
    PROBE_BIT = 12, /* the lowest one that differs */
    PROBES = 36,
};

#define FIRST_PAUSE_NS (UPROF_NS_PER_S / 10)
#define CHECK_NS (10 * UPROF_NS_PER_S)
#define SEARCH_NS UPROF_NS_PER_S /* the longest time for one half */
#define LAST_PAUSE_NS (60 * UPROF_NS_PER_S)
/* TCR_EL1: no tables */
#define EPD_LOWER (UINT64_C(1) << 7)
#define EPD_UPPER (UINT64_C(1) << 23)
#define EPD_BOTH (EPD_LOWER | EPD_UPPER)

/*
 * The formats of tables. Several tables may translate all known addresses: a table of a lower level
 * does so, too, but is no root. So the first format counts, because it has the most levels.
 */
static const struct {
    uint8_t page_shift;
    uint8_t bits; /* of an address */
    bool has_ds;  /* TCR_EL1.DS */
} formats[] = {
    { 12, 52, true },  { 12, 48, false }, { 12, 39, false }, { 12, 36, false },
    { 14, 52, true },  { 14, 48, false }, { 14, 47, false }, { 14, 36, false },
    { 16, 52, false }, { 16, 48, false }, { 16, 42, false },
};

/* Addresses of which the hypervisor has said where they lie. */
typedef struct {
    uint64_t gva[2], gpa[2];
    unsigned n;
} Known;

/*
 * An address that differs from a known one in one bit, so that a walk to it uses another entry.
 * Tables that map memory to itself look like tables of another format, until such addresses are
 * compared.
 */
typedef struct {
    uint64_t gva, gpa;
    bool is_mapped;
} Probe;

/* A search for the root of one half of the addresses. */
typedef struct {
    UprofGuest *guest;
    UprofLane lane;
    const Known *known;
    bool is_upper;
    Probe probes[PROBES];
    uint8_t *block; /* %BLOCK_BYTES of RAM */
    unsigned n_reads;
    uint64_t until_ns; /* monotonic */
    unsigned best;     /* probes that the best root so far translates as the hypervisor does, + 1 */
    size_t format;     /* of this root */
    uint64_t sys[UPROF_SYS_MAX]; /* with this root */
} Search;

static bool
read_entry(void *data, uint64_t gpa, unsigned len, uint64_t *entry)
{
    Search *search = data;
    uint64_t value = 0;
    UprofSpan span = { .gpa = gpa, .into = &value, .len = len };

    if (search->n_reads++ >= READS_MAX)
        return false;
    uprof_guest_read(search->guest, search->lane, &span, 1);
    if (span.missing)
        return false;
    *entry = GUINT64_FROM_LE(value);
    return true;
}

/* The registers for a root of one half; the other half has no tables */
static void
fill_sys(const Search *search, size_t format, uint64_t root, uint64_t *sys)
{
    static const uint8_t lower[] = { [12] = 0, [14] = 2, [16] = 1 };
    static const uint8_t upper[] = { [12] = 2, [14] = 1, [16] = 3 };
    const unsigned shift = formats[format].page_shift;
    const uint64_t unused = 64 - formats[format].bits;

    memset(sys, 0, UPROF_SYS_MAX * sizeof(*sys));
    sys[UPROF_ARM_SCTLR] = UPROF_ARM_SCTLR_M;
    sys[UPROF_ARM_TCR] = (uint64_t)formats[format].has_ds << 59;
    root = (root & ((UINT64_C(1) << 48) - 1)) | root >> 48 << 2;
    if (search->is_upper) {
        sys[UPROF_ARM_TCR] |= (uint64_t)upper[shift] << 30 | unused << 16 | EPD_LOWER;
        sys[UPROF_ARM_TTBR1] = root;
    } else {
        /* Linux and others ignore the top byte of addresses of user space. */
        sys[UPROF_ARM_TCR] |= (uint64_t)lower[shift] << 14 | unused | EPD_UPPER | UINT64_C(1) << 37;
        sys[UPROF_ARM_TTBR0] = root;
    }
}

/* Returns: false if @gva is not mapped */
static bool
translate_address(Search *search, const uint64_t *sys, uint64_t gva, uint64_t *gpa)
{
    UprofRegs regs = { .pc = 0 };
    UprofWalk walk;

    memcpy(regs.sys, sys, sizeof(regs.sys));
    uprof_paging_aarch64.walk(read_entry, search, &regs, gva, &walk);
    *gpa = walk.frame + (gva & (walk.page_len - 1));
    return walk.mapped;
}

/* Do the tables translate all known addresses as the hypervisor does? @half: 0, 1; -1: of both
 * halves */
static bool
is_right(Search *search, const uint64_t *sys, int half)
{
    uint64_t gpa;

    for (unsigned i = 0; i < search->known->n; i++) {
        const uint64_t gva = search->known->gva[i];
        if (half >= 0 && (int)(gva >> HALF_BIT & 1) != half)
            continue;
        if (!translate_address(search, sys, gva, &gpa) || gpa != search->known->gpa[i])
            return false;
    }
    return true;
}

static unsigned
count_agreed(Search *search, const uint64_t *sys)
{
    unsigned n = 0;
    uint64_t gpa;

    for (unsigned i = 0; i < PROBES; i++) {
        const Probe *probe = &search->probes[i];
        const bool is_mapped = translate_address(search, sys, probe->gva, &gpa);
        n += is_mapped == probe->is_mapped && (!is_mapped || gpa == probe->gpa);
    }
    return n;
}

/* Keeps @root if it is better than the best one so far. */
static void
try_root(Search *search, size_t format, uint64_t root)
{
    uint64_t sys[UPROF_SYS_MAX];

    fill_sys(search, format, root, sys);
    if (!is_right(search, sys, search->is_upper))
        return;
    const unsigned score = count_agreed(search, sys) + 1;
    if (score < search->best || (score == search->best && format >= search->format))
        return;
    search->best = score;
    search->format = format;
    memcpy(search->sys, sys, sizeof(search->sys));
}

/* Returns: the index of the entry for @gva in a root table, and bytes of this table */
static uint64_t
find_index(size_t format, uint64_t gva, uint64_t *table_bytes)
{
    const unsigned shift = formats[format].page_shift, level_bits = shift - 3;
    const unsigned levels = (formats[format].bits - shift + level_bits - 1) / level_bits;
    const unsigned low = shift + (levels - 1) * level_bits;
    const uint64_t n = UINT64_C(1) << (formats[format].bits - low);

    *table_bytes = n * ENTRY_BYTES;
    return gva >> low & (n - 1);
}

/* Is it valid, and does it lead to where RAM may be? Most pages with other data end here. */
static bool
may_be_entry(uint64_t entry)
{
    const uint64_t frame = entry & ((UINT64_C(1) << 48) - UPROF_PAGE_BYTES);

    return (entry & 1) && frame != 0 && frame >> RAM_BITS_MAX == 0;
}

static bool
is_spent(const Search *search)
{
    return search->n_reads >= READS_MAX || uprof_clock_now_ns() >= search->until_ns;
}

/* @gva: of this half. Searches the tables of a format in the block at @gpa. */
static void
search_format(Search *search, size_t format, uint64_t gpa, uint64_t gva)
{
    uint64_t table_bytes;
    const uint64_t index = find_index(format, gva, &table_bytes);
    const uint64_t step = MAX(table_bytes, (uint64_t)UPROF_PAGE_BYTES);

    for (uint64_t at = 0; at < BLOCK_BYTES && !is_spent(search); at += step) {
        uint64_t entry;
        memcpy(&entry, search->block + at + index * ENTRY_BYTES, sizeof(entry));
        if (may_be_entry(GUINT64_FROM_LE(entry)))
            try_root(search, format, gpa + at);
    }
}

static void
search_block(Search *search, uint64_t gpa, uint64_t gva)
{
    UprofSpan spans[BLOCK_BYTES / SPAN_BYTES];

    memset(search->block, 0, BLOCK_BYTES);
    for (unsigned i = 0; i < G_N_ELEMENTS(spans); i++)
        spans[i] = (UprofSpan){ .gpa = gpa + (uint64_t)i * SPAN_BYTES,
                                .into = search->block + (size_t)i * SPAN_BYTES,
                                .len = SPAN_BYTES };
    uprof_guest_read(search->guest, search->lane, spans, G_N_ELEMENTS(spans));
    for (size_t format = 0; format < G_N_ELEMENTS(formats); format++)
        search_format(search, format, gpa, gva);
}

static void
ask_probes(Search *search, unsigned vcpu, uint64_t gva)
{
    for (unsigned i = 0; i < PROBES; i++) {
        Probe *probe = &search->probes[i];
        *probe = (Probe){ .gva = gva ^ UINT64_C(1) << (PROBE_BIT + i) };
        probe->is_mapped =
            uprof_guest_ask_translation(search->guest, vcpu, probe->gva, &probe->gpa);
    }
}

/*
 * Searches the root of one half, from the code's own block to blocks that are farther away.
 *
 * @sys: (inout): gets the registers of this half
 */
static void
search_half(UprofGuest *guest, UprofLane lane, unsigned vcpu, const Known *known, bool is_upper,
            uint64_t *sys)
{
    g_autofree uint8_t *block = g_malloc(BLOCK_BYTES);
    Search search = {
        .guest = guest, .lane = lane, .known = known, .is_upper = is_upper, .block = block
    };
    const uint64_t n_blocks = 2 * (guest->slow_reads ? SLOW_REACH_BLOCKS : REACH_BLOCKS);
    const uint64_t first = known->gpa[0] - known->gpa[0] % BLOCK_BYTES;
    const uint64_t mine = is_upper ? EPD_UPPER : EPD_LOWER;
    const unsigned ttbr = is_upper ? UPROF_ARM_TTBR1 : UPROF_ARM_TTBR0;
    unsigned n = 0;

    while (n < known->n && (known->gva[n] >> HALF_BIT & 1) != is_upper)
        n++;
    if (n == known->n)
        return;
    ask_probes(&search, vcpu, known->gva[n]);
    search.until_ns = uprof_clock_now_ns() + SEARCH_NS;
    for (uint64_t i = 0; i < n_blocks && !is_spent(&search); i++) {
        const uint64_t away = (i + 1) / 2 * BLOCK_BYTES;
        if (i % 2 || away <= first)
            search_block(&search, i % 2 ? first + away : first - away, known->gva[n]);
    }
    if (search.best == 0)
        return;
    sys[UPROF_ARM_TCR] = (sys[UPROF_ARM_TCR] & ~mine) | (search.sys[UPROF_ARM_TCR] & ~EPD_BOTH);
    sys[ttbr] = search.sys[ttbr];
}

/* Without page tables, every address is a physical address. These lie beyond the RAM of a guest. */
static bool
has_no_tables(UprofGuest *guest, unsigned vcpu)
{
    static const uint64_t far[] = { UINT64_C(0x5432100000), UINT64_C(0x6543200000),
                                    UINT64_C(0x7654300000) };
    uint64_t gpa;

    for (size_t i = 0; i < G_N_ELEMENTS(far); i++)
        if (!uprof_guest_ask_translation(guest, vcpu, far[i], &gpa) || gpa != far[i])
            return false;
    return true;
}

static Known
ask_known(const UprofRootSearch *search, UprofGuest *guest)
{
    const uint64_t gva[] = { search->regs.pc, search->regs.sp };
    Known known = { .n = 0 };

    for (size_t i = 0; i < G_N_ELEMENTS(gva); i++)
        if (uprof_guest_ask_translation(guest, search->vcpu, gva[i], &known.gpa[known.n]))
            known.gva[known.n++] = gva[i];
    return known;
}

void
uprof_root_search_begin(UprofGuest *guest)
{
    memset(guest->found_sys, 0, sizeof(guest->found_sys));
    guest->found_sys[UPROF_ARM_SCTLR] = UPROF_ARM_SCTLR_M;
    guest->found_sys[UPROF_ARM_TCR] = EPD_BOTH;
}

/* Returns: false if the roots were not found */
static bool
find_sys(const UprofRootSearch *search, UprofGuest *guest, UprofLane lane, const Known *known)
{
    uprof_root_search_begin(guest);
    if (known->n == 0)
        return false;
    if (has_no_tables(guest, search->vcpu)) {
        memset(guest->found_sys, 0, sizeof(guest->found_sys));
        return true;
    }
    search_half(guest, lane, search->vcpu, known, false, guest->found_sys);
    search_half(guest, lane, search->vcpu, known, true, guest->found_sys);
    return (guest->found_sys[UPROF_ARM_TCR] & EPD_BOTH) != EPD_BOTH;
}

void
uprof_root_search_note(UprofRootSearch *search, unsigned vcpu, const UprofRegs *regs, bool is_found)
{
    /* The tables of a process are not those of the kernel. */
    if (regs->privilege != KERNEL || regs->smm || regs->halted || (is_found && search->is_wanted))
        return;
    search->has_regs = true;
    search->is_wanted = !is_found;
    search->vcpu = vcpu;
    search->regs = *regs;
}

static void
set_next(UprofRootSearch *search, bool is_found)
{
    search->pause_ns = is_found ? 0 : MAX(MIN(2 * search->pause_ns, LAST_PAUSE_NS), FIRST_PAUSE_NS);
    search->next_ns = uprof_clock_now_ns() + MAX(search->pause_ns, FIRST_PAUSE_NS);
}

static bool
has_roots(const UprofGuest *guest)
{
    return (guest->found_sys[UPROF_ARM_TCR] & EPD_BOTH) != EPD_BOTH;
}

/* Notes a change of the tables. The kernel's own tables stay, and a guest that uses none any longer
 * was reset. */
static void
note_change(UprofRootSearch *search, UprofGuest *guest, const uint64_t *before, bool had_roots)
{
    const bool is_on = guest->found_sys[UPROF_ARM_SCTLR] & UPROF_ARM_SCTLR_M;
    const bool has_changed = memcmp(before, guest->found_sys, sizeof(guest->found_sys)) != 0;

    if ((search->was_on && !is_on) || (search->was_on && had_roots && has_changed))
        g_atomic_int_inc(&guest->resets);
    search->was_on = is_on;
}

bool
uprof_root_search_run(UprofRootSearch *search, UprofGuest *guest, UprofLane lane)
{
    const uint64_t now_ns = uprof_clock_now_ns();
    const bool is_due = now_ns - search->check_ns >= CHECK_NS;
    const bool was_wanted = search->is_wanted;
    const bool had_roots = has_roots(guest);
    uint64_t before[UPROF_SYS_MAX];

    if (!search->has_regs || now_ns < search->next_ns || (!was_wanted && !is_due))
        return false;
    const Known known = ask_known(search, guest);
    Search check = { .guest = guest, .lane = lane, .known = &known };
    search->has_regs = search->is_wanted = false;
    search->next_ns = now_ns + FIRST_PAUSE_NS;
    /* A process runs now, for whose code the kernel is not mapped: this says nothing. */
    if (known.n == 0)
        return false;
    search->check_ns = now_ns;
    if (had_roots && is_right(&check, guest->found_sys, -1)) {
        /* If a stack was not found, the roots are not the reason. */
        if (was_wanted)
            set_next(search, false);
        return false;
    }
    memcpy(before, guest->found_sys, sizeof(before));
    const bool is_found = find_sys(search, guest, lane, &known);
    if (is_found)
        note_change(search, guest, before, had_roots);
    set_next(search, is_found);
    return memcmp(before, guest->found_sys, sizeof(before)) != 0;
}
