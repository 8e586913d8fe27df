/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/unwind/expr-priv.h"

enum { MEMORY = 0x1000, MEMORY_LEN = 16, REG = 0x2000 };

static const uint8_t memory[MEMORY_LEN] = {
    0x08, 0x10, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0x88
};

/* Register n has the value REG + n; registers from 31 on are unknown. */
static bool
read_reg(void *data, uint64_t dwarf, uint64_t *value)
{
    if (dwarf >= 31)
        return false;
    *value = REG + dwarf;
    return true;
}

static bool
read_memory(void *data, uint64_t gva, unsigned len, uint64_t *value)
{
    g_assert_cmpuint(len, >=, 1);
    g_assert_cmpuint(len, <=, 8);
    if (gva < MEMORY || gva - MEMORY > MEMORY_LEN - len)
        return false;
    *value = 0;
    memcpy(value, memory + (gva - MEMORY), len);
    *value = GUINT64_FROM_LE(*value);
    return true;
}

static const UprofExprOps ops = { read_reg, read_memory };

#define CODE(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
#define OK UPROF_EXPR_OK
#define BAD UPROF_EXPR_BAD
#define UNKNOWN UPROF_EXPR_UNKNOWN
#define CUT UPROF_EXPR_CUT
#define M(n) ((uint64_t)INT64_C(-n))
#define LITS_15 "\x30\x31\x32\x33\x34\x35\x36\x37\x38\x39\x3a\x3b\x3c\x3d\x3e"

