/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Instructions: Arm ARM, C4.1 ("A64 instruction set encoding").
 */
#include "code-step-aarch64-priv.h"

#include <string.h>

enum {
    INSN_BYTES = 4,
    BODY_BYTES_MAX = 16 * 1024, /* of a function, from its start to the frame's address */
    PIECE_BYTES = 1024,
    WORD = 8,
    FP = UPROF_ARM_FP,
    LR = UPROF_ARM_LR,
    SP = UPROF_ARM_SP,
};

/* Where a register is. Offsets count from the stack pointer at the start of the function. */
typedef struct {
    bool is_saved;
    int64_t offset;
} Slot;

/* The frame of a function, at one of its instructions. */
typedef struct {
    bool knows_sp, knows_fp; /* the next two are right */
    bool is_switched;        /* the function has changed to another stack */
    int64_t sp, fp;          /* offsets of the registers' values */
    Slot slots[UPROF_ARM_LR + 1];
} State;

/* The reading of a function. */
typedef struct {
    State now;
    State body;      /* with the complete frame, before a path takes it down */
    bool is_leaving; /* the path takes the frame down */
} Reading;

static int64_t
get_signed(uint32_t insn, unsigned low, unsigned n)
{
    return (int32_t)(insn << (32 - low - n)) >> (32 - n);
}

static void
begin_leaving(Reading *reading)
{
    if (!reading->is_leaving)
        reading->body = reading->now;
    reading->is_leaving = true;
}

static void
save_reg(State *state, unsigned reg, int64_t offset)
{
    /* A second copy may be of another value. */
    if (reg <= LR && !state->slots[reg].is_saved)
        state->slots[reg] = (Slot){ .is_saved = true, .offset = offset };
}

/* A load from anywhere else leaves the caller's value in its slot. */
static void
restore_reg(Reading *reading, unsigned reg, int64_t offset)
{
    if (reg > LR || !reading->now.slots[reg].is_saved || reading->now.slots[reg].offset != offset)
        return;
    begin_leaving(reading);
    reading->now.slots[reg].is_saved = false;
    if (reg == FP)
        reading->now.knows_fp = false;
}

/* @at: (out): offset of the address in base register @base. Returns: false if it is not known */
static bool
find_base(const State *state, unsigned base, int64_t *at)
{
    *at = base == SP ? state->sp : state->fp;
    return (base == SP && state->knows_sp) || (base == FP && state->knows_fp);
}

static void
move_base(Reading *reading, unsigned base, int64_t by)
{
    if (base == SP) {
        if (by > 0)
            begin_leaving(reading);
        reading->now.sp += by;
    } else if (base == FP) {
        reading->now.fp += by;
    }
}

/*
 * LDP, STP, LDR, STR of 64-bit registers. @mode: 1: moves the base register after the access, 2:
 * moves no register, 3: moves it before
 */
static void
read_access(Reading *reading, unsigned mode, bool is_load, unsigned base, int64_t offset,
            const unsigned *regs, unsigned n)
{
    int64_t at;

    if (mode == 3)
        move_base(reading, base, offset);
    const bool is_known = find_base(&reading->now, base, &at);
    for (unsigned i = 0; is_known && i < n; i++) {
        const int64_t offset_of_reg = at + (mode == 2 ? offset : 0) + (int64_t)i * WORD;
        if (is_load)
            restore_reg(reading, regs[i], offset_of_reg);
        else
            save_reg(&reading->now, regs[i], offset_of_reg);
    }
    if (mode == 1)
        move_base(reading, base, offset);
}

/* Pairs of registers of any kind may move the stack pointer. Only 64-bit ones hold addresses. */
static bool
read_pair(Reading *reading, uint32_t insn)
{
    const unsigned size = insn >> 30, mode = insn >> 23 & 3;
    const bool is_vector = insn >> 26 & 1;
    const unsigned regs[] = { insn & 31, insn >> 10 & 31 };
    const bool is_load = insn >> 22 & 1;
    const bool has_tag = !is_vector && size == 1 && !is_load; /* STGP */
    const int64_t unit = is_vector ? INT64_C(4) << size : has_tag ? 16 : size == 2 ? 8 : 4;

    if ((insn & 0x3a000000) != 0x28000000 || size == 3)
        return false;
    /* mode 0: without allocation in a cache */
    read_access(reading, mode == 0 ? 2 : mode, is_load, insn >> 5 & 31,
                get_signed(insn, 15, 7) * unit, regs, !is_vector && size == 2 ? 2 : 0);
    return true;
}

