/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Code that is followed ahead from an address, and to this address from another one. The first
 * byte: bit 0, 32-bit code; bit 1, kernel mode; bit 2, a long walk. The second byte: distance of
 * the address from the start of the code. Then comes the code.
 */
#include "fuzz.h"

#include <string.h>

#include "../../src/unwind/code-cache-priv.h"
#include "../../src/unwind/code-role-priv.h"
#include "../../src/unwind/code-starts-priv.h"
#include "memory-guest.h"

enum {
    IS_32 = 1,
    IS_KERNEL = 2,
    IS_DEEP = 4,
    HEADER = 2,
    CODE = 0x1000,
    CODE_LEN = 0x2000,
    RAM_LEN = 0x4000,
    STARTS_MAX = 8,
};

typedef struct {
    MemoryGuest *guest;
    UprofNames *names;
    UprofSnapshot snapshot;
    UprofUnwindContext context;
} Fixture;

static Fixture *
make_fixture(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = RAM_LEN };
    Fixture *fixture = g_new0(Fixture, 1);

    fixture->guest = memory_guest_open(&plan);
    fixture->names = uprof_names_new();
    fixture->context = (UprofUnwindContext){
        .snapshot = &fixture->snapshot,
        .mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER),
        .sym = uprof_sym_new(fixture->guest->base.arch, fixture->names),
        .cache = uprof_unwind_cache_new(),
    };
    return fixture;
}

static void
check_value(const UprofValue *value)
{
    g_assert(value->base <= UPROF_VALUE_ZERO || value->base == UPROF_VALUE_UNKNOWN);
    g_assert(value->n_loads <= UPROF_VALUE_LOADS_MAX);
}

static void
check_rule(const UprofCodeRule *rule)
{
    check_value(&rule->slot);
    g_assert(rule->slot.base < UPROF_CODE_REGS);
    for (unsigned i = 0; i < UPROF_CODE_SAVED_MAX; i++)
        check_value(&rule->saved[i]);
}

static void
walk_code(const Fixture *fixture, const UprofCodeBounds *bounds, uint64_t pc)
{
    const UprofCodeTools *tools = uprof_cache_code_tools(&fixture->context);
    UprofCodeExits exits;
    UprofCodeReach reach;

    uprof_code_walk_ahead(tools->walk, bounds, pc, &exits);
    g_assert(exits.n <= UPROF_CODE_EXITS_MAX);
    for (unsigned i = 0; i < exits.n; i++)
        check_rule(&exits.rules[i]);
    uprof_code_walk_from(tools->walk, bounds, CODE, pc, &reach);
    g_assert(!reach.is_reached || !reach.has_jump);
    if (reach.is_reached)
        check_rule(&reach.rule);
    if (reach.has_jump)
        check_rule(&reach.jump_rule);
    uprof_code_find_role(tools->text, pc, true, bounds->is_kernel);
}

static void
find_starts(const Fixture *fixture, UprofStartKind kind, unsigned word_bytes, uint64_t pc)
{
    UprofCodeStarts starts;
    uint64_t start, last = pc + 1;

    uprof_code_starts_begin(&starts, uprof_cache_code_tools(&fixture->context)->text, kind, pc,
                            word_bytes);
    for (unsigned i = 0; i < STARTS_MAX && uprof_code_starts_next(&starts, &start); i++) {
        g_assert(start < last);
        last = start;
    }
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    static Fixture *fixture;

    if (size < HEADER)
        return;
    if (!fixture)
        fixture = make_fixture();
    const UprofCodeBounds bounds = { .word_bytes = data[0] & IS_32 ? 4 : 8,
                                     .is_kernel = data[0] & IS_KERNEL,
                                     .work_max = data[0] & IS_DEEP ? 30000 : 2000,
                                     .n_exits_max = 4,
                                     .is_thorough = !(data[0] & IS_DEEP) };
    const uint64_t pc = CODE + data[1];
    UprofSnapshot *snapshot = &fixture->snapshot;

    memset(fixture->guest->ram, 0, RAM_LEN);
    memory_guest_put(fixture->guest, CODE, data + HEADER, MIN(size - HEADER, (size_t)CODE_LEN));
    snapshot->reset++;
    snapshot->time_ns += UINT64_C(1000000000);
    snapshot->regs = (UprofRegs){ .pc = pc, .word_bytes = (uint8_t)bounds.word_bytes };
    uprof_mem_begin_sample(fixture->context.mem, snapshot->time_ns, snapshot->reset);
    uprof_cache_begin(&fixture->context);
    walk_code(fixture, &bounds, pc);
    find_starts(fixture, UPROF_START_ALIGNED, bounds.word_bytes, pc);
    find_starts(fixture, UPROF_START_ANYWHERE, bounds.word_bytes, pc);
}
