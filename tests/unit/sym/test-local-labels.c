/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/sym/local-labels-priv.h"

enum { TEXT = 0x1000, TEXT_LEN = 0x200 };

typedef enum {
    FUNCTION,
    LABEL,
    DATA,
} Kind;

typedef struct {
    const char *name;
    uint64_t start, size;
    Kind kind;
} Symbol;

/* clang-format off */
static const struct {
    const char *name;
    const char *code;
    size_t len;
    Symbol symbols[6];
    const char *kept; /* names */
} cases[] = {
#define CODE_OF(text) text, sizeof(text) - 1
    { "covered", CODE_OF("\x90\xc3\x90\xc3"),
      { { "f", TEXT, 4, FUNCTION }, { "l", TEXT + 2, 0, LABEL } }, "f" },
    { "behind", CODE_OF("\x90\xc3\x90\xc3"),
      { { "f", TEXT, 2, FUNCTION }, { "l", TEXT + 2, 0, LABEL } }, "f l" },
    { "same-address", CODE_OF("\x90\xc3"),
      { { "l", TEXT, 0, LABEL }, { "f", TEXT, 0, FUNCTION } }, "f" },
    { "branch", CODE_OF("\x74\x02\xf4\xf4\x90\xc3"), /* je l; hlt; hlt; l: nop; ret */
      { { "f", TEXT, 0, FUNCTION }, { "l", TEXT + 4, 0, LABEL } }, "f" },
    { "falls", CODE_OF("\x90\x90\xc3"),
      { { "f", TEXT, 0, FUNCTION }, { "l", TEXT + 1, 0, LABEL } }, "f" },
    { "after-return", CODE_OF("\x90\xc3\x90\x90\xc3"), /* filled with NOPs */
      { { "f", TEXT, 0, FUNCTION }, { "l", TEXT + 3, 0, LABEL } }, "f l" },
    { "after-call", CODE_OF("\xe8\x10\0\0\0\x90\xc3"),
      { { "f", TEXT, 0, FUNCTION }, { "l", TEXT + 5, 0, LABEL } }, "f l" },
    { "called", CODE_OF("\x90\x90\xc3\xe8\xf9\xff\xff\xff\xc3"),
      { { "f", TEXT, 0, FUNCTION }, { "l", TEXT + 1, 0, LABEL }, { "g", TEXT + 3, 0, FUNCTION } }, "f l g" },
    { "called-function", CODE_OF("\x90\x90\xc3\xe8\xf8\xff\xff\xff\xc3"),
      { { "l", TEXT, 0, LABEL }, { "f", TEXT, 0, FUNCTION }, { "m", TEXT + 1, 0, LABEL },
        { "g", TEXT + 3, 0, FUNCTION } }, "f g" },
    { "second-is-other", CODE_OF("\x90\xc3\x90\xc3\x90\xc3"), /* what is behind it is its own */
      { { "f", TEXT, 0, FUNCTION }, { "l", TEXT + 1, 0, LABEL }, { "m", TEXT + 2, 0, LABEL },
        { "n", TEXT + 3, 0, LABEL } }, "f m n" },
    { "branch-over-other", CODE_OF("\x74\x02\xc3\xc3\x90\xc3"),
      { { "f", TEXT, 0, FUNCTION }, { "l", TEXT + 3, 0, LABEL }, { "m", TEXT + 4, 0, LABEL } }, "f l m" },
    { "inside-an-instruction", CODE_OF("\xb8\x90\x90\x90\x90\xc3"),
      { { "f", TEXT, 0, FUNCTION }, { "l", TEXT + 2, 0, LABEL } }, "f l" },
    { "behind-data", CODE_OF("\x90\x90\x90\xc3"),
      { { "f", TEXT, 0, FUNCTION }, { "d", TEXT + 1, 1, DATA }, { "l", TEXT + 2, 0, LABEL } }, "f d l" },
    { "no-function", CODE_OF("\x90\x90\xc3"),
      { { "l", TEXT, 0, LABEL }, { "m", TEXT + 1, 0, LABEL } }, "l m" },
    { "not-code", CODE_OF("\x90"),
      { { "f", TEXT + 0x10000, 0, FUNCTION }, { "l", TEXT + 0x10001, 0, LABEL } }, "f l" },
    { "beyond-the-file", CODE_OF("\x90"),
      { { "f", TEXT, 0, FUNCTION }, { "l", TEXT + TEXT_LEN, 0, LABEL } }, "f l" },
    { "far", CODE_OF("\x90"),
      { { "f", TEXT, 0, FUNCTION }, { "l", UINT64_MAX, 0, LABEL } }, "f l" },
    { "huge", CODE_OF("\x90"),
      { { "l", UINT64_MAX - 1, 0, LABEL }, { "f", TEXT, UINT64_MAX, FUNCTION } }, "f" },
    { "no-instruction", CODE_OF("\x06\x90\x90"),
      { { "f", TEXT, 0, FUNCTION }, { "l", TEXT + 1, 0, LABEL } }, "f l" },
#undef CODE_OF
};
/* clang-format on */