static bool
read_single(Reading *reading, uint32_t insn)
{
    const unsigned reg = insn & 31, base = insn >> 5 & 31, mode = insn >> 10 & 3;
    const bool is_load = insn >> 22 & 1;

    if ((insn & 0xff800000) == 0xf9000000) { /* 64 bits; the offset has no sign */
        read_access(reading, 2, is_load, base, (int64_t)(insn >> 10 & 0xfff) * WORD, &reg, 1);
        return true;
    }
    if ((insn & 0x3b200000) != 0x38000000 || mode == 2)
        return false;
    /* mode 0: does not move the base register */
    read_access(reading, mode == 0 ? 2 : mode, is_load, base, get_signed(insn, 12, 9), &reg,
                (insn & 0xffa00000) == 0xf8000000 ? 1 : 0);
    return true;
}

/* ADD and SUB of a constant; MOV to and from the stack pointer is ADD of 0 */
static bool
read_add(Reading *reading, uint32_t insn)
{
    const unsigned to = insn & 31, from = insn >> 5 & 31;
    const bool is_sub = insn >> 30 & 1;
    int64_t number = insn >> 10 & 0xfff, at;

    if ((insn & 0xbf800000) != 0x91000000)
        return false;
    if (insn >> 22 & 1)
        number <<= 12;
    if (is_sub)
        number = -number;
    if (to == SP && from == SP) {
        move_base(reading, SP, number);
    } else if (to == SP) {
        const bool is_known = find_base(&reading->now, from, &at);
        if (is_known)
            begin_leaving(reading);
        reading->now.is_switched = !is_known;
        reading->now.knows_sp = is_known;
        reading->now.sp = at + number;
    } else if (to == FP) {
        reading->now.knows_fp = find_base(&reading->now, from, &at);
        reading->now.fp = at + number;
    }
    return true;
}

/*
 * ADD and SUB of a register, and AND and ORR of a constant: the stack pointer has any value then,
 * such as behind alloca(), or with locals of a large alignment
 */
static bool
read_other(Reading *reading, uint32_t insn)
{
    enum { SETS_FLAGS = 3 };
    const bool is_add = (insn & 0xbfe00000) == 0x8b200000;
    const bool is_logical = (insn & 0x9f800000) == 0x92000000 && (insn >> 29 & 3) != SETS_FLAGS;

    if (!is_add && !is_logical)
        return false;
    if ((insn & 31) == SP)
        reading->now.knows_sp = false;
    if ((insn & 31) == FP)
        reading->now.knows_fp = false;
    return true;
}

/* Does the path end at the branch? */
static bool
ends_path(uint32_t insn)
{
    return (insn & 0xfc000000) == 0x14000000 || /* B */
           (insn & 0xfffffc1f) == 0xd65f0000 || /* RET */
           (insn & 0xfffffbff) == 0xd65f0bff || /* RETAA, RETAB */
           (insn & 0xfffffc1f) == 0xd61f0000 || /* BR */
           (insn & 0xfefff800) == 0xd61f0800 || /* BRAA and its kin */
           insn == 0xd69f03e0;                  /* ERET */
}

static void
read_insn(Reading *reading, uint32_t insn)
{
    if (read_pair(reading, insn) || read_single(reading, insn) || read_add(reading, insn) ||
        read_other(reading, insn) || !ends_path(insn))
        return;
    if (reading->is_leaving)
        reading->now = reading->body;
    reading->is_leaving = false;
}

/* Returns: false if the code cannot be read, or is too long */
static bool
read_function(const UprofUnwindContext *context, uint64_t start, uint64_t end, State *state)
{
    Reading reading = { .now = { .knows_sp = true } };
    uint8_t code[PIECE_BYTES];

    if (end - start > BODY_BYTES_MAX || start % INSN_BYTES != 0)
        return false;
    for (uint64_t at = start; at < end; at += sizeof(code)) {
        const size_t len = (size_t)MIN(end - at, sizeof(code)) / INSN_BYTES * INSN_BYTES;
        if (!uprof_unwind_read_code(context, at, code, len))
            return false;
        for (size_t i = 0; i < len; i += INSN_BYTES)
            read_insn(&reading, uprof_read_le32(code + i));
    }
    *state = reading.now;
    return true;
}

