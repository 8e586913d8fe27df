/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "memory-guest.h"
#include "../../../src/sampler/windows-priv.h"

enum { PAGE = 4096, RAM_PAGES = 64 };

/* clang-format off */
static const struct {
    const char *name;
    uint64_t hole, hole_end; /* pages without memory */
    gint wanted;
    uint64_t sp;
    unsigned n_windows;
    uint64_t gva;
    uint64_t len;
} cases[] = {
    { "plain",              0, 0,   16384, 0x8100,  1, 0x8000,  16384 },
    { "in-mid-page",        0, 0,   16384, 0x8765,  1, 0x8665,  16384 },
    { "largest",   0, 0,   65536, 0x8100,  1, 0x8000,  65536 },
    { "guard-page-below",   7, 8,   16384, 0x8010,  1, 0x8000,  16384 },
    { "hole-above",         10, 11, 16384, 0x8100,  1, 0x8000,  0x2000 },
    { "end-of-ram",         0, 0,   16384, 0x3ff00, 1, 0x3fe00, 0x200 },
    { "no-memory",          8, 9,   16384, 0x8100,  0, 0,       0 },
    { "only-below",         8, 9,   16384, 0x8000,  0, 0,       0 },
    { "zero",               0, 0,   16384, 0,       1, 0,       16384 },
    { "nearly-zero",        0, 0,   16384, 8,       1, 0,       16384 },
    { "outside",            0, 0,   16384, 0x80000000, 0, 0,    0 },
};
/* clang-format on */

static void
test_copy(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_PAGES * PAGE };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    const UprofWindowSize size = { .wanted = cases[i].wanted };

    for (unsigned at = 0; at < guest->ram_len; at++)
        guest->ram[at] = (uint8_t)(at / PAGE + at);
    guest->hole = cases[i].hole * PAGE;
    guest->hole_end = cases[i].hole_end * PAGE;
    snapshot->regs.word_bytes = 8;
    snapshot->regs.sp = cases[i].sp;
    uprof_windows_copy(mem, &size, NULL, NULL, snapshot);
    g_assert_cmpuint(snapshot->n_windows, ==, cases[i].n_windows);
    if (snapshot->n_windows == 0)
        return;
    const UprofWindow *window = &snapshot->windows[0];
    g_assert_cmphex(window->gva, ==, cases[i].gva);
    g_assert_cmphex(window->len, ==, cases[i].len);
    g_assert_cmpmem(snapshot->bytes + window->offset, window->len, guest->ram + window->gva,
                    window->len);
}

/* ---- links: stacks and task that are copied beside the stack of the stack pointer ---- */

enum {
    TASK_AT = 0x30000, /* the pointer to the running task */
    TASK = 0x31000,
    IRQ_AT = 0x7ff8, /* the last word of the interrupt stack, which has two pages */
    STACK = 0x10000, /* the task's kernel stack, of four pages */
    STACK_END = STACK + 0x4000,
    SMALL = 0x20000, /* a stack of the processor, of one page */
    SMALL_END = SMALL + PAGE,
    REGS_BYTES = 168,
};

/* Kernel addresses start at 0x7000, so that only the user stack is below them. */
static UprofLinks *
make_links(void)
{
    UprofLinks *links = g_malloc0(sizeof(UprofLinks) + sizeof(UprofLinksVcpu));

    links->kernel_from = 0x7000;
    links->stack_bytes = 0x4000;
    links->irq_bytes = 0x2000;
    links->regs_bytes = links->regs_len = REGS_BYTES;
    links->regs_mode = 136;
    links->regs_sp = 152;
    links->task_stack = 0x20;
    links->task_mm = 0x110;
    links->task_from = 0x100;
    links->task_len = 0x40;
    links->n_vcpus = 1;
    links->vcpus[0] = (UprofLinksVcpu){ .task_at = TASK_AT, .irq_at = IRQ_AT };
    return links;
}

typedef struct {
    uint64_t gva;
    uint64_t len;
} Range;

enum { RANGES_MAX = UPROF_WINDOWS_MAX };