static GArray *
make_symbols(const Symbol *symbols, size_t n)
{
    GArray *made = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));

    for (size_t i = 0; i < n && symbols[i].name; i++) {
        const UprofSymbol symbol = { .start = symbols[i].start,
                                     .size = symbols[i].size,
                                     .name = { symbols[i].name, strlen(symbols[i].name) },
                                     .code = symbols[i].kind != DATA,
                                     .is_label = symbols[i].kind == LABEL };
        g_array_append_val(made, symbol);
    }
    return made;
}

static char *
join_names(const GArray *symbols)
{
    GString *names = g_string_new("");

    for (guint i = 0; i < symbols->len; i++) {
        const UprofSymbol *symbol = &g_array_index(symbols, UprofSymbol, i);
        g_string_append_printf(names, "%s%.*s", i > 0 ? " " : "", (int)symbol->name.len,
                               (const char *)symbol->name.data);
    }
    return g_string_free(names, FALSE);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    uint8_t text[TEXT_LEN];
    const UprofCodeRange range = { TEXT, TEXT + TEXT_LEN, { text, sizeof(text) } };
    g_autoptr(GArray) ranges = g_array_new(FALSE, FALSE, sizeof(range));
    g_autoptr(GArray) targets = NULL;
    g_autoptr(GArray) symbols = make_symbols(cases[i].symbols, G_N_ELEMENTS(cases[i].symbols));

    memset(text, 0xcc, sizeof(text));
    memcpy(text, cases[i].code, cases[i].len);
    g_array_append_val(ranges, range);
    uprof_local_labels_drop(symbols, ranges, 8, &targets);
    g_autofree char *names = join_names(symbols);
    g_assert_cmpstr(names, ==, cases[i].kept);
}

/* Code of another processor is not read: only sizes count. */
static void
test_other_code(void)
{
    static const uint8_t text[] = { 0x90, 0x90, 0x90, 0x90 };
    static const Symbol plan[] = { { "f", TEXT, 2, FUNCTION },
                                   { "l", TEXT + 1, 0, LABEL },
                                   { "g", TEXT + 2, 0, FUNCTION },
                                   { "m", TEXT + 3, 0, LABEL } };
    const UprofCodeRange range = { TEXT, TEXT + sizeof(text), { text, sizeof(text) } };
    g_autoptr(GArray) ranges = g_array_new(FALSE, FALSE, sizeof(range));
    g_autoptr(GArray) symbols = make_symbols(plan, G_N_ELEMENTS(plan));
    GArray *targets = NULL;

    g_array_append_val(ranges, range);
    uprof_local_labels_drop(symbols, ranges, 0, &targets);
    g_autofree char *names = join_names(symbols);
    g_assert_cmpstr(names, ==, "f g m");
    g_assert_null(targets);
}

/* Many labels, and functions without a size that reach over much code, take little time. */
static void
test_limits(void)
{
    enum { N = 200 * 1000, LEN = 64 * 1024 * 1024 };
    g_autofree uint8_t *text = g_malloc(LEN);
    const UprofCodeRange range = { TEXT, TEXT + LEN, { text, LEN } };
    g_autoptr(GArray) ranges = g_array_new(FALSE, FALSE, sizeof(range));
    g_autoptr(GArray) symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    g_autoptr(GArray) targets = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    memset(text, 0x90, LEN);
    g_array_append_val(ranges, range);
    for (guint i = 0; i < N; i++) {
        const UprofSymbol symbol = { .start = TEXT + (uint64_t)i * (LEN / N),
                                     .name = { "l", 1 },
                                     .code = true,
                                     .is_label = i % 100 != 0 };
        g_array_append_val(symbols, symbol);
    }
    uprof_local_labels_drop(symbols, ranges, 8, &targets);
    /* code up to the limit was read, and its labels are gone */
    g_assert_cmpuint(symbols->len, <, N - N / 8);
    g_assert_cmpuint(symbols->len, >, N / 2);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/local-labels/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/local-labels/other-code", test_other_code);
    g_test_add_func("/local-labels/limits", test_limits);
    return g_test_run();
}
