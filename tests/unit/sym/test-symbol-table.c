/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/sym/symbol-table-priv.h"

enum { SYMBOLS_MAX = 6, ASKS_MAX = 8, UNSIZED_MAX = 0xf80 };

#define G UPROF_BINDING_GLOBAL
#define W UPROF_BINDING_WEAK
#define L UPROF_BINDING_LOCAL

/* Code from 0x1000 to 0x2000, and from 0x3000 to 0x3180 in two sections. */
static const UprofCodeRange ranges[] = { { 0x1000, 0x2000, { NULL, 0 } },
                                         { 0x3000, 0x3100, { NULL, 0 } },
                                         { 0x3100, 0x3180, { NULL, 0 } } };

/* clang-format off */
static const struct {
    const char *name;
    struct {
        const char *name; /* NULL: end of the list */
        uint64_t start, size;
        UprofBinding binding;
        bool is_data;
    } symbols[SYMBOLS_MAX];
    struct {
        uint64_t pc; /* 0: end of the list */
        const char *name; /* NULL: no symbol */
    } asks[ASKS_MAX];
} cases[] = {
    { "none", { { 0 } }, { { 0x1000, NULL } } },
    { "sized", { { "f", 0x1100, 0x10, G } }, { { 0x10ff, NULL }, { 0x1100, "f" }, { 0x110f, "f" }, { 0x1110, NULL } } },
    { "gap", { { "f", 0x1100, 0x10, G }, { "g", 0x1180, 0x10, G } }, { { 0x110f, "f" }, { 0x1150, NULL }, { 0x1180, "g" } } },
    { "no-size-to-next", { { "f", 0x1100, 0, G }, { "g", 0x1180, 0x10, G } }, { { 0x117f, "f" }, { 0x1180, "g" } } },
    { "no-size-to-end", { { "f", 0x1100, 0, G } }, { { 0x1fff, "f" }, { 0x2000, NULL }, { 0x3000, NULL } } },
    { "no-size-outside", { { "f", 0x2800, 0, G } }, { { 0x2800, "f" }, { 0x2801, NULL } } },
    { "data-bounds", { { "f", 0x1100, 0, G }, { "d", 0x1140, 4, G, true } }, { { 0x113f, "f" }, { 0x1140, NULL } } },
    { "data-is-not-an-alias", { { "d", 0x1100, 8, G, true }, { "f", 0x1100, 0x10, L } }, { { 0x1100, "f" } } },
    { "global-before-weak", { { "w", 0x1100, 8, W }, { "longer", 0x1100, 8, G }, { "l", 0x1100, 8, L } }, { { 0x1104, "longer" } } },
    { "weak-before-local", { { "a", 0x1100, 8, L }, { "__w", 0x1100, 8, W } }, { { 0x1104, "__w" } } },
    { "fewer-underscores", { { "__f", 0x1100, 8, G }, { "_longer", 0x1100, 8, G }, { "longest", 0x1100, 8, G } }, { { 0x1104, "longest" } } },
    { "shorter", { { "ffff", 0x1100, 8, G }, { "gg", 0x1100, 8, G } }, { { 0x1104, "gg" } } },
    { "bytewise", { { "b", 0x1100, 8, G }, { "a", 0x1100, 8, G } }, { { 0x1104, "a" } } },
    { "alias-knows-size", { { "f", 0x1100, 0, G }, { "f_alias", 0x1100, 0x20, G }, { "g", 0x1180, 8, G } }, { { 0x111f, "f" }, { 0x1120, NULL } } },
    { "nested", { { "outer", 0x1100, 0x100, G }, { "inner", 0x1140, 0x10, G } }, { { 0x113f, "outer" }, { 0x1140, "inner" }, { 0x114f, "inner" }, { 0x1150, "outer" }, { 0x11ff, "outer" }, { 0x1200, NULL } } },
    { "overlap", { { "a", 0x1100, 0x40, G }, { "b", 0x1120, 0x40, G } }, { { 0x111f, "a" }, { 0x1120, "b" }, { 0x113f, "b" }, { 0x115f, "b" }, { 0x1160, NULL } } },
    { "huge-size", { { "f", 0x1100, UINT64_MAX, G } }, { { 0x10ff, NULL }, { 0x1100, "f" }, { 0x1fff, "f" }, { 0x2000, NULL } } },
    { "huge-outside", { { "f", 0x2100, UINT64_MAX, G } }, { { 0x2100, "f" }, { UINT64_C(0xfffffffffffffff0), "f" } } },
    { "ends-alike", { { "a", 0x1100, 0x40, G }, { "b", 0x1120, 0x20, G }, { "c", 0x1130, 0x10, G } }, { { 0x1100, "a" }, { 0x1120, "b" }, { 0x113f, "c" }, { 0x1140, NULL } } },
    { "inner-outlives", { { "a", 0x1100, 0x80, G }, { "b", 0x1110, 0x20, G }, { "c", 0x1120, 0x20, G } }, { { 0x1128, "c" }, { 0x1138, "c" }, { 0x1140, "a" }, { 0x117f, "a" }, { 0x1180, NULL } } },
    { "no-size-too-far", { { "f", 0x1000, 0, G }, { "g", 0x1f90, 8, G } }, { { 0x1f7f, "f" }, { 0x1f80, NULL }, { 0x1f90, "g" } } },
    { "touching-code", { { "f", 0x30f0, 0x20, G }, { "g", 0x3100, 0, G } }, { { 0x30ff, "f" }, { 0x3100, "g" }, { 0x317f, "g" }, { 0x3180, NULL } } },
    { "upper-half", { { "low", 0xfffffff0, 0x20, G }, { "high", UINT64_C(0xffffffff81000000), 0x10, G } },
      { { 0xffffffef, NULL }, { 0xfffffff0, "low" }, { UINT64_C(0x10000000f), "low" }, { UINT64_C(0x100000010), NULL },
        { UINT64_C(0xffffffff80ffffff), NULL }, { UINT64_C(0xffffffff81000008), "high" }, { UINT64_C(0x81000008), NULL } } },
    { "same-name-twice", { { "f", 0x1100, 0x10, G }, { "f", 0x1100, 0x20, G } }, { { 0x111f, "f" }, { 0x1120, NULL } } },
    { "last-address", { { "f", UINT64_MAX, 0, G } }, { { UINT64_MAX - 1, NULL } } },
    { "zero-address", { { "f", 0, 0x10, G } }, { { 1, "f" }, { 0x10, NULL } } },
};
/* clang-format on */