/* clang-format off */
static const struct {
    const char *name;
    uint8_t privilege;
    uint64_t sp;       /* in the hold */
    uint64_t irq;      /* the last word of the interrupt stack */
    uint64_t cs;       /* in the task's saved registers */
    uint64_t user_sp;
    uint64_t task;
    Range ranges[RANGES_MAX];
    uint64_t frame_sp; /* on the small stack, of an interrupted process */
} links_cases[] = {
    { "kernel",     0, 0x12100, 0,      0,  0,     TASK,
      { { 0x12000, 0x2000 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 } } },
    { "system-call", 0, 0x12100, 0,     51, 0x900, TASK,
      { { 0x12000, 0x2000 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 }, { 0x800, 0x4000 } } },
    { "far-from-stack-end", 0, 0x10100, 0, 51, 0x900, TASK,
      { { 0x10000, 0x4000 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 }, { 0x800, 0x4000 } } },
    { "interrupt",  0, 0x7100,  0x13000, 51, 0x900, TASK,
      { { 0x7000, 0x1000 }, { 0x12f00, 0x1100 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 },
        { 0x800, 0x4000 } } },
    { "interrupt-of-bad-stack", 0, 0x7100, 0x10, 51, 0x900, TASK,
      { { 0x7000, 0x1000 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 },
        { STACK_END - REGS_BYTES, REGS_BYTES }, { 0x800, 0x4000 } } },
    { "user",       3, 0x900,   0,      0,  0,     TASK,
      { { 0x800, 0x4000 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 } } },
    { "no-task",    3, 0x900,   0,      0,  0,     0,
      { { 0x800, 0x4000 }, { TASK_AT, 8 } } },
    { "task-outside", 3, 0x900, 0,      0,  0,     0x80000000,
      { { 0x800, 0x4000 }, { TASK_AT, 8 } } },
    { "stack-pointer-outside", 0, UINT64_MAX - 8, 0, 0, 0, TASK,
      { { TASK_AT, 8 }, { TASK + 0x100, 0x40 }, { STACK_END - REGS_BYTES, REGS_BYTES } } },
    /* the kernel was just entered, by an interrupt of a process: its saved registers are old */
    { "small-stack", 0, SMALL_END - 40, 0, 51, 0x900, TASK,
      { { SMALL_END - 296, 0x1128 + 0x2000 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 }, { 0x1000, 0x4000 } }, 0x1100 },
    /* the kernel leaves a process: the frame below the stack pointer is old */
    { "small-stack-left", 0, SMALL_END - 16, 0, 51, 0x900, TASK,
      { { SMALL_END - 272, 0x3110 }, { TASK_AT, 8 }, { TASK + 0x100, 0x40 },
        { STACK_END - REGS_BYTES, REGS_BYTES }, { 0x800, 0x4000 } }, 0x1100 },
    { "small-stack-of-thread", 0, SMALL_END - 40, 0, 51, 0x900, TASK + 0x1000,
      { { SMALL_END - 296, 0x3128 }, { TASK_AT, 8 }, { TASK + 0x1100, 0x40 } }, 0x1100 },
};
/* clang-format on */

static void
test_links(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_PAGES * PAGE };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autofree UprofLinks *links = make_links();
    const UprofWindowSize size = { .wanted = 0x4000 };
    unsigned n = 0;

    memory_guest_put_u64(guest, TASK_AT, links_cases[i].task);
    memory_guest_put_u64(guest, IRQ_AT, links_cases[i].irq);
    memory_guest_put_u64(guest, STACK_END - REGS_BYTES + links->regs_mode, links_cases[i].cs);
    memory_guest_put_u64(guest, STACK_END - REGS_BYTES + links->regs_sp, links_cases[i].user_sp);
    memory_guest_put_u64(guest, TASK + links->task_mm, 1);
    memory_guest_put_u64(guest, TASK + links->task_stack, STACK);
    if (links_cases[i].frame_sp != 0) {
        memory_guest_put_u64(guest, SMALL_END - 32, 51);
        memory_guest_put_u64(guest, SMALL_END - 16, links_cases[i].frame_sp);
    }
    snapshot->regs.word_bytes = 8;
    snapshot->regs.sp = links_cases[i].sp;
    snapshot->regs.privilege = links_cases[i].privilege;
    uprof_windows_copy(mem, &size, links, NULL, snapshot);
    for (; n < RANGES_MAX && links_cases[i].ranges[n].len > 0; n++) {
        g_assert_cmphex(snapshot->windows[n].gva, ==, links_cases[i].ranges[n].gva);
        g_assert_cmphex(snapshot->windows[n].len, ==, links_cases[i].ranges[n].len);
    }
    g_assert_cmpuint(snapshot->n_windows, ==, n);
}