/* @base: (out): the stack pointer at the start of the function */
static bool
find_start_sp(const State *state, const UprofCursor *cursor, uint64_t *base)
{
    const bool knows_fp = state->knows_fp && !(cursor->unknown >> FP & 1);

    if (state->knows_sp && !(cursor->unknown >> SP & 1))
        *base = cursor->regs.sp - (uint64_t)state->sp;
    else if (knows_fp)
        *base = cursor->regs.fp - (uint64_t)state->fp;
    else
        return false;
    return state->is_switched ||
           (*base >= cursor->regs.sp && *base - cursor->regs.sp <= UPROF_FRAME_BYTES_MAX);
}

/* Returns: false if the value of @reg in the caller is not known */
static bool
find_reg(const UprofUnwindContext *context, const State *state, const UprofCursor *cursor,
         uint64_t base, unsigned reg, uint64_t *value)
{
    if (state->slots[reg].is_saved)
        return uprof_unwind_read_word(context, &cursor->regs,
                                      base + (uint64_t)state->slots[reg].offset, value);
    *value = reg == FP ? cursor->regs.fp : cursor->regs.reg[reg];
    return !(cursor->unknown >> reg & 1);
}

/*
 * A function that has called another one without saving its own return address cannot return. The
 * frame pointer of the first function is 0.
 */
static bool
is_root(const State *state, const UprofCursor *cursor)
{
    return cursor->is_return && !state->slots[LR].is_saved && !(cursor->unknown >> FP & 1) &&
           cursor->regs.fp == 0;
}

/* ---- Exceptions of a Linux kernel ---- */

/*
 * The kernel saves the registers of what was interrupted in a struct pt_regs on its stack, and
 * calls a handler. The code that does so begins at "el0t_64_sync" and so on, for exceptions from
 * EL0 and from EL1 (Linux, arch/arm64/kernel/entry.S). The processor enters it through a table with
 * sixteen entries at "vectors" (Arm ARM, D1.4.1).
 */
enum {
    REGS_PC = 32, /* words of struct pt_regs, behind x0 to x30 and sp */
    REGS_PSTATE = 33,
    /* of the frame record in struct pt_regs, to which x29 points (up to Linux 6.12) */
    REGS_RECORD_BYTES = 304,
    VECTOR_BYTES = 128,
    VECTORS_FROM_EL1 = 8, /* the other eight entries are for EL0 */
    LEVEL_SHIFT = 2,      /* of the exception level in PSTATE */
};

/*
 * With page-table isolation, processes enter and leave the kernel by code that is also mapped among
 * the fixed maps, which have no other code (arch/arm64/include/asm/fixmap.h): from Linux 6.9 on at
 * the first address, and before between the other two, if a kernel has 48 bits of an address.
 */
#define TRAMPOLINES_START UINT64_C(0xffffffffff000000)
#define OLD_TRAMPOLINES_START UINT64_C(0xfffffbfff0000000)
#define OLD_TRAMPOLINES_END UINT64_C(0xfffffc0000000000)

typedef enum {
    NO_ENTRY,
    START_FROM_KERNEL, /* not all registers are saved yet */
    START_FROM_USER,   /* the same for a process */
    ENTRY_SAVED,       /* a handler runs: all registers are saved */
    EXIT_TO_USER,      /* the registers of the process are still saved */
} Entry;

/* Does the name of a kernel's function, which may end in "_[k]", begin with @start and end with
 * @end? */
static bool
has_name(const char *name, const char *start, const char *end)
{
    static const char suffix[] = "_[k]";
    const size_t all = strlen(name),
                 len = all - (g_str_has_suffix(name, suffix) ? strlen(suffix) : 0);

    return g_str_has_prefix(name, start) && len >= strlen(end) &&
           strncmp(name + len - strlen(end), end, strlen(end)) == 0;
}

/*
 * Does the instruction before @pc call the handler of an exception? The code before may call other
 * functions, while not all registers are saved.
 */
