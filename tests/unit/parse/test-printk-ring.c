/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/parse/printk-ring-priv.h"
#include "uprof/printk-ring.h"

#include <string.h>

#include "build-printk.h"

enum { COUNT_BITS = 4, SIZE_BITS = 10, MANY = 500, STATE_SHIFT = 62 };

#define ID_MASK ((UINT64_C(1) << STATE_SHIFT) - 1)

static GArray *
list(const UprofPrintkRing *ring)
{
    g_autoptr(GError) error = NULL;
    GArray *records = uprof_printk_ring_list(ring, &error);

    g_assert_no_error(error);
    return records;
}

static const UprofPrintkRecord *
get(const GArray *records, guint i)
{
    g_assert_cmpuint(i, <, records->len);
    return &g_array_index(records, UprofPrintkRecord, i);
}

static void
check_text(const UprofPrintkRecord *record, const char *text)
{
    g_assert_nonnull(record->text.data);
    g_assert_cmpmem(record->text.data, record->text.len, text, strlen(text));
}

static void
test_members(void)
{
    g_auto(PrintkBuilder) builder;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    printk_add(&builder, 6, "first");
    printk_add(&builder, 0, "");
    printk_add(&builder, 7, "two\nlines");
    const UprofPrintkRing ring = printk_ring(&builder);
    g_autoptr(GArray) records = list(&ring);
    g_assert_cmpuint(records->len, ==, 3);
    check_text(get(records, 0), "first");
    check_text(get(records, 1), "");
    check_text(get(records, 2), "two\nlines");
    for (guint i = 0; i < 3; i++) {
        static const uint8_t levels[] = { 6, 0, 7 };
        g_assert_cmpuint(get(records, i)->sequence, ==, i);
        g_assert_cmpuint(get(records, i)->time_ns, ==, i * 1000 * 1000);
        g_assert_cmpuint(get(records, i)->caller, ==, 100 + i);
        g_assert_cmpuint(get(records, i)->facility, ==, 4);
        g_assert_cmpuint(get(records, i)->level, ==, levels[i]);
    }
}

static void
test_empty(void)
{
    g_auto(PrintkBuilder) builder;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    const UprofPrintkRing ring = printk_ring(&builder);
    g_autoptr(GArray) records = list(&ring);
    g_assert_cmpuint(records->len, ==, 0);
}

/* After each of many records, all records that were not overwritten are there. */
static void
test_turns(void)
{
    g_auto(PrintkBuilder) builder;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    for (unsigned i = 0; i < MANY; i++) {
        g_autofree char *text =
            g_strdup_printf("%u %.*s", i, (int)(i * 7 % 90),
                            "012345678901234567890123456789012345678901234567890"
                            "123456789012345678901234567890123456789");
        printk_add(&builder, i % 8, text);
        const UprofPrintkRing ring = printk_ring(&builder);
        g_autoptr(GArray) records = list(&ring);
        const unsigned n = records->len;
        /* 16 records, or 1024 bytes of blocks of 16 to 104 bytes */
        g_assert_cmpuint(n, >=, MIN(i + 1, 8));
        check_text(get(records, n - 1), text);
        for (unsigned k = 0; k < n; k++) {
            const UprofPrintkRecord *record = get(records, k);
            g_assert_cmpuint(record->sequence, ==, i - (n - 1 - k));
            g_autofree char *number = g_strdup_printf("%u ", i - (n - 1 - k));
            g_assert_cmpuint(record->text.len, ==, strlen(number) + record->sequence * 7 % 90);
            g_assert_cmpint(memcmp(record->text.data, number, strlen(number)), ==, 0);
        }
    }
}