/* Makes page tables with 4-byte entries that map all memory to itself, but @moved to another page.
 */
static void
make_tables(MemoryGuest *guest, unsigned page, uint64_t moved, uint64_t to)
{
    memory_guest_put_u32(guest, (uint64_t)page * PAGE, (page + 1) * PAGE | 7);
    for (unsigned i = 0; i < RAM_PAGES; i++)
        memory_guest_put_u32(guest, (uint64_t)(page + 1) * PAGE + 4 * i,
                             (uint32_t)((uint64_t)i * PAGE == moved ? to : i * PAGE) | 7);
}

/* The page tables are those of the next process, so the user stack is copied by the process's own.
 */
static void
test_other_tables(void)
{
    enum {
        USER_SP = 0x6100,
        OWN = 0x38,
        OTHER = 0x3a,
        MEMORY = 0x32000,
        TABLES = 0x18,
        ALL_MEMORY = 0x1000000,
        FORKED = 0x33000, /* where the next process has the same address */
    };
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_PAGES * PAGE };

    for (unsigned is_own_stack = 0; is_own_stack < 2; is_own_stack++) {
        g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
        g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
        g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
        g_autofree UprofLinks *links = make_links();
        const UprofWindowSize size = { .wanted = 0x4000 };
        uint64_t word = 0;

        links->mm_tables = TABLES;
        links->root_mask = ~UINT64_C(0xfff);
        links->all_memory = ALL_MEMORY;
        make_tables(guest, OWN, 0, 0);
        make_tables(guest, OTHER, USER_SP - USER_SP % PAGE, FORKED);
        memory_guest_put_u64(guest, TASK_AT, TASK);
        memory_guest_put_u64(guest, TASK + links->task_mm, MEMORY);
        memory_guest_put_u64(guest, TASK + links->task_stack, is_own_stack ? STACK : 0x24000);
        memory_guest_put_u64(guest, MEMORY + TABLES, ALL_MEMORY + OWN * PAGE);
        memory_guest_put_u64(guest, STACK_END - REGS_BYTES + links->regs_mode, 51);
        memory_guest_put_u64(guest, STACK_END - REGS_BYTES + links->regs_sp, USER_SP);
        memory_guest_put_u64(guest, USER_SP, 0x1234);
        memory_guest_put_u64(guest, FORKED + USER_SP % PAGE, 0x5678);
        snapshot->regs = (UprofRegs){ .word_bytes = 8, .sp = STACK + 0x2100 };
        snapshot->regs.sys[UPROF_X86_CR0] = UPROF_X86_CR0_PG | UPROF_X86_CR0_PE;
        snapshot->regs.sys[UPROF_X86_CR3] = OTHER * PAGE;
        uprof_windows_copy(mem, &size, links, NULL, snapshot);
        g_assert_true(uprof_snapshot_read(snapshot, USER_SP, &word, sizeof(word)));
        g_assert_cmphex(GUINT64_FROM_LE(word), ==, is_own_stack ? 0x1234 : 0x5678);
    }
}

/* The running task is copied, however large the wanted stacks are. */
static void
test_room(void)
{
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_PAGES * PAGE };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autofree UprofLinks *links = make_links();
    const UprofWindowSize size = { .wanted = UPROF_SNAPSHOT_BYTES_MAX };
    uint8_t part[0x40];

    memory_guest_put_u64(guest, TASK_AT, TASK);
    snapshot->regs.word_bytes = 8;
    snapshot->regs.sp = 0x900;
    snapshot->regs.privilege = 3;
    uprof_windows_copy(mem, &size, links, NULL, snapshot);
    g_assert_true(uprof_snapshot_read(snapshot, TASK + 0x100, part, sizeof(part)));
    /* only the stack is copied for a vCPU that the links do not cover */
    snapshot->n_windows = 0;
    links->n_vcpus = 0;
    uprof_windows_copy(mem, &size, links, NULL, snapshot);
    g_assert_cmpuint(snapshot->n_windows, ==, 1);
}

/* ---- chains: further memory of a process ---- */

