/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "go-stacks-priv.h"

#include <string.h>

enum {
    WORD = 8,
    PROCESSES_MAX = 4096,
    CLOCK_CODE_BYTES = 128, /* of a function that reads the clock, up to its change of the stack */
};

/* Offsets: of g from the thread pointer, and in the structs g (the same since Go 1.18) */
enum { THREAD_G = -8, G_STACK_TOP = 8, G_M = 48, G_SCHED_SP = 56, G_SCHED_PC = 64 };

/* Offset of m.gsignal, from Go 1.25 on and before */
enum { M_GSIGNAL = 72, M_GSIGNAL_1_24 = 80 };

/* In struct ucontext: the stack pointer that was interrupted; how far it may be from the stack's
 * top */
enum { CONTEXT_SP = 160, CONTEXT_MAX = 32 * 1024 };

/* Offsets of m.curg, from Go 1.25 on and before */
static const uint16_t curg_offsets[] = { 184, 192 };

/* Facts about the Go program that a process runs */
typedef struct {
    uint32_t curg; /* offset in struct m; 0: not known */
    /* offsets in struct m of the caller's address and stack pointer while the vDSO reads the clock;
     * 0: not known */
    uint32_t clock_pc, clock_sp;
    /* bytes from the context of a signal to the top of the stack for signals; 0: not known */
    int32_t context;
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

/* A goroutine that runs on a thread knows the thread, which knows the goroutine. */
static uint32_t
find_curg_offset(const UprofSpace *space, uint64_t thread)
{
    uint64_t g, m, curg, back;

    if (!uprof_space_read_word(space, thread + (uint64_t)(int64_t)THREAD_G, &g) ||
        !uprof_space_read_word(space, g + G_M, &m))
        return 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(curg_offsets); i++)
        if (uprof_space_read_word(space, m + curg_offsets[i], &curg) && curg != 0 &&
            curg % WORD == 0 && uprof_space_read_word(space, curg + G_M, &back) && back == m)
            return curg_offsets[i];
    return 0;
}

static uint32_t
get_offset(const uint8_t *bytes)
{
    const uint32_t offset = uprof_read_le32(bytes);

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
            const uint32_t pc = get_offset(code + i + OFFSET_AT);
            const uint32_t sp = get_offset(code + i + INSN + OFFSET_AT);
            const uint32_t curg = get_offset(code + i + 2 * INSN + OFFSET_AT);
            if (pc == 0 || sp == 0 || curg == 0)
                return;
            process->clock_pc = pc;
            process->clock_sp = sp;
            process->curg = curg;
            return;
        }
}

static UprofChainStep
load_step(int8_t from, int32_t offset)
{
    return (UprofChainStep){ .op = UPROF_CHAIN_LOAD, .from = from, .offset = offset };
}

/* @n: steps that are left out if both values are equal */
static UprofChainStep
skip_step(int8_t from, int8_t other, uint16_t n)
{
    return (
        UprofChainStep){ .op = UPROF_CHAIN_SKIP_IF_EQUAL, .from = from, .other = other, .len = n };
}

static UprofChainStep
stack_step(int8_t from)
{
    return (UprofChainStep){ .op = UPROF_CHAIN_STACK, .from = from };
}

enum {
    G,
    M,
    CURG,
    IS_OTHER,
    SP,
    PC,
    STACK,
    CLOCK_SP,
    CLOCK_PC,
    CLOCK_STACK,
    SIGNAL_G,
    TOP,
    IS_SIGNAL,
    SIGNAL_SP,
    SIGNAL_STACK,
};

/* Returns: offset of m.gsignal, which has moved together with m.curg */
static int32_t
find_signal_offset(const Process *process)
{
    return process->curg == curg_offsets[0] ? M_GSIGNAL : M_GSIGNAL_1_24;
}

/*
 * On the stack for signals, the kernel has put the context at a fixed distance from the top. If it
 * is copied already, the thread is on this stack.
 */
static void
add_signal_steps(UprofChain *chain, const Process *process)
{
    UprofChainStep *steps = chain->steps;
    const int32_t sp_at = CONTEXT_SP - process->context;

    if (process->context == 0)
        return;
    steps[SIGNAL_G] = load_step(M, find_signal_offset(process));
    steps[TOP] = load_step(SIGNAL_G, G_STACK_TOP);
    steps[IS_SIGNAL] = (UprofChainStep){ .op = UPROF_CHAIN_SKIP_UNLESS_COPIED,
                                         .from = TOP,
                                         .offset = sp_at,
                                         .len = SIGNAL_STACK - IS_SIGNAL };
    steps[SIGNAL_SP] = load_step(TOP, sp_at);
    steps[SIGNAL_STACK] = stack_step(SIGNAL_SP);
}

