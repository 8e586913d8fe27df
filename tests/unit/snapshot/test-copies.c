/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/copies.h"

#include <glib.h>
#include <string.h>

enum { BASE = 0x1000, HEAD_WORDS = 2 };

static void
add(UprofCopies *copies, uint64_t gva, const char *text)
{
    uint8_t *bytes = uprof_copies_add(copies, gva, strlen(text));

    g_assert_nonnull(bytes);
    memcpy(bytes, text, strlen(text));
}

static void
check(UprofSlice packed, uint64_t gva, const char *text)
{
    char into[16] = "";

    g_assert_true(uprof_copies_read(packed, gva, into, strlen(text)));
    g_assert_cmpstr(into, ==, text);
}

static void
test_read(void)
{
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    UprofCopies copies;
    char into[16];

    uprof_snapshot_add_window(snapshot, BASE, "stack", 5);
    uprof_copies_begin(&copies, snapshot);
    add(&copies, 0x2000, "one");
    add(&copies, 0x3000, "gone");
    uprof_copies_drop(&copies, strlen("gone"));
    add(&copies, UINT64_MAX - 4, "last");
    uprof_copies_end(&copies);
    const UprofSlice packed = uprof_copies_find(snapshot);
    check(packed, 0x2000, "one");
    check(packed, 0x2001, "ne");
    check(packed, UINT64_MAX - 4, "last");
    g_assert_false(uprof_copies_read(packed, 0x2000, into, 4));
    g_assert_false(uprof_copies_read(packed, 0x1fff, into, 1));
    g_assert_false(uprof_copies_read(packed, 0x2003, into, 1));
    g_assert_false(uprof_copies_read(packed, 0x3000, into, 1));
    g_assert_false(uprof_copies_read((UprofSlice){ 0 }, 0x2000, into, 1));
    /* the window of the stack is still there */
    g_assert_true(uprof_snapshot_read(snapshot, BASE, into, 5));
}

static void
test_none(void)
{
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    UprofCopies copies;

    uprof_copies_begin(&copies, snapshot);
    g_assert_null(uprof_copies_add(&copies, BASE, UPROF_SNAPSHOT_BYTES_MAX));
    uprof_copies_end(&copies);
    g_assert_cmpuint(snapshot->n_windows, ==, 0);
    g_assert_cmpuint(uprof_copies_find(snapshot).len, ==, 0);
    /* a snapshot without a free window */
    for (unsigned i = 0; i < UPROF_WINDOWS_MAX; i++)
        uprof_snapshot_add_window(snapshot, BASE, "x", 1);
    uprof_copies_begin(&copies, snapshot);
    g_assert_null(uprof_copies_add(&copies, BASE, 1));
    uprof_copies_end(&copies);
    g_assert_cmpuint(snapshot->n_windows, ==, UPROF_WINDOWS_MAX);
}

/* Copies of a hostile capture: heads that are cut off, or whose length is too large. */
static void
test_hostile(void)
{
    uint64_t words[HEAD_WORDS + 1] = { GUINT64_TO_LE(0x2000), 0, 0 };
    const uint64_t lengths[] = { 9, 16, UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63 };
    char into[16];

    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        words[1] = GUINT64_TO_LE(lengths[i]);
        for (size_t len = 0; len <= sizeof(words); len++)
            g_assert_false(uprof_copies_read((UprofSlice){ words, len }, 0x2000, into, 1));
    }
    words[1] = GUINT64_TO_LE(8);
    g_assert_true(uprof_copies_read((UprofSlice){ words, sizeof(words) }, 0x2007, into, 1));
    g_assert_false(uprof_copies_read((UprofSlice){ words, sizeof(words) - 1 }, 0x2000, into, 1));
    words[1] = 0;
    g_assert_false(uprof_copies_read((UprofSlice){ words, sizeof(words) }, 0x2000, into, 1));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/copies/read", test_read);
    g_test_add_func("/copies/none", test_none);
    g_test_add_func("/copies/hostile", test_hostile);
    return g_test_run();
}