enum {
    THREAD = 0x5800,
    G = 0x5000,
    M = 0x5100,
    CURG = 0x5200,
    OTHER_STACK = 0x4100,
    NODES = 0x3000, /* the first node; each next one lies below it */
    NODE_BYTES = 88,
    NEXT = 8,
};

static const UprofChainStep goroutine[UPROF_CHAIN_STEPS_MAX] = {
    { UPROF_CHAIN_LOAD, -1, 0, 0, -8 },  { UPROF_CHAIN_LOAD, 0, 0, 0, 48 },
    { UPROF_CHAIN_LOAD, 1, 0, 0, 192 },  { UPROF_CHAIN_SKIP_IF_EQUAL, 2, 0, 2, 0 },
    { UPROF_CHAIN_LOAD, 2, 0, 0, 56 },   { UPROF_CHAIN_STACK, 4, 0, 0, 0 },
    { UPROF_CHAIN_LOAD, 1, 0, 0, 0x40 },
};

/* Copies by @steps the memory of the process that runs; the task's thread pointer is THREAD. */
static void
copy_by_chain(MemoryGuest *guest, const UprofChain *chain, UprofSnapshot *snapshot)
{
    static UprofChains chains;
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    g_autofree UprofLinks *links = make_links();
    const UprofWindowSize size = { .wanted = 0x1000 };

    links->task_thread = 0x30;
    memory_guest_put_u64(guest, TASK_AT, TASK);
    memory_guest_put_u64(guest, TASK + links->task_mm, 0x8000);
    memory_guest_put_u64(guest, TASK + links->task_thread, THREAD);
    uprof_chains_set(&chains, uprof_chains_choose_slot(&chains, chain->memory, chain->thread),
                     chain);
    uprof_snapshot_clear(snapshot);
    snapshot->regs = (UprofRegs){ .word_bytes = 8, .sp = 0x900, .privilege = 3 };
    uprof_windows_copy(mem, &size, links, &chains, snapshot);
    uprof_chains_clear(&chains);
}

static bool
has_word(const UprofSnapshot *snapshot, uint64_t gva)
{
    uint64_t word;

    return uprof_snapshot_read(snapshot, gva, &word, sizeof(word));
}

static void
test_chain_stack(void)
{
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_PAGES * PAGE };
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    UprofChain chain = { .memory = 0x8000 };

    memcpy(chain.steps, goroutine, sizeof(goroutine));
    memory_guest_put_u64(guest, THREAD - 8, G);
    memory_guest_put_u64(guest, G + 48, M);
    memory_guest_put_u64(guest, M + 192, CURG);
    memory_guest_put_u64(guest, CURG + 56, OTHER_STACK);
    copy_by_chain(guest, &chain, snapshot);
    g_assert_true(has_word(snapshot, OTHER_STACK) && has_word(snapshot, OTHER_STACK + 0x800));
    g_assert_true(has_word(snapshot, M + 0x40));

    /* the goroutine itself runs: its saved stack pointer is old */
    memory_guest_put_u64(guest, M + 192, G);
    copy_by_chain(guest, &chain, snapshot);
    g_assert_false(has_word(snapshot, OTHER_STACK));
    g_assert_true(has_word(snapshot, M + 0x40));

    /* a step that depends on what is copied already */
    chain.steps[3] = (UprofChainStep){ UPROF_CHAIN_SKIP_UNLESS_COPIED, 2, 0, 2, 0x1000 };
    memory_guest_put_u64(guest, M + 192, CURG);
    copy_by_chain(guest, &chain, snapshot);
    g_assert_false(has_word(snapshot, OTHER_STACK));
    chain.steps[3].offset = (int32_t)0x900 - CURG; /* the stack of the stack pointer */
    copy_by_chain(guest, &chain, snapshot);
    g_assert_true(has_word(snapshot, OTHER_STACK));
    chain.steps[3] = goroutine[3];

    /* a pointer is missing, or leads to the kernel */
    memory_guest_put_u64(guest, M + 192, 0);
    copy_by_chain(guest, &chain, snapshot);
    g_assert_false(has_word(snapshot, OTHER_STACK));
    memory_guest_put_u64(guest, M + 192, CURG);
    memory_guest_put_u64(guest, CURG + 56, STACK + 0x100);
    copy_by_chain(guest, &chain, snapshot);
    g_assert_false(has_word(snapshot, STACK + 0x100));

    /* chains of another process, and of another thread, do not count */
    memory_guest_put_u64(guest, CURG + 56, OTHER_STACK);
    chain.memory = 0x9000;
    copy_by_chain(guest, &chain, snapshot);
    g_assert_false(has_word(snapshot, OTHER_STACK));
    chain.memory = 0x8000;
    chain.thread = THREAD + 0x1000;
    copy_by_chain(guest, &chain, snapshot);
    g_assert_false(has_word(snapshot, OTHER_STACK));
    chain.thread = THREAD;
    copy_by_chain(guest, &chain, snapshot);
    g_assert_true(has_word(snapshot, OTHER_STACK));
}

