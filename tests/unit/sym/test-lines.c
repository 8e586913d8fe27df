/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* usage: test-lines IMAGE...; the images are builds of tests/lib/inlined.c */
#include <string.h>

#include "../../../src/sym/lines-priv.h"
#include "uprof/clock.h"
#include "uprof/elf-image.h"
#include "uprof/sym.h"

enum { FRAMES_MAX = 4, DAMAGES = 150 };

/* clang-format off */
static const struct {
    const char *label;
    struct {
        const char *name; /* NULL: end of the list */
        const char *file;
        unsigned line;
    } frames[FRAMES_MAX];
} cases[] = {
    { "at_inner",  { { "inner", "/some/folder/inner.h", 103 }, { "middle", "/some/folder/middle.c", 204 }, { "", "outer.c", 307 } } },
    { "at_middle", { { "middle", "/some/folder/middle.c", 203 }, { "", "outer.c", 307 } } },
    { "at_outer",  { { "", "outer.c", 304 } } },
};
/* clang-format on */

typedef struct {
    char *path;
    char *bytes;
    size_t len;
    uint64_t addresses[G_N_ELEMENTS(cases)]; /* in ascending order */
    size_t order[G_N_ELEMENTS(cases)];       /* the case of each address */
} Fixture;

static void
init_fixture(Fixture *fixture, const char *path)
{
    g_auto(UprofElfImage) image = { 0 };
    unsigned n = 0;

    fixture->path = g_strdup(path);
    g_assert_true(g_file_get_contents(path, &fixture->bytes, &fixture->len, NULL));
    g_assert_true(
        uprof_elf_parse((UprofSlice){ fixture->bytes, fixture->len }, path, &image, NULL));
    g_assert_true(image.has_lines);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (guint j = 0; j < image.symbols->len; j++) {
            const UprofSymbol *symbol = &g_array_index(image.symbols, UprofSymbol, j);
            if (symbol->name.len != strlen(cases[i].label) ||
                memcmp(symbol->name.data, cases[i].label, symbol->name.len) != 0)
                continue;
            unsigned at = n++;
            for (; at > 0 && fixture->addresses[at - 1] > symbol->start; at--) {
                fixture->addresses[at] = fixture->addresses[at - 1];
                fixture->order[at] = fixture->order[at - 1];
            }
            fixture->addresses[at] = symbol->start;
            fixture->order[at] = i;
        }
    }
    g_assert_cmpuint(n, ==, G_N_ELEMENTS(cases));
}

static void
clear_fixture(Fixture *fixture)
{
    g_free(fixture->path);
    g_free(fixture->bytes);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static void
assert_slice(UprofSlice slice, const char *text)
{
    g_autofree char *copy = g_strndup(slice.data, slice.len);

    g_assert_cmpstr(copy, ==, text);
}

static void
test_frames(gconstpointer data)
{
    g_auto(Fixture) fixture = { 0 };
    g_autofree char *why = NULL;

    init_fixture(&fixture, data);
    g_autoptr(UprofLines) lines = uprof_lines_read((UprofSlice){ fixture.bytes, fixture.len },
                                                   fixture.addresses, G_N_ELEMENTS(cases), &why);
    g_assert_cmpstr(why, ==, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const size_t k = fixture.order[i];
        const UprofLineFrame *frames;
        const unsigned n = uprof_lines_get(lines, i, &frames);
        unsigned n_wanted = 0;
        while (n_wanted < FRAMES_MAX && cases[k].frames[n_wanted].name)
            n_wanted++;
        g_assert_cmpuint(n, ==, n_wanted);
        for (unsigned j = 0; j < n; j++) {
            assert_slice(frames[j].name, cases[k].frames[j].name);
            g_assert_cmpuint(frames[j].line, ==, cases[k].frames[j].line);
            g_autofree char *file = g_strndup(frames[j].file.data, frames[j].file.len);
            g_assert_true(g_str_has_suffix(file, cases[k].frames[j].file));
        }
    }
}

/* Addresses outside of all units, and an empty list of addresses. */
static void
test_nothing(gconstpointer data)
{
    static const uint64_t addresses[] = { 0, 1, UINT64_MAX - 1, UINT64_MAX };
    g_auto(Fixture) fixture = { 0 };

    init_fixture(&fixture, data);
    for (unsigned n = 0; n <= G_N_ELEMENTS(addresses); n += 2) {
        g_autofree char *why = NULL;
        const UprofLineFrame *frames;
        g_autoptr(UprofLines) lines =
            uprof_lines_read((UprofSlice){ fixture.bytes, fixture.len }, addresses, n, &why);
        g_assert_null(why);
        for (unsigned i = 0; i < n; i++)
            g_assert_cmpuint(uprof_lines_get(lines, i, &frames), ==, 0);
    }
}

/* The frames as names in stacks. */
static void
test_names(gconstpointer data)
{
    static const char *const plain[] = { "outer", "middle_[i]", "inner_[i]" };
    static const char *const lined[] = { "outer (outer.c:307)", "middle (middle.c:204)_[i]",
                                         "inner (inner.h:103)_[i]" };
    g_auto(Fixture) fixture = { 0 };

    init_fixture(&fixture, data);
    for (unsigned with_lines = 0; with_lines < 2; with_lines++) {
        g_autoptr(UprofNames) names = uprof_names_new();
        g_autoptr(UprofSym) sym = uprof_sym_new(uprof_arch_find("x86_64"), names);
        const UprofSymConfig config = { .lines = with_lines };
        const UprofName *const *frames;
        uint64_t address = 0;

        uprof_sym_configure(sym, &config);
        g_assert_true(uprof_sym_add_file(sym, data, true, NULL));
        for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++)
            if (fixture.order[i] == 0)
                address = fixture.addresses[i];
        const UprofSymAnswer answer = uprof_sym_find(sym, address + 1, true);
        g_assert_nonnull(answer.site);
        g_assert_true(uprof_sym_find(sym, address, false).site == answer.site);
        g_assert_true(uprof_sym_find(sym, address + 1, false).site != answer.site);
        /* before it is resolved, the name is the function; its labels are symbols, too */
        g_assert_cmpuint(uprof_sym_expand(sym, answer.site, &frames), ==, 1);
        g_assert_true(frames[0] == answer.name);
        g_assert_cmpuint(uprof_sym_expand(sym, answer.name, &frames), ==, 0);
        uprof_sym_resolve(sym, UPROF_SYM_RESOLVE_MS);
        g_assert_cmpuint(uprof_sym_expand(sym, answer.site, &frames), ==, 3);
        for (unsigned i = 1; i < 3; i++)
            g_assert_cmpstr(uprof_name_text(frames[i]), ==, with_lines ? lined[i] : plain[i]);
        g_assert_true(g_str_has_suffix(uprof_name_text(frames[0]),
                                       with_lines ? " (outer.c:307)" : "at_inner"));
        uprof_sym_coarsen(sym);
        g_assert_null(uprof_sym_find(sym, address, false).site);
    }
}