/* clang-format off */
/* The stack of each expression starts with the value 7. */
static const struct {
    const char *name;
    UprofSlice code;
    UprofExprAnswer answer;
    uint64_t result;   /* with 64-bit words */
    uint64_t result32; /* with 32-bit words; 0: the same */
} cases[] = {
    { "nothing",       CODE(""), OK, 7, 0 },
    { "nop",           CODE("\x96"), OK, 7, 0 },
    { "const1u",       CODE("\x08\xff"), OK, 255, 0 },
    { "const1s",       CODE("\x09\xff"), OK, M(1), UINT32_MAX },
    { "const2u",       CODE("\x0a\xfe\xff"), OK, 65534, 0 },
    { "const2s",       CODE("\x0b\xfe\xff"), OK, M(2), UINT32_MAX - 1 },
    { "const4u",       CODE("\x0c\xfe\xff\xff\xff"), OK, 0xfffffffe, 0 },
    { "const4s",       CODE("\x0d\xfe\xff\xff\xff"), OK, M(2), UINT32_MAX - 1 },
    { "const8u",       CODE("\x0e\1\2\3\4\5\6\7\x88"), OK, UINT64_C(0x8807060504030201), 0x04030201 },
    { "const8s",       CODE("\x0f\1\2\3\4\5\6\7\x88"), OK, UINT64_C(0x8807060504030201), 0x04030201 },
    { "constu",        CODE("\x10\x81\x01"), OK, 129, 0 },
    { "consts",        CODE("\x11\x7e"), OK, M(2), UINT32_MAX - 1 },
    { "lit0",          CODE("\x30"), OK, 0, 0 },
    { "lit31",         CODE("\x4f"), OK, 31, 0 },
    { "dup",           CODE("\x12\x22"), OK, 14, 0 },
    { "drop",          CODE("\x31\x13"), OK, 7, 0 },
    { "over",          CODE("\x31\x14"), OK, 7, 0 },
    { "pick-0",        CODE("\x31\x15\0"), OK, 1, 0 },
    { "pick-1",        CODE("\x31\x15\1"), OK, 7, 0 },
    { "pick-2",        CODE("\x31\x15\2"), BAD, 0, 0 },
    { "swap",          CODE("\x31\x16"), OK, 7, 0 },
    { "rot",           CODE("\x31\x32\x17"), OK, 1, 0 },
    { "rot-lowest",    CODE("\x31\x32\x17\x13\x13"), OK, 2, 0 },
    { "abs",           CODE("\x11\x7b\x19"), OK, 5, 0 },
    { "abs-of-positive", CODE("\x19"), OK, 7, 0 },
    { "and",           CODE("\x3a\x1a"), OK, 2, 0 },
    { "or",            CODE("\x38\x21"), OK, 15, 0 },
    { "xor",           CODE("\x3a\x27"), OK, 13, 0 },
    { "not",           CODE("\x20"), OK, M(8), UINT32_MAX - 7 },
    { "neg",           CODE("\x1f"), OK, M(7), UINT32_MAX - 6 },
    { "plus",          CODE("\x38\x22"), OK, 15, 0 },
    { "plus-over",     CODE("\x11\x7f\x22"), OK, 6, 0 },
    { "minus",         CODE("\x38\x1c"), OK, M(1), UINT32_MAX },
    { "mul",           CODE("\x38\x1e"), OK, 56, 0 },
    { "div",           CODE("\x11\x7e\x1b"), OK, M(3), UINT32_MAX - 2 },
    { "div-by-0",      CODE("\x30\x1b"), BAD, 0, 0 },
    { "div-lowest",    CODE("\x31\x08\x3f\x24\x11\x7f\x1b"), OK, UINT64_C(1) << 63, UINT32_C(1) << 31 },
    { "mod",           CODE("\x33\x1d"), OK, 1, 0 },
    { "mod-by-0",      CODE("\x30\x1d"), BAD, 0, 0 },
    { "plus-uconst",   CODE("\x23\x80\x01"), OK, 135, 0 },
    { "shl",           CODE("\x33\x24"), OK, 56, 0 },
    { "shl-too-far",   CODE("\x08\x41\x24"), OK, 14, 0 },
    { "shr",           CODE("\x11\x7f\x08\x1c\x25"), OK, UINT64_C(0xfffffffff), 15 },
    { "shra",          CODE("\x11\x70\x32\x26"), OK, M(4), UINT32_MAX - 3 },
    { "eq",            CODE("\x37\x29"), OK, 1, 0 },
    { "ge",            CODE("\x11\x7f\x2a"), OK, 1, 0 },
    { "gt",            CODE("\x37\x2b"), OK, 0, 0 },
    { "le",            CODE("\x37\x2c"), OK, 1, 0 },
    { "lt",            CODE("\x11\x7f\x2d"), OK, 0, 0 },
    { "ne",            CODE("\x37\x2e"), OK, 0, 0 },
    { "breg",          CODE("\x77\x08"), OK, REG + 15, 0 },
    { "breg-below",    CODE("\x70\x78"), OK, REG - 8, 0 },
    { "breg-31",       CODE("\x8f\0"), UNKNOWN, 0, 0 },
    { "bregx",         CODE("\x92\x1e\x02"), OK, REG + 32, 0 },
    { "bregx-huge",    CODE("\x92\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0"), UNKNOWN, 0, 0 },
    { "deref",         CODE("\x0a\0\x10\x06"), OK, 0x1008, 0 },
    { "deref-twice",   CODE("\x0a\0\x10\x06\x06"), OK, UINT64_C(0x8807060504030201), 0x04030201 },
    { "deref-cut",     CODE("\x0a\x0d\x10\x06"), CUT, 0, 0 },
    { "deref-size-1",  CODE("\x0a\x0f\x10\x94\1"), OK, 0x88, 0 },
    { "deref-size-3",  CODE("\x0a\x08\x10\x94\3"), OK, 0x030201, 0 },
    { "deref-size-0",  CODE("\x0a\x08\x10\x94\0"), BAD, 0, 0 },
    { "deref-size-9",  CODE("\x0a\x08\x10\x94\x09"), BAD, 0, 0 },
    { "skip",          CODE("\x2f\1\0\x06\x12"), OK, 7, 0 },
    { "skip-to-end",   CODE("\x2f\1\0\x06"), OK, 7, 0 },
    { "skip-beyond",   CODE("\x2f\2\0\x06"), BAD, 0, 0 },
    { "skip-back",     CODE("\x2f\xfd\xff"), BAD, 0, 0 },
    { "skip-too-far-back", CODE("\x2f\xfc\xff"), BAD, 0, 0 },
    { "bra",           CODE("\x31\x28\1\0\x06\x38"), OK, 8, 0 },
    { "bra-not",       CODE("\x30\x28\1\0\x38\x38"), OK, 8, 0 },
    { "bra-not-to-anywhere", CODE("\x30\x28\xff\x7f"), OK, 7, 0 },
    { "count-down",    CODE("\x31\x1c\x12\x28\xfa\xff"), OK, 0, 0 },
    { "loop",          CODE("\x31\x28\xfc\xff"), BAD, 0, 0 },
    { "16-values",     CODE(LITS_15), OK, 14, 0 },
    { "17-values",     CODE(LITS_15 "\x31"), BAD, 0, 0 },
    { "17-by-dup",     CODE(LITS_15 "\x12"), BAD, 0, 0 },
    { "empty-at-end",  CODE("\x13"), BAD, 0, 0 },
    { "drop-of-none",  CODE("\x13\x13"), BAD, 0, 0 },
    { "dup-of-none",   CODE("\x13\x12"), BAD, 0, 0 },
    { "pick-of-none",  CODE("\x13\x15\0"), BAD, 0, 0 },
    { "neg-of-none",   CODE("\x13\x1f"), BAD, 0, 0 },
    { "deref-of-none", CODE("\x13\x06"), BAD, 0, 0 },
    { "bra-of-none",   CODE("\x13\x28\0\0"), BAD, 0, 0 },
    { "over-of-one",   CODE("\x14"), BAD, 0, 0 },
    { "swap-of-one",   CODE("\x16"), BAD, 0, 0 },
    { "rot-of-two",    CODE("\x31\x17"), BAD, 0, 0 },
    { "plus-of-one",   CODE("\x22"), BAD, 0, 0 },
    { "cut-const1u",   CODE("\x08"), BAD, 0, 0 },
    { "cut-const2u",   CODE("\x0a\1"), BAD, 0, 0 },
    { "cut-const4s",   CODE("\x0d\1\2\3"), BAD, 0, 0 },
    { "cut-const8u",   CODE("\x0e\1\2\3\4\5\6\7"), BAD, 0, 0 },
    { "cut-constu",    CODE("\x10\x80"), BAD, 0, 0 },
    { "cut-consts",    CODE("\x11"), BAD, 0, 0 },
    { "cut-addr",      CODE("\x03\1\2\3"), BAD, 0, 0 },
    { "cut-pick",      CODE("\x15"), BAD, 0, 0 },
    { "cut-breg",      CODE("\x77"), BAD, 0, 0 },
    { "cut-bregx",     CODE("\x92\x80"), BAD, 0, 0 },
    { "cut-plus-uconst", CODE("\x23"), BAD, 0, 0 },
    { "cut-deref-size", CODE("\x94"), BAD, 0, 0 },
    { "cut-skip",      CODE("\x2f\0"), BAD, 0, 0 },
    { "reg",           CODE("\x50"), BAD, 0, 0 },
    { "frame-base",    CODE("\x91\0"), BAD, 0, 0 },
    { "call-frame-cfa", CODE("\x31\x9c"), BAD, 0, 0 },
    { "unknown",       CODE("\x31\xff"), BAD, 0, 0 },
    /* the CFA of the linker's PLT stubs: 8 more after byte 10 of 16 */
    { "plt",           CODE("\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22"), OK, REG + 15, 0 },
    { "plt-pushed",    CODE("\x77\x08\x80\x0b\x3f\x1a\x3b\x2a\x33\x24\x22"), OK, REG + 23, 0 },
};
/* clang-format on */