/* @n: nodes; each has the address of the node below it */
static void
put_list(MemoryGuest *guest, uint64_t first, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const uint64_t node = first - i * NODE_BYTES;
        memory_guest_put_u64(guest, node, 0x1234);
        memory_guest_put_u64(guest, node + NEXT, i + 1 < n ? node - NODE_BYTES : 0);
    }
}

static void
test_chain_list(void)
{
    enum { N_NODES = 100, LAST = NODES - (N_NODES - 1) * NODE_BYTES };
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_PAGES * PAGE };
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    const UprofChain chain = {
        .memory = 0x8000,
        .starts = { NODES },
        .steps = { { UPROF_CHAIN_LIST, -1, 0, NODE_BYTES, NEXT } },
    };

    put_list(guest, NODES, 1);
    copy_by_chain(guest, &chain, snapshot);
    g_assert_true(has_word(snapshot, NODES + NODE_BYTES - 8));
    put_list(guest, NODES, N_NODES);
    copy_by_chain(guest, &chain, snapshot);
    for (unsigned i = 0; i < N_NODES; i++)
        g_assert_true(has_word(snapshot, NODES - i * NODE_BYTES + NODE_BYTES - 8));
    g_assert_cmpuint(snapshot->n_windows, <=, 9);

    /* The last node points to the first one. */
    memory_guest_put_u64(guest, LAST + NEXT, NODES);
    copy_by_chain(guest, &chain, snapshot);
    g_assert_true(has_word(snapshot, LAST));
    /* Each node is in another page. */
    for (uint64_t page = 0; page < 6; page++)
        for (uint64_t i = 0; i < 40; i++)
            memory_guest_put_u64(guest, page * PAGE + i * 96 + NEXT,
                                 ((page + 1) % 6) * PAGE + i * 96 + 96);
    memory_guest_put_u64(guest, NODES + NEXT, 96);
    copy_by_chain(guest, &chain, snapshot);
    g_assert_cmpuint(snapshot->n_windows, <=, UPROF_WINDOWS_MAX);
    /* A node points to memory that the process does not have, or to the kernel. */
    memory_guest_put_u64(guest, NODES + NEXT, UINT64_MAX - 8);
    copy_by_chain(guest, &chain, snapshot);
    g_assert_true(has_word(snapshot, NODES));
    memory_guest_put_u64(guest, NODES + NEXT, STACK);
    copy_by_chain(guest, &chain, snapshot);
    g_assert_false(has_word(snapshot, STACK));
}

/* However large the wanted stacks are, there is room for a chain. */
static void
test_chain_room(void)
{
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_PAGES * PAGE };
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    g_autofree UprofLinks *links = make_links();
    const UprofWindowSize size = { .wanted = UPROF_SNAPSHOT_BYTES_MAX };
    static UprofChains chains;
    const UprofChain chain = {
        .memory = 0x8000,
        .starts = { 0x20000 },
        .steps = { { UPROF_CHAIN_LOAD, -1, 0, 0, 0 }, { UPROF_CHAIN_STACK, -1, 0, 0, 0 } },
    };

    links->task_thread = 0x30;
    links->kernel_from = 0x30000;
    memory_guest_put_u64(guest, TASK_AT, TASK);
    memory_guest_put_u64(guest, TASK + links->task_mm, 0x8000);
    uprof_chains_set(&chains, uprof_chains_choose_slot(&chains, 0x8000, 0), &chain);
    snapshot->regs = (UprofRegs){ .word_bytes = 8, .sp = 0x900, .privilege = 3 };
    uprof_windows_copy(mem, &size, links, &chains, snapshot);
    g_assert_true(has_word(snapshot, 0x20000) && has_word(snapshot, 0x20000 + 0x2000));
    g_assert_true(has_word(snapshot, TASK + links->task_mm));
}