static bool
is_behind_handler(const UprofUnwindContext *context, uint64_t pc)
{
    enum { BL = 0x94000000, BL_MASK = 0xfc000000, AWAY_BITS = 26 };
    const uint64_t call = pc - sizeof(uint32_t);
    uint8_t code[sizeof(uint32_t)];

    if (!uprof_unwind_read_code(context, call, code, sizeof(code)))
        return false;
    const uint32_t insn = uprof_read_le32(code);
    const uint64_t sign = UINT64_C(1) << (AWAY_BITS - 1);
    const uint64_t away = ((insn & ~BL_MASK) ^ sign) - sign;
    return (insn & BL_MASK) == BL &&
           has_name(uprof_name_text(
                        uprof_sym_find(context->sym, call + away * sizeof(insn), false).name),
                    "el", "_handler");
}

/* A new process returns to user space by this function, and a thread of the kernel begins in it. */
static bool
returns_from_fork(const UprofUnwindContext *context, const UprofCursor *cursor, const char *name)
{
    const uint64_t at = context->space ? uprof_space_saved_regs(context->space) : 0;
    uint64_t pstate;

    return has_name(name, "ret_from_fork", "") && at != 0 &&
           uprof_unwind_read_word(context, &cursor->regs, at + REGS_PSTATE * WORD, &pstate) &&
           (pstate >> LEVEL_SHIFT & 3) == 0;
}

static Entry
find_entry(const UprofUnwindContext *context, const UprofCursor *cursor)
{
    const uint64_t pc = cursor->regs.pc - cursor->is_return;
    UprofFunction function;

    if (cursor->regs.privilege != 0 || pc < UPROF_UPPER_HALF)
        return NO_ENTRY;
    const char *name =
        uprof_name_text(uprof_sym_find(context->sym, cursor->regs.pc, cursor->is_return).name);
    if (has_name(name, "ret_to_user", "") || has_name(name, "tramp_exit", "") ||
        returns_from_fork(context, cursor, name))
        return EXIT_TO_USER;
    if (pc >= TRAMPOLINES_START || (pc >= OLD_TRAMPOLINES_START && pc < OLD_TRAMPOLINES_END))
        return START_FROM_USER;
    if (has_name(name, "vectors", "vectors") && uprof_unwind_function(context, cursor, &function))
        return (pc - function.start) / VECTOR_BYTES < VECTORS_FROM_EL1 ? START_FROM_KERNEL
                                                                       : START_FROM_USER;
    if (has_name(name, "el", "_handler"))
        return NO_ENTRY;
    const bool is_from_user = has_name(name, "el0t_", "");
    if (!is_from_user && !has_name(name, "el1h_", "") && !has_name(name, "el1t_", ""))
        return NO_ENTRY;
    const bool is_saved = is_behind_handler(context, cursor->regs.pc);
    if (is_saved && cursor->is_return)
        return ENTRY_SAVED;
    if (!is_from_user)
        return START_FROM_KERNEL;
    return is_saved ? EXIT_TO_USER : START_FROM_USER;
}

static UprofStep
enter_process(const UprofUnwindContext *context)
{
    return context->space && uprof_space_is_of_process(context->space) ? UPROF_STEP_PROCESS
                                                                       : UPROF_STEP_BASE;
}

/* Can the stack go on in the process, with the saved registers @words? While a process begins
 * another program, it has no stack. */
static bool
has_process_at(const UprofUnwindContext *context, const uint64_t *words)
{
    uint64_t word;

    return context->space && uprof_space_has_process(context->space) &&
           !(words[REGS_PSTATE] & UPROF_ARM_PSTATE_AARCH32) && words[REGS_PC] < UPROF_UPPER_HALF &&
           words[SP] < UPROF_UPPER_HALF &&
           uprof_snapshot_read(context->snapshot, words[SP], &word, sizeof(word));
}

