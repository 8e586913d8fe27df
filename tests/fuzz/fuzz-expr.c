/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bits of the first byte describe the machine: bit 0, 32-bit; bit 1, big-endian; bit 2, the
 * stack starts with a value. The second byte is the size of memory. The content of memory follows,
 * from address 0 on, and then the expression. The value of a register is its number; registers
 * above 31 are unknown.
 */
#include "fuzz.h"

#include <string.h>

#include "../../src/unwind/expr-priv.h"

enum { IS_32 = 1, IS_BIG = 2, HAS_FIRST = 4, REGS = 32 };

typedef struct {
    UprofSlice memory;
    unsigned word_bytes, n_asked;
} World;

static bool
read_reg(void *data, uint64_t dwarf, uint64_t *value)
{
    World *world = data;

    world->n_asked++;
    *value = dwarf;
    return dwarf < REGS;
}

static bool
read_memory(void *data, uint64_t gva, unsigned len, uint64_t *value)
{
    World *world = data;
    UprofSlice part;

    world->n_asked++;
    g_assert(len >= 1 && len <= world->word_bytes);
    if (gva > world->memory.len || !uprof_slice_sub(world->memory, (size_t)gva, len, &part))
        return false;
    *value = 0;
    memcpy(value, part.data, len);
    return true;
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    static const UprofExprOps ops = { read_reg, read_memory };
    const uint64_t first = 0x123456789abcdef0, untouched = 0x5a5a5a5a;
    uint64_t results[2] = { untouched, untouched };
    UprofExprAnswer answers[2];

    if (size < 2 || size - 2 < data[1])
        return;
    for (unsigned i = 0; i < G_N_ELEMENTS(results); i++) {
        World world = { .memory = { data + 2, data[1] }, .word_bytes = data[0] & IS_32 ? 4 : 8 };
        const UprofExpr expr = { .code = { data + 2 + data[1], size - 2 - data[1] },
                                 .word_bytes = (uint8_t)world.word_bytes,
                                 .big_endian = data[0] & IS_BIG,
                                 .ops = &ops,
                                 .data = &world };

        answers[i] = uprof_expr_run(&expr, data[0] & HAS_FIRST ? &first : NULL, &results[i]);
        g_assert(world.n_asked <= UPROF_EXPR_STEPS_MAX);
        g_assert(world.n_asked <= expr.code.len * UPROF_EXPR_STEPS_MAX);
        g_assert(answers[i] <= UPROF_EXPR_BAD);
        g_assert(answers[i] == UPROF_EXPR_OK || results[i] == untouched);
        g_assert(world.word_bytes == 8 || results[i] <= UINT32_MAX);
    }
    g_assert(answers[0] == answers[1] && results[0] == results[1]);
}