/* Changes of the second record; it is listed or not, and its text is known or not. */
enum { LISTED = 1, KNOWN = 2 };
static const struct {
    const char *name;
    unsigned at;
    uint64_t value; /* of a word of the descriptor */
    unsigned expected;
} changes[] = {
    { "no-change", 0, 0, LISTED | KNOWN },
    { "reserved", PRINTK_STATE, 0, 0 },
    { "other-id", PRINTK_STATE, UINT64_C(2) << STATE_SHIFT | 5, 0 },
    { "reusable", PRINTK_STATE, UINT64_MAX, 0 },
    { "no-block", PRINTK_BEGIN, 1, LISTED },
    { "begin-outside", PRINTK_BEGIN, 12345 * 8, LISTED },
    { "next-outside", PRINTK_NEXT, 8, LISTED },
    { "other-block", PRINTK_BEGIN, (uint64_t)-1024, LISTED },
    { "empty-block", PRINTK_NEXT, (uint64_t)-1024 + 16, LISTED },
    { "short-block", PRINTK_NEXT, (uint64_t)-1024 + 20, LISTED },
};

static void
test_change(gconstpointer data)
{
    const unsigned i = GPOINTER_TO_UINT(data);
    g_auto(PrintkBuilder) builder;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    printk_add(&builder, 6, "first");
    printk_add(&builder, 6, "second");
    printk_add(&builder, 6, "third");
    if (changes[i].at > 0)
        printk_put(printk_desc(&builder, builder.head - 1) + changes[i].at, changes[i].value, 8);
    const UprofPrintkRing ring = printk_ring(&builder);
    g_autoptr(GArray) records = list(&ring);
    const bool is_listed = changes[i].expected & LISTED;
    g_assert_cmpuint(records->len, ==, is_listed ? 3 : 2);
    check_text(get(records, records->len - 1), "third");
    if (is_listed && changes[i].expected & KNOWN)
        check_text(get(records, 1), "second");
    else if (is_listed)
        g_assert_null(get(records, 1)->text.data);
}

/* A record that is overwritten while the rings are copied does not count. */
static void
test_overwritten(void)
{
    g_auto(PrintkBuilder) builder;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    for (unsigned i = 0; i < 16; i++)
        printk_add(&builder, 6, "before");
    UprofPrintkRing ring = printk_ring(&builder);
    g_autofree uint8_t *before = g_memdup2(ring.descs.data, ring.descs.len);
    ring.descs.data = before;
    printk_add(&builder, 6, "afterwards");
    printk_add(&builder, 6, "afterwards");
    g_autoptr(GArray) records = list(&ring);
    g_assert_cmpuint(records->len, ==, 14);
    for (guint i = 0; i < records->len; i++)
        check_text(get(records, i), "before");
}

/* An info with the number of another record does not count. */
static void
test_order(void)
{
    g_auto(PrintkBuilder) builder;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    builder.sequence = 10;
    printk_add(&builder, 6, "first");
    builder.sequence = 3;
    printk_add(&builder, 6, "second");
    const UprofPrintkRing ring = printk_ring(&builder);
    g_autoptr(GArray) records = list(&ring);
    g_assert_cmpuint(records->len, ==, 1);
    check_text(get(records, 0), "first");
}

/* However many records the ids promise, each descriptor is read once. */
static void
test_ids(void)
{
    static const uint64_t tails[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 61 };
    g_auto(PrintkBuilder) builder;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    printk_add(&builder, 6, "first");
    for (size_t i = 0; i < G_N_ELEMENTS(tails); i++) {
        UprofPrintkRing ring = printk_ring(&builder);
        ring.tail = tails[i];
        g_autoptr(GArray) records = list(&ring);
        g_assert_cmpuint(records->len, <=, 1);
    }
}

static void
test_lengths(void)
{
    g_auto(PrintkBuilder) builder;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    for (unsigned i = 0; i < 6; i++) {
        UprofPrintkRing ring = printk_ring(&builder);
        g_autoptr(GError) error = NULL;
        ring.descs.len -= i == 0;
        ring.descs_after.len -= i == 1;
        ring.infos.len -= i == 2;
        ring.text.len -= i == 3;
        ring.count_bits += i == 4 ? 15 : 0;
        ring.size_bits += i == 5 ? 60 : 0;
        g_assert_null(uprof_printk_ring_list(&ring, &error));
        g_assert_nonnull(error);
    }
}

