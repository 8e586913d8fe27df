/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/parse/kallsyms-priv.h"
#include "uprof/kallsyms.h"

#include <string.h>

#include "build-kallsyms.h"
#include "uprof/error.h"

/* clang-format off */
static const struct {
    const char *name;
    KallsymsPlan plan;
    const char *layout;
} layouts[] = {
    { "3.2",       { .n = 1500, .addresses = KALLSYMS_ABSOLUTE, .wide_markers = true }, "addresses, before*" },
    { "4.20",      { .n = 1500, .addresses = KALLSYMS_ABSOLUTE }, "addresses, before*" },
    { "arm64-5",   { .n = 1500, .addresses = KALLSYMS_RELATIVE }, "offsets of a base, before*" },
    { "x86-4.9",   { .n = 1500, .n_percpu = 20, .addresses = KALLSYMS_PERCPU, .wide_markers = true }, "offsets of CPUs*before*" },
    { "x86-6.1",   { .n = 1500, .n_percpu = 20, .addresses = KALLSYMS_PERCPU, .wide_lengths = true, .long_bytes = 200 }, "offsets of CPUs*before*" },
    { "x86-6.2",   { .n = 1500, .n_percpu = 20, .addresses = KALLSYMS_PERCPU, .wide_lengths = true, .has_seqs = true }, "offsets of CPUs*before*" },
    { "x86-6.12",  { .n = 1500, .n_percpu = 20, .addresses = KALLSYMS_PERCPU, .wide_lengths = true, .has_seqs = true, .addresses_last = true }, "offsets of CPUs*behind*" },
    { "x86-6.15",  { .n = 1500, .addresses = KALLSYMS_RELATIVE, .wide_lengths = true, .addresses_last = true }, "offsets of a base, behind*" },
    { "7.0",       { .n = 1500, .addresses = KALLSYMS_PLACE, .wide_lengths = true, .addresses_last = true }, "offsets from each entry*" },
    { "odd",       { .n = 1501, .n_percpu = 3, .addresses = KALLSYMS_PERCPU, .wide_lengths = true, .addresses_last = true }, "offsets of CPUs*behind*" },
    { "odd-place", { .n = 1501, .addresses = KALLSYMS_PLACE, .wide_lengths = true, .addresses_last = true }, "offsets from each entry*" },
    { "narrow",    { .n = 1500, .addresses = KALLSYMS_RELATIVE, .long_bytes = 140 }, "offsets of a base, before*" },
    { "256",       { .n = 1280, .addresses = KALLSYMS_RELATIVE, .wide_lengths = true }, "offsets of a base, before*" },
};
/* clang-format on */

static UprofKallsyms *
parse(const GByteArray *image, GError **error)
{
    return uprof_kallsyms_parse((UprofSlice){ image->data, image->len }, KALLSYMS_BASE,
                                UPROF_KALLSYMS_MIN, error);
}

static void
test_layout(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const KallsymsPlan *plan = &layouts[i].plan;
    g_autoptr(GByteArray) image = build_kallsyms(plan);
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofKallsyms) kallsyms = parse(image, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(kallsyms->symbols->len, ==, plan->n);
    g_assert_true(g_pattern_match_simple(layouts[i].layout, kallsyms->layout));
    for (unsigned k = 0; k < plan->n; k++) {
        const UprofKallsym *symbol = &g_array_index(kallsyms->symbols, UprofKallsym, k);
        g_autofree char *name = kallsyms_name(plan, k);
        g_assert_cmpstr(uprof_kallsyms_name(kallsyms, symbol), ==, name);
        g_assert_cmphex(symbol->address, ==, kallsyms_address(plan, k));
        g_assert_cmpint(symbol->type, ==, k < plan->n_percpu ? 'A' : k % 2 ? 't' : 'T');
    }
}