/* @at: address of the saved registers */
static UprofStep
leave_exception(const UprofUnwindContext *context, UprofCursor *cursor, uint64_t at)
{
    uint64_t words[REGS_PSTATE + 1];

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++)
        if (!uprof_unwind_read_word(context, &cursor->regs, at + i * WORD, &words[i]))
            return UPROF_STEP_CUT;
    const bool is_user = (words[REGS_PSTATE] >> LEVEL_SHIFT & 3) == 0;
    if (is_user && !has_process_at(context, words))
        return enter_process(context);
    memcpy(cursor->regs.reg, words, UPROF_ARM_SP * sizeof(words[0]));
    cursor->regs.pc = words[REGS_PC];
    cursor->regs.fp = words[FP];
    cursor->is_switched = is_user || words[SP] <= cursor->regs.sp;
    cursor->regs.sp = words[SP];
    cursor->regs.flags = words[REGS_PSTATE];
    cursor->regs.privilege = is_user ? 3 : 0;
    cursor->unknown = 0;
    cursor->is_return = false;
    cursor->how = UPROF_HOW_CODE;
    return UPROF_STEP_OK;
}

/*
 * The stack pointer is at the saved registers while the handler runs, and x29 at a record in them.
 * From Linux 6.13 on, the record begins a word earlier, is empty, and its type follows.
 */
static uint64_t
find_saved_regs(const UprofUnwindContext *context, const UprofCursor *cursor)
{
    enum { FINAL = 1, REGS = 2 }; /* types */
    const uint64_t at = cursor->regs.fp;
    uint64_t words[3];

    if (!(cursor->unknown >> SP & 1))
        return cursor->regs.sp;
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++)
        if (!uprof_unwind_read_word(context, &cursor->regs, at + i * WORD, &words[i]))
            words[i] = UINT64_MAX;
    const bool has_type = words[0] == 0 && words[1] == 0 && (words[2] == FINAL || words[2] == REGS);
    return at - REGS_RECORD_BYTES + (has_type ? WORD : 0);
}

/* While the kernel returns to a process, its stack pointer may be behind the saved registers. */
static UprofStep
return_to_process(const UprofUnwindContext *context, UprofCursor *cursor)
{
    const uint64_t at = context->space ? uprof_space_saved_regs(context->space) : 0;

    return at != 0 ? leave_exception(context, cursor, at) : enter_process(context);
}

UprofStep
uprof_code_aarch64_step(const UprofUnwindContext *context, UprofCursor *cursor)
{
    enum { FIRST_KEPT = 19 }; /* registers that a function must restore: x19 to x29 */
    const UprofArch *arch = uprof_sym_arch(context->sym);
    UprofFunction function;
    State state;
    uint64_t base, pc, values[FP + 1], unknown = ~(UINT64_C(1) << SP);
    const Entry entry = find_entry(context, cursor);

    if (entry == START_FROM_KERNEL)
        return UPROF_STEP_PASS;
    if (entry == START_FROM_USER)
        return enter_process(context);
    if (entry == EXIT_TO_USER)
        return return_to_process(context, cursor);
    if (entry == ENTRY_SAVED)
        return leave_exception(context, cursor, find_saved_regs(context, cursor));
    if (!uprof_unwind_function(context, cursor, &function) ||
        !read_function(context, function.start, cursor->regs.pc, &state))
        return UPROF_STEP_PASS;
    if (is_root(&state, cursor))
        return UPROF_STEP_BASE;
    if (!find_start_sp(&state, cursor, &base))
        return UPROF_STEP_PASS;
    if (!find_reg(context, &state, cursor, base, LR, &pc))
        return state.slots[LR].is_saved ? UPROF_STEP_CUT : UPROF_STEP_PASS;
    pc = uprof_regs_plain_address(arch, &context->snapshot->regs, pc);
    if (pc == 0)
        return UPROF_STEP_BASE;
    for (unsigned reg = FIRST_KEPT; reg <= FP; reg++)
        if (find_reg(context, &state, cursor, base, reg, &values[reg]))
            unknown &= ~(UINT64_C(1) << reg);
    for (unsigned reg = FIRST_KEPT; reg < FP; reg++)
        if (!(unknown >> reg & 1))
            cursor->regs.reg[reg] = values[reg];
    if (!(unknown >> FP & 1))
        cursor->regs.fp = values[FP];
    cursor->how = state.slots[LR].is_saved ? UPROF_HOW_FP : UPROF_HOW_CODE;
    cursor->regs.pc = pc;
    cursor->regs.sp = base;
    cursor->unknown = unknown;
    cursor->is_return = true;
    cursor->is_switched = state.is_switched;
    return UPROF_STEP_OK;
}