static void
test_layouts(void)
{
    g_assert_true(uprof_printk_layout_is_valid(&printk_layout));
    for (size_t i = 0; i < sizeof(UprofPrintkLayout) / sizeof(uint64_t); i++) {
        static const uint64_t values[] = { 1000 * 1000, UINT64_MAX, UINT64_MAX - 7 };
        for (size_t k = 0; k < G_N_ELEMENTS(values); k++) {
            union {
                UprofPrintkLayout layout;
                uint64_t words[sizeof(UprofPrintkLayout) / sizeof(uint64_t)];
            } changed = { .layout = printk_layout };
            changed.words[i] = values[k];
            g_assert_false(uprof_printk_layout_is_valid(&changed.layout));
        }
    }
}

/* A structure may be larger than those of today, but not much: there are many. */
static void
test_sizes(void)
{
    UprofPrintkLayout layout = printk_layout;

    layout.desc_bytes = UPROF_PRINTK_DESC_BYTES_MAX;
    layout.info_bytes = UPROF_PRINTK_INFO_BYTES_MAX;
    g_assert_true(uprof_printk_layout_is_valid(&layout));
    layout.desc_bytes++;
    g_assert_false(uprof_printk_layout_is_valid(&layout));
    layout.desc_bytes--;
    layout.info_bytes++;
    g_assert_false(uprof_printk_layout_is_valid(&layout));
}

/* The blocks overlap: each is the rest of the ring. All texts together are not longer than the
 * ring. */
static void
test_overlap(void)
{
    enum { N = 1 << COUNT_BITS, SIZE = 1 << SIZE_BITS };
    g_auto(PrintkBuilder) builder;
    size_t sum = 0;
    unsigned n_lost = 0;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    for (unsigned i = 0; i < N; i++) {
        printk_add(&builder, 6, "text");
        uint8_t *desc = printk_desc(&builder, builder.head);
        printk_put(desc + PRINTK_BEGIN, 8 * i, 8);
        printk_put(desc + PRINTK_NEXT, SIZE - 8, 8);
        printk_put(builder.infos + builder.head % N * PRINTK_INFO_BYTES + PRINTK_TEXT_LEN, SIZE, 2);
        builder.end = 0;
    }
    for (unsigned i = 0; i < N; i++)
        printk_put(builder.text + 8 * i, (builder.head - (N - 1 - i)) & ID_MASK, 8);
    const UprofPrintkRing ring = printk_ring(&builder);
    g_autoptr(GArray) records = list(&ring);
    g_assert_cmpuint(records->len, ==, N);
    for (guint i = 0; i < N; i++) {
        sum += get(records, i)->text.len;
        n_lost += !get(records, i)->text.data;
    }
    g_assert_cmpuint(sum, <=, SIZE);
    g_assert_cmpuint(n_lost, ==, N - 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/printk-ring/members", test_members);
    g_test_add_func("/printk-ring/empty", test_empty);
    g_test_add_func("/printk-ring/turns", test_turns);
    for (unsigned i = 0; i < G_N_ELEMENTS(changes); i++) {
        g_autofree char *name = g_strdup_printf("/printk-ring/change/%s", changes[i].name);
        g_test_add_data_func(name, GUINT_TO_POINTER(i), test_change);
    }
    g_test_add_func("/printk-ring/overwritten", test_overwritten);
    g_test_add_func("/printk-ring/order", test_order);
    g_test_add_func("/printk-ring/ids", test_ids);
    g_test_add_func("/printk-ring/lengths", test_lengths);
    g_test_add_func("/printk-ring/layouts", test_layouts);
    g_test_add_func("/printk-ring/sizes", test_sizes);
    g_test_add_func("/printk-ring/overlap", test_overlap);
    return g_test_run();
}
