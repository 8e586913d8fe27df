/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/snapshot.h"

enum {
    A_GVA = 0x1000,
    A_LEN = 64,
    TOP_LEN = 16,
};

#define TOP_GVA (UINT64_MAX - TOP_LEN + 1)

/* clang-format off */
static const struct {
    const char *name;
    uint64_t gva;
    size_t len;
    bool ok;
    uint8_t first; /* the expected first byte; bytes count up from 0 */
} reads[] = {
    { "first",              A_GVA,              8,        true,  0 },
    { "last",               A_GVA + A_LEN - 8,  8,        true,  A_LEN - 8 },
    { "all",                A_GVA,              A_LEN,    true,  0 },
    { "one-too-many",       A_GVA,              A_LEN + 1, false, 0 },
    { "below",              A_GVA - 1,          8,        false, 0 },
    { "across-the-end",     A_GVA + A_LEN - 7,  8,        false, 0 },
    { "behind",             A_GVA + A_LEN,      1,        false, 0 },
    { "huge",               A_GVA,              SIZE_MAX, false, 0 },
    { "nowhere",            0,                  1,        false, 0 },
    { "top",                TOP_GVA,            TOP_LEN,  true,  A_LEN },
    { "last-byte-there-is", UINT64_MAX,         1,        true,  A_LEN + TOP_LEN - 1 },
    { "around-the-top",     UINT64_MAX,         2,        false, 0 },
};
/* clang-format on */

static UprofSnapshot *
make_snapshot(void)
{
    UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);

    snapshot->n_windows = 2;
    snapshot->windows[0] = (UprofWindow){ .gva = A_GVA, .offset = 0, .len = A_LEN };
    snapshot->windows[1] = (UprofWindow){ .gva = TOP_GVA, .offset = A_LEN, .len = TOP_LEN };
    for (unsigned i = 0; i < A_LEN + TOP_LEN; i++)
        snapshot->bytes[i] = i;
    return snapshot;
}

static void
test_read(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autofree UprofSnapshot *snapshot = make_snapshot();
    uint8_t into[A_LEN + 1];

    memset(into, 0xee, sizeof(into));
    const bool ok = uprof_snapshot_read(snapshot, reads[i].gva, into, reads[i].len);

    g_assert_true(ok == reads[i].ok);
    g_assert_cmpuint(into[0], ==, ok ? reads[i].first : 0xee);
    if (ok)
        g_assert_true(reads[i].len == sizeof(into) || into[reads[i].len] == 0xee);
}

static void
test_overlapping_windows(void)
{
    g_autofree UprofSnapshot *snapshot = make_snapshot();
    uint8_t into[8];

    snapshot->windows[2] = (UprofWindow){ A_GVA + A_LEN - 8, A_LEN + TOP_LEN, 32 };
    snapshot->n_windows = 3;
    snapshot->bytes[A_LEN + TOP_LEN + 4] = 0x99;
    g_assert_true(uprof_snapshot_read(snapshot, A_GVA + A_LEN - 4, into, sizeof(into)));
    g_assert_cmpuint(into[0], ==, 0x99);
}

static void
test_window_at(void)
{
    g_autofree UprofSnapshot *snapshot = make_snapshot();

    g_assert_true(uprof_snapshot_window_at(snapshot, A_GVA) == &snapshot->windows[0]);
    g_assert_true(uprof_snapshot_window_at(snapshot, UINT64_MAX) == &snapshot->windows[1]);
    g_assert_null(uprof_snapshot_window_at(snapshot, A_GVA - 1));
    g_assert_null(uprof_snapshot_window_at(snapshot, A_GVA + A_LEN));
    g_assert_null(uprof_snapshot_window_at(snapshot, 0));
}

static void
test_room(void)
{
    g_autofree UprofSnapshot *snapshot = make_snapshot();

    g_assert_cmpuint(uprof_snapshot_room(snapshot), ==, UPROF_SNAPSHOT_BYTES_MAX - A_LEN - TOP_LEN);
    snapshot->windows[1].len = UPROF_SNAPSHOT_BYTES_MAX - A_LEN;
    g_assert_cmpuint(uprof_snapshot_room(snapshot), ==, 0);
    snapshot->windows[1].len = TOP_LEN;
    snapshot->n_windows = UPROF_WINDOWS_MAX;
    g_assert_cmpuint(uprof_snapshot_room(snapshot), ==, 0);

    uprof_snapshot_clear(snapshot);
    g_assert_cmpuint(snapshot->n_windows, ==, 0);
    g_assert_cmpuint(uprof_snapshot_room(snapshot), ==, UPROF_SNAPSHOT_BYTES_MAX);
    g_assert_null(uprof_snapshot_window_at(snapshot, A_GVA));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(reads); i++) {
        g_autofree char *path = g_strdup_printf("/snapshot/read/%s", reads[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_read);
    }
    g_test_add_func("/snapshot/read/overlap", test_overlapping_windows);
    g_test_add_func("/snapshot/window-at", test_window_at);
    g_test_add_func("/snapshot/room", test_room);
    return g_test_run();
}