/* ---- frame records of aarch64, which lead from stack to stack ---- */

/* clang-format off */
static const struct {
    const char *name;
    const char *arch;
    uint64_t records[4][2]; /* where a record is, and where it leads */
    unsigned n_windows;
    uint64_t gva; /* of the last window */
} records_cases[] = {
    { "one-stack",   "aarch64", { { 0x8100, 0x8200 }, { 0x8200, 0 } }, 1, 0x7f00 },
    { "next-stack",  "aarch64", { { 0x8100, 0x8200 }, { 0x8200, 0x20100 }, { 0x20100, 0 } }, 2, 0x20000 },
    { "lower-stack", "aarch64", { { 0x8100, 0x8200 }, { 0x8200, 0x2100 }, { 0x2100, 0 } }, 2, 0x2000 },
    { "three-stacks", "aarch64", { { 0x8100, 0x20100 }, { 0x20100, 0x30100 }, { 0x30100, 0 } }, 3, 0x30000 },
    { "loop",        "aarch64", { { 0x8100, 0x8200 }, { 0x8200, 0x8100 } }, 1, 0x7f00 },
    { "misaligned",  "aarch64", { { 0x8100, 0x20101 } }, 1, 0x7f00 },
    { "nowhere",     "aarch64", { { 0x8100, 0x7fffffff0 } }, 1, 0x7f00 },
    { "x86",         "x86_64",  { { 0x8100, 0x20100 }, { 0x20100, 0 } }, 1, 0x7f00 },
};
/* clang-format on */

static void
test_records(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_GUEST,
                              .ram_len = RAM_PAGES * PAGE,
                              .arch = records_cases[i].arch };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    const UprofWindowSize size = { .wanted = PAGE };

    for (unsigned n = 0; n < 4 && records_cases[i].records[n][0] != 0; n++)
        memory_guest_put_u64(guest, records_cases[i].records[n][0], records_cases[i].records[n][1]);
    snapshot->regs = (UprofRegs){ .word_bytes = 8, .sp = 0x8000, .fp = 0x8100 };
    uprof_windows_copy(mem, &size, NULL, NULL, snapshot);
    g_assert_cmpuint(snapshot->n_windows, ==, records_cases[i].n_windows);
    g_assert_cmphex(snapshot->windows[snapshot->n_windows - 1].gva, ==, records_cases[i].gva);
}

/* ---- processes of aarch64 ---- */

enum {
    ARM_REGS_BYTES = 336, /* struct pt_regs */
    ARM_REGS_SP = 248,
    ARM_REGS_PSTATE = 264,
    ARM_EL1H = 5, /* PSTATE of kernel code */
    ARM_USER_SP = 0x900,
    ARM_MEMORY = 0x32000,
    ARM_TABLES = 0x38000,
    ARM_NEXT_TASK = 0x33000, /* its stack, its memory and its tables are others */
    ARM_NEXT_MEMORY = 0x34000,
    ARM_ALL_MEMORY = 0x1000000,
};

/* clang-format off */
static const struct {
    const char *name;
    uint8_t privilege;
    uint64_t sp, fp;  /* in the hold */
    uint64_t pstate;  /* in the task's saved registers */
    uint64_t memory;  /* of the task; 0: it is of no process */
    bool has_user_stack, has_tables;
    uint64_t next;    /* the current task; 0: it is the task itself */
} arm_cases[] = {
    { "user",          3, ARM_USER_SP,    0,      0,        ARM_MEMORY, true,  true },
    { "system-call",   0, STACK + 0x2100, 0,      0,        ARM_MEMORY, true,  true },
    { "interrupt",     0, 0x7100,         0x7200, 0,        ARM_MEMORY, true,  true },
    { "kernel-thread", 0, STACK + 0x2100, 0,      ARM_EL1H, 0,          false, false },
    { "no-user-regs",  0, STACK + 0x2100, 0,      ARM_EL1H, ARM_MEMORY, false, true },
    { "switch",        0, STACK + 0x2100, 0,      0,        ARM_MEMORY, true,  true,  ARM_NEXT_TASK },
};
/* clang-format on */

