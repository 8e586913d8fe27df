/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "go-stacks-priv.h"

#include <string.h>

enum {
    WORD = 8,
    PROCESSES_MAX = 4096,
    CLOCK_CODE_BYTES = 128, /* of a function that reads the clock, up to its change of the stack */
};

/* Offsets: of g from the thread pointer, and in the structs g (the same since Go 1.18) */
enum { THREAD_G = -8, G_M = 48, G_SCHED_SP = 56, G_SCHED_PC = 64 };

/* Offsets of m.curg, from Go 1.25 on and before */
static const uint16_t curg_offsets[] = { 184, 192 };

/* What is known of the program of a process. */
typedef struct {
    uint32_t curg; /* offset in struct m; 0: not known */
    /* offsets in struct m of the caller's address and stack pointer while the vDSO reads the clock;
     * 0: not known */
    uint32_t clock_pc, clock_sp;
} Process;

struct _UprofGoStacks {
    UprofSpace *space;       /* borrowed */
    UprofSym *sym;           /* borrowed */
    UprofChainTable *chains; /* borrowed */
    GHashTable *processes;   /* id -> Process; owned */
};

UprofGoStacks *
uprof_go_stacks_new(UprofSpace *space, UprofSym *sym, UprofChainTable *chains)
{
    UprofGoStacks *stacks = g_new0(UprofGoStacks, 1);

    stacks->space = space;
    stacks->sym = sym;
    stacks->chains = chains;
    stacks->processes = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return stacks;
}

void
uprof_go_stacks_free(UprofGoStacks *stacks)
{
    g_hash_table_unref(stacks->processes);
    g_free(stacks);
}

static Process *
find_process(UprofGoStacks *stacks, uint32_t id)
{
    Process *process = g_hash_table_lookup(stacks->processes, GUINT_TO_POINTER(id));

    if (process)
        return process;
    if (g_hash_table_size(stacks->processes) >= PROCESSES_MAX)
        g_hash_table_remove_all(stacks->processes);
    process = g_new0(Process, 1);
    g_hash_table_insert(stacks->processes, GUINT_TO_POINTER(id), process);
    return process;
}

/* ---- The program: before a chain is published ---- */

static bool
read_word(const UprofSpace *space, uint64_t gva, uint64_t *word)
{
    if (!uprof_space_read(space, gva, word, sizeof(*word)))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}

/* A goroutine that runs on a thread knows the thread, which knows the goroutine. */
static uint32_t
find_curg_offset(const UprofSpace *space, uint64_t thread)
{
    uint64_t g, m, curg, back;

    if (!read_word(space, thread + (uint64_t)(int64_t)THREAD_G, &g) ||
        !read_word(space, g + G_M, &m))
        return 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(curg_offsets); i++)
        if (read_word(space, m + curg_offsets[i], &curg) && curg != 0 && curg % WORD == 0 &&
            read_word(space, curg + G_M, &back) && back == m)
            return curg_offsets[i];
    return 0;
}

static uint32_t
get_offset(const uint8_t *bytes)
{
    uint32_t offset;

    memcpy(&offset, bytes, sizeof(offset));
    offset = GUINT32_FROM_LE(offset);
    return offset % WORD == 0 && offset <= UPROF_CHAIN_OFFSET_MAX ? offset : 0;
}

/*
 * The offsets differ between versions of Go. The function itself stores its caller there, and then
 * compares m.curg: mov %rcx,PC(%rbx); mov %rdx,SP(%rbx); cmp CURG(%rbx),%r14.
 */
static void
find_clock_offsets(const UprofSpace *space, uint64_t start, Process *process)
{
    static const uint8_t store_pc[] = { 0x48, 0x89, 0x8b }, store_sp[] = { 0x48, 0x89, 0x93 },
                         compare[] = { 0x4c, 0x3b, 0xb3 };
    enum { INSN = 7, OFFSET_AT = 3 };
    uint8_t code[CLOCK_CODE_BYTES];

    if (!uprof_space_read(space, start, code, sizeof(code)))
        return;
    for (unsigned i = 0; i + 3 * INSN <= sizeof(code); i++)
        if (memcmp(code + i, store_pc, OFFSET_AT) == 0 &&
            memcmp(code + i + INSN, store_sp, OFFSET_AT) == 0 &&
            memcmp(code + i + 2 * INSN, compare, OFFSET_AT) == 0) {
            process->clock_pc = get_offset(code + i + OFFSET_AT);
            process->clock_sp = get_offset(code + i + INSN + OFFSET_AT);
            process->curg = get_offset(code + i + 2 * INSN + OFFSET_AT);
            return;
        }
}

static void
publish_chain(const UprofGoStacks *stacks, const UprofSpaceProcess *ran, const Process *process)
{
    enum { G, M, CURG, IS_OTHER, SP, PC, STACK, CLOCK_SP, CLOCK_PC, CLOCK_STACK };
    const UprofChain chain = {
        .memory = ran->memory,
        .steps = {
            [G] = { .op = UPROF_CHAIN_LOAD, .from = -1, .offset = THREAD_G },
            [M] = { .op = UPROF_CHAIN_LOAD, .from = G, .offset = G_M },
            [CURG] = { .op = UPROF_CHAIN_LOAD, .from = M, .offset = (int32_t)process->curg },
            [IS_OTHER] = { .op = UPROF_CHAIN_DIFFER, .from = CURG, .other = G,
                           .len = STACK - IS_OTHER },
            [SP] = { .op = UPROF_CHAIN_LOAD, .from = CURG, .offset = G_SCHED_SP },
            [PC] = { .op = UPROF_CHAIN_LOAD, .from = CURG, .offset = G_SCHED_PC },
            [STACK] = { .op = UPROF_CHAIN_STACK, .from = SP },
            [CLOCK_SP] = { .op = process->clock_sp ? UPROF_CHAIN_LOAD : UPROF_CHAIN_END, .from = M,
                           .offset = (int32_t)process->clock_sp },
            [CLOCK_PC] = { .op = UPROF_CHAIN_LOAD, .from = M,
                           .offset = (int32_t)process->clock_pc },
            [CLOCK_STACK] = { .op = UPROF_CHAIN_STACK, .from = CLOCK_SP },
        },
    };

    uprof_chain_table_publish(stacks->chains, &chain);
}