static GArray *
collect_symbols(size_t i, const unsigned *order, unsigned n)
{
    GArray *symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));

    for (unsigned j = 0; j < n; j++) {
        const unsigned k = order[j];
        const UprofSymbol symbol = {
            .start = cases[i].symbols[k].start,
            .size = cases[i].symbols[k].size,
            .name = { cases[i].symbols[k].name, strlen(cases[i].symbols[k].name) },
            .binding = cases[i].symbols[k].binding,
            .code = !cases[i].symbols[k].is_data,
        };
        g_array_append_val(symbols, symbol);
    }
    return symbols;
}

static void
check_table(size_t i, const unsigned *order, unsigned n)
{
    g_autoptr(GArray) symbols = collect_symbols(i, order, n);
    g_autoptr(GArray) code = g_array_new(FALSE, FALSE, sizeof(UprofCodeRange));

    g_array_append_vals(code, ranges, G_N_ELEMENTS(ranges));
    g_autoptr(UprofSymbolTable) table = uprof_symbol_table_new(symbols, code, UNSIZED_MAX);
    for (size_t j = 0; j < uprof_symbol_table_count(table); j++) {
        const UprofSymbol *symbol = uprof_symbol_table_get(table, j);
        g_assert_true(symbol->code);
        g_assert_cmpuint(symbol->size, >, 0);
        g_assert_cmphex(symbol->start + symbol->size - 1, >=, symbol->start);
        if (j > 0)
            g_assert_cmphex(symbol->start, >, symbol[-1].start);
    }
    for (unsigned j = 0; j < ASKS_MAX && cases[i].asks[j].pc; j++) {
        const UprofSymbol *symbol = uprof_symbol_table_find(table, cases[i].asks[j].pc);
        g_assert_cmpint(symbol != NULL, ==, cases[i].asks[j].name != NULL);
        if (symbol)
            g_assert_cmpmem(symbol->name.data, symbol->name.len, cases[i].asks[j].name,
                            strlen(cases[i].asks[j].name));
    }
}