/* The page tables of a process are those of its task, and its registers lie on the task's stack. */
static void
test_arm_process(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const MemoryPlan plan = {
        .n_vcpus = 1, .grain = UPROF_GRAIN_GUEST, .ram_len = RAM_PAGES * PAGE, .arch = "aarch64"
    };
    g_autoptr(MemoryGuest) guest = memory_guest_open(&plan);
    g_autoptr(UprofMem) mem = uprof_mem_new(&guest->base, UPROF_LANE_SAMPLER);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autofree UprofLinks *links = make_links();
    const UprofWindowSize size = { .wanted = PAGE };
    const uint64_t at = STACK_END - ARM_REGS_BYTES;
    const uint64_t upper = UINT64_C(2) << 30 | UINT64_C(16) << 16; /* TG1, T1SZ */

    links->regs_bytes = links->regs_len = ARM_REGS_BYTES;
    links->regs_sp = ARM_REGS_SP;
    links->regs_mode = ARM_REGS_PSTATE;
    links->mm_tables = 0x18;
    links->root_mask = ~UINT64_C(0xfff);
    links->all_memory = ARM_ALL_MEMORY;
    memory_guest_put_u64(guest, TASK_AT, arm_cases[i].next ? arm_cases[i].next : TASK);
    memory_guest_put_u64(guest, ARM_NEXT_TASK + links->task_mm, ARM_NEXT_MEMORY);
    memory_guest_put_u64(guest, ARM_NEXT_TASK + links->task_stack, STACK + 0x8000);
    memory_guest_put_u64(guest, ARM_NEXT_MEMORY + links->mm_tables, ARM_ALL_MEMORY + PAGE);
    memory_guest_put_u64(guest, TASK + links->task_mm, arm_cases[i].memory);
    memory_guest_put_u64(guest, TASK + links->task_stack, STACK);
    memory_guest_put_u64(guest, ARM_MEMORY + links->mm_tables, ARM_ALL_MEMORY + ARM_TABLES);
    memory_guest_put_u64(guest, at + ARM_REGS_SP, ARM_USER_SP);
    memory_guest_put_u64(guest, at + ARM_REGS_PSTATE, arm_cases[i].pstate);
    memory_guest_put_u64(guest, 0x7200, STACK + 0x2200);
    snapshot->regs = (UprofRegs){ .word_bytes = 8,
                                  .sp = arm_cases[i].sp,
                                  .fp = arm_cases[i].fp,
                                  .privilege = arm_cases[i].privilege };
    snapshot->regs.reg[UPROF_ARM_X0 + 20] = TASK;
    snapshot->regs.sys[UPROF_ARM_TCR] = upper;
    uprof_windows_copy(mem, &size, links, NULL, snapshot);
    g_assert_true(has_word(snapshot, ARM_USER_SP) == arm_cases[i].has_user_stack);
    g_assert_true(has_word(snapshot, arm_cases[i].sp));
    g_assert_true(arm_cases[i].fp == 0 || has_word(snapshot, STACK + 0x2200));
    g_assert_cmphex(snapshot->regs.sys[UPROF_ARM_TTBR0], ==,
                    arm_cases[i].has_tables ? ARM_TABLES : 0);
    g_assert_cmphex(snapshot->regs.sys[UPROF_ARM_TCR] & 0xffff, ==,
                    arm_cases[i].has_tables ? 16 : 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/windows/copy/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_copy);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(links_cases); i++) {
        g_autofree char *path = g_strdup_printf("/windows/links/%s", links_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_links);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(records_cases); i++) {
        g_autofree char *path = g_strdup_printf("/windows/records/%s", records_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_records);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(arm_cases); i++) {
        g_autofree char *path = g_strdup_printf("/windows/arm-process/%s", arm_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_arm_process);
    }
    g_test_add_func("/windows/other-tables", test_other_tables);
    g_test_add_func("/windows/room", test_room);
    g_test_add_func("/windows/chain/stack", test_chain_stack);
    g_test_add_func("/windows/chain/list", test_chain_list);
    g_test_add_func("/windows/chain/room", test_chain_room);
    return g_test_run();
}