/* A damaged file gives some answer, in bounded time. */
static void
test_damage(gconstpointer data)
{
    g_auto(Fixture) fixture = { 0 };
    g_autoptr(GRand) random = g_rand_new_with_seed(1);

    init_fixture(&fixture, data);
    for (unsigned round = 0; round < DAMAGES; round++) {
        g_autofree char *damaged = g_memdup2(fixture.bytes, fixture.len);
        g_autofree char *why = NULL;
        const uint64_t start_ns = uprof_clock_now_ns();
        const UprofLineFrame *frames;
        size_t len = fixture.len;

        if (round % 10 == 0)
            len = (size_t)g_rand_int_range(random, 0, (gint)len);
        for (unsigned i = 0; i < 1U << (round % 11); i++) {
            const size_t at = (size_t)g_rand_int_range(random, 0, (gint)fixture.len);
            damaged[at] = (char)g_rand_int_range(random, 0, 256);
        }
        g_autoptr(UprofLines) lines = uprof_lines_read(
            (UprofSlice){ damaged, len }, fixture.addresses, G_N_ELEMENTS(cases), &why);
        for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++)
            g_assert_cmpuint(uprof_lines_get(lines, i, &frames), <=, UPROF_LINES_FRAMES_MAX);
        g_assert_cmpuint(uprof_clock_now_ns() - start_ns, <, 30 * UPROF_NS_PER_S);
    }
}

/* Malformed answers, as a compromised child could send them. */
static void
test_malformed_answer(void)
{
    static const uint8_t whole[] = "\1\0\0\0\2\1\0a\2\0fi\7\0\0\0\0\0\0\0\x08\0\0\0"
                                   "\0\0\0\0\1\0\0\1\0g\x09\0\0\0";
    /* clang-format off */
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        { "\2\0\0\0\1\0\0\0\0\0\0\0\0", 13 },  /* address that was not asked for */
        { "\0\0\0\0\0", 5 },                          /* no frames */
        { "\0\0\0\0\377", 5 },                        /* too many frames */
        { "\0\0\0\0\1\377\377a", 8 },                /* a name longer than the answer */
    };
    /* clang-format on */
    const UprofLineFrame *frames;

    for (size_t len = 0; len < sizeof(whole); len++) {
        g_autoptr(GByteArray) answer = g_byte_array_new();
        g_byte_array_append(answer, whole, (guint)len);
        g_autoptr(UprofLines) lines = uprof_lines_parse(answer, 2);
        g_assert_cmpuint(uprof_lines_get(lines, 1, &frames), ==, len >= 24 ? 2 : 0);
        if (len >= 24) {
            assert_slice(frames[0].name, "a");
            assert_slice(frames[0].file, "fi");
            g_assert_cmpuint(frames[0].line, ==, 7);
            g_assert_cmpuint(frames[1].line, ==, 8);
        }
        g_assert_cmpuint(uprof_lines_get(lines, 0, &frames), ==, len == sizeof(whole) - 1 ? 1 : 0);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GByteArray) answer = g_byte_array_new();
        g_byte_array_append(answer, (const guint8 *)bad[i].bytes, (guint)bad[i].len);
        g_autoptr(UprofLines) lines = uprof_lines_parse(answer, 2);
        for (unsigned j = 0; j < 2; j++)
            g_assert_cmpuint(uprof_lines_get(lines, j, &frames), ==, 0);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lines/malformed-answer", test_malformed_answer);
    for (int i = 1; i < argc; i++) {
        g_autofree char *name = g_path_get_basename(argv[i]);
        g_autofree char *frames = g_strdup_printf("/lines/frames/%s", name);
        g_autofree char *nothing = g_strdup_printf("/lines/nothing/%s", name);
        g_autofree char *names = g_strdup_printf("/lines/names/%s", name);
        g_autofree char *damage = g_strdup_printf("/lines/damage/%s", name);
        g_test_add_data_func(frames, argv[i], test_frames);
        g_test_add_data_func(nothing, argv[i], test_nothing);
        g_test_add_data_func(names, argv[i], test_names);
        g_test_add_data_func(damage, argv[i], test_damage);
    }
    return g_test_run();
}