/* The order of the symbols in the file does not matter. */
static void
test_table(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    unsigned order[SYMBOLS_MAX];
    unsigned n = 0;

    while (n < SYMBOLS_MAX && cases[i].symbols[n].name) {
        order[n] = n;
        n++;
    }
    for (unsigned round = 0; round < 20; round++) {
        check_table(i, order, n);
        for (unsigned j = n; j > 1; j--) {
            const unsigned k = (unsigned)g_test_rand_int_range(0, (gint)j);
            const unsigned swap = order[j - 1];
            order[j - 1] = order[k];
            order[k] = swap;
        }
    }
}

/* If two names of one address have a long common beginning, the first name in the file is used. */
static void
test_long_names(void)
{
    enum { LEN = 4096 };
    g_autofree char *one = g_strnfill(LEN, 'x'), *other = g_strnfill(LEN, 'x');
    g_autoptr(GArray) symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    g_autoptr(GArray) code = g_array_new(FALSE, FALSE, sizeof(UprofCodeRange));
    UprofSymbol symbol = { .start = 0x1000, .size = 16, .name = { one, LEN }, .code = true };

    other[LEN - 1] = 'a';
    g_array_append_vals(code, ranges, G_N_ELEMENTS(ranges));
    g_array_append_val(symbols, symbol);
    symbol.name.data = other;
    g_array_append_val(symbols, symbol);
    g_autoptr(UprofSymbolTable) table = uprof_symbol_table_new(symbols, code, UNSIZED_MAX);
    g_assert_true(uprof_symbol_table_get(table, 0)->name.data == one);
}

/* Searches all symbols. Returns: the one that covers @pc and starts last */
static const UprofSymbol *
search_all(const UprofSymbolTable *table, uint64_t pc)
{
    const UprofSymbol *found = NULL;

    for (size_t i = 0; i < uprof_symbol_table_count(table); i++) {
        const UprofSymbol *symbol = uprof_symbol_table_get(table, i);
        if (pc >= symbol->start && pc - symbol->start < symbol->size)
            found = symbol;
    }
    return found;
}

/* Random symbols: uprof_symbol_table_find() agrees with a search of all symbols. */
static void
test_random(void)
{
    enum { N = 200, ASKS = 2000 };
    static const char name[] = "abcdefgh";
    static const uint64_t bases[] = { 0, 0xfffff000, UINT64_C(0x7fffffff0000) };

    for (unsigned round = 0; round < 30; round++) {
        g_autoptr(GArray) symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
        g_autoptr(GArray) code = g_array_new(FALSE, FALSE, sizeof(UprofCodeRange));
        g_array_append_vals(code, ranges, G_N_ELEMENTS(ranges));
        for (unsigned j = 0; j < N; j++) {
            const UprofSymbol symbol = {
                .start = bases[g_test_rand_int_range(0, G_N_ELEMENTS(bases))] +
                         (uint64_t)g_test_rand_int_range(0xf00, 0x2100),
                .size = (uint64_t)g_test_rand_int_range(0, 1 << g_test_rand_int_range(1, 12)),
                .name = { name, (size_t)g_test_rand_int_range(1, 9) },
                .binding = (UprofBinding)g_test_rand_int_range(0, 3),
                .code = g_test_rand_int_range(0, 8) != 0,
            };
            g_array_append_val(symbols, symbol);
        }
        g_autoptr(UprofSymbolTable) table = uprof_symbol_table_new(symbols, code, UNSIZED_MAX);
        for (unsigned j = 0; j < ASKS; j++) {
            const uint64_t pc = bases[g_test_rand_int_range(0, G_N_ELEMENTS(bases))] +
                                (uint64_t)g_test_rand_int_range(0xe00, 0x3200);
            g_assert_true(uprof_symbol_table_find(table, pc) == search_all(table, pc));
        }
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/symbol-table/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_table);
    }
    g_test_add_func("/symbol-table/long-names", test_long_names);
    g_test_add_func("/symbol-table/random", test_random);
    return g_test_run();
}