static void
must_have_none(const GByteArray *image)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(parse(image, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
}

static const KallsymsPlan usual = {
    .n = 1500,
    .n_percpu = 20,
    .addresses = KALLSYMS_PERCPU,
    .wide_lengths = true,
    .addresses_last = true,
};

/* A truncated image gives the complete table or none. */
static void
test_cut(void)
{
    g_autoptr(GByteArray) image = build_kallsyms(&usual);
    unsigned n_found = 0;

    for (guint len = 0; len < image->len; len += 509) {
        g_autofree uint8_t *copy = g_memdup2(image->data, len);
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofKallsyms) kallsyms = uprof_kallsyms_parse(
            (UprofSlice){ copy, len }, KALLSYMS_BASE, UPROF_KALLSYMS_MIN, &error);
        g_assert_true(!kallsyms == !!error);
        if (!kallsyms)
            continue;
        n_found++;
        g_assert_cmpuint(kallsyms->symbols->len, ==, usual.n);
        g_assert_cmpuint(g_array_index(kallsyms->symbols, UprofKallsym, usual.n - 1).address, ==,
                         kallsyms_address(&usual, usual.n - 1));
    }
    /* some bytes follow the tables */
    g_assert_cmpuint(n_found, <, 8);
}

/* An unreadable page is zero; a table with such a page is not found. */
static void
test_hole(void)
{
    g_autoptr(GByteArray) whole = build_kallsyms(&usual);
    unsigned n_found = 0, n_pages = 0;

    for (guint page = 4096; page + 4096 <= whole->len; page += 4096, n_pages++) {
        g_autoptr(GByteArray) image = g_byte_array_sized_new(whole->len);
        g_byte_array_append(image, whole->data, whole->len);
        memset(image->data + page, 0, 4096);
        g_autoptr(UprofKallsyms) kallsyms = parse(image, NULL);
        n_found += kallsyms != NULL;
    }
    g_assert_cmpuint(n_pages, >=, 4);
    g_assert_cmpuint(n_found, ==, 0);
}

/* Replaces bytes of the tables: the parser returns, and no name is too long. */
static void
test_bytes_changed(void)
{
    g_autoptr(GByteArray) image = build_kallsyms(&usual);

    for (guint at = 4096; at < image->len; at += 37) {
        const uint8_t before = image->data[at];
        image->data[at] ^= (uint8_t)(1 + at % 255);
        g_autoptr(UprofKallsyms) kallsyms = parse(image, NULL);
        for (guint i = 0; kallsyms && i < kallsyms->symbols->len; i++) {
            const UprofKallsym *symbol = &g_array_index(kallsyms->symbols, UprofKallsym, i);
            g_assert_cmpuint(strlen(uprof_kallsyms_name(kallsyms, symbol)), <=,
                             UPROF_KALLSYMS_NAME_BYTES_MAX);
        }
        image->data[at] = before;
    }
}

/* Many token tables without names: the search is bounded. */
static void
test_only_tokens(void)
{
    g_autoptr(GByteArray) image = g_byte_array_new();
    g_autoptr(GByteArray) one = build_kallsyms(
        &(KallsymsPlan){ .n = 4, .addresses = KALLSYMS_RELATIVE, .addresses_last = true });

    for (unsigned i = 0; i < 100; i++)
        g_byte_array_append(image, one->data + 4096, one->len - 4096);
    must_have_none(image);
}

static void
test_nothing(void)
{
    static const uint8_t digits[] = "0\0001\0002\0003\0004\0005\0006\0007\0008\0009";
    g_autoptr(GByteArray) image = g_byte_array_new();

    must_have_none(image);
    g_byte_array_append(image, digits, sizeof(digits));
    must_have_none(image);
    for (unsigned i = 0; i < 1000; i++)
        g_byte_array_append(image, digits, sizeof(digits));
    must_have_none(image);
    memset(image->data, 0, image->len);
    must_have_none(image);
    memset(image->data, 0xff, image->len);
    must_have_none(image);
}

/* A table with fewer symbols than a kernel has is ignored. */
static void
test_few(void)
{
    g_autoptr(GByteArray) few = build_kallsyms(&(KallsymsPlan){
        .n = UPROF_KALLSYMS_MIN - 1, .addresses = KALLSYMS_RELATIVE, .wide_lengths = true });

    must_have_none(few);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(layouts); i++) {
        g_autofree char *path = g_strdup_printf("/kallsyms/layout/%s", layouts[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_layout);
    }
    g_test_add_func("/kallsyms/cut", test_cut);
    g_test_add_func("/kallsyms/hole", test_hole);
    g_test_add_func("/kallsyms/bytes-changed", test_bytes_changed);
    g_test_add_func("/kallsyms/only-tokens", test_only_tokens);
    g_test_add_func("/kallsyms/nothing", test_nothing);
    g_test_add_func("/kallsyms/few", test_few);
    return g_test_run();
}