static void
publish_chain(const UprofGoStacks *stacks, const UprofSpaceProcess *ran, const Process *process)
{
    UprofChain chain = {
        .memory = ran->memory,
        .steps = {
            [G] = load_step(-1, THREAD_G),
            [M] = load_step(G, G_M),
            [CURG] = load_step(M, (int32_t)process->curg),
            [IS_OTHER] = skip_step(CURG, G, STACK - IS_OTHER),
            [SP] = load_step(CURG, G_SCHED_SP),
            [PC] = load_step(CURG, G_SCHED_PC),
            [STACK] = stack_step(SP),
            /* without the offsets, these steps do nothing */
            [CLOCK_SP] = skip_step(G, G, 0),
            [CLOCK_PC] = skip_step(G, G, 0),
            [CLOCK_STACK] = skip_step(G, G, 0),
        },
    };

    if (process->clock_sp != 0) {
        chain.steps[CLOCK_SP] = load_step(M, (int32_t)process->clock_sp);
        chain.steps[CLOCK_PC] = load_step(M, (int32_t)process->clock_pc);
        chain.steps[CLOCK_STACK] = stack_step(CLOCK_SP);
    }
    add_signal_steps(&chain, process);
    uprof_chain_table_publish(stacks->chains, &chain);
}

/* ---- Stacks, after the hold: all words are in the snapshot if the hold has followed the chain
 * ---- */

/* Newer versions add ".abi0" to the names of functions in assembly. */
static bool
is_function(const char *name, const char *wanted)
{
    const size_t len = strlen(wanted);

    return strncmp(name, wanted, len) == 0 && (name[len] == '\0' || name[len] == '.');
}

static bool
find_m(const UprofSnapshot *snapshot, uint64_t thread, uint64_t *g, uint64_t *m)
{
    return thread != 0 &&
           uprof_snapshot_read_word(snapshot, thread + (uint64_t)(int64_t)THREAD_G, g) &&
           uprof_snapshot_read_word(snapshot, *g + G_M, m);
}

static bool
find_curg(const UprofSnapshot *snapshot, const Process *process, uint64_t thread, uint64_t *curg)
{
    uint64_t g, m;

    return find_m(snapshot, thread, &g, &m) &&
           uprof_snapshot_read_word(snapshot, m + process->curg, curg) && *curg != 0 && *curg != g;
}

static bool
has_no_goroutine(const UprofSnapshot *snapshot, const Process *process, uint64_t thread)
{
    uint64_t g, m, curg;

    return find_m(snapshot, thread, &g, &m) &&
           uprof_snapshot_read_word(snapshot, m + process->curg, &curg) && curg == 0;
}

/*
 * systemstack and asmcgocall save the stack pointer, and an address in a function that only marks
 * such a goroutine. The return address is there at its start. Since Go 1.21 the address is behind
 * its prologue, which would have saved the frame pointer.
 */
static UprofGoCaller
leave_system_stack(const UprofGoStacks *stacks, const UprofSnapshot *snapshot,
                   const Process *process, uint64_t thread, UprofRegs *regs)
{
    uint64_t curg, sp, pc;

    if (!find_curg(snapshot, process, thread, &curg) ||
        !uprof_snapshot_read_word(snapshot, curg + G_SCHED_SP, &sp) ||
        !uprof_snapshot_read_word(snapshot, curg + G_SCHED_PC, &pc))
        return UPROF_GO_UNKNOWN;
    const uint64_t symbol_address = uprof_space_symbol_address(stacks->space, pc);
    const UprofSymAnswer mark = uprof_sym_find(stacks->sym, symbol_address, false);
    if (!is_function(uprof_name_text(mark.name), "runtime.systemstack_switch"))
        return UPROF_GO_UNKNOWN;
    sp += symbol_address > mark.start ? WORD : 0;
    regs->sp = sp + WORD;
    return uprof_snapshot_read_word(snapshot, sp, &regs->pc) ? UPROF_GO_FOUND : UPROF_GO_UNKNOWN;
}

/* morestack goes back to the function that called it, as if it had not been called. It can also
 * have handed the goroutine to the scheduler. */