/* ---- Stacks, after the hold ---- */

/* All words on the way are in the snapshot, if the hold has followed the chain. */
static bool
get_word(const UprofSnapshot *snapshot, uint64_t gva, uint64_t *word)
{
    if (!uprof_snapshot_read(snapshot, gva, word, sizeof(*word)))
        return false;
    *word = GUINT64_FROM_LE(*word);
    return true;
}

static bool
find_m(const UprofSnapshot *snapshot, uint64_t thread, uint64_t *g, uint64_t *m)
{
    return thread != 0 && get_word(snapshot, thread + (uint64_t)(int64_t)THREAD_G, g) &&
           get_word(snapshot, *g + G_M, m);
}

static bool
find_curg(const UprofSnapshot *snapshot, const Process *process, uint64_t thread, uint64_t *curg)
{
    uint64_t g, m;

    return find_m(snapshot, thread, &g, &m) && get_word(snapshot, m + process->curg, curg) &&
           *curg != 0 && *curg != g;
}

/*
 * systemstack and asmcgocall save the stack pointer at their own return address. The saved address is
 * in a function that only marks such a goroutine.
 */
static bool
leave_system_stack(const UprofSnapshot *snapshot, const Process *process, uint64_t thread,
                   UprofRegs *regs, bool *is_return)
{
    uint64_t curg, sp;

    if (!find_curg(snapshot, process, thread, &curg) ||
        !get_word(snapshot, curg + G_SCHED_SP, &sp) || !get_word(snapshot, sp, &regs->pc))
        return false;
    regs->sp = sp + WORD;
    *is_return = true;
    return true;
}

/* morestack goes back to the function that called it, as if it had not been called. */
static bool
leave_more_stack(const UprofSnapshot *snapshot, const Process *process, uint64_t thread,
                 UprofRegs *regs, bool *is_return)
{
    uint64_t curg;

    *is_return = true;
    return find_curg(snapshot, process, thread, &curg) &&
           get_word(snapshot, curg + G_SCHED_SP, &regs->sp) &&
           get_word(snapshot, curg + G_SCHED_PC, &regs->pc);
}

/* A function that reads the clock keeps its caller in struct m. */
static bool
leave_clock(const UprofSnapshot *snapshot, const Process *process, uint64_t thread, UprofRegs *regs,
            bool *is_return)
{
    uint64_t g, m;

    *is_return = true;
    return process->clock_sp != 0 && find_m(snapshot, thread, &g, &m) &&
           get_word(snapshot, m + process->clock_sp, &regs->sp) &&
           get_word(snapshot, m + process->clock_pc, &regs->pc) && regs->pc != 0;
}

typedef bool Leave(const UprofSnapshot *snapshot, const Process *process, uint64_t thread,
                   UprofRegs *regs, bool *is_return);

/* @name: of a function; newer versions add ".abi0" */
static Leave *
find_way(const char *name)
{
    static const struct {
        const char *name;
        Leave *leave;
    } ways[] = {
        { "runtime.systemstack", leave_system_stack }, { "runtime.asmcgocall", leave_system_stack },
        { "runtime.morestack", leave_more_stack },     { "runtime.nanotime1", leave_clock },
        { "runtime.walltime", leave_clock },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        const size_t len = strlen(ways[i].name);
        if (strncmp(name, ways[i].name, len) == 0 && (name[len] == '\0' || name[len] == '.'))
            return ways[i].leave;
    }
    return NULL;
}

bool
uprof_go_stacks_leave(UprofGoStacks *stacks, const UprofSnapshot *snapshot, uint64_t start,
                      uint64_t symbol_address, UprofRegs *regs, bool *is_return)
{
    const UprofSymAnswer function = uprof_sym_find(stacks->sym, symbol_address, false);
    Leave *leave = find_way(uprof_name_text(function.name));
    UprofSpaceProcess ran;

    if (!leave || !uprof_space_process(stacks->space, &ran) || ran.thread == 0)
        return false;
    Process *process = find_process(stacks, ran.id);
    const Process before = *process;
    if (process->curg == 0)
        process->curg = find_curg_offset(stacks->space, ran.thread);
    if (process->clock_sp == 0 && leave == leave_clock)
        find_clock_offsets(stacks->space, start, process);
    if (process->curg != 0 && (memcmp(&before, process, sizeof(before)) != 0 ||
                               !uprof_chain_table_has(stacks->chains, ran.memory, 0)))
        publish_chain(stacks, &ran, process);
    UprofRegs caller = *regs;
    if (process->curg == 0 || !leave(snapshot, process, ran.thread, &caller, is_return))
        return false;
    *regs = caller;
    return true;
}