static void
run_case(size_t i, uint8_t word_bytes)
{
    const UprofExpr expr = { .code = cases[i].code, .word_bytes = word_bytes, .ops = &ops };
    const uint64_t seven = 7;
    uint64_t result = 42, wanted = cases[i].result;

    if (word_bytes == 4 && cases[i].result32)
        wanted = cases[i].result32;
    g_assert_cmpint(uprof_expr_run(&expr, &seven, &result), ==, cases[i].answer);
    g_assert_cmphex(result, ==, cases[i].answer == OK ? wanted : 42);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);

    run_case(i, 8);
    run_case(i, 4);
}

static void
test_address(void)
{
    uint64_t result = 0;
    UprofExpr expr = { .code = CODE("\x03\1\2\3\4\5\6\7\x88"), .word_bytes = 8, .ops = &ops };

    g_assert_cmpint(uprof_expr_run(&expr, NULL, &result), ==, OK);
    g_assert_cmphex(result, ==, UINT64_C(0x8807060504030201));
    expr.big_endian = true;
    g_assert_cmpint(uprof_expr_run(&expr, NULL, &result), ==, OK);
    g_assert_cmphex(result, ==, UINT64_C(0x0102030405060788));
    expr = (UprofExpr){ .code = CODE("\x03\1\2\3\4"), .word_bytes = 4, .ops = &ops };
    g_assert_cmpint(uprof_expr_run(&expr, NULL, &result), ==, OK);
    g_assert_cmphex(result, ==, 0x04030201);
}

static void
test_no_first(void)
{
    uint64_t result = 42;
    const UprofExpr expr = { .code = CODE(""), .word_bytes = 8, .ops = &ops };

    g_assert_cmpint(uprof_expr_run(&expr, NULL, &result), ==, BAD);
    g_assert_cmpuint(result, ==, 42);
}

/* UPROF_EXPR_STEPS_MAX operations are run; with one more, the expression is bad. */
static void
test_steps(void)
{
    char code[UPROF_EXPR_STEPS_MAX + 1];
    const uint64_t first = 1;
    uint64_t result;
    UprofExpr expr = { .code = { code, UPROF_EXPR_STEPS_MAX }, .word_bytes = 8, .ops = &ops };

    memset(code, 0x96, sizeof(code));
    g_assert_cmpint(uprof_expr_run(&expr, &first, &result), ==, OK);
    expr.code.len++;
    g_assert_cmpint(uprof_expr_run(&expr, &first, &result), ==, BAD);
}

/* Random bytes: each expression ends. */
static void
test_random(void)
{
    enum { ROUNDS = 200000, LEN = 24 };

    for (unsigned round = 0; round < ROUNDS; round++) {
        g_autofree uint8_t *code = g_malloc(LEN);
        const uint64_t first = MEMORY;
        uint64_t result;
        const UprofExpr expr = { .code = { code, LEN },
                                 .word_bytes = round % 2 ? 4 : 8,
                                 .big_endian = round % 4 > 1,
                                 .ops = &ops };

        for (unsigned i = 0; i < LEN; i++)
            code[i] = (uint8_t)g_test_rand_int_range(0, i % 2 ? 256 : 0x98);
        g_assert_cmpint(uprof_expr_run(&expr, &first, &result), <=, BAD);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/expr/case/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/expr/address", test_address);
    g_test_add_func("/expr/no-first", test_no_first);
    g_test_add_func("/expr/steps", test_steps);
    g_test_add_func("/expr/random", test_random);
    return g_test_run();
}