static UprofGoCaller
leave_more_stack(const UprofGoStacks *stacks, const UprofSnapshot *snapshot, const Process *process,
                 uint64_t thread, UprofRegs *regs)
{
    uint64_t curg;

    if (!find_curg(snapshot, process, thread, &curg))
        return has_no_goroutine(snapshot, process, thread) ? UPROF_GO_NONE : UPROF_GO_UNKNOWN;
    return uprof_snapshot_read_word(snapshot, curg + G_SCHED_SP, &regs->sp) &&
                   uprof_snapshot_read_word(snapshot, curg + G_SCHED_PC, &regs->pc)
               ? UPROF_GO_FOUND
               : UPROF_GO_UNKNOWN;
}

/* A function that calls the vDSO keeps its caller in struct m. */
static UprofGoCaller
leave_clock(const UprofGoStacks *stacks, const UprofSnapshot *snapshot, const Process *process,
            uint64_t thread, UprofRegs *regs)
{
    uint64_t g, m;

    return process->clock_sp != 0 && find_m(snapshot, thread, &g, &m) &&
                   uprof_snapshot_read_word(snapshot, m + process->clock_sp, &regs->sp) &&
                   uprof_snapshot_read_word(snapshot, m + process->clock_pc, &regs->pc) &&
                   regs->pc != 0
               ? UPROF_GO_FOUND
               : UPROF_GO_UNKNOWN;
}

typedef UprofGoCaller FindCaller(const UprofGoStacks *stacks, const UprofSnapshot *snapshot,
                                 const Process *process, uint64_t thread, UprofRegs *regs);

/* @name: of a function that changes the stack. Returns: (nullable): finds the function's caller */
static FindCaller *
find_switching_function(const char *name)
{
    static const struct {
        const char *name;
        FindCaller *find;
    } functions[] = {
        { "runtime.systemstack", leave_system_stack }, { "runtime.asmcgocall", leave_system_stack },
        { "runtime.morestack", leave_more_stack },     { "runtime.nanotime1", leave_clock },
        { "runtime.walltime", leave_clock },           { "time.now", leave_clock },
        { "runtime.vgetrandom1", leave_clock },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(functions); i++)
        if (is_function(name, functions[i].name))
            return functions[i].find;
    return NULL;
}

UprofGoCaller
uprof_go_stacks_leave(UprofGoStacks *stacks, const UprofSnapshot *snapshot, uint64_t start,
                      uint64_t symbol_address, UprofRegs *regs)
{
    const UprofSymAnswer function = uprof_sym_find(stacks->sym, symbol_address, false);
    FindCaller *find = find_switching_function(uprof_name_text(function.name));
    UprofSpaceProcess ran;

    if (!find || !uprof_space_process(stacks->space, &ran) || ran.thread == 0)
        return UPROF_GO_UNKNOWN;
    Process *process = find_process(stacks, ran.id);
    if (process->curg == 0)
        process->curg = find_curg_offset(stacks->space, ran.thread);
    if (process->clock_sp == 0 && find == leave_clock)
        find_clock_offsets(stacks->space, start, process);
    if (process->curg != 0)
        publish_chain(stacks, &ran, process);
    UprofRegs caller = *regs;
    const UprofGoCaller found = process->curg != 0
                                    ? find(stacks, snapshot, process, ran.thread, &caller)
                                    : UPROF_GO_UNKNOWN;
    if (found == UPROF_GO_FOUND)
        *regs = caller;
    return found;
}

void
uprof_go_stacks_note_signal(UprofGoStacks *stacks, uint64_t context)
{
    UprofSpaceProcess ran;
    uint64_t g, m, signal_g, top;

    if (!uprof_space_process(stacks->space, &ran) || ran.thread == 0)
        return;
    Process *process = find_process(stacks, ran.id);
    if (process->curg == 0)
        process->curg = find_curg_offset(stacks->space, ran.thread);
    if (process->curg == 0 ||
        !uprof_space_read_word(stacks->space, ran.thread + (uint64_t)(int64_t)THREAD_G, &g) ||
        !uprof_space_read_word(stacks->space, g + G_M, &m) ||
        !uprof_space_read_word(stacks->space, m + (uint64_t)find_signal_offset(process),
                               &signal_g) ||
        !uprof_space_read_word(stacks->space, signal_g + G_STACK_TOP, &top) || top <= context ||
        top - context > CONTEXT_MAX)
        return;
    process->context = (int32_t)(top - context);
    publish_chain(stacks, &ran, process);
}
