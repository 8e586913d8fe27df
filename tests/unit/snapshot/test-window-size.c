/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/snapshot.h"
#include "uprof/window-size.h"

static void
test_learn(void)
{
    UprofWindowSize size;

    uprof_window_size_init(&size);
    g_assert_cmpint(size.wanted, ==, UPROF_WINDOW_BYTES_FIRST);
    for (unsigned i = 0; i < 399; i++)
        uprof_window_size_learn(&size, false, 100);
    g_assert_cmpint(size.wanted, ==, UPROF_WINDOW_BYTES_FIRST);
    uprof_window_size_learn(&size, false, 100);
    g_assert_cmpint(size.wanted, ==, UPROF_WINDOW_BYTES_FIRST / 2);
    for (unsigned i = 0; i < 10; i++) {
        const gint before = size.wanted;
        uprof_window_size_learn(&size, true, 0);
        g_assert_cmpint(size.wanted, ==, MIN(before * 2, UPROF_SNAPSHOT_BYTES_MAX));
    }
    /* The window shrinks after many short stacks; a long stack restarts the count. */
    for (unsigned i = 0; i < 6000; i++)
        uprof_window_size_learn(&size, false, 100);
    uprof_window_size_learn(&size, false, UPROF_SNAPSHOT_BYTES_MAX / 2);
    for (unsigned i = 0; i < 16 * 400 - 1; i++)
        uprof_window_size_learn(&size, false, 100);
    g_assert_cmpint(size.wanted, ==, UPROF_SNAPSHOT_BYTES_MAX);
    uprof_window_size_learn(&size, false, 100);
    g_assert_cmpint(size.wanted, ==, UPROF_SNAPSHOT_BYTES_MAX / 2);
    for (unsigned i = 0; i < 50000; i++)
        uprof_window_size_learn(&size, false, 0);
    g_assert_cmpint(size.wanted, ==, UPROF_WINDOW_BYTES_MIN);
    /* Only the first longer stack is cut. */
    uprof_window_size_learn(&size, true, 0);
    g_assert_cmpint(size.wanted, ==, UPROF_WINDOW_BYTES_FIRST);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/window-size/learn", test_learn);
    return g_test_run();
}
